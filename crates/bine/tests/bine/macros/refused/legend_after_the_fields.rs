//! Rejected: a legend after the fields.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<fieldset><input name="a"><legend>"text"</legend></fieldset>)
}

fn main() {
    drop(page());
}
