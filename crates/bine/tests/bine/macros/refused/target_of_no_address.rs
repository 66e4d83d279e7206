//! Misuse: target of no address.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<a target="_blank">"text"</a>)
}

fn main() {
    drop(page());
}
