//! Checks that a server keeps its memory, descriptors and threads over hours of mixed use.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::arguments::Arguments;
use crate::machine;
use crate::peer::{Peer, address, request};
use crate::plot::{Axis, Line, Plot};
use crate::random::Random;
use crate::servers::free_port;
use crate::tools::{Workspace, output, pause, require};

pub(crate) const OPTIONS: [&str; 7] =
    ["--minutes", "--rate", "--rests", "--work", "--warm-up", "--program", "--into"];

/// The number of simultaneous users.
const USERS: u64 = 8;
/// The sampling interval of memory for the plot.
const SAMPLED_EVERY: Duration = Duration::from_secs(1);
/// The limit of CPU time while idle, in percent of the idle time, plus a constant in seconds.
const CPU_AT_REST: f64 = 0.5;
const CPU_AT_ALL: f64 = 0.1;
/// The part of the idle time in which earlier work may finish.
const SETTLE: Duration = Duration::from_secs(2);
/// The speed of users during the warm-up, as a factor. The heap grows to the need of the busiest
/// moment, in steps that become rarer: at 300 requests per second, memory was constant after about
/// 2.5 million requests, more than two hours of load. The warm-up sends that number in ten minutes.
const WARM_UP_SPEED: u64 = 16;
/// The highest deviation from the first counted sample, in percent.
const BOUND: f64 = 5.0;
/// A request fails after this long without a response.
const PATIENCE: Duration = Duration::from_secs(10);
/// Later failures are only counted.
const SHOWN_FAILURES: u64 = 20;
/// The number of rounds between reloads of the configuration.
const RELOADED_EVERY: u64 = 5;
/// The number of points in the plot.
const MARKS: usize = 240;

/// The lengths of a run, which is divided into rounds. In each round all users work and disconnect;
/// then the server is inspected and idle.
struct Plan {
    /// All rounds, including the warm-up.
    rounds: u64,
    /// Rounds in which the server allocates what it needs. They have no idle time.
    warm_up: u64,
    work: Duration,
    rest: Duration,
}

impl Plan {
    fn read(arguments: &Arguments) -> Result<Self> {
        let minutes = arguments.number("--minutes", 120)?;
        let work = arguments.number("--work", 60)?;
        let warm_up = arguments.number("--warm-up", 10)?;
        let rest = arguments.word("--rests").map_or(Ok(0), str::parse)?;
        let measured = minutes * 60 / (work + rest);
        ensure!(measured > 0, "--minutes must cover at least one round of {} seconds", work + rest);
        let [work, rest] = [work, rest].map(Duration::from_secs);
        Ok(Self { rounds: warm_up + measured, warm_up, work, rest })
    }
}

/// Runs the demo under mixed use and prints a table.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let plan = Plan::read(arguments)?;
    let rate = arguments.number("--rate", 400)?;
    require("setpriv", "util-linux")?;
    let workspace = Workspace::open()?;
    let program = match arguments.word("--program") {
        Some(program) => PathBuf::from(program),
        None => {
            workspace.build_bine(&["-p".as_ref(), "bine-cli".as_ref()])?;
            workspace.bine("bine")
        }
    };
    for size in [984, 64 * 1024, 10 << 20] {
        workspace.make_file(size)?;
    }
    let mut server = Demo::start(&workspace, &program, free_port()?)?;
    println!("{}\n", machine::facts());
    println!(
        "| minute | requests | failed | resident, KiB | descriptors | threads | idle CPU, s |"
    );
    println!("|---|---|---|---|---|---|---|");
    let pace = 1_000_000 * USERS / rate;
    let shared = Arc::new(Shared {
        port: server.port,
        work: plan.work,
        pace: AtomicU64::new(pace / WARM_UP_SPEED),
        // The users and this thread.
        barrier: Barrier::new(USERS as usize + 1),
        over: AtomicBool::new(false),
        done: AtomicU64::new(0),
        failed: AtomicU64::new(0),
    });
    let sampler = Sampler::start(server.child.id(), Arc::clone(&shared));
    let users: Vec<_> = (1..=USERS)
        .map(|seed| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || User { random: Random(seed), peer: None, shared }.run())
        })
        .collect();
    let mut looks = Vec::new();
    for round in 1..=plan.rounds {
        shared.barrier.wait();
        let rest = if round < plan.warm_up { Duration::ZERO } else { plan.rest };
        let look = server.inspect_and_idle(round, rest);
        let last = round == plan.rounds || look.is_err();
        shared.over.store(last, Ordering::Relaxed);
        shared.barrier.wait();
        let look = look?;
        println!(
            "| {:.1} | {} | {} | {} | {} | {} | {:.2} |",
            sampler.begun.elapsed().as_secs_f64() / 60.0,
            shared.done.load(Ordering::Relaxed),
            shared.failed.load(Ordering::Relaxed),
            look.resident,
            look.descriptors,
            look.threads,
            look.rest_cpu
        );
        if round >= plan.warm_up {
            looks.push(look);
            shared.pace.store(pace, Ordering::Relaxed);
        }
    }
    for user in users {
        user.join().ok().context("a user panicked")?;
    }
    let samples = sampler.end()?;
    if let Some(folder) = arguments.word("--into") {
        write(Path::new(folder), &samples).with_context(|| folder.to_owned())?;
    }
    check_limits(&looks, shared.failed.load(Ordering::Relaxed), plan.rest)
}

/// Samples the server's resident memory on a separate thread.
struct Sampler {
    begun: Instant,
    thread: JoinHandle<Vec<(f64, f64)>>,
}

impl Sampler {
    fn start(process: u32, shared: Arc<Shared>) -> Self {
        let begun = Instant::now();
        let thread = std::thread::spawn(move || {
            let mut samples = Vec::new();
            while !shared.over.load(Ordering::Relaxed) {
                let Ok(resident) = status(process, "VmRSS:") else { break };
                samples.push((begun.elapsed().as_secs_f64() / 60.0, resident as f64 / 1024.0));
                pause(SAMPLED_EVERY);
            }
            samples
        });
        Self { begun, thread }
    }

    /// The samples in minutes and MiB.
    fn end(self) -> Result<Vec<(f64, f64)>> {
        self.thread.join().ok().context("the sampler panicked")
    }
}

/// Writes all samples to `soak.tsv`, and a plot of some hundred samples.
fn write(folder: &Path, samples: &[(f64, f64)]) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut table = String::from("minute\tresident_mib\n");
    for (minute, resident) in samples {
        writeln!(table, "{minute:.3}\t{resident:.2}")?;
    }
    fs::write(folder.join("soak.tsv"), table)?;
    // The maximum of each piece, so that short peaks are visible.
    let pieces = samples.chunks(samples.len().div_ceil(MARKS).max(1));
    let most = |piece: &[(f64, f64)]| {
        piece.iter().copied().max_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or_default()
    };
    let values: Vec<_> = pieces.map(most).collect();
    let largest = values.iter().map(|(_, resident)| *resident).fold(0.0, f64::max);
    let minutes = samples.last().map_or(1.0, |(minute, _)| *minute);
    let plot = Plot {
        title: "Memory of a server under mixed load, with rests",
        x_axis: Axis::linear("time, minutes", minutes),
        y_axis: Axis::linear("resident memory, MiB", largest),
        lines: vec![Line { name: "resident".into(), kind: 2, values, brackets: Vec::new() }],
    };
    Ok(fs::write(folder.join("soak.svg"), plot.svg())?)
}

/// The growth of memory according to a straight line through all samples, from the first to the
/// last, in percent.
fn drift(looks: &[Look]) -> f64 {
    let count = looks.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let mean = looks.iter().map(|look| look.resident as f64).sum::<f64>() / count;
    let numbered = || looks.iter().enumerate().map(|(number, look)| (number as f64 - middle, look));
    let products: f64 = numbered().map(|(at, look)| at * (look.resident as f64 - mean)).sum();
    let squares: f64 = numbered().map(|(at, _)| at * at).sum();
    if squares > 0.0 { products / squares * (count - 1.0) / mean * 100.0 } else { 0.0 }
}

/// The resources of a server without users, at one moment.
#[derive(Clone, Copy, Debug)]
struct Look {
    resident: u64,
    descriptors: usize,
    threads: u64,
    /// CPU seconds of the idle time after it.
    rest_cpu: f64,
}

fn check_limits(looks: &[Look], failed: u64, rest: Duration) -> Result<()> {
    let first = looks.first().context("no samples")?;
    let bound = CPU_AT_ALL + rest.as_secs_f64() * CPU_AT_REST / 100.0;
    let (mut least, mut most) = (first.resident, first.resident);
    for look in looks {
        ensure!(
            look.descriptors == first.descriptors,
            "{} descriptors, then {}",
            first.descriptors,
            look.descriptors
        );
        ensure!(
            look.rest_cpu <= bound,
            "{:.2} s of CPU in an idle time of {rest:?}",
            look.rest_cpu
        );
        (least, most) = (least.min(look.resident), most.max(look.resident));
    }
    let percent = |resident: u64| (resident as f64 / first.resident as f64 - 1.0) * 100.0;
    println!(
        "\nresident {:+.1} % to {:+.1} % of the first sample after the warm-up; drift {:+.1} % over {} samples",
        percent(least),
        percent(most),
        drift(looks),
        looks.len()
    );
    ensure!(percent(most) <= BOUND, "memory grew by more than {BOUND} %");
    ensure!(failed == 0, "{failed} requests failed");
    Ok(())
}

/// The server. Killed when dropped.
struct Demo {
    child: Child,
    port: u16,
    /// The folder of served files.
    files: PathBuf,
}

impl Demo {
    fn start(workspace: &Workspace, program: &Path, port: u16) -> Result<Self> {
        let listen = address(port).to_string();
        let files = workspace.files().display().to_string();
        let access = workspace.work.join("access.log").display().to_string();
        let log = File::create(workspace.work.join("soak.log"))?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM"])
            .arg(program)
            .args(["--listen", &listen, "--root", &files, "--access-log", &access])
            .args(["--write-timeout", "5s"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let own = Self { child, port, files: workspace.files() };
        let begun = Instant::now();
        while let Err(error) =
            Peer::connect(port).and_then(|mut peer| peer.get("/984.html").map(drop))
        {
            ensure!(begun.elapsed() < PATIENCE, "the server did not start: {error:#}");
            pause(Duration::from_millis(20));
        }
        Ok(own)
    }

    /// Waits until all closed connections are noticed: the same number of descriptors twice in a
    /// row.
    fn inspect(&mut self) -> Result<Look> {
        ensure!(self.child.try_wait()?.is_none(), "the server has ended");
        let process = self.child.id();
        let count = || -> Result<usize> {
            let mut count = 0;
            for entry in fs::read_dir(format!("/proc/{process}/fd"))? {
                // Descriptors of served files are cached; their number depends on the requests.
                let target = fs::read_link(entry?.path()).unwrap_or_default();
                count += usize::from(!target.starts_with(&self.files));
            }
            Ok(count)
        };
        let mut descriptors = count()?;
        loop {
            // A client that stopped reading is dropped after the write timeout of five seconds.
            pause(Duration::from_secs(6));
            let now = count()?;
            if now == descriptors {
                break;
            }
            descriptors = now;
        }
        let [resident, threads] = [status(process, "VmRSS:")?, status(process, "Threads:")?];
        Ok(Look { resident, descriptors, threads, rest_cpu: 0.0 })
    }

    /// Inspects the server after all users have disconnected, reloads it in some rounds, and lets
    /// it idle.
    fn inspect_and_idle(&mut self, round: u64, rest: Duration) -> Result<Look> {
        let look = self.inspect()?;
        if round.is_multiple_of(RELOADED_EVERY) {
            self.reload()?;
        }
        pause(SETTLE.min(rest));
        let before = self.cpu()?;
        pause(rest.saturating_sub(SETTLE));
        Ok(Look { rest_cpu: self.cpu()? - before, ..look })
    }

    /// CPU seconds since the start, in steps of a hundredth.
    fn cpu(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, rest) = stat.rsplit_once(") ").context("a process without a name")?;
        // User and kernel mode: the 14th and 15th of all fields.
        let fields = rest.split(' ').skip(11).take(2);
        Ok(fields.filter_map(|field| field.parse::<u64>().ok()).sum::<u64>() as f64 / 100.0)
    }

    fn reload(&self) -> Result<()> {
        let script = r#"kill -s HUP "$0""#;
        output(Command::new("sh").args(["-c", script, &self.child.id().to_string()]))?;
        Ok(())
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // No caller can handle an error here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A number in the kernel's status of a process.
fn status(process: u32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|line| line.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).with_context(|| format!("no {name}"))
}

struct Shared {
    port: u16,
    /// The time of work in each round.
    work: Duration,
    /// The interval of a user's steps, in microseconds.
    pace: AtomicU64,
    barrier: Barrier,
    over: AtomicBool,
    done: AtomicU64,
    failed: AtomicU64,
}

struct User {
    random: Random,
    /// A connection that is kept between requests.
    peer: Option<Peer>,
    shared: Arc<Shared>,
}

impl User {
    fn run(mut self) {
        while !self.shared.over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            let mut due = begun;
            while begun.elapsed() < self.shared.work {
                if let Err(error) = self.step() {
                    if self.shared.failed.fetch_add(1, Ordering::Relaxed) < SHOWN_FAILURES {
                        eprintln!("failed: {error:#}");
                    }
                    self.peer = None;
                }
                self.shared.done.fetch_add(1, Ordering::Relaxed);
                due += Duration::from_micros(self.shared.pace.load(Ordering::Relaxed));
                pause(due.saturating_duration_since(Instant::now()));
            }
            self.peer = None;
            self.shared.barrier.wait();
            // Waits for the inspection.
            self.shared.barrier.wait();
        }
    }

    /// One step of a user; common requests are more likely.
    fn step(&mut self) -> Result<()> {
        match self.random.below(1000) {
            0..500 => self.kept("/hello?name=soak"),
            500..650 => self.kept("/984.html"),
            650..750 => self.kept("/65536.html"),
            750..760 => self.kept("/10485760.html"),
            760..820 => self.kept("/board/garden"),
            820..850 => self.post(),
            850..880 => self.once("GET /65536.html HTTP/1.1\r\nHost: a\r\nRange: bytes=9-99\r\n", 206),
            880..900 => self.once(
                "GET /984.html HTTP/1.1\r\nHost: a\r\nIf-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n",
                304,
            ),
            900..930 => self.once("GET /nothing HTTP/1.1\r\nHost: a\r\n", 404),
            930..950 => self.once("GET / HTTP/1.1\r\nHost : a\r\n", 400),
            // A poll that is abandoned.
            950..955 => self.abandon(request("/channels?c=board").as_bytes()),
            955..970 => self.abandon(b"GET /hello HTTP/1.1\r\nHos"),
            970..985 => self.abandon(b""),
            // A long file whose body is never read.
            985..990 => self.abandon(request("/10485760.html").as_bytes()),
            _ => self.kept_pipeline(),
        }
    }

    /// A request on the kept connection, or sometimes on a new one.
    fn kept(&mut self, path: &str) -> Result<()> {
        if self.random.below(50) == 0 {
            self.peer = None;
        }
        let mut peer = match self.peer.take() {
            Some(peer) => peer,
            None => Peer::connect(self.shared.port)?,
        };
        peer.get(path).with_context(|| path.to_owned())?;
        self.peer = Some(peer);
        Ok(())
    }

    fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(address(self.shared.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// A request on a separate connection, whose response must have `status`.
    fn once(&self, head: &str, status: u16) -> Result<()> {
        self.ask(&format!("{head}Connection: close\r\n\r\n"), status)
    }

    fn ask(&self, bytes: &str, status: u16) -> Result<()> {
        let mut stream = self.connect()?;
        stream.write_all(bytes.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        if !answer.starts_with(format!("HTTP/1.1 {status} ").as_bytes()) {
            let line = answer.split(|&byte| byte == b'\r').next().unwrap_or_default();
            bail!("expected {status}, got `{}`", String::from_utf8_lossy(line));
        }
        Ok(())
    }

    fn post(&self) -> Result<()> {
        let body = "forum=garden&body=Water+the+hops";
        let head = "POST /board/post HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n";
        let length = body.len();
        self.ask(&format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"), 204)
    }

    /// Sends `bytes`, which may be empty, and closes the connection.
    fn abandon(&self, bytes: &[u8]) -> Result<()> {
        Ok(self.connect()?.write_all(bytes)?)
    }

    /// Sends sixteen pipelined requests; the last request closes the connection.
    fn kept_pipeline(&self) -> Result<()> {
        let mut bytes = request("/hello?name=a").repeat(15);
        bytes += "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        self.ask(&bytes, 200)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_drift_as_growth_of_a_straight_line() {
        let looks = |all: &[u64]| -> Vec<Look> {
            let look = |&resident| Look { resident, descriptors: 9, threads: 3, rest_cpu: 0.0 };
            all.iter().map(look).collect()
        };
        assert!(drift(&looks(&[1000, 1010, 990, 1000])).abs() < 1.5);
        assert!((drift(&looks(&[950, 1000, 1050])) - 10.0).abs() < 1e-9);
        assert!(drift(&looks(&[1000])).abs() < 1e-9);
    }

    #[test]
    fn rejects_cpu_time_while_idle() {
        let busy = Look { resident: 1000, descriptors: 9, threads: 3, rest_cpu: 60.0 };
        let rest = Duration::from_mins(2);
        assert!(check_limits(&[Look { rest_cpu: 0.0, ..busy }], 0, rest).is_ok());
        assert!(
            check_limits(&[busy], 0, rest).unwrap_err().to_string().contains("in an idle time")
        );
    }
}
