//! A channel as a Durable Streams resource. The public suite (`cargo xtask conformance`) covers
//! more, but neither restarts the server nor changes its scheduler.

use crate::channels::start;
use crate::harness::{Folder, KINDS, Peer, Reply};

const TEXT: &str = "Content-Type: text/plain\r\n";
const JSON: &str = "Content-Type: application/json\r\n";

pub(crate) fn ask(peer: &mut Peer, method: &str, target: &str, fields: &str, body: &str) -> Reply {
    peer.request(method, &format!("/channels/{target}"), fields, body)
}

pub(crate) fn check(peer: &mut Peer, request: (&str, &str, &str, &str), status: u16) -> Reply {
    let (method, target, fields, body) = request;
    let reply = ask(peer, method, target, fields, body);
    assert_eq!(reply.status(), status, "{request:?}: {reply:?}");
    reply
}

fn next(reply: &Reply) -> String {
    reply.header("Stream-Next-Offset").expect("no position to continue from").to_owned()
}

#[test]
fn head_omits_length_that_get_would_omit() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    check(&mut peer, ("PUT", "log", TEXT, "one"), 201);
    let head = check(&mut peer, ("HEAD", "log", "", ""), 200);
    assert_eq!((head.header("Content-Length"), head.header("Transfer-Encoding")), (None, None));
    // The connection stays open too.
    assert_eq!(check(&mut peer, ("GET", "log", "", ""), 200).text(), "one");
}

#[test]
fn answers_each_request_with_its_status() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    let made = check(&mut peer, ("PUT", "v1/a", TEXT, "one"), 201);
    assert_eq!(made.header("Location"), Some("http://a/channels/v1/a"));
    let tail = next(&check(&mut peer, ("POST", "v1/a", TEXT, " two"), 204));
    let whole = check(&mut peer, ("GET", "v1/a", "", ""), 200);
    assert_eq!((whole.text(), next(&whole)), ("one two", tail.clone()));
    assert_eq!(whole.header("Stream-Up-To-Date"), Some("true"));
    let tag = format!("If-None-Match: {}\r\n", whole.header("ETag").unwrap());
    let behind = format!("v1/a?offset={tail}");
    let closed = "Stream-Closed: true\r\n";
    let producer = |epoch: &str, sequence: &str| {
        format!("{TEXT}Producer-Id: p\r\nProducer-Epoch: {epoch}\r\nProducer-Seq: {sequence}\r\n")
    };
    for (method, target, fields, body, status) in [
        ("PUT", "v1/a", TEXT, "", 200),
        ("PUT", "v1/a", JSON, "", 409),
        ("PUT", "v1/a", "Content-Type: text/plain\r\nStream-TTL: 60\r\n", "", 409),
        ("PUT", "b", "Stream-TTL: 060\r\n", "", 400),
        ("PUT", "b", "Stream-TTL: 1\r\nStream-Expires-At: 2100-01-01T00:00:00Z\r\n", "", 400),
        ("PUT", "b", "Stream-Forked-From: /channels/none\r\n", "", 404),
        ("PUT", "b", "Stream-Forked-From: /v1/a\r\nStream-Fork-Offset: 7\r\n", "", 400),
        ("PUT", "__ds/subscriptions/a", "", "", 404),
        ("GET", "v1/a", &tag, "", 304),
        ("GET", "v1/a?offset=7", "", "", 400),
        ("GET", "v1/a?live=sse", "", "", 400),
        ("GET", "v1/a?offset=00000000_0000000000000400", "", "", 410),
        ("GET", "none", "", "", 404),
        ("HEAD", "v1/a", "", "", 200),
        ("HEAD", "none", "", "", 404),
        ("POST", "v1/a", TEXT, "", 400),
        ("POST", "v1/a", "", "b", 400),
        ("POST", "v1/a", JSON, "1", 409),
        ("POST", "none", TEXT, "b", 404),
        ("POST", "v1/a", &producer("0", "0"), "three", 200),
        ("POST", "v1/a", &producer("0", "0"), "three", 204),
        ("POST", "v1/a", &producer("0", "2"), "five", 409),
        ("POST", "v1/a", &producer("1", "1"), "five", 400),
        ("POST", "v1/a", &producer("1", "0"), "four", 200),
        ("POST", "v1/a", &producer("0", "1"), "five", 403),
        ("POST", "v1/a", "Content-Type: text/plain\r\nProducer-Id: p\r\n", "five", 400),
        ("POST", "v1/a", closed, "", 204),
        ("POST", "v1/a", closed, "", 204),
        ("POST", "v1/a", TEXT, "five", 409),
        ("PUT", "v1/a", TEXT, "", 409),
        ("PUT", "fork", "Stream-Forked-From: /v1/a\r\n", "", 201),
        ("GET", &behind, "", "", 200),
        ("OPTIONS", "v1/a", "", "", 204),
        ("PATCH", "v1/a", "", "", 200),
        ("QUERY", "v1/a", "", "", 405),
        ("DELETE", "v1/a", "", "", 204),
        // The name stays reserved for its fork.
        ("GET", "v1/a", "", "", 410),
        ("PUT", "v1/a", TEXT, "", 409),
        ("DELETE", "fork", "", "", 204),
        ("DELETE", "v1/a", "", "", 404),
    ] {
        check(&mut peer, (method, target, fields, body), status);
    }
}

#[test]
fn readers_wait_by_poll_and_by_events_on_each_kind_of_scheduler() {
    for scheduler in KINDS {
        let program = start(&["--data", "memory", "--scheduler", scheduler]);
        let (mut poll, mut writer) = (program.connect(), program.connect());
        let tail = next(&check(&mut writer, ("PUT", "s", JSON, "[1]"), 201));
        poll.send(format!(
            "GET /channels/s?offset={tail}&live=long-poll HTTP/1.1\r\nHost: a\r\n\r\n"
        ));
        let tail = next(&check(&mut writer, ("POST", "s", JSON, "[2, [3]]"), 204));
        let reply = poll.reply();
        assert_eq!((reply.status(), reply.text(), next(&reply)), (200, "[2,[3]]", tail));
        assert!(reply.header("Stream-Cursor").is_some(), "{scheduler}");
        poll.end();
        let mut events = program.connect();
        events.send("GET /channels/s?offset=-1&live=sse HTTP/1.1\r\nHost: a\r\n\r\n");
        events.await_text("event: data\ndata:[1,2,[3]]\n\n");
        events.await_text("\"upToDate\":true}\n\n");
        check(
            &mut writer,
            ("POST", "s", "Stream-Closed: true\r\nContent-Type: application/json\r\n", "4"),
            204,
        );
        events.await_text("event: data\ndata:[4]\n\n");
        events.await_text("\"streamClosed\":true}\n\n");
        events.await_text("0\r\n\r\n");
    }
}

#[test]
fn producers_closed_streams_and_forks_survive_a_kill() {
    let folder = Folder::new();
    let data = folder.join("data");
    let options = ["--data", data.to_str().unwrap()];
    let program = start(&options);
    let mut peer = program.connect();
    let producer =
        "Content-Type: text/plain\r\nProducer-Id: p\r\nProducer-Epoch: 3\r\nProducer-Seq: 0\r\n";
    check(&mut peer, ("PUT", "open", TEXT, ""), 201);
    check(&mut peer, ("POST", "open", producer, "first"), 200);
    check(
        &mut peer,
        ("PUT", "done", "Content-Type: text/plain\r\nStream-Closed: true\r\n", "all"),
        201,
    );
    check(&mut peer, ("PUT", "fork", "Stream-Forked-From: /channels/done\r\n", ""), 201);
    check(&mut peer, ("DELETE", "done", "", ""), 204);
    program.kill();
    let program = start(&options);
    let mut peer = program.connect();
    let told = check(&mut peer, ("POST", "open", producer, "first"), 204);
    assert_eq!(told.header("Producer-Epoch"), Some("3"));
    assert_eq!(check(&mut peer, ("GET", "open", "", ""), 200).text(), "first");
    check(&mut peer, ("GET", "done", "", ""), 410);
    assert_eq!(check(&mut peer, ("GET", "fork", "", ""), 200).text(), "all");
    check(
        &mut peer,
        ("POST", "fork", "Content-Type: text/plain\r\nStream-Closed: true\r\n", "!"),
        204,
    );
    program.kill();
    let program = start(&options);
    let mut peer = program.connect();
    let whole = check(&mut peer, ("GET", "fork", "", ""), 200);
    assert_eq!((whole.text(), whole.header("Stream-Closed")), ("all!", Some("true")));
}
