//! The auction with its home page and its page of an item in TSX as well, at `/tsx/` and
//! `/tsx/items/ID`. They send the same bytes as `/` and `/items/ID`, which are in Rust.
//!
//! The files in `site/tsx` take the rows from services in Rust ([`services`]). Run `cargo run --release
//! --example auction-tsx --features script`; the settings are those of the example `auction`.

use bine::prelude::*;

mod access;
mod auction;
mod database;
mod pages;
mod program;
mod seed;
mod services;
mod settings;
mod tables;

/// The folder of the pages in TSX.
const SITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/auction/site");

fn main() -> Exit {
    match settings::Settings::from_environment() {
        Ok(settings) => services::with_scripts(program::app(settings), SITE).run(),
        Err(reason) => Exit::usage(reason),
    }
}
