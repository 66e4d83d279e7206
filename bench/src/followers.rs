//! Measures subscribers of channels: the memory of waiting polls, and the delivery of messages to
//! many at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::figures::Spread;
use crate::machine;
use crate::samples::{Figures as _, Run, Samples, figures};
use crate::servers::{Running, filled, free_port};
use crate::tools::{Workspace, move_to_core_1, output, require};

/// The options of [`fanout`].
pub(crate) const FANOUT_OPTIONS: [&str; 7] =
    ["--followers", "--messages", "--interval", "--views", "--only", "--rounds", "--into"];

/// A server that delivers messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// A loop that forwards the received message to all sockets, and does no more.
    Floor,
    /// The example `channels` on a scheduler.
    Bine(&'static str),
    /// The same with this number of event loops on both cores, which it shares with the subscribers.
    BothCores(u32),
    Nchan,
    /// Without polls: it has none.
    Centrifugo,
}

/// All servers by name.
const WAYS: [(&str, Way); 8] = [
    ("floor", Way::Floor),
    ("hybrid", Way::Bine("hybrid")),
    ("event", Way::Bine("event")),
    ("pool", Way::Bine("pool")),
    ("one-loop", Way::BothCores(1)),
    ("two-loops", Way::BothCores(2)),
    ("nchan", Way::Nchan),
    ("centrifugo", Way::Centrifugo),
];
/// The target for readiness checks, and for the requests of other clients.
const HELLO: &str = "/hello?name=TLUG";
/// Workers for other requests, in addition to a thread per poll.
const OTHER_WORKERS: u64 = 16;
const NCHAN: &str = "/usr/lib/nginx/modules/ngx_nchan_module.so";
const CENTRIFUGO: (&str, &str) = ("github.com/centrifugal/centrifugo/v6", "v6.9.1");

/// Measures the memory of waiting polls.
pub(crate) fn polls(arguments: &Arguments) -> Result<()> {
    let ways = ways(arguments, &["hybrid", "nchan"])?;
    let counts = counts(arguments, &[1000, 5000, 15_000])?;
    let facts = machine::facts();
    let workspace = prepared(&ways)?;
    let park = workspace.compile("park", &[])?;
    move_to_core_1()?;
    println!("{facts}\n\n| polls that wait | on | bytes of user memory for each |\n|---|---|---|");
    for count in counts {
        for (name, way) in &ways {
            let target = way.waiting_target().with_context(|| format!("{name} has no polls"))?;
            let running = way.start(&workspace, count)?;
            let mut command = Command::new(&park);
            command.args([running.port.to_string(), count.to_string(), processes(&running)?]);
            let line = output(command.args([target, "parked"]))
                .with_context(|| format!("{name} did not let {count} polls wait"))?;
            let bytes = line.rsplit_once(" KiB, ").and_then(|(_, rest)| rest.split(' ').next());
            println!("| {count} | {name} | {} |", bytes.context("park printed no figure")?);
            running.stop()?;
        }
    }
    Ok(())
}

/// The four measures of Liu and Cui ("PushUp"), and the latency of an unrelated page.
pub(crate) fn fanout(arguments: &Arguments) -> Result<()> {
    let mut ways = ways(arguments, &["floor", "hybrid", "nchan", "centrifugo"])?;
    // Without `--only`, skips a peer that cannot be built.
    if arguments.names("--only").is_none()
        && let Err(error) = centrifugo(&Workspace::open()?)
    {
        eprintln!("Centrifugo is left out: {error:#}");
        ways.retain(|(_, way)| *way != Way::Centrifugo);
    }
    let counts = counts(arguments, &[100, 1000, 8000])?;
    let messages = arguments.number("--messages", 50)?;
    let interval = arguments.number("--interval", 200)?;
    let rounds = arguments.number("--rounds", 3)?;
    let kinds = arguments.names("--views").unwrap_or_else(|| vec!["events"]);
    let (_, version) = CENTRIFUGO;
    let nginx = machine::first_line("nginx", &["-v"]);
    let has_centrifugo = ways.iter().any(|(_, way)| *way == Way::Centrifugo);
    let peer = if has_centrifugo { format!("; Centrifugo {version}") } else { String::new() };
    let facts = machine::facts_with(&format!("{nginx}{peer}"));
    let workspace = prepared(&ways)?;
    let followers = workspace.compile("followers", &[])?;
    move_to_core_1()?;
    println!(
        "{facts}\n\n{messages} messages of 200 bytes, one every {interval} ms; medians of {rounds} rounds; times in \
         milliseconds.\n\n| followers | view | on | received, % | mean | p50 | p99 | p99.9 | deliveries/s | server CPU, \
         us a delivery | bytes for each that waits | memory, MiB | traffic, KiB | p99 of another page, calm and busy \
         |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    );
    let pairs = kinds.iter().flat_map(|kind| ways.iter().map(move |(_, way)| (kind, way)));
    let cases = pairs.filter(|(kind, way)| way.supports(kind)).count() * counts.len();
    let run = Run { arguments, workspace: &workspace, facts: &facts };
    let count = cases * rounds as usize;
    let mut samples = Samples::open("fanout", "followers,view,server", &run, count)?;
    for count in counts {
        for kind in &kinds {
            let mut runs: BTreeMap<&str, Vec<Delivered>> = BTreeMap::new();
            for round in 1..=rounds {
                for (name, way) in ways.iter().filter(|(_, way)| way.supports(kind)) {
                    let case = [&*count.to_string(), *kind, *name];
                    let sample = samples.take(&case, round, || {
                        let running = way.start(&workspace, count)?;
                        let counts = [count, messages, interval];
                        let told = RunOutput::of(&followers, *way, kind, &running, counts)?;
                        running.stop()?;
                        Delivered::read(&told)
                    })?;
                    runs.entry(name).or_default().push(sample);
                }
            }
            for (name, _) in ways.iter().filter(|(name, _)| runs.contains_key(name)) {
                println!("| {count} | {kind} | {name} | {} |", row(&runs[name])?);
            }
        }
    }
    samples.finish()
}

/// Disconnects all subscribers and reconnects them at once with their cursors.
pub(crate) fn storm(arguments: &Arguments) -> Result<()> {
    let count = arguments.number("--followers", 16_000)?;
    let messages = arguments.number("--messages", 20)?;
    let interval = arguments.number("--interval", 1000)?;
    let way = Way::Bine("hybrid");
    let facts = machine::facts();
    let workspace = prepared(&[("hybrid", way)])?;
    let followers = workspace.compile("followers", &[])?;
    move_to_core_1()?;
    let running = way.start(&workspace, count)?;
    let told = RunOutput::of(&followers, way, "storm", &running, [count, messages, interval])?;
    running.stop()?;
    println!(
        "{facts}\n\n| reconnecting followers | behind by | all have all after, s | messages due | received | missed | \
         twice | server CPU, s |\n|---|---|---|---|---|---|---|---|\n| {count} | 50 messages | {:.2} | {} | {} | {} | \
         {} | {:.2} |",
        told.number("stormed")? / 1e6,
        told.number("due")?,
        told.number("received")?,
        told.number("missed")?,
        told.number("repeated")?,
        told.number("cpu")? / 1e6,
    );
    let is_whole = (told.number("due")? - told.number("received")?).abs() < 0.5;
    ensure!(is_whole && told.number("repeated")? == 0.0, "messages were missed or repeated");
    Ok(())
}

fn ways(arguments: &Arguments, usual: &[&'static str]) -> Result<Vec<(&'static str, Way)>> {
    let names = arguments.names("--only").unwrap_or_else(|| usual.to_vec());
    let known = |name| WAYS.iter().find(|(known, _)| *known == name).copied();
    names
        .into_iter()
        .map(|name| {
            known(name).with_context(|| format!("`{name}` is not a server of this benchmark"))
        })
        .collect()
}

fn counts(arguments: &Arguments, usual: &[u64]) -> Result<Vec<u64>> {
    let Some(words) = arguments.names("--followers") else { return Ok(usual.to_vec()) };
    words
        .into_iter()
        .map(|word| word.parse().with_context(|| format!("--followers {word}")))
        .collect()
}

/// Builds everything that these servers need.
pub(crate) fn prepared(ways: &[(&str, Way)]) -> Result<Workspace> {
    let workspace = Workspace::open()?;
    for (_, way) in ways {
        match way {
            Way::Floor => drop(workspace.compile("fan", &[])?),
            Way::Bine(_) | Way::BothCores(_) => {
                let words = ["--example", "channels"];
                workspace.build_bine(&words.map(std::ffi::OsStr::new))?;
            }
            Way::Nchan => {
                require("nginx", "nginx")?;
                let is_there = Path::new(NCHAN).exists();
                ensure!(is_there, "Nchan is missing: apt-get install libnginx-mod-nchan");
            }
            Way::Centrifugo => drop(centrifugo(&workspace)?),
        }
    }
    Ok(workspace)
}

fn centrifugo(workspace: &Workspace) -> Result<PathBuf> {
    let (module, version) = CENTRIFUGO;
    workspace.build_go(module, version, "centrifugo")
}

impl Way {
    /// Starts the server on core 0, for `count` subscribers.
    pub(crate) fn start(self, workspace: &Workspace, count: u64) -> Result<Running> {
        let port = free_port()?;
        // All subscribers connect at once.
        let listen = format!("127.0.0.1:{port},backlog=4096");
        let built = |name: &str| workspace.target.join(name).display().to_string();
        let workers = (count + OTHER_WORKERS).to_string();
        let mut words = match self {
            Self::Floor => vec![built("bench/fan"), port.to_string()],
            Self::Bine(scheduler) => {
                let own = [&*built("dist/examples/channels"), "--scheduler", scheduler];
                own.map(str::to_owned).to_vec()
            }
            Self::BothCores(_) => {
                let own = ["taskset", "--cpu-list", "0,1", &built("dist/examples/channels")];
                own.map(str::to_owned).to_vec()
            }
            Self::Nchan => {
                let file = filled(workspace, "nchan.conf", &[("@PORT@", &port.to_string())])?;
                let work = workspace.work.display().to_string();
                ["nginx", "-e", "stderr", "-p", &work, "-c", &file].map(str::to_owned).to_vec()
            }
            Self::Centrifugo => {
                let file = filled(workspace, "centrifugo.json", &[("@PORT@", &port.to_string())])?;
                let program = centrifugo(workspace)?.display().to_string();
                [&*program, "--config", &file].map(str::to_owned).to_vec()
            }
        };
        if let Some(loops) = self.loops() {
            let own = ["--listen", &listen, "--loops", &loops.to_string(), "--access-log", "off"];
            words.extend(own.map(str::to_owned));
        }
        if self == Self::Bine("pool") {
            words.extend(["--workers".to_owned(), workers]);
        }
        let ready = if self == Self::Centrifugo { "/health" } else { HELLO };
        Running::start(&words, port, ready, &workspace.work.join(format!("followed-{port}.log")))
    }

    /// The number of event loops of Bine.
    const fn loops(self) -> Option<u32> {
        match self {
            Self::Bine(_) => Some(1),
            Self::BothCores(loops) => Some(loops),
            Self::Floor | Self::Nchan | Self::Centrifugo => None,
        }
    }

    fn supports(self, kind: &str) -> bool {
        match self {
            Self::Bine(_) | Self::BothCores(_) => true,
            Self::Floor | Self::Nchan => kind != "pull",
            Self::Centrifugo => kind == "events",
        }
    }

    const fn waiting_target(self) -> Option<&'static str> {
        match self {
            Self::Floor | Self::Bine(_) | Self::BothCores(_) => Some("/channels?c=news&wait=55"),
            Self::Nchan => Some("/follow"),
            Self::Centrifugo => None,
        }
    }
}

/// The process ids of `running`, as the C programs expect them.
pub(crate) fn processes(running: &Running) -> Result<String> {
    let all: Vec<String> = running.processes()?.iter().map(ToString::to_string).collect();
    Ok(all.join(","))
}

/// The command that subscribes. `counts`: followers, messages, milliseconds between messages.
pub(crate) fn following(
    program: &Path,
    way: Way,
    kind: &str,
    running: &Running,
    counts: [u64; 3],
) -> Result<Command> {
    let [count, messages, interval] = counts;
    let kind = match way {
        Way::Nchan => format!("nchan-{kind}"),
        Way::Centrifugo => format!("centrifugo-{kind}"),
        Way::Floor | Way::Bine(_) | Way::BothCores(_) => kind.to_owned(),
    };
    let mut command = Command::new(program);
    command.args([kind, running.port.to_string(), count.to_string(), messages.to_string()]);
    command.args([(interval * 1000).to_string(), processes(running)?]);
    Ok(command)
}

/// The output of `followers` or `viewers` for one run: words of the form NAME=VALUE.
pub(crate) struct RunOutput {
    pub(crate) line: String,
}

impl RunOutput {
    fn of(
        program: &Path,
        way: Way,
        kind: &str,
        running: &Running,
        counts: [u64; 3],
    ) -> Result<Self> {
        let mut command = following(program, way, kind, running, counts)?;
        Ok(Self { line: output(&mut command)?.trim().to_owned() })
    }

    pub(crate) fn number(&self, name: &str) -> Result<f64> {
        let words = self.line.split(' ').filter_map(|word| word.split_once('='));
        let mut named = words.filter(|(known, _)| *known == name);
        let (_, value) = named.next().with_context(|| format!("no {name} in {}", self.line))?;
        Ok(value.parse()?)
    }
}

/// The figures of a run with messages. Times are in microseconds, memory and traffic in bytes.
#[derive(Clone, Copy, Debug)]
struct Delivered {
    due: f64,
    received: f64,
    /// Trip times.
    mean: f64,
    p50: f64,
    p99: f64,
    p999: f64,
    took: f64,
    /// CPU time of the server.
    cpu: f64,
    /// Memory of the server for each subscriber that waits, and all of it at the end.
    waiting: f64,
    full: f64,
    traffic: f64,
    /// The p99 of another page, before and during the messages.
    calm: f64,
    busy: f64,
}

figures!(Delivered {
    due: "due",
    received: "received",
    mean: "mean",
    p50: "p50",
    p99: "p99",
    p999: "p999",
    took: "took",
    cpu: "cpu",
    waiting: "waiting",
    full: "full",
    traffic: "traffic",
    calm: "calm",
    busy: "busy",
});

impl Delivered {
    /// `followers` prints each figure by the name of its column.
    fn read(told: &RunOutput) -> Result<Self> {
        let figures =
            Self::NAMES.iter().map(|name| told.number(name)).collect::<Result<Vec<_>>>()?;
        Ok(Self::of(figures.try_into().ok().context("the names are those of the figures")?))
    }
}

/// The medians of some runs.
fn row(runs: &[Delivered]) -> Result<String> {
    let of = |figure: fn(&Delivered) -> f64| -> Result<f64> {
        Ok(Spread::of(runs.iter().map(figure)).context("no runs")?.median)
    };
    Ok(format!(
        "{:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.0} | {:.2} | {:.0} | {:.1} | {:.0} | {:.2}, {:.2}",
        of(|run| 100.0 * run.received / run.due)?,
        of(|run| run.mean / 1e3)?,
        of(|run| run.p50 / 1e3)?,
        of(|run| run.p99 / 1e3)?,
        of(|run| run.p999 / 1e3)?,
        of(|run| 1e6 * run.received / run.took)?,
        of(|run| run.cpu / run.received)?,
        of(|run| run.waiting)?,
        of(|run| run.full / f64::from(1 << 20))?,
        of(|run| run.traffic / 1024.0)?,
        of(|run| run.calm / 1e3)?,
        of(|run| run.busy / 1e3)?,
    ))
}
