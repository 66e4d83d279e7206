//! Claims about who is present in a channel: one coming and one going for each, however they follow and how often.

use std::time::{Duration, Instant};

use bine::channels::{Access, Asked, Grant, Settings};
use bine::prelude::*;
use bine_http::websocket::Frame;

use crate::app::{options, program};
use crate::harness::{Folder, KINDS, PATIENCE, Peer, Program};
use crate::websocket::Socket;

/// Who is away for so long has gone.
const AWAY: Duration = Duration::from_secs(2);

/// The program itself. As a test among the others it has nothing to do.
#[test]
fn the_program_that_counts_who_is_present_serves() -> Exit {
    let Some(options) = options() else { return Exit::fine() };
    App::new()
        .channels(Access::everything().ask(may))
        .channel("board", Settings::default())
        .channel("other", Settings::default())
        .channel("lobby", Settings::default())
        .presence("board", AWAY)
        .presence("lobby", AWAY)
        .page(own)
        .page(who)
        .run_with("Usage: presence", options.lines())
}

async fn may(asked: Asked) -> Grant {
    asked.cookie("member").map_or(Grant::nothing(), Grant::to)
}

#[page("/own/{name}")]
async fn own(channels: Channels, name: Path<Text>) -> Response {
    channels.hold(["board"]).present_as(&name).into()
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
    Program::start(&mut program("presence::the_program_that_counts_who_is_present_serves", options))
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

/// What was told of comings and goings when the last has gone.
#[track_caller]
fn await_last(peer: &mut Peer) -> Vec<String> {
    let begin = Instant::now();
    loop {
        let told = told(peer);
        if told.last().is_some_and(|last| last.starts_with("leave") && last.ends_with(" 0")) {
            return told;
        }
        assert!(begin.elapsed() < PATIENCE, "{told:?}");
    }
}

/// What was told of comings and goings so far, in their order.
fn told(peer: &mut Peer) -> Vec<String> {
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

/// Follows by a stream as this name or session, which is there when this returns and as long as the peer is.
fn stay(program: &Program, query: &str, fields: &str) -> Peer {
    let mut peer = program.connect();
    peer.send(format!(
        "GET /channels?{query} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n{fields}\r\n"
    ));
    peer.await_text("id: ");
    peer
}

#[test]
fn who_polls_again_and_again_comes_once_and_goes_once() {
    for scheduler in KINDS {
        // Who is away for two seconds has gone: polls of a machine that stalls so long between two of them say nothing.
        let mut attempts = (0..10).filter_map(|_| polled_again_and_again(scheduler));
        let told =
            attempts.next().expect("a machine that does not stall for two seconds each time");
        let due = ["begin  0", "join Ann 1", "join Ben 2", "leave Ann 1", "leave Ben 0"];
        assert_eq!(told, due, "{scheduler}");
    }
}

/// What is told of two who poll, one behind the other. `None`: somebody may have been away for too long meanwhile.
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
    // One that waits is present as long as it waits, which is longer than the other is missed.
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
fn a_stream_is_present_as_long_as_it_lives_and_two_tabs_are_one() {
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
        socket.hear_text();
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
fn who_gives_no_name_gets_one_to_come_back_by() {
    let program = start("hybrid");
    let (mut peer, mut writer) = (program.connect(), program.connect());
    follow(&mut peer, "c=board&wait=0", "*/*");
    let reply = peer.reply();
    let session = reply.field("Session").expect("it was given one").to_owned();
    for _ in 0..5 {
        follow(&mut peer, &format!("c=board&wait=0&session={session}"), "*/*");
        assert_eq!(peer.reply().field("Session"), None);
    }
    // Whoever comes by it is the same.
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
    assert!(socket.hear_text().starts_with("{\"session\":\""));
    // Nobody is asked where nobody is counted.
    follow(&mut peer, "c=other&wait=0&as=Ann", "*/*");
    assert_eq!(peer.reply().field("Session"), None);
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
fn who_is_known_is_present_by_that_name_whatever_they_say() {
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
fn comings_and_goings_are_followed_as_they_happen() {
    let program = start("hybrid");
    let (mut events, mut peer) = (program.connect(), program.connect());
    follow(&mut events, "c=board/presence", "text/event-stream");
    events.await_text("id: ");
    follow(&mut peer, "c=board&as=Ann", "text/event-stream");
    events.await_text("event: join\ndata: {\"session\":\"Ann\",\"count\":1}\n\n");
    drop(peer);
    events.await_text("event: leave\ndata: {\"session\":\"Ann\",\"count\":0}\n\n");
}

/// Symptom: one request made an answer of hundreds of megabytes. Cause: a channel was told of as often as it was named.
/// Cure: once, and of all of them together no more than the limit are named.
#[test]
fn each_channel_is_told_of_once_and_all_together_within_the_limit() {
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
fn comings_and_goings_are_told_by_the_program_alone() {
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
    socket.hear_text();
    socket.say(Frame::Text(&format!("{{\"publish\":{forged}}}")));
    assert!(socket.hear_text().contains("tells who comes and goes"));
    // The next that is told is true.
    follow(&mut peer, "c=board&as=Ann&wait=0", "*/*");
    assert_eq!(peer.reply().status(), 204);
    let told = events.await_text("{\"session\":\"Ann\",\"count\":1}");
    assert!(!told.contains("Eve"), "{told}");
}

/// Symptom: a program did not start any more. Cause: somebody had made, or closed, a channel by the name in which comings
/// and goings are told. Cure: that is told to the log, and who is present can be asked for all the same.
#[test]
fn whatever_was_called_so_before_ends_no_start() {
    let folder = Folder::new();
    let data = folder.join("data");
    let options = ["--data", data.to_str().unwrap()];
    let before = Program::start(&mut program("origins::the_program_with_a_guest_serves", &options));
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
fn a_websocket_that_goes_elsewhere_is_present_there_by_its_own_name() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut peer = program.connect();
        let go = |socket: &mut Socket, channel: &str| {
            socket.say(Frame::Text(&format!("{{\"follow\":[\"{channel}\"]}}")));
            let told = socket.hear_text();
            let session = told.split("\"session\":\"").nth(1);
            session.map(|rest| rest.split('"').next().unwrap().to_owned())
        };
        let here = |name: &str| {
            format!("[{{\"channel\":\"board\",\"count\":1,\"sessions\":[\"{name}\"]}}]")
        };
        let mut socket = Socket::open(&program, "/channels?c=other&as=Cid");
        socket.hear_text();
        assert_eq!(go(&mut socket, "board"), None, "{scheduler}");
        await_present(&mut peer, &here("Cid"));
        assert_eq!(go(&mut socket, "other"), None);
        await_present(&mut peer, NOBODY);
        // Who says no name is given one where it is needed, once.
        let mut socket = Socket::open(&program, "/channels?c=other");
        socket.hear_text();
        let given = go(&mut socket, "board").expect("it was given one");
        await_present(&mut peer, &here(&given));
        go(&mut socket, "other");
        assert_eq!(go(&mut socket, "board"), None, "{scheduler}");
        await_present(&mut peer, &here(&given));
    }
}
