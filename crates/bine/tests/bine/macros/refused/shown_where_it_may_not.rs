//! Rejected: types whose content is not allowed in their place.

use bine::{Flow, Html, Page, Show, html};

struct Message(String);

impl Show for Message {
    fn show(&self) -> impl Html<Flow> {
        html!(<article>{&self.0}</article>)
    }
}

struct Row;

fn in_a_paragraph(message: &Message) -> impl Page {
    html!(<p>{message}</p>)
}

fn in_a_list(message: &Message) -> impl Page {
    html!(<ul>{message}</ul>)
}

fn in_a_title(message: &Message) -> impl Page {
    html!(<textarea name="a">{message}</textarea>)
}

fn nobody_says_how(row: Row) -> impl Page {
    html!(<section>{row}</section>)
}

fn main() {}
