//! Rejected: a `target` without `href`.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<a target="_blank">"text"</a>)
}

fn main() {
    drop(page());
}
