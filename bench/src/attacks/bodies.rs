//! Unfinished request bodies: 256 connections from four addresses, 16 MiB each.

use std::fs;
use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Assessment;
use super::network::{attackers, client, posting};
use super::scenes::{SMALL, Stage, address, attack, create_channel, get, kept, newcomer};
use super::trial::{Windows, run};
use crate::crowd::{Crowd, Habit};

const CONNECTIONS: usize = 256;
/// The share of memory for request bodies (`budget-bodies`).
const SHARE: f64 = 0.125;
const BODY: usize = 16 << 20;
/// Bytes per second of all bodies: 4 GiB in twenty seconds. The attack is on memory, not on the
/// processor.
const PACE: u64 = 200 << 20;
const OPTIONS: [&str; 6] =
    ["--data", "memory", "--channels-publish", "*", "--channels-manage", "*"];

/// With the server's default limit: an eighth of memory.
pub(super) fn usual(stage: &Stage) -> Result<Assessment> {
    measure(stage, &[], stage.bound(memory()? * SHARE))
}

/// With `--most-memory 1g`, which the server must not exceed.
pub(super) fn of_one_gigabyte(stage: &Stage) -> Result<Assessment> {
    measure(stage, &["--most-memory", "1g"], stage.bound(1024.0))
}

/// The machine's memory in MiB.
fn memory() -> Result<f64> {
    let facts = fs::read_to_string("/proc/meminfo")?;
    let line = facts.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let word = line.and_then(|line| line.split_whitespace().next()).context("no MemTotal")?;
    Ok(word.parse::<f64>()? / 1024.0)
}

fn measure(stage: &Stage, options: &[&str], bound: f64) -> Result<Assessment> {
    let server = stage.serve(&[&OPTIONS, options].concat())?;
    let to = address(&server);
    create_channel(client(3), to, "news")?;
    // A small request with a body: a server short of memory refuses new clients first.
    let small = posting("/channels", r#"{"channels":"news","data":"It climbs."}"#);
    let clients = vec![kept(client(1), to, get(&SMALL.path())), newcomer(client(2), to, small)];
    let opening = format!(
        "POST /channels HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {BODY}\r\n\r\n"
    );
    let crowd = Crowd {
        from: attackers().take(4).map(IpAddr::V4).collect(),
        to,
        connections: CONNECTIONS,
        rate: 500,
        pace: PACE,
        opening: opening.into_bytes(),
        filler: BODY - (64 << 10),
        habit: Habit::Drip(Duration::from_secs(1)),
    };
    let windows = Windows { attacked: stage.windows.attacked * 2, ..stage.windows };
    let trial = run(&server, windows, clients, attack(crowd))?;
    Ok(Assessment::of(trial, bound, server))
}
