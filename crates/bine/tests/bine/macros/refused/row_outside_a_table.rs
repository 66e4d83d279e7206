//! Rejected: a row outside a table.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<div><tr><td>"text"</td></tr></div>)
}

fn main() {
    drop(page());
}
