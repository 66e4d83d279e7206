//! Rejected: a misspelled ARIA attribute.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<p aria-lable="l">"text"</p>)
}

fn main() {
    drop(page());
}
