//! Rejected: a paragraph in a group of terms.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<dl><div><dt>"a"</dt><dd>"b"</dd><p>"c"</p></div></dl>)
}

fn main() {
    drop(page());
}
