//! Decides which store does which work once, in a process of its own, and prints what it has used.
//!
//! `bine-bench rivals` runs it by turns and makes the tables.

#![forbid(unsafe_code)]

mod bine;
mod fjall;
mod floor;
mod group;
mod readers;
mod redb;
mod sqlite;
mod usage;
mod work;
mod writers;

use std::path::Path;

use anyhow::{Result, bail, ensure};

use group::Grouped;
use work::{Durability, Rival, Work};
use writers::{Load, WRITERS};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, work, folder, seconds] = &words[..] else {
        bail!("usage: bine-bench-rivals STORE WORK FOLDER SECONDS");
    };
    let (folder, seconds) = (Path::new(folder), seconds.parse()?);
    std::fs::create_dir_all(folder)?;
    match Work::named(work)? {
        Work::Write(durability, rows) => {
            // The floor's own floor: nothing is handed from thread to thread.
            let (name, threads, rows) = match name.strip_suffix("-alone") {
                Some(name) => (name, 1, rows * WRITERS),
                None => (&name[..], WRITERS, rows),
            };
            let rival = open(name, folder, durability)?;
            let load = Load { durability, threads, rows };
            let counted = writers::run(&*rival, folder, load, seconds)?;
            drop(rival);
            let found = open(name, folder, durability)?.count()?;
            let all = counted.all;
            ensure!(found == all, "{all} rows were acknowledged, {found} are found again");
            println!("{}", counted.line);
        }
        Work::Read => {
            readers::fill(&*open(name, folder, Durability::None)?)?;
            // As a program finds it that has just started.
            let rival = open(name, folder, Durability::None)?;
            println!("{}", readers::run(&*rival, seconds)?);
        }
    }
    Ok(())
}

/// A store as it is, or behind one thread that writes for all.
fn open(name: &str, folder: &Path, durability: Durability) -> Result<Box<dyn Rival>> {
    match name.strip_suffix("-grouped") {
        Some(name) => Ok(Box::new(Grouped::new(work::open(name, folder, durability)?))),
        None => work::open(name, folder, durability),
    }
}
