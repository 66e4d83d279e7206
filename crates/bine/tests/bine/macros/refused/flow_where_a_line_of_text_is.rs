//! Rejected: a component with flow content where only phrasing content is allowed.

use bine::{Flow, Html, Page, html};

fn card() -> impl Html<Flow> {
    html!(<div>one</div>)
}

fn in_a_paragraph() -> impl Page {
    html!(<p>{card()}</p>)
}

fn by_an_argument(content: impl Html<Flow>) -> impl Page {
    html!(<h1><a href="/">{content}</a></h1>)
}

fn on_the_spot() -> impl Page {
    html!(<b>{html!(<p>one</p>)}</b>)
}

fn beside_text() -> impl Page {
    html!("One: "{card()})
}

fn in_a_box(one: Box<dyn Html<Flow>>, several: Vec<Option<u8>>) -> impl Page {
    html!(<p>{one} {several}</p>)
}

fn main() {}
