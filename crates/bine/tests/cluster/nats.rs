//! A NATS server as a child process.

use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use rustix::process::{Pid, Signal, kill_process};

/// The time in which every condition must become true. Only a failure takes this long.
const DEADLINE: Duration = Duration::from_mins(1);

/// A NATS server with JetStream. It is killed when it is dropped.
pub(crate) struct Nats {
    child: Child,
    program: PathBuf,
    folder: PathBuf,
    port: u16,
}

impl Nats {
    /// Starts a server; `None` if no program is named.
    pub(crate) fn start() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let Some(program) = env::var_os("NATS_SERVER") else {
            eprintln!("skipped: NATS_SERVER does not name a program");
            return None;
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("bine-nats-{}-{number}", std::process::id()));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let program = PathBuf::from(program);
        let child = spawn(&program, &folder, port);
        let own = Self { child, program, folder, port };
        own.wait();
        Some(own)
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Ends the process without a warning, and starts it again with the same files.
    pub(crate) fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = spawn(&self.program, &self.folder, self.port);
        self.wait();
    }

    /// Ends the process, removes all its files, and starts it again.
    pub(crate) fn erase(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        fs::remove_dir_all(&self.folder).unwrap();
        self.child = spawn(&self.program, &self.folder, self.port);
        self.wait();
    }

    /// Stops the process without closing its connections.
    pub(crate) fn pause(&self) {
        kill_process(Pid::from_child(&self.child), Signal::STOP).unwrap();
    }

    pub(crate) fn resume(&self) {
        kill_process(Pid::from_child(&self.child), Signal::CONT).unwrap();
    }

    /// Waits until the server greets a client.
    fn wait(&self) {
        wait_until("the NATS server answers", || {
            let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
            let mut greeting = [0; 4];
            stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            stream.read_exact(&mut greeting).is_ok() && greeting == *b"INFO"
        });
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        // Killing fails if it has exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn spawn(program: &PathBuf, folder: &PathBuf, port: u16) -> Child {
    let mut command = Command::new(program);
    command.args([
        "--jetstream",
        "--addr",
        "127.0.0.1",
        "--port",
        &port.to_string(),
        "--store_dir",
    ]);
    command.arg(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Waits until a condition is true.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        thread::park_timeout(Duration::from_millis(10));
    }
}
