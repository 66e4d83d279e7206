//! The program of these tests: a page whose buttons call functions of a file of the browser.

use bine::prelude::*;
use bine::test::Site;
use serde::Serialize;

browser_file!(pub(crate) mod cart = "cart.browser.ts");

/// What a button passes to its function.
#[derive(Serialize)]
struct Item {
    id: u32,
    name: String,
}

#[page("/items")]
async fn items(name: Query<Text>) -> impl Page {
    let item = Item { id: 7, name: name.to_string() };
    html! {
        <button type="button" data-on={cart::add.on("click")} data-with={cart::add.data(&item)}>Add</button>
        <p data-on={format_args!("{}; keydown.Escape: hide this", cart::remove.on("dragstart"))}>Remove</p>
        <p data-on={cart::r#loop.on("click")} data-with={cart::r#loop.data(&"a".repeat(70_000))}>Large</p>
    }
}

#[service]
async fn put(item: u32, count: Option<u16>) -> Result<u32, Error> {
    Ok(item + u32::from(count.unwrap_or(1)))
}

#[service]
async fn delete() -> Result<(), Error> {
    Ok(())
}

pub(crate) fn app() -> App {
    App::new().page(items).service(put).service(delete)
}

pub(crate) fn site() -> Site {
    Site::new(app())
}
