//! Measures the memory of a million cards of the kanban example, with the index of their table.
//!
//! Run `cargo run --example kanban-memory`. A row has the same size in debug and release builds.

use std::fs;

use bine::store::{Error, Id, Options, Store};

#[allow(dead_code, reason = "the example itself uses the rest")]
mod tables;

use tables::{Board, Card, Lane};

const CARDS: u32 = 1_000_000;
const LANES: u32 = 2_000;

/// The resident memory of this process in bytes, from Linux.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").expect("Linux has /proc");
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("the second number is the resident memory") * 4096
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::in_memory(Options::new().table::<Board>().table::<Lane>().table::<Card>())?;
    let lanes = store.change(|change| {
        let (title, owner, invitation) = ("Brewery".into(), "ann".into(), "x".into());
        let board = Board { id: Id::unassigned(), title, owner, is_public: false, invitation };
        let board = change.insert(board)?;
        let lane = |position| Lane { id: Id::unassigned(), board, title: "To do".into(), position };
        (0..LANES).map(|position| change.insert(lane(position))).collect::<Result<Vec<_>, Error>>()
    });
    let lanes = lanes.wait()?;
    let before = resident();
    for (count, lane) in (0_u32..).zip(lanes) {
        let cards = store.change(|change| {
            for position in 0..CARDS / LANES {
                let number = count * (CARDS / LANES) + position;
                change.insert(Card {
                    id: Id::unassigned(),
                    lane,
                    position,
                    title: format!("Order hops and malt, part {number:07}").into(),
                    text: "Ten kilos of hops for the winter brew. Ask for the price of 2027."
                        .into(),
                    labels: "bug, urgent".into(),
                    assignee: Some("ann".into()),
                    due: Some("2026-12-04T12:00:00Z".parse().expect("this is a time")),
                    author: "ben".into(),
                })?;
            }
            Ok::<_, Error>(())
        });
        cards.wait()?;
    }
    let grown = resident() - before;
    let stored = store.read().count::<Card>();
    println!("{stored} cards: {} MB, {} bytes each", grown / 1_000_000, grown / stored as u64);
    Ok(())
}
