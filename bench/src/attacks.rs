//! Attacks by a few clients: the latency of normal clients with and without them.

mod bodies;
mod channels;
mod handshakes;
mod live;
mod network;
mod places;
mod scenes;
mod trial;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::figures::milliseconds;
use crate::machine;
use crate::namespace;
use crate::plot::{Axis, Line, Plot};
use crate::servers::Running;
use crate::tools::{Workspace, move_to_core_1, require};

use scenes::{SMALL, Stage};
use trial::{EXCESS, FLOOR, Record, TOLERANCE, Trial, Windows};

pub(crate) use network::INSIDE;

pub(crate) const OPTIONS: [&str; 6] =
    ["--only", "--calm", "--seconds", "--bound", "--programs", "--into"];

/// An attack and its measurement.
struct Kind {
    name: &'static str,
    description: &'static str,
    measure: fn(&Stage) -> Result<Assessment>,
}

static KINDS: [Kind; 11] = [
    Kind {
        name: "bodies",
        description: "256 unfinished bodies of 16 MiB from four addresses",
        measure: bodies::usual,
    },
    Kind {
        name: "bodies-1g",
        description: "256 unfinished bodies of 16 MiB with `--most-memory 1g`",
        measure: bodies::of_one_gigabyte,
    },
    Kind {
        name: "channels",
        description: "two batches of 16 MiB to 64 channels each",
        measure: channels::of_many_names,
    },
    Kind {
        name: "channel-bodies",
        description: "100 channels created with 16 MiB each",
        measure: channels::of_first_bodies,
    },
    Kind {
        name: "places",
        description: "2 000 idle connections of one IPv6 /64, of 2 000 places",
        measure: places::of_one_block,
    },
    Kind {
        name: "slow-heads",
        description: "2 000 slow heads from eight addresses, of 2 000 places",
        measure: places::of_slow_heads,
    },
    Kind {
        name: "slow-readers",
        description: "2 000 clients that do not read from eight addresses, of 2 000 places",
        measure: places::of_slow_readers,
    },
    Kind {
        name: "handshakes",
        description: "650 stalled TLS handshakes a second from five addresses",
        measure: handshakes::of_five_addresses,
    },
    Kind {
        name: "live-256",
        description: "a live page of 10 ms polled in a loop by 256 connections",
        measure: live::of_256,
    },
    Kind {
        name: "live-1500",
        description: "a live page of 10 ms polled in a loop by 1 500 connections",
        measure: live::of_1500,
    },
    Kind {
        name: "live-leavers",
        description: "400 polls of a live page of 10 ms, closed at once",
        measure: live::of_leavers,
    },
];

/// The measurements of an attack, and the harm that it did.
struct Assessment {
    trial: Trial,
    /// The limit of the server's resident memory, in MiB.
    bound: f64,
    /// Figures of this attack only.
    notes: Vec<String>,
    faults: Vec<String>,
}

impl Assessment {
    /// Checks the criteria that all attacks share, and stops the server, which must stop in time.
    fn of(trial: Trial, bound: f64, server: Running) -> Self {
        let mut faults = trial.faults();
        let [_, most] = trial.memory();
        if most > bound * EXCESS {
            faults.push(format!("{most:.0} MiB of memory, bound {bound:.0} MiB"));
        }
        if let Err(error) = server.stop() {
            faults.push(format!("{error:#}"));
        }
        Self { trial, bound, notes: Vec::new(), faults }
    }
}

/// Builds the programs, then runs this program again in a network namespace.
pub(crate) fn run(arguments: &Arguments, words: &[String]) -> Result<()> {
    chosen(arguments)?;
    if arguments.word("--programs").is_none() {
        let workspace = Workspace::open()?;
        workspace.build_bine(&["-p", "bine-cli"].map(AsRef::as_ref))?;
        workspace.build_bine(&["--example", "wall"].map(AsRef::as_ref))?;
    }
    namespace::enter(INSIDE, words)
}

/// Measures the attacks in sequence. With `is_judge`, an attack that did harm is an error.
pub(crate) fn run_inside(arguments: &Arguments, is_judge: bool) -> Result<()> {
    network::prepare()?;
    for (tool, package) in
        [("taskset", "util-linux"), ("setpriv", "util-linux"), ("chrt", "util-linux")]
    {
        require(tool, package)?;
    }
    let kinds = chosen(arguments)?;
    let into = arguments.word("--into").map(PathBuf::from);
    let stage = Stage {
        workspace: Workspace::open()?,
        windows: Windows {
            calm: Duration::from_secs(arguments.number("--calm", 5)?),
            attacked: Duration::from_secs(arguments.number("--seconds", 10)?),
        },
        bound: arguments.word("--bound").map(str::parse).transpose().context("--bound")?,
        programs: arguments.word("--programs").map(std::path::absolute).transpose()?,
    };
    stage.workspace.make_file(SMALL.len())?;
    move_to_core_1()?;
    println!("{}\n", machine::facts());
    println!(
        "| attack | client | p50, ms: calm, attacked | p99, ms: calm, attacked | served, refused, failed | memory, MiB: \
         before, most, bound | the attack |\n|---|---|---|---|---|---|---|"
    );
    let mut all = Vec::new();
    for kind in kinds {
        eprintln!("{}: {}", kind.name, kind.description);
        let assessment = (kind.measure)(&stage).with_context(|| kind.name)?;
        for record in &assessment.trial.records {
            println!("{}", row(kind, &assessment, record));
        }
        all.push((kind, assessment));
    }
    println!(
        "\nA calm window of {} s, then an attacked one of {} s. A failure: a normal client's p99 above {TOLERANCE} x calm \
         and above {} ms, an unserved request of a normal client, memory above its bound by more than {:.0} %.\n",
        stage.windows.calm.as_secs(),
        stage.windows.attacked.as_secs(),
        FLOOR.as_millis(),
        (EXCESS - 1.0) * 100.0,
    );
    for (kind, assessment) in &all {
        let verdict = if assessment.faults.is_empty() {
            String::from("ok")
        } else {
            assessment.faults.join("; ")
        };
        println!("- {}: {verdict}", kind.name);
    }
    if let Some(folder) = into {
        write(&folder, &all).with_context(|| folder.display().to_string())?;
    }
    let harmful: Vec<_> =
        all.iter().filter(|(_, assessment)| !assessment.faults.is_empty()).collect();
    let names: Vec<_> = harmful.iter().map(|(kind, _)| kind.name).collect();
    ensure!(!is_judge || names.is_empty(), "normal clients were harmed by: {}", names.join(", "));
    Ok(())
}

fn chosen(arguments: &Arguments) -> Result<Vec<&'static Kind>> {
    let Some(names) = arguments.names("--only") else { return Ok(KINDS.iter().collect()) };
    let named = |name| KINDS.iter().find(|kind| kind.name == name);
    let known = || KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
    names
        .into_iter()
        .map(|name| {
            named(name).with_context(|| format!("unknown attack `{name}`; use one of {}", known()))
        })
        .collect()
}

fn row(kind: &Kind, assessment: &Assessment, record: &Record) -> String {
    let trial = &assessment.trial;
    let (calm, attacked) = (trial.calm(record), trial.attacked(record));
    let pair = |percent| {
        format!(
            "{}, {}",
            milliseconds(calm.percentile(percent)),
            milliseconds(attacked.percentile(percent))
        )
    };
    let [before, most] = trial.memory();
    let notes: Vec<&str> = std::iter::once(trial.done.as_str())
        .chain(assessment.notes.iter().map(String::as_str))
        .collect();
    format!(
        "| {} | {} | {} | {} | {}, {}, {} | {before:.0}, {most:.0}, {:.0} | {} |",
        kind.name,
        record.name,
        pair(50),
        pair(99),
        attacked.served,
        attacked.refused,
        attacked.failed,
        assessment.bound,
        notes.join("; ")
    )
}

/// Writes `attacks.tsv` and, for each attack, plots of the p99 per second and of the server's
/// memory.
fn write(folder: &Path, all: &[(&Kind, Assessment)]) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut table = String::from(
        "attack\tclient\tcalm_p50_ms\tattacked_p50_ms\tcalm_p99_ms\tattacked_p99_ms\tserved\trefused\tfailed\t\
         memory_before_mib\tmemory_most_mib\tmemory_bound_mib\tfaults\n",
    );
    for (kind, assessment) in all {
        let trial = &assessment.trial;
        let [before, most] = trial.memory();
        for record in &trial.records {
            let (calm, attacked) = (trial.calm(record), trial.attacked(record));
            let times = [50, 99].map(|percent| {
                [&calm, &attacked].map(|window| milliseconds(window.percentile(percent))).join("\t")
            });
            writeln!(
                table,
                "{}\t{}\t{}\t{}\t{}\t{}\t{before:.0}\t{most:.0}\t{:.0}\t{}",
                kind.name,
                record.name,
                times.join("\t"),
                attacked.served,
                attacked.refused,
                attacked.failed,
                assessment.bound,
                assessment.faults.join("; ")
            )?;
        }
        fs::write(folder.join(format!("{}.svg", kind.name)), latencies(kind, trial).svg())?;
        fs::write(
            folder.join(format!("{}-memory.svg", kind.name)),
            memory(kind, assessment).svg(),
        )?;
    }
    Ok(fs::write(folder.join("attacks.tsv"), table)?)
}

fn latencies<'a>(kind: &'a Kind, trial: &Trial) -> Plot<'a> {
    let seconds = (trial.windows.calm + trial.windows.attacked).as_secs();
    let mut lines = Vec::new();
    for (number, record) in trial.records.iter().enumerate() {
        for (offset, percent) in [(0, 50), (2, 99)] {
            let at = |second| {
                let window =
                    record.between(Duration::from_secs(second), Duration::from_secs(second + 1));
                (second as f64 + 0.5, window.percentile(percent).as_secs_f64() * 1e3)
            };
            let name = format!("{}, p{percent}", record.name);
            lines.push(Line {
                name,
                kind: number + offset,
                values: (0..seconds).map(at).collect(),
                brackets: Vec::new(),
            });
        }
    }
    let times = lines.iter().flat_map(|line| line.values.iter().map(|(_, time)| *time));
    let left = Axis::logarithmic("time of a request, ms", times);
    Plot { title: kind.description, x_axis: time_axis(seconds), y_axis: left, lines }
}

fn memory<'a>(kind: &'a Kind, assessment: &Assessment) -> Plot<'a> {
    let trial = &assessment.trial;
    let seconds = (trial.windows.calm + trial.windows.attacked).as_secs();
    let values = trial
        .usage
        .iter()
        .map(|usage| (usage.at.as_secs_f64(), usage.resident as f64 / 1024.0))
        .filter(|(at, _)| *at <= seconds as f64)
        .collect();
    let bound = vec![(0.0, assessment.bound), (seconds as f64, assessment.bound)];
    let lines = vec![
        Line { name: "resident".into(), kind: 0, values, brackets: Vec::new() },
        Line { name: "bound".into(), kind: 4, values: bound, brackets: Vec::new() },
    ];
    let most = trial.memory()[1].max(assessment.bound);
    let left = Axis::linear("memory of the server, MiB", most);
    Plot { title: kind.description, x_axis: time_axis(seconds), y_axis: left, lines }
}

/// The time axis, from the beginning of the calm window.
fn time_axis(seconds: u64) -> Axis {
    let mut labels: Vec<f64> = (0..=seconds).step_by(5).map(|second| second as f64).collect();
    if labels.last().is_some_and(|last| *last < seconds as f64) {
        labels.push(seconds as f64);
    }
    Axis::at("time, s", &labels, false)
}
