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
//! | `AUCTION_SECRET` | the secret that signs the tokens of forms; several nodes need the same | random |

use bine::prelude::*;

mod access;
mod auction;
mod database;
mod pages;
mod program;
mod seed;
mod settings;
mod tables;

fn main() -> Exit {
    match settings::Settings::from_environment() {
        Ok(settings) => program::app(settings).run(),
        Err(reason) => Exit::usage(reason),
    }
}
