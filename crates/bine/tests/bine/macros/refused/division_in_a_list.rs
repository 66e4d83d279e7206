//! Rejected: a `<div>` in a list.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<ul><div>"text"</div></ul>)
}

fn main() {
    drop(page());
}
