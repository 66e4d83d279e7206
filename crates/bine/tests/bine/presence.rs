//! Presence in channels: one join and one leave per session, for any view and any number of
//! connections.

use std::time::{Duration, Instant};

use bine::channels::{Access, Credentials, Grant, Settings};
use bine::prelude::*;
use bine_http::websocket::Frame;

use crate::app::{options, program};
use crate::harness::{Folder, KINDS, PATIENCE, Peer, Program};
use crate::websocket::Socket;

/// A session that is disconnected for this time has left.
const AWAY: Duration = Duration::from_secs(2);

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_presence_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .channels(Access::allow_all().authorize(may))
        .channel("board", Settings::default())
        .channel("other", Settings::default())
        .channel("lobby", Settings::default())
        .presence("board", AWAY)
        .presence("lobby", AWAY)
        .page(own)
        .page(who)
        .run_with("Usage: presence", options.lines())
}

async fn may(credentials: Credentials) -> Grant {
    credentials.cookie("member").map_or(Grant::none(), Grant::to)
}

#[page("/own/{name}")]
async fn own(channels: Channels, name: Path<Text>) -> Response {
    channels.respond(["board"]).present_as(&name).into()
}

#[page("/who")]
async fn who(channels: Channels) -> Response {
    let present = channels.present("board", 10).map_or(0, |present| present.count);
    let nobody_counts = channels.present("other", 10).is_none();
    Response::text(format!("{present} {nobody_counts}"))
}

fn start(scheduler: &str) -> Program {
    start_with(&["--data", "memory", "--scheduler", scheduler, "--workers", "8"])
}

fn start_with(options: &[&str]) -> Program {
    Program::start(&mut program("presence::serve_presence_program", options))
}

fn follow(peer: &mut Peer, query: &str, accept: &str) {
    peer.send(format!("GET /channels?{query} HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n"));
}

fn present(peer: &mut Peer) -> String {
    peer.get("/channels?c=board&present").text().trim_end().to_owned()
}

#[track_caller]
fn await_present(peer: &mut Peer, due: &str) {
    let begin = Instant::now();
    while present(peer) != due {
        assert!(begin.elapsed() < PATIENCE, "{} and not {due}", present(peer));
    }
}

const NOBODY: &str = "[{\"channel\":\"board\",\"count\":0,\"sessions\":[]}]";

/// Waits until the last session has left. Returns all events.
#[track_caller]
fn await_last(peer: &mut Peer) -> Vec<String> {
    let begin = Instant::now();
    loop {
        let told = events_so_far(peer);
        if told.last().is_some_and(|last| last.starts_with("leave") && last.ends_with(" 0")) {
            return told;
        }
        assert!(begin.elapsed() < PATIENCE, "{told:?}");
    }
}

/// Returns all events so far, in order.
fn events_so_far(peer: &mut Peer) -> Vec<String> {
    let reply = peer.get("/channels?c=board/presence&after=earliest");
    let each = reply.text().split("{\"cursor\"").skip(1);
    let told = each.map(|one| {
        let event = one.split("\"event\":\"").nth(1).unwrap().split('"').next().unwrap();
        let session =
            one.split("\"session\":\"").nth(1).map_or("", |rest| rest.split('"').next().unwrap());
        let count = one.split("\"count\":").nth(1).unwrap().split('}').next().unwrap();
        format!("{event} {session} {count}")
    });
    told.collect()
}

/// Follows a stream with this name or session, which is present while the returned connection is
/// open.
fn stay(program: &Program, query: &str, fields: &str) -> Peer {
    let mut peer = program.connect();
    peer.send(format!(
        "GET /channels?{query} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n{fields}\r\n"
    ));
    peer.await_text("id: ");
    peer
}

#[test]
fn repeated_polls_join_once_and_leave_once() {
    for scheduler in KINDS {
        // A session leaves after two seconds without a poll, so an attempt on a machine that stalls
        // that long does not count.
        let mut attempts = (0..10).filter_map(|_| polled_again_and_again(scheduler));
        let told = attempts.next().expect("the machine stalls for two seconds in each attempt");
        let due = ["begin  0", "join Ann 1", "join Ben 2", "leave Ann 1", "leave Ben 0"];
        assert_eq!(told, due, "{scheduler}");
    }
}

/// Returns the events of two sessions that poll in turn. `None` if the machine stalled between two
/// polls.
fn polled_again_and_again(scheduler: &str) -> Option<Vec<String>> {
    let program = start(scheduler);
    let (mut peer, mut writer) = (program.connect(), program.connect());
    let mut last = Instant::now();
    let mut is_late = false;
    for _ in 0..20 {
        let begin = Instant::now();
        follow(&mut peer, "c=board&as=Ann&wait=0", "*/*");
        assert_eq!(peer.reply().status(), 204, "{scheduler}");
        is_late |= last.elapsed() >= AWAY;
        last = begin;
    }
    // A waiting poll keeps its session present for longer than the other one's timeout.
    follow(&mut peer, "c=board&c=other&as=Ben&wait=3", "*/*");
    let both = "[{\"channel\":\"board\",\"count\":2,\"sessions\":[\"Ann\",\"Ben\"]}]";
    while !is_late && present(&mut writer) != both {
        is_late = last.elapsed() >= AWAY;
    }
    assert_eq!(peer.reply().status(), 204);
    await_present(&mut writer, NOBODY);
    let told = await_last(&mut writer);
    (!is_late).then_some(told)
}

#[test]
fn stream_is_present_while_open_and_two_tabs_count_as_one() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut writer = program.connect();
        let (mut one, mut two) = (program.connect(), program.connect());
        follow(&mut one, "c=board&as=Ann", "text/event-stream");
        follow(&mut two, "c=board&as=Ann", "application/x-ndjson");
        one.await_text("id: ");
        two.await_text("cursor");
        let ann = "[{\"channel\":\"board\",\"count\":1,\"sessions\":[\"Ann\"]}]";
        await_present(&mut writer, ann);
        drop(one);
        let mut socket = Socket::open(&program, "/channels?c=board&as=Cid");
        socket.receive_text();
        let mut held = program.connect();
        held.send("GET /own/Dora HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n");
        held.await_text("id: ");
        assert_eq!(writer.get("/who").text(), "3 true", "{scheduler}");
        drop((socket, held));
        await_present(&mut writer, ann);
        drop(two);
        await_present(&mut writer, NOBODY);
        let told = await_last(&mut writer);
        for name in ["Ann", "Cid", "Dora"] {
            for event in ["join", "leave"] {
                let is_this = |told: &&String| told.starts_with(&format!("{event} {name} "));
                assert_eq!(told.iter().filter(is_this).count(), 1, "{scheduler}: {told:?}");
            }
        }
    }
}

#[test]
fn assigns_reusable_session_to_client_without_name() {
    let program = start("hybrid");
    let (mut peer, mut writer) = (program.connect(), program.connect());
    follow(&mut peer, "c=board&wait=0", "*/*");
    let reply = peer.reply();
    let session = reply.header("Session").expect("no session was assigned").to_owned();
    for _ in 0..5 {
        follow(&mut peer, &format!("c=board&wait=0&session={session}"), "*/*");
        assert_eq!(peer.reply().header("Session"), None);
    }
    // A client with the same token continues the session.
    let stays = stay(&program, &format!("c=board&session={session}"), "");
    let one = format!("[{{\"channel\":\"board\",\"count\":1,\"sessions\":[\"{session}\"]}}]");
    assert_eq!(present(&mut writer), one);
    drop(stays);
    let (mut events, mut lines) = (program.connect(), program.connect());
    follow(&mut events, "c=board", "text/event-stream");
    events.await_text("event: session\ndata: ");
    follow(&mut lines, "c=board", "application/x-ndjson");
    lines.await_text("{\"session\":\"");
    let mut socket = Socket::open(&program, "/channels?c=board");
    assert!(socket.receive_text().starts_with("{\"session\":\""));
    // A channel without presence assigns no session.
    follow(&mut peer, "c=other&wait=0&as=Ann", "*/*");
    assert_eq!(peer.reply().header("Session"), None);
    for (target, status, told) in [
        ("/channels?c=other&present", 404, "App::presence"),
        ("/channels?c=board&as=", 400, "`as` is a name"),
        ("/channels?c=board&session=%0A", 400, "`session` is a name"),
        ("/channels?present", 400, "which channels?"),
    ] {
        let reply = peer.get(target);
        assert_eq!(reply.status(), status, "{target}");
        assert!(reply.text().contains(told), "{target}: {}", reply.text());
    }
}

#[test]
fn uses_name_of_authenticated_user_over_requested_name() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let (mut peer, mut streams) = (program.connect(), Vec::new());
        for (cookie, name) in [("member=Eva", "Eva"), ("other=Eva", "Ann")] {
            let cookie = format!("Cookie: {cookie}\r\n");
            streams.push(stay(&program, "c=board&as=Ann", &cookie));
            assert!(present(&mut peer).contains(name), "{scheduler} {cookie}");
        }
        assert!(
            present(&mut peer).contains("\"count\":2,\"sessions\":[\"Ann\",\"Eva\"]"),
            "{scheduler}"
        );
    }
}

#[test]
fn streams_joins_and_leaves() {
    let program = start("hybrid");
    let (mut events, mut peer) = (program.connect(), program.connect());
    follow(&mut events, "c=board/presence", "text/event-stream");
    events.await_text("id: ");
    follow(&mut peer, "c=board&as=Ann", "text/event-stream");
    events.await_text("event: join\ndata: {\"session\":\"Ann\",\"count\":1}\n\n");
    drop(peer);
    events.await_text("event: leave\ndata: {\"session\":\"Ann\",\"count\":0}\n\n");
}

/// Symptom: one request caused a response of hundreds of megabytes. Cause: a channel was listed as
/// often as the request named it. Fix: list each channel once, with a limit on the names of all
/// channels together.
#[test]
fn lists_each_channel_once_within_the_limit() {
    let program = start("hybrid");
    let mut peer = program.connect();
    let streams = ["Ann", "Ben"].map(|name| {
        let mut stream = program.connect();
        follow(&mut stream, &format!("c=board&c=lobby&as={name}"), "text/event-stream");
        stream.await_text("id: ");
        stream
    });
    assert_eq!(
        peer.get("/channels?c=lobby&c=board&c=lobby&present&limit=3").text().trim_end(),
        "[{\"channel\":\"board\",\"count\":2,\"sessions\":[\"Ann\",\"Ben\"]},\
         {\"channel\":\"lobby\",\"count\":2,\"sessions\":[\"Ann\"]}]"
    );
    let mut query = |form: &str| {
        let length = form.len();
        peer.send(format!(
            "QUERY /channels HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n\r\n{form}"
        ));
        peer.reply()
    };
    let reply = query(&format!("{}present&limit=1000", "c=board&".repeat(10_000)));
    assert_eq!((reply.status(), reply.text().matches("Ann").count()), (200, 1));
    let many: Vec<_> = (0..65).map(|number| format!("c=board{number}")).collect();
    let many = format!("{}&present", many.join("&"));
    let reply = query(&many);
    assert_eq!(reply.status(), 422);
    assert!(reply.text().contains("of 64 channels at once"), "{}", reply.text());
    assert_eq!(peer.get(&format!("/channels?{many}")).status(), 400);
    drop(streams);
}

#[test]
fn rejects_forged_presence_events() {
    let program = start("hybrid");
    let (mut peer, mut events) = (program.connect(), program.connect());
    follow(&mut events, "c=board/presence", "text/event-stream");
    events.await_text("id: ");
    let own = "/channels/board/presence";
    let forged = r#"{"event":"join","data":{"session":"Eve"},"channels":"board/presence"}"#;
    let both = format!("[{{\"channels\":\"board\",\"data\":1}},{forged}]");
    for (line, fields, body) in [
        (format!("PUT {own}"), "Content-Type: application/json\r\n", ""),
        (format!("POST {own}"), "Content-Type: application/json\r\n", "[1]"),
        (format!("POST {own}"), "Stream-Closed: true\r\n", ""),
        (format!("PATCH {own}"), "Stream-TTL: 1\r\n", ""),
        (format!("DELETE {own}"), "", ""),
        ("POST /channels".to_owned(), "", forged),
        ("POST /channels".to_owned(), "", &*both),
    ] {
        let length = body.len();
        peer.send(format!(
            "{line} HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
        ));
        let reply = peer.reply();
        assert_eq!(reply.status(), 403, "{line} {fields}: {}", reply.text());
        assert!(reply.text().contains("tells who comes and goes"), "{}", reply.text());
    }
    let mut socket = Socket::open(&program, "/channels?c=board/presence");
    socket.receive_text();
    socket.send(Frame::Text(&format!("{{\"publish\":{forged}}}")));
    assert!(socket.receive_text().contains("tells who comes and goes"));
    // The next event is a real one.
    follow(&mut peer, "c=board&as=Ann&wait=0", "*/*");
    assert_eq!(peer.reply().status(), 204);
    let told = events.await_text("{\"session\":\"Ann\",\"count\":1}");
    assert!(!told.contains("Eve"), "{told}");
}

/// Symptom: a program no longer started. Cause: a client had created or closed a channel with the
/// name of a presence channel. Fix: the server logs the conflict, and the list of present sessions
/// still works.
#[test]
fn name_conflict_does_not_prevent_start() {
    let folder = Folder::new();
    let data = folder.join("data");
    let options = ["--data", data.to_str().unwrap()];
    let before = Program::start(&mut program("origins::serve_cors_program", &options));
    let mut peer = before.connect();
    for (name, fields) in [("board", "Stream-Closed: true\r\n"), ("lobby", "")] {
        peer.send(format!(
            "PUT /channels/{name}/presence HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: 0\r\n\r\n"
        ));
        assert_eq!(peer.reply().status(), 201);
    }
    assert_eq!(before.stop().code, Some(0));
    let program = start_with(&options);
    let (mut peer, _stays) = (program.connect(), stay(&program, "c=board&as=Ann", ""));
    assert!(present(&mut peer).contains("\"sessions\":[\"Ann\"]"));
    let errors = program.stop().errors;
    for name in ["board/presence", "lobby/presence"] {
        assert!(errors.contains(&format!("whatever else is called `{name}`")), "{errors}");
    }
}

#[test]
fn websocket_keeps_its_session_when_it_changes_channels() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut peer = program.connect();
        let go = |socket: &mut Socket, channel: &str| {
            socket.send(Frame::Text(&format!("{{\"follow\":[\"{channel}\"]}}")));
            let told = socket.receive_text();
            let session = told.split("\"session\":\"").nth(1);
            session.map(|rest| rest.split('"').next().unwrap().to_owned())
        };
        let here = |name: &str| {
            format!("[{{\"channel\":\"board\",\"count\":1,\"sessions\":[\"{name}\"]}}]")
        };
        let mut socket = Socket::open(&program, "/channels?c=other&as=Cid");
        socket.receive_text();
        assert_eq!(go(&mut socket, "board"), None, "{scheduler}");
        await_present(&mut peer, &here("Cid"));
        assert_eq!(go(&mut socket, "other"), None);
        await_present(&mut peer, NOBODY);
        // A session without a name gets one once, when it first needs it.
        let mut socket = Socket::open(&program, "/channels?c=other");
        socket.receive_text();
        let given = go(&mut socket, "board").expect("no session was assigned");
        await_present(&mut peer, &here(&given));
        go(&mut socket, "other");
        assert_eq!(go(&mut socket, "board"), None, "{scheduler}");
        await_present(&mut peer, &here(&given));
    }
}
