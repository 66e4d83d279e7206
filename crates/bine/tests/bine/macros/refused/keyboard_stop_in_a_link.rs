//! Rejected: an element with `tabindex` in a link.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<a href="/">"text " <b tabindex="0">"more"</b></a>)
}

fn main() {
    drop(page());
}
