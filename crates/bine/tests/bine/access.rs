//! Access to channels through rules, tokens and a function of the program, and how it ends.

use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use bine::channels::{Access, ClientLimits, Credentials, Grant, Pattern, TokenVerifier};
use bine::prelude::*;
use bine_http::websocket::Frame;
use ring::hmac;

use crate::app::{options, program};
use crate::harness::{Folder, KINDS, Peer, Program, Reply};
use crate::metrics::{await_figure, metrics_address};
use crate::websocket::{Socket, upgrade_request};

const SECRET: &str = "thirty-two bytes that nobody else knows";
/// Channels that the function grants to members.
const CLUB: Pattern = Pattern::new("club/*");
/// Origin whose pages have the rights of their visitors.
const GUEST: &str = "https://guest.example";

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_access_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    let client_limits =
        ClientLimits { holds_per_subject: 3, messages_per_subject: 3, ..ClientLimits::default() };
    let access = Access::none()
        .follow(Pattern::new("news/*"))
        .publish(Pattern::new("wall/{name}"))
        .tokens(TokenVerifier::hs256(SECRET))
        .authorize(may)
        .origin(GUEST)
        .client_limits(client_limits);
    App::new()
        .channels(access)
        .state(Count::default())
        .page(create)
        .page(revoke)
        .page(asked)
        .run_with("Usage: access", options.lines())
}

/// Number of calls of the function.
#[derive(Default)]
struct Count(AtomicU32);

async fn may(credentials: Credentials, count: State<Count>) -> Result<Grant, Error> {
    count.0.fetch_add(1, Ordering::Relaxed);
    match credentials.cookie("member") {
        Some("broken") => Err(Error::status(Status::SERVICE_UNAVAILABLE, "the members are asleep")),
        Some("panic") => panic!("on purpose"),
        Some(name) => {
            // Asked elsewhere, and so not answered at once.
            let name = name.to_owned();
            let name = bine::blocking(move || name).await;
            Ok(Grant::to(&name).follow(CLUB).publish(CLUB).manage(CLUB))
        }
        None => Ok(Grant::none()),
    }
}

#[page("/asked")]
async fn asked(count: State<Count>) -> Response {
    Response::text(count.0.load(Ordering::Relaxed).to_string())
}

#[page(POST "/create/{name..}")]
async fn create(channels: Channels, name: Path<Text>) -> Result<Response, Error> {
    channels.create(&name, bine::channels::Settings::default()).await?;
    Ok(Response::text("made"))
}

#[page(POST "/revoke/{subject}")]
async fn revoke(channels: Channels, subject: Path<Text>) -> Result<Response, Error> {
    channels.revoke(&subject).await?;
    Ok(Response::text("revoked"))
}

fn start(options: &[&str]) -> Program {
    let program = Program::start(&mut program("access::serve_access_program", options));
    let mut peer = program.connect();
    for name in ["news/1", "wall/ann", "club/1", "vault"] {
        assert_eq!(ask(&mut peer, "POST", &format!("/create/{name}"), "").status(), 200);
    }
    program
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn base64url(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bit = |bit: usize| bytes.get(bit / 8).map_or(0, |byte| byte >> (7 - bit % 8) & 1);
    let letter = |from: usize| (from..from + 6).fold(0, |value, at| value << 1 | bit(at));
    (0..bytes.len() * 8).step_by(6).map(|from| char::from(LETTERS[letter(from) as usize])).collect()
}

/// Builds a token with these times and rights.
fn token_of(subject: &str, iat: u64, exp: u64, channels: &str) -> String {
    let claims =
        format!("{{\"sub\":\"{subject}\",\"iat\":{iat},\"exp\":{exp},\"channels\":{channels}}}");
    let text = format!("{}.{}", base64url(b"{\"alg\":\"HS256\"}"), base64url(claims.as_bytes()));
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = hmac::sign(&key, text.as_bytes());
    format!("{text}.{}", base64url(signature.as_ref()))
}

fn token(subject: &str) -> String {
    let channels = r#"{"follow":["vault"],"publish":["vault"],"manage":["vault/*"]}"#;
    token_of(subject, now(), now() + 600, channels)
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

fn ask(peer: &mut Peer, method: &str, target: &str, fields: &str) -> Reply {
    let body = if method == "POST" { r#"{"channels":"vault","data":"1"}"# } else { "" };
    peer.request(method, target, fields, body)
}

#[track_caller]
fn check(program: &Program, request: (&str, &str, &str, &str), status: u16, challenge: &str) {
    let (method, target, fields, body) = request;
    let mut peer = program.connect();
    let reply = peer.request(method, target, fields, body);
    let told = reply.header("WWW-Authenticate").unwrap_or_default();
    assert_eq!(reply.status(), status, "{request:?}: {reply:?}");
    assert!(
        told.contains(challenge) && challenge.is_empty() == told.is_empty(),
        "{request:?}: {told}"
    );
}

#[test]
fn permits_what_any_source_grants_and_nothing_else() {
    for scheduler in KINDS {
        let program = start(&["--data", "memory", "--scheduler", scheduler]);
        let (ann, member) = (&*bearer(&token("ann")), "Cookie: a=b; member=bob\r\n");
        let (scope, none) = ("error=\"insufficient_scope\"", "Bearer realm=\"channels\"");
        let batch = |channel| format!("{{\"channels\":\"{channel}\",\"data\":\"1\"}}");
        let (vault, wall, club) = (&*batch("vault"), &*batch("wall/ann"), &*batch("club/1"));
        let follow = |channel| format!("/channels?c={channel}&wait=0");
        let (in_news, in_vault, in_club) =
            (&*follow("news/1"), &*follow("vault"), &*follow("club/1"));
        let both = &*format!("{in_news}&c=vault");
        let table = [
            // Granted by rules.
            (("GET", in_news, "", ""), 204, ""),
            (("POST", "/channels", "", wall), 200, ""),
            (("GET", in_vault, "", ""), 401, none),
            (("GET", both, "", ""), 401, none),
            (("GET", "/channels?c=nowhere", "", ""), 401, none),
            (("POST", "/channels", "", vault), 401, none),
            (("GET", "/channels/news/1", "", ""), 200, ""),
            (("HEAD", "/channels/vault", "", ""), 401, none),
            (("POST", "/channels/news/1", "", "1"), 401, none),
            (("PUT", "/channels/news/2", "", ""), 401, none),
            (("DELETE", "/channels/news/1", "", ""), 401, none),
            // Granted by a token.
            (("GET", in_vault, ann, ""), 204, ""),
            (("GET", both, ann, ""), 204, ""),
            (("POST", "/channels", ann, vault), 200, ""),
            (("POST", "/channels", ann, club), 403, scope),
            (("GET", in_club, ann, ""), 403, scope),
            (("PUT", "/channels/vault/2", ann, ""), 201, ""),
            (("PUT", "/channels/vault", ann, ""), 403, scope),
            (("DELETE", "/channels/vault", ann, ""), 403, scope),
            (("POST", "/channels/vault/2", "Stream-Closed: true\r\n", ""), 401, none),
            // A fork reads its source.
            (
                (
                    "PUT",
                    "/channels/vault/3",
                    &format!("{ann}Stream-Forked-From: /channels/vault\r\n"),
                    "",
                ),
                201,
                "",
            ),
            (
                (
                    "PUT",
                    "/channels/vault/4",
                    &format!("{ann}Stream-Forked-From: /channels/club/1\r\n"),
                    "",
                ),
                403,
                scope,
            ),
            // Granted by the function.
            (("GET", in_club, member, ""), 204, ""),
            (("POST", "/channels", member, club), 200, ""),
            (("PUT", "/channels/club/2", member, ""), 201, ""),
            (("GET", in_vault, member, ""), 403, scope),
            // Granted by a token and the function together.
            (("GET", &format!("{in_vault}&c=club/1"), &format!("{ann}{member}"), ""), 204, ""),
            // Invalid tokens.
            (("GET", in_vault, "Authorization: Bearer x\r\n", ""), 401, "error=\"invalid_token\""),
            (("GET", in_vault, "Authorization: Basic eA==\r\n", ""), 401, none),
            (("GET", in_news, "Authorization: Bearer x\r\n", ""), 204, ""),
            (("GET", in_vault, "Cookie: member=broken\r\n", ""), 503, ""),
        ];
        for (request, status, challenge) in table {
            check(&program, request, status, challenge);
        }
    }
}

#[test]
fn accepts_token_in_field_cookie_or_query_and_keeps_it_out_of_logs() {
    let folder = Folder::new();
    let log = folder.join("access.log");
    let program = start(&["--data", "memory", "--access-log", log.to_str().unwrap()]);
    let (token, mut peer) = (token("ann"), program.connect());
    let target = "/channels?c=vault&wait=0";
    for (target, fields) in [
        (target, &*bearer(&token)),
        (target, &format!("Cookie: a=b; channels_token={token}\r\n")),
        (&format!("{target}&access_token={token}"), ""),
    ] {
        assert_eq!(ask(&mut peer, "GET", target, fields).status(), 204, "{target} {fields}");
    }
    let mut socket = Socket::open(&program, &format!("/channels?c=vault&access_token={token}"));
    socket.receive_text();
    drop(socket);
    assert_eq!(program.stop().code, Some(0));
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("&access_token=...") && !log.contains(&token), "{log}");
}

#[test]
fn calls_access_function_once_per_credentials() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    let count = |peer: &mut Peer| peer.get("/asked").text().to_owned();
    for _ in 0..5 {
        let target = "/channels?c=club/1&wait=0";
        assert_eq!(ask(&mut peer, "GET", target, "Cookie: member=bob\r\n").status(), 204);
        assert_eq!(ask(&mut peer, "GET", target, "").status(), 401);
        // The function is not called for what rules or a token grant.
        let rules = "/channels?c=news/1&wait=0";
        assert_eq!(ask(&mut peer, "GET", rules, "Cookie: member=eve\r\n").status(), 204);
    }
    assert_eq!(count(&mut peer), "2");
    assert_eq!(ask(&mut peer, "POST", "/revoke/bob", "").status(), 200);
    let target = "/channels?c=club/1&wait=0";
    assert_eq!(ask(&mut peer, "GET", target, "Cookie: member=bob\r\n").status(), 204);
    assert_eq!(count(&mut peer), "3", "grants from before a revocation are not reused");
    let reply = ask(&mut peer, "GET", target, "Cookie: member=panic\r\n");
    assert_eq!(reply.status(), 500);
}

#[test]
fn refuses_long_body_early_if_function_refuses_at_once() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    peer.send("POST /channels/vault HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    assert_eq!(peer.reply().status(), 401);
    let (mut peer, long) = (program.connect(), "x".repeat(1_000_000));
    // A subject that the function recognizes later is not refused.
    let fields = "Cookie: member=bob\r\nContent-Type: text/plain\r\n";
    let made = peer.request("PUT", "/channels/club/long", fields, &long);
    assert_eq!(made.status(), 201, "{made:?}");
}

/// Starts the program with metrics and returns their address.
fn start_watched(options: &[&str]) -> (Program, SocketAddr) {
    let mut program = start(&[options, &["--metrics", "127.0.0.1:0"]].concat());
    let figures = metrics_address(&mut program);
    (program, figures)
}

/// Opens a long poll, an event stream and a WebSocket with tokens. `None` if a token expired before
/// all were open.
fn waiting(program: &Program, one: &str, two: &str) -> Option<(Peer, Peer, Socket)> {
    let (mut poll, mut events) = (program.connect(), program.connect());
    let target = "/channels?c=vault&wait=55";
    events.send(format!(
        "GET {target} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n{}\r\n",
        bearer(one)
    ));
    if events.reply_to_head().status() != 200 {
        return None;
    }
    let mut socket = program.connect();
    socket.send(upgrade_request(&format!("{target}&access_token={two}"), ""));
    if socket.reply().status() != 101 {
        return None;
    }
    poll.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n{}\r\n", bearer(two)));
    Some((poll, events, Socket::upgraded(socket)))
}

#[test]
fn revocation_ends_waiting_requests_and_survives_restart() {
    for scheduler in KINDS {
        let folder = Folder::new();
        let data = folder.join("data");
        let options =
            ["--data", data.to_str().unwrap(), "--scheduler", scheduler, "--workers", "8"];
        let (program, figures) = start_watched(&options);
        let (one, two) = (token("ann"), token("ann"));
        let other = token("bob");
        let (mut poll, mut events, mut socket) = waiting(&program, &one, &two).unwrap();
        await_figure(figures, "bine_channels_holds", 3);
        events.await_text("id: ");
        socket.receive_text();
        let mut admin = program.connect();
        let vault = "/channels?c=vault&wait=0";
        assert_eq!(ask(&mut admin, "POST", "/revoke/ann", "").status(), 200);
        let reply = poll.reply();
        assert_eq!(reply.status(), 401, "{scheduler}");
        assert!(reply.header("WWW-Authenticate").unwrap().contains("it was revoked"), "{reply:?}");
        events.await_text("0\r\n\r\n");
        events.expect_closed();
        socket.expect_close(4401);
        let refused = |program: &Program| {
            let mut peer = program.connect();
            let reply = ask(&mut peer, "GET", vault, &bearer(&one));
            assert_eq!(reply.status(), 401, "{scheduler}");
            assert!(reply.text().contains("it was revoked"), "{}", reply.text());
            assert_eq!(ask(&mut peer, "GET", vault, &bearer(&other)).status(), 204);
            // A token issued later is valid.
            let channels = r#"{"follow":["vault"]}"#;
            let later = token_of("ann", now() + 2, now() + 600, channels);
            assert_eq!(ask(&mut peer, "GET", vault, &bearer(&later)).status(), 204);
        };
        refused(&program);
        program.kill();
        let program = start(&options);
        refused(&program);
        program.stop();
        // The stop may or may not have written a snapshot; the revocation survives either way.
        refused(&start(&options));
    }
}

/// Symptom: after a revocation of the name that the function knew, requests that also carried a
/// token went on waiting. Cause: only one of the two names was recorded. Fix: revoking either name
/// ends what both granted together.
#[test]
fn revoking_either_name_ends_combined_grant() {
    for (name, status) in [("ann", 401), ("bob", 204)] {
        let program = start(&["--data", "memory"]);
        let fields = format!("{}Cookie: member=bob\r\n", bearer(&token("ann")));
        let target = "/channels?c=vault&c=club/1";
        let (mut stream, mut admin) = (program.connect(), program.connect());
        stream.send(format!(
            "GET {target} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n{fields}\r\n"
        ));
        stream.await_text("id: ");
        assert_eq!(ask(&mut admin, "POST", &format!("/revoke/{name}"), "").status(), 200);
        stream.await_text("0\r\n\r\n");
        stream.expect_closed();
        // The function still admits its user; an older token is refused.
        let again = ask(&mut admin, "GET", &format!("{target}&wait=0"), &fields);
        assert_eq!(again.status(), status, "{name}");
    }
}

#[test]
fn lets_other_origin_read_why_its_poll_ended() {
    let (program, figures) = start_watched(&["--data", "memory"]);
    let (mut poll, mut admin) = (program.connect(), program.connect());
    let fields = format!("{}Origin: {GUEST}\r\n", bearer(&token("ann")));
    poll.send(format!("GET /channels?c=vault&wait=55 HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    await_figure(figures, "bine_channels_holds", 1);
    assert_eq!(ask(&mut admin, "POST", "/revoke/ann", "").status(), 200);
    let reply = poll.reply();
    assert_eq!(reply.status(), 401);
    assert_eq!(reply.header("Access-Control-Allow-Origin"), Some(GUEST));
    assert!(reply.header("Access-Control-Expose-Headers").unwrap().contains("WWW-Authenticate"));
}

#[test]
fn applies_configured_issuer_to_tokens_of_the_program() {
    let program = start(&["--data", "memory", "--channels-issuer", "them"]);
    let mut peer = program.connect();
    let reply = ask(&mut peer, "GET", "/channels?c=vault&wait=0", &bearer(&token("ann")));
    assert_eq!(reply.status(), 401);
    assert!(reply.text().contains("its `iss` is not them"), "{}", reply.text());
}

#[test]
fn charges_channel_created_with_messages_for_those_messages() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    let fields = |subject| {
        let given = r#"{"manage":["*"]}"#;
        let token = token_of(subject, now(), now() + 600, given);
        format!("{}Content-Type: application/json\r\n", bearer(&token))
    };
    // At three messages a second the debt outlasts the pause before a busy machine's next request.
    let many = format!("[{}1]", "1,".repeat(99));
    for (subject, method, target) in [("ann", "PUT", "/channels/a"), ("bob", "POST", "/channels/")]
    {
        let made = peer.request(method, target, &fields(subject), &many);
        assert_eq!(made.status(), 201, "{made:?}");
        // A publication without messages counts too.
        let reply = peer.request(method, target, &fields(subject), "[]");
        assert_eq!(reply.status(), 429, "{reply:?}");
        assert!(reply.text().contains("ClientLimits::messages_per_subject"), "{}", reply.text());
    }
}

#[test]
fn counts_hold_of_many_channels_several_times() {
    let program = start(&["--data", "memory"]);
    let (mut many, mut peer) = (program.connect(), program.connect());
    let names: Vec<_> = (0..128).map(|number| format!("many/{number}")).collect();
    for name in &names {
        assert_eq!(ask(&mut peer, "POST", &format!("/create/{name}"), "").status(), 200);
    }
    let token = token_of("ann", now(), now() + 600, r#"{"follow":["many/*"]}"#);
    let bearer = bearer(&token);
    let all = names.join("&c=");
    many.send(format!(
        "GET /channels?c={all} HTTP/1.1\r\nHost: a\r\nAccept: application/x-ndjson\r\n{bearer}\r\n"
    ));
    many.await_text("cursor");
    let reply = ask(&mut peer, "GET", "/channels?c=many/1&wait=0", &bearer);
    assert_eq!(reply.status(), 429, "{reply:?}");
    assert!(reply.text().contains("ClientLimits::holds_per_subject"), "{}", reply.text());
    drop(many);
    while ask(&mut peer, "GET", "/channels?c=many/1&wait=0", &bearer).status() == 429 {}
    let mut socket = Socket::open(&program, &format!("/channels?c=many/1&access_token={token}"));
    socket.receive_text();
    for (names, status) in [(names.join("\",\""), 429), (names[1].clone(), 204)] {
        socket.send(Frame::Text(&format!("{{\"follow\":[\"{names}\"]}}")));
        assert!(socket.receive_text().contains("cursor"));
        let reply = ask(&mut peer, "GET", "/channels?c=many/1&wait=0", &bearer);
        assert_eq!(reply.status(), status, "{reply:?}");
    }
}

#[test]
fn ends_waiting_requests_when_their_token_expires() {
    let check = |scheduler: &str| {
        let program = start(&["--data", "memory", "--scheduler", scheduler, "--workers", "8"]);
        // On a busy machine the token may expire before all requests wait: try a longer one.
        let mut lives = [3, 6, 12].into_iter().filter_map(|seconds| {
            let brief = token_of("ann", now(), now() + seconds, r#"{"follow":["vault"]}"#);
            waiting(&program, &brief, &brief)
        });
        let (mut poll, mut events, socket) =
            lives.next().expect("the machine is too slow for twelve seconds");
        let reply = poll.reply();
        assert_eq!(reply.status(), 401, "{scheduler}: {reply:?}");
        assert!(reply.header("WWW-Authenticate").unwrap().contains("it has ended"), "{reply:?}");
        events.await_text("0\r\n\r\n");
        events.expect_closed();
        socket.await_close(4401);
    };
    // Run all at once, because each takes seconds.
    thread::scope(|scope| {
        for scheduler in KINDS {
            scope.spawn(move || check(scheduler));
        }
    });
}

#[test]
fn names_exceeded_cap_and_retry_time() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    let (one, two) = (token("ann"), token("bob"));
    let mut waiters: Vec<Peer> = (0..3)
        .map(|_| {
            let mut waiter = program.connect();
            waiter.send(format!(
                "GET /channels?c=vault HTTP/1.1\r\nHost: a\r\nAccept: application/x-ndjson\r\n{}\r\n",
                bearer(&one)
            ));
            waiter.await_text("cursor");
            waiter
        })
        .collect();
    let reply = ask(&mut peer, "GET", "/channels?c=vault", &bearer(&one));
    assert_eq!((reply.status(), reply.header("Retry-After")), (429, Some("30")), "{reply:?}");
    assert!(reply.text().contains("ClientLimits::holds_per_subject"), "{}", reply.text());
    assert_eq!(ask(&mut peer, "GET", "/channels?c=vault&wait=0", &bearer(&two)).status(), 204);
    // Leaving frees a place.
    let vault = "{\"channels\":\"vault\",\"data\":\"1\"}";
    waiters.clear();
    while ask(&mut peer, "GET", "/channels?c=vault&wait=0", &bearer(&one)).status() == 429 {}
    // Three a second, with batches allowed to overdraw: by more than is paid back before a busy
    // machine's next request.
    let batch = format!("[{}]", [vault; 99].join(","));
    assert_eq!(peer.request("POST", "/channels", &bearer(&two), &batch).status(), 200);
    let reply = peer.request("POST", "/channels", &bearer(&two), vault);
    assert_eq!(reply.status(), 429, "{reply:?}");
    assert!(reply.header("Retry-After").is_some_and(|after| after.parse::<u64>().unwrap() <= 33));
    assert!(reply.text().contains("ClientLimits::messages_per_subject"), "{}", reply.text());
}

#[test]
fn limits_websocket_to_its_grant() {
    let program = start(&["--data", "memory"]);
    let mut socket =
        Socket::open(&program, &format!("/channels?c=vault&access_token={}", token("ann")));
    socket.receive_text();
    let mut say = |text: &str| {
        socket.send(Frame::Text(text));
        socket.receive_text()
    };
    let told = say(r#"{"follow":["club/1"]}"#);
    assert!(told.contains("refused") && told.contains("is not granted to"), "{told}");
    assert!(say(r#"{"follow":["news/1"]}"#).contains("cursor"));
    assert!(say(r#"{"publish":{"channels":"club/1","data":"1"}}"#).contains("refused"));
    assert!(say(r#"{"publish":{"channels":"vault","data":"1"}}"#).contains("published"));
    assert!(say(r#"{"publish":{"channels":"wall/ann","data":"1"}}"#).contains("published"));
}
