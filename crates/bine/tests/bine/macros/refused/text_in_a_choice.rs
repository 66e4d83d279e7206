//! Rejected: text in a `<select>`.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<select>"text"<option>"o"</option></select>)
}

fn main() {
    drop(page());
}
