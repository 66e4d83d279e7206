//! Rejected: text in a table.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<table>"text"</table>)
}

fn main() {
    drop(page());
}
