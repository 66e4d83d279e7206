//! Rejected: the obsolete element `<font>`.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<font color="red">"text"</font>)
}

fn main() {
    drop(page());
}
