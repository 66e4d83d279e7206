//! Claims about channels that are followed by WebSocket.

use bine_http::websocket::{CloseCode, Frame};
use rustix::process::Signal;

use crate::app::program;
use crate::harness::{KINDS, Peer, Program};
use crate::websocket::{Socket, asks};

fn start(scheduler: &str) -> Program {
    let options = ["--data", "memory", "--scheduler", scheduler];
    Program::start(&mut program("channels::the_program_with_channels_serves", &options))
}

fn post(peer: &mut Peer, target: &str) {
    peer.send(format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"));
    assert_eq!(peer.reply().status(), 200);
}

/// The value of a text of that name in a frame.
#[track_caller]
fn member(frame: &str, name: &str) -> String {
    let found = frame.split_once(&format!("\"{name}\":\""));
    let (_, behind) = found.unwrap_or_else(|| panic!("no {name} in {frame}"));
    behind.split_once('"').unwrap().0.to_owned()
}

/// The next frame is a message that says `word`; tells its cursor.
#[track_caller]
fn expect_word(socket: &mut Socket, word: &str) -> String {
    let text = socket.hear_text();
    assert!(text.starts_with('{') && text.ends_with('}'), "{text}");
    assert_eq!(member(&text, "data"), word);
    member(&text, "cursor")
}

#[test]
fn each_message_is_a_frame_and_its_cursor_leads_to_the_next() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut writer = program.connect();
        post(&mut writer, "/create/news");
        post(&mut writer, "/say/news/one");
        let mut socket = Socket::open(&program, "/channels?c=news&after=earliest");
        let one = expect_word(&mut socket, "one");
        post(&mut writer, "/say/news/two");
        let two = expect_word(&mut socket, "two");
        post(&mut writer, "/say/news/three");
        expect_word(&mut socket, "three");
        socket.say(Frame::Close { code: Some(CloseCode::NORMAL), reason: "" });
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
fn who_may_publish_does_so_where_they_follow() {
    for scheduler in KINDS {
        let program = start(scheduler);
        let mut writer = program.connect();
        post(&mut writer, "/create/news");
        post(&mut writer, "/create/weather");
        let mut socket = Socket::open(&program, "/channels?c=news");
        let begin = member(&socket.hear_text(), "cursor");
        socket.say(Frame::Text("{\"publish\":{\"channels\":\"weather\",\"data\":\"unheard\"}}"));
        let published = socket.hear_text();
        assert!(published.starts_with("{\"published\":[{\"cursor\":\""), "{published}");
        socket.say(Frame::Text("{\"follow\":[\"news\",\"weather\"]}"));
        member(&socket.hear_text(), "cursor");
        // From the same place on.
        expect_word(&mut socket, "unheard");
        socket.say(Frame::Text("{\"publish\":[{\"channels\":\"weather\",\"data\":\"rain\"}]}"));
        socket.hear_text();
        expect_word(&mut socket, "rain");
        for (said, why) in [
            ("{\"follow\":[\"nowhere\"]}", "nowhere"),
            ("{\"publish\":{\"channels\":\"nowhere\",\"data\":1}}", "nowhere"),
            ("{\"sing\":1}", "there is no `sing`"),
            ("1", "say {"),
        ] {
            socket.say(Frame::Text(said));
            let told = socket.hear_text();
            assert!(told.starts_with("{\"refused\":\"") && told.contains(why), "{told}");
        }
        post(&mut writer, "/say/weather/sun");
        let after = expect_word(&mut socket, "sun");
        assert!(begin < after, "{scheduler}");
    }
}

#[test]
fn what_cannot_be_followed_is_told_before_anything_is_agreed_on() {
    let program = start("hybrid");
    let ask = |target: &str, fields: &str| {
        let mut peer = program.connect();
        peer.send(asks(target, fields));
        peer.reply()
    };
    post(&mut program.connect(), "/create/news");
    assert_eq!(ask("/channels?c=nowhere", "").status(), 404);
    assert_eq!(ask("/channels", "").status(), 400);
    let foreign = "0badbad0_0000000000000001";
    assert_eq!(ask(&format!("/channels?c=news&after={foreign}"), "").status(), 410);
    assert_eq!(ask("/channels?c=news", "Origin: https://b.example\r\n").status(), 403);
    let agreed = ask("/channels?c=news", "Sec-WebSocket-Protocol: x, bine.v1\r\n");
    assert_eq!((agreed.status(), agreed.field("Sec-WebSocket-Protocol")), (101, Some("bine.v1")));
}

#[test]
fn followers_are_told_of_a_stop() {
    for scheduler in KINDS {
        let program = start(scheduler);
        post(&mut program.connect(), "/create/news");
        let mut socket = Socket::open(&program, "/channels?c=news");
        member(&socket.hear_text(), "cursor");
        program.signal(Signal::TERM);
        socket.expect_close(1001);
        assert_eq!(program.wait().code, Some(0), "{scheduler}");
    }
}
