//! Channels over HTTP: each follower receives every message once and in order, whichever way it
//! follows.

use bine::channels::{Access, Retention, Settings};
use bine::prelude::*;

use crate::app::{options, program};
use crate::harness::{AT_ONCE, Folder, Peer, Program};
use crate::metrics::{await_figure, metrics_address};

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_channel_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .channels(Access::allow_all())
        .page(create)
        .page(say)
        .run_with("Usage: channels", options.lines())
}

#[page(POST "/create/{name}")]
async fn create(channels: Channels, name: Path<Text>) -> Result<Response, Error> {
    let retention = Retention { messages: 1000, ..Retention::default() };
    channels.create(&name, Settings { retention, ..Settings::default() }).await?;
    Ok(Response::text("made"))
}

#[page(POST "/say/{name}/{word}")]
async fn say(channels: Channels, name: Path<Text>, word: Path<Text>) -> Result<Response, Error> {
    channels.publish(&name, &**word).await?;
    Ok(Response::text("said"))
}

pub(crate) fn start(options: &[&str]) -> Program {
    Program::start(&mut program("channels::serve_channel_program", options))
}

/// Posts content and returns status and text.
pub(crate) fn post(peer: &mut Peer, target: &str, body: &str) -> (u16, String) {
    let reply = peer.request("POST", target, "", body);
    (reply.status(), reply.text().trim_end().to_owned())
}

fn publish_word(peer: &mut Peer, channel: &str, word: &str) {
    assert_eq!(post(peer, &format!("/say/{channel}/{word}"), ""), (200, "said".to_owned()));
}

/// Follows channels and returns status, the `data` of each message, and the final cursor.
fn followed(peer: &mut Peer, query: &str) -> (u16, Vec<String>, String) {
    peer.send(format!("GET /channels?{query} HTTP/1.1\r\nHost: a\r\n\r\n"));
    answered(peer)
}

/// Reads a reply and returns status, the `data` of each message, and the cursor.
pub(crate) fn answered(peer: &mut Peer) -> (u16, Vec<String>, String) {
    let reply = peer.reply();
    let cursor = reply.header("Cursor").unwrap_or_default().to_owned();
    let words = reply.text().split("\"data\":\"").skip(1);
    let words = words.map(|rest| rest.split('"').next().unwrap().to_owned());
    (reply.status(), words.collect(), cursor)
}

#[test]
fn poll_returns_available_messages_or_waits() {
    for scheduler in AT_ONCE {
        let program = start(&["--data", "memory", "--scheduler", scheduler]);
        let (mut peer, mut writer) = (program.connect(), program.connect());
        assert_eq!(post(&mut writer, "/create/news", ""), (200, "made".to_owned()));
        publish_word(&mut writer, "news", "one");
        publish_word(&mut writer, "news", "two");
        let (status, words, cursor) = followed(&mut peer, "c=news&after=earliest");
        assert_eq!((status, words), (200, vec!["one".to_owned(), "two".to_owned()]), "{scheduler}");
        // No message arrives with a wait of zero.
        let (status, words, same) = followed(&mut peer, &format!("c=news&after={cursor}&wait=0"));
        assert_eq!((status, words.len(), &same), (204, 0, &cursor), "{scheduler}");
        peer.send(format!("GET /channels?c=news&after={cursor} HTTP/1.1\r\nHost: a\r\n\r\n"));
        publish_word(&mut writer, "news", "three");
        let (status, words, next) = answered(&mut peer);
        assert_eq!((status, words), (200, vec!["three".to_owned()]), "{scheduler}");
        assert!(next > cursor, "{next} comes behind {cursor}");
    }
}

#[test]
fn follows_several_channels_in_one_order_without_duplicates() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    for name in ["a", "b", "c"] {
        post(&mut peer, &format!("/create/{name}"), "");
    }
    let batch = r#"[{"channels":"a","data":"1"},{"channels":["a","b"],"data":"2"},
        {"channels":"c","data":"3"},{"channels":"b","data":{"n":4},"id":"x"}]"#;
    let (status, told) = post(&mut peer, "/channels", batch);
    assert_eq!((status, told.matches("\"repeated\":false").count()), (200, 4), "{told}");
    let (status, told) =
        post(&mut peer, "/channels", "{\"channels\":\"b\",\"data\":5,\"id\":\"x\"}");
    assert_eq!((status, told.matches("\"repeated\":true").count()), (200, 1), "{told}");
    peer.send("GET /channels?c=b&c=a&after=earliest HTTP/1.1\r\nHost: a\r\n\r\n");
    let reply = peer.reply();
    let text = reply.text();
    let places: Vec<_> = ["\"data\":\"1\"", "\"data\":\"2\"", "\"data\":{\"n\":4}"]
        .iter()
        .map(|data| text.match_indices(data).map(|(at, _)| at).collect::<Vec<_>>())
        .collect();
    assert!(places.iter().all(|places| places.len() == 1) && places.is_sorted(), "{text}");
    assert!(!text.contains("\"data\":\"3\""), "{text}");
}

#[test]
fn event_stream_resumes_after_last_event_id() {
    for scheduler in AT_ONCE {
        let program = start(&["--data", "memory", "--scheduler", scheduler]);
        let mut writer = program.connect();
        post(&mut writer, "/create/news", "");
        publish_word(&mut writer, "news", "one");
        let events = |last: &str| {
            let mut peer = program.connect();
            peer.send(format!(
                "GET /channels?c=news&after=earliest HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n{last}\r\n"
            ));
            peer
        };
        let mut first = events("");
        first.await_text("data: one\n\n");
        publish_word(&mut writer, "news", "two");
        let text = first.await_text("data: two\n\n");
        let id = text.rsplit("id: ").next().unwrap().lines().next().unwrap().to_owned();
        first.end();
        publish_word(&mut writer, "news", "three");
        let mut second = events(&format!("Last-Event-ID: {id}\r\n"));
        let text = second.await_text("data: three\n\n");
        assert!(!text.contains("data: two") && !text.contains("data: one"), "{text}");
        publish_word(&mut writer, "news", "four");
        second.await_text("data: four\n\n");
    }
}

#[test]
fn messages_and_cursors_survive_a_kill() {
    let folder = Folder::new();
    let data = folder.join("data");
    let options = ["--data", data.to_str().unwrap()];
    let program = start(&options);
    let mut peer = program.connect();
    post(&mut peer, "/create/news", "");
    publish_word(&mut peer, "news", "one");
    let (_, _, cursor) = followed(&mut peer, "c=news&after=earliest");
    publish_word(&mut peer, "news", "two");
    program.kill();
    let program = start(&options);
    let mut peer = program.connect();
    let (status, words, next) = followed(&mut peer, &format!("c=news&after={cursor}"));
    assert_eq!((status, words), (200, vec!["two".to_owned()]));
    publish_word(&mut peer, "news", "three");
    let (_, words, _) = followed(&mut peer, &format!("c=news&after={next}"));
    assert_eq!(words, ["three"]);
    assert_eq!(program.stop().code, Some(0));
}

#[test]
fn rejects_invalid_requests_with_reason() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    post(&mut peer, "/create/news", "");
    for (query, status, told) in [
        ("", 400, "which channels?"),
        ("c=other", 404, "there is no channel `other`"),
        ("c=news&after=yesterday", 400, "`yesterday` is no place"),
        ("c=news&from=1", 400, "there is no `from`"),
        ("c=news&after=00000000_0000000000000400", 410, "of another server's data; go on from"),
    ] {
        peer.send(format!("GET /channels?{query} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let reply = peer.reply();
        assert_eq!(reply.status(), status, "{query}");
        assert!(reply.text().contains(told), "{query}: {}", reply.text());
    }
    for (body, told) in [
        ("{", "no messages: "),
        ("{\"data\":1}", "message 1: it has no `channels`"),
        ("{\"channels\":\"news\"}", "message 1: it has no `data`"),
        ("{\"channels\":\"news\",\"data\":1,\"more\":2}", "message 1: there is no `more`"),
    ] {
        let (status, reply) = post(&mut peer, "/channels", body);
        assert_eq!(status, 400, "{body}: {reply}");
        assert!(reply.contains(told), "{body}: {reply}");
    }
}

#[test]
fn stop_releases_followers_with_cursors() {
    // The server releases followers within half of the drain time; a busy machine may take it all.
    let options = ["--data", "memory", "--drain-timeout", "12s", "--metrics", "127.0.0.1:0"];
    let mut program = start(&options);
    let figures = metrics_address(&mut program);
    let (mut poll, mut events) = (program.connect(), program.connect());
    let mut writer = program.connect();
    post(&mut writer, "/create/news", "");
    poll.send("GET /channels?c=news HTTP/1.1\r\nHost: a\r\n\r\n");
    events.send("GET /channels?c=news HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n");
    events.await_text("id: ");
    await_figure(figures, "bine_channels_holds", 2);
    writer.end();
    let ended = std::thread::spawn(move || program.stop());
    let reply = poll.reply();
    assert_eq!(reply.status(), 204);
    assert!(reply.header("Cursor").is_some() && reply.header("Connection") == Some("close"));
    let rest = events.rest();
    let text = String::from_utf8_lossy(&rest);
    assert!(rest.ends_with(b"0\r\n\r\n") && text.contains("\nretry: "), "{text}");
    assert_eq!(ended.join().unwrap().code, Some(0));
}

#[test]
fn rejects_batch_above_limit_and_names_limit() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    post(&mut peer, "/create/news", "");
    let message = r#"{"channels":"news","data":1}"#;
    let array = |count: usize| format!("[{}]", vec![message; count].join(","));
    assert_eq!(post(&mut peer, "/channels", &array(1000)).0, 200);
    let lines = format!("{message}\n").repeat(1001);
    for batch in [array(1001), array(20_000), lines] {
        let (status, told) = post(&mut peer, "/channels", &batch);
        assert_eq!((status, &*told), (413, "messages of a publication: at most 1000"));
    }
    let (status, told) = post(&mut peer, "/channels", &array(20_000).replace(']', ""));
    assert!(status == 400 && told.starts_with("no messages: EOF"), "{status} {told}");
}

#[test]
fn rejects_writes_from_pages_of_other_sites() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    post(&mut peer, "/create/news", "");
    let mut write = |fields: &str| {
        let body = r#"{"channels":"news","data":1}"#;
        peer.send(format!(
            "POST /channels HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        peer.reply().status()
    };
    for own in
        ["", "Origin: http://a\r\n", "Sec-Fetch-Site: same-origin\r\n", "Sec-Fetch-Site: none\r\n"]
    {
        assert_eq!(write(own), 200, "{own}");
    }
    for foreign in ["Origin: http://b\r\n", "Origin: null\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        assert_eq!(write(foreign), 403, "{foreign}");
    }
    peer.send(
        "PUT /channels/other HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!(peer.reply().status(), 403);
}
