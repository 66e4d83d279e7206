//! Live pages: attackers request a page that computes for 10 ms in a loop, and patches of a
//! different page are timed.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Assessment;
use super::network::{ask, attackers, client, posting, reach, read};
use super::scenes::{LITTLE, Stage, address, attack, get, newcomer, outcome};
use super::trial::{Client, Outcome, run};
use crate::crowd::{Crowd, Habit, UNPACED};
use crate::servers::{Running, free_port};
use crate::tools::pause;

/// The interval of writes, each followed by a wait for its patch.
const INTERVAL: Duration = Duration::from_millis(50);
/// The subscribed page, and the address of writes that change it.
const PAGE: &str = "/wall/200";
const WRITE: &str = "/wall/write";
const LINE: &str = r#"{"words":"What is written here is read by all who look at this wall."}"#;
/// The attackers' page computes for 10 ms; the hash of their region is wrong, so that the server
/// renders it.
const COSTLY: &str = "/_bine/live?page=%2Fcompute%2F10&have=0.0000000000000001";

/// The number of connections that poll once and close.
const LEAVERS: usize = 400;
/// The CPU time that the server may use after they have closed: for running work, for closing 400
/// connections, and for normal clients.
const CPU_AFTERWARDS: f64 = 0.5;

/// 256 connections from one address.
pub(super) fn of_256(stage: &Stage) -> Result<Assessment> {
    polls(stage, 256)
}

/// 1 500 connections from one address, with a limit that allows them.
pub(super) fn of_1500(stage: &Stage) -> Result<Assessment> {
    polls(stage, 1500)
}

fn polls(stage: &Stage, connections: usize) -> Result<Assessment> {
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
    Ok(Assessment::of(trial, stage.bound(LITTLE), server))
}

/// 400 connections request the costly page and close at once. Their renders must be cancelled.
pub(super) fn of_leavers(stage: &Stage) -> Result<Assessment> {
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
    let extra = attacked - calm * stage.windows.attacked.as_secs_f64();
    let mut assessment = Assessment::of(trial, stage.bound(LITTLE), server);
    let text = format!("{extra:.2} s of CPU for closed connections");
    if extra > CPU_AFTERWARDS {
        assessment.faults.push(text.clone());
    }
    assessment.notes.push(text);
    Ok(assessment)
}

/// Starts the example `wall` on all cores, so that other requests get CPU time while a page
/// computes.
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

/// Subscribes to the page on one connection and writes lines on a second one.
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

    /// Writes a line and waits for the patch with it.
    fn write(&mut self) -> Result<Outcome> {
        let answer = ask(&mut self.writer, &posting(WRITE, LINE))?;
        let outcome = outcome(answer.status)?;
        if matches!(outcome, Outcome::Served) {
            self.read_until("event: patch")?;
        }
        Ok(outcome)
    }

    /// Reads until `mark` has arrived.
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

/// The regions of a page with their hashes, in the format of the script.
fn have(page: &str) -> String {
    let ends = page.split("<!--/live ").skip(1).filter_map(|rest| rest.split_once("-->"));
    ends.map(|(end, _)| end.replace(' ', ".")).collect::<Vec<_>>().join(",")
}
