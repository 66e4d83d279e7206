//! TLS handshakes that stall after their first message, 650 per second from five addresses.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::Assessment;
use super::network::{SERVER, ask, attackers, client, reach};
use super::scenes::{LITTLE, SMALL, Stage, attack, get, outcome};
use super::trial::{Client, run};
use crate::certificates::accepting_client;
use crate::crowd::{Crowd, Habit, UNPACED};
use crate::servers::free_port;

/// New handshakes per second, and the number of source addresses.
const RATE: u32 = 650;
const ADDRESSES: usize = 5;
/// More than the simultaneous connections at that rate.
const MOST: usize = 6000;
/// The interval of new normal clients: 42 within an attacked window of ten seconds.
const INTERVAL: Duration = Duration::from_millis(238);

/// New TLS connections of normal clients during stalled handshakes.
pub(super) fn of_five_addresses(stage: &Stage) -> Result<Assessment> {
    stage.workspace.make_certificate()?;
    let pem = stage.workspace.certificate().display().to_string();
    let port = free_port()?;
    let (plain, secure) =
        (format!("127.0.0.1:{port}"), format!("{SERVER}:{port},tls=on,backlog=4096"));
    let certificate = ["--certificate", &pem, "--certificate-key", &pem];
    let listen = ["--listen", &plain, "--listen", &secure];
    let server = stage.serve_at(port, &[listen, certificate].concat())?;
    let to = SocketAddr::from((SERVER, port));
    let config = Arc::new(configuration()?);
    let hello = client_hello(&config)?;
    let request = get(&SMALL.path());
    let newcomer = Client {
        name: "newcomer",
        interval: INTERVAL,
        request: Box::new(move || {
            let socket = reach(IpAddr::V4(client(1)), to)?;
            let name = ServerName::from(IpAddr::V4(SERVER));
            let connection = ClientConnection::new(Arc::clone(&config), name)?;
            let mut stream = StreamOwned::new(connection, socket);
            outcome(ask(&mut stream, &request)?.status)
        }),
    };
    let crowd = Crowd {
        from: attackers().take(ADDRESSES).map(IpAddr::V4).collect(),
        to,
        connections: MOST,
        rate: RATE,
        pace: UNPACED,
        opening: hello,
        filler: 0,
        habit: Habit::Rest,
    };
    let trial = run(&server, stage.windows, vec![newcomer], attack(crowd))?;
    let attacked = trial.attacked(&trial.records[0]);
    let all = attacked.served + attacked.refused + attacked.failed;
    let served = format!("{} of {all} newcomers served", attacked.served);
    let log = std::fs::read_to_string(stage.log(port)).unwrap_or_default();
    let mut assessment = Assessment::of(trial, stage.bound(LITTLE), server);
    assessment.notes.push(served);
    assessment.notes.push(format!("{} lines in the log", log.lines().count()));
    Ok(assessment)
}

/// A client that accepts any certificate: the attack is on the server, not on the client.
fn configuration() -> Result<ClientConfig> {
    let mut config = accepting_client()?;
    // No resumption: each connection is a new client.
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

/// The first message of a handshake.
fn client_hello(config: &Arc<ClientConfig>) -> Result<Vec<u8>> {
    let name = ServerName::from(IpAddr::V4(SERVER));
    let mut connection = ClientConnection::new(Arc::clone(config), name)?;
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).context("a ClientHello")?;
    Ok(hello)
}
