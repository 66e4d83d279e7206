//! Rejected: a misspelled role.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<div role="buton">"text"</div>)
}

fn main() {
    drop(page());
}
