//! Rejected: a table head after the rows.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<table><tr><td>"text"</td></tr><thead></thead></table>)
}

fn main() {
    drop(page());
}
