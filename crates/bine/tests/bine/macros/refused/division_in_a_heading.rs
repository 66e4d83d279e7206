//! Rejected: a `<div>` in a heading.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<h1><div>"text"</div></h1>)
}

fn main() {
    drop(page());
}
