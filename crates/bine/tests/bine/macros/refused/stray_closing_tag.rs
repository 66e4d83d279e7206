//! Rejected: a closing tag without an opening tag.

use bine::{Page, html};

fn stray() -> impl Page {
    html!(<p>one</p></p>)
}

fn misspelled() -> impl Page {
    html!(<div>one</dvi>)
}

fn main() {}
