//! Kills servers under load and measures their restart; or kills writers and checks that
//! acknowledged writes survive.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::arguments::Arguments;
use crate::figures::{Spread, milliseconds};
use crate::machine;
use crate::random::Random;
use crate::servers::{Content, Server, free_port};
use crate::tools::{Workspace, cargo, move_to_core_1, pause, require};

/// Kills servers, or the writers chosen by the option.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match arguments.names("--through").as_deref() {
        None => servers(arguments),
        Some(["store"]) => writers("store", arguments.number("--times", 1000)?),
        Some(["journal"]) => writers("journal", arguments.number("--times", 1000)?),
        Some(_) => bail!("--through must be store or journal"),
    }
}

/// Runs the crash test of the store `times` times; the test itself checks the recovered data.
fn writers(through: &str, times: u64) -> Result<()> {
    let facts = machine::facts();
    let begun = Instant::now();
    let mut command = cargo();
    command.args(["test", "--release", "--quiet", "--package", "bine-store", "--test", through]);
    command.args(["--", "--nocapture", "kills::keeps_acknowledged"]);
    let output = command.env("BINE_KILLS", times.to_string()).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "acknowledged data was lost after a kill:\n{text}");
    let found = text.lines().find(|line| line.contains("torn ends") || line.contains("changes of"));
    let found = found.context("the test printed no result")?;
    let seconds = begun.elapsed().as_secs();
    println!(
        "{facts}\n\n| written through | kills | found | seconds |\n|---|---|---|---|\n| {through} | {times} | {found} | {seconds} |"
    );
    Ok(())
}

/// Loads, kills and restarts each server repeatedly on one port.
fn servers(arguments: &Arguments) -> Result<()> {
    let offered = [Server::Bine, Server::Nginx, Server::Hyper];
    let servers = Server::chosen(arguments, &offered, &offered[..1])?;
    let times = arguments.number("--times", 50)?;
    let seed = arguments.number("--seed", 1)?;
    require("wrk", "wrk")?;
    require("chrt", "util-linux")?;
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    for server in &servers {
        server.build(&workspace, Content::Page)?;
    }
    move_to_core_1()?;
    println!(
        "{facts}\n\n| server | kills | failed starts | first response after, ms (least-most) |\n|---|---|---|---|"
    );
    let mut failures = 0;
    for server in servers {
        let port = free_port()?;
        let mut random = Random(seed);
        let mut again = Vec::new();
        let mut failed = 0;
        let mut running = server.start(&workspace, Content::Page, port)?;
        for time in 1..=times {
            let load = Load::start(port)?;
            pause(Duration::from_millis(100 + random.below(401)));
            running.kill()?;
            // The load continues, so that it is there when the new server starts.
            let started = server.start(&workspace, Content::Page, port);
            drop(load);
            running = match started {
                Ok(running) => {
                    eprintln!(
                        "{} kill {time}/{times}: {} ms",
                        server.name(),
                        milliseconds(running.ready_after)
                    );
                    again.push(running.ready_after.as_secs_f64() * 1e3);
                    running
                }
                Err(error) => {
                    eprintln!("{} kill {time}/{times}: {error:#}", server.name());
                    failed += 1;
                    server.start(&workspace, Content::Page, port)?
                }
            };
        }
        running.stop()?;
        let spread = Spread::of(again).context("no start succeeded")?;
        println!("| {} | {times} | {failed} | {spread} |", server.name());
        failures += failed;
    }
    ensure!(failures == 0, "{failures} starts failed");
    Ok(())
}

/// A running wrk with the lowest priority.
struct Load(Child);

impl Load {
    fn start(port: u16) -> Result<Self> {
        let url = format!("http://127.0.0.1:{port}{}", Content::Page.path());
        let child = Command::new("setpriv")
            .args([
                "--pdeathsig",
                "KILL",
                "chrt",
                "--idle",
                "0",
                "wrk",
                "-t1",
                "-c64",
                "-d60",
                &url,
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self(child))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Killing fails only if it has already ended, and then waiting succeeds.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
