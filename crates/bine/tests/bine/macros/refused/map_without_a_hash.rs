//! Rejected: a `usemap` without `#`.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<img src="/map.png" alt="A map" usemap="rooms">)
}

fn main() {
    drop(page());
}
