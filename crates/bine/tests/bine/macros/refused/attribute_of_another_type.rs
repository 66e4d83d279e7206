//! Rejected: an attribute that this type of `<input>` does not have.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<input type="number" name="a" maxlength="3">)
}

fn main() {
    drop(page());
}
