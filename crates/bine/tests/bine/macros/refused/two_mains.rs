//! Rejected: two `<main>` elements.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<main>"a"</main><main>"b"</main>)
}

fn main() {
    drop(page());
}
