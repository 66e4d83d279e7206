//! Rejected: an element without a closing tag.

use bine::{Page, html};

fn unclosed() -> impl Page {
    html! {
        <ul>
            <li>one
        </ul>
    }
}

fn unclosed_at_the_end() -> impl Page {
    html!(<p>one)
}

fn main() {}
