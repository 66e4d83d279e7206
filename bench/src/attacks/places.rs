//! Connection slots: one IPv6 /64, slow heads, or slow readers take all slots.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::Result;

use super::Assessment;
use super::network::{SERVER_V6, attackers, block, client};
use super::scenes::{LITTLE, SMALL, Stage, address, attack, get, kept, newcomer};
use super::trial::run;
use crate::crowd::{Crowd, Habit, UNPACED};
use crate::servers::{Content, free_port};

/// The server's limit of connections, which the attackers try to use up.
const PLACES: usize = 2000;
/// Long enough to fill the socket buffers.
const LARGE: Content = Content::File(128 << 10);
const REQUESTS: usize = 64;

/// Connections from eight addresses of one IPv6 /64 that send one request and stay open.
pub(super) fn of_one_block(stage: &Stage) -> Result<Assessment> {
    let from = block().map(IpAddr::V6).collect();
    measure(stage, from, get(&SMALL.path()), Habit::Rest)
}

/// Heads from eight IPv4 addresses, one byte per second.
pub(super) fn of_slow_heads(stage: &Stage) -> Result<Assessment> {
    let opening = b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ".to_vec();
    let from = attackers().map(IpAddr::V4).collect();
    measure(stage, from, opening, Habit::Drip(Duration::from_secs(1)))
}

/// Pipelined requests from eight IPv4 addresses whose responses are never read.
pub(super) fn of_slow_readers(stage: &Stage) -> Result<Assessment> {
    stage.workspace.make_file(LARGE.len())?;
    let opening = get(&LARGE.path()).repeat(REQUESTS);
    let from = attackers().map(IpAddr::V4).collect();
    measure(stage, from, opening, Habit::Rest)
}

fn measure(stage: &Stage, from: Vec<IpAddr>, opening: Vec<u8>, habit: Habit) -> Result<Assessment> {
    let port = free_port()?;
    let (four, six) =
        (format!("0.0.0.0:{port},backlog=4096"), format!("[{SERVER_V6}]:{port},backlog=4096"));
    let places = PLACES.to_string();
    let options = ["--listen", &four, "--listen", &six, "--connections", &places];
    let server = stage.serve_at(port, &options)?;
    let normal = address(&server);
    let to = if from[0].is_ipv4() { normal } else { SocketAddr::from((SERVER_V6, port)) };
    let small = get(&SMALL.path());
    let clients = vec![kept(client(1), normal, small.clone()), newcomer(client(2), normal, small)];
    let crowd = Crowd {
        from,
        to,
        connections: PLACES,
        rate: 1000,
        pace: UNPACED,
        opening,
        filler: 0,
        habit,
    };
    let trial = run(&server, stage.windows, clients, attack(crowd))?;
    Ok(Assessment::of(trial, stage.bound(LITTLE), server))
}
