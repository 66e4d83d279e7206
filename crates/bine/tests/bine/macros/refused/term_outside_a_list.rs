//! Rejected: a term outside a list.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<ul><dt>"text"</dt></ul>)
}

fn main() {
    drop(page());
}
