//! Rejected: text that needs quotes.

use bine::{Page, html};

fn apostrophe() -> impl Page {
    html!(<p>Please, (we) don't and can't.</p>)
}

fn sharp() -> impl Page {
    html!(<p>C# and more</p>)
}

fn string_after_a_word(name: &str) -> impl Page {
    html!(<p>Hello", "{name}</p>)
}

fn word_after_a_string(name: &str) -> impl Page {
    html!(<p>{name}", "friend</p>)
}

fn main() {}
