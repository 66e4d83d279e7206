//! Rejected: a whole page inside a page.

use bine::{Page, html};

fn card() -> impl Page {
    html!(<div>one</div>)
}

fn in_a_section() -> impl Page {
    html!(<section>{card()}</section>)
}

fn by_an_argument(content: impl Page) -> impl Page {
    html!(<p>{content}</p>)
}

fn perhaps(content: Option<Box<dyn Page>>) -> impl Page {
    html!(<ul>{content}</ul>)
}

fn anywhere(content: impl Page) -> impl Page {
    html!(<template>{content}</template>)
}

fn a_document() -> impl Page {
    html!(<main>{html!(<!DOCTYPE html><html lang="en"></html>)}</main>)
}

fn main() {}
