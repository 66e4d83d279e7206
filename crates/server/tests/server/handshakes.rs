//! Tests of TLS handshakes that compete for an event loop.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Instant;

use bine_server::Settings;

use crate::PATIENCE;
use crate::house::{House, LOOPS};
use crate::peer::{Peer, get};
use crate::proxies::{connect, line, proxied};
use crate::secrecy::{Trust, secret, tls};
use crate::tls::{hello, raw};

/// Connects a client that has sent its `ClientHello`.
fn begin(house: &House, address: &str, trust: &Trust) -> Peer {
    let mut peer = connect(house, address).secured(trust, "localhost");
    let secure = peer.secure();
    secure.0.conn.write_tls(&mut secure.0.sock).unwrap();
    peer
}

/// While the loop is busy, one address begins a hundred full handshakes. Then a returning client of
/// another address and a new one of a third arrive.
#[test]
fn serves_returning_and_new_clients_during_a_flood_of_handshakes() {
    for scheduler in LOOPS {
        let settings = Settings { handshakes: 80, handshake_rate: 0, ..secret(scheduler, tls()) };
        let house = House::with(proxied(settings));
        let known = Trust::usual();
        let mut first = connect(&house, "192.0.2.1").secured(&known, "localhost");
        assert_eq!(first.ask("/"), "200 hello", "{scheduler}");
        let mut holding = connect(&house, "192.0.2.9").secured(&Trust::usual(), "localhost");
        holding.send(get("/hold/busy"));
        let gate = house.program.gate("busy");
        gate.await_arrivals(1);

        let hello = hello();
        let flood: Vec<TcpStream> = (0..100)
            .map(|_| {
                let mut stream = raw(&house);
                stream.write_all(line("198.51.100.7").as_bytes()).unwrap();
                stream.write_all(&hello).unwrap();
                stream
            })
            .collect();
        let mut returning = begin(&house, "192.0.2.1", &known);
        let mut new = begin(&house, "203.0.113.1", &Trust::usual());
        gate.open();

        assert_eq!(returning.ask("/"), "200 hello", "{scheduler}");
        assert!(returning.secure().is_resumed(), "{scheduler}");
        assert_eq!(new.ask("/"), "200 hello", "{scheduler}");
        assert_eq!(holding.reply().to_string(), "200 held", "{scheduler}");
        // The others of the flood are closed, or answered and unfinished: an eighth of 80.
        let patience = Instant::now() + PATIENCE;
        let metrics = loop {
            let metrics = house.server.handshakes();
            if metrics.waiting == 0 && metrics.evicted == 90 {
                break metrics;
            }
            assert!(Instant::now() < patience, "{scheduler}: {metrics:?}");
            std::thread::yield_now();
        };
        assert_eq!((metrics.under_way, metrics.resumed), (10, 1), "{scheduler}");
        assert!(metrics.delayed > 0 && metrics.misled == 0, "{scheduler}: {metrics:?}");
        drop(flood);
    }
}
