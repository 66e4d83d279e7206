//! Tests of the access log that `bine` writes.

use std::fs;

use crate::harness::{Folder, KINDS};
use crate::start;

/// Returns the lines of a log without their times.
fn untimed(log: &str) -> Vec<String> {
    let untime = |line: &str| {
        let (before, rest) = line.split_once('[').unwrap();
        let (time, after) = rest.split_once(']').unwrap();
        assert_eq!((time.len(), &time[20..]), ("21/Nov/2026:00:03:40 +0000".len(), " +0000"));
        format!("{before}[]{after}")
    };
    log.lines().map(untime).collect()
}

#[test]
fn logs_every_reply_before_exit() {
    for scheduler in KINDS {
        let folder = Folder::new();
        let log = folder.join("access.log");
        let program = start(&["--scheduler", scheduler, "--access-log", log.to_str().unwrap()]);
        let mut peer = program.connect();
        peer.get("/robots.txt");
        peer.send("HEAD /robots.txt?a=%22 HTTP/1.1\r\nHost: a\r\n\r\n");
        peer.reply_to_head();
        peer.get("/nowhere");
        peer.send(
            "GET /robots.txt HTTP/1.0\r\nReferer: http://b.example/\r\n\
             User-Agent: a \"b\" \\c\t[\u{e4}]\r\nConnection: keep-alive\r\n\r\n",
        );
        peer.reply();
        peer.send("POST /hello HTTP/1.1\r\nHost: a\r\n\r\n");
        peer.reply();
        peer.send("GARBAGE\r\n\r\n");
        assert_eq!(peer.reply().status(), 400);
        assert_eq!(program.stop().code, Some(0));
        let lines = untimed(&fs::read_to_string(&log).unwrap());
        let expected = [
            r#"127.0.0.1 - - [] "GET /robots.txt HTTP/1.1" 200 24 "-" "-""#,
            r#"127.0.0.1 - - [] "HEAD /robots.txt?a=%22 HTTP/1.1" 200 - "-" "-""#,
            r#"127.0.0.1 - - [] "GET /nowhere HTTP/1.1" 404 34 "-" "-""#,
            r#"127.0.0.1 - - [] "GET /robots.txt HTTP/1.0" 200 24 "http://b.example/" "a \"b\" \\c\x09[\xc3\xa4]""#,
            r#"127.0.0.1 - - [] "POST /hello HTTP/1.1" 405 39 "-" "-""#,
            r#"127.0.0.1 - - [] "-" 400 26 "-" "-""#,
        ];
        assert_eq!(lines, expected, "{scheduler}");
    }
}

#[test]
fn loses_no_line_when_many_connections_end_at_once() {
    for scheduler in KINDS {
        let folder = Folder::new();
        let log = folder.join("access.log");
        let program = start(&["--scheduler", scheduler, "--access-log", log.to_str().unwrap()]);
        let mut peers: Vec<_> = (0..8).map(|_| program.connect()).collect();
        let request = "GET /robots.txt HTTP/1.1\r\nHost: a\r\n\r\n";
        for peer in &mut peers {
            peer.send(request.repeat(100));
        }
        for peer in &mut peers {
            for _ in 0..100 {
                assert_eq!(peer.reply().status(), 200);
            }
        }
        assert_eq!(program.stop().code, Some(0));
        assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 800, "{scheduler}");
    }
}

#[test]
fn appends_to_existing_log() {
    let folder = Folder::new();
    let log = folder.write("access.log", b"earlier\n");
    let program = start(&["--access-log", log.to_str().unwrap()]);
    program.connect().get("/nowhere");
    assert_eq!(program.stop().code, Some(0));
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.starts_with("earlier\n127.0.0.1 - - ["), "{text}");
}
