//! Shared parts of attacks: programs under attack, requests of normal clients, crowds as attacks.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use super::network::{SERVER, ask, reach};
use super::trial::{Attack, Client, Outcome, Windows};
use crate::crowd::Crowd;
use crate::servers::{Content, Running, free_port};
use crate::tools::Workspace;

/// The small file that normal clients request.
pub(super) const SMALL: Content = Content::File(1024);
/// The memory limit in MiB for attacks that fill neither bodies nor channels.
pub(super) const LITTLE: f64 = 256.0;
/// The interval of a normal client's requests.
const INTERVAL: Duration = Duration::from_millis(20);

/// The parameters shared by all attacks of a run.
pub(super) struct Stage {
    pub(super) workspace: Workspace,
    pub(super) windows: Windows,
    /// A memory limit in MiB that replaces the attack's own.
    pub(super) bound: Option<f64>,
    /// A folder with existing builds of `bine` and `wall`.
    pub(super) programs: Option<PathBuf>,
}

impl Stage {
    /// The memory limit of an attack whose own is `usual`, in MiB.
    pub(super) fn bound(&self, usual: f64) -> f64 {
        self.bound.unwrap_or(usual)
    }

    /// The path of a program: `bine`, or an example.
    pub(super) fn program(&self, name: &str) -> String {
        let built = self.workspace.bine("");
        let usual = if name == "bine" { built } else { built.join("examples") };
        self.programs.as_ref().unwrap_or(&usual).join(name).display().to_string()
    }

    /// Starts `bine serve` with `options` in addition to the files and the addresses.
    pub(super) fn serve(&self, options: &[&str]) -> Result<Running> {
        let port = free_port()?;
        let listen = format!("0.0.0.0:{port},backlog=4096");
        self.serve_at(port, &[&["--listen", &listen], options].concat())
    }

    /// Like [`serve`](Self::serve), where `options` contain the addresses. One address is `port` on
    /// loopback, without TLS.
    pub(super) fn serve_at(&self, port: u16, options: &[&str]) -> Result<Running> {
        let files = self.workspace.files().display().to_string();
        let mut command = vec![self.program("bine"), String::from("serve"), files];
        command.extend(options.iter().map(ToString::to_string));
        Running::start(&command, port, &SMALL.path(), &self.log(port))
    }

    /// The log file of the server at `port`.
    pub(super) fn log(&self, port: u16) -> PathBuf {
        self.workspace.work.join(format!("attack-{port}.log"))
    }
}

pub(super) fn address(server: &Running) -> SocketAddr {
    SocketAddr::from((SERVER, server.port))
}

/// The request for `path`.
pub(super) fn get(path: &str) -> Vec<u8> {
    crate::peer::request(path).into_bytes()
}

/// A client with one connection for all requests, which reconnects after a failure.
pub(super) fn kept<'run>(from: Ipv4Addr, to: SocketAddr, request: Vec<u8>) -> Client<'run> {
    let mut connection: Option<TcpStream> = None;
    let request = move || {
        let mut stream = connection.take().map_or_else(|| reach(IpAddr::V4(from), to), Ok)?;
        let answer = outcome(ask(&mut stream, &request)?.status)?;
        connection = Some(stream);
        Ok(answer)
    };
    Client { name: "kept", interval: INTERVAL, request: Box::new(request) }
}

/// A client that opens a new connection for each request.
pub(super) fn newcomer<'run>(from: Ipv4Addr, to: SocketAddr, request: Vec<u8>) -> Client<'run> {
    let request = move || {
        let mut stream = reach(IpAddr::V4(from), to)?;
        outcome(ask(&mut stream, &request)?.status)
    };
    Client { name: "newcomer", interval: INTERVAL, request: Box::new(request) }
}

/// Creates a channel that retains the last hundred messages.
pub(super) fn create_channel(from: Ipv4Addr, to: SocketAddr, name: &str) -> Result<()> {
    let mut stream = reach(IpAddr::V4(from), to)?;
    let request = format!(
        "PUT /channels/{name} HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Stream-Retention: messages=100\r\nContent-Length: 0\r\n\r\n"
    );
    let status = ask(&mut stream, request.as_bytes())?.status;
    ensure!(status == 201, "the channel `{name}` was not created: {status}");
    Ok(())
}

pub(super) fn outcome(status: u16) -> Result<Outcome> {
    match status {
        200..300 => Ok(Outcome::Served),
        413 | 429 | 503 | 507 => Ok(Outcome::Refused(status)),
        other => bail!("answered {other}"),
    }
}

/// Runs a crowd as an attack.
pub(super) fn attack<'run>(crowd: Crowd) -> Attack<'run> {
    Box::new(move |stop| Ok(crowd.run(stop)?.text()))
}
