//! Rejected: two captions.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<table><caption>"a"</caption><caption>"b"</caption></table>)
}

fn main() {
    drop(page());
}
