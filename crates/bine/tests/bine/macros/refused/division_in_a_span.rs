//! Rejected: a `<div>` in a `<span>`.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<span><div>"text"</div></span>)
}

fn main() {
    drop(page());
}
