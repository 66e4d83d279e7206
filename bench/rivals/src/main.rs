//! Runs one workload on one store in its own process, and prints the resources that it used.
//!
//! `bine-bench rivals` runs it in turns and prints the tables.

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
            // The lowest floor: no thread passes rows to a second one.
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
            ensure!(found == all, "{all} rows were acknowledged, {found} were found");
            println!("{}", counted.line);
        }
        Work::Read => {
            readers::fill(&*open(name, folder, Durability::None)?)?;
            // Reopened, as after the start of a program.
            let rival = open(name, folder, Durability::None)?;
            println!("{}", readers::run(&*rival, seconds)?);
        }
    }
    Ok(())
}

/// A store, or a store with one thread that writes for all.
fn open(name: &str, folder: &Path, durability: Durability) -> Result<Box<dyn Rival>> {
    match name.strip_suffix("-grouped") {
        Some(name) => Ok(Box::new(Grouped::new(work::open(name, folder, durability)?))),
        None => work::open(name, folder, durability),
    }
}
