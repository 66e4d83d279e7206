//! Misuse: text in a choice.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<select>"text"<option>"o"</option></select>)
}

fn main() {
    drop(page());
}
