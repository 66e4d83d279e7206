//! Rejected: overlapping elements.

use bine::{Page, html};

fn crossed() -> impl Page {
    html! {
        <p>
            <b><i>both</b></i>
        </p>
    }
}

fn main() {}
