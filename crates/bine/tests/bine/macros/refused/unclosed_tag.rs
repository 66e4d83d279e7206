//! Misuse: an element that is never closed.

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
