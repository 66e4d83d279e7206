//! WebSocket handlers: messages arrive, protocol errors are reported, and each connection ends
//! properly.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bine::prelude::*;
use bine::{CloseCode, Message};
use bine_http::websocket::{Frame, Header, Opcode, mask};
use rustix::process::Signal;

use crate::app::{options, program};
use crate::harness::{KINDS, PATIENCE, Peer, Program};

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_websocket_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .state(Records::default())
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

/// Records how connections ended.
#[derive(Default)]
struct Records(Mutex<String>);

impl Records {
    fn add(&self, word: &str) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.push_str(word);
        told.push(';');
    }
}

#[page("/told")]
async fn told(told: State<Records>) -> Response {
    Response::text(told.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

#[page("/echo")]
async fn echo(upgrade: Upgrade, told: State<Records>) -> Response {
    let response = upgrade.with_protocols(&["chat", "echo"]).accept(async move |mut socket| {
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
        told.add(&format!("{} {reason}", code.number()));
        Ok(())
    });
    response.with_header("X-Room", "one")
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
    upgrade.allow_any_origin().accept(async |mut socket| Ok(socket.send("welcome").await?))
}

#[page("/brief")]
async fn brief(upgrade: Upgrade, told: State<Records>) -> Response {
    upgrade.with_max_message_size(10).accept(async move |mut socket| {
        let heard = socket.receive().await;
        told.add(if heard.is_err() { "gone" } else { "heard" });
        heard?;
        Ok(())
    })
}

/// Time until the server pings a silent client, and then until it gives up.
const PAUSE: Duration = Duration::from_millis(2100);

#[page("/asking")]
async fn asking(upgrade: Upgrade, told: State<Records>) -> Response {
    upgrade.with_ping_interval(PAUSE).accept(async move |mut socket| {
        let heard = socket.receive().await;
        told.add(if heard.is_err() { "silent" } else { "heard" });
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
async fn flooding(upgrade: Upgrade, told: State<Records>, patience: Path<u64>) -> Response {
    upgrade.with_ping_interval(Duration::from_millis(*patience)).accept(async move |mut socket| {
        let piece = "f".repeat(10_000);
        while socket.send(&piece).await.is_ok() {}
        told.add("stalled");
        Ok(())
    })
}

/// Its handler waits forever.
#[page("/deaf")]
async fn deaf(upgrade: Upgrade) -> Response {
    upgrade.accept(async |_socket| {
        std::future::pending::<()>().await;
        Ok(())
    })
}

fn start(scheduler: &str) -> Program {
    let options = ["--scheduler", scheduler, "--workers", "16"];
    Program::start(&mut program("websocket::serve_websocket_program", &options))
}

const KEY: [u8; 4] = [1, 2, 3, 4];

/// A client's WebSocket.
pub(crate) struct Socket(Peer);

impl Socket {
    #[track_caller]
    pub(crate) fn open(program: &Program, target: &str) -> Self {
        Self::ask(program, upgrade_request(target, ""))
    }

    /// Opens a WebSocket and sends frames together with the request.
    #[track_caller]
    fn open_with(program: &Program, target: &str, frames: &[u8]) -> Self {
        Self::ask(program, [upgrade_request(target, "").as_bytes(), frames].concat())
    }

    /// Opens a WebSocket with this request.
    #[track_caller]
    pub(crate) fn ask(program: &Program, request: impl AsRef<[u8]>) -> Self {
        let mut peer = program.connect();
        peer.send(request);
        let reply = peer.reply();
        assert_eq!(reply.status(), 101, "{reply:?}");
        assert_eq!(reply.header("Sec-WebSocket-Accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        Self(peer)
    }

    /// Continues after a 101 that the caller has read.
    pub(crate) const fn upgraded(peer: Peer) -> Self {
        Self(peer)
    }

    pub(crate) fn send(&mut self, frame: Frame<'_>) {
        self.0.send(masked(frame));
    }

    /// Returns the first byte and payload of the next frame.
    #[track_caller]
    fn receive(&mut self) -> (u8, Vec<u8>) {
        let head = self.0.take(2);
        assert!(head[1] < 128, "a server must not mask its frames");
        let length = match head[1] {
            126 => u16::from_be_bytes(self.0.take(2).try_into().unwrap()).into(),
            127 => u64::from_be_bytes(self.0.take(8).try_into().unwrap()),
            length => length.into(),
        };
        (head[0], self.0.take(length as usize))
    }

    /// Returns the next frame, which must be text.
    #[track_caller]
    pub(crate) fn receive_text(&mut self) -> String {
        let (first, payload) = self.receive();
        assert_eq!(first, 0x81, "{payload:?}");
        String::from_utf8(payload).unwrap()
    }

    #[track_caller]
    fn expect_text(&mut self, text: &str) {
        assert_eq!(self.receive_text(), text);
    }

    /// Asserts that the server closes with this code, replies, and expects the end of the
    /// connection.
    #[track_caller]
    pub(crate) fn expect_close(mut self, code: u16) {
        let frame = self.receive();
        self.finish(&frame, code);
    }

    /// Like `expect_close`, but skips text frames before it.
    #[track_caller]
    pub(crate) fn await_close(mut self, code: u16) {
        let mut frame = self.receive();
        while frame.0 == 0x81 {
            frame = self.receive();
        }
        self.finish(&frame, code);
    }

    #[track_caller]
    fn finish(mut self, (first, payload): &(u8, Vec<u8>), code: u16) {
        assert_eq!((*first, &payload[..2]), (0x88, &code.to_be_bytes()[..]), "{payload:?}");
        self.send(Frame::Close { code: CloseCode::new(code), reason: "" });
        self.0.expect_closed();
    }
}

pub(crate) fn upgrade_request(target: &str, fields: &str) -> String {
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

/// Waits until a handler has recorded this.
#[track_caller]
fn await_record(program: &Program, word: &str) {
    let (mut peer, began) = (program.connect(), Instant::now());
    loop {
        let told = peer.get("/told").text().to_owned();
        if told.contains(word) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "recorded {told:?}");
    }
}

#[test]
fn echoes_messages_split_in_any_way() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut socket = Socket::open_with(&program, "/echo", &masked(Frame::Text("behind")));
        socket.expect_text("behind");
        socket.send(Frame::Binary(&[0, 255]));
        assert_eq!(socket.receive(), (0x82, vec![0, 255]));
        let long = "l".repeat(500_000);
        socket.send(Frame::Text(&long));
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
        assert_eq!(socket.receive(), (0x8a, b"between".to_vec()), "{scheduler}");
        socket.expect_text("frame");
        // Send many at once.
        let words: Vec<Vec<u8>> = (0..1000).map(|n| masked(Frame::Text(&n.to_string()))).collect();
        socket.0.send(words.concat());
        (0..1000).for_each(|number| socket.expect_text(&number.to_string()));
        socket.send(Frame::Close { code: CloseCode::new(3000), reason: "enough" });
        socket.expect_close(3000);
        await_record(&program, "3000 enough;");
    }
}

#[test]
fn upgrades_from_page_on_a_worker() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut socket = Socket::open(&program, "/plain");
        socket.expect_text("from a worker");
        socket.expect_close(1000);
    }
}

#[test]
fn rejects_invalid_and_cross_origin_upgrades() {
    let program = start("hybrid");
    let mut peer = program.connect();
    let reply = peer.get("/echo");
    assert_eq!((reply.status(), reply.header("Upgrade")), (426, Some("websocket")));
    let ask = |target: &str, fields: &str| {
        let mut peer = program.connect();
        peer.send(upgrade_request(target, fields));
        peer.reply()
    };
    assert_eq!(ask("/echo", "Origin: https://b.example\r\n").status(), 403);
    assert_eq!(ask("/anywhere", "Origin: https://b.example\r\n").status(), 101);
    let agreed = ask("/echo", "Origin: https://a.example\r\nSec-WebSocket-Protocol: x, echo\r\n");
    assert_eq!((agreed.status(), agreed.header("Sec-WebSocket-Protocol")), (101, Some("echo")));
    assert_eq!(agreed.header("X-Room"), Some("one"));
}

#[test]
fn reports_negotiated_subprotocol() {
    let program = start("hybrid");
    let mut socket = Socket::open(&program, "/echo");
    socket.send(Frame::Text("protocol"));
    socket.expect_text("none");
    socket.send(Frame::Text("bye"));
    socket.expect_close(1000);
}

#[test]
fn closes_with_code_for_each_protocol_error() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut long = Socket::open(&program, "/brief");
        long.send(Frame::Text("more than ten bytes"));
        long.expect_close(1009);
        await_record(&program, "gone;");
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
fn failing_handler_ends_only_its_connection() {
    for scheduler in KINDS {
        let program = start(scheduler);
        for how in ["error", "panic"] {
            let mut socket = Socket::open(&program, &format!("/failing/{how}"));
            socket.send(Frame::Text("now"));
            socket.expect_close(1011);
        }
        assert_eq!(program.connect().get("/told").status(), 200);
        let errors = program.stop().errors;
        assert!(errors.contains("failing failed: it panicked"), "{scheduler}: {errors}");
    }
}

#[test]
fn pings_silent_client_and_drops_it_without_pong() {
    let check = |scheduler: &str| {
        // On a busy machine this client may answer too late, so such an attempt does not count.
        let is_told = (0..10).any(|_| {
            let program = start(scheduler);
            let began = Instant::now();
            let mut socket = Socket::open(&program, "/asking");
            assert_eq!(socket.receive(), (0x89, Vec::new()));
            socket.0.send(masked(Frame::Pong(b"")));
            if began.elapsed() >= 2 * PAUSE {
                return false;
            }
            assert_eq!(socket.receive(), (0x89, Vec::new()), "{scheduler}");
            await_record(&program, "silent;");
            socket.0.expect_closed();
            true
        });
        assert!(is_told, "{scheduler}: no answer comes within {PAUSE:?}");
    };
    // Run all at once, because each takes seconds.
    thread::scope(|scope| {
        for scheduler in KINDS {
            scope.spawn(move || check(scheduler));
        }
    });
}

#[test]
fn drops_client_that_does_not_read() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let _socket = Socket::open(&program, "/flooding/100");
        await_record(&program, "stalled;");
    }
}

#[test]
fn receives_close_while_sending_endlessly() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut socket = Socket::open(&program, "/flooding/30000");
        socket.send(Frame::Close { code: Some(CloseCode::NORMAL), reason: "" });
        let code = loop {
            let (first, payload) = socket.receive();
            if first == 0x88 {
                break payload;
            }
        };
        assert_eq!(code, 1000_u16.to_be_bytes(), "{scheduler}");
        socket.0.expect_closed();
    }
}

#[test]
fn answers_ping_while_handler_waits() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut socket = Socket::open(&program, "/deaf");
        socket.send(Frame::Ping(b"there?"));
        assert_eq!(socket.receive(), (0x8a, b"there?".to_vec()), "{scheduler}");
    }
}

#[test]
fn notices_client_that_disconnects() {
    for scheduler in KINDS {
        let program = start(scheduler);
        drop(Socket::open(&program, "/brief"));
        await_record(&program, "gone;");
    }
}

/// The client does not answer the close.
#[test]
fn counts_connections_that_hold_up_a_stop() {
    let options = ["--loops", "1", "--drain-timeout", "50ms"];
    let program = Program::start(&mut program("websocket::serve_websocket_program", &options));
    let _sockets = [Socket::open(&program, "/deaf"), Socket::open(&program, "/deaf")];
    program.signal(Signal::TERM);
    let errors = program.wait().errors;
    assert!(errors.contains(": 2 upgraded connections (WebSocket, HTTP/2) are open\n"), "{errors}");
}

#[test]
fn closes_all_connections_on_stop() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut sockets: Vec<Socket> = (0..3).map(|_| Socket::open(&program, "/echo")).collect();
        for socket in &mut sockets {
            socket.send(Frame::Text("here"));
            socket.expect_text("here");
        }
        program.signal(Signal::TERM);
        for socket in sockets {
            socket.expect_close(1001);
        }
        assert_eq!(program.wait().code, Some(0), "{scheduler}");
    }
}
