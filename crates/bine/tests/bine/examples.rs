//! The example programs; the smallest one is compared byte for byte.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crate::harness::{Folder, PATIENCE, Peer, Program, SCHEDULERS, undated};

/// Returns a command for an example. Cargo builds them with the tests, in a folder next to the
/// tests'.
pub(crate) fn example(name: &str) -> Command {
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop();
    path.set_file_name("examples");
    path.push(name);
    assert!(path.exists(), "build it: cargo build --example {name}");
    let mut command = Command::new(path);
    // Admission and timeouts have tests of their own; a busy machine must not trigger them here.
    command.envs([("BINE_ADMISSION", "off"), ("BINE_QUEUE_TIMEOUT", "60s")]);
    command
}

fn program() -> Command {
    example("hello")
}

fn serve(name: &str) -> Program {
    Program::start(example(name).args(["--listen", "127.0.0.1:0"]))
}

#[test]
fn hello_example_responds_byte_for_byte() {
    for scheduler in SCHEDULERS {
        let mut command = program();
        command.args(["--listen", "127.0.0.1:0", "--scheduler", scheduler]);
        let program = Program::start(&mut command);
        let reply = program.connect().get("/hello?name=TLUG");
        assert_eq!(
            undated(&reply.head),
            "HTTP/1.1 200 OK\r\nDate: -\r\nX-Content-Type-Options: nosniff\r\n\
             X-Frame-Options: SAMEORIGIN\r\nContent-Type: text/html; charset=utf-8\r\n\
             Content-Security-Policy: default-src 'self'; img-src 'self' data:; \
             style-src-attr 'unsafe-inline'; object-src 'none'; base-uri 'none'; form-action 'self'\r\n\
             Content-Length:         19\r\n\r\n"
        );
        assert_eq!(reply.text(), "<h1>Hello TLUG</h1>");
        let ended = program.stop();
        // A warning that the machine is overloaded may be true: other tests run at the same time.
        let errors = ended.errors.lines().filter(|line| !line.contains(" blocked its event loop "));
        assert_eq!((ended.code, errors.collect::<Vec<_>>()), (Some(0), vec![]), "{scheduler}");
    }
}

#[test]
fn serves_blocking_page_like_any_other() {
    for scheduler in SCHEDULERS {
        let mut command = example("plain");
        command.args(["--listen", "127.0.0.1:0", "--scheduler", scheduler]);
        let program = Program::start(&mut command);
        let mut peer = program.connect();
        assert_eq!(peer.get("/plain?name=a").text(), "<h1>Hello a</h1>", "{scheduler}");
        assert_eq!(peer.get("/hello?name=a").text(), "<h1>Hello a</h1>", "{scheduler}");
    }
}

#[test]
fn escapes_name_from_query() {
    let program = Program::start(program().args(["--listen", "127.0.0.1:0"]));
    let reply = program.connect().get("/hello?name=%3Cscript%3E+%26");
    assert_eq!(reply.text(), "<h1>Hello &lt;script&gt; &amp;</h1>");
}

#[test]
fn runs_filters_before_pages_in_order() {
    let program = serve("filter");
    let mut peer = program.connect();
    assert_eq!(peer.get("/welcome.html").text(), "<h1>Welcome</h1>");
    let moved = peer.get("/drafts/1.html");
    assert_eq!((moved.status(), moved.header("Location")), (308, Some("/drafts/1")));
    assert_eq!(peer.get("/drafts/1").status(), 404);
    assert_eq!(peer.get("/drafts/1?key=hops").text(), "<h1>Draft 1</h1>");
}

#[test]
fn calls_service_by_name() {
    let folder = Folder::new();
    let mut command = example("services");
    command.args(["--listen", "127.0.0.1:0"]).current_dir(folder.path());
    let program = Program::start(&mut command);
    let mut peer = program.connect();
    assert_eq!(peer.get("/services/add?one=40&other=2").text(), "42");
    let form = "name=Anna&words=Hello&stars=4";
    peer.send(format!(
        "POST /services/sign HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nReferer: http://a/\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    ));
    let reply = peer.reply();
    assert_eq!((reply.status(), reply.header("Location")), (303, Some("http://a/")));
    assert!(peer.get("/").text().contains("<li>Anna: Hello (4)</li>"));
}

#[test]
fn forwards_to_another_server_in_a_step() {
    let other = serve("hello");
    let mut command = example("middleware");
    command.args(["--listen", "127.0.0.1:0"]).env("OTHER", other.address().to_string());
    let program = Program::start(&mut command);
    assert!(program.connect().get("/").text().contains("Ours."));
    assert_eq!(program.connect().get("/other/hello?name=a").text(), "<h1>Hello a</h1>");
    other.stop();
    assert_eq!(program.connect().get("/other/hello?name=a").status(), 502);
}

#[test]
fn rooms_example_checks_password_and_counts_messages() {
    let program = serve("rooms");
    let mut peer = program.connect();
    for (target, status) in [
        ("/rooms/hop?word=cone", 200),
        ("/rooms/hop?word=tuber", 403),
        ("/rooms/hop/said?word=tuber", 403),
        ("/rooms/attic/said?word=cone", 404),
    ] {
        assert_eq!(peer.get(target).status(), status, "{target}");
    }
    peer.send(
        "POST /rooms/hop?word=cone HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n\r\ntext=Up",
    );
    assert_eq!(peer.reply().status(), 303);
    assert!(peer.get("/rooms/hop/said?word=cone").text().contains("\"data\":\"Up\""));
    // The counting thread receives the message with a delay.
    let begun = Instant::now();
    while !peer.get("/").text().contains("so far: 1") {
        assert!(begun.elapsed() < PATIENCE, "the message is not counted");
    }
}

#[test]
fn tokens_example_admits_token_until_revoked() {
    let program = serve("tokens");
    let mut peer = program.connect();
    let ask = |peer: &mut Peer, line: &str, fields: &str| {
        peer.send(format!("{line} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        peer.reply()
    };
    let chat = "GET /channels?c=chat/1&wait=0";
    assert_eq!(ask(&mut peer, chat, "").status(), 401);
    let token = ask(&mut peer, "POST /tokens/ann", "").text().to_owned();
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(ask(&mut peer, chat, &bearer).status(), 204);
    assert_eq!(ask(&mut peer, "DELETE /tokens/ann", "").status(), 200);
    assert_eq!(ask(&mut peer, chat, &bearer).status(), 401);
}

#[test]
fn stream_example_sends_clock_ticks() {
    let reply = serve("stream").connect().get("/clock?times=3&every=1").text().to_owned();
    assert_eq!(reply, "tick 1\ntick 2\ntick 3\n");
}

/// The server completes the fragment to a document, because only a head can link the style sheet.
#[test]
fn style_example_links_sheet_and_uses_its_classes() {
    let program = serve("style");
    let mut peer = program.connect();
    let page = peer.get("/").text().to_owned();
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\" />"));
    let between = |text: &str, start: &str, end: &str| {
        let (_, behind) = text.split_once(start).unwrap();
        behind.split_once(end).unwrap().0.to_owned()
    };
    let card = between(&page, "<section class=\"", "\"");
    let sheet = peer.get(&between(&page, "rel=\"stylesheet\" href=\"", "\"")).text().to_owned();
    assert_eq!(
        sheet,
        format!(
            "body{{max-width:40rem;margin:3rem auto;font:1.1rem/1.6 system-ui,sans-serif}}\
             .{card}{{padding:1rem 1.5em;border:1px solid seagreen;border-radius:8px;\
             & h2{{margin:0;color:seagreen}}&:hover{{background:honeydew}}\
             @media (prefers-color-scheme:dark){{background:#1a211a}}}}.{open}{{border-width:3px}}",
            open = card.replace("card", "is-open"),
        )
    );
    let open = peer.get("/?open=true").text().to_owned();
    assert_eq!(open.matches(&format!("{card} {}", card.replace("card", "is-open"))).count(), 2);
}

#[test]
fn notes_example_keeps_notes_after_a_kill() {
    let folder = Folder::new();
    let start = || {
        let mut command = example("notes");
        command.args(["--listen", "127.0.0.1:0"]).current_dir(folder.path());
        Program::start(&mut command)
    };
    let program = start();
    let mut peer = program.connect();
    let form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 9";
    peer.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{form}\r\n\r\ntext=a%3C"));
    assert_eq!(peer.reply().status(), 303);
    program.kill();
    let reply = start().connect().get("/");
    assert!(reply.text().ends_with("<ul><li>a&lt;</li></ul>"), "{}", reply.text());
    assert!(folder.join("data/journal").is_dir());
}

#[test]
fn session_example_logs_in_and_out() {
    let folder = Folder::new();
    let mut command = example("session");
    command.args(["--listen", "127.0.0.1:0"]).current_dir(folder.path());
    let program = Program::start(&mut command);
    let mut peer = program.connect();
    let mut cookie = String::new();
    let mut ask = |request: &str, form: &str| {
        let kind = "Content-Type: application/x-www-form-urlencoded";
        let length = form.len();
        peer.send(format!(
            "{request} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n{kind}\r\nContent-Length: {length}\r\n\r\n{form}"
        ));
        let reply = peer.reply();
        if let Some((pair, _)) = reply.header("Set-Cookie").and_then(|told| told.split_once(';')) {
            pair.clone_into(&mut cookie);
        }
        reply.text().to_owned()
    };
    let first = ask("GET /", "");
    assert!(first.contains("The theme is light:") && first.contains("Log in"), "{first}");
    ask("POST /theme", "theme=dark");
    ask("POST /login", "user=ann");
    let inside = ask("GET /", "");
    assert!(inside.contains("The theme is dark:"), "{inside}");
    assert!(inside.contains("ann is logged in 1 times."), "{inside}");
    ask("POST /logout", "");
    assert!(ask("GET /", "").contains("The theme is light:"));
}

#[test]
fn socket_example_echoes_messages() {
    let program = serve("socket");
    let mut peer = program.connect();
    assert!(peer.get("/").text().contains("src=\"/socket.js\""));
    assert!(peer.get("/socket.js").text().contains("new WebSocket("));
    peer.send(
        "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    assert_eq!(peer.reply().status(), 101);
    peer.send(b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58");
    assert_eq!(peer.take(7), b"\x81\x05Hello");
}
