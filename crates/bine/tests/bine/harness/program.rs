//! Starts the program under test, waits until it is ready, and stops it.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use super::{PATIENCE, Peer};

/// A running program. Dropping the value kills it.
pub(crate) struct Program {
    child: Child,
    /// Standard output, line by line.
    lines: Receiver<String>,
    /// Standard error, sent once the program has ended.
    errors: Receiver<String>,
    addresses: Vec<String>,
}

/// The exit of a program.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    /// Standard output since the program was ready.
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Program {
    /// Starts a server and waits for its first address. The check of host names is off; its tests
    /// pass `--hosts`.
    pub(crate) fn start(command: &mut Command) -> Self {
        command.env("BINE_HOSTS", "any");
        let mut program = Self::spawn(command);
        program.await_address();
        program
    }

    /// Runs a program that ends by itself.
    pub(crate) fn run(command: &mut Command) -> Ended {
        Self::spawn(command).wait()
    }

    /// Spawns the program. The caller configures standard input, which may be a socket.
    fn spawn(command: &mut Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap_or_else(|error| {
                panic!("cannot start {}: {error}", command.get_program().display())
            });
        let output = BufReader::new(child.stdout.take().unwrap());
        let (line, lines) = channel();
        thread::spawn(move || {
            for text in output.lines().map_while(Result::ok) {
                // A test that no longer needs the output drops the receiver.
                let _ = line.send(text);
            }
        });
        let mut errors = child.stderr.take().unwrap();
        let (told, told_errors) = channel();
        thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.read_to_end(&mut text);
            let _ = told.send(String::from_utf8_lossy(&text).into_owned());
        });
        Self { child, lines, errors: told_errors, addresses: Vec::new() }
    }

    /// Waits for the next address and returns it as printed.
    pub(crate) fn await_address(&mut self) -> String {
        let address = self.await_line("listening on ");
        self.addresses.push(address.clone());
        address
    }

    /// Waits for a line that contains `mark` and returns the text after it.
    pub(crate) fn await_line(&mut self, mark: &str) -> String {
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                let _ = self.child.kill();
                let errors = self.errors.recv_timeout(PATIENCE).unwrap_or_default();
                panic!("no line {mark:?}; on standard error: {errors}");
            };
            if let Some((_, behind)) = line.split_once(mark) {
                return behind.to_owned();
            }
        }
    }

    /// Returns all addresses that the test has waited for, as printed.
    pub(crate) fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Returns the first TCP address.
    pub(crate) fn address(&self) -> SocketAddr {
        let mut tcp = self
            .addresses
            .iter()
            .filter_map(|address| address.split_once("://")?.1.strip_suffix('/')?.parse().ok());
        tcp.next().unwrap()
    }

    pub(crate) fn connect(&self) -> Peer {
        Peer::tcp(self.address())
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends SIGTERM and waits for the exit.
    pub(crate) fn stop(self) -> Ended {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Kills the program, to simulate a crash.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the exit.
    pub(crate) fn wait(mut self) -> Ended {
        let Ok(errors) = self.errors.recv_timeout(PATIENCE) else {
            panic!("the program does not end");
        };
        let code = self.child.wait().unwrap().code();
        let output = self.lines.iter().map(|line| line + "\n").collect();
        Ended { code, output, errors }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The program may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
