//! Live pages: one page that computes for 10 ms is asked for in a loop while the patches of another are timed.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Judged;
use super::crowd::{Crowd, Habit, UNPACED};
use super::network::{ask, attackers, client, posting, reach, read};
use super::scenes::{LITTLE, Stage, address, attack, get, newcomer, outcome};
use super::trial::{Client, Outcome, run};
use crate::servers::{Running, free_port};
use crate::tools::pause;

/// How often a line is written, whose patch is waited for.
const INTERVAL: Duration = Duration::from_millis(50);
/// The page that is followed, and where a line is written that changes it.
const PAGE: &str = "/wall/200";
const WRITE: &str = "/wall/write";
const LINE: &str = r#"{"words":"What is written here is read by all who look at this wall."}"#;
/// The attackers' page computes for 10 ms; they show another region than it has, so that it is rendered.
const COSTLY: &str = "/_bine/live?page=%2Fcompute%2F10&have=0.0000000000000001";

/// The connections that poll once and leave.
const LEAVERS: usize = 400;
/// After they have left, the server may use this much CPU time for them: for what was under way, for 400
/// connections, and for normal clients.
const CPU_AFTERWARDS: f64 = 0.5;

/// 256 connections of one address.
pub(super) fn of_256(stage: &Stage) -> Result<Judged> {
    polls(stage, 256)
}

/// 1 500 connections of one address, which is given a share of connections that large.
pub(super) fn of_1500(stage: &Stage) -> Result<Judged> {
    polls(stage, 1500)
}

fn polls(stage: &Stage, connections: usize) -> Result<Judged> {
    let server = start(stage)?;
    let to = address(&server);
    let crowd = Crowd {
        from: vec![IpAddr::V4(attacker()?)],
        to,
        connections,
        rate: 2000,
        pace: UNPACED,
        opening: get(COSTLY),
        filler: 0,
        habit: Habit::Loop,
    };
    let trial = run(&server, stage.windows, clients(to), attack(crowd))?;
    Ok(Judged::of(trial, stage.bound(LITTLE), server))
}

/// 400 connections ask for the costly page and close at once. Renders for them must be cancelled.
pub(super) fn of_leavers(stage: &Stage) -> Result<Judged> {
    let server = start(stage)?;
    let to = address(&server);
    let from = IpAddr::V4(attacker()?);
    let leave = move |stop: &AtomicBool| {
        for _ in 0..LEAVERS {
            let mut stream = reach(from, to)?;
            stream.write_all(&get(COSTLY))?;
        }
        while !stop.load(Ordering::Relaxed) {
            pause(Duration::from_millis(10));
        }
        Ok(format!("{LEAVERS} polls, closed at once"))
    };
    let trial = run(&server, stage.windows, clients(to), Box::new(leave))?;
    let all = stage.windows.calm + stage.windows.attacked;
    let calm = trial.cpu(Duration::ZERO, stage.windows.calm) / stage.windows.calm.as_secs_f64();
    let attacked = trial.cpu(stage.windows.calm, all);
    let for_them = attacked - calm * stage.windows.attacked.as_secs_f64();
    let mut judged = Judged::of(trial, stage.bound(LITTLE), server);
    let text = format!("{for_them:.2} s of CPU for those who left");
    if for_them > CPU_AFTERWARDS {
        judged.faults.push(text.clone());
    }
    judged.notes.push(text);
    Ok(judged)
}

/// The example `wall`, on all cores: a page that computes has to leave room for others somewhere.
fn start(stage: &Stage) -> Result<Running> {
    let port = free_port()?;
    let listen = format!("0.0.0.0:{port},backlog=4096");
    let mut command: Vec<String> = ["taskset", "--cpu-list", "0,1"].map(String::from).into();
    command.push(stage.program("wall"));
    let options = ["--listen", &listen, "--data", "memory", "--access-log", "off"];
    let shares = ["--connections-per-address", "4096", "--channels-holds-per-address", "4096"];
    command.extend(options.into_iter().chain(shares).map(String::from));
    Running::start(&command, port, "/made", &stage.log(port))
}

fn attacker() -> Result<Ipv4Addr> {
    attackers().next().context("an attacker")
}

fn clients<'run>(to: SocketAddr) -> Vec<Client<'run>> {
    let mut viewer = None;
    let patched = move || {
        let mut watching = match viewer.take() {
            Some(viewer) => viewer,
            None => Viewer::join(to)?,
        };
        let outcome = watching.write()?;
        viewer = Some(watching);
        Ok(outcome)
    };
    let viewer = Client { name: "patch", interval: INTERVAL, request: Box::new(patched) };
    vec![viewer, newcomer(client(2), to, get("/made"))]
}

/// Follows the page on one connection and writes lines on another.
struct Viewer {
    stream: TcpStream,
    writer: TcpStream,
}

impl Viewer {
    fn join(to: SocketAddr) -> Result<Self> {
        let from = IpAddr::V4(client(1));
        let mut writer = reach(from, to)?;
        let page = ask(&mut writer, &get(PAGE))?;
        let have = have(&String::from_utf8_lossy(&page.body));
        ensure!(!have.is_empty(), "{PAGE} has no live region");
        let page = PAGE.replace('/', "%2F");
        let mut stream = reach(from, to)?;
        let target = format!("/_bine/live?page={page}&have={have}");
        write!(
            stream,
            "GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
        )?;
        let mut viewer = Self { stream, writer };
        viewer.read_until("\r\n\r\n")?;
        Ok(viewer)
    }

    /// Writes a line and waits for the patch that shows it.
    fn write(&mut self) -> Result<Outcome> {
        let answer = ask(&mut self.writer, &posting(WRITE, LINE))?;
        let outcome = outcome(answer.status)?;
        if matches!(outcome, Outcome::Served) {
            self.read_until("event: patch")?;
        }
        Ok(outcome)
    }

    /// Reads all that has come once `mark` is in it.
    fn read_until(&mut self, mark: &str) -> Result<()> {
        let mut bytes = Vec::new();
        let mut chunk = [0; 16384];
        loop {
            let count =
                read(&mut self.stream, &mut chunk).with_context(|| format!("no `{mark}`"))?;
            ensure!(count > 0, "the stream was closed");
            bytes.extend_from_slice(&chunk[..count]);
            let text = String::from_utf8_lossy(&bytes);
            let status = text.get(9..12).filter(|_| text.starts_with("HTTP/1.1 "));
            ensure!(status.is_none_or(|status| status == "200"), "not followed: {status:?}");
            if text.contains(mark) {
                return Ok(());
            }
        }
    }
}

/// The regions of a page with their hashes, as its script sends them.
fn have(page: &str) -> String {
    let ends = page.split("<!--/live ").skip(1).filter_map(|rest| rest.split_once("-->"));
    ends.map(|(end, _)| end.replace(' ', ".")).collect::<Vec<_>>().join(",")
}
