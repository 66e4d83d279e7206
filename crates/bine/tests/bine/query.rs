//! Channels requested by QUERY (RFC 10008): a form of any length, with the meaning of a GET query.

use crate::channels::start;
use crate::harness::{KINDS, Peer, Program, Reply};

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
const TEXT: &str = "Content-Type: text/plain; charset=utf-8\r\n";

fn query(target: &str, fields: &str, form: &str) -> String {
    let length = form.len();
    format!("QUERY {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n{fields}\r\n{form}")
}

fn ask(peer: &mut Peer, fields: &str, form: &str) -> Reply {
    peer.send(query("/channels", fields, form));
    peer.reply()
}

/// Starts a program with the channels `a`, which has the message `one`, and `b`.
fn start_with_channels(scheduler: &str) -> Program {
    let program = start(&["--data", "memory", "--scheduler", scheduler, "--workers", "6"]);
    let mut peer = program.connect();
    for target in ["/create/a", "/create/b", "/say/a/one"] {
        peer.expect_post(target, "");
    }
    program
}

#[test]
fn query_form_equals_get_query_in_each_view() {
    for scheduler in KINDS {
        let program = start_with_channels(scheduler);
        let (mut peer, mut writer) = (program.connect(), program.connect());
        let reply = ask(&mut peer, FORM, "c=a&c=b&after=earliest");
        assert_eq!(reply.status(), 200, "{scheduler}: {}", reply.text());
        assert!(reply.text().contains("\"data\":\"one\""), "{scheduler}: {}", reply.text());
        let cursor = reply.header("Cursor").unwrap().to_owned();
        let nothing = ask(&mut peer, FORM, &format!("c=a&c=%62&after={cursor}&wait=0"));
        assert_eq!((nothing.status(), nothing.header("Cursor")), (204, Some(&*cursor)));
        // A QUERY waits as a GET does.
        peer.send(query("/channels", FORM, &format!("c=a&c=b&after={cursor}")));
        let views = ["text/event-stream", "application/x-ndjson", "multipart/mixed"];
        let mut streams = views.map(|accept| {
            let mut stream = program.connect();
            let fields = format!("{FORM}Accept: {accept}\r\n");
            // Some parameters may be in the address.
            stream.send(query("/channels?c=b", &fields, &format!("c=a&after={cursor}")));
            stream
        });
        writer.expect_post("/say/b/two", "");
        let reply = peer.reply();
        assert!(reply.text().contains("\"data\":\"two\""), "{scheduler}: {}", reply.text());
        for stream in &mut streams {
            stream.await_text("two");
        }
    }
}

#[test]
fn accepts_a_query_byte_by_byte() {
    let program = start_with_channels("hybrid");
    let mut peer = program.connect();
    let whole = query("/channels", FORM, "c=a&after=-1");
    whole.bytes().for_each(|byte| peer.send([byte]));
    assert!(peer.reply().text().contains("\"data\":\"one\""));
}

#[test]
fn follows_at_most_ten_thousand_channels() {
    let program = start_with_channels("hybrid");
    let mut writer = program.connect();
    let names: Vec<_> = (0..10_001).map(|number| format!("site/{number:05}/comments")).collect();
    for name in &names {
        writer.send(format!(
            "PUT /channels/{name} HTTP/1.1\r\nHost: a\r\n{TEXT}Content-Length: 0\r\n\r\n"
        ));
        assert_eq!(writer.reply().status(), 201);
    }
    let form = |count: usize| {
        let names = names[..count].iter().map(|name| format!("c={name}"));
        names.collect::<Vec<_>>().join("&")
    };
    let last = &names[9_999];
    let begin = ask(&mut writer, FORM, &format!("c={last}&wait=0"));
    let after = begin.header("Cursor").unwrap();
    // Connect late: the server closes a connection after ten idle seconds, and a busy machine takes
    // longer to create the channels.
    let mut peer = program.connect();
    peer.send(query("/channels", FORM, &format!("{}&after={after}", form(10_000))));
    writer.expect_post("/channels", &format!("{{\"channels\":\"{last}\",\"data\":\"last\"}}"));
    let reply = peer.reply();
    assert!(reply.text().contains("\"data\":\"last\""), "{}", reply.text());
    let reply = ask(&mut writer, FORM, &form(10_001));
    assert_eq!(
        (reply.status(), reply.text()),
        (413, "channels of a subscription: at most 10000\n")
    );
    let reply = ask(&mut writer, FORM, &"c=a&".repeat(10_101));
    assert_eq!(reply.status(), 422);
    assert!(reply.text().contains("too many words"), "{}", reply.text());
    let mut long = program.connect();
    long.send(format!(
        "QUERY /channels HTTP/1.1\r\nHost: a\r\n{FORM}Content-Length: {}\r\n\r\n",
        (4 << 20) + 1
    ));
    assert_eq!(long.reply().status(), 413);
}

#[test]
fn rejects_invalid_forms_with_reason() {
    let program = start_with_channels("hybrid");
    let mut peer = program.connect();
    for (fields, form, status, told) in [
        ("", "c=a", 400, "Content-Type is missing"),
        ("Content-Type: application/json\r\n", "[\"a\"]", 415, "application/x-www-form-urlencoded"),
        (FORM, "c=%zz", 400, "not encoded"),
        (FORM, "c=%ff", 400, "not encoded"),
        (FORM, "", 422, "which channels?"),
        (FORM, "c=a&from=1", 422, "there is no `from`"),
        (FORM, "c=a&after=yesterday", 422, "`yesterday` is no place"),
        (FORM, "c=a&after=2&before=1", 422, "exchange them"),
        (FORM, "c=nowhere", 404, "there is no channel `nowhere`"),
    ] {
        let reply = ask(&mut peer, fields, form);
        assert_eq!(reply.status(), status, "{fields}{form}: {}", reply.text());
        assert!(reply.text().contains(told), "{fields}{form}: {}", reply.text());
        if status == 415 {
            assert_eq!(reply.header("Accept-Query"), Some("application/x-www-form-urlencoded"));
        }
    }
    let with_type = "Content-Type: Application/X-WWW-Form-URLencoded; charset=UTF-8\r\n";
    assert_eq!(ask(&mut peer, with_type, "c=a&wait=0").status(), 204);
}

#[test]
fn advertises_query_support() {
    let program = start_with_channels("hybrid");
    let mut peer = program.connect();
    peer.send("OPTIONS /channels HTTP/1.1\r\nHost: a\r\n\r\n");
    let reply = peer.reply();
    assert_eq!(reply.status(), 204);
    assert_eq!(reply.header("Allow"), Some("GET, HEAD, QUERY, POST, OPTIONS"));
    assert_eq!(reply.header("Accept-Query"), Some("application/x-www-form-urlencoded"));
    peer.send("GET /channels?c=a&wait=0 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(peer.reply().header("Accept-Query"), Some("application/x-www-form-urlencoded"));
    peer.send("PUT /channels HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(peer.reply().status(), 405);
}
