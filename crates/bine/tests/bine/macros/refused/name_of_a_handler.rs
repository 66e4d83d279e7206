//! Rejected: a misspelled event handler.

use bine::{Page, html, raw};

fn page() -> impl Page {
    html!(<button onclik={raw("go()")}>"text"</button>)
}

fn main() {
    drop(page());
}
