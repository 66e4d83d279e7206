//! Misuse: button with a picture of no words.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<input type="image" src="/go.png">)
}

fn main() {
    drop(page());
}
