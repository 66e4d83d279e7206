//! Measures the CPU time, context switches and system calls of a request under each scheduler.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::figures::Spread;
use crate::machine;
use crate::samples::{Run, Samples, figures};
use crate::servers::{Running, free_port};
use crate::tools::{Workspace, output, require};

/// The options of the command.
pub(crate) const OPTIONS: [&str; 5] = ["--rounds", "--seconds", "--only", "--loads", "--into"];

/// A kind of load.
struct Load {
    name: &'static str,
    title: &'static str,
    path: &'static str,
    /// Threads of the server that may block.
    workers: &'static str,
    way: Way,
}

#[derive(Clone, Copy)]
enum Way {
    /// Kept connections; each connection repeats the request after its response (wrk).
    Kept(u32),
    /// New connections per second, with a number of requests each (httperf).
    New { rate: u32, calls: u32 },
}

const HELLO: &str = "/hello?name=TLUG";
const PLAIN: &str = "/plain?name=TLUG";
/// The file size in Serrano, "Hop", section 4.3.
const FILE: usize = 984;

const LOADS: [Load; 5] = [
    load("kept-1", "hello, 1 kept connection", HELLO, Way::Kept(1)),
    load("kept-64", "hello, 64 kept connections", HELLO, Way::Kept(64)),
    load("calls-1", "hello, 1000 new connections/s", HELLO, Way::New { rate: 1000, calls: 1 }),
    load("plain-64", "plain `fn`, 64 kept connections", PLAIN, Way::Kept(64)),
    Load {
        name: DOCUMENT,
        title: "984-byte file, 5 requests a connection, 1000 connections/s",
        path: "/984.html",
        workers: "20",
        way: Way::New { rate: 1000, calls: 5 },
    },
];
const DOCUMENT: &str = "document";
/// The scheduler that was not slower than any other in the paper.
const POOL: &str = "pool";

const fn load(name: &'static str, title: &'static str, path: &'static str, way: Way) -> Load {
    Load { name, title, path, workers: "64", way }
}

/// The samples of one scheduler under one load, one per round; `None` for a failed one.
struct Cell {
    scheduler: String,
    load: &'static Load,
    samples: Vec<Option<Sample>>,
}

/// All figures except the rate are per request.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    /// In microseconds.
    cpu: f64,
    switches: f64,
    forced: f64,
    calls: f64,
    /// Requests without a response, in percent.
    missed: f64,
    /// Requests per second.
    rate: f64,
}

figures!(Sample {
    cpu: "cpu_us",
    switches: "switches",
    forced: "forced_switches",
    calls: "system_calls",
    missed: "missed_percent",
    rate: "rate",
});

/// Samples each scheduler under each load once per round.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    for (tool, package) in [
        ("perf", "linux-perf"),
        ("taskset", "util-linux"),
        ("setpriv", "util-linux"),
        ("wrk", "wrk"),
        ("httperf", "httperf"),
    ] {
        require(tool, package)?;
    }
    let (rounds, seconds) = (arguments.number("--rounds", 5)?, arguments.number("--seconds", 3)?);
    let workspace = Workspace::open()?;
    workspace.make_file(FILE)?;
    workspace.build_bine(&["--example", "plain"].map(OsStr::new))?;
    let program = workspace.bine("examples/plain").display().to_string();
    let help = output(Command::new(&program).args(["--scheduler", "help"]))?;
    let known = listed(&help);
    ensure!(!known.is_empty(), "`--scheduler help` lists no scheduler");
    let mut cells = Vec::new();
    for load in chosen(arguments.names("--loads"), &LOADS, |load| load.name)? {
        for scheduler in chosen(arguments.names("--only"), &known, |name| name)? {
            cells.push(Cell { scheduler: scheduler.clone(), load, samples: Vec::new() });
        }
    }
    let facts = machine::facts();
    let run = Run { arguments, workspace: &workspace, facts: &facts };
    let count = cells.len() * rounds as usize;
    let mut samples = Samples::open("schedulers", "load,scheduler", &run, count)?;
    for round in 1..=rounds {
        for cell in &mut cells {
            let sample = samples.take(&[cell.load.name, &cell.scheduler], round, || {
                cell.measure(&workspace, &program, seconds)
            });
            cell.samples.push(sample.ok());
        }
    }
    println!("{facts}\n\n{}\n{}", table(&cells), finding(&cells));
    println!(
        "Medians of {rounds} rounds of {seconds} s. CPU in microseconds of all threads of the server."
    );
    let failures = cells.iter().flat_map(|cell| &cell.samples).filter(|sample| sample.is_none());
    let failures = failures.count();
    ensure!(
        failures == 0,
        "{failures} samples failed and are not in the table; the same command takes them again"
    );
    samples.finish()
}

/// The names after `Schedulers:`, in order.
fn listed(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Schedulers:").skip(1);
    let names = lines.map_while(|line| line.strip_prefix("  ")?.split_whitespace().next());
    names.map(ToOwned::to_owned).collect()
}

/// The named elements of `all`, or all.
fn chosen<'a, T>(
    names: Option<Vec<&str>>,
    all: &'a [T],
    name: fn(&T) -> &str,
) -> Result<Vec<&'a T>> {
    let Some(names) = names else { return Ok(all.iter().collect()) };
    let find = |wanted: &&str| all.iter().find(|each| name(each) == *wanted);
    names
        .iter()
        .map(|wanted| find(wanted).with_context(|| format!("unknown name `{wanted}`")))
        .collect()
}

impl Cell {
    fn measure(&self, workspace: &Workspace, program: &str, seconds: u64) -> Result<Sample> {
        let port = free_port()?;
        let (listen, files) =
            (format!("127.0.0.1:{port}"), workspace.files().display().to_string());
        let words = [
            program,
            "--listen",
            &listen,
            "--root",
            &files,
            "--scheduler",
            &self.scheduler,
            "--loops",
            "1",
            "--workers",
            self.load.workers,
        ];
        let command = words.map(ToOwned::to_owned);
        let log = workspace.work.join(format!("{}-{}.log", self.load.name, self.scheduler));
        let running = Running::start(&command, port, self.load.path, &log)?;
        let process = running.leader();
        // A warm-up for work that is done once, at the first requests.
        self.load.window(process, port, 1, "task-clock")?;
        let before = forced(process);
        let cpu = self.load.window(process, port, seconds, "task-clock,context-switches")?;
        let forced = forced(process).saturating_sub(before) as f64;
        let calls = self.load.window(process, port, seconds, "raw_syscalls:sys_enter")?;
        running.stop()?;
        let [time, switches] = cpu.counts[..] else { anyhow::bail!("perf printed {cpu:?}") };
        Ok(Sample {
            // perf prints milliseconds.
            cpu: time * 1e3 / cpu.requests,
            switches: switches / cpu.requests,
            forced: forced / cpu.requests,
            calls: calls.counts.first().context("perf printed no figure")? / calls.requests,
            missed: 100.0 * cpu.missed / (cpu.requests + cpu.missed),
            rate: cpu.requests / seconds as f64,
        })
    }

    fn spread(&self, figure: fn(&Sample) -> f64) -> Option<Spread> {
        Spread::of(self.samples.iter().flatten().map(figure))
    }
}

/// The results of one window of load.
#[derive(Debug)]
struct Window {
    requests: f64,
    /// Requests without a response.
    missed: f64,
    /// The counts of the requested events, in order.
    counts: Vec<f64>,
}

impl Load {
    /// Loads the server from core 1 while perf counts its events.
    fn window(&self, process: u32, port: u16, seconds: u64, events: &str) -> Result<Window> {
        let mut command = Command::new("perf");
        command.args(["stat", "-x,", "-e", events, "-p", &process.to_string(), "--"]);
        command.args(["taskset", "--cpu-list", "1"]);
        match self.way {
            Way::Kept(connections) => {
                let url = format!("http://127.0.0.1:{port}{}", self.path);
                let (connections, time) = (format!("-c{connections}"), format!("-d{seconds}"));
                command.args(["wrk", "-t1", &connections, &time, &url]);
            }
            Way::New { rate, calls } => {
                let all = u64::from(rate) * seconds;
                command.args(["httperf", "--server", "127.0.0.1", "--timeout", "5"]);
                command.args(["--port", &port.to_string(), "--uri", self.path]);
                command.args(["--rate", &rate.to_string(), "--num-calls", &calls.to_string()]);
                command.args(["--num-conns", &all.to_string()]);
            }
        }
        let done = command.output().context("cannot run perf")?;
        let text = String::from_utf8_lossy(&done.stdout);
        let counted = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "{text}\n{counted}");
        let (requests, missed) = match self.way {
            Way::Kept(_) => answered_to_wrk(&text)?,
            Way::New { .. } => answered_to_httperf(&text)?,
        };
        let counts: Vec<f64> = counts(&counted).collect();
        ensure!(counts.len() == events.split(',').count(), "perf cannot count {events}: {counted}");
        Ok(Window { requests, missed, counts })
    }
}

/// The answered and unanswered requests: a kept connection that the server closes in favor of a new
/// one may have a request under way.
fn answered_to_wrk(text: &str) -> Result<(f64, f64)> {
    let refused = text.lines().find(|line| line.contains("Non-2xx"));
    ensure!(
        refused.is_none(),
        "not every response was a 200: {}",
        refused.unwrap_or_default().trim()
    );
    let line = text.lines().find_map(|line| line.trim().split_once(" requests in "));
    let answered = line.with_context(|| format!("wrk printed {text}"))?.0.parse()?;
    // `Socket errors: connect 0, read 12, write 0, timeout 0`
    let errors = text.lines().find_map(|line| line.trim().strip_prefix("Socket errors: "));
    let errors = errors.into_iter().flat_map(|errors| errors.split([' ', ',']));
    Ok((answered, errors.filter_map(|word| word.parse::<u64>().ok()).sum::<u64>() as f64))
}

fn answered_to_httperf(text: &str) -> Result<(f64, f64)> {
    let of = |mark: &str, place: usize| -> Option<f64> {
        let line = text.lines().find(|line| line.starts_with(mark))?;
        line.split_whitespace().nth(place)?.trim_start_matches("2xx=").parse().ok()
    };
    let replies = of("Total: connections", 6).with_context(|| format!("httperf printed {text}"))?;
    let good = of("Reply status", 3).unwrap_or(0.0);
    ensure!(replies - good < 0.5 && good > 0.0, "{good} of {replies} responses were a 200");
    Ok((good, of("Errors: total", 2).unwrap_or(0.0)))
}

/// The counts in lines like `12.5,msec,task-clock,..`; an unsupported event has no number.
pub(crate) fn counts(lines: &str) -> impl Iterator<Item = f64> {
    lines.lines().filter_map(|line| line.split(',').next()?.parse().ok())
}

/// The number of involuntary context switches of the process so far.
fn forced(process: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let of_thread = |status: String| {
        let mark = "nonvoluntary_ctxt_switches:";
        let line = status.lines().find_map(|line| line.strip_prefix(mark));
        line.and_then(|count| count.trim().parse::<u64>().ok())
    };
    let statuses =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    statuses.filter_map(of_thread).sum()
}

fn table(cells: &[Cell]) -> String {
    let mut lines = vec![
        String::from(
            "| load | scheduler | CPU (least-most) | switches | forced switches | system calls | unanswered, % | requests/s |",
        ),
        String::from("|---|---|---|---|---|---|---|---|"),
    ];
    for cell in cells {
        let shown = |figure: fn(&Sample) -> f64, places: usize| {
            let median = cell.spread(figure).map(|spread| spread.median);
            median.map_or_else(|| String::from("-"), |median| format!("{median:.places$}"))
        };
        let cpu = cell.spread(|sample| sample.cpu);
        lines.push(format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            cell.load.title,
            cell.scheduler,
            cpu.map_or_else(|| String::from("failed"), |cpu| cpu.to_string()),
            shown(|sample| sample.switches, 3),
            shown(|sample| sample.forced, 3),
            shown(|sample| sample.calls, 2),
            shown(|sample| sample.missed, 2),
            shown(|sample| sample.rate, 0),
        ));
    }
    lines.join("\n") + "\n"
}

/// The finding of Serrano, "Hop": at its load no scheduler is faster than the pool.
fn finding(cells: &[Cell]) -> String {
    let all: Vec<&Cell> = cells.iter().filter(|cell| cell.load.name == DOCUMENT).collect();
    let Some(pool) = all.iter().find(|cell| cell.scheduler == POOL) else { return String::new() };
    let (mut names, mut ratios) = (String::from("| x pool |"), String::from("| document |"));
    for cell in &all {
        let pairs = cell.samples.iter().zip(&pool.samples);
        let ratio = Spread::of(pairs.filter_map(|(own, pool)| Some((*own)?.cpu / (*pool)?.cpu)));
        names = names + " " + &cell.scheduler + " |";
        let ratio = ratio.map_or_else(|| String::from("-"), |ratio| ratio.to_string());
        ratios = ratios + " " + &ratio + " |";
    }
    format!("{names}\n|{}\n{ratios}\n", "---|".repeat(all.len() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_schedulers_from_the_help_text() {
        let help =
            "  --help  print this\n\nSchedulers:\n  hybrid   loops\n  pool  threads\n\nMore\n";
        assert_eq!(listed(help), ["hybrid", "pool"]);
        assert!(listed("nothing").is_empty());
    }

    #[test]
    fn parses_the_output_of_wrk_httperf_and_perf() {
        let check = |result: Result<(f64, f64)>, expected: &str| {
            let text =
                result.map_or_else(|_| String::from("refused"), |counts| format!("{counts:?}"));
            assert_eq!(text, expected);
        };
        check(
            answered_to_wrk("  2 threads\n  1234 requests in 3.00s, 1MB read\n"),
            "(1234.0, 0.0)",
        );
        let errors = "  9 requests in 3s\n  Socket errors: connect 1, read 2, write 0, timeout 0\n";
        check(answered_to_wrk(errors), "(9.0, 3.0)");
        check(answered_to_wrk("  9 requests in 3s\n  Non-2xx or 3xx responses: 1\n"), "refused");
        let text = "Total: connections 3 requests 15 replies 14 test-duration 1 s\n\
            Reply status: 1xx=0 2xx=14 3xx=0 4xx=0 5xx=0\nErrors: total 1 client-timo 0\n";
        check(answered_to_httperf(text), "(14.0, 1.0)");
        check(answered_to_httperf(&text.replace("2xx=14", "2xx=13")), "refused");
        let lines = "12.50,msec,task-clock,1,100.00,,\n7,,context-switches,1,100.00,,\n\
            <not supported>,,cycles,0,100.00,,\n";
        assert_eq!(counts(lines).collect::<Vec<_>>(), [12.5, 7.0]);
    }

    #[test]
    fn compares_samples_of_the_same_round() {
        let cell = |scheduler: &str, cpu: [Option<f64>; 3]| Cell {
            scheduler: scheduler.to_owned(),
            load: &LOADS[4],
            samples: cpu
                .map(|cpu| {
                    cpu.map(|cpu| Sample {
                        cpu,
                        switches: 0.5,
                        forced: 0.1,
                        calls: 3.0,
                        missed: 0.0,
                        rate: 9.0,
                    })
                })
                .to_vec(),
        };
        let cells = [
            cell(POOL, [Some(2.0), Some(4.0), None]),
            cell("hybrid", [Some(3.0), Some(2.0), Some(90.0)]),
        ];
        assert_eq!(
            finding(&cells),
            "| x pool | pool | hybrid |\n|---|---|---|\n| document | 1.00 (1.00-1.00) | 1.00 (0.50-1.50) |\n"
        );
        let last = table(&cells);
        let last = last.lines().last().unwrap();
        assert!(
            last.ends_with("| hybrid | 3.00 (2.00-90.00) | 0.500 | 0.100 | 3.00 | 0.00 | 9 |"),
            "{last}"
        );
    }
}
