//! Rejected: a description without a term.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<dl><dd>"text"</dd></dl>)
}

fn main() {
    drop(page());
}
