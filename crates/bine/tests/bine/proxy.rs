//! The reverse proxy in front of origins that are well-behaved, broken, slow or gone.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use bine::channels::Settings;
use bine::prelude::*;
use bine::proxy::Proxy;
use bine_nats_server::ReservedPort;
use rustix::process::Signal;

use crate::app::{options, program};
use crate::harness::{Folder, KINDS, PATIENCE, Peer, Program};

#[page("/own")]
async fn own() -> Response {
    Response::text("own page")
}

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_program_with_proxy() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    let mut app = App::new().page(own).channel("public/news", Settings::default());
    if let Some(origin) = std::env::var_os("PROXY_TEST_ORIGIN") {
        app = app.proxy("/by_program", Proxy::to([origin.to_str().unwrap()]).strip_prefix());
    }
    app.run_with("Usage: proxy", options.lines())
}

pub(crate) fn start(options: &[&str]) -> Program {
    let options = [&["--data", "memory"], options].concat();
    Program::start(&mut program("proxy::serve_program_with_proxy", &options))
}

/// A request as an origin received it.
pub(crate) struct Received {
    /// The head with its empty line.
    head: String,
    socket: TcpStream,
    /// The number of the connection.
    connection: usize,
}

impl Received {
    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // The proxy may have closed the connection, which the test sees at the client.
        let _ = self.socket.write_all(bytes.as_ref());
    }

    pub(crate) fn text(&mut self, content: &str) {
        let length = content.len();
        self.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{content}"));
    }

    /// Reads the content and returns its length and the sum of its bytes.
    fn content(&mut self) -> (u64, u64) {
        let (mut length, mut sum) = (0, 0);
        let mut add = |bytes: &[u8]| {
            length += bytes.len() as u64;
            sum += bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        };
        if let Some(whole) = self.field("Content-Length") {
            let mut left: usize = whole.parse().unwrap();
            let mut space = vec![0; 64 << 10];
            while left > 0 {
                let most = left.min(space.len());
                let count = self.socket.read(&mut space[..most]).unwrap();
                assert!(count > 0, "the content breaks off");
                add(&space[..count]);
                left -= count;
            }
        } else {
            loop {
                let size = usize::from_str_radix(&line(&mut self.socket), 16).unwrap();
                let mut chunk = vec![0; size + 2];
                self.socket.read_exact(&mut chunk).unwrap();
                add(&chunk[..size]);
                if size == 0 {
                    break;
                }
            }
        }
        (length, sum)
    }
}

fn line(socket: &mut TcpStream) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap().trim().to_owned()
}

/// A server whose every response is written by a function. It returns false to close the connection.
pub(crate) struct ScriptedOrigin {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
}

impl ScriptedOrigin {
    pub(crate) fn new(answer: impl Fn(&mut Received) -> bool + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (counted, answer) = (Arc::clone(&connections), Arc::new(answer));
        // The thread ends with the process of the test.
        thread::spawn(move || {
            for socket in listener.incoming() {
                let connection = counted.fetch_add(1, Ordering::SeqCst);
                let (mut socket, answer) = (socket.unwrap(), Arc::clone(&answer));
                socket.set_read_timeout(Some(PATIENCE)).unwrap();
                thread::spawn(move || {
                    while let Some(head) = read_head(&mut socket) {
                        let mut received =
                            Received { head, socket: socket.try_clone().unwrap(), connection };
                        if !answer(&mut received) {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, connections }
    }

    pub(crate) fn rule(&self, more: &str) -> String {
        format!("path=/ to=http://{} {more}", self.address)
    }
}

/// Reads a head; `None`: the connection has ended.
fn read_head(socket: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if socket.read(&mut byte).unwrap_or(0) == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    Some(String::from_utf8(head).unwrap())
}

/// Answers each request with its path, and with what it received as content.
fn echo(received: &mut Received) -> bool {
    if received.head.starts_with("HEAD") {
        received.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
        return true;
    }
    let is_post = received.head.starts_with("POST");
    let (length, sum) = if is_post { received.content() } else { (0, 0) };
    let told = format!("{} {length} {sum}", received.path());
    received.text(&told);
    true
}

#[test]
fn proxies_paths_without_a_route_over_kept_connections() {
    for scheduler in KINDS {
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heads);
        let origin = ScriptedOrigin::new(move |received| {
            seen.lock().unwrap().push(received.head.clone());
            echo(received)
        });
        let options = [
            "--scheduler",
            scheduler,
            "--proxy",
            &origin.rule(""),
            "--channels-follow",
            "public/*",
        ];
        let program = start(&options);
        let mut peer = program.connect();
        for count in 0..5 {
            let path = format!("/page%20{count}?q=1");
            assert_eq!(peer.get(&path).text(), format!("{path} 0 0"), "{scheduler}");
        }
        assert_eq!(peer.get("/own").text(), "own page");
        let poll = "/channels?c=public/news&after=earliest&wait=0";
        assert_eq!(peer.get(poll).status(), 204, "channels are those of the program");
        assert_eq!(origin.connections.load(Ordering::SeqCst), 1, "{scheduler}");
        let heads = heads.lock().unwrap();
        assert_eq!(heads.len(), 5, "{heads:?}");
        assert!(heads[0].contains("\r\nX-Forwarded-For: 127.0.0.1\r\n"), "{}", heads[0]);
        drop(heads);
        peer.send("HEAD /head HTTP/1.1\r\nHost: a\r\n\r\n");
        let head = peer.await_text("\r\n\r\n");
        assert!(head.contains("\r\nContent-Length: 9\r\n"), "{head}");
        assert_eq!(peer.get("/after").text(), "/after 0 0", "{scheduler}");
    }
}

#[test]
fn streams_content_in_both_directions() {
    const LENGTH: usize = 8_000_000;
    for scheduler in KINDS {
        let origin = ScriptedOrigin::new(|received| {
            if received.head.starts_with("POST") {
                return echo(received);
            }
            received.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n"));
            for _ in 0..LENGTH / 8000 {
                received.send([b'x'; 8000]);
            }
            true
        });
        let program = start(&["--scheduler", scheduler, "--proxy", &origin.rule("")]);
        let mut peer = program.connect();
        let body = "y".repeat(LENGTH);
        let sum = LENGTH as u64 * u64::from(b'y');
        let told = peer.request("POST", "/upload", "", &body);
        assert_eq!(told.text(), format!("/upload {LENGTH} {sum}"), "{scheduler}");
        peer.send("POST /chunks HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        for _ in 0..100 {
            peer.send(format!("2710\r\n{}\r\n", "z".repeat(10_000)));
        }
        peer.send("0\r\n\r\n");
        let sum = 1_000_000 * u64::from(b'z');
        assert_eq!(peer.reply().text(), format!("/chunks 1000000 {sum}"), "{scheduler}");
        let reply = peer.get("/download");
        assert_eq!(reply.header("Content-Length"), Some("8000000"));
        assert!(reply.text().len() == LENGTH && reply.text().bytes().all(|byte| byte == b'x'));
        assert_eq!(peer.get("/download").text().len(), LENGTH, "{scheduler}");
    }
}

/// The largest resident memory of a process so far, in KiB.
pub(crate) fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn memory_stays_flat_for_100_mb_in_both_directions() {
    const LENGTH: usize = 100_000_000;
    const PIECE: usize = 100_000;
    let origin = ScriptedOrigin::new(|received| {
        let piece = vec![b'x'; PIECE];
        if received.head.starts_with("POST") {
            let (mut left, mut space) = (LENGTH, piece);
            while left > 0 {
                left -= received.socket.read(&mut space).unwrap();
            }
            received.text("taken");
            return true;
        }
        received.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n"));
        (0..LENGTH / PIECE).for_each(|_| received.send(&piece));
        true
    });
    let program = start(&["--proxy", &origin.rule("")]);
    assert_eq!(program.connect().get("/own").text(), "own page");
    let before = peak_memory(program.id());
    let mut client = TcpStream::connect(program.address()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\n\r\n");
    client.write_all(head.as_bytes()).unwrap();
    let mut piece = vec![b'y'; PIECE];
    (0..LENGTH / PIECE).for_each(|_| client.write_all(&piece).unwrap());
    let head = read_head(&mut client).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    client.read_exact(&mut piece[..5]).unwrap();
    assert_eq!(&piece[..5], b"taken");
    client.write_all(b"GET /down HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let head = read_head(&mut client).unwrap();
    assert!(head.contains("\r\nContent-Length: 100000000\r\n"), "{head}");
    for _ in 0..LENGTH / PIECE {
        client.read_exact(&mut piece).unwrap();
    }
    let grown = peak_memory(program.id()) - before;
    assert!(grown < 8 << 10, "it has grown by {grown} KiB");
}

#[test]
fn repeats_only_idempotent_requests_when_a_kept_connection_is_closed() {
    // The origin closes each connection without an answer to its second request.
    let counts = Arc::new(Mutex::new(std::collections::HashMap::new()));
    let seen = Arc::clone(&counts);
    let origin = ScriptedOrigin::new(move |received| {
        let count = {
            let mut counts = seen.lock().unwrap();
            let count = counts.entry(received.connection).or_insert(0);
            *count += 1;
            *count
        };
        count == 1 && echo(received)
    });
    let program = start(&["--proxy", &origin.rule("")]);
    let mut peer = program.connect();
    assert_eq!(peer.get("/1").text(), "/1 0 0");
    assert_eq!(peer.get("/2").text(), "/2 0 0", "it is repeated on a new connection");
    let posted = peer.request("POST", "/3", "", "abc");
    assert_eq!(posted.status(), 502, "it may have taken effect");
    assert_eq!(peer.get("/4").text(), "/4 0 0");
}

#[test]
fn answers_for_origins_that_are_gone_or_broken() {
    let origin = ScriptedOrigin::new(|received| {
        match received.path() {
            "/garbage" => received.send("220 smtp.example ESMTP\r\n\r\n"),
            "/two-lengths" => {
                received
                    .send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab");
            }
            "/endless-head" => {
                received.send("HTTP/1.1 200 OK\r\n");
                while received.socket.write_all(b"A: b\r\n").is_ok() {}
            }
            "/short" => received.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"),
            "/short-chunks" => {
                received.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
            }
            "/long" => {
                received.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
                return true;
            }
            "/unasked" => received.send("HTTP/1.1 101 Go\r\nUpgrade: x\r\n\r\n"),
            "/silent" => return received.socket.read(&mut [0; 1]).is_ok_and(|count| count > 0),
            "/stops" => {
                received.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc");
                return received.socket.read(&mut [0; 1]).is_ok_and(|count| count > 0);
            }
            _ => return echo(received),
        }
        false
    });
    // Only these two answers are late. A busy machine may delay the others by more than that.
    let limited =
        |path, limit| format!("path={path} to=http://{} {limit} failures=1000", origin.address);
    let silent = limited("/silent", "first-byte-time=200ms");
    let stops = limited("/stops", "silence-time=200ms");
    let usual = origin.rule("failures=1000");
    let rules = ["--proxy", &usual, "--proxy", &silent, "--proxy", &stops];
    for scheduler in KINDS {
        let program = start(&[&["--scheduler", scheduler], &rules[..]].concat());
        let get = |path: &str| program.connect().get(path);
        for path in ["/garbage", "/two-lengths", "/endless-head", "/unasked"] {
            let reply = get(path);
            assert_eq!(reply.status(), 502, "{path}, {scheduler}");
            assert!(reply.header("X-Request-Id").is_some());
        }
        assert_eq!(get("/silent").status(), 504, "{scheduler}");
        for path in ["/short", "/stops", "/short-chunks"] {
            let mut peer = program.connect();
            peer.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let received = String::from_utf8(peer.rest()).unwrap();
            assert!(received.starts_with("HTTP/1.1 200 ") && received.contains("abc"), "{path}");
            assert!(!received.ends_with("0\r\n\r\n"), "the client detects it: {path}");
        }
        let mut peer = program.connect();
        assert_eq!(peer.get("/long").text(), "abc");
        assert_eq!(peer.get("/after").text(), "/after 0 0", "the rest was not an answer");
        let told = program.stop();
        assert!(told.errors.contains(&format!("proxy: http://{}: it ", origin.address)));
    }
    let unused = ReservedPort::new();
    let rule = format!("path=/ to=http://127.0.0.1:{}", unused.number());
    let reply = start(&["--proxy", &rule]).connect().get("/");
    assert_eq!(reply.status(), 502);
}

#[test]
fn tunnels_an_upgraded_connection() {
    let origin = ScriptedOrigin::new(|received| {
        assert_eq!(received.field("Connection"), Some("upgrade"));
        received.send("HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello");
        let mut space = [0; 100];
        while let Ok(count @ 1..) = received.socket.read(&mut space) {
            received.send(space[..count].to_ascii_uppercase());
        }
        received.send("bye");
        false
    });
    for scheduler in KINDS {
        let program = start(&["--scheduler", scheduler, "--proxy", &origin.rule("")]);
        let mut peer = program.connect();
        peer.send(
            "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nearly",
        );
        let head = peer.await_text("\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("\r\nUpgrade: websocket\r\n"));
        let mut received = peer.take(10);
        received.sort_unstable();
        assert_eq!(received, b"AELRYehllo", "{scheduler}");
        peer.send("more");
        assert_eq!(peer.take(4), b"MORE", "{scheduler}");
        peer.end();
        assert_eq!(peer.rest(), b"bye", "{scheduler}");
    }
}

/// An origin that answers each request with this name.
fn named(name: &'static str) -> ScriptedOrigin {
    ScriptedOrigin::new(move |received| {
        received.text(name);
        true
    })
}

/// The names of the origins that answer `count` requests.
fn names(peer: &mut Peer, count: usize) -> String {
    (0..count).map(|_| peer.get("/").text().to_owned()).collect()
}

/// Waits until the names of the origins that answer `count` requests are as expected.
fn await_names(program: &Program, count: usize, is_expected: impl Fn(&str) -> bool) {
    let patience = Instant::now() + PATIENCE;
    loop {
        let names = names(&mut program.connect(), count);
        if is_expected(&names) {
            return;
        }
        assert!(Instant::now() < patience, "the origins are still {names}");
    }
}

#[test]
fn balances_and_leaves_out_an_origin_that_is_gone() {
    let (a, b) = (named("a"), named("b"));
    let unused = ReservedPort::new();
    let rule = format!(
        "path=/ to=http://{},http://{},http://127.0.0.1:{} weights=2,1,1 failures=1",
        a.address,
        b.address,
        unused.number()
    );
    let program = start(&["--proxy", &rule]);
    let told = names(&mut program.connect(), 30);
    assert_eq!(told.len(), 30, "each request was answered: {told}");
    let count = |name| told.matches(name).count();
    assert!((18..=22).contains(&count("a")), "{told}");
    let sticky = format!("path=/ to=http://{},http://{} sticky=cookie", a.address, b.address);
    let program = start(&["--proxy", &sticky]);
    let mut peer = program.connect();
    let first = peer.get("/");
    let cookie = first.header("Set-Cookie").unwrap().split(';').next().unwrap().to_owned();
    for _ in 0..5 {
        let again = peer.request("GET", "/", &format!("Cookie: {cookie}\r\n"), "");
        assert_eq!(again.text(), first.text());
        assert!(again.header("Set-Cookie").is_none());
    }
}

#[test]
fn moves_to_other_origins_by_a_reload_without_cutting_a_response() {
    let gate = Arc::new(std::sync::Barrier::new(2));
    let waits = Arc::clone(&gate);
    let old = ScriptedOrigin::new(move |received| {
        if received.path() != "/slow" {
            received.text("old");
            return true;
        }
        received.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nold ");
        waits.wait();
        received.send("done");
        true
    });
    let new = named("new");
    let folder = Folder::new();
    let write = |origin: &ScriptedOrigin| {
        let text = format!("[[proxy]]\npath = \"/\"\nto = [\"http://{}\"]\n", origin.address);
        folder.write("bine.toml", text.as_bytes())
    };
    let file = write(&old);
    let program = start(&["--config", file.to_str().unwrap()]);
    let mut peer = program.connect();
    peer.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    peer.await_text("old ");
    write(&new);
    program.signal(Signal::HUP);
    await_names(&program, 1, |names| names == "new");
    gate.wait();
    assert_eq!(peer.take(4), b"done");
    assert_eq!(peer.get("/").text(), "new");
}

#[test]
fn takes_an_origin_back_when_its_check_succeeds() {
    let is_well = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = Arc::clone(&is_well);
    let a = named("a");
    let b = ScriptedOrigin::new(move |received| {
        let is_well = seen.load(Ordering::SeqCst);
        if received.path() == "/check" && !is_well {
            received.send("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
        } else {
            received.text("b");
        }
        true
    });
    let rule = format!(
        "path=/ to=http://{},http://{} check=/check check-interval=50ms",
        a.address, b.address
    );
    let program = start(&["--proxy", &rule]);
    await_names(&program, 4, |names| names == "aaaa");
    is_well.store(true, Ordering::SeqCst);
    let is_either = |name| b"ab".contains(&name);
    await_names(&program, 4, |names| names.contains('b') && names.bytes().all(is_either));
}

#[test]
fn proxies_by_a_method_of_the_program() {
    let origin = ScriptedOrigin::new(echo);
    let mut command = program("proxy::serve_program_with_proxy", &["--data", "memory"]);
    command.env("PROXY_TEST_ORIGIN", format!("http://{}", origin.address));
    let program = Program::start(&mut command);
    let mut peer = program.connect();
    assert_eq!(peer.get("/by_program/a/b").text(), "/a/b 0 0");
    assert_eq!(peer.get("/elsewhere").status(), 404);
    assert_eq!(peer.request("TRACE", "/by_program", "", "").status(), 405);
}
