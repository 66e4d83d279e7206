//! Measures calls of services and live pages, compared with the smallest page and with the same
//! page that is not live.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{HELLO, LINE, command};
use crate::cost::Sample;
use crate::figures::Spread;
use crate::peer::{Peer, address};
use crate::servers::{Running, free_port};
use crate::tables::insertions;
use crate::tools::{Workspace, output, pause};

/// A measured request.
struct Request {
    title: &'static str,
    example: &'static str,
    path: &'static str,
    /// The body of a POST; without it, the request is a GET.
    json: Option<&'static str>,
    /// The content of the tables, which are in a folder then.
    filled: Option<Filling>,
}

/// A post that fills the tables. It is sent once for each row that a page shows.
#[derive(Clone, Copy)]
struct Filling {
    path: &'static str,
    json: &'static str,
}

const SHOWN: usize = 50;
const MESSAGES: Filling = Filling {
    path: "/board/post",
    json: r#"{"forum":"Garden","body":"The hops are two meters high, and nobody has cut them."}"#,
};
const LINES: Filling = Filling { path: "/wall/write", json: LINE };
const HELLO_PAGE: Request = page("hello", "hello", HELLO, None);
const FORUM: Request =
    page("a forum of the board, 50 messages", "board", "/Garden", Some(MESSAGES));
/// Requests per sample of times.
const ASKED: usize = 3000;
/// The time between a response and the next request: without it, the server would still be awake.
const PAUSE: Duration = Duration::from_micros(500);

const fn page(
    title: &'static str,
    example: &'static str,
    path: &'static str,
    filled: Option<Filling>,
) -> Request {
    Request { title, example, path, json: None, filled }
}

const fn call(title: &'static str, path: &'static str) -> Request {
    Request { title, example: "wall", path, json: Some(LINE), filled: None }
}

/// The cost of a service call compared with a page, and the cost of the call's work alone.
pub(super) fn calls(workspace: &Workspace, rounds: u64, seconds: u64) -> Result<()> {
    let requests = [
        HELLO_PAGE,
        call("a service that changes nothing", "/wall/hear"),
        call("a service that inserts a row", "/wall/write"),
    ];
    costs(workspace, &requests, rounds, seconds)?;
    let alone = Spread::of(insertions(rounds)?).context("no samples")?;
    println!("\nThe insertion alone: {alone} ns of CPU.");
    Ok(())
}

/// The cost of live pages, and the time to their first byte.
pub(super) fn pages(workspace: &Workspace, rounds: u64, seconds: u64) -> Result<()> {
    let requests = [
        HELLO_PAGE,
        page("a list of 50, not live", "wall", "/lines", Some(LINES)),
        page("the same list, live", "wall", "/live-lines", Some(LINES)),
        FORUM,
    ];
    costs(workspace, &requests, rounds, seconds)?;
    first_bytes(workspace, &[HELLO_PAGE, FORUM], rounds)
}

/// The size of the script of live pages.
pub(super) fn script(workspace: &Workspace) -> Result<()> {
    let running = FORUM.start(workspace)?;
    let mut peer = Peer::connect(running.port)?;
    let page = String::from_utf8_lossy(peer.get("/")?).into_owned();
    let path = script_of(&page).context("the page has no script")?;
    let answer = peer.get(path)?;
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").context("no head")? + 4;
    let (file, script) = (workspace.work.join("script.js"), &answer[head..]);
    fs::write(&file, script)?;
    let compressed = Command::new("gzip").args(["-9", "-n", "-c"]).arg(&file).output()?.stdout;
    running.stop()?;
    println!(
        "\n| the script of a live page | bytes |\n|---|---|\n| sent without compression | {} |\n| `gzip -9` | \
         {} |",
        script.len(),
        compressed.len()
    );
    Ok(())
}

/// The address of a page's script.
fn script_of(page: &str) -> Option<&str> {
    let (_, rest) = page.split_once("src=\"/_bine/live-")?;
    let (name, _) = rest.split_once('"')?;
    let begin = page.len() - rest.len() - "/_bine/live-".len();
    Some(&page[begin..begin + "/_bine/live-".len() + name.len()])
}

/// Measures the CPU time per request of each, once per round.
fn costs(workspace: &Workspace, requests: &[Request], rounds: u64, seconds: u64) -> Result<()> {
    let mut samples: Vec<Vec<Sample>> = requests.iter().map(|_| Vec::new()).collect();
    for request in requests {
        request.fill(workspace)?;
    }
    for round in 1..=rounds {
        for (request, samples) in requests.iter().zip(&mut samples) {
            let sample = request.cost(workspace, seconds)?;
            eprintln!("round {round}/{rounds} {}: {sample:.2?}", request.title);
            samples.push(sample);
        }
    }
    println!(
        "\nMedians of {rounds} rounds of {seconds} s, in microseconds of CPU per request.\n\n| request | user | system | \
         total (least-most) | x the first | over the first | over the previous one |\n|---|---|---|---|---|---|---|"
    );
    let before = [0].into_iter().chain(0..);
    for ((request, own), before) in requests.iter().zip(&samples).zip(before) {
        let row = row(own, &samples[0], &samples[before])?;
        println!("| {} | {row} |", request.title);
    }
    Ok(())
}

/// The figures of some samples, compared with those of the first and the previous request in the
/// same rounds.
fn row(own: &[Sample], first: &[Sample], before: &[Sample]) -> Result<String> {
    let all = |figure: fn(&Sample) -> f64| Spread::of(own.iter().map(figure)).context("no samples");
    let compared = |other: &[Sample], compare: fn(f64, f64) -> f64| {
        let pairs = own.iter().zip(other).map(|(own, other)| compare(own.total, other.total));
        Spread::of(pairs).context("no samples")
    };
    Ok(format!(
        "{:.2} | {:.2} | {} | {:.2} | {:.2} | {:.2}",
        all(|sample| sample.user)?.median,
        all(|sample| sample.system)?.median,
        all(|sample| sample.total)?,
        compared(first, |own, first| own / first)?.median,
        compared(first, |own, first| own - first)?.median,
        compared(before, |own, before| own - before)?.median,
    ))
}

/// Measures the time to the first byte of each request, in turns.
fn first_bytes(workspace: &Workspace, requests: &[Request], rounds: u64) -> Result<()> {
    let running = requests.iter().map(|own| own.start(workspace)).collect::<Result<Vec<_>>>()?;
    let peers = running.iter().map(|own| Peer::connect(own.port)).collect::<Result<Vec<_>>>()?;
    let mut peers = peers;
    let mut percentiles: Vec<[Vec<f64>; 2]> = requests.iter().map(|_| Default::default()).collect();
    for _ in 0..rounds {
        let mut times: Vec<Vec<Duration>> = requests.iter().map(|_| Vec::new()).collect();
        for _ in 0..ASKED {
            for ((request, peer), times) in requests.iter().zip(&mut peers).zip(&mut times) {
                pause(PAUSE);
                peer.get(request.path)?;
                times.push(peer.first_byte());
            }
        }
        for (times, [half, most]) in times.iter_mut().zip(&mut percentiles) {
            times.sort_unstable();
            half.push(times[ASKED / 2].as_secs_f64() * 1e3);
            most.push(times[ASKED * 99 / 100].as_secs_f64() * 1e3);
        }
    }
    println!(
        "\nTime to the first byte in milliseconds, {ASKED} requests per round.\n\n| request | p50 | p99 |\n|---|---|---|"
    );
    for (request, [half, most]) in requests.iter().zip(percentiles) {
        let [half, most] = [half, most].map(|all| Spread::of(all).context("no samples"));
        println!("| {} | {} | {} |", request.title, half?, most?);
    }
    running.into_iter().try_for_each(Running::stop)
}

impl Request {
    /// The command of the example.
    fn command(&self, workspace: &Workspace, port: u16) -> Vec<String> {
        let folder = self.filled.map_or_else(|| "memory".to_owned(), |_| self.data(workspace));
        command(workspace, self.example, port, &folder)
    }

    fn data(&self, workspace: &Workspace) -> String {
        workspace.work.join(self.example).display().to_string()
    }

    /// Starts the example with filled tables.
    fn start(&self, workspace: &Workspace) -> Result<Running> {
        self.fill(workspace)?;
        let port = free_port()?;
        let log = workspace.work.join(format!("{}-{port}.log", self.example));
        Running::start(&self.command(workspace, port), port, self.path, &log)
    }

    /// Fills the tables, unless they are filled already.
    fn fill(&self, workspace: &Workspace) -> Result<()> {
        let Some(Filling { path, json }) = self.filled else { return Ok(()) };
        if fs::exists(self.data(workspace))? {
            return Ok(());
        }
        let port = free_port()?;
        let log = workspace.work.join(format!("{}-{port}.log", self.example));
        let running = Running::start(&self.command(workspace, port), port, self.path, &log)?;
        let mut peer = Peer::connect(port)?;
        for _ in 0..SHOWN {
            peer.post(path, json)?;
        }
        running.stop()
    }

    fn cost(&self, workspace: &Workspace, seconds: u64) -> Result<Sample> {
        let port = free_port()?;
        let mut command = Command::new(workspace.root.join("bench/cost.sh"));
        command.args([self.example, &format!("http://{}{}", address(port), self.path)]);
        command.args(["64", &seconds.to_string()]);
        command.args(self.json.iter().flat_map(|json| ["-d", json]));
        let line = output(command.arg("--").args(self.command(workspace, port)))?;
        Sample::parse(&line).with_context(|| format!("cost.sh printed `{}`", line.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_script_of_a_page() {
        let page = r#"<head><script type="module" src="/_bine/live-00ff.js"></script></head>"#;
        assert_eq!(script_of(page), Some("/_bine/live-00ff.js"));
        assert_eq!(script_of("<head></head>"), None);
    }

    #[test]
    fn compares_with_the_first_and_previous_request_of_the_same_rounds() {
        let samples = |totals: [f64; 2]| {
            totals.map(|total| Sample { user: 1.0, system: total - 1.0, total, rate: 7.0 })
        };
        let (first, before, own) = (samples([2.0, 4.0]), samples([3.0, 5.0]), samples([4.0, 8.0]));
        let row = row(&own, &first, &before).unwrap();
        assert_eq!(row, "1.00 | 5.00 | 6.00 (4.00-8.00) | 2.00 | 3.00 | 2.00");
    }
}
