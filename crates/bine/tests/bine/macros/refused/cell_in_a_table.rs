//! Rejected: a cell directly in a table.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<table><td>"text"</td></table>)
}

fn main() {
    drop(page());
}
