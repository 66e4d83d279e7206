//! Rejected: arguments that no request provides, and results that are no responses.

use bine::{App, Page, Query, html, page};

struct Row;

#[page("/argument")]
async fn argument(row: Row) -> impl Page {
    html!()
}

#[page("/value")]
async fn value(row: Query<Row>) -> impl Page {
    html!()
}

#[page("/bare")]
async fn bare(name: String) -> impl Page {
    html!(<p>{name}</p>)
}

#[page("/nothing")]
async fn nothing() {}

#[page("/text")]
fn text() -> String {
    String::new()
}

async fn no_page() -> impl Page {
    html!()
}

fn main() {
    let _ = App::new().page(argument).page(no_page);
}
