//! Rejected: a custom element in a list.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<ul><my-item>"text"</my-item></ul>)
}

fn main() {
    drop(page());
}
