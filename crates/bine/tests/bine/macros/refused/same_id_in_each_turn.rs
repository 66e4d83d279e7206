//! Rejected: an id repeated by a loop.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<ul>{for n in 0..3 { <li id="one">{n}</li> }}</ul>)
}

fn main() {
    drop(page());
}
