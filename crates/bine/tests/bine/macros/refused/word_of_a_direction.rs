//! Rejected: an unknown value of `dir`.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<p dir="right">"text"</p>)
}

fn main() {
    drop(page());
}
