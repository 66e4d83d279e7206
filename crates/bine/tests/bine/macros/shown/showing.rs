//! Types with a display of their own, and frozen pages.

use bine::{Flow, Html, Page, Phrasing, Show, html};

struct Name(&'static str);

struct Message {
    author: Name,
    body: &'static str,
}

impl Show<Phrasing> for Name {
    fn show(&self) -> impl Html<Phrasing> {
        html!(<b>{self.0}</b>)
    }
}

impl Show for Message {
    fn show(&self) -> impl Html<Flow> {
        html!(<article><h3>{&self.author}</h3><p>{self.body}</p></article>)
    }
}

pub(super) fn page() -> impl Page {
    let messages = [
        Message { author: Name("Ann & co"), body: "1 < 2" },
        Message { author: Name("Ben"), body: "" },
    ];
    let frozen = html!(<hr>).freeze();
    html! {
        <h2>{&messages[1].author}</h2>
        {for message in &messages { {message} {&frozen} }}
        {None::<Message>}
    }
}
