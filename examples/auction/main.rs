//! An auction site: users sell, bid, buy at once and comment, in 27 kinds of pages. It implements
//! the benchmark `RUBiS` on Bine's tables, for measurements, and is an example of a larger program.
//!
//! Run `cargo run --release --example auction`, then open <http://127.0.0.1:8080/> and log in as
//! `user1` with `password1`. The program generates its data at the start, in memory unless `--data
//! DIR` names a folder. The same seed gives the same data except for ids and times:
//!
//! | environment | meaning | default |
//! |---|---|---|
//! | `AUCTION_SCALE` | the amount of data; 1 is a million users, 32 667 items and half a million old ones | `0.01` |
//! | `AUCTION_SEED` | the seed of users and items | `1` |
//! | `AUCTION_DELAY_MS` | the delay of a page that reads tables, like a remote database | `0` |
//! | `AUCTION_HASHES` | the kilobytes that such a page hashes, like the work of a database | `0` |

use bine::prelude::*;

mod access;
mod auction;
mod pages;
mod seed;
mod settings;
mod tables;

use auction::House;
use settings::Settings;
use tables::{Bid, Category, Comment, Item, OldItem, Purchase, Region, User};

fn main() -> Exit {
    match Settings::from_environment() {
        Ok(settings) => app(settings).run(),
        Err(reason) => Exit::usage(reason),
    }
}

fn app(settings: Settings) -> App {
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
