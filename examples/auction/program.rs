//! The program: its tables, data, pages and images.

use bine::prelude::*;

use crate::auction::House;
use crate::settings::Settings;
use crate::tables::{Bid, Category, Comment, Item, OldItem, Purchase, Region, User};
use crate::{pages, seed};

pub(crate) fn app(settings: Settings) -> App {
    let (scale, seed) = (settings.scale, settings.seed);
    let app = App::new()
        .in_memory()
        .table::<Region>()
        .table::<User>()
        .table::<Category>()
        .table::<Item>()
        .table::<OldItem>()
        .table::<Bid>()
        .table::<Purchase>()
        .table::<Comment>()
        .on_store_open(move |store| seed::fill(store, scale, seed))
        .state(House::new(settings))
        .asset("/logo.svg", "image/svg+xml", include_bytes!("images/logo.svg"))
        .asset("/bid.svg", "image/svg+xml", include_bytes!("images/bid.svg"))
        .layout(pages::layout);
    pages::all(app)
}
