//! Claims about pages that hold their reply until channels have messages, and about those that follow by themselves.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use bine::channels::{Access, Caps, Interruption, Settings, View};
use bine::prelude::*;
use bine_http::websocket::Frame;

use crate::app::{options, program};
use crate::channels::answered;
use crate::harness::{AT_ONCE, PATIENCE, Peer, Program};
use crate::websocket::{Socket, asks};

/// The program itself. As a test among the others it has nothing to do.
#[test]
fn the_program_that_holds_serves() -> Exit {
    let Some(options) = options() else { return Exit::fine() };
    App::new()
        .channels(Access::none().caps(Caps { holds: 8, ..Caps::default() }))
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
    Ok(channels.hold([&**name]).into())
}

#[page("/later")]
async fn later(channels: Channels) -> Result<impl Respond, Error> {
    // It pends here, and its request is not in the buffer any more.
    channels.publish("echo", "somebody came").await?;
    Ok(channels.hold(["news"]).earliest())
}

#[page("/blocks")]
fn blocks(channels: Channels) -> impl Respond {
    channels.hold(["news", "echo"]).wait(Duration::from_secs(20))
}

#[page("/lines")]
fn lines(channels: Channels) -> impl Respond {
    channels.hold(["news"]).earliest().view(View::Lines)
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

/// A thread of the program's own follows too: it says in `echo` what it hears in `news`.
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
                    Some(Err(Interruption::Quiet)) => {}
                    _ => return,
                }
            }
        });
    });
    Response::text("listening")
}

fn start(scheduler: &str) -> Program {
    // Under `pool` one who follows has a thread until it is noticed that the peer is gone.
    let options = ["--data", "memory", "--scheduler", scheduler, "--workers", "8"];
    Program::start(&mut program("held::the_program_that_holds_serves", &options))
}

fn post(peer: &mut Peer, target: &str) {
    peer.send(format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"));
    assert_eq!(peer.reply().status(), 200);
}

#[test]
fn a_page_of_any_kind_holds_its_reply_until_there_is_something() {
    for scheduler in AT_ONCE {
        let program = start(scheduler);
        let (mut peer, mut writer) = (program.connect(), program.connect());
        for target in ["/at-once/news", "/blocks", "/later"] {
            // Where the last reply ended, so that nothing said meanwhile is missed.
            peer.send(format!("GET {target}?after=now&wait=0 HTTP/1.1\r\nHost: a\r\n\r\n"));
            let (status, words, cursor) = answered(&mut peer);
            assert_eq!((status, words.len()), (204, 0), "{scheduler} {target}");
            peer.send(format!("GET {target}?after={cursor} HTTP/1.1\r\nHost: a\r\n\r\n"));
            post(&mut writer, "/say/one");
            let (status, words, next) = answered(&mut peer);
            assert_eq!((status, words), (200, vec!["one".to_owned()]), "{scheduler} {target}");
            assert!(next > cursor);
        }
        assert_eq!(program.connect().get("/at-once/news?key=wrong").status(), 403);
        assert_eq!(program.connect().get("/at-once/nowhere").status(), 404);
        assert_eq!(program.connect().get("/at-once/news?wait=long").status(), 400);
        // The page says where it begins if the request does not, and which channels whatever it says.
        peer.send("GET /later?c=echo HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(answered(&mut peer).1, ["one", "one", "one"], "{scheduler}");
    }
}

#[test]
fn a_held_page_comes_in_the_view_that_is_asked_for_or_that_it_has_fixed() {
    for scheduler in AT_ONCE {
        let program = start(scheduler);
        post(&mut program.connect(), "/say/one");
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
        assert!(socket.hear_text().contains("\"data\":\"one\""), "{scheduler}");
        // The page alone says which channels.
        for word in ["{\"follow\":[\"echo\"]}", "{\"publish\":{\"channels\":\"echo\",\"data\":1}}"]
        {
            socket.say(Frame::Text(word));
            let told = socket.hear_text();
            assert!(told.starts_with("{\"refused\":\"the page alone"), "{scheduler}: {told}");
        }
    }
}

/// Returns when one more may wait: somebody goes when that is noticed.
#[track_caller]
fn await_room(program: &Program) {
    let (mut peer, began) = (program.connect(), Instant::now());
    while peer.get("/blocks?wait=0").status() != 204 {
        assert!(began.elapsed() < PATIENCE, "nobody goes");
    }
}

#[test]
fn a_page_holds_no_more_than_may_wait() {
    let program = start("hybrid");
    let lines = || {
        let mut peer = program.connect();
        peer.send("GET /lines HTTP/1.1\r\nHost: a\r\n\r\n");
        peer.await_text("{\"cursor\":");
        peer
    };
    let mut peers: Vec<_> = (0..8).map(|_| lines()).collect();
    let refused = program.connect().get("/blocks");
    assert_eq!((refused.status(), refused.field("Retry-After")), (429, Some("30")));
    peers.clear();
    await_room(&program);
}

#[test]
fn websockets_that_a_page_holds_are_no_more_than_may_wait() {
    let program = start("hybrid");
    let target = "/at-once/news";
    let sockets: Vec<_> = (0..8)
        .map(|_| {
            let mut socket = Socket::open(&program, target);
            socket.hear_text();
            socket
        })
        .collect();
    let mut peer = program.connect();
    peer.send(asks(target, ""));
    let refused = peer.reply();
    assert_eq!((refused.status(), refused.field("Retry-After")), (429, Some("30")));
    assert_eq!(program.connect().get("/blocks?wait=0").status(), 429);
    drop(sockets);
    await_room(&program);
}

#[test]
fn a_page_and_a_thread_follow_by_themselves() {
    for scheduler in AT_ONCE {
        let program = start(scheduler);
        let mut writer = program.connect();
        post(&mut writer, "/repeat");
        let mut peer = program.connect();
        peer.send("GET /at-once/echo?after=earliest HTTP/1.1\r\nHost: a\r\n\r\n");
        post(&mut writer, "/say/one");
        assert_eq!(answered(&mut peer).1, ["one"], "{scheduler}");
        let mut reader = program.connect();
        reader.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
        reader.await_text("one\n");
        post(&mut writer, "/say/two");
        reader.await_text("two\n");
    }
}
