//! Misuse: name of an element.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<secton><p>"text"</p></secton>)
}

fn main() {
    drop(page());
}
