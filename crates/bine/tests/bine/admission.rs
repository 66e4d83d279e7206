//! Admission control while all workers are busy. No worker becomes free until a test opens the
//! door.

use std::sync::{Condvar, Mutex, PoisonError};

use bine::prelude::*;

use crate::app::{options, program};
use crate::harness::{Folder, Peer, Program, Reply};

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_admission_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .page(page)
        .page(plain_page)
        .page(named)
        .page(log_in)
        .page(waiting)
        .page(begun)
        .page(open)
        .asset("/asset", "text/plain", b"an asset")
        .run_with("Usage: full", options.lines())
}

/// Number of handlers that have reached the door, and whether it is open.
static DOOR: Mutex<(usize, bool)> = Mutex::new((0, false));
static OPENED: Condvar = Condvar::new();

#[page("/page")]
async fn page() -> impl Page {
    html!(<p>A page</p>)
}

#[page("/plain")]
fn plain_page() -> impl Page {
    html!(<p>A page</p>)
}

#[page("/name")]
async fn named(session: Session) -> impl Page {
    html!(<p>{session.name()}</p>)
}

#[page(POST "/login")]
async fn log_in(session: Session) -> Result<Response, Error> {
    session.log_in("ann").await?;
    Ok(Response::text("ann"))
}

/// Occupies its worker until the door opens.
#[page("/waiting")]
fn waiting() -> Response {
    let mut door = DOOR.lock().unwrap_or_else(PoisonError::into_inner);
    door.0 += 1;
    drop(OPENED.wait_while(door, |(_, is_open)| !*is_open));
    Response::text("it is open")
}

#[page("/begun")]
async fn begun() -> Response {
    Response::text(DOOR.lock().unwrap_or_else(PoisonError::into_inner).0.to_string())
}

#[page("/open")]
async fn open() -> Response {
    DOOR.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
    OPENED.notify_all();
    Response::text("open")
}

/// A program with one worker and room for one session.
struct Full {
    program: Program,
    /// Connections that wait for the worker, and the one that occupies it.
    _waiting: Vec<Peer>,
}

impl Full {
    /// Starts the program. `before` opens connections before the server counts sessions; then the
    /// worker is occupied and requests queue.
    fn start<B>(options: &[&str], before: impl FnOnce(&Program) -> B) -> (Self, B) {
        let own = ["--loops", "1", "--workers", "1", "--admission", "on"];
        let places = ["--admission-least", "1", "--admission-most", "1", "--queue-timeout", "60s"];
        let options = [&own, &places, options].concat();
        let test = "admission::serve_admission_program";
        let program = Program::start(&mut program(test, &options));
        let before = before(&program);
        let mut waiting = vec![ask(&program, "/waiting")];
        let mut looking = program.connect();
        assert!((0..1_000_000).any(|_| looking.get("/begun").text() == "1"));
        // Eight requests in a row without a free worker put the server under load.
        waiting.extend((0..8).map(|_| ask(&program, "/waiting")));
        (Self { program, _waiting: waiting }, before)
    }

    /// Takes the only place with a new connection. Returns its ticket.
    fn take_place(&self) -> String {
        let mut peer = self.program.connect();
        // The loop may not have counted all queued requests yet.
        let given = (0..1_000_000).find_map(|_| ticket(&peer.get("/page")));
        given.expect("no ticket while all workers are busy")
    }

    fn with_ticket(&self, ticket: &str) -> Reply {
        self.program.connect().request("GET", "/page", &format!("Cookie: a=b; {ticket}\r\n"), "")
    }
}

fn ask(program: &Program, path: &str) -> Peer {
    let mut peer = program.connect();
    peer.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    peer
}

/// Returns the ticket of a reply in the form of a Cookie pair.
fn ticket(reply: &Reply) -> Option<String> {
    let mut cookies = reply.head.lines().filter_map(|line| line.strip_prefix("Set-Cookie: "));
    let cookie = cookies.find(|cookie| cookie.starts_with("ticket="))?;
    let (ticket, rest) = cookie.split_once("; ").unwrap();
    assert_eq!(rest, "Path=/; Max-Age=7200; HttpOnly; SameSite=Lax");
    Some(ticket.to_owned())
}

#[track_caller]
fn expect_refusal(reply: &Reply, kind: &str) {
    assert_eq!(reply.status(), 503, "{reply:?}");
    let again: u32 = reply.header("Retry-After").unwrap().parse().unwrap();
    assert!((5..=20).contains(&again), "{reply:?}");
    assert_eq!(reply.header("Cache-Control"), Some("no-store"), "{reply:?}");
    assert_eq!(reply.header("Content-Type"), Some(kind), "{reply:?}");
    assert_eq!((reply.header("Connection"), reply.header("Set-Cookie")), (None, None), "{reply:?}");
}

const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

#[test]
fn refuses_new_visitors_and_serves_existing_ones_while_workers_are_busy() {
    let (full, (mut one, mut other)) = Full::start(&["--data", "memory"], |program| {
        let mut begun = [program.connect(), program.connect()].map(|mut peer| {
            let reply = peer.get("/page");
            assert_eq!(ticket(&reply), None, "no tickets without load");
            peer
        });
        let [one, other] = &mut begun;
        assert_eq!((one.get("/page").status(), other.get("/page").status()), (200, 200));
        begun.into()
    });
    let own = full.take_place();

    let mut stranger = full.program.connect();
    expect_refusal(&stranger.get("/page"), TEXT);
    assert_eq!(stranger.get("/asset").text(), "an asset", "assets are not subject to admission");
    expect_refusal(&stranger.request("GET", "/plain", "Accept: text/html,*/*\r\n", ""), HTML);
    stranger.send("POST /login HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na=b");
    expect_refusal(&stranger.reply(), TEXT);

    let reply = full.with_ticket(&own);
    assert_eq!((reply.status(), ticket(&reply)), (200, None));
    let mut forged = own.clone();
    let last = forged.pop().unwrap();
    forged.push(if last == 'A' { 'B' } else { 'A' });
    expect_refusal(&full.with_ticket(&forged), TEXT);
    expect_refusal(&full.with_ticket("ticket=1"), TEXT);
    assert_eq!(full.with_ticket(&format!("{forged}; {own}")).status(), 200);

    // A visitor who was here before gets a ticket even if the body arrives late.
    other.send("POST /login HTTP/1.1\r\nHost: a\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 3\r\n\r\n");
    other.send("a=b");
    assert!(ticket(&other.reply()).is_some());

    // Existing connections are admitted although they were never counted.
    let given = ticket(&one.get("/page")).unwrap();
    assert_eq!(full.with_ticket(&given).status(), 200);
    let again =
        ticket(&one.get("/page")).expect("no second ticket, although the first may have been lost");
    assert_eq!(full.with_ticket(&again).status(), 200);
    assert_eq!(
        full.program.connect().request("GET", "/open", &format!("Cookie: {own}\r\n"), "").text(),
        "open"
    );
    assert!(ticket(&other.get("/plain")).is_some(), "workers must issue tickets too");
}

#[test]
fn ticket_survives_restart_and_binds_to_account_after_login() {
    let folder = Folder::new();
    let data = ["--data", folder.path().to_str().unwrap()];
    let (full, ()) = Full::start(&data, |_| ());
    let first = full.take_place();
    full.program.kill();

    let (full, ()) = Full::start(&data, |_| ());
    let other = full.take_place();
    expect_refusal(&full.program.connect().get("/page"), TEXT);
    assert_eq!(full.with_ticket(&first).status(), 200);

    let mut visitor = full.program.connect();
    visitor.send(format!(
        "POST /login HTTP/1.1\r\nHost: a\r\nSec-Fetch-Site: same-origin\r\nCookie: {other}\r\n\r\n"
    ));
    let reply = visitor.reply();
    let mut cookies =
        reply.head.lines().filter_map(|line| line.strip_prefix("Set-Cookie: session="));
    let session = cookies.next_back().unwrap().split_once(';').unwrap().0.to_owned();
    let login = format!("session={session}");
    let reply = visitor.request("GET", "/page", &format!("Cookie: {login}; {other}\r\n"), "");
    let account = ticket(&reply).expect("no ticket for the account");
    assert_eq!(full.with_ticket(&format!("{login}; {account}")).status(), 200);
    assert_eq!(full.with_ticket(&login).status(), 200, "sessions of one account share a place");
    expect_refusal(&full.with_ticket(&account), TEXT);
}

/// Regression: a local proxy sends many visitors' requests over few connections, and all visitors
/// were admitted once one of them had a session.
#[test]
fn treats_unix_socket_connection_as_many_visitors() {
    let folder = Folder::new();
    let path = folder.join("socket");
    let listen = format!("unix:{}", path.display());
    let options = ["--data", "memory", "--listen", &listen];
    let (_full, mut proxy) = Full::start(&options, |_| {
        let mut proxy = Peer::unix(&path);
        assert_eq!(proxy.get("/page").status(), 200);
        proxy
    });
    let mut last = None;
    // All are admitted until the server counts sessions, then as many as there are places.
    let refused = (0..100_000).find_map(|_| {
        let reply = proxy.get("/page");
        last = ticket(&reply).or(last.take());
        (reply.status() != 200).then_some(reply)
    });
    expect_refusal(&refused.expect("no request was rejected"), TEXT);
    if let Some(last) = last {
        proxy.send(format!("GET /page HTTP/1.1\r\nHost: a\r\nCookie: {last}\r\n\r\n"));
        assert_eq!(proxy.reply().status(), 200);
    }
}

#[test]
fn exports_metrics_of_admission_and_workers() {
    let options = ["--data", "memory", "--metrics", "127.0.0.1:0"];
    let (mut full, ()) = Full::start(&options, |_| ());
    let told = full.program.await_line("metrics at http://");
    let address = told.split_once('/').unwrap().0.parse().unwrap();
    let own = full.take_place();
    expect_refusal(&full.program.connect().get("/page"), TEXT);
    expect_refusal(&full.with_ticket("ticket=1"), TEXT);
    assert_eq!(full.with_ticket(&own).status(), 200);

    let reply = Peer::tcp(address).get("/metrics");
    let page = reply.text();
    let value = |series: &str| -> f64 {
        let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {series} in {page}")).parse().unwrap()
    };
    for (series, least, most) in [
        ("bine_admission_on", 1.0, 1.0),
        ("bine_admission_state{state=\"asleep\"}", 0.0, 0.0),
        ("bine_admission_state{state=\"watching\"}", 0.0, 1.0),
        ("bine_admission_state{state=\"limiting\"}", 0.0, 1.0),
        ("bine_admission_factor", 0.5, 1.3),
        ("bine_admission_utilization", 0.0, 1.0),
        ("bine_admission_sessions_active", 1.0, 20.0),
        ("bine_admission_sessions_known", 1.0, 20.0),
        ("bine_admission_think_seconds", 0.001, 60.0),
        ("bine_admission_running", 1.0, 1.0),
        ("bine_admission_admitted_total", 1.0, 20.0),
        ("bine_admission_served_total", 2.0, f64::MAX),
        ("bine_admission_refused_total{shown=\"nothing\"}", 1.0, f64::MAX),
        ("bine_admission_refused_total{shown=\"foreign\"}", 1.0, 1.0),
        ("bine_admission_refused_total{shown=\"old\"}", 0.0, 0.0),
        ("bine_admission_sessions_ended_total{requests=\"1\"}", 0.0, 20.0),
        ("bine_admission_sessions_ended_total{requests=\"+Inf\"}", 0.0, 20.0),
        ("bine_service_running{service=\"bine::admission::waiting\"}", 1.0, 1.0),
        ("bine_service_limit{service=\"bine::admission::waiting\"}", 1.0, 1.0),
        ("bine_service_waiting{service=\"bine::admission::waiting\"}", 1.0, 8.0),
        ("bine_service_runs_total{service=\"bine::admission::waiting\"}", 1.0, 1.0),
        ("bine_service_refused_total{service=\"bine::admission::waiting\"}", 0.0, 0.0),
        ("bine_service_run_seconds{service=\"bine::admission::waiting\"}", 0.0, 0.0),
        ("bine_queue_wait_seconds_count", 1.0, 1.0),
        ("bine_queue_wait_seconds_bucket{le=\"+Inf\"}", 1.0, 1.0),
        ("bine_queue_wait_seconds_sum", 0.0, 60.0),
        ("bine_scheduler_load{scheduler=\"hybrid\"}", 1.0, 1.0),
        ("bine_guard_pressure{of=\"workers\"}", 0.0, 0.0),
    ] {
        let value = value(series);
        assert!((least..=most).contains(&value), "{series} is {value}");
    }
    // These values may be unknown after few measurements.
    let limit = value("bine_admission_session_limit");
    assert!(limit.is_nan() || limit.to_bits() == 1f64.to_bits(), "{limit}");
    for series in ["bine_admission_capacity_requests", "bine_admission_session_requests"] {
        let value = value(series);
        assert!(value.is_nan() || value >= 0.0, "{series} is {value}");
    }
}

#[test]
fn counts_no_sessions_when_disabled() {
    let (full, ()) = Full::start(&["--data", "memory", "--admission", "off"], |_| ());
    for _ in 0..20 {
        let reply = full.program.connect().get("/page");
        assert_eq!((reply.status(), ticket(&reply)), (200, None));
    }
}
