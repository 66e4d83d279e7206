//! Misuse: picture without words.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<img src="a.png">)
}

fn main() {
    drop(page());
}
