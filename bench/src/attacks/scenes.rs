//! The pieces that attacks share: programs under attack, requests of normal clients, crowds as attacks.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use super::crowd::Crowd;
use super::network::{SERVER, ask, reach};
use super::trial::{Attack, Client, Outcome, Windows};
use crate::servers::{Content, Running, free_port};
use crate::tools::Workshop;

/// The small file that normal clients ask for.
pub(super) const SMALL: Content = Content::File(1024);
/// The memory in MiB that a server may take where neither bodies nor channels fill it.
pub(super) const LITTLE: f64 = 256.0;
/// How often a normal client makes a request.
const INTERVAL: Duration = Duration::from_millis(20);

/// What all attacks of one run share.
pub(super) struct Stage {
    pub(super) shop: Workshop,
    pub(super) windows: Windows,
    /// The bound of the server's memory in MiB, where an attack is to have another than its own.
    pub(super) bound: Option<f64>,
    /// A `bine` and a `wall` that are built already.
    pub(super) programs: Option<PathBuf>,
}

impl Stage {
    /// The bound for an attack whose own is `usual`, in MiB.
    pub(super) fn bound(&self, usual: f64) -> f64 {
        self.bound.unwrap_or(usual)
    }

    /// A built program: `bine`, or an example.
    pub(super) fn program(&self, name: &str) -> String {
        let built = self.shop.target.join("release");
        let usual = if name == "bine" { built } else { built.join("examples") };
        self.programs.as_ref().unwrap_or(&usual).join(name).display().to_string()
    }

    /// Starts `bine serve` with `options` besides the files and the addresses.
    pub(super) fn serve(&self, options: &[&str]) -> Result<Running> {
        let port = free_port()?;
        let listen = format!("0.0.0.0:{port},backlog=4096");
        self.serve_at(port, &[&["--listen", &listen], options].concat())
    }

    /// The same, where `options` name the addresses. One of them is `port` of loopback, without TLS.
    pub(super) fn serve_at(&self, port: u16, options: &[&str]) -> Result<Running> {
        let files = self.shop.files().display().to_string();
        let mut command = vec![self.program("bine"), String::from("serve"), files];
        command.extend(options.iter().map(ToString::to_string));
        Running::start(&command, port, &SMALL.path(), &self.log(port))
    }

    /// The file with what the server at `port` says.
    pub(super) fn log(&self, port: u16) -> PathBuf {
        self.shop.work.join(format!("attack-{port}.log"))
    }
}

pub(super) fn address(server: &Running) -> SocketAddr {
    SocketAddr::from((SERVER, server.port))
}

/// The bytes that ask for `path`.
pub(super) fn get(path: &str) -> Vec<u8> {
    crate::peer::request(path).into_bytes()
}

/// A client that makes all its requests on one connection, and connects again after a failure.
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

/// A client that makes each request on a new connection.
pub(super) fn newcomer<'run>(from: Ipv4Addr, to: SocketAddr, request: Vec<u8>) -> Client<'run> {
    let request = move || {
        let mut stream = reach(IpAddr::V4(from), to)?;
        outcome(ask(&mut stream, &request)?.status)
    };
    Client { name: "newcomer", interval: INTERVAL, request: Box::new(request) }
}

/// Makes a channel that keeps the last hundred messages.
pub(super) fn create_channel(from: Ipv4Addr, to: SocketAddr, name: &str) -> Result<()> {
    let mut stream = reach(IpAddr::V4(from), to)?;
    let request = format!(
        "PUT /channels/{name} HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Stream-Retention: messages=100\r\nContent-Length: 0\r\n\r\n"
    );
    let status = ask(&mut stream, request.as_bytes())?.status;
    ensure!(status == 201, "the channel `{name}` was not made: {status}");
    Ok(())
}

pub(super) fn outcome(status: u16) -> Result<Outcome> {
    match status {
        200..300 => Ok(Outcome::Served),
        413 | 429 | 503 | 507 => Ok(Outcome::Refused(status)),
        other => bail!("answered {other}"),
    }
}

/// A crowd as an attack.
pub(super) fn attack<'run>(crowd: Crowd) -> Attack<'run> {
    Box::new(move |stop| Ok(crowd.run(stop)?.text()))
}
