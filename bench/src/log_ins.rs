//! Measures log-ins without the hash of the password, among few accounts and among a million.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Cursor, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use bine_store::Archive;
use bine_store::disk::RealFolder;
use serde_json::{Map, Value};

use crate::arguments::Arguments;
use crate::figures::{Latencies, Spread};
use crate::machine;
use crate::peer::{Peer, address};
use crate::random::Random;
use crate::servers::{Running, free_port};
use crate::tools::{Workspace, move_to_core_1, take_priority};

const TABLE: &str = "bine_account";
/// The few accounts of the comparison.
const FEW: u64 = 1000;
const PASSWORD: &str = "correct horse battery";
/// The goal for the 99th percentile, in microseconds.
const GOAL: f64 = 1000.0;
/// The bytes that a floor appends: about those of the group that stores a session.
const APPENDED: usize = 256;
/// How the store syncs the journal: the default, and not at all.
const SYNCS: [&str; 2] = ["commit", "none"];

/// A server with accounts.
pub(crate) struct Crowd {
    pub(crate) running: Running,
    /// The data folder.
    pub(crate) folder: String,
    users: u64,
    /// Seconds until the first response.
    start: f64,
    anonymous: u64,
    samples: Vec<Latencies>,
}

/// Measures both numbers of accounts, and appends to a file of the same disk, by turns.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let users = arguments.number("--users", 1_000_000)?;
    let count = arguments.number("--log-ins", 1000)?;
    let rounds = arguments.number("--rounds", 9)?;
    let syncs = arguments.names("--syncs").unwrap_or_else(|| SYNCS.to_vec());
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    workspace.build_bine(&["-p", "bine-bench", "--example", "log-ins"].map(OsStr::new))?;
    for users in [FEW, users] {
        fill(&workspace, users)?;
    }
    move_to_core_1()?;
    println!("{facts}\n");
    println!(
        "| sync | accounts | p50, us | p90 | p99 | p99 / p99 of {FEW} | ready after, s | anonymous MB | bytes for each |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut worst: f64 = 0.0;
    for sync in syncs {
        worst = worst.max(measure(&workspace, sync, [FEW, users], rounds, count)?);
    }
    println!(
        "\nMedians (least-most) of {rounds} samples of {count} log-ins each, one at a time, on one kept connection, by \
         turns. A floor appends {APPENDED} bytes to a file on the same disk; with `commit`, fdatasync follows."
    );
    ensure!(worst <= GOAL, "the p99 is {worst:.0} us, above {GOAL}");
    Ok(())
}

/// Prints the rows of one way to sync. Returns the p99 of the larger number of accounts.
fn measure(
    workspace: &Workspace,
    sync: &str,
    users: [u64; 2],
    rounds: u64,
    count: u64,
) -> Result<f64> {
    let mut crowds =
        [Crowd::start(workspace, users[0], sync)?, Crowd::start(workspace, users[1], sync)?];
    let mut floor = Vec::new();
    let mut random = Random(5);
    // The first sample is a warm-up.
    for round in 0..=rounds {
        for crowd in &mut crowds {
            let sample = crowd.log_ins(count, &mut random)?;
            if round > 0 {
                crowd.samples.push(sample);
            }
        }
        floor.push(appends(&workspace.work, sync, count)?);
    }
    let few = spread(&crowds[0].samples, 99)?.median;
    let per_user = (crowds[1].anonymous.saturating_sub(crowds[0].anonymous) << 10) as f64
        / (users[1] - users[0]).max(1) as f64;
    for crowd in &crowds {
        let each = if crowd.users == FEW { String::new() } else { format!("{per_user:.0}") };
        let of = |percent| spread(&crowd.samples, percent);
        println!(
            "| {sync} | {} | {} | {} | {} | {:.2} | {:.2} | {:.1} | {each} |",
            crowd.users,
            of(50)?,
            of(90)?,
            of(99)?,
            of(99)?.median / few,
            crowd.start,
            crowd.anonymous as f64 / 1024.0,
        );
    }
    let of = |percent| spread(&floor[1..], percent);
    println!("| {sync} | floor | {} | {} | {} | | | | |", of(50)?, of(90)?, of(99)?);
    let worst = spread(&crowds[1].samples, 99)?.median;
    for crowd in crowds {
        crowd.running.stop()?;
    }
    Ok(worst)
}

impl Crowd {
    /// Starts it with the data that [`fill`] has created.
    pub(crate) fn start(workspace: &Workspace, users: u64, sync: &str) -> Result<Self> {
        let running = start(workspace, users, sync)?;
        let start = running.ready_after.as_secs_f64();
        let anonymous = running.memory()?.anonymous;
        let folder = folder(workspace, users);
        Ok(Self { running, folder, users, start, anonymous, samples: Vec::new() })
    }

    /// Logs random users in, each without a cookie.
    fn log_ins(&self, count: u64, random: &mut Random) -> Result<Latencies> {
        // A separate thread, because later servers must not inherit its priority.
        let log_ins = || {
            // Without it, waits for the processor are part of the figures.
            let _ = take_priority();
            self.log_in_each(count, random)
        };
        let ended = thread::scope(|scope| scope.spawn(log_ins).join());
        ended.map_err(|_| anyhow!("the client panicked"))?
    }

    fn log_in_each(&self, count: u64, random: &mut Random) -> Result<Latencies> {
        let mut peer = Peer::connect(self.running.port)?;
        let mut times = Vec::new();
        for _ in 0..count {
            let begin = Instant::now();
            self.log_in(&mut peer, random)?;
            times.push(begin.elapsed());
        }
        Ok(Latencies::of(times, Duration::MAX))
    }

    /// Logs a random user in, without a cookie.
    pub(crate) fn log_in(&self, peer: &mut Peer, random: &mut Random) -> Result<()> {
        let name = name(random.below(self.users));
        let body = format!(r#"{{"name":"{name}","password":"{PASSWORD}"}}"#);
        peer.post("/accounts/log-in", &body).map(drop)
    }
}

/// Appends to a file on the disk of the stores.
fn appends(work: &Path, sync: &str, count: u64) -> Result<Latencies> {
    let path = work.join("floor");
    let mut file = File::create(&path)?;
    let bytes = [b'x'; APPENDED];
    let mut times = Vec::new();
    for _ in 0..count {
        let begin = Instant::now();
        file.write_all(&bytes)?;
        if sync == SYNCS[0] {
            file.sync_data()?;
        }
        times.push(begin.elapsed());
    }
    Ok(Latencies::of(times, Duration::MAX))
}

/// A percentile of each sample in microseconds.
fn spread(samples: &[Latencies], percent: usize) -> Result<Spread> {
    Spread::of(samples.iter().map(|sample| sample.percentile(percent).as_secs_f64() * 1e6))
        .context("no samples")
}

fn name(number: u64) -> String {
    format!("user-{number:08}")
}

/// Starts the server with the tables of this number of accounts.
fn start(workspace: &Workspace, users: u64, sync: &str) -> Result<Running> {
    let port = free_port()?;
    let (listen, data) = (address(port).to_string(), folder(workspace, users));
    let program = workspace.bine("examples").join("log-ins").display().to_string();
    let words = ["env", "BENCH_HASHES=cheap", &program, "--listen", &listen, "--loops", "1"];
    let options = ["--access-log", "off", "--data", &data, "--sync", sync];
    let command: Vec<String> = words.into_iter().chain(options).map(str::to_owned).collect();
    let log = workspace.work.join(format!("log-ins-{users}.log"));
    Running::start(&command, port, "/", &log)
}

fn folder(workspace: &Workspace, users: u64) -> String {
    workspace.work.join(format!("accounts-{users}")).display().to_string()
}

/// Creates the tables: one account by a sign-up, then copies of that row with different names.
pub(crate) fn fill(workspace: &Workspace, users: u64) -> Result<()> {
    let running = start(workspace, users, SYNCS[1])?;
    let account = format!(r#"{{"name":"{}","password":"{PASSWORD}"}}"#, name(0));
    Peer::connect(running.port)?.post("/accounts/sign-up", &account).context("no sign-up")?;
    running.stop()?;
    let real = RealFolder::open(Path::new(&folder(workspace, users)).join("journal"))?;
    let mut archive =
        Archive::open(Arc::new(real), None, &mut |_, _| {}).map_err(|error| anyhow!(error))?;
    let mut dump = Vec::new();
    archive.dump(&[TABLE.to_owned()], &mut dump).map_err(|error| anyhow!("{error}"))?;
    let dump = String::from_utf8(dump)?;
    let lines: Vec<&str> = dump.lines().collect();
    let [head, columns, row, end] = lines[..] else { anyhow::bail!("no row in {dump}") };
    let row: Map<String, Value> = serde_json::from_str(row)?;
    let copies = (1..users).map(|number| copy(&row, number)).collect::<Vec<String>>();
    let text = [head, columns, &copies.join("\n"), end].join("\n");
    drop(copies);
    let loaded = archive.load(&mut Cursor::new(text));
    let loaded = loaded.map_err(|error| anyhow!("{error}"))?;
    ensure!(loaded.rows as u64 == users - 1, "{} rows were loaded", loaded.rows);
    Ok(archive.close()?)
}

/// The line of a copy of the account.
fn copy(row: &Map<String, Value>, number: u64) -> String {
    let mut line = row.clone();
    let (low, name) = (number & 0xffff_ffff_ffff, name(number));
    line.insert("id".to_owned(), format!("0193f9a0-4c5e-7b3a-9c1d-{low:012x}").into());
    if let Some(Value::Object(values)) = line.get_mut("row") {
        values.insert("name".to_owned(), name.clone().into());
        values.insert("key".to_owned(), name.into());
    }
    Value::Object(line).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_differ_in_id_and_names_only() {
        let row = r#"{"table":"bine_account","id":"0","row":{"name":"a","key":"a","hash":"h"}}"#;
        let line = copy(&serde_json::from_str(row).unwrap(), 7);
        let found: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(found["id"], "0193f9a0-4c5e-7b3a-9c1d-000000000007");
        assert_eq!(found["row"]["key"], "user-00000007");
        assert_eq!(found["row"]["hash"], "h");
    }
}
