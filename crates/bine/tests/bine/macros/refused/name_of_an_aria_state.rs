//! Misuse: name of an aria state.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<p aria-lable="l">"text"</p>)
}

fn main() {
    drop(page());
}
