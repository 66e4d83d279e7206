//! Rejected: a `<source>` in a picture without `srcset`.

use bine::{Page, html};

fn page() -> impl Page {
    html!(<picture><source src="/small.png"><img src="/large.png" alt=""></picture>)
}

fn main() {
    drop(page());
}
