//! Rejected: an unknown value of `type`.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<input type="txet">)
}

fn main() {
    drop(page());
}
