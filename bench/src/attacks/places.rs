//! The places of connections: all of them taken from one IPv6 /64, by slow heads, by slow readers.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::Result;

use super::Judged;
use super::crowd::{Crowd, Habit, UNPACED};
use super::network::{SERVER_V6, attackers, block, client};
use super::scenes::{LITTLE, SMALL, Stage, address, attack, get, kept, newcomer};
use super::trial::run;
use crate::servers::{Content, free_port};

/// The connections that the server may have, as many as the attackers try to take.
const PLACES: usize = 2000;
/// Long enough to fill the sockets' buffers.
const LARGE: Content = Content::File(128 << 10);
const REQUESTS: usize = 64;

/// From eight addresses of one IPv6 /64, connections that made one request and keep their place.
pub(super) fn of_one_block(stage: &Stage) -> Result<Judged> {
    let from = block().map(IpAddr::V6).collect();
    measure(stage, from, get(&SMALL.path()), Habit::Rest)
}

/// From eight IPv4 addresses, heads of which a byte comes each second.
pub(super) fn of_slow_heads(stage: &Stage) -> Result<Judged> {
    let opening = b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ".to_vec();
    let from = attackers().map(IpAddr::V4).collect();
    measure(stage, from, opening, Habit::Drip(Duration::from_secs(1)))
}

/// From eight IPv4 addresses, requests for more than is ever read.
pub(super) fn of_slow_readers(stage: &Stage) -> Result<Judged> {
    stage.shop.make_file(LARGE.len())?;
    let opening = get(&LARGE.path()).repeat(REQUESTS);
    let from = attackers().map(IpAddr::V4).collect();
    measure(stage, from, opening, Habit::Rest)
}

fn measure(stage: &Stage, from: Vec<IpAddr>, opening: Vec<u8>, habit: Habit) -> Result<Judged> {
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
    Ok(Judged::of(trial, stage.bound(LITTLE), server))
}
