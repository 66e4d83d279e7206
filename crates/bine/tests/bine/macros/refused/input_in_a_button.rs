//! Rejected: an `<input>` in a button.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<button><input name="a"></button>)
}

fn main() {
    drop(page());
}
