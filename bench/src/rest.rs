//! Checks that a server still answers, times out and stops after a long time without traffic.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail, ensure};

use crate::arguments::Arguments;
use crate::machine;
use crate::peer::{Peer, address};
use crate::servers::{Content, Running, Server, free_port};
use crate::tools::{Workspace, move_to_core_1, pause};

const FILE: Content = Content::File(1024);

/// The schedulers whose threads run event loops.
const SCHEDULERS: [&str; 3] = ["hybrid", "event", "cohort"];

/// The server's `head-timeout`: the deadline of an incomplete request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The highest accepted delay of the server's close after the deadline.
const LATENESS: Duration = Duration::from_secs(5);
/// The length of the CPU measurement after the server was used.
const AFTERWARDS: Duration = Duration::from_secs(5);
/// The CPU time that an idle server may use per minute, and in any period, in seconds. The kernel
/// reports hundredths.
const CPU_A_MINUTE: f64 = 0.03;
const CPU_AT_ALL: f64 = 0.05;

/// Starts one server per scheduler, lets all servers idle for the same time, then uses each
/// server in turn. Prints a row per server and fails if a server failed.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let minutes = arguments.number("--minutes", 60)?;
    let names = arguments.names("--only").unwrap_or_else(|| SCHEDULERS.to_vec());
    let workspace = Workspace::open()?;
    workspace.make_file(1024)?;
    let program = match arguments.word("--program") {
        Some(program) => program.to_owned(),
        None => {
            Server::Bine.build(&workspace, FILE)?;
            workspace.bine("bine").display().to_string()
        }
    };
    move_to_core_1()?;
    println!("{}\n", machine::facts());
    let files = workspace.files().display().to_string();
    let mut resting = Vec::new();
    for name in names {
        let port = free_port()?;
        let listen = address(port).to_string();
        let head_timeout = format!("{}s", HEAD_TIMEOUT.as_secs());
        let mut command = vec![program.clone()];
        command.extend(["serve", &files, "--listen", &listen, "--loops", "1"].map(String::from));
        command.extend(["--scheduler", name, "--head-timeout", &head_timeout].map(String::from));
        let log = workspace.work.join(format!("rest-{name}.log"));
        let server = Running::start(&command, port, &FILE.path(), &log)?;
        let used = server.cpu()?;
        resting.push((name, server, used));
    }
    eprintln!("{} servers stay idle for {minutes} min", resting.len());
    pause(Duration::from_secs(60 * minutes));
    println!(
        "| scheduler | idle CPU, s | first response, ms | incomplete request closed after, s | later responses, ms: \
         kept, new | CPU of {} s afterwards, s | stopped after, s | verdict |\n|---|---|---|---|---|---|---|---|",
        AFTERWARDS.as_secs()
    );
    let mut failed = Vec::new();
    for (name, mut server, before) in resting {
        let at_rest = server.cpu()? - before;
        let ended = server.ended()?;
        let used = use_and_stop(server);
        let cells = used.cells.join(" | ");
        let fault = match used.fault {
            _ if at_rest > CPU_AT_ALL + CPU_A_MINUTE * minutes as f64 => {
                Some("too much CPU time while idle".to_owned())
            }
            Some(_) if ended.is_some() => {
                ended.map(|status| format!("the server had ended by itself: {status}"))
            }
            fault => fault.map(|fault| format!("{fault:#}")),
        };
        let verdict = fault.as_deref().unwrap_or("ok");
        println!("| {name} | {at_rest:.2} | {cells} | {verdict} |");
        if fault.is_some() {
            let log = workspace.work.join(format!("rest-{name}.log"));
            eprintln!("log of {name}:\n{}", fs::read_to_string(log)?);
        }
        failed.extend(fault.map(|fault| format!("{name}: {fault}")));
    }
    ensure!(failed.is_empty(), "after {minutes} min without traffic: {}", failed.join("; "));
    println!("\nAll servers answered, timed out and stopped after {minutes} min without traffic.");
    Ok(())
}

/// The figures of one server after its idle time, as table cells, and its first failure.
struct Used {
    cells: [String; 5],
    fault: Option<anyhow::Error>,
}

/// Repeats a sequence that once made a timer wheel spin: after an idle time, one kept connection
/// and one with an incomplete request, until the deadline of the second has passed.
fn use_and_stop(server: Running) -> Used {
    let mut cells = std::array::from_fn(|_| "-".to_owned());
    let mut fault = check(&server, &mut cells).err();
    let begun = Instant::now();
    match server.stop() {
        Ok(()) => cells[4] = seconds(begun.elapsed()),
        Err(error) => {
            fault =
                Some(fault.map_or(error, |first| anyhow!("{first:#}; SIGTERM did not stop it")));
        }
    }
    Used { cells, fault }
}

fn check(server: &Running, cells: &mut [String; 5]) -> Result<()> {
    let path = FILE.path();
    let begun = Instant::now();
    let mut kept = Peer::connect(server.port)?;
    kept.get(&path)?;
    cells[0] = crate::figures::milliseconds(begun.elapsed());
    let half = incomplete_request(server.port);
    if let Ok(time) = half {
        cells[1] = seconds(time);
    }
    let timed = |peer: &mut Peer| -> Result<String> {
        let begun = Instant::now();
        peer.get(&path)?;
        Ok(crate::figures::milliseconds(begun.elapsed()))
    };
    let of_kept = timed(&mut kept);
    let of_new = Peer::connect(server.port).and_then(|mut peer| timed(&mut peer));
    let cell = |time: &Result<String>| time.as_ref().map_or("none", String::as_str).to_owned();
    cells[2] = format!("{}, {}", cell(&of_kept), cell(&of_new));
    let before = server.cpu()?;
    pause(AFTERWARDS);
    let used = server.cpu()? - before;
    cells[3] = format!("{used:.2}");
    half?;
    of_kept?;
    of_new?;
    ensure!(used <= CPU_AT_ALL, "{used:.2} s of CPU in {AFTERWARDS:?} without traffic");
    Ok(())
}

/// Sends an incomplete request; returns the time until the server closed the connection.
fn incomplete_request(port: u16) -> Result<Duration> {
    let mut stream = TcpStream::connect(address(port))?;
    stream.set_read_timeout(Some(HEAD_TIMEOUT + LATENESS))?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nX-Half: ")?;
    let begun = Instant::now();
    let mut answer = [0; 4096];
    loop {
        match stream.read(&mut answer) {
            Ok(0) => break,
            // A 408 before the close.
            Ok(_) => {}
            Err(error) => {
                bail!("an incomplete request was still open after {:?}: {error}", begun.elapsed())
            }
        }
    }
    let time = begun.elapsed();
    ensure!(
        time + Duration::from_secs(1) > HEAD_TIMEOUT,
        "an incomplete request was closed early, after {time:?}"
    );
    Ok(time)
}

fn seconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64())
}
