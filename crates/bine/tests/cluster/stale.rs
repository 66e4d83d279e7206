//! A node that is cut off says so: in its responses, to open pages, and to load balancers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use bine::test::{Reply, Site};
use bine_nats_server::{NatsServer, wait_until};

use crate::nodes::{count, node};

const PATIENCE: Duration = Duration::from_mins(1);

fn is_marked(reply: &Reply) -> bool {
    let value = reply.header("bine-stale");
    assert!(value.is_none_or(|seconds| seconds.parse::<u64>().is_ok()), "{value:?}");
    value.is_some()
}

/// The lines of the stream that an open page follows.
fn follow(site: &Site) -> Receiver<String> {
    let mut stream = TcpStream::connect(site.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("GET /_bine/live?page=/&have= HTTP/1.1\r\nHost: {}\r\n", site.address());
    stream.write_all(format!("{head}Accept: text/event-stream\r\n\r\n").as_bytes()).unwrap();
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Waits for a line, and returns those before it.
fn await_line(lines: &Receiver<String>, wanted: &str) -> Vec<String> {
    let mut before = Vec::new();
    loop {
        let line = lines.recv_timeout(PATIENCE).unwrap();
        if line == wanted {
            return before;
        }
        before.push(line);
    }
}

#[test]
fn responses_of_a_node_that_is_cut_off_are_marked() {
    let Some(nats) = NatsServer::start() else { return };
    let a = node(&nats, "a");
    assert_eq!(count(&a, "tea").text(), "1");
    let poll = "/channels?c=news&after=-1&wait=0";
    let dynamic = ["/", "/visits", poll];
    let ready = |expected: &str| wait_until(expected, || a.get("/ready").text() == expected);
    ready("ready\n");
    for path in dynamic {
        assert!(!is_marked(&a.get(path)), "{path}");
    }
    nats.pause();
    ready("not ready: this node is cut off from the others: its data may be old\n");
    assert_eq!(a.get("/ready").status(), 503);
    for path in dynamic {
        assert!(is_marked(&a.get(path)), "{path}");
    }
    assert!(is_marked(&count(&a, "tea")));
    assert_eq!(a.get("/health").status(), 200);
    nats.resume();
    ready("ready\n");
    for path in dynamic {
        assert!(!is_marked(&a.get(path)), "{path}");
    }
}

#[test]
fn open_pages_learn_whether_their_node_is_cut_off() {
    let Some(nats) = NatsServer::start() else { return };
    let a = node(&nats, "a");
    let page = follow(&a);
    let head = await_line(&page, "");
    assert!(!head.iter().any(|line| line.starts_with("Bine-Stale:")), "{head:?}");
    nats.pause();
    await_line(&page, "event: stale");
    await_line(&page, "data: true");
    let late = follow(&a);
    let head = await_line(&late, "");
    assert!(head.iter().any(|line| line.starts_with("Bine-Stale: ")), "{head:?}");
    nats.resume();
    for page in [page, late] {
        await_line(&page, "event: stale");
        await_line(&page, "data: false");
    }
}
