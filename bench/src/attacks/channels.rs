//! The memory of channels: messages to many channels at once, and channels created with a long
//! first body.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

use super::Assessment;
use super::network::{ask, attackers, client, posting, reach};
use super::scenes::{Stage, address, create_channel, kept, newcomer, outcome};
use super::trial::{Attack, Client, Outcome, Windows, run};
use crate::servers::Running;
use crate::tools::pause;

/// Channels get a quarter of the memory.
const OPTIONS: [&str; 6] =
    ["--channels-publish", "*", "--channels-manage", "*", "--most-memory", "4g"];
const BOUND: f64 = 1024.0;
/// The limit of channels per message.
const CHANNELS: usize = 64;
/// A batch: sixteen messages of nearly 1 MiB, nearly 16 MiB.
const MESSAGES: usize = 16;
const MESSAGE: usize = (1 << 20) - 1024;
/// The limit of messages that fill the space after two batches.
const FILLERS: usize = 100;
/// The number of channels created with a first body, and its length.
const MADE: usize = 100;
const BODY: usize = 16 << 20;
/// The server counts messages of an address per second.
const SECOND: Duration = Duration::from_millis(1100);
/// The allowed bytes on disk per byte in memory: current data, and the same amount of data that
/// awaits cleanup.
const ON_DISK: f64 = 2.0;

/// Two batches of 16 MiB to 64 channels.
pub(super) fn of_many_names(stage: &Stage) -> Result<Assessment> {
    measure(stage, stage.windows, |to| Box::new(move |stop| batches(to, stop)))
}

/// 100 channels, each created by a `PUT` with 16 MiB.
pub(super) fn of_first_bodies(stage: &Stage) -> Result<Assessment> {
    // A disk needs time to write 1.6 GB.
    let windows = Windows { attacked: stage.windows.attacked * 2, ..stage.windows };
    measure(stage, windows, |to| Box::new(move |stop| first_bodies(to, stop)))
}

/// Normal clients publish before and during the attack, and after a restart.
fn measure(
    stage: &Stage,
    windows: Windows,
    attack: impl FnOnce(SocketAddr) -> Attack<'static>,
) -> Result<Assessment> {
    let data = stage.workspace.work.join("channels-data");
    let folder = data.display().to_string();
    let options = [&OPTIONS[..], &["--data", &folder]].concat();
    let server = stage.serve(&options)?;
    let to = address(&server);
    create_channel(client(3), to, "news")?;
    let small = posting("/channels", r#"{"channels":"news","data":"It climbs."}"#);
    let clients = vec![kept(client(1), to, small.clone()), newcomer(client(2), to, small.clone())];
    let trial = run(&server, windows, clients, attack(to))?;
    let on_disk = size(&data)? as f64 / f64::from(1 << 20);
    let bound = stage.bound(BOUND);
    let mut assessment = Assessment::of(trial, bound, server);
    assessment.notes.push(format!("{on_disk:.0} MiB on disk"));
    if on_disk > bound * ON_DISK {
        assessment.faults.push(format!("{on_disk:.0} MiB on disk"));
    }
    if let Err(error) = restarted(stage, &options, &small, &mut assessment) {
        assessment.faults.push(format!("after a restart: {error:#}"));
    }
    fs::remove_dir_all(&data)?;
    Ok(assessment)
}

/// Starts the server again and publishes a message.
fn restarted(
    stage: &Stage,
    options: &[&str],
    small: &[u8],
    assessment: &mut Assessment,
) -> Result<()> {
    let server: Running = stage.serve(options)?;
    let memory = server.memory()?.resident as f64 / 1024.0;
    assessment.notes.push(format!("{memory:.0} MiB after a restart"));
    let mut publisher: Client<'_> = kept(client(1), address(&server), small.to_vec());
    let outcome = (publisher.request)()?;
    if let Outcome::Refused(status) = outcome {
        assessment.faults.push(format!("after a restart: a small message is answered {status}"));
    }
    server.stop()
}

fn batches(to: SocketAddr, stop: &AtomicBool) -> Result<String> {
    let mut from = attackers();
    let first = from.next().context("an attacker")?;
    let names: Vec<String> = (0..CHANNELS).map(|number| format!("channel{number}")).collect();
    for name in &names {
        create(first, to, name)?;
    }
    let names = names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(",");
    let data = "x".repeat(MESSAGE);
    let message = format!("{{\"channels\":[{names}],\"data\":\"{data}\"}}");
    let batch = format!("[{}]", vec![message; MESSAGES].join(","));
    let request = posting("/channels", &batch);
    let mut statuses = Vec::new();
    for from in from.by_ref().take(2) {
        statuses.push(sent(from, to, &request)?);
    }
    // Single messages of decreasing length fill the remaining space.
    let mut fillers = 0;
    let from: Vec<Ipv4Addr> = from.collect();
    let lengths = (0..=20).rev().map(|power| (1_usize << power).min(MESSAGE));
    for (length, from) in lengths.zip(from.iter().cycle()) {
        let message = format!("{{\"channels\":[{names}],\"data\":\"{}\"}}", "x".repeat(length));
        let request = posting("/channels", &message);
        while fillers < FILLERS && sent(*from, to, &request)?.starts_with('2') {
            fillers += 1;
        }
    }
    statuses.push(format!("then {fillers} single messages"));
    while !stop.load(Ordering::Relaxed) {
        pause(Duration::from_millis(10));
    }
    Ok(format!(
        "two batches of {} MiB to {CHANNELS} channels: {}",
        batch.len() >> 20,
        statuses.join(", ")
    ))
}

/// Publishes; returns the status and the server's message.
fn sent(from: Ipv4Addr, to: SocketAddr, request: &[u8]) -> Result<String> {
    let mut stream = reach(IpAddr::V4(from), to)?;
    // The server may respond and close before it has read the body.
    Ok(match ask(&mut stream, request) {
        Ok(answer) => description(&answer.body, answer.status),
        Err(error) => format!("{error:#}"),
    })
}

fn create(from: Ipv4Addr, to: SocketAddr, name: &str) -> Result<()> {
    let mut stream = reach(IpAddr::V4(from), to)?;
    let request = format!(
        "PUT /channels/{name} HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: 0\r\n\r\n"
    );
    ask(&mut stream, request.as_bytes()).map(drop)
}

fn first_bodies(to: SocketAddr, stop: &AtomicBool) -> Result<String> {
    let from: Vec<Ipv4Addr> = attackers().collect();
    let body = vec![b'x'; BODY];
    let (mut made, mut refused) = (0, Vec::new());
    for number in 0..MADE {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let mut request = format!(
            "PUT /channels/made{number} HTTP/1.1\r\nHost: a\r\nContent-Type: application/octet-stream\r\n\
             Content-Length: {BODY}\r\n\r\n"
        )
        .into_bytes();
        request.extend_from_slice(&body);
        let mut stream = reach(IpAddr::V4(from[number % from.len()]), to)?;
        match ask(&mut stream, &request) {
            Ok(answer) if matches!(outcome(answer.status), Ok(Outcome::Served)) => made += 1,
            Ok(answer) => {
                refused.push(description(&answer.body, answer.status));
                if answer.status == 429 {
                    pause(SECOND);
                }
            }
            Err(error) => refused.push(format!("{error:#}")),
        }
    }
    let first = refused.first().map_or(String::new(), |first| format!(", first {first}"));
    let text = format!(
        "{made} channels created with {} MiB each, {} refused{first}",
        BODY >> 20,
        refused.len()
    );
    while !stop.load(Ordering::Relaxed) {
        pause(Duration::from_millis(10));
    }
    Ok(text)
}

/// A status with the server's message.
fn description(body: &[u8], status: u16) -> String {
    let text =
        String::from_utf8_lossy(&body[..body.len().min(100)]).trim().replace(['\n', '|'], " ");
    if status < 300 { status.to_string() } else { format!("{status} {text}") }
}

/// The disk space of a folder, in bytes.
fn size(folder: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let data = entry.metadata()?;
        bytes += if data.is_dir() { size(&entry.path())? } else { data.blocks() * 512 };
    }
    Ok(bytes)
}
