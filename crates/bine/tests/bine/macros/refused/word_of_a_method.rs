//! Rejected: an unknown value of `method`.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<form method="psot"></form>)
}

fn main() {
    drop(page());
}
