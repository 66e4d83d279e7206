//! Measures figures 12 and 13 of Liu and Cui, "PushUp": `HAProxy` balances one, two and four nodes.
//! The nodes share a stream, or send each message to each other.

mod balancer;
mod plan;
mod record;
mod report;
mod setup;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::machine;
use crate::nats;
use crate::origin::Version;
use crate::results::{Results, description};
use crate::tools::{Workspace, move_to_core_1, output, require};
use plan::{Distribution, NODES, NodesPoint, NodesSelection, PEERS};
use record::NodesRecord;
use setup::Setup;

pub(crate) const OPTIONS: [&str; 7] =
    ["--nodes", "--peers", "--distributions", "--messages", "--rounds", nats::OPTION, "--into"];

/// The longest wait of a poll, in seconds: shorter than the timeouts of the balancer.
const WAIT: u64 = 50;
/// The most peers: one node has a descriptor for each, and `followers` too.
const MOST_PEERS: u64 = 17_000;
/// The descriptors of one node besides those of peers.
const OTHER_DESCRIPTORS: u64 = 2000;
/// More nodes would need more than a minute to start.
const MOST_NODES: u64 = 16;

/// Measures the points that the folder lacks, and writes tables and figures of all points.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let selection = selection(arguments)?;
    let nats = nats::program(arguments)?;
    require("haproxy", "haproxy")?;
    let workspace = Workspace::open()?;
    check_descriptors(&selection)?;
    let words = ["-p", "bine-bench", "--example", "push-node"];
    workspace.build_bine(&words.map(OsStr::new))?;
    let followers = workspace.compile("followers", &[])?;
    let folder = arguments
        .word("--into")
        .map_or_else(|| workspace.target.join("bench/push-nodes"), PathBuf::from);
    let machine = description(&folder, &Version::of(&workspace.root), || {
        let balancer = machine::first_line("haproxy", &["-v"]);
        let nats = machine::first_line(&nats, &["--version"]);
        machine::facts_with(&format!("{balancer}; {nats}"))
    })?;
    let mut results = Results::<NodesRecord>::open(&folder)?;

    let points = selection.points();
    let mut missing: Vec<&NodesPoint> = points.iter().collect();
    missing.retain(|point| !results.has(point));
    let mut left: f64 = missing.iter().map(|point| point.seconds()).sum();
    eprintln!(
        "{} points, {} of them already measured; about {:.0} minutes; results are in {}",
        points.len(),
        points.len() - missing.len(),
        (left / 60.0).ceil(),
        folder.display()
    );
    move_to_core_1()?;
    let mut failed = 0;
    for point in missing {
        eprintln!("{left:.0} s left: {point}");
        match measure(&workspace, &nats, &followers, point) {
            Ok(record) => results.add(record)?,
            Err(error) => {
                failed += 1;
                eprintln!("{point} was not measured: {error:#}");
            }
        }
        left -= point.seconds();
    }

    let mut records = results.rows;
    records.retain(|record| points.contains(&record.point));
    println!("{}", report::write(&records, &machine, &folder)?);
    ensure!(failed == 0, "{failed} points were not measured; run the same command to retry");
    let faults = records.iter().filter(|record| !record.is_whole()).count();
    ensure!(faults == 0, "{faults} points had missed or repeated messages");
    Ok(())
}

fn selection(arguments: &Arguments) -> Result<NodesSelection> {
    let distributions = arguments.choices("--distributions", Distribution::ALL.to_vec())?;
    let mut selection = NodesSelection {
        nodes: arguments.numbers("--nodes", &NODES)?,
        peers: arguments.numbers("--peers", &PEERS)?,
        distributions,
        messages: arguments.number("--messages", 5)?,
        rounds: arguments.number("--rounds", 2)?,
    };
    for (name, numbers, most) in [
        ("--nodes", &mut selection.nodes, MOST_NODES),
        ("--peers", &mut selection.peers, MOST_PEERS),
    ] {
        numbers.sort_unstable();
        numbers.dedup();
        let last = numbers.last().copied().unwrap_or_default();
        ensure!(last <= most, "{name} {last}: at most {most}");
    }
    Ok(selection)
}

/// Fails if one node cannot have the selected number of connections.
fn check_descriptors(selection: &NodesSelection) -> Result<()> {
    let limits = fs::read_to_string("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let limit: u64 = line
        .and_then(|line| line.split_whitespace().next()?.parse().ok())
        .context("no limit of open files")?;
    let most = selection.peers.last().copied().unwrap_or_default();
    let needed = most + OTHER_DESCRIPTORS;
    ensure!(
        limit >= needed,
        "{most} peers need {needed} descriptors in a process, and the limit is {limit}: raise it (ulimit -n), or choose fewer --peers"
    );
    Ok(())
}

fn measure(
    workspace: &Workspace,
    nats: &str,
    followers: &Path,
    point: &NodesPoint,
) -> Result<NodesRecord> {
    let mut setup = Setup::start(workspace, nats, point)?;
    let mut command = Command::new(followers);
    command.args(["poll", &setup.port.to_string(), &point.peers.to_string()]);
    command.args([point.messages.to_string(), (point.interval * 1000).to_string()]);
    command.args([setup.groups(), format!("wait={WAIT}"), "probe=0".to_owned()]);
    if point.distribution == Distribution::Unicast {
        command.arg("plain=1");
    }
    let words = output(&mut command)?;
    setup.check()?;
    NodesRecord::of(point.clone(), &words)
}
