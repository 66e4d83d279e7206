//! Rejected: a link in a link.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<a href="/a"><b><a href="/b">"text"</a></b></a>)
}

fn main() {
    drop(page());
}
