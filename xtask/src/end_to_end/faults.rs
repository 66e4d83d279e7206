//! Checks that a server survives system calls that fail, and that its supervisor replaces it when it
//! dies.
//!
//! The tracer `strace` makes system calls fail while clients request files. Each client then gets the
//! whole file, an error of the server, or the end of its connection; afterwards every client gets the
//! file again.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::program::Program;
use super::tracer::Tracer;
use super::work_folder;
use crate::paths;
use crate::report::Tally;

/// System calls, in the syntax of strace, and the errors that every fifth of them returns. The lookup of a
/// file calls `openat2` four times, and after a failure the next request looks the file up again. If
/// every third call failed, no lookup would succeed.
const FAULTS: [(&str, &[&str]); 8] = [
    ("accept4", &["EMFILE", "ENFILE", "ENOMEM", "ENOBUFS", "ECONNABORTED", "EPERM", "EPROTO"]),
    ("/^epoll_p?wait2?$", &["EINTR"]),
    ("epoll_ctl", &["ENOMEM", "ENOSPC"]),
    ("setsockopt", &["ENOMEM"]),
    ("/^(recvfrom|recvmsg)$", &["EINTR", "ENOMEM"]),
    ("/^(sendto|sendmsg|writev)$", &["EINTR", "ENOMEM", "ENOBUFS"]),
    ("sendfile", &["EINTR", "EIO", "ENOMEM"]),
    ("/^(openat2?|statx|newfstatat|fstat)$", &["EMFILE", "ENOMEM", "EIO"]),
];
/// Those that give a process memory, every one of which fails.
const MEMORY: &str = "/^(mmap|mremap|brk)$";
/// Signals by which a process dies, also by its own abort or because memory is exhausted.
const DEATHS: [&str; 4] = ["ABRT", "SEGV", "BUS", "KILL"];
/// Requests of each file while calls fail.
const REQUESTS: usize = 8;
/// A response, a restart, or the close of a file may take this long.
const PATIENCE: Duration = Duration::from_secs(10);
const SHORT: &str = "/short.txt";
const LONG: &str = "/long.bin";
/// More than a socket takes at once, so that the kernel sends it from the file.
const LENGTH: usize = 1 << 20;

/// The response to a request while system calls fail.
#[derive(Debug, PartialEq)]
enum Outcome {
    Whole,
    /// A 500 or 503, or a connection that ended early.
    Failed,
}

pub(super) fn check(tally: &mut Tally) -> Result<()> {
    let folder = work_folder().join("faults");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(&SHORT[1..]), "short\n")?;
    fs::write(folder.join(&LONG[1..]), vec![b'l'; LENGTH])?;
    for (calls, errors) in FAULTS {
        for error in errors {
            let name = format!("the server survives {error} of {calls}");
            tally.check(&name, survives(&folder, calls, error));
        }
    }
    tally.check("requests are answered after memory was refused", survives_refusals(&folder));
    for signal in DEATHS {
        let name = format!("the supervisor replaces a server that dies by SIG{signal}");
        tally.check(&name, is_replaced(&folder, signal));
    }
    Ok(())
}

fn serve(folder: &Path, options: &[&str]) -> Result<Program> {
    let mut command = Command::new(paths::release("bine"));
    command.arg("serve").arg(folder).args(["--listen", "127.0.0.1:0"]).args(options);
    Program::start(command)
}

fn survives(folder: &Path, calls: &str, error: &str) -> Result<()> {
    // The first requests open what the server keeps open: one loop keeps each file once.
    let server = serve(folder, &["--loops", "1"])?;
    ensure_whole(&server)?;
    let before = descriptors(server.id())?;
    let tracer = attach(server.id(), calls, &format!("{error}:when=1+5"))?;
    let (outcomes, has_survived) = during(&server, tracer)?;
    ensure!(has_survived, "the server or the tracer ended");
    ensure!(outcomes.contains(&Outcome::Whole), "no request was answered");
    ensure_whole(&server)?;
    let deadline = Instant::now() + PATIENCE;
    while descriptors(server.id())? > before {
        ensure!(Instant::now() < deadline, "{before} open files before, more after");
        ensure_whole(&server)?;
    }
    server.end()
}

/// The kernel gives the supervised process no memory, which may end it.
fn survives_refusals(folder: &Path) -> Result<()> {
    let server = serve(folder, &["--supervise"])?;
    ensure_whole(&server)?;
    let process = child(server.id())?.context("the supervisor has no child")?;
    during(&server, attach(process, MEMORY, "ENOMEM")?)?;
    ensure_whole(&server)?;
    server.end()
}

/// Sends requests while the tracer lets calls fail, and stops it. Returns false in the second place
/// if the server has died.
fn during(server: &Program, tracer: Tracer) -> Result<(Vec<Outcome>, bool)> {
    let outcomes: Result<_> = (0..REQUESTS)
        .flat_map(|_| [SHORT, LONG])
        .map(|target| request(server.address(), target))
        .collect();
    let has_survived = tracer.detach()?;
    Ok((outcomes?, has_survived))
}

/// Kills the supervised process; the next client is served by a new one.
fn is_replaced(folder: &Path, signal: &str) -> Result<()> {
    let server = serve(folder, &["--supervise"])?;
    ensure_whole(&server)?;
    let first = child(server.id())?.context("the supervisor has no child")?;
    let deadline = Instant::now() + PATIENCE;
    while child(server.id())? == Some(first) {
        ensure!(Instant::now() < deadline, "the process {first} did not die");
        // A handler of SIGSEGV and SIGBUS takes the first one for an overflow of the stack and resets
        // itself. A process that has just died is unknown, which is no failure.
        Command::new("kill")
            .args(["-s", signal, &first.to_string()])
            .stderr(Stdio::null())
            .status()?;
    }
    ensure_whole(&server)?;
    server.end()
}

/// Lets these calls fail with an error; `:when=1+5` after it means every fifth one of each thread.
fn attach(server: u32, calls: &str, error: &str) -> Result<Tracer> {
    let (traced, fault) = (format!("trace={calls}"), format!("inject={calls}:error={error}"));
    Tracer::attach(server, &["-o", "/dev/null", "-e", &traced, "-e", &fault])
}

/// Fails unless both files are served.
fn ensure_whole(server: &Program) -> Result<()> {
    for target in [SHORT, LONG] {
        let outcome = request(server.address(), target)?;
        ensure!(outcome == Outcome::Whole, "{target} was not served");
    }
    Ok(())
}

/// # Errors
///
/// The server does not answer in time, or sends something else than the file or an error.
fn request(address: SocketAddr, target: &str) -> Result<Outcome> {
    let mut stream = TcpStream::connect(address).context("cannot connect")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut bytes = Vec::new();
    let exchanged = stream.write_all(head.as_bytes()).and_then(|()| stream.read_to_end(&mut bytes));
    match exchanged {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            bail!("no end of the response after {PATIENCE:?} and {} bytes", bytes.len())
        }
        _ => outcome(&bytes, target),
    }
}

fn outcome(bytes: &[u8], target: &str) -> Result<Outcome> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let Some(end) = end else { return Ok(Outcome::Failed) };
    match bytes.get(9..12) {
        Some(b"200") => {}
        Some(b"500" | b"503") => return Ok(Outcome::Failed),
        _ => bail!("{target}: {}", String::from_utf8_lossy(&bytes[..end])),
    }
    let body = &bytes[end + 4..];
    let is_whole = match target {
        SHORT => body == b"short\n",
        _ => body.len() == LENGTH,
    };
    let is_part = target == LONG || b"short\n".starts_with(body);
    ensure!(is_part && body.iter().all(|byte| target == SHORT || *byte == b'l'), "other bytes");
    Ok(if is_whole { Outcome::Whole } else { Outcome::Failed })
}

/// The number of open files of a process.
fn descriptors(process: u32) -> Result<usize> {
    Ok(fs::read_dir(format!("/proc/{process}/fd"))?.count())
}

/// The child of a process, if there is exactly one.
fn child(process: u32) -> Result<Option<u32>> {
    let mut children = BTreeSet::new();
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let text = fs::read_to_string(task?.path().join("children")).unwrap_or_default();
        children.extend(text.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
    }
    Ok(children.pop_first().filter(|_| children.is_empty()))
}

#[cfg(test)]
mod tests {
    //! Responses of each kind.

    use super::*;

    #[test]
    fn accepts_files_errors_and_ends_but_no_other_bytes() {
        let of = |text: &str| outcome(text.as_bytes(), SHORT);
        assert_eq!(of("HTTP/1.1 200 OK\r\n\r\nshort\n").unwrap(), Outcome::Whole);
        for text in ["", "HTTP/1.1 200 OK\r\n\r\nsho", "HTTP/1.1 503 Busy\r\n\r\nbusy"] {
            assert_eq!(of(text).unwrap(), Outcome::Failed, "{text}");
        }
        assert!(of("HTTP/1.1 404 Not Found\r\n\r\n").is_err());
        assert!(of("HTTP/1.1 200 OK\r\n\r\nother\n").is_err());
    }
}
