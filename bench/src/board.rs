//! Measures `TechEmpower`'s cases as pages of tables: Bine, axum with `SQLite` and with `PostgreSQL`, and
//! `PocketBase` where it has the case; and the deliveries of an update to many subscribers.

mod check;
mod client;
mod fan;
mod generator;
mod plan;
mod pocketbase;
mod record;
mod report;
mod site;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::data_folder::{self, DataFolder};
use crate::machine::{self, Machine};
use crate::origin::Version;
use crate::results::Results;
use crate::tools::{Workspace, move_to_core_1, pause, require};
use generator::Requests;
use plan::{BoardBatch, BoardCase, BoardPoint, BoardSelection, BoardServer, WARM_UP};
use record::{BoardRecord, BoardSample};
use site::BoardSite;

pub(crate) const OPTIONS: [&str; 8] = [
    "--only",
    "--cases",
    "--rounds",
    "--seconds",
    "--connections",
    "--deliveries",
    "--data",
    "--into",
];

/// The time in which the kernel removes the processes of a killed contender.
const CRASHED: Duration = Duration::from_millis(500);

/// Measures the points that the folder lacks, and writes the tables of all points.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    for (tool, package) in
        [("wrk", "wrk"), ("curl", "curl"), ("taskset", "util-linux"), ("setpriv", "util-linux")]
    {
        require(tool, package)?;
    }
    let workspace = Workspace::open()?;
    let parent = arguments.word("--data").unwrap_or(data_folder::PARENT);
    let data = DataFolder::create(&std::path::absolute(parent)?)
        .context("choose another folder by --data")?;
    let mut selection = selection(arguments, &workspace, &data)?;
    selection.servers =
        prepared(&selection.servers, arguments.word("--only").is_some(), &workspace)?;
    let folder = arguments
        .word("--into")
        .map_or_else(|| workspace.target.join("bench/board-results"), PathBuf::from);
    let mut results = Results::<BoardRecord>::open(&folder)?;
    let versions = selection.servers.iter().filter_map(|server| server.version(&workspace));
    let versions = versions.collect::<Vec<_>>().join("; ");
    fs::write(folder.join("machine.txt"), machine::facts_with(&versions))?;

    let batches = missing(&selection, &results);
    let count: usize = batches.iter().map(|batch| batch.points.len()).sum();
    let mut left: u64 = batches.iter().map(|batch| selection.seconds_of(batch)).sum();
    eprintln!(
        "{count} samples to measure; about {} minutes; results are in {}",
        left.div_ceil(60),
        folder.display()
    );
    move_to_core_1()?;
    let trial = Trial { workspace: &workspace, data: &data, selection: &selection };
    for server in &selection.servers {
        if batches.iter().any(|batch| batch.server == *server) {
            eprintln!("checking {}", server.title());
            trial.verify(*server)?;
        }
    }
    let mut failed = 0;
    for batch in &batches {
        eprintln!("{left} s left: {}", batch.server.title());
        left = left.saturating_sub(selection.seconds_of(batch));
        if let Err(error) = trial.measure(batch, &mut results) {
            failed += 1;
            eprintln!("not all samples were taken: {error:#}");
        }
    }
    let of_this_run = results.rows.into_iter().filter(|row| row.point.origin == selection.origin);
    let records: Vec<BoardRecord> = of_this_run.collect();
    println!("{}", report::write(&records, &selection, &folder)?);
    ensure!(
        failed == 0,
        "{failed} batches have samples that failed; run the same command to retry"
    );
    Ok(())
}

fn selection(
    arguments: &Arguments,
    workspace: &Workspace,
    data: &DataFolder,
) -> Result<BoardSelection> {
    let servers = arguments.choices("--only", BoardServer::ALL.to_vec())?;
    let cases = arguments.choices("--cases", BoardCase::ALL.to_vec())?;
    let seconds = arguments.number("--seconds", 5)?;
    let connections = arguments.number("--connections", 64)?;
    let deliveries = arguments.number("--deliveries", 100_000)?;
    let origin = format!(
        "{}; {}; {seconds} s; {connections} connections; {deliveries} deliveries; tables on {}",
        Version::of(&workspace.root),
        Machine::this(),
        data.file_system(),
    );
    let rounds = arguments.number("--rounds", 3)?;
    let origin = origin.replace(',', ";");
    Ok(BoardSelection { servers, cases, rounds, seconds, connections, deliveries, origin })
}

/// The servers that are ready. Without `--only`, skips a peer that cannot be built.
fn prepared(
    servers: &[BoardServer],
    is_chosen: bool,
    workspace: &Workspace,
) -> Result<Vec<BoardServer>> {
    let mut ready = Vec::new();
    for &server in servers {
        match server.prepare(workspace) {
            Ok(()) => ready.push(server),
            Err(error) if !is_chosen && server != BoardServer::Bine => {
                eprintln!("{} is left out: {error:#}", server.title());
            }
            Err(error) => return Err(error.context(server.title())),
        }
    }
    Ok(ready)
}

/// The points of the selection that have no result.
fn missing(selection: &BoardSelection, results: &Results<BoardRecord>) -> Vec<BoardBatch> {
    let mut batches = selection.batches();
    for batch in &mut batches {
        batch.points.retain(|point| !results.has(point));
    }
    batches.retain(|batch| !batch.points.is_empty());
    batches
}

/// The folders and options that all measurements of a run share.
struct Trial<'run> {
    workspace: &'run Workspace,
    data: &'run DataFolder,
    selection: &'run BoardSelection,
}

impl Trial<'_> {
    /// Checks all responses, and that an update survives a crash of the contender.
    fn verify(&self, server: BoardServer) -> Result<()> {
        let site = server.start(self.workspace, self.data)?;
        check::check_all(server, site.port)?;
        site.kill()?;
        pause(CRASHED);
        let site = server.start(self.workspace, self.data).context("after a crash")?;
        check::check_kept(server, site.port)?;
        site.stop()
    }

    /// Takes the samples of one contender in order, and stores each.
    fn measure(&self, batch: &BoardBatch, results: &mut Results<BoardRecord>) -> Result<()> {
        let site = batch.server.start(self.workspace, self.data)?;
        let mut failed = 0;
        for point in &batch.points {
            match self.sample(point, &site) {
                Ok(sample) => {
                    eprintln!("  {}: {sample:.1?}", point.case.name());
                    results.add(BoardRecord { point: point.clone(), sample })?;
                }
                Err(error) => {
                    failed += 1;
                    eprintln!("  {} failed: {error:#}", point.case.name());
                }
            }
        }
        site.stop()?;
        ensure!(failed == 0, "{failed} samples of {} failed", batch.server.title());
        Ok(())
    }

    fn sample(&self, point: &BoardPoint, site: &BoardSite) -> Result<BoardSample> {
        if let BoardCase::Fan(count) = point.case {
            return fan::measure(point.server, site, count, self.selection.deliveries);
        }
        let requests = Requests::of(point.server, point.case);
        let (connections, work) = (self.selection.connections, &self.workspace.work);
        requests.send(site.port, connections, WARM_UP, work)?;
        let (begun, before) = (Instant::now(), site.cpu()?);
        let report = requests.send(site.port, connections, self.selection.seconds, work)?;
        let (cpu, seconds) = (site.cpu()? - before, begun.elapsed().as_secs_f64());
        Ok(BoardSample {
            rate: report.rate,
            cpu: 1e6 * cpu / report.requests,
            p50: report.p50,
            p99: report.p99,
            busy: 100.0 * cpu / seconds,
        })
    }
}
