//! Pages that hold their response until a channel has messages, and followers inside the program.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use bine::channels::{Access, ClientLimits, Format, Interruption, Settings};
use bine::prelude::*;
use bine_http::websocket::Frame;

use crate::app::{options, program};
use crate::channels::answered;
use crate::harness::{AT_ONCE, PATIENCE, Program};
use crate::websocket::{Socket, upgrade_request};

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_holding_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .channels(
            Access::none().client_limits(ClientLimits { holds: 8, ..ClientLimits::default() }),
        )
        .channel("news", Settings::default())
        .channel("echo", Settings::default())
        .page(say)
        .page(at_once)
        .page(later)
        .page(blocks)
        .page(lines)
        .page(stream)
        .page(repeat)
        .run_with("Usage: held", options.lines())
}

#[page(POST "/say/{word}")]
async fn say(channels: Channels, word: Path<Text>) -> Result<Response, Error> {
    channels.publish("news", &**word).await?;
    Ok(Response::text("said"))
}

#[page("/at-once/{name}")]
async fn at_once(
    channels: Channels,
    name: Path<Text>,
    key: Query<Option<Text>>,
) -> Result<Response, Error> {
    if key.as_deref() == Some("wrong") {
        return Err(Error::forbidden("not with this key"));
    }
    Ok(channels.respond([&**name]).into())
}

#[page("/later")]
async fn later(channels: Channels) -> Result<impl Respond, Error> {
    // The task suspends here, after which the request is no longer in the buffer.
    channels.publish("echo", "somebody came").await?;
    Ok(channels.respond(["news"]).earliest())
}

#[page("/blocks")]
fn blocks(channels: Channels) -> impl Respond {
    channels.respond(["news", "echo"]).wait(Duration::from_secs(20))
}

#[page("/lines")]
fn lines(channels: Channels) -> impl Respond {
    channels.respond(["news"]).earliest().format(Format::Lines)
}

#[page("/stream")]
async fn stream(channels: Channels) -> Response {
    let mut follower = channels.follow(["news"]).earliest();
    Response::stream("text/plain", async move |mut out| {
        while let Some(next) = follower.next().await {
            out.send(format!("{}\n", next?.text()?)).await?;
        }
        Ok(())
    })
}

/// A thread of the program follows too: it repeats the messages of `news` in `echo`.
#[page(POST "/repeat")]
fn repeat(channels: Channels) -> Response {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let mut follower = channels.follow(["news"]);
        thread::spawn(move || {
            loop {
                match follower.wait(Duration::from_secs(1)) {
                    Some(Ok(message)) => {
                        let word = message.text().unwrap_or_default();
                        let _ = channels.publish("echo", word).wait();
                    }
                    Some(Err(Interruption::TimedOut)) => {}
                    _ => return,
                }
            }
        });
    });
    Response::text("listening")
}

fn start(scheduler: &str) -> Program {
    // With the scheduler `pool` each follower occupies a thread until the server notices the
    // disconnection.
    let options = ["--data", "memory", "--scheduler", scheduler, "--workers", "8"];
    Program::start(&mut program("held::serve_holding_program", &options))
}

#[test]
fn page_of_any_kind_holds_response_until_a_message_arrives() {
    for scheduler in AT_ONCE {
        let program = start(scheduler);
        let (mut peer, mut writer) = (program.connect(), program.connect());
        for target in ["/at-once/news", "/blocks", "/later"] {
            // Continue at the end of the last response, so that no message is missed.
            peer.send(format!("GET {target}?after=now&wait=0 HTTP/1.1\r\nHost: a\r\n\r\n"));
            let (status, words, cursor) = answered(&mut peer);
            assert_eq!((status, words.len()), (204, 0), "{scheduler} {target}");
            peer.send(format!("GET {target}?after={cursor} HTTP/1.1\r\nHost: a\r\n\r\n"));
            writer.expect_post("/say/one", "");
            let (status, words, next) = answered(&mut peer);
            assert_eq!((status, words), (200, vec!["one".to_owned()]), "{scheduler} {target}");
            assert!(next > cursor);
        }
        assert_eq!(program.connect().get("/at-once/news?key=wrong").status(), 403);
        assert_eq!(program.connect().get("/at-once/nowhere").status(), 404);
        assert_eq!(program.connect().get("/at-once/news?wait=long").status(), 400);
        // The page sets the start if the request does not; it always sets the channels.
        peer.send("GET /later?c=echo HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(answered(&mut peer).1, ["one", "one", "one"], "{scheduler}");
    }
}

#[test]
fn held_page_uses_requested_or_fixed_view() {
    for scheduler in AT_ONCE {
        let program = start(scheduler);
        program.connect().expect_post("/say/one", "");
        for (target, accept, begin) in [
            ("/later", "text/event-stream", "id: "),
            ("/lines", "text/event-stream", "{\"cursor\":"),
            ("/later", "multipart/mixed", "--bine-part"),
        ] {
            let mut peer = program.connect();
            peer.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n"));
            let text = peer.await_text(begin);
            assert!(text.starts_with("HTTP/1.1 200 "), "{scheduler} {target} {text}");
        }
        let mut socket = Socket::open(&program, "/later");
        assert!(socket.receive_text().contains("\"data\":\"one\""), "{scheduler}");
        // Only the page chooses the channels.
        for word in ["{\"follow\":[\"echo\"]}", "{\"publish\":{\"channels\":\"echo\",\"data\":1}}"]
        {
            socket.send(Frame::Text(word));
            let told = socket.receive_text();
            assert!(told.starts_with("{\"refused\":\"the page alone"), "{scheduler}: {told}");
        }
    }
}

/// Waits until a request may wait again, after the server has noticed a disconnection.
#[track_caller]
fn await_room(program: &Program) {
    let (mut peer, began) = (program.connect(), Instant::now());
    while peer.get("/blocks?wait=0").status() != 204 {
        assert!(began.elapsed() < PATIENCE, "no place becomes free");
    }
}

#[test]
fn limits_number_of_held_requests() {
    let program = start("hybrid");
    let lines = || {
        let mut peer = program.connect();
        peer.send("GET /lines HTTP/1.1\r\nHost: a\r\n\r\n");
        peer.await_text("{\"cursor\":");
        peer
    };
    let mut peers: Vec<_> = (0..8).map(|_| lines()).collect();
    let refused = program.connect().get("/blocks");
    assert_eq!((refused.status(), refused.header("Retry-After")), (429, Some("30")));
    peers.clear();
    await_room(&program);
}

#[test]
fn limits_number_of_held_websockets() {
    let program = start("hybrid");
    let target = "/at-once/news";
    let sockets: Vec<_> = (0..8)
        .map(|_| {
            let mut socket = Socket::open(&program, target);
            socket.receive_text();
            socket
        })
        .collect();
    let mut peer = program.connect();
    peer.send(upgrade_request(target, ""));
    let refused = peer.reply();
    assert_eq!((refused.status(), refused.header("Retry-After")), (429, Some("30")));
    assert_eq!(program.connect().get("/blocks?wait=0").status(), 429);
    drop(sockets);
    await_room(&program);
}

#[test]
fn page_and_thread_follow_channels_inside_the_program() {
    for scheduler in AT_ONCE {
        let program = start(scheduler);
        let mut writer = program.connect();
        writer.expect_post("/repeat", "");
        let mut peer = program.connect();
        peer.send("GET /at-once/echo?after=earliest HTTP/1.1\r\nHost: a\r\n\r\n");
        writer.expect_post("/say/one", "");
        assert_eq!(answered(&mut peer).1, ["one"], "{scheduler}");
        let mut reader = program.connect();
        reader.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
        reader.await_text("one\n");
        writer.expect_post("/say/two", "");
        reader.await_text("two\n");
    }
}
