//! Rejected: an obsolete attribute.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<table border="1"><tbody></tbody></table>)
}

fn main() {
    drop(page());
}
