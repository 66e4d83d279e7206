//! Misuse: head of a table after its rows.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<table><tr><td>"text"</td></tr><thead></thead></table>)
}

fn main() {
    drop(page());
}
