//! Misuse: two mains.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<main>"a"</main><main>"b"</main>)
}

fn main() {
    drop(page());
}
