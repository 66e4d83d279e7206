//! Channels for logged-in users, and the end of their waiting requests with the session.

use std::net::SocketAddr;
use std::sync::LazyLock;

use bine::channels::{Access, Credentials, Grant, Pattern, Settings};
use bine::prelude::*;
use bine::{Filter, FilterDecision, FilterRequest, Signal};

use crate::app::{options, program};
use crate::harness::{KINDS, Peer, Program, Reply};
use crate::websocket::{Socket, upgrade_request};

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_login_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .channels(
            Access::none()
                .users_follow(Pattern::new("users/*"))
                .users_follow("own/{user}")
                .users_publish(Pattern::new("users/{wall}"))
                .authorize(may),
        )
        .page(log_in)
        .page(log_out)
        .page(revoke_others)
        .page(create)
        .page(publish)
        .filter(Own)
        .page(held)
        .page(held_by_request)
        .page(held_behind_filter)
        .page(open)
        .event_for_users("secret")
        .api_tokens()
        .run_with("Usage: logins", options.lines())
}

async fn may(credentials: Credentials) -> Grant {
    match credentials.user() {
        Some(user) => Grant::to(user).follow(format!("inbox/{user}")),
        None => Grant::none(),
    }
}

#[page(POST "/login/{user}")]
async fn log_in(session: Session, user: Path<Text>) -> Result<Response, Error> {
    session.log_in(user).await?;
    Ok(Response::text("in"))
}

#[page(POST "/logout")]
async fn log_out(session: Session) -> Result<Response, Error> {
    session.log_out().await?;
    Ok(Response::text("out"))
}

#[page(POST "/revoke-others")]
fn revoke_others(session: Session) -> Result<Response, Error> {
    Ok(Response::text(session.revoke_others().wait()?.to_string()))
}

#[page(POST "/create/{name..}")]
async fn create(channels: Channels, name: Path<Text>) -> Result<Response, Error> {
    channels.create(&name, Settings::default()).await?;
    Ok(Response::text("made"))
}

#[page(POST "/publish/{name..}")]
async fn publish(channels: Channels, name: Path<Text>) -> Result<Response, Error> {
    channels.publish(&name, "news").await?;
    Ok(Response::text("said"))
}

#[page("/held")]
async fn held(user: User, channels: Channels) -> Response {
    channels.respond([format!("inbox/{user}")]).into()
}

#[page("/held/request")]
async fn held_by_request(request: Request, channels: Channels) -> Response {
    match request.user() {
        Some(user) => channels.respond([format!("inbox/{user}")]).into(),
        None => Response::error(Status::UNAUTHORIZED, "nobody's"),
    }
}

#[page("/held/of/{user}")]
async fn held_behind_filter(user: Path<Text>, channels: Channels) -> Response {
    channels.respond([format!("inbox/{}", *user)]).into()
}

/// Rewrites one path to a page of the request's user.
struct Own;

impl Filter for Own {
    fn filter(&self, request: &FilterRequest<'_>) -> FilterDecision {
        if request.path() != "/held/filter" {
            return FilterDecision::Continue;
        }
        let query = request.query().unwrap_or_default();
        match request.user() {
            Some(user) => FilterDecision::Rewrite(format!("/held/of/{user}?{query}")),
            None => FilterDecision::Respond(Response::error(Status::UNAUTHORIZED, "nobody's")),
        }
    }
}

static COUNT: LazyLock<Signal<u64>> = LazyLock::new(Signal::default);

/// A page that is equal for all users.
#[page("/open")]
async fn open() -> impl Page {
    html!(<Live><p>{COUNT.get()}</p></Live>)
}

pub(crate) fn start(scheduler: &str) -> Program {
    let options = ["--data", "memory", "--scheduler", scheduler, "--workers", "48"];
    let program = Program::start(&mut program("logins::serve_login_program", &options));
    let mut peer = program.connect();
    for name in ["users/wall", "inbox/ann", "inbox/ben", "own/ann", "own/ben"] {
        assert_eq!(ask(&mut peer, &format!("POST /create/{name}"), "", "").status(), 200);
    }
    program
}

pub(crate) fn ask(peer: &mut Peer, request: &str, fields: &str, content: &str) -> Reply {
    let length = content.len();
    let fields = format!("Host: a\r\n{fields}Content-Length: {length}\r\n");
    peer.send(format!("{request} HTTP/1.1\r\n{fields}\r\n{content}"));
    peer.reply()
}

/// Logs in a user. Returns the cookie as a header field.
pub(crate) fn log_in_as(address: SocketAddr, user: &str) -> String {
    let reply = ask(&mut Peer::tcp(address), &format!("POST /login/{user}"), "", "");
    let (pair, _) = reply.header("Set-Cookie").unwrap().split_once(';').unwrap();
    format!("Cookie: {pair}\r\n")
}

/// All ways to wait with one login: polls, streams and sockets, at `/channels` and held by pages
/// that get the user in different ways.
pub(crate) struct Waiting {
    polls: [Peer; 4],
    streams: [Peer; 4],
    sockets: [Socket; 4],
}

impl Waiting {
    pub(crate) fn by(program: &Program, user: &str, cookie: &str) -> Self {
        let targets = [
            format!("/channels?c=inbox/{user}&wait=55"),
            "/held?wait=55".to_owned(),
            "/held/request?wait=55".to_owned(),
            "/held/filter?wait=55".to_owned(),
        ];
        let begin = |target: &String, fields: &str| {
            let mut peer = program.connect();
            peer.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n{cookie}{fields}\r\n"));
            peer
        };
        let mut cursor = String::new();
        let streams = targets.each_ref().map(|target| {
            let mut stream = begin(target, "Accept: text/event-stream\r\n");
            stream.await_text("id: ");
            cursor = stream.await_text("\n");
            stream
        });
        let sockets = targets.each_ref().map(|target| {
            let mut socket = Socket::ask(program, upgrade_request(target, cookie));
            socket.receive_text();
            socket
        });
        // The test cannot observe when a poll waits. A late one receives the messages after the
        // cursor.
        let after = cursor.trim_end();
        let polls = targets.map(|target| begin(&format!("{target}&after={after}"), ""));
        Self { polls, streams, sockets }
    }

    /// Asserts that all requests end without a publication.
    pub(crate) fn expect_end(self) {
        for mut poll in self.polls {
            let reply = poll.reply();
            assert_eq!(reply.status(), 401, "{reply:?}");
        }
        for mut stream in self.streams {
            stream.await_text("0\r\n\r\n");
            stream.expect_closed();
        }
        for socket in self.sockets {
            socket.expect_close(4401);
        }
    }

    /// Asserts that all requests receive the publication.
    pub(crate) fn expect_news(self) {
        for mut poll in self.polls {
            assert!(poll.reply().text().contains("news"));
        }
        for mut stream in self.streams {
            stream.await_text("news");
        }
        for mut socket in self.sockets {
            assert!(socket.receive_text().contains("news"));
        }
    }
}

#[test]
fn grants_users_what_rules_and_function_permit() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        let mut peer = program.connect();
        let cookie = log_in_as(program.address(), "ann");
        let publish = "POST /channels/users/wall";
        let cases = [
            ("GET /channels?c=users/wall&wait=0", 401, 204),
            ("GET /channels?c=inbox/ann&wait=0", 401, 204),
            ("GET /channels?c=inbox/ben&wait=0", 401, 403),
            (publish, 401, 204),
            ("POST /channels/inbox/ann", 401, 403),
        ];
        for (request, of_stranger, of_user) in cases {
            for (fields, status) in [("", of_stranger), (&*cookie, of_user)] {
                let fields = format!("{fields}Content-Type: application/octet-stream\r\n");
                let content = if request.starts_with("POST") { "hello" } else { "" };
                let reply = ask(&mut peer, request, &fields, content);
                assert_eq!(reply.status(), status, "{request} {fields}: {reply:?}");
            }
        }
        // Rights granted to a session end with it, even if a client sends its cookie again.
        assert_eq!(ask(&mut peer, "POST /logout", &cookie, "").text(), "out");
        for (request, status, _) in cases {
            assert_eq!(ask(&mut peer, request, &cookie, "").status(), status, "{request}");
        }
    }
}

/// Regression: a user named `*` or `{x}` received the messages of all inboxes, because the
/// documented grant of `inbox/{user}` parsed the name as a pattern.
#[test]
fn denies_access_to_inbox_of_other_user_for_any_name() {
    let program = start("hybrid");
    let mut peer = program.connect();
    for name in ["%2A", "%7Bx%7D", "be*", "%20ben", "ben%20"] {
        let reply = ask(&mut peer, &format!("POST /login/{name}"), "", "");
        assert_eq!(reply.status(), 422, "{name}: {reply:?}");
    }
    for name in ["ann", "Ann%20Smith", "ann@example.org", "%C3%A9va", "auth0%7C17"] {
        let cookie = log_in_as(program.address(), name);
        for (channel, status) in [("inbox/ben", 403), ("own/ben", 403), ("own/ann", 204)] {
            let status = if channel == "own/ann" && name != "ann" { 403 } else { status };
            let target = format!("GET /channels?c={channel}&wait=0");
            let reply = ask(&mut peer, &target, &cookie, "");
            assert_eq!(reply.status(), status, "{name} {channel}: {reply:?}");
        }
    }
}

#[test]
fn ends_requests_of_a_session_with_it_and_no_others() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        let [one, two] = [(); 2].map(|()| log_in_as(program.address(), "ann"));
        let ben = log_in_as(program.address(), "ben");
        let waiting = |user, cookie: &str| Waiting::by(&program, user, cookie);
        let mut peer = program.connect();
        // First a second session of the user ends it, then the session itself.
        let gone = waiting("ann", &two);
        assert_eq!(ask(&mut peer, "POST /revoke-others", &one, "").text(), "1");
        gone.expect_end();
        let (gone, stays) = (waiting("ann", &one), waiting("ben", &ben));
        assert_eq!(ask(&mut peer, "POST /logout", &one, "").text(), "out");
        gone.expect_end();
        assert_eq!(ask(&mut peer, "POST /publish/inbox/ben", "", "").text(), "said");
        stays.expect_news();
    }
}

/// Symptom: a stream for a page without user data also delivered an event for users, and continued
/// to after the logout. Cause: strangers may see such a page, so its stream was not bound to the
/// login. Fix: the event binds it.
#[test]
fn ends_event_for_users_with_the_session() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        let cookie = log_in_as(program.address(), "ann");
        let follow = |have: &str, cookie: &str| {
            let mut peer = program.connect();
            let target = format!("/_bine/live?page=/open{have}&on=secret");
            let fields = format!("{cookie}Accept: text/event-stream\r\n");
            peer.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
            peer
        };
        assert_eq!(follow("", "").reply().status(), 401);
        let mut first = follow("&have=0.0000000000000000", &cookie);
        first.await_text("event: patch");
        let page = program.connect().get("/open").text().to_owned();
        let (_, hash) = page.split_once("<!--/live 0 ").unwrap();
        // A client with the current hash causes no run.
        let mut second = follow(&format!("&have=0.{}", &hash[..16]), &cookie);
        second.await_text("\r\n\r\n");
        assert_eq!(ask(&mut program.connect(), "POST /logout", &cookie, "").text(), "out");
        for stream in [&mut first, &mut second] {
            stream.await_text("0\r\n\r\n");
            stream.expect_closed();
        }
    }
}
