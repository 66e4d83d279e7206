//! `cargo xtask histories`: runs seeded histories of concurrent clients on real servers while faults
//! happen, and verifies each against the guarantees of Bine.
//!
//! The program is `examples/histories.rs`. With the engine `cluster`, three nodes of the program
//! share a stream of three NATS servers, which store each change on all of them; with `one`, one
//! node keeps its data in a folder. Where the kernel allows, the command runs in separate
//! namespaces for networks, mounts and processes, and each server has a network namespace inside.
//! The kernel ends all these processes when the command ends, also after a panic or Ctrl-C. The
//! system outside of the namespaces does not change.
//!
//! A round runs some histories at a time. Each has its own keys and its own channel. The module
//! [`check`] has the rules.

mod check;
mod client;
mod faults;
mod history;
mod http;
mod machines;
mod nats;
mod options;
mod pause;
mod planted;
mod random;
mod round;
mod servers;
mod subscriber;
mod world;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context as _, Result, bail, ensure};

use self::faults::{Counts, Fault};
use self::history::{History, Outcome};
use self::options::Options;
use self::round::{Finished, Plan};
use self::world::{Engine, Site, World};
use crate::{paths, process, tools};

/// The program, in a target folder.
const PROGRAM: &str = "debug/examples/histories";
/// The file with the last violation, in the target folder.
const VIOLATIONS: &str = "histories/violation";
/// Rounds until the cluster is replaced by an empty one.
const ROUNDS_OF_A_CLUSTER: u64 = 8;
/// Histories within which each planted bug must be found.
const PLANTED_HISTORIES: u64 = 200;
/// Where Debian installs the library that gives a process its own time.
const FAKETIME: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
];

/// The results of a run.
#[derive(Default)]
struct Summary {
    histories: u64,
    failed: u64,
    /// Histories that break a rule; further failed histories have no end.
    broken: u64,
    acknowledged: usize,
    refused: usize,
    unknown: usize,
    messages: usize,
    counts: Counts,
}

/// Runs the command.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let options = Options::parse(words)?;
    if options.is_inside {
        return verify(&options);
    }
    if env::var_os("NATS_SERVER").is_none() && options.engine == Engine::Cluster {
        tools::install_nats_server()?;
    }
    if options.is_planted {
        return find_planted(&options);
    }
    if options.program.is_none() {
        process::run(&mut cargo_build(paths::root()))?;
    }
    process::run(&mut enclosed(&options.words))
}

/// Runs the histories of one round with a program that is built already.
pub(crate) fn run_round(program: &Path) -> Result<()> {
    let program = program.display().to_string();
    let words = ["--program", &program, "--histories", "20", "--at-a-time", "20"];
    process::run(&mut enclosed(&words.map(str::to_owned)))
}

/// Creates the kinds of network devices that the machines need.
const LINKS: &str =
    "ip link add name bridge type bridge && ip link add name one type veth peer name two";

/// Builds the program in a checkout, with the checks of a build for development.
fn cargo_build(folder: &Path) -> Command {
    let mut cargo = process::cargo();
    cargo.args(["build", "--package", "bine-examples", "--example", "histories"]);
    cargo.args(["--features", "cluster"]).current_dir(folder);
    cargo
}

/// This command, in separate namespaces if the kernel allows.
fn enclosed(words: &[String]) -> Command {
    let own = env::current_exe().unwrap_or_else(|_| "xtask".into());
    let namespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let needed = ["nsenter", "setpriv", "mount", "umount"];
    let has_programs = process::is_available("ip", &["-V"])
        && needed.iter().all(|program| process::is_available(program, &["--version"]));
    let users: [&[&str]; 2] = [&[], &["--user", "--map-root-user"]];
    let possible = users.into_iter().find(|user| {
        let test = [*user, &namespaces, &["sh", "-c", LINKS]].concat();
        has_programs && process::is_available("unshare", &test)
    });
    let mut command;
    if let Some(user) = possible {
        // The kernel kills `unshare` when this process ends, and all other processes when `unshare`
        // ends.
        command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare"]).args(user).args(namespaces).arg(own);
        command.args(["histories", "--inside", "namespaces"]);
    } else {
        println!(
            "this machine allows no namespaces, or lacks ip, unshare, nsenter or setpriv: partitions, slow links and full disks are left out"
        );
        command = Command::new(own);
        command.args(["histories", "--inside", "plain"]);
    }
    command.args(words);
    command
}

/// Verifies that the checker finds each planted bug.
fn find_planted(options: &Options) -> Result<()> {
    let copy = planted::SourceCopy::create()?;
    let mut missed = Vec::new();
    for bug in planted::BUGS {
        println!("--- planted bug: {}", bug.name);
        let program = copy.build(&bug)?;
        let mut words = options.words.clone();
        let count = PLANTED_HISTORIES.to_string();
        for word in ["--program", &program.display().to_string(), "--histories", &count] {
            words.push(word.to_owned());
        }
        words.push("--until-failure".to_owned());
        let violations = paths::target().join(VIOLATIONS);
        if violations.exists() {
            fs::remove_file(&violations)?;
        }
        enclosed(&words).stdin(Stdio::null()).status()?;
        // Any other failure, such as that of a server to start, finds no bug.
        match fs::read_to_string(&violations) {
            Ok(first) => println!("--- found: {}: {first}", bug.name),
            Err(_) => missed.push(bug.name),
        }
    }
    ensure!(missed.is_empty(), "the checker misses: {}", missed.join(", "));
    println!("the checker finds all {} planted bugs", planted::BUGS.len());
    Ok(())
}

/// Runs the histories.
fn verify(options: &Options) -> Result<()> {
    if options.has_namespaces {
        machines::prepare()?;
    }
    let work = paths::target().join("histories");
    let site = Site {
        engine: options.engine,
        program: options.program.clone().unwrap_or_else(|| paths::target().join(PROGRAM)),
        nats_server: env::var_os("NATS_SERVER").map_or_else(tools::nats_server, PathBuf::from),
        faketime: faketime(),
        folder: work.join(format!("run-{}", options.seed)),
        has_namespaces: options.has_namespaces,
    };
    let start = Instant::now();
    let mut summary = Summary::default();
    let mut world: Option<World> = None;
    let mut round = 0;
    while summary.histories < options.histories && !is_over(options, &summary, start) {
        if round % ROUNDS_OF_A_CLUSTER == 0 {
            drop(world.take());
        }
        let current = match &mut world {
            Some(world) => world,
            None => {
                let new = World::start(&site)?;
                if round == 0 {
                    announce(options, &new);
                }
                world.insert(new)
            }
        };
        let faults = options.faults.iter().copied();
        let plan = Plan {
            seed: options.seed + summary.histories,
            count: options.at_a_time.min(options.histories - summary.histories),
            engine: options.engine,
            faults: faults.filter(|fault| fault.obstacle(current).is_none()).collect(),
            start,
        };
        match plan.run(current) {
            Ok(finished) => summary.add(&finished, &plan, &work)?,
            Err(error) => {
                let folder = work.join(format!("failed-{}", plan.seed));
                keep_logs(&site.folder, &folder)?;
                println!(
                    "a round of {} histories fails: {error:#}\n    to repeat it: {}; logs: {}",
                    plan.count,
                    plan.command(),
                    folder.display()
                );
                summary.histories += plan.count;
                summary.failed += plan.count;
                // The next round gets new servers.
                world = None;
            }
        }
        round += 1;
        let seconds = start.elapsed().as_secs();
        let Summary { histories, failed, acknowledged, .. } = &summary;
        println!(
            "{histories} histories, {failed} failed, {acknowledged} operations acknowledged, {seconds} s"
        );
    }
    drop(world);
    let _ = fs::remove_dir_all(&site.folder);
    summary.print(start.elapsed());
    if summary.failed > 0 {
        let Summary { histories, failed, broken, .. } = summary;
        bail!("{failed} of {histories} histories fail: {broken} break a rule");
    }
    Ok(())
}

/// Whether the run ends before all histories.
fn is_over(options: &Options, summary: &Summary, start: Instant) -> bool {
    let limit = options.minutes.map(|minutes| Duration::from_secs(60 * minutes));
    limit.is_some_and(|limit| start.elapsed() > limit)
        || (options.ends_at_failure && summary.broken > 0)
}

/// Prints the faults that the command omits.
fn announce(options: &Options, world: &World) {
    for fault in &options.faults {
        if let Some(why) = fault.obstacle(world) {
            println!("left out: {fault:?} ({why})");
        }
    }
    let is_slow = options.faults.contains(&Fault::SlowLink);
    if is_slow && Fault::SlowLink.obstacle(world).is_none() && !world.has_netem {
        println!("the kernel has no netem: slow links lose all packets for 120 of each 200 ms");
    }
}

/// The library that gives a process its own time, if it is installed.
pub(crate) fn faketime() -> Option<PathBuf> {
    let chosen = env::var_os("LIBFAKETIME").map(PathBuf::from);
    chosen.or_else(|| FAKETIME.map(PathBuf::from).into_iter().find(|path| path.exists()))
}

/// Copies the logs of the servers.
fn keep_logs(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "log") {
            fs::copy(&path, to.join(path.file_name().context("a log without a name")?))?;
        }
    }
    Ok(())
}

impl Summary {
    /// Checks the histories of a round.
    fn add(&mut self, finished: &Finished, plan: &Plan, work: &Path) -> Result<()> {
        for (fault, count) in &finished.counts {
            *self.counts.entry(fault).or_default() += count;
        }
        for history in &finished.histories {
            self.histories += 1;
            for operation in &history.operations {
                match operation.outcome {
                    Outcome::Acknowledged => self.acknowledged += 1,
                    Outcome::Refused => self.refused += 1,
                    Outcome::Unknown => self.unknown += 1,
                }
            }
            self.messages += history.logs.iter().map(|log| log.messages.len()).sum::<usize>();
            let broken = check::check(history);
            if !broken.is_empty() {
                self.failed += 1;
                self.broken += 1;
                report(history, &broken, finished, plan, work)?;
            }
        }
        Ok(())
    }

    fn print(&self, took: Duration) {
        let Self { histories, failed, acknowledged, refused, unknown, messages, counts, .. } = self;
        let all = acknowledged + refused + unknown;
        println!("histories {histories}, failed {failed}, in {:.0} s", took.as_secs_f64());
        println!(
            "operations {all}: acknowledged {acknowledged}, refused {refused}, unknown {unknown}; messages received {messages}"
        );
        let counts: Vec<String> =
            counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
        println!("faults: {}", counts.join(", "));
    }
}

/// Prints a history that breaks a rule, and keeps it in files.
fn report(
    history: &History,
    broken: &[String],
    finished: &Finished,
    plan: &Plan,
    work: &Path,
) -> Result<()> {
    let folder = work.join(format!("failed-{}", history.seed));
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("history.jsonl"), history.write())?;
    fs::write(folder.join("faults.txt"), finished.timeline.join("\n") + "\n")?;
    fs::write(folder.join("broken.txt"), broken.join("\n") + "\n")?;
    fs::write(paths::target().join(VIOLATIONS), &broken[0])?;
    println!(
        "history {} fails: {}{}\n    to repeat its round: {}; files: {}",
        history.seed,
        broken[0],
        if broken.len() > 1 { format!(" (and {} more)", broken.len() - 1) } else { String::new() },
        plan.command(),
        folder.display(),
    );
    Ok(())
}
