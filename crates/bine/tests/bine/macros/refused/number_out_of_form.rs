//! Rejected: a malformed number.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<td colspan="two">"text"</td>)
}

fn main() {
    drop(page());
}
