//! Claims about programs that speak WebSocket: what is said arrives, what is wrong is told, and every end is one.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bine::prelude::*;
use bine::{CloseCode, Message};
use bine_http::websocket::{Frame, Header, Opcode, mask};
use rustix::process::Signal;

use crate::app::{options, program};
use crate::harness::{KINDS, PATIENCE, Peer, Program};

/// The program itself. As a test among the others it has nothing to do.
#[test]
fn the_program_with_websockets_serves() -> Exit {
    let Some(options) = options() else { return Exit::fine() };
    App::new()
        .state(Told::default())
        .page(echo)
        .page(plain)
        .page(anywhere)
        .page(brief)
        .page(asking)
        .page(failing)
        .page(flooding)
        .page(deaf)
        .page(told)
        .run_with("Usage: websockets", options.lines())
}

/// What handlers have to tell of their ends.
#[derive(Default)]
struct Told(Mutex<String>);

impl Told {
    fn tell(&self, word: &str) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.push_str(word);
        told.push(';');
    }
}

#[page("/told")]
async fn told(told: State<Told>) -> Response {
    Response::text(told.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

#[page("/echo")]
async fn echo(upgrade: Upgrade, told: State<Told>) -> Response {
    let response = upgrade.speaking(&["chat", "echo"]).accept(async move |mut socket| {
        while let Some(message) = socket.receive().await? {
            match &message {
                Message::Text(text) if text == "protocol" => {
                    socket.send(socket.protocol().unwrap_or("none")).await?;
                }
                Message::Text(text) if text == "bye" => {
                    socket.close(CloseCode::NORMAL, "as you wish");
                }
                _ => socket.send(&message).await?,
            }
        }
        let (code, reason) = socket.closed().unwrap_or((CloseCode::NORMAL, "nothing".to_owned()));
        told.tell(&format!("{} {reason}", code.number()));
        Ok(())
    });
    response.with_field("X-Room", "one")
}

#[page("/plain")]
fn plain(upgrade: Upgrade) -> Response {
    upgrade.accept(async |mut socket| {
        socket.send("from a worker").await?;
        Ok(())
    })
}

#[page("/anywhere")]
async fn anywhere(upgrade: Upgrade) -> Response {
    upgrade.from_anywhere().accept(async |mut socket| Ok(socket.send("welcome").await?))
}

#[page("/brief")]
async fn brief(upgrade: Upgrade, told: State<Told>) -> Response {
    upgrade.with_limit(10).accept(async move |mut socket| {
        let heard = socket.receive().await;
        told.tell(if heard.is_err() { "gone" } else { "heard" });
        heard?;
        Ok(())
    })
}

/// For which a peer may be silent until it is asked, and then until it answers.
const PAUSE: Duration = Duration::from_millis(2100);

#[page("/asking")]
async fn asking(upgrade: Upgrade, told: State<Told>) -> Response {
    upgrade.with_pings(PAUSE).accept(async move |mut socket| {
        let heard = socket.receive().await;
        told.tell(if heard.is_err() { "silent" } else { "heard" });
        heard?;
        Ok(())
    })
}

#[page("/failing/{how}")]
async fn failing(upgrade: Upgrade, how: Path<Text>) -> Response {
    upgrade.accept(async move |mut socket| {
        socket.receive().await?;
        assert_ne!(&**how, "panic", "on purpose");
        Err(Error::not_found("on purpose"))
    })
}

#[page("/flooding/{patience}")]
async fn flooding(upgrade: Upgrade, told: State<Told>, patience: Path<u64>) -> Response {
    upgrade.with_pings(Duration::from_millis(*patience)).accept(async move |mut socket| {
        let piece = "f".repeat(10_000);
        while socket.send(&piece).await.is_ok() {}
        told.tell("stalled");
        Ok(())
    })
}

/// Its handler waits for something that never comes.
#[page("/deaf")]
async fn deaf(upgrade: Upgrade) -> Response {
    upgrade.accept(async |_socket| {
        std::future::pending::<()>().await;
        Ok(())
    })
}

fn start(scheduler: &str) -> Program {
    let options = ["--scheduler", scheduler, "--workers", "16"];
    Program::start(&mut program("websocket::the_program_with_websockets_serves", &options))
}

const KEY: [u8; 4] = [1, 2, 3, 4];

/// A peer's end.
pub(crate) struct Socket(Peer);

impl Socket {
    #[track_caller]
    pub(crate) fn open(program: &Program, target: &str) -> Self {
        Self::ask(program, asks(target, ""))
    }

    /// With frames right behind the request.
    #[track_caller]
    fn open_with(program: &Program, target: &str, frames: &[u8]) -> Self {
        Self::ask(program, [asks(target, "").as_bytes(), frames].concat())
    }

    /// By this request.
    #[track_caller]
    pub(crate) fn ask(program: &Program, request: impl AsRef<[u8]>) -> Self {
        let mut peer = program.connect();
        peer.send(request);
        let reply = peer.reply();
        assert_eq!(reply.status(), 101, "{reply:?}");
        assert_eq!(reply.field("Sec-WebSocket-Accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        Self(peer)
    }

    /// What goes on behind a 101 that the caller has read.
    pub(crate) const fn agreed(peer: Peer) -> Self {
        Self(peer)
    }

    pub(crate) fn say(&mut self, frame: Frame<'_>) {
        self.0.send(masked(frame));
    }

    /// The next frame: its first byte, and what it holds.
    #[track_caller]
    fn hear(&mut self) -> (u8, Vec<u8>) {
        let head = self.0.take(2);
        assert!(head[1] < 128, "a server sends without a mask");
        let length = match head[1] {
            126 => u16::from_be_bytes(self.0.take(2).try_into().unwrap()).into(),
            127 => u64::from_be_bytes(self.0.take(8).try_into().unwrap()),
            length => length.into(),
        };
        (head[0], self.0.take(length as usize))
    }

    /// The next frame, which must be text.
    #[track_caller]
    pub(crate) fn hear_text(&mut self) -> String {
        let (first, heard) = self.hear();
        assert_eq!(first, 0x81, "{heard:?}");
        String::from_utf8(heard).unwrap()
    }

    #[track_caller]
    fn expect_text(&mut self, text: &str) {
        assert_eq!(self.hear_text(), text);
    }

    /// The server closes, for this reason; it is answered, and the connection ends.
    #[track_caller]
    pub(crate) fn expect_close(mut self, code: u16) {
        let frame = self.hear();
        self.part(&frame, code);
    }

    /// The same behind whatever else it says.
    #[track_caller]
    pub(crate) fn await_close(mut self, code: u16) {
        let mut frame = self.hear();
        while frame.0 == 0x81 {
            frame = self.hear();
        }
        self.part(&frame, code);
    }

    #[track_caller]
    fn part(mut self, (first, heard): &(u8, Vec<u8>), code: u16) {
        assert_eq!((*first, &heard[..2]), (0x88, &code.to_be_bytes()[..]), "{heard:?}");
        self.say(Frame::Close { code: CloseCode::new(code), reason: "" });
        self.0.expect_closed();
    }
}

pub(crate) fn asks(target: &str, fields: &str) -> String {
    format!(
        "GET {target} HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive, Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{fields}\r\n"
    )
}

fn masked(frame: Frame<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    frame.append_masked(&mut out, KEY);
    out
}

fn part(header: Header, payload: &[u8]) -> Vec<u8> {
    let mut payload = payload.to_vec();
    mask(&mut payload, KEY);
    [header.masked(KEY).as_bytes(), &payload].concat()
}

/// Returns when a handler has told so.
#[track_caller]
fn await_told(program: &Program, word: &str) {
    let (mut peer, began) = (program.connect(), Instant::now());
    loop {
        let told = peer.get("/told").text().to_owned();
        if told.contains(word) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "it told {told:?}");
    }
}

#[test]
fn what_is_said_comes_back_whole_however_it_is_cut() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut socket = Socket::open_with(&program, "/echo", &masked(Frame::Text("behind")));
        socket.expect_text("behind");
        socket.say(Frame::Binary(&[0, 255]));
        assert_eq!(socket.hear(), (0x82, vec![0, 255]));
        let long = "l".repeat(500_000);
        socket.say(Frame::Text(&long));
        socket.expect_text(&long);
        let parts = [
            part(Header::fragment(Opcode::Text, 2), b"fr"),
            masked(Frame::Ping(b"between")),
            part(Header::fragment(Opcode::Continuation, 0), b""),
            part(Header::final_frame(Opcode::Continuation, 3), b"ame"),
        ];
        for byte in parts.concat() {
            socket.0.send([byte]);
        }
        assert_eq!(socket.hear(), (0x8a, b"between".to_vec()), "{scheduler}");
        socket.expect_text("frame");
        // Many at once.
        let words: Vec<Vec<u8>> = (0..1000).map(|n| masked(Frame::Text(&n.to_string()))).collect();
        socket.0.send(words.concat());
        (0..1000).for_each(|number| socket.expect_text(&number.to_string()));
        socket.say(Frame::Close { code: CloseCode::new(3000), reason: "enough" });
        socket.expect_close(3000);
        await_told(&program, "3000 enough;");
    }
}

#[test]
fn a_page_that_returns_from_a_worker_may_agree_too() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut socket = Socket::open(&program, "/plain");
        socket.expect_text("from a worker");
        socket.expect_close(1000);
    }
}

#[test]
fn who_asks_wrongly_or_from_another_host_is_told_so() {
    let program = start("hybrid");
    let mut peer = program.connect();
    let reply = peer.get("/echo");
    assert_eq!((reply.status(), reply.field("Upgrade")), (426, Some("websocket")));
    let ask = |target: &str, fields: &str| {
        let mut peer = program.connect();
        peer.send(asks(target, fields));
        peer.reply()
    };
    assert_eq!(ask("/echo", "Origin: https://b.example\r\n").status(), 403);
    assert_eq!(ask("/anywhere", "Origin: https://b.example\r\n").status(), 101);
    let agreed = ask("/echo", "Origin: https://a.example\r\nSec-WebSocket-Protocol: x, echo\r\n");
    assert_eq!((agreed.status(), agreed.field("Sec-WebSocket-Protocol")), (101, Some("echo")));
    assert_eq!(agreed.field("X-Room"), Some("one"));
}

#[test]
fn the_subprotocol_that_was_agreed_on_is_known() {
    let program = start("hybrid");
    let mut socket = Socket::open(&program, "/echo");
    socket.say(Frame::Text("protocol"));
    socket.expect_text("none");
    socket.say(Frame::Text("bye"));
    socket.expect_close(1000);
}

#[test]
fn a_peer_that_breaks_the_rules_is_told_which_kind() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut long = Socket::open(&program, "/brief");
        long.say(Frame::Text("more than ten bytes"));
        long.expect_close(1009);
        await_told(&program, "gone;");
        let mut bare = Socket::open(&program, "/echo");
        bare.0.send(b"\x81\x01a");
        bare.expect_close(1002);
        let mut broken = Socket::open(&program, "/echo");
        broken.0.send(part(Header::final_frame(Opcode::Text, 1), b"\xff"));
        broken.expect_close(1007);
        let mut noisy = Socket::open(&program, "/echo");
        noisy.0.send(masked(Frame::Pong(b"")).repeat(101));
        noisy.expect_close(1008);
    }
}

#[test]
fn a_handler_that_fails_costs_its_own_connection_alone() {
    for scheduler in KINDS {
        let program = start(scheduler);
        for how in ["error", "panic"] {
            let mut socket = Socket::open(&program, &format!("/failing/{how}"));
            socket.say(Frame::Text("now"));
            socket.expect_close(1011);
        }
        assert_eq!(program.connect().get("/told").status(), 200);
        let errors = program.stop().errors;
        assert!(errors.contains("failing failed: it panicked"), "{scheduler}: {errors}");
    }
}

#[test]
fn a_silent_peer_is_asked_and_one_that_does_not_answer_is_let_go() {
    let check = |scheduler: &str| {
        // A peer that a busy machine keeps from answering in time is silent, which says nothing of one that answers.
        let is_told = (0..10).any(|_| {
            let program = start(scheduler);
            let began = Instant::now();
            let mut socket = Socket::open(&program, "/asking");
            assert_eq!(socket.hear(), (0x89, Vec::new()));
            socket.0.send(masked(Frame::Pong(b"")));
            if began.elapsed() >= 2 * PAUSE {
                return false;
            }
            assert_eq!(socket.hear(), (0x89, Vec::new()), "{scheduler}");
            await_told(&program, "silent;");
            socket.0.expect_closed();
            true
        });
        assert!(is_told, "{scheduler}: no answer comes within {PAUSE:?}");
    };
    // Seconds, for all together.
    thread::scope(|scope| {
        for scheduler in KINDS {
            scope.spawn(move || check(scheduler));
        }
    });
}

#[test]
fn a_peer_that_takes_nothing_is_cut() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let _socket = Socket::open(&program, "/flooding/100");
        await_told(&program, "stalled;");
    }
}

#[test]
fn a_close_is_heard_by_who_sends_without_end() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut socket = Socket::open(&program, "/flooding/30000");
        socket.say(Frame::Close { code: Some(CloseCode::NORMAL), reason: "" });
        let code = loop {
            let (first, heard) = socket.hear();
            if first == 0x88 {
                break heard;
            }
        };
        assert_eq!(code, 1000_u16.to_be_bytes(), "{scheduler}");
        socket.0.expect_closed();
    }
}

#[test]
fn a_ping_is_answered_whatever_the_handler_waits_for() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut socket = Socket::open(&program, "/deaf");
        socket.say(Frame::Ping(b"there?"));
        assert_eq!(socket.hear(), (0x8a, b"there?".to_vec()), "{scheduler}");
    }
}

#[test]
fn a_peer_that_goes_without_a_word_is_noticed() {
    for scheduler in KINDS {
        let program = start(scheduler);
        drop(Socket::open(&program, "/brief"));
        await_told(&program, "gone;");
    }
}

#[test]
fn a_stop_is_told_to_all_and_ends_with_their_farewell() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut sockets: Vec<Socket> = (0..3).map(|_| Socket::open(&program, "/echo")).collect();
        for socket in &mut sockets {
            socket.say(Frame::Text("here"));
            socket.expect_text("here");
        }
        program.signal(Signal::TERM);
        for socket in sockets {
            socket.expect_close(1001);
        }
        assert_eq!(program.wait().code, Some(0), "{scheduler}");
    }
}
