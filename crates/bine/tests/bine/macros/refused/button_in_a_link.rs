//! Rejected: a button in a link.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<a href="/"><button>"text"</button></a>)
}

fn main() {
    drop(page());
}
