//! Channels followed by WebSocket.

use bine_http::websocket::{CloseCode, Frame};
use rustix::process::Signal;

use crate::app::program;
use crate::harness::{KINDS, Program, member};
use crate::websocket::{Socket, upgrade_request};

fn start(scheduler: &str) -> Program {
    let options = ["--data", "memory", "--scheduler", scheduler];
    Program::start(&mut program("channels::serve_channel_program", &options))
}

/// Asserts that the next frame is a message with this word. Returns its cursor.
#[track_caller]
fn expect_word(socket: &mut Socket, word: &str) -> String {
    let text = socket.receive_text();
    assert!(text.starts_with('{') && text.ends_with('}'), "{text}");
    assert_eq!(member(&text, "data"), word);
    member(&text, "cursor")
}

#[test]
fn sends_each_message_as_a_frame_with_resumable_cursor() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut writer = program.connect();
        writer.expect_post("/create/news", "");
        writer.expect_post("/say/news/one", "");
        let mut socket = Socket::open(&program, "/channels?c=news&after=earliest");
        let one = expect_word(&mut socket, "one");
        writer.expect_post("/say/news/two", "");
        let two = expect_word(&mut socket, "two");
        writer.expect_post("/say/news/three", "");
        expect_word(&mut socket, "three");
        socket.send(Frame::Close { code: Some(CloseCode::NORMAL), reason: "" });
        socket.expect_close(1000);
        let mut again = Socket::open(&program, &format!("/channels?c=news&after={one}"));
        assert_eq!(expect_word(&mut again, "two"), two, "{scheduler}");
        expect_word(&mut again, "three");
        let mut ended =
            Socket::open(&program, &format!("/channels?c=news&after={one}&before={two}"));
        expect_word(&mut ended, "two");
        ended.expect_close(1000);
    }
}

#[test]
fn publishes_and_changes_channels_on_the_same_socket() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut writer = program.connect();
        writer.expect_post("/create/news", "");
        writer.expect_post("/create/weather", "");
        let mut socket = Socket::open(&program, "/channels?c=news");
        let begin = member(&socket.receive_text(), "cursor");
        socket.send(Frame::Text("{\"publish\":{\"channels\":\"weather\",\"data\":\"unheard\"}}"));
        let published = socket.receive_text();
        assert!(published.starts_with("{\"published\":[{\"cursor\":\""), "{published}");
        socket.send(Frame::Text("{\"follow\":[\"news\",\"weather\"]}"));
        member(&socket.receive_text(), "cursor");
        // The new set continues from the same cursor.
        expect_word(&mut socket, "unheard");
        socket.send(Frame::Text("{\"publish\":[{\"channels\":\"weather\",\"data\":\"rain\"}]}"));
        socket.receive_text();
        expect_word(&mut socket, "rain");
        for (said, why) in [
            ("{\"follow\":[\"nowhere\"]}", "nowhere"),
            ("{\"publish\":{\"channels\":\"nowhere\",\"data\":1}}", "nowhere"),
            ("{\"sing\":1}", "there is no `sing`"),
            ("1", "say {"),
        ] {
            socket.send(Frame::Text(said));
            let told = socket.receive_text();
            assert!(told.starts_with("{\"refused\":\"") && told.contains(why), "{told}");
        }
        writer.expect_post("/say/weather/sun", "");
        let after = expect_word(&mut socket, "sun");
        assert!(begin < after, "{scheduler}");
    }
}

#[test]
fn rejects_invalid_requests_before_the_upgrade() {
    let program = start("hybrid");
    let ask = |target: &str, fields: &str| {
        let mut peer = program.connect();
        peer.send(upgrade_request(target, fields));
        peer.reply()
    };
    program.connect().expect_post("/create/news", "");
    assert_eq!(ask("/channels?c=nowhere", "").status(), 404);
    assert_eq!(ask("/channels", "").status(), 400);
    let foreign = "0badbad0_0000000000000001";
    assert_eq!(ask(&format!("/channels?c=news&after={foreign}"), "").status(), 410);
    assert_eq!(ask("/channels?c=news", "Origin: https://b.example\r\n").status(), 403);
    let agreed = ask("/channels?c=news", "Sec-WebSocket-Protocol: x, bine.v1\r\n");
    assert_eq!((agreed.status(), agreed.header("Sec-WebSocket-Protocol")), (101, Some("bine.v1")));
}

#[test]
fn closes_followers_on_stop() {
    for scheduler in KINDS {
        let program = start(scheduler);
        program.connect().expect_post("/create/news", "");
        let mut socket = Socket::open(&program, "/channels?c=news");
        member(&socket.receive_text(), "cursor");
        program.signal(Signal::TERM);
        socket.expect_close(1001);
        assert_eq!(program.wait().code, Some(0), "{scheduler}");
    }
}
