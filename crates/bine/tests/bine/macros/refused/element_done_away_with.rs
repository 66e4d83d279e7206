//! Rejected: an obsolete element.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<center>"text"</center>)
}

fn main() {
    drop(page());
}
