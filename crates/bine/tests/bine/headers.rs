//! Security headers of responses, accepted host names, and event handlers in raw markup.

use bine::prelude::*;
use bine::{Frames, SecurityHeaders};

use crate::app::{options, program};
use crate::harness::{Folder, Program, Reply};

const STRICT: &str = "default-src 'self'; img-src 'self' data:; style-src-attr 'unsafe-inline'; object-src 'none'; base-uri 'none'; form-action 'self'";

#[page("/page")]
async fn page() -> impl Page {
    html!(<p>page</p>)
}

#[page("/own")]
async fn own() -> impl Respond {
    html!(<p>own</p>)
        .with_header("Content-Security-Policy", "default-src 'none'")
        .with_header("X-Frame-Options", "DENY")
}

#[page("/bare")]
async fn bare() -> impl Respond {
    html!(<p>bare</p>)
        .with_header("content-security-policy", "")
        .with_header("x-frame-options", "")
        .with_header("X-Content-Type-Options", "")
}

#[page("/text")]
fn text() -> Response {
    Response::text("text")
}

#[page("/moved")]
async fn moved() -> Response {
    Response::see_other("/page")
}

#[page("/failed")]
async fn failed() -> Result<Response, Error> {
    Err(Error::forbidden("no"))
}

#[service]
async fn serve() -> usize {
    1
}

#[page("/foreign")]
async fn foreign() -> impl Page {
    let markup = "<p Data-On=\"click: call /bine/serve\">foreign</p>";
    html!(<main data-on="click: toggle this">{bine::raw(markup)}</main>)
}

fn app() -> App {
    App::new()
        .page(page)
        .page(own)
        .page(bare)
        .page(text)
        .page(moved)
        .page(failed)
        .page(foreign)
        .service(serve)
        .asset("/asset", "text/javascript", b"1")
}

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_header_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    app().run_with("", options.lines())
}

/// The same program with other headers, which permit embedding.
#[test]
fn serve_embeddable_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    let headers = SecurityHeaders::new().frames(Frames::Any).content_security_policy("img-src *");
    app().security_headers(headers).run_with("", options.lines())
}

fn start(options: &[&str]) -> Program {
    Program::start(&mut program("headers::serve_header_program", options))
}

fn start_embedded(options: &[&str]) -> Program {
    Program::start(&mut program("headers::serve_embeddable_program", options))
}

/// Returns the three headers of a response.
fn headers(reply: &Reply) -> [Option<&str>; 3] {
    ["X-Content-Type-Options", "X-Frame-Options", "Content-Security-Policy"]
        .map(|name| reply.header(name))
}

#[track_caller]
fn check(reply: &Reply, expected: [Option<&str>; 3]) {
    assert_eq!(headers(reply), expected, "{}", reply.head);
    for name in ["x-content-type-options:", "x-frame-options:", "content-security-policy:"] {
        let count = reply.head.to_lowercase().matches(name).count();
        assert!(count <= 1, "{name} {count} times: {}", reply.head);
    }
}

const DEFAULT: [Option<&str>; 3] = [Some("nosniff"), Some("SAMEORIGIN"), None];
const OF_PAGES: [Option<&str>; 3] = [Some("nosniff"), Some("SAMEORIGIN"), Some(STRICT)];

#[test]
fn adds_security_headers_to_each_response() {
    let folder = Folder::new();
    folder.write("a.html", b"<p>a");
    let root = folder.path().to_str().unwrap().to_owned();
    let program = start(&["--root", &root]);
    let mut peer = program.connect();
    for path in ["/text", "/moved", "/failed", "/asset", "/a.html", "/none", "/health"] {
        check(&peer.get(path), DEFAULT);
    }
    for path in ["/page", "/foreign"] {
        check(&peer.get(path), OF_PAGES);
    }
    for path in ["/failed", "/none"] {
        peer.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n"));
        check(&peer.reply(), OF_PAGES);
    }
    peer.send("HEAD /page HTTP/1.1\r\nHost: a\r\n\r\n");
    check(&peer.reply_to_head(), OF_PAGES);
    peer.send("POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    check(&peer.reply(), DEFAULT);
    peer.send("POST /bine/serve HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    check(&peer.reply(), DEFAULT);
    peer.send("nonsense\r\n\r\n");
    check(&peer.reply(), DEFAULT);
}

#[test]
fn response_overrides_and_removes_security_headers() {
    let program = start(&[]);
    let mut peer = program.connect();
    let own = [Some("nosniff"), Some("DENY"), Some("default-src 'none'")];
    check(&peer.get("/own"), own);
    check(&peer.get("/bare"), [None; 3]);
}

#[test]
fn program_and_configuration_choose_security_headers() {
    let program = start_embedded(&[]);
    check(&program.connect().get("/page"), [Some("nosniff"), None, Some("img-src *")]);
    for (arguments, expected) in [
        (&["--frames", "deny"][..], [Some("nosniff"), Some("DENY"), Some("img-src *")]),
        (&["--nosniff", "off", "--content-security-policy", "off"], [None; 3]),
        (&["--content-security-policy", "strict"], [Some("nosniff"), None, Some(STRICT)]),
    ] {
        let program = start_embedded(arguments);
        check(&program.connect().get("/page"), expected);
    }
}

#[test]
fn site_rule_overrides_security_headers_of_files() {
    let folder = Folder::new();
    folder.write("a.html", b"<p>a");
    folder.write("b.txt", b"b");
    let root = folder.path().to_str().unwrap().to_owned();
    let rule = "*.html X-Frame-Options: DENY";
    let program = start(&["--root", &root, "--field", rule]);
    let mut peer = program.connect();
    for _ in 0..2 {
        check(&peer.get("/a.html"), [Some("nosniff"), Some("DENY"), None]);
        check(&peer.get("/b.txt"), DEFAULT);
    }
}

#[test]
fn rejects_foreign_hosts_on_loopback() {
    let program = start(&["--hosts", "auto"]);
    let mut peer = program.connect();
    for (host, status) in [
        ("localhost:8080", 200),
        ("127.0.0.1", 200),
        ("evil.example", 421),
        ("app.localhost", 200),
        ("evil.example:80", 421),
    ] {
        peer.send(format!("GET /page HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let reply = peer.reply();
        assert_eq!(reply.status(), status, "{host}");
        let names_key = reply.text().contains("the key `hosts`");
        assert_eq!(names_key, status == 421, "{host}");
    }
    let program = start(&["--hosts", "shop.example"]);
    let mut peer = program.connect();
    for (host, status) in [("shop.example", 200), ("machine", 421), ("localhost", 200)] {
        peer.send(format!("GET /page HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(peer.reply().status(), status, "{host}");
    }
}

#[test]
fn disables_event_handlers_in_raw_markup() {
    let program = start(&[]);
    assert_eq!(
        program.connect().get("/foreign").text(),
        "<main data-on=\"click: toggle this\"><p Data&#45;On=\"click: call /bine/serve\">foreign</p></main>"
    );
}
