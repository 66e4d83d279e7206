//! Tests of `bine channel`: its effects and output, and its errors when a server fails.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use bine::channels::{Access, Retention, Settings};
use bine::{App, Exit};

use crate::bine;
use crate::harness::{Ended, Folder, Program};

/// The environment variable that makes this process the server.
const SERVER_VARIABLE: &str = "BINE_TEST_SERVES";

/// A server whose channels everybody may use. Without the environment variable this test does
/// nothing.
#[test]
fn serves_open_channels() -> Exit {
    if std::env::var_os(SERVER_VARIABLE).is_none() {
        return Exit::success();
    }
    let retention = Retention { messages: 2, ..Retention::default() };
    App::new()
        .in_memory()
        .channels(Access::allow_all())
        .channel("short", Settings { retention, ..Settings::default() })
        // No other test opens connections from this address, so the port stays free after the
        // server has exited.
        .run_with("Usage: channels", ["--listen", "127.7.7.6:0", "--control", "off"])
}

fn serve() -> Program {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "channel::serves_open_channels", "--nocapture"]);
    Program::start(command.env(SERVER_VARIABLE, "1"))
}

fn channel(server: &Program, arguments: &[&str]) -> Command {
    let mut command = bine(&["channel"]);
    command.args(arguments).env("BINE_SERVER", format!("http://{}", server.address()));
    command
}

fn run(server: &Program, arguments: &[&str]) -> Ended {
    Program::run(&mut channel(server, arguments))
}

/// Returns the standard output of a command that must succeed.
#[track_caller]
fn output_of(server: &Program, arguments: &[&str]) -> String {
    let ended = run(server, arguments);
    assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""), "{arguments:?}");
    ended.output
}

/// Asserts that a command fails with this exit status and reason.
#[track_caller]
fn assert_refused(server: &Program, arguments: &[&str], code: i32, reason: &str) {
    let ended = run(server, arguments);
    assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
    assert!(ended.errors.contains(reason), "{arguments:?}: {}", ended.errors);
}

#[test]
fn creates_publishes_follows_and_closes_channel() {
    let server = serve();
    let created = output_of(&server, &["create", "rooms/a b", "--ttl", "2h"]);
    assert!(created.starts_with("rooms/a b "), "{created}");
    assert!(created.ends_with(" expires 7200 seconds after the last read or write\n"), "{created}");
    assert_eq!(output_of(&server, &["create", "rooms/a b", "--ttl=7200"]), created);
    assert!(output_of(&server, &["create", "news"]).ends_with(" never expires\n"));
    let first = output_of(&server, &["publish", "news", "one"]);
    assert_eq!(first.trim_end().len(), 25, "{first}");
    let both = ["publish", "news", "rooms/a b", "two\nlines", "--id", "x", "--event", "said"];
    let second = output_of(&server, &both);
    assert!(second > first);
    assert_eq!(output_of(&server, &both), format!("{} repeated\n", second.trim_end()));
    let follow = ["follow", "rooms/a b", "news", "--after", "earliest", "--count", "2"];
    assert_eq!(output_of(&server, &follow), "one\ntwo\nlines\n");
    let after = ["follow", "rooms/a b", "--json", "--count=1", "--after", first.trim_end()];
    let json = output_of(&server, &after);
    assert!(json.starts_with(&format!("{{\"cursor\":\"{}\"", second.trim_end())), "{json}");
    assert!(json.contains("\"data\":\"two\\nlines\"") && json.contains("\"event\":\"said\""));
    assert_eq!(output_of(&server, &["close", "news"]), second);
    assert_eq!(output_of(&server, &["follow", "news", "--after=earliest"]), "one\ntwo\nlines\n");
    assert_eq!(output_of(&server, &["follow", "news"]), "");
    assert_refused(&server, &["publish", "news", "three"], 1, "channel `news` is closed");
}

#[test]
fn lists_channels_by_size_and_deletes_them() {
    let server = serve();
    for (name, length) in [("few", 10), ("many", 5000), ("some", 500)] {
        output_of(&server, &["create", name, "--keep-all"]);
        output_of(&server, &["publish", name, &"x".repeat(length)]);
    }
    let names = |arguments: &[&str]| {
        let listed = output_of(&server, arguments);
        let names = listed.lines().map(|line| line.rsplit(' ').next().unwrap().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&["list"]), "few many short some");
    assert_eq!(names(&["list", "--by", "size", "--limit", "2"]), "many some");
    assert_eq!(names(&["list", "--after", "many"]), "short some");
    let first = output_of(&server, &["list", "--by=size", "--limit=1"]);
    let words: Vec<_> = first.split_whitespace().collect();
    assert!(
        matches!(words[..], [bytes, "1", "address/local", "many"] if bytes.len() == 4),
        "{first}"
    );
    assert_eq!(output_of(&server, &["delete", "many"]), "");
    assert_eq!(names(&["list", "--by=size"]), "some few short");
    assert_refused(&server, &["delete", "many"], 1, "404: there is no channel `many`");
    assert_refused(&server, &["list", "--by", "age"], 1, "400: `by` is name or size");
    assert_refused(&server, &["list", "few"], 1, "`list` takes no name");
}

#[test]
fn chooses_name_and_extends_lifetime() {
    let server = serve();
    let created = output_of(&server, &["create", "--keep", "2", "--keep-for", "1h"]);
    let [name, _, end] = *created.splitn(3, ' ').collect::<Vec<_>>() else { panic!("{created}") };
    assert!(name.len() == 26 && end.starts_with("expires at 2"), "{created}");
    assert!(end.ends_with(", 86400 seconds after the last publication\n"), "{created}");
    for word in ["one", "two", "three"] {
        output_of(&server, &["publish", name, word]);
    }
    let follow = ["follow", name, "--after", "earliest", "--count", "2"];
    assert_eq!(output_of(&server, &follow), "two\nthree\n");
    let renewed = output_of(&server, &["renew", name, "--ttl", "7d"]);
    assert!(renewed.ends_with(", 604800 seconds after the last publication\n"), "{renewed}");
    let all = ["create", "a", "--ttl=1h", "--publishers", "--durability=memory", "--keep-bytes=9"];
    assert!(
        output_of(&server, &all).ends_with(" expires 3600 seconds after the last publication\n")
    );
    assert_refused(&server, &["create", "a"], 1, "409: ");
    assert_refused(&server, &["create", "a", "--publishers"], 1, "--publishers needs --ttl");
    assert_refused(&server, &["create", "a", "--durability", "some"], 1, "400: ");
    assert_refused(&server, &["renew", "nowhere"], 1, "404: ");
}

#[test]
fn publishes_lines_and_json() {
    let server = serve();
    output_of(&server, &["create", "log"]);
    let folder = Folder::new();
    let lines: Vec<String> = (0..2500).map(|number| format!("line {number}\n")).collect();
    let lines = lines.concat();
    let path = folder.write("log", lines.as_bytes());
    let mut publish = channel(&server, &["publish", "log", "-", "--lines"]);
    let ended = Program::run(publish.stdin(File::open(&path).unwrap()));
    assert_eq!((ended.code, ended.output.lines().count()), (Some(0), 2500), "{}", ended.errors);
    let follow = ["follow", "log", "--after", "earliest", "--count", "2500"];
    assert_eq!(output_of(&server, &follow), lines);
    let path = folder.write("one", b"{\"rain\": 3}\n");
    let mut publish = channel(&server, &["publish", "short", "-", "--type", "application/json"]);
    let ended = Program::run(publish.stdin(File::open(&path).unwrap()));
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let follow = ["follow", "short", "--after", "earliest", "--count", "1"];
    assert_eq!(output_of(&server, &follow), "{\"rain\":3}\n");
    let json = ["publish", "short", "{", "--type", "application/json"];
    assert_refused(&server, &json, 1, "the data is not JSON");
}

#[test]
fn reports_lost_messages_and_mistakes() {
    let server = serve();
    let first = output_of(&server, &["publish", "short", "1"]);
    for word in ["2", "3", "4"] {
        output_of(&server, &["publish", "short", word]);
    }
    let ended = run(&server, &["follow", "short", "--count", "2", "--after", first.trim_end()]);
    assert_eq!((ended.code, ended.output.as_str()), (Some(0), "3\n4\n"));
    assert!(ended.errors.starts_with("bine: messages up to "), "{}", ended.errors);
    for (arguments, code, reason) in [
        (&["follow", "nowhere"][..], 1, "404: there is no channel `nowhere`"),
        (&["follow", "short", "--after", "then"], 1, "400: `then` is no place"),
        (&["follow", "short", "--count", "0"], 1, "`0` is not a positive number of messages"),
        (&["publish", "short"], 1, "publish needs NAME"),
        (&["publish", "nowhere", "1"], 1, "404: there is no channel `nowhere`"),
        (&["close", "nowhere"], 1, "404: there is no channel `nowhere`"),
        (&["create", "a", "--ttl", "soon"], 1, "`soon` is not a duration"),
        (&["create", "a", "--server", "a"], 2, "`a` is not a URL"),
        (&["follow"], 2, "Usage: bine channel follow"),
        (&["sing"], 2, "unknown command of `bine channel`"),
    ] {
        assert_refused(&server, arguments, code, reason);
    }
    assert!(output_of(&server, &["follow", "--help"]).starts_with("Usage: bine channel follow"));
    let address = format!("http://{}", server.address());
    server.stop();
    let ended = Program::run(bine(&["channel", "follow", "a"]).args(["--server", &address]));
    assert_eq!(ended.code, Some(1));
    assert!(ended.errors.contains(" does not answer: "), "{}", ended.errors);
}

/// Answers each request on its own connection, in order, and returns the heads of the requests.
fn play(answers: Vec<String>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let played = thread::spawn(move || {
        let play = |answer: String| {
            let (stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            (&stream).write_all(answer.as_bytes()).unwrap();
            head.join("\n")
        };
        answers.into_iter().map(play).collect()
    });
    (address, played)
}

#[test]
fn resumes_at_cursor_and_sends_token() {
    let cursor = |number: u32| format!("0badcafe_{number:016x}");
    let answer = |status: &str, number: u32, more: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\nCursor: {}\r\n{more}Content-Length: {}\r\n\r\n{body}",
            cursor(number),
            body.len(),
        )
    };
    let (address, played) = play(vec![
        answer("204 No Content", 1, "", ""),
        // The connection closes before the response.
        String::new(),
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".into(),
        answer("200 OK", 2, "", "[{\"data\":\"one\"}]"),
        answer("410 Gone", 7, "", "this cursor is of another server's data"),
        answer(
            "200 OK",
            8,
            "Stream-Closed: true\r\n",
            "[{\"data\":\"two\"},{\"base64\":\"AA==\"}]",
        ),
    ]);
    let mut follow = bine(&["channel", "follow", "a&b", "--server", &address]);
    let ended = Program::run(follow.env("BINE_TOKEN", "hops").stdin(Stdio::null()));
    assert_eq!((ended.code, ended.output.as_str()), (Some(0), "one\ntwo\nAA==\n"), "{ended:?}");
    assert!(ended.errors.contains("retrying"), "{}", ended.errors);
    assert!(ended.errors.contains("this cursor is of another"), "{}", ended.errors);
    let heads = played.join().unwrap();
    let after = ["now".to_owned(), cursor(1), cursor(1), cursor(1), cursor(2), cursor(7)];
    for (head, after) in heads.iter().zip(&after) {
        assert!(head.starts_with(&format!("GET /channels?c=a%26b&after={after}&wait=")), "{head}");
        assert!(head.to_ascii_lowercase().contains("authorization: bearer hops"), "{head}");
    }
}

#[test]
fn replaces_control_characters_in_reason_of_server() {
    let body = "\u{1b}]0;mine\u{7}\u{9b}2J";
    let length = body.len();
    let (address, played) = play(vec![format!(
        "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )]);
    let ended = Program::run(bine(&["channel", "follow", "a"]).args(["--server", &address]));
    assert_eq!(ended.code, Some(1));
    assert!(ended.errors.contains("403: \u{fffd}]0;mine\u{fffd}\u{fffd}2J"), "{}", ended.errors);
    assert_eq!(played.join().unwrap().len(), 1);
}

/// Channels work without a program: sites publish with a token, and the configuration lists the
/// public channels.
#[test]
fn serves_channels_from_configuration_with_tokens() {
    let folder = Folder::new();
    let key = folder.write("key", b"0123456789abcdef0123456789abcdef\n");
    let file = folder.write(
        "bine.toml",
        b"listen = \"127.0.0.1:0\"\ndata = \"memory\"\nchannels-follow = [\"news/*\"]\nchannels-key = \"key\"\n",
    );
    let server = Program::start(bine(&["serve"]).arg("--config").arg(&file));
    let key = key.to_str().unwrap();
    let site = [
        "token",
        "site",
        "--key",
        key,
        "--publish-pattern",
        "*",
        "--manage-pattern",
        "*",
        "--ttl",
        "1h",
    ];
    let site = output_of(&server, &site);
    let site = site.trim_end();
    output_of(&server, &["create", "news/today", "--token", site]);
    output_of(&server, &["create", "staff", "--token", site]);
    output_of(&server, &["publish", "news/today", "staff", "It climbs.", "--token", site]);
    let follow = ["follow", "news/today", "--after=earliest", "--count=1"];
    assert_eq!(output_of(&server, &follow), "It climbs.\n");
    assert_refused(&server, &["publish", "news/today", "no"], 1, "401: publishing");
    assert_refused(
        &server,
        &["follow", "staff"],
        1,
        "401: following (`staff`) is not open to everybody",
    );
    let staff = output_of(&server, &["token", "ann", "--key", key, "--follow", "staff"]);
    let follow = ["follow", "staff", "--after=earliest", "--count=1", "--token", staff.trim_end()];
    assert_eq!(output_of(&server, &follow), "It climbs.\n");
    let late = ["publish", "staff", "no", "--token", staff.trim_end()];
    assert_refused(&server, &late, 1, "403: publishing is not granted to \"ann\"");
    // An issuer is useless without a key for its tokens.
    let keyless = folder.write("keyless.toml", b"listen = \"127.0.0.1:0\"\ndata = \"memory\"\nchannels-follow = [\"*\"]\nchannels-issuer = \"a\"\n");
    let keyless = Program::run(bine(&["serve"]).arg("--config").arg(keyless));
    assert!(keyless.errors.contains("say by channels-key"), "{keyless:?}");
    let short = folder.write("short", b"guess\n");
    let short = ["token", "ann", "--key", short.to_str().unwrap()];
    assert_refused(&server, &short, 1, "a secret of 5 bytes can be guessed");
    for (subject, option, rule, message) in [
        ("ann", "--follow", "a*b", "`a*b` is taken for the name of one channel"),
        ("ann", "--follow", "inbox/*", "`inbox/*` is taken for the name of one channel"),
        ("ann", "--follow-pattern", "a*b", "`a*b` means no channels"),
        ("*", "--follow", "inbox/*", "\"*\" is no name of a user"),
    ] {
        let wrong = run(&server, &["token", subject, "--key", key, option, rule]);
        assert!(wrong.code != Some(0) && wrong.errors.contains(message), "{wrong:?}");
    }
}
