//! The server: its start, its outages and its end.

use std::io::{self, Read as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use rustix::process::{Pid, Signal, kill_process};

use crate::folder::Folder;
use crate::reserved_port::ReservedPort;
use crate::wait::wait_until;

/// A NATS server on the local host. It is killed when it is dropped.
///
/// Its methods are for tests: they panic if the system fails them.
#[derive(Debug)]
pub struct NatsServer {
    child: Child,
    program: PathBuf,
    arguments: Vec<String>,
    port: ReservedPort,
    /// Its port for the other servers of its cluster.
    route: Option<ReservedPort>,
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
        let server = Self::spawn(program.into(), Folder::new(), extra);
        Some(server.expect("the NATS server starts"))
    }

    /// Starts three servers that form a cluster.
    pub fn start_three() -> Option<Vec<Self>> {
        let ports = [(); 3].map(|()| ReservedPort::new());
        let address = |port: &ReservedPort| format!("nats://127.0.0.1:{}", port.number());
        let routes = ports.each_ref().map(address).join(",");
        let start = |port: ReservedPort| {
            let listen = address(&port);
            let name = ["--jetstream", "--cluster_name", "test"];
            let options = [&name[..], &["--cluster", &listen, "--routes", &routes]].concat();
            let mut server = Self::start_with(&options)?;
            server.route = Some(port);
            Some(server)
        };
        ports.into_iter().map(start).collect()
    }

    /// Starts a server by this program, with its files in a folder.
    ///
    /// # Errors
    ///
    /// The program cannot be run, or ends before it answers.
    pub fn spawn(program: PathBuf, folder: Folder, extra: &[&str]) -> io::Result<Self> {
        let port = ReservedPort::new();
        let name = format!("s{}", port.number());
        let mut arguments = vec!["--addr".to_owned(), "127.0.0.1".to_owned()];
        arguments.extend(["--port".to_owned(), port.number().to_string()]);
        arguments.extend(["--store_dir".to_owned(), folder.path().display().to_string()]);
        arguments.extend(["--name".to_owned(), name.clone()]);
        arguments.extend(extra.iter().map(ToString::to_string));
        let child = spawn(&program, &arguments)?;
        let mut server = Self { child, program, arguments, port, route: None, name, folder };
        server.wait()?;
        Ok(server)
    }

    /// Its port for clients.
    pub const fn port(&self) -> u16 {
        self.port.number()
    }

    /// Its name in a cluster of servers.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address for clients.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port())
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
            ended.is_some() || greets(self.port())
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
