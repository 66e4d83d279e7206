//! Rejected: two controls in a label.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<label>"From to " <input name="from"> <input name="to"></label>)
}

fn main() {
    drop(page());
}
