//! CPU time of a call between services in Rust and in TSX.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::cost::Sample;
use crate::figures::Spread;
use crate::machine;
use crate::peer::address;
use crate::servers::free_port;
use crate::tools::{Workspace, output, require};

/// The options of the command.
pub(crate) const OPTIONS: [&str; 3] = ["--rounds", "--seconds", "--calls"];

/// The goal for a call, in microseconds.
const GOAL: f64 = 10.0;

/// A service that calls a service in a different language.
struct Calling {
    name: &'static str,
    path: &'static str,
}

const SERVICES: [Calling; 4] = [
    Calling { name: "TSX calls Rust, in a transaction", path: "/calls/sumByRust" },
    Calling { name: "TSX calls Rust, outside", path: "/calls/sumByRustOutside" },
    Calling { name: "Rust calls TSX, in a transaction", path: "/sum-by-script" },
    Calling { name: "Rust calls TSX, outside", path: "/sum-by-script-outside" },
];

/// Samples each service without calls and with many, by turns, and prints the difference for each call.
/// Fails above the goal.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let (rounds, seconds) = (arguments.number("--rounds", 5)?, arguments.number("--seconds", 3)?);
    let calls = arguments.number("--calls", 50)?;
    ensure!(calls > 0, "--calls is at least 1");
    require("taskset", "util-linux")?;
    require("wrk", "wrk")?;
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    workspace.build_bine(&["-p", "bine-bench", "--example", "service-calls"].map(OsStr::new))?;
    let folder = workspace.work.join("site/calls");
    fs::create_dir_all(&folder)?;
    fs::copy(workspace.root.join("bench/programs/calls/index.tsx"), folder.join("index.tsx"))?;
    let mut samples = vec![Vec::new(); SERVICES.len()];
    for round in 1..=rounds {
        for (service, samples) in SERVICES.iter().zip(&mut samples) {
            let none = service.measure(&workspace, seconds, 0)?;
            let many = service.measure(&workspace, seconds, calls)?;
            let each = (many.total - none.total) / calls as f64;
            eprintln!("round {round}/{rounds} {}: {each:.2} us", service.name);
            samples.push((none.total, each));
        }
    }
    println!("{facts}\n\n| services | a request without a call, us | a call, us |\n|---|---|---|");
    let mut worst: f64 = 0.0;
    for (service, samples) in SERVICES.iter().zip(&samples) {
        let requests = Spread::of(samples.iter().map(|sample| sample.0)).context("no round")?;
        let each = Spread::of(samples.iter().map(|sample| sample.1)).context("no round")?;
        println!("| {} | {requests} | {each} |", service.name);
        worst = worst.max(each.median);
    }
    println!(
        "\nMedians (least-most) of {rounds} rounds of {seconds} s: CPU time of the server for a request that makes \
         {calls} calls, less that of one without a call, divided by {calls}."
    );
    ensure!(worst <= GOAL, "a call takes {worst:.1} us, above {GOAL}");
    Ok(())
}

impl Calling {
    fn measure(&self, workspace: &Workspace, seconds: u64, calls: u64) -> Result<Sample> {
        let port = free_port()?;
        let mut command = Command::new(workspace.root.join("bench/cost.sh"));
        command.env("CALLS", workspace.work.join("site"));
        command.args([self.name, &format!("http://127.0.0.1:{port}{}", self.path), "64"]);
        command.args([&seconds.to_string(), "-d", &format!("{{\"count\":{calls}}}"), "--"]);
        command.arg(workspace.bine("examples/service-calls"));
        command.args(["--listen", &address(port).to_string(), "--loops", "1"]);
        command.args(["--access-log", "off", "--data"]).arg(workspace.work.join("calls-data"));
        let line = output(&mut command)?;
        Sample::parse(&line).with_context(|| format!("cost.sh printed `{}`", line.trim()))
    }
}
