//! The tracer of system calls, `strace`, on a running server.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::process;

/// A tracer that is attached to a process and its threads, also later ones.
pub(super) struct Tracer {
    program: Child,
    /// Open while the tracer runs: it would end if it could not report a new thread.
    _messages: BufReader<ChildStderr>,
}

impl Tracer {
    /// Attaches the tracer with these options, and waits until it traces.
    pub(super) fn attach(process: u32, options: &[&str]) -> Result<Self> {
        let mut program = Command::new("strace")
            .arg("-f")
            .args(options)
            .args(["-p", &process.to_string()])
            .stderr(Stdio::piped())
            .spawn()
            .context("strace cannot be started")?;
        let mut messages = BufReader::new(program.stderr.take().context("stderr is a pipe")?);
        let mut lines = messages.by_ref().lines().map_while(Result::ok);
        if !lines.any(|line| line.contains("attached")) {
            program.wait()?;
            bail!("strace may not trace the server");
        }
        Ok(Self { program, _messages: messages })
    }

    /// Stops the tracer, after which the process continues. Returns false if the tracer had ended
    /// before, as it does when the process dies.
    pub(super) fn detach(mut self) -> Result<bool> {
        let is_running = self.program.try_wait()?.is_none();
        if is_running {
            process::run(Command::new("kill").arg(self.program.id().to_string()))?;
        }
        self.program.wait()?;
        Ok(is_running)
    }
}
