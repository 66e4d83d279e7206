//! Misuse: number out of form.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<td colspan="two">"text"</td>)
}

fn main() {
    drop(page());
}
