//! Starts, queries and stops a server program.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::exchange::{Answer, exchange};
use crate::process;

/// A start takes some milliseconds; a busy machine may need longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// One running server. Killed when dropped.
pub(super) struct Program {
    child: Child,
    address: SocketAddr,
    /// The lines of stdout. Disconnected when the program ends.
    lines: mpsc::Receiver<String>,
}

impl Program {
    /// Starts a server and waits for the line that names its address.
    pub(super) fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", process::command_line(&command)))?;
        let stdout = child.stdout.take().expect("stdout was configured as a pipe above");
        let lines = lines(stdout);
        match first_address(&lines) {
            Ok(address) => Ok(Self { child, address, lines }),
            Err(error) => {
                stop(&mut child);
                Err(error.context(process::command_line(&command)))
            }
        }
    }

    /// Sends SIGTERM and waits for the end of the program.
    pub(super) fn end(mut self) -> Result<()> {
        let mut kill = Command::new("sh");
        process::run(kill.arg("-c").arg(format!("kill -TERM {}", self.child.id())))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => bail!("still running after {PATIENCE:?}"),
            }
        }
        let status = self.child.wait()?;
        ensure!(status.success(), "{status}");
        Ok(())
    }

    /// Sends one GET on a new connection and returns the whole response.
    pub(super) fn get(&self, target: &str) -> Result<Answer> {
        self.ask("GET", target)
    }

    /// Sends one request on a new connection and returns the whole response.
    pub(super) fn ask(&self, method: &str, target: &str) -> Result<Answer> {
        self.ask_with(method, target, "")
    }

    /// Like [`ask`](Self::ask), with more header fields, each a line with its end.
    pub(super) fn ask_with(&self, method: &str, target: &str, fields: &str) -> Result<Answer> {
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\n{fields}Connection: close\r\n\r\n"
        );
        Ok(Answer { bytes: exchange(self.address, request.as_bytes())? })
    }

    /// The id of the program's process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.address)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

fn stop(child: &mut Child) {
    // Both calls fail only when the child has already been waited for.
    let _ = child.kill();
    let _ = child.wait();
}

/// The lines of a program's output, readable with a deadline.
fn lines(stdout: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn first_address(lines: &mpsc::Receiver<String>) -> Result<SocketAddr> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let line = lines.recv_timeout(left).context("it printed no address")?;
        if let Some(address) = address_in(&line) {
            return Ok(address);
        }
    }
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("listening on http")?;
    rest.split_once("://")?.1.split('/').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_address_from_the_ready_line() {
        let address = address_in("listening on http://127.0.0.1:41397/");
        assert_eq!(address, Some(SocketAddr::from(([127, 0, 0, 1], 41397))));
        assert_eq!(address_in("listening on https://127.0.0.1:41397/"), address);
    }

    #[test]
    fn ignores_a_line_without_an_address() {
        assert_eq!(address_in("reading the configuration"), None);
    }

    #[test]
    fn reports_a_program_that_ends_without_an_address() {
        let message = Program::start(Command::new("true")).err().map(|error| format!("{error:#}"));
        assert!(message.is_some_and(|message| message.contains("it printed no address")));
    }
}
