//! The server: its start, its outages and its end.

use std::io::{self, Read as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use rustix::process::{Pid, Signal, kill_process};

use crate::folder::Folder;
use crate::wait::wait_until;

/// A NATS server on the local host. It is killed when it is dropped.
///
/// Its methods are for tests: they panic if the system fails them.
#[derive(Debug)]
pub struct NatsServer {
    child: Child,
    program: PathBuf,
    arguments: Vec<String>,
    port: u16,
    name: String,
    /// Removed after the process has ended.
    folder: Folder,
}

impl NatsServer {
    /// Starts a server with JetStream; `None`, with a note, if the variable `NATS_SERVER` names no
    /// program.
    pub fn start() -> Option<Self> {
        Self::start_with(&["--jetstream"])
    }

    /// Starts a server with these arguments, and with an address, a name and a folder for JetStream.
    ///
    /// # Panics
    ///
    /// The program does not start.
    pub fn start_with(extra: &[&str]) -> Option<Self> {
        let Some(program) = env::var_os("NATS_SERVER") else {
            eprintln!("skipped: NATS_SERVER does not name a program");
            return None;
        };
        Some(Self::spawn(program.into(), Folder::new(), extra).expect("the NATS server starts"))
    }

    /// Starts three servers that form a cluster.
    pub fn start_three() -> Option<Vec<Self>> {
        let ports = [free_port(), free_port(), free_port()];
        let routes = ports.map(|port| format!("nats://127.0.0.1:{port}")).join(",");
        let start = |port: &u16| {
            let listen = format!("nats://127.0.0.1:{port}");
            let name = ["--jetstream", "--cluster_name", "test"];
            Self::start_with(&[&name[..], &["--cluster", &listen, "--routes", &routes]].concat())
        };
        ports.iter().map(start).collect()
    }

    /// Starts a server by this program, with its files in a folder.
    ///
    /// # Errors
    ///
    /// The program cannot be run, or ends before it answers.
    pub fn spawn(program: PathBuf, folder: Folder, extra: &[&str]) -> io::Result<Self> {
        let port = free_port();
        let name = format!("s{port}");
        let mut arguments = vec!["--addr".to_owned(), "127.0.0.1".to_owned()];
        arguments.extend(["--port".to_owned(), port.to_string()]);
        arguments.extend(["--store_dir".to_owned(), folder.path().display().to_string()]);
        arguments.extend(["--name".to_owned(), name.clone()]);
        arguments.extend(extra.iter().map(ToString::to_string));
        let child = spawn(&program, &arguments)?;
        let mut server = Self { child, program, arguments, port, name, folder };
        server.wait()?;
        Ok(server)
    }

    /// Its port for clients.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Its name in a cluster of servers.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address for clients.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Ends the process without a warning, if it runs.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends the process if it runs, and starts it again with the same port and files.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(&self.program, &self.arguments).unwrap();
        self.wait().unwrap();
    }

    /// Ends the process without a warning, and removes all its files.
    pub fn erase(&mut self) {
        self.kill();
        fs::remove_dir_all(self.folder.path()).unwrap();
    }

    /// Stops the process without closing its connections.
    pub fn pause(&self) {
        kill_process(Pid::from_child(&self.child), Signal::STOP).unwrap();
    }

    /// Continues the process after [`pause`](Self::pause).
    pub fn resume(&self) {
        kill_process(Pid::from_child(&self.child), Signal::CONT).unwrap();
    }

    /// Waits until the server greets a client.
    fn wait(&mut self) -> io::Result<()> {
        let mut ended = None;
        wait_until("the NATS server answers", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some() || greets(self.port)
        });
        match ended {
            None => Ok(()),
            Some(status) => Err(io::Error::other(format!(
                "{status}: {} {}",
                self.program.display(),
                self.arguments.join(" ")
            ))),
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        // Killing fails if it has exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns an unused port of the local host.
///
/// # Panics
///
/// All ports are in use.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn spawn(program: &Path, arguments: &[String]) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn()
}

fn greets(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let mut greeting = [0; 4];
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    stream.read_exact(&mut greeting).is_ok() && greeting == *b"INFO"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_a_program_that_ends() {
        let error = NatsServer::spawn("/bin/false".into(), Folder::new(), &[]).unwrap_err();
        assert!(error.to_string().contains("/bin/false --addr 127.0.0.1"), "{error}");
        assert!(NatsServer::spawn("/missing".into(), Folder::new(), &[]).is_err());
    }

    #[test]
    fn keeps_its_files_over_a_restart_until_they_are_erased() {
        let Some(mut server) = NatsServer::start() else { return };
        let (url, folder) = (server.url(), server.folder.path().to_owned());
        let marker = folder.join("marker");
        fs::write(&marker, "").unwrap();
        server.kill();
        assert!(!greets(server.port()));
        server.restart();
        assert!(greets(server.port()) && marker.exists());
        assert_eq!(server.url(), url);
        server.erase();
        server.restart();
        assert!(!marker.exists());
        drop(server);
        assert!(!folder.exists());
    }
}
