//! Rejected: a form in a form.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<form><div><form></form></div></form>)
}

fn main() {
    drop(page());
}
