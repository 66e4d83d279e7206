//! Rejected: text in a row.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<table><tbody><tr>"text"</tr></tbody></table>)
}

fn main() {
    drop(page());
}
