//! The control socket: one command per connection, over a Unix socket that only the server's user
//! may open.
//!
//! ```text
//! reload\n   ->   ok\n...   or   error\n...
//! ```

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bine_log as log;
use rustix::fs::{Mode, fchmod};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};

use crate::listener::{SocketFile, remove_stale};

/// The size limit of a command in bytes.
const MAX_COMMAND: u64 = 16 * 1024;
/// The size limit of an answer in bytes.
const MAX_ANSWER: u64 = 64 * 1024;
/// The time limit for receiving a command, and for sending the answer.
const IO_TIMEOUT: Duration = Duration::from_secs(2);
/// The client's time limit for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);
/// The time for which a stopping server waits for an answer in progress.
const STOP_WAIT: Duration = Duration::from_secs(5);
/// The listen backlog; operators need no more connections at one time.
const BACKLOG: i32 = 16;
/// The mode of a socket that only its owner may use.
const OWNER: Mode = Mode::RUSR.union(Mode::WUSR);

/// A control socket. Dropping it removes its file.
#[derive(Debug)]
pub struct Control {
    listener: Option<UnixListener>,
    active: Arc<ActiveAnswer>,
    _file: SocketFile,
}

/// Whether the server is answering a command now.
#[derive(Default, Debug)]
struct ActiveAnswer {
    is_busy: Mutex<bool>,
    is_done: Condvar,
}

impl Control {
    /// Opens the socket at `path` and replaces the file of a server that has died.
    ///
    /// # Errors
    ///
    /// Returns `AddrInUse` when a running server has the socket, and `AlreadyExists` when `path` is
    /// another file.
    pub fn open(path: &Path) -> io::Result<Self> {
        remove_stale(path)?;
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // The mode is set before `bind`, which gives it to the file, so that other users can never
        // open the socket.
        fchmod(&socket, OWNER)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        let file = SocketFile::at(path);
        listen(&socket, BACKLOG)?;
        Ok(Self { listener: Some(socket.into()), active: Arc::default(), _file: file })
    }

    /// Starts a thread that answers commands one at a time with a result or an error message.
    ///
    /// # Errors
    ///
    /// Returns an error when the thread cannot be started.
    pub fn serve(
        &mut self,
        mut answer: impl FnMut(&str) -> Result<String, String> + Send + 'static,
    ) -> io::Result<()> {
        let Some(listener) = self.listener.take() else { return Ok(()) };
        let active = Arc::clone(&self.active);
        let body = move || {
            for stream in listener.incoming() {
                // A client that disconnects before the answer does not need it.
                let result = stream.and_then(|stream| handle_command(stream, &active, &mut answer));
                if let Err(error) = result
                    && matches!(error.raw_os_error(), Some(23 | 24))
                {
                    // ENFILE, EMFILE: an immediate retry would fail too.
                    thread::park_timeout(IO_TIMEOUT);
                }
            }
        };
        thread::Builder::new().name("bine control".to_owned()).spawn(body)?;
        Ok(())
    }
}

/// Waits until the answer in progress has been sent: after `stop` the process could exit before
/// that.
impl Drop for Control {
    fn drop(&mut self) {
        self.active.wait();
    }
}

impl ActiveAnswer {
    fn set(&self, is_busy: bool) {
        *self.is_busy.lock().unwrap_or_else(PoisonError::into_inner) = is_busy;
        self.is_done.notify_all();
    }

    fn wait(&self) {
        let is_busy = self.is_busy.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.is_done.wait_timeout_while(is_busy, STOP_WAIT, |is_busy| *is_busy));
    }
}

fn handle_command(
    mut stream: UnixStream,
    active: &ActiveAnswer,
    answer: &mut dyn FnMut(&str) -> Result<String, String>,
) -> io::Result<()> {
    let command = read_command(&mut stream, Instant::now() + IO_TIMEOUT)?;
    active.set(true);
    let result = reply(stream, answer(command.trim()));
    active.set(false);
    result
}

fn reply(mut stream: UnixStream, answer: Result<String, String>) -> io::Result<()> {
    let (kind, text) = match answer {
        Ok(text) => ("ok", text),
        Err(text) => ("error", text),
    };
    stream.set_write_timeout(Some(IO_TIMEOUT))?;
    stream.write_all(format!("{kind}\n{text}").as_bytes())
}

/// Reads up to the end of a line. The deadline is for the whole line, however slowly the bytes
/// arrive.
fn read_command(stream: &mut UnixStream, deadline: Instant) -> io::Result<String> {
    let mut command = Vec::new();
    while !command.ends_with(b"\n") && (command.len() as u64) < MAX_COMMAND {
        let left = deadline.saturating_duration_since(Instant::now());
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => command.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&command).into_owned())
}

/// Sends `command` to the server whose socket is at `path`, and returns its result or
/// error message.
///
/// # Errors
///
/// Returns an error when no server listens, or the answer does not arrive within a minute.
pub fn ask(path: &Path, command: &str) -> io::Result<Result<String, String>> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(IO_TIMEOUT))?;
    stream.write_all(format!("{command}\n").as_bytes())?;
    let mut text = String::new();
    stream.take(MAX_ANSWER).read_to_string(&mut text)?;
    match text.split_once('\n') {
        Some(("ok", result)) => Ok(Ok(result.to_owned())),
        Some(("error", reason)) => Ok(Err(reason.to_owned())),
        _ => {
            log::warn(format_args!(
                "{}: the reply is in an unknown format; is this the control socket of a Bine server?",
                path.display()
            ));
            Err(io::ErrorKind::InvalidData.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn answers_a_command_and_removes_the_socket_file_on_drop() {
        let path = std::env::temp_dir().join(format!("bine-control-{}", std::process::id()));
        // Dropping a listener of std does not remove its file, like a killed server.
        drop(UnixListener::bind(&path).unwrap());
        let mut control = Control::open(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let answer = |command: &str| match command {
            "reload" => Ok("done\nwell".to_owned()),
            other => Err(format!("what is {other}?")),
        };
        control.serve(answer).unwrap();
        assert_eq!(Control::open(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(ask(&path, "reload").unwrap(), Ok("done\nwell".to_owned()));
        assert_eq!(ask(&path, "dance").unwrap(), Err("what is dance?".to_owned()));
        assert!(ask(&path, &"x".repeat(100_000)).is_err() || path.exists());
        drop(control);
        assert!(!path.exists());
    }

    #[test]
    fn reads_a_command_up_to_its_line_end_its_limit_or_its_deadline() {
        let read = |bytes: &[u8], finishes: bool| {
            let (mut server, mut client) = UnixStream::pair().unwrap();
            client.write_all(bytes).unwrap();
            if finishes {
                client.shutdown(std::net::Shutdown::Write).unwrap();
            }
            read_command(&mut server, Instant::now()).map_err(|error| error.kind())
        };
        assert_eq!(read(b"reload\nrest", false), Ok("reload\n".to_owned()));
        assert_eq!(read(b"reload", true), Ok("reload".to_owned()));
        assert_eq!(read(b"", true), Ok(String::new()));
        assert_eq!(read(b"reload", false), Err(io::ErrorKind::WouldBlock), "it has no more time");
        let long = vec![b'x'; MAX_COMMAND as usize + 10];
        assert_eq!(read(&long, false).unwrap().len(), MAX_COMMAND as usize);
    }

    #[test]
    fn reports_an_answer_in_an_unknown_format() {
        let path = std::env::temp_dir().join(format!("bine-control-odd-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        for (answer, expected) in [
            ("ok\n", Ok(Ok(String::new()))),
            ("error\nno", Ok(Err("no".to_owned()))),
            ("ok", Err(io::ErrorKind::InvalidData)),
            ("HTTP/1.1 400\n", Err(io::ErrorKind::InvalidData)),
        ] {
            let listener = UnixListener::bind(&path).unwrap();
            let messages = log::test_support::capture();
            let asked = thread::scope(|scope| {
                scope.spawn(|| {
                    let (mut stream, _) = listener.accept().unwrap();
                    read_command(&mut stream, Instant::now() + IO_TIMEOUT).unwrap();
                    stream.write_all(answer.as_bytes()).unwrap();
                });
                ask(&path, "reload")
            });
            std::fs::remove_file(&path).unwrap();
            assert_eq!(asked.map_err(|error| error.kind()), expected);
            assert_eq!(messages.end().len(), usize::from(expected.is_err()));
        }
    }

    /// Symptom: `bine stop` failed now and then on a busy machine, although the server stopped.
    /// Cause: the process ended before the thread of its control socket had sent the answer.
    /// Fix: the socket closes when the answer has been sent.
    #[test]
    fn answers_stop_before_closing_the_socket() {
        let path = std::env::temp_dir().join(format!("bine-control-stop-{}", std::process::id()));
        let mut control = Control::open(&path).unwrap();
        let (began, begins) = std::sync::mpsc::channel();
        let (go, goes) = std::sync::mpsc::channel();
        let is_answered = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let answered = Arc::clone(&is_answered);
        let answer = move |_: &str| {
            began.send(()).unwrap();
            goes.recv().unwrap();
            answered.store(true, std::sync::atomic::Ordering::SeqCst);
            Ok(String::new())
        };
        control.serve(answer).unwrap();
        thread::scope(|scope| {
            let asked = scope.spawn(|| ask(&path, "stop").unwrap());
            begins.recv().unwrap();
            let (dropped, is_dropped) = std::sync::mpsc::channel();
            scope.spawn(move || {
                // Without the fix the socket closes before this time is over. With the fix it never
                // closes before the answer.
                let _ = is_dropped.recv_timeout(Duration::from_millis(100));
                go.send(()).unwrap();
            });
            drop(control);
            let _ = dropped.send(());
            assert!(is_answered.load(std::sync::atomic::Ordering::SeqCst));
            assert_eq!(asked.join().unwrap(), Ok(String::new()));
        });
    }
}
