//! Rejected: an unknown value of `loading`.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<img src="a.png" alt="" loading="later">)
}

fn main() {
    drop(page());
}
