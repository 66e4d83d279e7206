//! Measures the viewers of a changing page, compared with a loop that sends them the same bytes.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{HELLO, LINE, command};
use crate::figures::Spread;
use crate::followers::{RunOutput, processes};
use crate::live_page::stream_target;
use crate::peer::{Peer, address};
use crate::servers::{Running, free_port};
use crate::tools::{Workspace, output};

/// The points of the measurement, and its repetitions.
pub(super) struct Plan {
    /// The numbers of viewers.
    pub(super) counts: Vec<u64>,
    /// The lengths of a region's content, in bytes.
    pub(super) lengths: Vec<u64>,
    pub(super) posts: u64,
    /// In milliseconds.
    pub(super) interval: u64,
    pub(super) rounds: u64,
}

/// The page with the number of renders of the wall.
const MADE: &str = "/made";
/// The service that writes a line.
const WRITE: &str = "/wall/write";
/// A stream without bytes for this long has sent everything.
const SILENCE: Duration = Duration::from_millis(300);

/// The server of the patches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    /// A loop that sends its bytes to all sockets, and does no more.
    Floor,
    Bine,
}

/// One run of `viewers`, and the number of renders for it.
struct Sample {
    output: RunOutput,
    renders: Option<u64>,
}

/// Prints the cost of showing changes to viewers.
pub(super) fn run(workspace: &Workspace, plan: &Plan) -> Result<()> {
    let viewers = workspace.compile("viewers", &[])?;
    workspace.compile("fan", &[])?;
    println!(
        "\n{} posts, at most one every {} ms; medians of {} rounds (least-most); milliseconds from before a post is \
         sent until the kernel has its patch for the first viewer, for each, for the last, and until it is read.\n\n\
         | viewers | bytes of a patch | server | CPU, us per patch | x floor | user memory per viewer | first: p50, p99 | each: \
         p50, p99 | last: p50, p99 | read: p50, p99 | renders per post |\n\
         |---|---|---|---|---|---|---|---|---|---|---|",
        plan.posts, plan.interval, plan.rounds
    );
    for &count in &plan.counts {
        for &length in &plan.lengths {
            let patch = patch(workspace, length)?;
            let file = workspace.work.join("patch");
            fs::write(&file, &patch)?;
            let (mut floors, mut bines) = (Vec::new(), Vec::new());
            for _ in 0..plan.rounds {
                for (sender, all) in [(Sender::Floor, &mut floors), (Sender::Bine, &mut bines)] {
                    let sample =
                        sender.measure(workspace, &viewers, plan, [count, length], &file)?;
                    eprintln!("{count} viewers on {}: {}", sender.name(), sample.output.line);
                    all.push(sample);
                }
            }
            for (sender, all) in [(Sender::Floor, &floors), (Sender::Bine, &bines)] {
                let row = row(all, &floors)?;
                println!("| {count} | {} | {} | {row} |", patch.len(), sender.name());
            }
        }
    }
    Ok(())
}

impl Sender {
    const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Bine => "bine",
        }
    }

    fn measure(
        self,
        workspace: &Workspace,
        viewers: &Path,
        plan: &Plan,
        [count, length]: [u64; 2],
        patch: &Path,
    ) -> Result<Sample> {
        let port = free_port()?;
        let log = workspace.work.join(format!("live-{port}.log"));
        let running = match self {
            Self::Floor => {
                let fan = workspace.target.join("bench/fan").display().to_string();
                let words = [fan, port.to_string(), patch.display().to_string()];
                Running::start(&words, port, HELLO, &log)?
            }
            Self::Bine => {
                Running::start(&command(workspace, "wall", port, "memory"), port, MADE, &log)?
            }
        };
        let join = match self {
            Self::Floor => "/follow".to_owned(),
            Self::Bine => join(port, length)?,
        };
        let renders = |running: &Running| match self {
            Self::Floor => Ok(None),
            Self::Bine => renders(running.port).map(Some),
        };
        let before = renders(&running)?;
        let mut command = Command::new(viewers);
        command.args([port.to_string(), count.to_string(), plan.posts.to_string()]);
        command.arg((plan.interval * 1000).to_string());
        command.arg(fs::metadata(patch)?.len().to_string());
        command.args([&processes(&running)?, &join, WRITE, LINE]);
        let line = output(&mut command).with_context(|| format!("{count} on {}", self.name()))?;
        let output = RunOutput { line: line.trim().to_owned() };
        // The first viewer costs one render; the rest share it.
        let renders = renders(&running)?.zip(before).map(|(after, before)| after - before - 1);
        running.stop()?;
        Ok(Sample { output, renders })
    }
}

/// The bytes of a patch on the wire, for a wall of this length.
fn patch(workspace: &Workspace, length: u64) -> Result<Vec<u8>> {
    let port = free_port()?;
    let log = workspace.work.join(format!("live-{port}.log"));
    let running = Running::start(&command(workspace, "wall", port, "memory"), port, MADE, &log)?;
    let mut stream = TcpStream::connect(address(port))?;
    let target = join(port, length)?;
    let accept = "Accept: text/event-stream";
    write!(stream, "GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{accept}\r\n\r\n")?;
    stream.set_read_timeout(Some(SILENCE))?;
    let head = all_there_is(&mut stream);
    ensure!(head.starts_with(b"HTTP/1.1 200"), "refused: {}", String::from_utf8_lossy(&head));
    Peer::connect(port)?.post(WRITE, LINE)?;
    let patch = all_there_is(&mut stream);
    running.stop()?;
    let is_whole = patch.ends_with(b"\n\n\r\n") && patch.windows(6).any(|six| six == b"patch\n");
    ensure!(is_whole, "no patch: {}", String::from_utf8_lossy(&patch));
    Ok(patch)
}

fn all_there_is(stream: &mut TcpStream) -> Vec<u8> {
    let (mut all, mut chunk) = (Vec::new(), [0; 16384]);
    while let Ok(count @ 1..) = stream.read(&mut chunk) {
        all.extend_from_slice(&chunk[..count]);
    }
    all
}

/// The target of viewers that show the current wall.
fn join(port: u16, length: u64) -> Result<String> {
    stream_target(port, &format!("/wall/{length}"))
}

fn renders(port: u16) -> Result<u64> {
    let mut peer = Peer::connect(port)?;
    let answer = String::from_utf8_lossy(peer.get(MADE)?).into_owned();
    let (_, body) = answer.rsplit_once("\r\n").context("a response without a head")?;
    Ok(body.trim().parse()?)
}

/// The figures of some samples, compared with the floor's of the same round.
fn row(samples: &[Sample], floors: &[Sample]) -> Result<String> {
    let cpu = |sample: &Sample| -> Result<f64> {
        Ok(sample.output.number("cpu")? / sample.output.number("patches")?)
    };
    let all = |figure: &dyn Fn(&Sample) -> Result<f64>| -> Result<Spread> {
        let figures = samples.iter().map(figure).collect::<Result<Vec<_>>>()?;
        Spread::of(figures).context("no samples")
    };
    let pairs = samples.iter().zip(floors);
    let ratios =
        pairs.map(|(own, floor)| Ok(cpu(own)? / cpu(floor)?)).collect::<Result<Vec<_>>>()?;
    let ratio = Spread::of(ratios).context("no samples")?;
    let milliseconds = |name: &str| -> Result<String> {
        let of =
            |part: &str| all(&|sample| Ok(sample.output.number(&format!("{name}{part}"))? / 1e3));
        Ok(format!("{}, {}", of("50")?, of("99")?))
    };
    let renders_per_post = |sample: &Sample| -> Option<f64> {
        let posts =
            sample.output.number("posts").ok()? + sample.output.number("before_them").ok()?;
        Some(sample.renders? as f64 / posts)
    };
    let renders = Spread::of(samples.iter().filter_map(renders_per_post));
    Ok(format!(
        "{} | {ratio} | {:.0} | {} | {} | {} | {} | {}",
        all(&cpu)?,
        all(&|sample| sample.output.number("waiting"))?.median,
        milliseconds("first")?,
        milliseconds("wire")?,
        milliseconds("last")?,
        milliseconds("hand")?,
        renders.map_or_else(|| "-".to_owned(), |renders| renders.to_string()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_patches_with_the_floor_of_the_same_round() {
        let sample = |cpu: u32, renders| {
            let times = "first50=500 first99=700 wire50=1000 wire99=2000";
            let later = "last50=2000 last99=3000 hand50=4000 hand99=5000";
            let counts = format!("posts=3 before_them=1 patches=10 cpu={cpu} waiting=99");
            let line = format!("{counts} {times} {later}");
            Sample { output: RunOutput { line }, renders }
        };
        let floors = [sample(10, None), sample(20, None)];
        let row = row(&[sample(12, Some(4)), sample(22, Some(4))], &floors).unwrap();
        assert!(row.starts_with("1.70 (1.20-2.20) | 1.15 (1.10-1.20) | 99 | 0.50 (0.50-0.50), "));
        assert!(row.ends_with("5.00 (5.00-5.00) | 1.00 (1.00-1.00)"), "{row}");
    }
}
