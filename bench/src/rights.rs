//! Measures checks of rights against 10 000 rules, for clients with and without groups.

use std::ffi::OsStr;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::figures::Spread;
use crate::machine;
use crate::peer::{Peer, address};
use crate::servers::{Running, free_port};
use crate::tools::{Workspace, move_to_core_1};

/// The users of the program; the client without a login first.
const USERS: [&str; 4] = ["anonymous", "none", "three", "twenty"];
/// The kinds of paths: each but the last has a rule.
const KINDS: [&str; 6] = ["literal", "segment", "rest", "index", "channel", "other"];
/// The goal in nanoseconds.
const GOAL: f64 = 1000.0;

/// Prints nanoseconds per check by kind of path and by client.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let rounds = arguments.number("--rounds", 5)?;
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    workspace.build_bine(&["-p", "bine-bench", "--example", "rights"].map(OsStr::new))?;
    move_to_core_1()?;
    let running = start(&workspace)?;
    println!("{facts}\n");
    println!("| path | client | ns per check: p50 of the batches | p99 |\n|---|---|---|---|");
    let mut worst: f64 = 0.0;
    let mut clients = Vec::new();
    for user in USERS {
        clients.push(Client::enter(running.port, user)?);
    }
    for kind in KINDS {
        let mut samples = clients.iter().map(|_| [Vec::new(), Vec::new()]).collect::<Vec<_>>();
        for _ in 0..rounds {
            for (client, samples) in clients.iter_mut().zip(&mut samples) {
                for (samples, time) in samples.iter_mut().zip(client.checks(kind)?) {
                    samples.push(time);
                }
            }
        }
        for (client, samples) in clients.iter().zip(samples) {
            let [middle, high] = samples.map(Spread::of);
            let (middle, high) = middle.zip(high).context("no samples")?;
            worst = worst.max(middle.median);
            println!("| {kind} | {} | {middle} | {high} |", client.user);
        }
    }
    running.stop()?;
    println!(
        "\n10 000 rules, 2 000 of each kind; medians (least-most) of {rounds} requests by turns, each with 50 000 \
         batches of 20 checks. A request of a user that a rule for everyone does not allow takes two checks: one without the \
         user, one with."
    );
    ensure!(worst <= GOAL, "a check takes {worst:.0} ns, above {GOAL}");
    Ok(())
}

/// A client of one user.
struct Client {
    user: &'static str,
    peer: Peer,
    /// The field with its session; empty without a login.
    cookie: String,
}

impl Client {
    fn enter(port: u16, user: &'static str) -> Result<Self> {
        let mut peer = Peer::connect(port)?;
        let mut cookie = String::new();
        if user != USERS[0] {
            peer.post(&format!("/enter/{user}"), "{}")?;
            let field = peer.field("set-cookie").context("no cookie")?;
            let pair = field.split(';').next().unwrap_or_default();
            cookie = format!("Cookie: {pair}\r\n");
        }
        Ok(Self { user, peer, cookie })
    }

    /// Nanoseconds per check: the median and the 99th percentile of the batches.
    fn checks(&mut self, kind: &str) -> Result<[f64; 2]> {
        let answer = self.peer.get_with(&format!("/checks/{kind}"), &self.cookie)?;
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").context("no head")?;
        Ok(serde_json::from_slice(&answer[end + 4..])?)
    }
}

fn start(workspace: &Workspace) -> Result<Running> {
    let port = free_port()?;
    let listen = address(port).to_string();
    let program = workspace.bine("examples").join("rights").display().to_string();
    let options = ["--listen", &listen, "--loops", "1", "--access-log", "off", "--data", "memory"];
    let command: Vec<String> = [&*program].into_iter().chain(options).map(str::to_owned).collect();
    Running::start(&command, port, "/checks/other", &workspace.work.join("rights.log"))
}
