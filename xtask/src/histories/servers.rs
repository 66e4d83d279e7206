//! The processes of a cluster: NATS servers, and nodes of the program.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::http::{Connection, Request};
use super::machines::Machine;
use crate::process;

/// A server process, which is started again after a crash.
pub(super) struct Server {
    pub(super) name: String,
    pub(super) machine: Machine,
    pub(super) address: SocketAddr,
    program: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    log: PathBuf,
    child: Option<Child>,
    is_paused: bool,
}

/// The parameters for the start of a server.
pub(super) struct Launch {
    pub(super) name: String,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) variables: Vec<(String, String)>,
    pub(super) folder: PathBuf,
}

/// The longest wait for an answer to a check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);

impl Server {
    pub(super) fn new(machine: Machine, address: SocketAddr, launch: Launch) -> Self {
        let Launch { name, program, arguments, variables, folder } = launch;
        let log = folder.join(format!("{name}.log"));
        let (child, is_paused) = (None, false);
        Self { name, machine, address, program, arguments, variables, log, child, is_paused }
    }

    /// Starts the process, if it does not run.
    pub(super) fn start(&mut self) -> Result<()> {
        if self.is_running() {
            return Ok(());
        }
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        let mut command = self.machine.command(&self.program);
        command.args(&self.arguments).envs(self.variables.clone());
        command.stdout(log.try_clone()?).stderr(log);
        let child = command.spawn();
        let line = || format!("cannot start {}", process::command_line(&command));
        self.child = Some(child.with_context(line)?);
        self.is_paused = false;
        Ok(())
    }

    /// Whether the process runs.
    pub(super) fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Ends the process without a warning.
    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The calls fail only if it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops the process without closing its connections.
    pub(super) fn pause(&mut self) -> Result<()> {
        self.is_paused = true;
        self.signal("-STOP")
    }

    /// Lets a paused process continue.
    pub(super) fn resume(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_paused) {
            return Ok(());
        }
        self.signal("-CONT")
    }

    fn signal(&mut self, signal: &str) -> Result<()> {
        let Some(child) = self.child.as_ref() else { return Ok(()) };
        let id = child.id().to_string();
        process::run(Command::new("kill").args([signal, &id]))
    }

    /// Whether a node is ready: it follows the stream.
    pub(super) fn is_ready(&self) -> bool {
        let request = Request { method: "GET", target: "/ready", ..Request::default() };
        let response = Connection::new(self.address, CHECK_TIMEOUT).send(&request);
        response.is_ok_and(|response| response.status == 200)
    }

    /// Whether a NATS server greets a client.
    pub(super) fn greets(&self) -> bool {
        let mut greeting = [0; 4];
        TcpStream::connect_timeout(&self.address, CHECK_TIMEOUT).is_ok_and(|mut stream| {
            stream.set_read_timeout(Some(CHECK_TIMEOUT)).is_ok()
                && stream.read_exact(&mut greeting).is_ok()
                && greeting == *b"INFO"
        })
    }

    /// The last lines of the log.
    pub(super) fn last_lines(&self, count: usize) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }

    /// Puts a line of the verification into the log.
    pub(super) fn note(&self, line: &str) {
        let log = OpenOptions::new().append(true).open(&self.log);
        if let Ok(mut log) = log {
            // Only a reader of the log misses the line.
            let _ = writeln!(log, "--- {line}");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A disk of limited size for the files of one server.
pub(super) struct SmallDisk {
    folder: PathBuf,
    filler: PathBuf,
}

impl SmallDisk {
    /// Mounts a disk in memory at this folder.
    pub(super) fn mount(folder: &Path, bytes: u64) -> Result<Self> {
        let mut mount = Command::new("mount");
        let size = format!("size={bytes}");
        process::run(mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder))?;
        Ok(Self { folder: folder.to_owned(), filler: folder.join("filler") })
    }

    /// Writes until no byte is free.
    pub(super) fn fill(&self) -> Result<()> {
        let mut file = File::create(&self.filler)?;
        let (block, mut written) = (vec![0; 1 << 16], 0_u64);
        while file.write(&block).is_ok_and(|count| count > 0) {
            written += 1 << 16;
            ensure!(written < 16 << 30, "the disk at {} has no limit", self.folder.display());
        }
        Ok(())
    }

    /// Frees the space that [`fill`](Self::fill) has taken.
    pub(super) fn free(&self) -> Result<()> {
        Ok(fs::remove_file(&self.filler)?)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The namespace removes it otherwise.
        let _ = process::run(Command::new("umount").arg(&self.folder));
    }
}
