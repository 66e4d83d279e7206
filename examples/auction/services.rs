//! Services that supply pages in TSX with rows, and with the classes of the style sheet.

use bine::FromText as _;
use bine::prelude::*;
use serde::{Deserialize, Serialize};

use crate::auction::found;
use crate::pages;
use crate::tables::{Item, Key, User};

/// Adds the pages in TSX in this folder, and the services that they call.
pub(crate) fn with_scripts(app: App, site: &str) -> App {
    app.scripts(site).service(offer).service(classes)
}

/// An item and its seller.
#[derive(Serialize, Deserialize)]
struct Offer {
    item: Item,
    seller: Seller,
}

/// The public facts about a seller.
#[derive(Serialize, Deserialize)]
struct Seller {
    id: Id<User>,
    name: Text,
    rating: i64,
}

#[service(safe)]
async fn offer(caller: Caller, item: Text) -> Result<Offer, Error> {
    // As the argument of the page in Rust: an invalid address is no item.
    let key = Key::<Item>::from_text(&item);
    let key = key.map_err(|reason| Error::not_found(format!("`item` {}", &*reason)))?;
    let now = caller.store().read();
    let item = found(now.get(key.0), "item")?;
    let User { id, name, rating, .. } = found(now.get(item.seller), "seller")?;
    Ok(Offer { item, seller: Seller { id, name, rating } })
}

/// Classes of the style sheet of the program, whose names a macro generates.
#[derive(Serialize, Deserialize)]
struct Classes {
    actions: String,
    price: String,
}

#[service(safe)]
async fn classes() -> Classes {
    let [actions, price] = pages::CLASSES.map(|class| class.to_string());
    Classes { actions, price }
}
