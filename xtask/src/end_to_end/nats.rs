//! A NATS server as a child process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::work_folder;
use crate::{process, tools};

/// A start takes some milliseconds; a busy machine may need longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A NATS server with JetStream. Killed when dropped.
pub(super) struct Nats {
    child: Child,
    folder: PathBuf,
    url: String,
}

impl Nats {
    /// Starts a server at a free port, with an empty folder.
    pub(super) fn start() -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = work_folder().join(format!("nats-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let mut command = Command::new(tools::nats_server());
        // The server chooses the port, and writes it into a file.
        command.args(["--jetstream", "--addr", "127.0.0.1", "--port", "-1", "--store_dir"]);
        command.arg(&folder).arg("--ports_file_dir").arg(&folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", process::command_line(&command)))?;
        let mut own = Self { child, folder, url: String::new() };
        let began = Instant::now();
        while own.url.is_empty() {
            if let Some(status) = own.child.try_wait()? {
                bail!("{status}: {}", process::command_line(&command));
            }
            if began.elapsed() > PATIENCE {
                bail!("no port after {PATIENCE:?}: {}", process::command_line(&command));
            }
            thread::park_timeout(Duration::from_millis(10));
            own.url = url_in(&own.folder).unwrap_or_default();
        }
        Ok(own)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        // The calls fail only when the child has already been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // What remains is in the target folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The address in the file of ports. `None`: it is missing or incomplete.
fn url_in(folder: &Path) -> Option<String> {
    let files = fs::read_dir(folder).ok()?.map_while(Result::ok).map(|entry| entry.path());
    let file = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "ports"))?;
    let ports: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    ports["nats"][0].as_str().map(str::to_owned)
}
