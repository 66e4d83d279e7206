//! Rejected: components for a specific parent element in a different one.

use bine::{Html, Page, Parts, html};

fn item() -> impl Html<Parts> {
    html!(<li>one</li>)
}

fn in_a_section() -> impl Page {
    html!(<section>{item()}</section>)
}

fn in_a_paragraph() -> impl Page {
    html!(<p>{item()}</p>)
}

fn in_a_title() -> impl Page {
    html!(<textarea name="a">{item()}</textarea>)
}

fn main() {}
