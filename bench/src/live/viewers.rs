//! Decides how those are measured who look at a page while it changes: beside a loop that sends them the same bytes.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{HELLO, LINE, command};
use crate::figures::Spread;
use crate::followers::{Told, processes};
use crate::peer::{Peer, address};
use crate::servers::{Running, free_port};
use crate::tools::{Workshop, output, pause};

/// What is measured, and how often.
pub(super) struct Plan {
    /// Of viewers.
    pub(super) counts: Vec<u64>,
    /// Of what a region shows, in bytes.
    pub(super) lengths: Vec<u64>,
    pub(super) posts: u64,
    /// Milliseconds.
    pub(super) interval: u64,
    pub(super) rounds: u64,
}

/// How often the wall was made.
const MADE: &str = "/made";
/// Where a line is written.
const WRITE: &str = "/wall/write";
/// Whoever says nothing for so long has said all.
const SILENCE: Duration = Duration::from_millis(300);

/// Who tells the viewers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Teller {
    /// A loop that sends what it has to all sockets, and no more.
    Floor,
    Bine,
}

/// One run of `viewers`, and how often the page was made for it.
struct Sample {
    told: Told,
    made: Option<u64>,
}

/// Prints what it costs that viewers see changes.
pub(super) fn run(shop: &Workshop, plan: &Plan) -> Result<()> {
    let viewers = shop.compile("viewers", &[])?;
    shop.compile("fan", &[])?;
    println!(
        "\n{} posts, one every {} ms at the most; medians of {} rounds (least-most); milliseconds from before a post is \
         sent until the kernel has its patch for the first viewer, for each, for the last, and until it is read.\n\n\
         | viewers | bytes of a patch | on | CPU, us a patch | x floor | user memory for each | first: p50, p99 | each: \
         p50, p99 | last: p50, p99 | read: p50, p99 | pages made, of one post |\n\
         |---|---|---|---|---|---|---|---|---|---|---|",
        plan.posts, plan.interval, plan.rounds
    );
    for &count in &plan.counts {
        for &length in &plan.lengths {
            let patch = patch(shop, length)?;
            let file = shop.work.join("patch");
            fs::write(&file, &patch)?;
            let (mut floors, mut bines) = (Vec::new(), Vec::new());
            for _ in 0..plan.rounds {
                for (teller, all) in [(Teller::Floor, &mut floors), (Teller::Bine, &mut bines)] {
                    let sample = teller.measure(shop, &viewers, plan, [count, length], &file)?;
                    eprintln!("{count} viewers on {}: {}", teller.name(), sample.told.line);
                    all.push(sample);
                }
            }
            for (teller, all) in [(Teller::Floor, &floors), (Teller::Bine, &bines)] {
                let row = row(all, &floors)?;
                println!("| {count} | {} | {} | {row} |", patch.len(), teller.name());
            }
        }
    }
    Ok(())
}

impl Teller {
    const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Bine => "bine",
        }
    }

    fn measure(
        self,
        shop: &Workshop,
        viewers: &Path,
        plan: &Plan,
        [count, length]: [u64; 2],
        patch: &Path,
    ) -> Result<Sample> {
        let port = free_port()?;
        let log = shop.work.join(format!("live-{port}.log"));
        let running = match self {
            Self::Floor => {
                let fan = shop.target.join("bench/fan").display().to_string();
                let words = [fan, port.to_string(), patch.display().to_string()];
                Running::start(&words, port, HELLO, &log)?
            }
            Self::Bine => Running::start(&command(shop, "wall", port, "memory"), port, MADE, &log)?,
        };
        let join = match self {
            Self::Floor => "/follow".to_owned(),
            Self::Bine => join(port, length)?,
        };
        let made = |running: &Running| match self {
            Self::Floor => Ok(None),
            Self::Bine => made(running.port).map(Some),
        };
        let before = made(&running)?;
        let mut command = Command::new(viewers);
        command.args([port.to_string(), count.to_string(), plan.posts.to_string()]);
        command.arg((plan.interval * 1000).to_string());
        command.arg(fs::metadata(patch)?.len().to_string());
        command.args([&processes(&running)?, &join, WRITE, LINE]);
        let line = output(&mut command).with_context(|| format!("{count} on {}", self.name()))?;
        let told = Told { line: line.trim().to_owned() };
        // One for the first who comes; all others look at the same.
        let made = made(&running)?.zip(before).map(|(after, before)| after - before - 1);
        running.stop()?;
        Ok(Sample { told, made })
    }
}

/// What a patch looks like on the wire, when the wall has so many bytes.
fn patch(shop: &Workshop, length: u64) -> Result<Vec<u8>> {
    let port = free_port()?;
    let log = shop.work.join(format!("live-{port}.log"));
    let running = Running::start(&command(shop, "wall", port, "memory"), port, MADE, &log)?;
    let mut stream = TcpStream::connect(address(port))?;
    let target = join(port, length)?;
    let accept = "Accept: text/event-stream";
    write!(stream, "GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{accept}\r\n\r\n")?;
    stream.set_read_timeout(Some(SILENCE))?;
    let head = all_there_is(&mut stream);
    ensure!(head.starts_with(b"HTTP/1.1 200"), "not let in: {}", String::from_utf8_lossy(&head));
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

/// Where those follow the wall who show it as it is.
fn join(port: u16, length: u64) -> Result<String> {
    let mut peer = Peer::connect(port)?;
    let path = format!("/wall/{length}");
    let page = peer.get(&path)?;
    let have = have(&String::from_utf8_lossy(page));
    ensure!(!have.is_empty(), "nothing lives at {path}");
    // Where the page reads what was committed of late, it is made once more.
    pause(SILENCE);
    Ok(format!("/_bine/live?page={}&have={have}", path.replace('/', "%2F")))
}

/// The regions of a page with their hashes, as its script tells them.
fn have(page: &str) -> String {
    let ends = page.split("<!--/live ").skip(1).filter_map(|rest| rest.split_once("-->"));
    ends.map(|(end, _)| end.replace(' ', ".")).collect::<Vec<_>>().join(",")
}

fn made(port: u16) -> Result<u64> {
    let mut peer = Peer::connect(port)?;
    let answer = String::from_utf8_lossy(peer.get(MADE)?).into_owned();
    let (_, body) = answer.rsplit_once("\r\n").context("an answer without a head")?;
    Ok(body.trim().parse()?)
}

/// What is told of some samples, each beside the floor's of the same round.
fn row(samples: &[Sample], floors: &[Sample]) -> Result<String> {
    let cpu = |sample: &Sample| -> Result<f64> {
        Ok(sample.told.number("cpu")? / sample.told.number("patches")?)
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
            |part: &str| all(&|sample| Ok(sample.told.number(&format!("{name}{part}"))? / 1e3));
        Ok(format!("{}, {}", of("50")?, of("99")?))
    };
    let made = |sample: &Sample| -> Option<f64> {
        let posts = sample.told.number("posts").ok()? + sample.told.number("before_them").ok()?;
        Some(sample.made? as f64 / posts)
    };
    let made = Spread::of(samples.iter().filter_map(made));
    Ok(format!(
        "{} | {ratio} | {:.0} | {} | {} | {} | {} | {}",
        all(&cpu)?,
        all(&|sample| sample.told.number("waiting"))?.median,
        milliseconds("first")?,
        milliseconds("wire")?,
        milliseconds("last")?,
        milliseconds("hand")?,
        made.map_or_else(|| "-".to_owned(), |made| made.to_string()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_shows_is_told_by_the_ends_of_its_regions() {
        let page =
            "<!--live 0--><p>a</p><!--/live 0 a1b2c3d4e5f60718--> <!--live 1--><!--/live 1 00-->";
        assert_eq!(have(page), "0.a1b2c3d4e5f60718,1.00");
        assert_eq!(have("<p>still</p>"), "");
    }

    #[test]
    fn a_patch_is_compared_with_the_floors_of_the_same_round() {
        let sample = |cpu: u32, made| {
            let times = "first50=500 first99=700 wire50=1000 wire99=2000";
            let later = "last50=2000 last99=3000 hand50=4000 hand99=5000";
            let counts = format!("posts=3 before_them=1 patches=10 cpu={cpu} waiting=99");
            let line = format!("{counts} {times} {later}");
            Sample { told: Told { line }, made }
        };
        let floors = [sample(10, None), sample(20, None)];
        let row = row(&[sample(12, Some(4)), sample(22, Some(4))], &floors).unwrap();
        assert!(row.starts_with("1.70 (1.20-2.20) | 1.15 (1.10-1.20) | 99 | 0.50 (0.50-0.50), "));
        assert!(row.ends_with("5.00 (5.00-5.00) | 1.00 (1.00-1.00)"), "{row}");
    }
}
