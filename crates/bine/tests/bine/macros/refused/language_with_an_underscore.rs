//! Rejected: a language tag with an underscore.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<p lang="en_US">"text"</p>)
}

fn main() {
    drop(page());
}
