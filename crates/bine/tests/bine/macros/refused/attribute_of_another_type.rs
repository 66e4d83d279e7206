//! Misuse: attribute of another type.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<input type="number" name="a" maxlength="3">)
}

fn main() {
    drop(page());
}
