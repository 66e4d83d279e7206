//! Decides how a server program is started, found, asked and ended.

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
    /// Told when the program has closed its output, which it does by ending.
    ended: mpsc::Receiver<String>,
}

impl Program {
    /// Starts a server and waits for the line that names its address.
    pub(super) fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", process::shown(&command)))?;
        let stdout = child.stdout.take().expect("stdout was asked to be a pipe above");
        let lines = lines(stdout);
        match first_address(&lines) {
            Ok(address) => Ok(Self { child, address, ended: lines }),
            Err(error) => {
                stop(&mut child);
                Err(error.context(process::shown(&command)))
            }
        }
    }

    /// Asks the program to end, as an operator would, and waits until it has.
    pub(super) fn end(mut self) -> Result<()> {
        let mut kill = Command::new("sh");
        process::run(kill.arg("-c").arg(format!("kill -TERM {}", self.child.id())))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.ended.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => bail!("still there after {PATIENCE:?}"),
            }
        }
        let status = self.child.wait()?;
        ensure!(status.success(), "{status}");
        Ok(())
    }

    /// The whole answer to one GET on a connection of its own.
    pub(super) fn get(&self, target: &str) -> Result<Answer> {
        self.ask("GET", target)
    }

    /// The whole answer to one request on a connection of its own.
    pub(super) fn ask(&self, method: &str, target: &str) -> Result<Answer> {
        self.ask_with(method, target, "")
    }

    /// The same with more fields, each a line with its end.
    pub(super) fn ask_with(&self, method: &str, target: &str, fields: &str) -> Result<Answer> {
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\n{fields}Connection: close\r\n\r\n"
        );
        Ok(Answer { bytes: exchange(self.address, request.as_bytes())? })
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
    // Both fail only when the child has already been waited for.
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
        let line = lines.recv_timeout(left).context("it never said where it listens")?;
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
    fn the_address_is_read_from_the_ready_line() {
        let address = address_in("listening on http://127.0.0.1:41397/");
        assert_eq!(address, Some(SocketAddr::from(([127, 0, 0, 1], 41397))));
        assert_eq!(address_in("listening on https://127.0.0.1:41397/"), address);
    }

    #[test]
    fn a_line_without_an_address_names_none() {
        assert_eq!(address_in("reading the configuration"), None);
    }

    #[test]
    fn a_program_that_ends_without_a_word_is_told_apart() {
        let told = Program::start(Command::new("true")).err().map(|error| format!("{error:#}"));
        assert!(told.is_some_and(|told| told.contains("never said where it listens")));
    }
}
