//! Rejected: a `<main>` in a section.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<section><main>"text"</main></section>)
}

fn main() {
    drop(page());
}
