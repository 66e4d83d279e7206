//! Tests of connections that a proxy begins with a header of the PROXY protocol.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bine_server::{Listen, ServerMetrics, Settings, TrustedProxies};

use crate::PATIENCE;
use crate::house::{AT_ONCE, House, SCHEDULERS, settings, unix};
use crate::metrics::metrics;
use crate::peer::{Peer, get};
use crate::secrecy::{Trust, secret, tls};
use crate::tls::{Stub, hello, raw};

/// The settings of a server that only a proxy on this machine uses.
pub(crate) fn proxied(settings: Settings) -> Settings {
    let mut proxies = TrustedProxies::default();
    proxies.add("127.0.0.1").unwrap();
    proxies.add("unix").unwrap();
    let proxy = |listen: Listen| Listen { proxy: true, ..listen };
    let listeners = settings.listeners.into_iter().map(proxy).collect();
    Settings { listeners, proxies: Arc::new(proxies), ..settings }
}

/// A header of version 1 for a client at `address` and port 50000.
pub(crate) fn line(address: &str) -> String {
    format!("PROXY TCP4 {address} 198.51.100.1 50000 443\r\n")
}

/// A header of version 2 for 192.0.2.8 and port 50001, whose client has used TLS.
fn binary() -> Vec<u8> {
    let mut bytes = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x14".to_vec();
    bytes.extend([192, 0, 2, 8, 198, 51, 100, 1, 0xc3, 0x51, 1, 0xbb]);
    bytes.extend([0x20, 0, 5, 1, 0, 0, 0, 0]);
    bytes
}

/// Connects as a proxy for the client at `address`.
pub(crate) fn connect(house: &House, address: &str) -> Peer {
    let mut peer = house.connect();
    peer.send(line(address));
    peer
}

/// Between two stages, a scheduler may run the stages of other connections on the same thread, or
/// continue a connection on another thread.
#[test]
fn keeps_the_client_of_each_request_between_stages() {
    for scheduler in AT_ONCE {
        let house = House::with(proxied(settings(scheduler)));
        let mut clients: Vec<_> = (1..=24)
            .map(|number| {
                let address = format!("192.0.2.{number}");
                (connect(&house, &address), format!("200 tcp {address} 50000"))
            })
            .collect();
        let requests = [get("/client"), get("/work"), get("/client")].concat();
        for (peer, _) in &mut clients {
            peer.send(&requests);
        }
        for (peer, expected) in &mut clients {
            let replies = [(); 3].map(|()| peer.reply().to_string());
            assert_eq!(replies, [&**expected, "200 work", expected], "{scheduler}");
        }
    }
}

#[test]
fn serves_the_clients_of_a_proxy_with_each_scheduler_and_socket() {
    for scheduler in SCHEDULERS {
        let on_unix = Settings { listeners: vec![unix()], ..settings(scheduler) };
        for settings in [settings(scheduler), on_unix, secret(scheduler, tls())] {
            let is_secret = settings.tls.is_some();
            let house = House::with(proxied(settings));
            for (header, client) in
                [(line("192.0.2.7").into_bytes(), "192.0.2.7 50000"), (binary(), "192.0.2.8 50001")]
            {
                // At once, and byte by byte.
                for size in [header.len(), 1] {
                    let mut peer = house.connect();
                    header.chunks(size).for_each(|piece| peer.send(piece));
                    if is_secret {
                        peer = peer.secured(&Trust::usual(), "localhost");
                    }
                    let scheme =
                        if is_secret || client.starts_with("192.0.2.8") { "tls" } else { "tcp" };
                    let expected = format!("200 {scheme} {client}");
                    assert_eq!(peer.ask("/client"), expected, "{scheduler}");
                    peer.send(get("/client") + &get("/work"));
                    assert_eq!(peer.reply().to_string(), expected, "{scheduler}");
                    assert_eq!(peer.reply().to_string(), "200 work", "{scheduler}");
                }
            }
            if !is_secret {
                // The header and a request in one segment.
                let mut peer = house.connect();
                peer.send(line("192.0.2.9") + &get("/client"));
                assert_eq!(peer.reply().to_string(), "200 tcp 192.0.2.9 50000", "{scheduler}");
            }
        }
    }
}

#[test]
fn closes_connections_without_the_header_of_a_trusted_proxy() {
    for scheduler in SCHEDULERS {
        let mut settings = proxied(settings(scheduler));
        let house = House::with(settings.clone());
        let mut direct = house.connect();
        direct.send(get("/"));
        assert_eq!(direct.rest(), b"", "{scheduler}");
        // A proxy that closes without a header, as some check the health of a server.
        house.connect().finish();
        metrics(&house.server, |found| found.accepted == 2 && found.open == 0);
        let mut proxies = TrustedProxies::default();
        proxies.add("192.0.2.1").unwrap();
        settings.proxies = Arc::new(proxies);
        house.replace(settings);
        let mut untrusted = connect(&house, "192.0.2.7");
        assert_eq!(untrusted.rest(), b"", "{scheduler}");
        let is_counted =
            |found: &ServerMetrics| found.refused[3] == ("proxy", 2) && found.open == 0;
        metrics(&house.server, is_counted);
    }
}

#[test]
fn limits_connections_by_the_address_of_the_client() {
    for scheduler in AT_ONCE {
        let house =
            House::with(proxied(Settings { connections_per_address: 2, ..settings(scheduler) }));
        let mut inside = [(); 2].map(|()| connect(&house, "192.0.2.7"));
        for peer in &mut inside {
            assert_eq!(peer.ask("/"), "200 hello");
        }
        let mut refused = connect(&house, "192.0.2.7");
        refused.send(get("/"));
        assert_eq!(refused.reply().to_string(), "503 close", "{scheduler}");
        refused.finish();
        refused.expect_closed();
        let mut other = connect(&house, "192.0.2.8");
        assert_eq!(other.ask("/"), "200 hello", "{scheduler}");
        drop((inside, other, refused));
        metrics(&house.server, |found| found.open == 0);
        // Each connection has given back the place of its client.
        let mut again = [(); 2].map(|()| connect(&house, "192.0.2.7"));
        for peer in &mut again {
            assert_eq!(peer.ask("/"), "200 hello", "{scheduler}");
        }
    }
}

/// The handshakes of a proxy would otherwise count as those of this machine.
#[test]
fn limits_handshakes_by_the_address_of_the_client() {
    for scheduler in ["hybrid", "event", "cohort", "one-to-one"] {
        let house = House::with(proxied(Settings { handshakes: 24, ..secret(scheduler, tls()) }));
        let hello = hello();
        let stalled: Vec<TcpStream> = (0..40)
            .map(|_| {
                let mut stream = raw(&house);
                stream.write_all(line("192.0.2.7").as_bytes()).unwrap();
                stream.write_all(&hello).unwrap();
                stream
            })
            .collect();
        // The share of an address is an eighth of 24.
        let patience = Instant::now() + PATIENCE;
        while house.server.handshakes().evicted < 37 {
            assert!(Instant::now() < patience, "{scheduler} {:?}", house.server.handshakes());
            std::thread::yield_now();
        }
        let mut peer = connect(&house, "192.0.2.8").secured(&Trust::usual(), "localhost");
        assert_eq!(peer.ask("/client"), "200 tls 192.0.2.8 50000", "{scheduler}");
        assert!(house.server.handshakes().under_way <= 3, "{scheduler}");
        drop(stalled);
    }
}

#[test]
fn hands_over_a_connection_with_the_address_of_its_client() {
    for scheduler in AT_ONCE {
        let (taken, takes) = channel();
        let stub = Arc::new(Stub { taken: Mutex::new(taken) });
        let house = House::with(proxied(secret(scheduler, tls().with_hand_over(stub))));
        let mut stream = raw(&house);
        stream.write_all(line("192.0.2.7").as_bytes()).unwrap();
        let trust = Trust::usual().offering(&["h2", "http/1.1"]);
        let mut leaves = trust.over(stream, "localhost");
        let mut hello = Vec::new();
        leaves.0.conn.write_tls(&mut hello).unwrap();
        leaves.0.sock.write_all(&hello).unwrap();
        let departure = takes.recv_timeout(PATIENCE).unwrap();
        assert_eq!(departure.peer.to_string(), "192.0.2.7", "{scheduler}");
        assert!(departure.peer.is_secure());
        let mut socket = TcpStream::from(departure.socket);
        socket.set_nonblocking(false).unwrap();
        let mut own = departure.accepted.into_connection(departure.config).unwrap();
        let agreeing = std::thread::spawn(move || {
            while own.is_handshaking() {
                own.complete_io(&mut socket).unwrap();
            }
            own.writer().write_all(b"frames").unwrap();
            own.complete_io(&mut socket).unwrap();
        });
        let mut frames = [0; 6];
        leaves.0.read_exact(&mut frames).unwrap();
        assert_eq!(&frames, b"frames", "{scheduler}");
        agreeing.join().unwrap();
        metrics(&house.server, |found| found.open == 0);
    }
}
