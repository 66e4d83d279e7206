//! Claims about `bine channel`: what it makes, publishes and prints, and what it does when a server is not as it should be.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use bine::channels::{Access, Retention, Settings};
use bine::{App, Exit};

use crate::bine;
use crate::harness::{Ended, Folder, Program};

/// Says that this process is to be the server.
const SERVES: &str = "BINE_TEST_SERVES";

/// A server whose channels are open to all. As a test among the others it has nothing to do.
#[test]
fn the_server_of_open_channels_serves() -> Exit {
    if std::env::var_os(SERVES).is_none() {
        return Exit::fine();
    }
    let retention = Retention { messages: 2, ..Retention::default() };
    App::new()
        .forgetful()
        .channels(Access::everything())
        .channel("short", Settings { retention, ..Settings::default() })
        // An address that nothing else here opens connections from, so that nobody answers when the server is gone.
        .run_with("Usage: channels", ["--listen", "127.7.7.6:0", "--control", "off"])
}

fn serve() -> Program {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "channel::the_server_of_open_channels_serves", "--nocapture"]);
    Program::start(command.env(SERVES, "1"))
}

fn channel(server: &Program, arguments: &[&str]) -> Command {
    let mut command = bine(&["channel"]);
    command.args(arguments).env("BINE_SERVER", format!("http://{}", server.address()));
    command
}

fn run(server: &Program, arguments: &[&str]) -> Ended {
    Program::run(&mut channel(server, arguments))
}

/// Standard output of a command that must succeed.
#[track_caller]
fn told(server: &Program, arguments: &[&str]) -> String {
    let ended = run(server, arguments);
    assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""), "{arguments:?}");
    ended.output
}

/// The reason in standard error of a command that must fail.
#[track_caller]
fn refused(server: &Program, arguments: &[&str], code: i32, reason: &str) {
    let ended = run(server, arguments);
    assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
    assert!(ended.errors.contains(reason), "{arguments:?}: {}", ended.errors);
}

#[test]
fn a_channel_is_made_and_filled_and_followed_until_it_is_closed() {
    let server = serve();
    let made = told(&server, &["create", "rooms/a b", "--ttl", "2h"]);
    assert!(made.starts_with("rooms/a b "), "{made}");
    assert!(made.ends_with(" goes 7200 seconds after the last read or write\n"), "{made}");
    assert_eq!(told(&server, &["create", "rooms/a b", "--ttl=7200"]), made);
    assert!(told(&server, &["create", "news"]).ends_with(" stays\n"));
    let first = told(&server, &["publish", "news", "one"]);
    assert_eq!(first.trim_end().len(), 25, "{first}");
    let both = ["publish", "news", "rooms/a b", "two\nlines", "--id", "x", "--event", "said"];
    let second = told(&server, &both);
    assert!(second > first);
    assert_eq!(told(&server, &both), format!("{} repeated\n", second.trim_end()));
    let follow = ["follow", "rooms/a b", "news", "--after", "earliest", "--count", "2"];
    assert_eq!(told(&server, &follow), "one\ntwo\nlines\n");
    let after = ["follow", "rooms/a b", "--json", "--count=1", "--after", first.trim_end()];
    let json = told(&server, &after);
    assert!(json.starts_with(&format!("{{\"cursor\":\"{}\"", second.trim_end())), "{json}");
    assert!(json.contains("\"data\":\"two\\nlines\"") && json.contains("\"event\":\"said\""));
    assert_eq!(told(&server, &["close", "news"]), second);
    assert_eq!(told(&server, &["follow", "news", "--after=earliest"]), "one\ntwo\nlines\n");
    assert_eq!(told(&server, &["follow", "news"]), "");
    refused(&server, &["publish", "news", "three"], 1, "channel `news` is closed");
}

#[test]
fn channels_are_listed_by_size_and_deleted() {
    let server = serve();
    for (name, length) in [("few", 10), ("many", 5000), ("some", 500)] {
        told(&server, &["create", name, "--keep-all"]);
        told(&server, &["publish", name, &"x".repeat(length)]);
    }
    let names = |arguments: &[&str]| {
        let listed = told(&server, arguments);
        let names = listed.lines().map(|line| line.rsplit(' ').next().unwrap().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&["list"]), "few many short some");
    assert_eq!(names(&["list", "--by", "size", "--limit", "2"]), "many some");
    assert_eq!(names(&["list", "--after", "many"]), "short some");
    let first = told(&server, &["list", "--by=size", "--limit=1"]);
    let words: Vec<_> = first.split_whitespace().collect();
    assert!(
        matches!(words[..], [bytes, "1", "address/local", "many"] if bytes.len() == 4),
        "{first}"
    );
    assert_eq!(told(&server, &["delete", "many"]), "");
    assert_eq!(names(&["list", "--by=size"]), "some few short");
    refused(&server, &["delete", "many"], 1, "404: there is no channel `many`");
    refused(&server, &["list", "--by", "age"], 1, "400: `by` is name or size");
    refused(&server, &["list", "few"], 1, "`list` takes no name");
}

#[test]
fn a_channel_without_a_name_gets_one_and_whoever_renews_it_moves_its_end() {
    let server = serve();
    let made = told(&server, &["create", "--keep", "2", "--keep-for", "1h"]);
    let [name, _, end] = *made.splitn(3, ' ').collect::<Vec<_>>() else { panic!("{made}") };
    assert!(name.len() == 26 && end.starts_with("goes at 2"), "{made}");
    assert!(end.ends_with(", 86400 seconds after the last publication\n"), "{made}");
    for word in ["one", "two", "three"] {
        told(&server, &["publish", name, word]);
    }
    let follow = ["follow", name, "--after", "earliest", "--count", "2"];
    assert_eq!(told(&server, &follow), "two\nthree\n");
    let renewed = told(&server, &["renew", name, "--ttl", "7d"]);
    assert!(renewed.ends_with(", 604800 seconds after the last publication\n"), "{renewed}");
    let all = ["create", "a", "--ttl=1h", "--publishers", "--durability=memory", "--keep-bytes=9"];
    assert!(told(&server, &all).ends_with(" goes 3600 seconds after the last publication\n"));
    refused(&server, &["create", "a"], 1, "409: ");
    refused(&server, &["create", "a", "--publishers"], 1, "--publishers goes with --ttl");
    refused(&server, &["create", "a", "--durability", "some"], 1, "400: ");
    refused(&server, &["renew", "nowhere"], 1, "404: ");
}

#[test]
fn lines_of_standard_input_are_messages_and_what_is_said_to_be_json_is_json() {
    let server = serve();
    told(&server, &["create", "log"]);
    let folder = Folder::new();
    let lines: Vec<String> = (0..2500).map(|number| format!("line {number}\n")).collect();
    let lines = lines.concat();
    let path = folder.write("log", lines.as_bytes());
    let mut publish = channel(&server, &["publish", "log", "-", "--lines"]);
    let ended = Program::run(publish.stdin(File::open(&path).unwrap()));
    assert_eq!((ended.code, ended.output.lines().count()), (Some(0), 2500), "{}", ended.errors);
    let follow = ["follow", "log", "--after", "earliest", "--count", "2500"];
    assert_eq!(told(&server, &follow), lines);
    let path = folder.write("one", b"{\"rain\": 3}\n");
    let mut publish = channel(&server, &["publish", "short", "-", "--type", "application/json"]);
    let ended = Program::run(publish.stdin(File::open(&path).unwrap()));
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let follow = ["follow", "short", "--after", "earliest", "--count", "1"];
    assert_eq!(told(&server, &follow), "{\"rain\":3}\n");
    let json = ["publish", "short", "{", "--type", "application/json"];
    refused(&server, &json, 1, "this is no JSON");
}

#[test]
fn what_is_gone_is_told_and_what_is_wrong_too() {
    let server = serve();
    let first = told(&server, &["publish", "short", "1"]);
    for word in ["2", "3", "4"] {
        told(&server, &["publish", "short", word]);
    }
    let ended = run(&server, &["follow", "short", "--count", "2", "--after", first.trim_end()]);
    assert_eq!((ended.code, ended.output.as_str()), (Some(0), "3\n4\n"));
    assert!(ended.errors.starts_with("bine: messages up to "), "{}", ended.errors);
    for (arguments, code, reason) in [
        (&["follow", "nowhere"][..], 1, "404: there is no channel `nowhere`"),
        (&["follow", "short", "--after", "then"], 1, "400: `then` is no place"),
        (&["follow", "short", "--count", "0"], 1, "`0` is no number of messages"),
        (&["publish", "short"], 1, "publish what, and where?"),
        (&["publish", "nowhere", "1"], 1, "404: there is no channel `nowhere`"),
        (&["close", "nowhere"], 1, "404: there is no channel `nowhere`"),
        (&["create", "a", "--ttl", "soon"], 1, "`soon` is no time"),
        (&["create", "a", "--server", "a"], 2, "`a` is no address"),
        (&["follow"], 2, "Usage: bine channel follow"),
        (&["sing"], 2, "a channel is created"),
    ] {
        refused(&server, arguments, code, reason);
    }
    assert!(told(&server, &["follow", "--help"]).starts_with("Usage: bine channel follow"));
    let address = format!("http://{}", server.address());
    server.stop();
    let ended = Program::run(bine(&["channel", "follow", "a"]).args(["--server", &address]));
    assert_eq!(ended.code, Some(1));
    assert!(ended.errors.contains(" does not answer: "), "{}", ended.errors);
}

/// Answers one request after the other, each on a connection of its own, and gives back their heads.
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
fn a_follower_comes_back_where_it_was_and_says_who_it_is() {
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
        // It goes before it has said anything.
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
    assert!(ended.errors.contains("it is tried again"), "{}", ended.errors);
    assert!(ended.errors.contains("this cursor is of another"), "{}", ended.errors);
    let heads = played.join().unwrap();
    let after = ["now".to_owned(), cursor(1), cursor(1), cursor(1), cursor(2), cursor(7)];
    for (head, after) in heads.iter().zip(&after) {
        assert!(head.starts_with(&format!("GET /channels?c=a%26b&after={after}&wait=")), "{head}");
        assert!(head.to_ascii_lowercase().contains("authorization: bearer hops"), "{head}");
    }
}

#[test]
fn a_reason_of_a_server_commands_no_terminal() {
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

/// No program is needed: whoever has a site publishes by a token, and everybody follows what the file says.
#[test]
fn channels_are_served_by_configuration_alone_and_tokens_say_who_publishes() {
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
    let site = told(&server, &site);
    let site = site.trim_end();
    told(&server, &["create", "news/today", "--token", site]);
    told(&server, &["create", "staff", "--token", site]);
    told(&server, &["publish", "news/today", "staff", "It climbs.", "--token", site]);
    let follow = ["follow", "news/today", "--after=earliest", "--count=1"];
    assert_eq!(told(&server, &follow), "It climbs.\n");
    refused(&server, &["publish", "news/today", "no"], 1, "401: publishing");
    refused(&server, &["follow", "staff"], 1, "401: following (`staff`) is not open to everybody");
    let staff = told(&server, &["token", "ann", "--key", key, "--follow", "staff"]);
    let follow = ["follow", "staff", "--after=earliest", "--count=1", "--token", staff.trim_end()];
    assert_eq!(told(&server, &follow), "It climbs.\n");
    let late = ["publish", "staff", "no", "--token", staff.trim_end()];
    refused(&server, &late, 1, "403: publishing is not granted to \"ann\"");
    // Who is strict with tokens of nobody has forgotten something.
    let keyless = folder.write("keyless.toml", b"listen = \"127.0.0.1:0\"\ndata = \"memory\"\nchannels-follow = [\"*\"]\nchannels-issuer = \"a\"\n");
    let keyless = Program::run(bine(&["serve"]).arg("--config").arg(keyless));
    assert!(keyless.errors.contains("say by channels-key"), "{keyless:?}");
    let short = folder.write("short", b"guess\n");
    let short = ["token", "ann", "--key", short.to_str().unwrap()];
    refused(&server, &short, 1, "a secret of 5 bytes can be guessed");
    for (subject, option, rule, told) in [
        ("ann", "--follow", "a*b", "`a*b` is taken for the name of one channel"),
        ("ann", "--follow", "inbox/*", "`inbox/*` is taken for the name of one channel"),
        ("ann", "--follow-pattern", "a*b", "`a*b` means no channels"),
        ("*", "--follow", "inbox/*", "\"*\" is no name of a user"),
    ] {
        let wrong = run(&server, &["token", subject, "--key", key, option, rule]);
        assert!(wrong.code != Some(0) && wrong.errors.contains(told), "{wrong:?}");
    }
}
