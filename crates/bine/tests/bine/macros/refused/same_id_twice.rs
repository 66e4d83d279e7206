//! Rejected: a duplicate id.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<b id="one">"a"</b><i id="one">"b"</i>)
}

fn main() {
    drop(page());
}
