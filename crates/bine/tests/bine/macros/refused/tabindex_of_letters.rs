//! Rejected: a `tabindex` that is not a number.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<p tabindex="first">"text"</p>)
}

fn main() {
    drop(page());
}
