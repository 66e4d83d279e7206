//! Rejected: a label in a label.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<label>"a"<label>"b"</label></label>)
}

fn main() {
    drop(page());
}
