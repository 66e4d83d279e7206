//! A shelf whose buttons ask for the price of an item.

use bine::prelude::*;

browser_file!(mod shelf = "shelf.browser.ts");

#[derive(serde::Serialize)]
struct Item {
    id: u32,
    name: &'static str,
}

const ITEMS: [Item; 2] = [Item { id: 1, name: "Twine" }, Item { id: 2, name: "Seeds" }];

#[page("/shelf")]
async fn shelf_page() -> impl Page {
    html! {
        <h1>Shelf</h1>
        {for item in &ITEMS {
            <button type="button" data-on={shelf::ask.on("click")} data-with={shelf::ask.data(item)}>
                {item.name}
            </button>
        }}
    }
}

#[service]
async fn price(item: u32) -> Result<u32, Error> {
    match item {
        1 => Ok(250),
        2 => Ok(90),
        _ => Err(Error::not_found("there is no such item")),
    }
}

pub(crate) fn app() -> App {
    App::new().page(shelf_page).service(price)
}
