//! Lists of all kinds, nested.

use bine::{Html, Page, Parts, html};

pub(super) fn page() -> impl Page {
    html! {
        <ol start={3} reversed><li value="7">seven</li>{item("six")}</ol>
        <ul><li>one<ul>{[item("two"), item("three")].into_iter().collect::<Vec<_>>()}</ul></li></ul>
        <dl>{for (term, meaning) in [("bine", "a stem"), ("vine", "another")] { <dt>{term}</dt><dd>{meaning}</dd> }}</dl>
        <menu><li><button type="button">Copy</button></li></menu>
    }
}

fn item(text: &str) -> impl Html<Parts> {
    html!(<li>{text}</li>)
}
