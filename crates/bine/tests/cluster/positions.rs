//! A client reads its own changes at every node.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use bine::Method;
use bine::test::{Reply, Site};
use bine_nats_server::NatsServer;

use crate::board;
use crate::nodes::{count, node, node_at};
use crate::relay::Relay;

const PATIENCE: Duration = Duration::from_mins(1);
/// How long a test watches that a node does not answer.
const SILENCE: Duration = Duration::from_millis(200);
/// Rounds of a test that needs a node which is late and has not noticed it yet.
pub(crate) const ROUNDS: usize = 20;

/// A request on its own connection, whose response has not been read.
pub(crate) struct Sent(BufReader<TcpStream>);

impl Sent {
    pub(crate) fn get(site: &Site, path: &str, field: &str) -> Self {
        Self::new(site, &format!("GET {path}"), field, "")
    }

    pub(crate) fn new(site: &Site, target: &str, fields: &str, body: &str) -> Self {
        let (host, length) = (site.address(), body.len());
        let mut stream = TcpStream::connect(host).unwrap();
        let request = format!(
            "{target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{fields}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        Self(BufReader::new(stream))
    }

    /// Whether no response arrives for a moment.
    pub(crate) fn is_waiting(&mut self) -> bool {
        self.0.get_ref().set_read_timeout(Some(SILENCE)).unwrap();
        let waits = |error: &std::io::Error| {
            matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
        };
        self.0.fill_buf().as_ref().err().is_some_and(waits)
    }

    pub(crate) fn text(mut self) -> String {
        self.0.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        let mut text = String::new();
        self.0.read_to_string(&mut text).unwrap();
        text
    }
}

fn cookie(reply: &Reply) -> String {
    let cookies = reply.headers().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    let mut positions = cookies.filter(|(_, value)| value.starts_with("bine-position="));
    let (_, value) = positions.next().unwrap();
    value.split(';').next().unwrap().to_owned()
}

#[test]
fn request_with_a_position_waits_until_its_node_has_applied_it() {
    let Some(nats) = NatsServer::start() else { return };
    let relay = Relay::start(nats.port());
    let (a, b) = (node(&nats, "a"), node_at(&relay.url(), "b"));
    for round in 0..ROUNDS {
        let name = format!("note {round}.");
        relay.pause();
        let changed = count(&a, &name);
        assert_eq!(changed.status(), 200);
        let field = format!("Bine-Position: {}", changed.header("bine-position").unwrap());
        let cookie = format!("Cookie: {}", cookie(&changed));
        let without = b.get("/");
        let mut sent = [field, cookie].map(|field| Sent::get(&b, "/", &field));
        let are_waiting = sent.each_mut().map(Sent::is_waiting);
        let is_late = b.get("/");
        relay.resume();
        let texts = sent.map(Sent::text);
        // On a busy machine the node may notice before that it is cut off, and serves what it has.
        if is_late.header("bine-stale").is_some()
            || texts
                .iter()
                .any(|text| text.contains("Bine-Stale: ") || text.starts_with("HTTP/1.1 503 "))
        {
            continue;
        }
        assert_eq!(are_waiting, [true, true]);
        assert!(!without.text().contains(&name), "the node has the change already");
        for text in texts {
            assert!(text.starts_with("HTTP/1.1 200 ") && text.contains(&name), "{text}");
        }
        return;
    }
    panic!("the node was never late without a notice");
}

#[test]
fn session_of_one_node_is_known_at_a_late_node() {
    let Some(nats) = NatsServer::start() else { return };
    let relay = Relay::start(nats.port());
    let (a, b) = (node(&nats, "a"), node_at(&relay.url(), "b"));
    for _ in 0..ROUNDS {
        relay.pause();
        let reply = a.request(Method::Post, "/visits").send();
        assert_eq!((reply.status(), reply.text()), (200, "1"));
        let cookies = reply.headers().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        let cookies: Vec<_> = cookies.map(|(_, value)| value.split(';').next().unwrap()).collect();
        assert_eq!(cookies.len(), 2, "{cookies:?}");
        let mut sent = Sent::get(&b, "/visits", &format!("Cookie: {}", cookies.join("; ")));
        let is_waiting = sent.is_waiting();
        relay.resume();
        let text = sent.text();
        if text.contains("Bine-Stale: ") || text.starts_with("HTTP/1.1 503 ") {
            continue;
        }
        assert!(is_waiting, "{text}");
        assert!(text.ends_with("\r\n\r\n2"), "{text}");
        return;
    }
    panic!("the node was never late without a notice");
}

#[test]
fn change_with_a_body_waits_too() {
    let Some(nats) = NatsServer::start() else { return };
    let relay = Relay::start(nats.port());
    let (a, b) = (node(&nats, "a"), node_at(&relay.url(), "b"));
    for round in 0..ROUNDS {
        let name = format!("note {round}.");
        relay.pause();
        let changed = count(&a, &name);
        let position = changed.header("bine-position").unwrap();
        let fields = format!("Content-Type: application/json\r\nBine-Position: {position}");
        let body = format!("{{\"name\":\"{name}\"}}");
        let mut sent = Sent::new(&b, "POST /cluster/count", &fields, &body);
        let is_waiting = sent.is_waiting();
        relay.resume();
        let text = sent.text();
        if text.contains("Bine-Stale: ") || text.starts_with("HTTP/1.1 503 ") {
            continue;
        }
        assert!(is_waiting, "{text}");
        assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with("\r\n\r\n2"), "{text}");
        return;
    }
    panic!("the node was never late without a notice");
}

#[test]
fn position_that_no_node_reaches_gets_503_and_disturbs_no_other_request() {
    let Some(nats) = NatsServer::start() else { return };
    let a = node(&nats, "a");
    let first = count(&a, "tea");
    let (_, order) = first.header("bine-position").unwrap().split_once('-').unwrap();
    let forged = format!("Bine-Position: {}-{order}", u64::MAX);
    let mut sent = Sent::get(&a, "/", &forged);
    assert!(sent.is_waiting());
    assert_eq!(a.get("/").status(), 200);
    assert_eq!(count(&a, "tea").status(), 200);
    let late = sent.text();
    assert!(late.starts_with("HTTP/1.1 503 ") && late.contains("\r\nRetry-After: 1\r\n"), "{late}");
    for invalid in
        ["Bine-Position: x", "Bine-Position: -1", "Cookie: bine-position=99x", "Bine-Position: 99"]
    {
        let text = Sent::get(&a, "/", invalid).text();
        assert!(text.starts_with("HTTP/1.1 200 "), "{invalid}: {text}");
    }
}

/// After the stream had been deleted, browsers waited for positions of the old one: 503 after five
/// seconds, until their cookie was ten seconds old. A position has the id of its stream now.
#[test]
fn position_of_a_deleted_stream_is_ignored() {
    let Some(mut nats) = NatsServer::start() else { return };
    let a = node(&nats, "a");
    for _ in 0..5 {
        assert_eq!(count(&a, "tea").status(), 200);
    }
    let last = count(&a, "tea");
    let field = format!("Bine-Position: {}", last.header("bine-position").unwrap());
    let cookie = format!("Cookie: {}", cookie(&last));
    drop(a);
    nats.erase();
    nats.restart();
    let b = node(&nats, "b");
    for old in [field, cookie] {
        let text = Sent::get(&b, "/", &old).text();
        assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    }
}

#[test]
fn program_on_one_machine_hands_out_no_position() {
    let site = Site::new(board::app());
    let reply = count(&site, "tea");
    assert_eq!(reply.text(), "1");
    assert!(reply.header("bine-position").is_none() && reply.header("set-cookie").is_none());
    let forged = format!("Bine-Position: {}-00000000", u64::MAX);
    assert!(Sent::get(&site, "/", &forged).text().starts_with("HTTP/1.1 200 "));
}
