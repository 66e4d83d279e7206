//! The auction of the examples on `PostgreSQL`: the same pages, data and tables, but each query blocks
//! its worker until the database has answered, as in the paper of Carrera et al.
//!
//! `bine-bench-auction-postgres fill` creates the tables and their rows, and ends. Otherwise the
//! program serves the pages, with the options of every program of Bine. The settings are those of the
//! example, and these:
//!
//! | environment | meaning | default |
//! |---|---|---|
//! | `AUCTION_POSTGRES` | the database, such as `host=/run/postgresql user=bench dbname=auction` | none |
//! | `AUCTION_CONNECTIONS` | the most connections to it | `50` |

use std::env;

use bine::prelude::*;

#[path = "../../../../examples/auction/access.rs"]
mod access;
#[path = "../../../../examples/auction/auction.rs"]
mod auction;
mod connections;
mod database;
#[path = "../../../../examples/auction/pages/mod.rs"]
mod pages;
mod rows;
#[path = "../../../../examples/auction/seed.rs"]
mod seed;
#[path = "../../../../examples/auction/settings.rs"]
mod settings;
mod sql;
#[path = "../../../../examples/auction/tables.rs"]
mod tables;

use auction::House;
use connections::Connections;
use database::Store;
use settings::Settings;
use tables::{Bid, Category, Comment, Item, OldItem, Purchase, Region, User};

/// The command that only fills the database.
const FILL: &str = "fill";

fn main() -> Exit {
    match start() {
        Ok((store, settings)) if env::args().nth(1).as_deref() == Some(FILL) => {
            let filled = database::create_tables(&store)
                .and_then(|()| seed::fill(&store, settings.scale, settings.seed))
                .and_then(|()| store.analyze());
            let failed =
                |error| Exit::failure(format_args!("the tables were not filled: {error:?}"));
            filled.map_or_else(failed, |()| Exit::success())
        }
        Ok((store, settings)) => {
            let app = with_tables(App::new().in_memory())
                .state(store)
                .state(House::new(settings))
                .asset("/logo.svg", "image/svg+xml", LOGO)
                .asset("/bid.svg", "image/svg+xml", BID)
                .layout(pages::layout);
            pages::all(app).run()
        }
        Err(reason) => Exit::usage(reason),
    }
}

const LOGO: &[u8] = include_bytes!("../../../../examples/auction/images/logo.svg");
const BID: &[u8] = include_bytes!("../../../../examples/auction/images/bid.svg");

/// Declares the tables, because Bine checks that those which pages read exist. They stay empty: the
/// rows are in `PostgreSQL`.
fn with_tables(app: App) -> App {
    app.table::<Region>()
        .table::<User>()
        .table::<Category>()
        .table::<Item>()
        .table::<OldItem>()
        .table::<Bid>()
        .table::<Purchase>()
        .table::<Comment>()
}

/// # Errors
///
/// The invalid variable of the environment and its accepted values.
fn start() -> Result<(Store, Settings), String> {
    let settings = Settings::from_environment()?;
    let place = env::var("AUCTION_POSTGRES")
        .map_err(|_| "AUCTION_POSTGRES must name a database, such as `host=/run/postgresql`")?;
    let most = env::var("AUCTION_CONNECTIONS").map_or(Ok(50), |text| text.parse());
    let most = most.map_err(|_| "AUCTION_CONNECTIONS must be a whole number from 1 on")?;
    Ok((Store::new(Connections::new(&place, most)?), settings))
}
