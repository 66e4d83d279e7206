//! An auction house: users sell, bid, buy at once and comment on each other, in 27 kinds of pages. It is the auction site of
//! the benchmark `RUBiS` on Bine's tables, for whoever measures servers, and an example of a program of some size.
//!
//! `cargo run --release --example auction`, then <http://127.0.0.1:8080/>; `user1` with `password1` is somebody. All is
//! made up at the start, in memory unless `--data DIR` says where, and the same for the same seed but for ids and times:
//!
//! | environment | what it says | if not said |
//! |---|---|---|
//! | `AUCTION_SCALE` | how much there is; 1 is a million users, 32 667 items and half a million old ones | `0.01` |
//! | `AUCTION_SEED` | which users and items | `1` |
//! | `AUCTION_DELAY_MS` | for how long a page that asks the tables waits, as for a database elsewhere | `0` |
//! | `AUCTION_HASHES` | how many kilobytes such a page hashes meanwhile, which is what a database computes | `0` |

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
        .forgetful()
        .table::<Region>()
        .table::<User>()
        .table::<Category>()
        .table::<Item>()
        .table::<OldItem>()
        .table::<Bid>()
        .table::<Purchase>()
        .table::<Comment>()
        .at_open(move |store| seed::fill(store, scale, seed))
        .state(House::new(settings))
        .asset("/logo.svg", "image/svg+xml", include_bytes!("images/logo.svg"))
        .asset("/bid.svg", "image/svg+xml", include_bytes!("images/bid.svg"))
        .layout(pages::layout);
    pages::all(app)
}
