//! Content stored by clients never runs as part of the application that serves it.

use std::path::{Path as FilePath, PathBuf};

use bine::blocking;
use bine::prelude::*;

use crate::app::{options, program};
use crate::channels::start;
use crate::durable::{ask, check};
use crate::harness::{Folder, Program, Reply};

/// Media types that a browser would run, then types that it only displays.
const ACTIVE: [&str; 9] = [
    "text/html",
    "TEXT/HTML; charset=utf-8",
    "image/svg+xml",
    "application/xhtml+xml",
    "text/xml",
    "application/rss+xml",
    "text/javascript",
    "text/css",
    // A browser takes the last type of a list.
    "text/plain;a=b, text/html",
];
const PASSIVE: [&str; 5] = [
    "text/plain; charset=utf-8",
    "application/json",
    "application/octet-stream",
    "image/png",
    "video/mp4",
];

/// Values of Sec-Fetch-Dest for content to run, then for content to display.
const TO_RUN: [&str; 7] =
    ["script", "style", "xslt", "worker", "sharedworker", "serviceworker", "audioworklet"];
const TO_SHOW: [&str; 4] = ["empty", "document", "image", "video"];

#[track_caller]
fn check_inert(reply: &Reply, is_active: bool) {
    let policy = reply.header("Content-Security-Policy").unwrap_or_default();
    assert!(policy.split(';').any(|part| part.trim() == "sandbox"), "{reply:?}");
    assert_eq!(reply.header("X-Content-Type-Options"), Some("nosniff"), "{reply:?}");
    let disposition = reply.header("Content-Disposition");
    assert_eq!(disposition == Some("attachment"), is_active, "{reply:?}");
}

/// Regression: a channel created with `text/html` was a page of the application, so its creator
/// could act as any user who opened it.
#[test]
fn serves_channels_as_inactive_content() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    let kinds =
        ACTIVE.iter().map(|kind| (kind, true)).chain(PASSIVE.iter().map(|kind| (kind, false)));
    for (number, (kind, is_active)) in kinds.enumerate() {
        let (name, kind) = (format!("stored/{number}"), format!("Content-Type: {kind}\r\n"));
        let body = if kind.contains("json") { "[1]" } else { "<script>1</script>" };
        let made = check(&mut peer, ("PUT", &name, &kind, body), 201);
        check_inert(&made, is_active);
        check_inert(&check(&mut peer, ("HEAD", &name, "", ""), 200), is_active);
        let whole = check(&mut peer, ("GET", &name, "", ""), 200);
        check_inert(&whole, is_active);
        let known = format!("If-None-Match: {}\r\n", whole.header("ETag").unwrap());
        check_inert(&check(&mut peer, ("GET", &name, &known, ""), 304), is_active);
        let poll = format!("{name}?offset=-1&live=long-poll");
        check_inert(&check(&mut peer, ("GET", &poll, "", ""), 200), is_active);
        let mut events = program.connect();
        events.send(format!("GET /channels/{name}?offset=-1&live=sse HTTP/1.1\r\nHost: a\r\n\r\n"));
        let head = events.await_text("\r\n\r\n").to_ascii_lowercase();
        assert!(head.contains("content-security-policy: sandbox"), "{head}");
        assert!(head.contains("x-content-type-options: nosniff"), "{head}");
    }
    for (method, target) in [("GET", "none"), ("HEAD", "none"), ("OPTIONS", "stored/0")] {
        check_inert(&ask(&mut peer, method, target, "", ""), false);
    }
}

#[test]
fn rejects_channel_as_script_or_style_sheet() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    check(&mut peer, ("PUT", "a", "Content-Type: text/javascript\r\n", "run()"), 201);
    for destination in TO_RUN {
        let field = format!("Sec-Fetch-Dest: {destination}\r\n");
        check(&mut peer, ("GET", "a", &field, ""), 403);
    }
    for destination in TO_SHOW {
        let field = format!("Sec-Fetch-Dest: {destination}\r\n");
        check(&mut peer, ("GET", "a", &field, ""), 200);
    }
}

#[test]
fn serves_views_of_several_channels_as_inactive_content() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    check(&mut peer, ("PUT", "a", "Content-Type: text/html\r\n", "<script>1</script>"), 201);
    for accept in
        ["application/json", "text/event-stream", "application/x-ndjson", "multipart/mixed"]
    {
        let mut reader = program.connect();
        reader.send(format!(
            "GET /channels?c=a&after=earliest HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n"
        ));
        let head = reader.await_text("\r\n\r\n").to_ascii_lowercase();
        assert!(head.contains("content-security-policy: sandbox"), "{head}");
        assert!(head.contains("x-content-type-options: nosniff"), "{head}");
        let is_attachment = head.contains("content-disposition: attachment");
        assert_eq!(is_attachment, accept == "multipart/mixed", "{head}");
    }
}

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_stored_file_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    let app = App::new().page(stored).page(stored_and_later).page(trusted);
    app.run_with("Usage: inert", options.lines())
}

#[page("/stored/{name}")]
fn stored(name: Path<Text>) -> Result<Response, Error> {
    Response::file(file(&name))
}

#[page("/later/{name}")]
async fn stored_and_later(name: Path<Text>) -> Result<Response, Error> {
    blocking(move || Response::file(file(&name))).await
}

#[page("/trusted/{name}")]
fn trusted(name: Path<Text>) -> Result<Response, Error> {
    Response::trusted_file(file(&name))
}

fn file(name: &str) -> PathBuf {
    FilePath::new(&std::env::var_os("STORED").unwrap()).join(name)
}

#[test]
fn serves_stored_files_as_inactive_content_unless_trusted() {
    let folder = Folder::new();
    for (name, _) in FILES {
        folder.write(name, b"<script>1</script>");
    }
    let mut command = program("inert::serve_stored_file_program", &[]);
    let program = Program::start(command.env("STORED", folder.path()));
    let mut peer = program.connect();
    for (name, is_active) in FILES {
        let whole = peer.get(&format!("/stored/{name}"));
        assert_eq!(whole.status(), 200);
        check_inert(&whole, is_active);
        assert_eq!(whole.header("Vary"), is_active.then_some("Sec-Fetch-Dest"), "{whole:?}");
        let tag = whole.header("ETag").unwrap().to_owned();
        for field in [format!("If-None-Match: {tag}"), "Range: bytes=0-3".to_owned()] {
            peer.send(format!("GET /stored/{name} HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n"));
            check_inert(&peer.reply(), is_active);
        }
        let own = peer.get(&format!("/trusted/{name}"));
        assert_eq!((own.status(), own.header("Content-Disposition")), (200, None));
        assert_eq!(own.header("Content-Security-Policy"), None);
    }
}

/// Regression: a page could run an uploaded script by its address. No response header prevents
/// that, so the server must reject the request.
#[test]
fn rejects_stored_file_as_script_or_style_sheet() {
    let folder = Folder::new();
    folder.write("a.js", b"run()");
    let mut command = program("inert::serve_stored_file_program", &[]);
    let program = Program::start(command.env("STORED", folder.path()));
    let mut peer = program.connect();
    let mut ask = |method: &str, path: &str, destination: &str| {
        peer.send(format!(
            "{method} {path} HTTP/1.1\r\nHost: a\r\nSec-Fetch-Dest: {destination}\r\n\r\n"
        ));
        if method == "HEAD" { peer.reply_to_head() } else { peer.reply() }
    };
    for path in ["/stored/a.js", "/later/a.js"] {
        for destination in TO_RUN {
            let refused = ask("GET", path, destination);
            assert_eq!(refused.status(), 403, "{path} as {destination}");
            assert!(!refused.text().contains("run()"), "{refused:?}");
        }
        assert_eq!(ask("HEAD", path, "script").status(), 403);
        for destination in TO_SHOW {
            assert_eq!(ask("GET", path, destination).text(), "run()", "{path} as {destination}");
        }
    }
    for destination in TO_RUN {
        assert_eq!(ask("GET", "/trusted/a.js", destination).text(), "run()", "as {destination}");
    }
}

const FILES: [(&str, bool); 4] =
    [("a.html", true), ("a.svg", true), ("a.txt", false), ("a.png", false)];
