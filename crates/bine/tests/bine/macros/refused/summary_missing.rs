//! Rejected: a `<details>` without a summary.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<details><p>"text"</p></details>)
}

fn main() {
    drop(page());
}
