//! Misuse: tabindex of letters.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<p tabindex="first">"text"</p>)
}

fn main() {
    drop(page());
}
