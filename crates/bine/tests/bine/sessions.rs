//! Sessions over sockets: the cookie in each response, and its effect in later requests.

use std::net::SocketAddr;
use std::process::Command;
use std::{fs, thread};

use bine::prelude::*;
use bine::{Body, Filter, FilterDecision, FilterRequest, SessionInfo, Sessions};

use crate::app::{options, program};
use crate::harness::{Folder, KINDS, Peer, Program, Reply};

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_session_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .sessions(Sessions::new().max_sessions(1000))
        .filter(Curtain)
        .page(name)
        .page(name_from_a_worker)
        .page(perhaps)
        .page(nothing)
        .page(frozen)
        .page(file)
        .page(unstored)
        .page(public)
        .page(failing)
        .page(log_in)
        .page(log_in_plainly)
        .page(log_out)
        .page(set)
        .page(value)
        .page(user)
        .page(user_from_a_worker)
        .page(user_or_nobody)
        .page(user_of_the_request)
        .page(user_of_the_request_in_place)
        .page(post_as_user)
        .page(post_as_user_plainly)
        .page(post_by_request)
        .page(post_behind_filter)
        .page(paid)
        .allow_cross_origin_posts("/paid/{id}")
        .page(others)
        .page(revoke_others)
        .run_with("Usage: sessions", options.lines())
}

/// Denies paths below `/admin/` to everybody but Ann.
struct Curtain;

impl Filter for Curtain {
    fn filter(&self, request: &FilterRequest<'_>) -> FilterDecision {
        if request.path().starts_with("/admin/") && request.user() != Some("ann") {
            return FilterDecision::Respond(Response::error(Status::FORBIDDEN, "Ann alone may."));
        }
        FilterDecision::Continue
    }
}

#[page("/name")]
async fn name(session: Session) -> impl Page {
    html!(<p>{session.name()}</p>)
}

#[page("/name/plain")]
fn name_from_a_worker(session: Session) -> impl Page {
    html!(<p>{session.name()}</p>)
}

#[page("/perhaps")]
async fn perhaps(session: Option<Session>) -> Response {
    Response::text(session.map_or("nobody".to_owned(), |session| session.name().to_string()))
}

#[page("/nothing")]
async fn nothing() -> impl Page {
    html!(<p>Nothing</p>)
}

#[page("/frozen")]
async fn frozen(session: Session) -> Frozen {
    drop(session);
    html!(<p>Frozen</p>).freeze()
}

#[page("/file")]
fn file(session: Session) -> Result<Response, Error> {
    drop(session);
    Response::file(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
}

#[page("/unstored")]
async fn unstored(session: Session) -> impl Respond {
    html!(<p>{session.name()}</p>).with_header("Cache-Control", "no-store")
}

#[page("/public")]
async fn public(session: Session) -> impl Respond {
    html!(<p>{session.name()}</p>).with_header("cache-control", "public, max-age=60")
}

#[page("/failing")]
async fn failing(session: Session) -> Result<Response, Error> {
    Err(Error::forbidden(format!("not you, {}", session.name())))
}

#[page(POST "/login/{user}")]
async fn log_in(session: Session, user: Path<Text>) -> Result<Response, Error> {
    session.log_in(user).await?;
    Ok(Response::see_other("/name"))
}

#[page(POST "/login/{user}/plain")]
fn log_in_plainly(session: Session, user: Path<Text>) -> Result<Response, Error> {
    session.log_in(user).wait()?;
    Ok(Response::see_other("/name"))
}

#[page(POST "/logout")]
async fn log_out(session: Session) -> Result<Response, Error> {
    session.log_out().await?;
    Ok(Response::see_other("/name"))
}

#[page(POST "/value/{name}")]
async fn set(session: Session, name: Path<Text>, body: Body) -> Result<Response, Error> {
    session.set(name.as_str(), String::from_utf8_lossy(&body).into_owned()).await?;
    Ok(Response::text("set"))
}

/// Responds `user name=value`.
#[page("/value/{name}")]
async fn value(session: Session, name: Path<Text>) -> Response {
    let value: String = session.get(&name).unwrap_or_default();
    Response::text(format!("{} {}={value}", session.user().unwrap_or_default(), *name))
}

#[page("/user")]
async fn user(user: User) -> impl Page {
    html!(<p title={&user}>{user}</p>)
}

#[page("/user/plain")]
fn user_from_a_worker(user: User) -> impl Page {
    html!(<p title={&user}>{user}</p>)
}

#[page("/user/perhaps")]
async fn user_or_nobody(user: Option<User>) -> Response {
    Response::text(user.map_or("nobody".to_owned(), |user| format!("{user}, {}", user.len())))
}

#[page("/user/request")]
async fn user_of_the_request_in_place(request: Request) -> Response {
    Response::text(request.user().unwrap_or("nobody").to_owned())
}

#[page("/admin/user")]
fn user_of_the_request(request: Request) -> Response {
    Response::text(request.user().unwrap_or("nobody").to_owned())
}

#[page(POST "/user/post")]
async fn post_as_user(user: User, body: Body) -> Response {
    Response::text(format!("{} bytes of {user}", body.len()))
}

#[page(POST "/user/post/plain")]
fn post_as_user_plainly(user: User, body: Body) -> Response {
    Response::text(format!("{} bytes of {user}", body.len()))
}

#[page(POST "/user/post/request")]
async fn post_by_request(request: Request, body: Body) -> Result<Response, Error> {
    let user = request.user().ok_or_else(|| Error::status(Status::UNAUTHORIZED, "nobody"))?;
    Ok(Response::text(format!("{} bytes of {user}", body.len())))
}

#[page(POST "/admin/post")]
async fn post_behind_filter(body: Body) -> Response {
    Response::text(format!("{} bytes of ann", body.len()))
}

#[page(POST "/paid/{id}")]
async fn paid(id: Path<u32>) -> Response {
    Response::text(format!("paid {id}"))
}

#[page("/others")]
async fn others(session: Session) -> Response {
    let all = session.all();
    let own = all.iter().filter(|SessionInfo { is_current, .. }| *is_current).count();
    Response::text(format!("{own} of {}", all.len()))
}

#[page(POST "/revoke-others")]
async fn revoke_others(session: Session) -> Result<Response, Error> {
    Ok(Response::text(session.revoke_others().await?.to_string()))
}

fn start(options: &[&str]) -> Program {
    Program::start(&mut program("sessions::serve_session_program", options))
}

/// A client that stores one cookie, as a browser does.
#[derive(Clone)]
struct Browser {
    address: SocketAddr,
    cookie: Option<String>,
}

impl Browser {
    fn of(program: &Program) -> Self {
        Self { address: program.address(), cookie: None }
    }

    fn ask(&mut self, request: &str, content: &str) -> Reply {
        let cookie = self.cookie.as_ref().map(|pair| format!("Cookie: {pair}\r\n"));
        let cookie = cookie.unwrap_or_default();
        let mut peer = Peer::tcp(self.address);
        let length = content.len();
        peer.send(format!(
            "{request} HTTP/1.1\r\nHost: a\r\n{cookie}Content-Length: {length}\r\n\r\n{content}"
        ));
        let reply = peer.reply();
        if let Some(told) = reply.header("Set-Cookie") {
            let (pair, _) = told.split_once(';').unwrap();
            self.cookie = Some(pair.to_owned()).filter(|pair| !pair.ends_with('='));
        }
        reply
    }

    fn get(&mut self, target: &str) -> String {
        self.ask(&format!("GET {target}"), "").text().to_owned()
    }

    fn post(&mut self, target: &str, content: &str) -> u16 {
        self.ask(&format!("POST {target}"), content).status()
    }
}

#[test]
fn visitor_keeps_name() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(&["--scheduler", scheduler, "--data", "memory"]);
        let mut browser = Browser::of(&program);
        let first = browser.ask("GET /name", "");
        assert_eq!(first.header("Cache-Control"), Some("private, no-cache"));
        assert_eq!(first.header("Vary"), Some("Cookie"));
        let cookie = first.header("Set-Cookie").unwrap();
        let (pair, attributes) = cookie.split_once("; ").unwrap();
        assert_eq!(attributes, "Path=/; Max-Age=1209600; HttpOnly; SameSite=Lax");
        assert!(pair.starts_with("session=") && pair.len() == 8 + 96, "{pair}");
        let again = browser.ask("GET /name/plain", "");
        assert_eq!((again.text(), again.header("Set-Cookie")), (first.text(), None));
        assert_eq!(again.header("Vary"), Some("Cookie"));
        let whole = format!("<p>{}</p>", browser.get("/perhaps"));
        assert_eq!(whole, first.text());
    }
}

#[test]
fn sets_no_cookie_unless_session_is_used() {
    let program = start(&["--data", "memory"]);
    let mut browser = Browser::of(&program);
    for target in ["/nothing", "/lost", "/login/ann"] {
        let reply = browser.ask(&format!("GET {target}"), "");
        let told = ["Set-Cookie", "Cache-Control"].map(|name| reply.header(name));
        assert_eq!(told, [None; 2], "{target}");
    }
    let reply = browser.ask("GET /perhaps", "");
    assert_eq!((reply.text(), reply.header("Set-Cookie")), ("nobody", None));
    assert_eq!(reply.header("Vary"), Some("Cookie"), "the response depends on the session");
}

#[test]
fn all_kinds_of_responses_carry_the_session_cookie() {
    let program = start(&["--data", "memory"]);
    for (target, status) in
        [("/frozen", 200), ("/file", 200), ("/unstored", 200), ("/public", 200), ("/failing", 403)]
    {
        let reply = Browser::of(&program).ask(&format!("GET {target}"), "");
        assert_eq!(reply.status(), status, "{target}");
        assert!(reply.header("Set-Cookie").is_some(), "{target}: {}", reply.head);
        assert!(reply.head.contains("Vary: Cookie\r\n"), "{target}: {}", reply.head);
        let control = if target == "/unstored" { "no-store" } else { "private, no-cache" };
        assert_eq!(reply.header("Cache-Control"), Some(control), "{target}");
    }
}

#[test]
fn rejects_page_for_users_without_login() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(&["--scheduler", scheduler, "--data", "memory"]);
        let mut browser = Browser::of(&program);
        // First without a session, then with one.
        for _ in 0..2 {
            for target in ["/user", "/user/plain"] {
                let reply = browser.ask(&format!("GET {target}"), "");
                assert_eq!((reply.status(), reply.header("Set-Cookie")), (401, None), "{target}");
                assert_eq!(reply.text(), "This is for users. Log in first.\n");
                assert_eq!(reply.header("WWW-Authenticate"), Some("Cookie realm=\"session\""));
                assert_eq!(reply.header("Cache-Control"), Some("private, no-cache"));
                assert!(reply.head.contains("Vary: Cookie\r\n"), "{}", reply.head);
            }
            assert_eq!(browser.get("/user/perhaps"), "nobody");
            assert_eq!(browser.post("/value/a", "1"), 200);
        }
        assert_eq!(browser.post("/login/ann", ""), 303);
        for target in ["/user", "/user/plain"] {
            let reply = browser.ask(&format!("GET {target}"), "");
            assert_eq!((reply.status(), reply.text()), (200, "<p title=\"ann\">ann</p>"));
            assert!(reply.head.contains("Vary: Cookie\r\n"), "{}", reply.head);
        }
        assert_eq!(browser.get("/user/perhaps"), "ann, 3");
    }
}

#[test]
fn asks_browser_to_log_in_with_an_html_page() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    peer.send("GET /user HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n");
    let reply = peer.reply();
    assert_eq!(reply.status(), 401);
    assert!(reply.text().contains("<p>This is for users. Log in first.</p>"), "{}", reply.text());
}

#[test]
fn filters_and_access_log_know_the_user() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let folder = Folder::new();
        let log = folder.join("access.log");
        let log_option = ["--access-log", log.to_str().unwrap()];
        let options = [&["--scheduler", scheduler, "--data", "memory"][..], &log_option].concat();
        let program = start(&options);
        let mut browsers = vec![Browser::of(&program); 3];
        browsers[1].post("/login/ben", "");
        browsers[2].post("/login/ann", "");
        let answers = browsers.iter_mut().map(|browser| browser.ask("GET /admin/user", ""));
        let answers: Vec<_> =
            answers.map(|reply| (reply.status(), reply.text().to_owned())).collect();
        let refused = (403, "Ann alone may.\n".to_owned());
        assert_eq!(answers, [refused.clone(), refused, (200, "ann".to_owned())]);
        program.stop();
        let lines = fs::read_to_string(&log).unwrap();
        let lines = lines.lines().filter(|line| line.contains("/admin/user"));
        let mut users: Vec<_> = lines.map(|line| line.split(' ').nth(2).unwrap()).collect();
        // Each thread buffers its own lines.
        users.sort_unstable();
        assert_eq!(users, ["-", "ann", "ben"]);
    }
}

#[test]
fn keeps_responses_to_a_known_user_out_of_shared_caches() {
    let program = start(&["--data", "memory"]);
    let mut browser = Browser::of(&program);
    let told = |reply: &Reply| (reply.status(), reply.header("Cache-Control").map(str::to_owned));
    assert_eq!(told(&browser.ask("GET /user/request", "")), (200, None));
    browser.post("/login/ann", "");
    for request in ["GET /user/request", "POST /admin/post"] {
        let reply = browser.ask(request, "");
        assert_eq!(told(&reply), (200, Some("no-store".to_owned())), "{request}");
        assert_eq!((reply.header("Vary"), reply.header("Set-Cookie")), (Some("Cookie"), None));
    }
    // A page that does not use the session has no such restriction.
    assert_eq!(told(&browser.ask("GET /nothing", "")), (200, None));
    browser.post("/logout", "");
    assert_eq!(told(&browser.ask("GET /user/request", "")), (200, None));
}

/// Symptom: a client that sent the head of a request before its logout was still the user when the
/// body arrived. Cause: pages that get the user from the whole request or from a filter resolved it
/// at the head.
#[test]
fn logout_during_upload_ends_the_users_rights() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(&["--scheduler", scheduler, "--data", "memory"]);
        let cases = [
            ("/user/post", 401),
            ("/user/post/plain", 401),
            ("/user/post/request", 401),
            ("/admin/post", 403),
        ];
        for (path, then) in cases {
            let mut browser = Browser::of(&program);
            browser.post("/login/ann", "");
            assert_eq!(browser.ask(&format!("POST {path}"), "abc").text(), "3 bytes of ann");
            let cookie = browser.cookie.clone().unwrap();
            let mut peer = program.connect();
            let fields = format!("Host: a\r\nCookie: {cookie}\r\nContent-Length: 3\r\n");
            peer.send(format!("POST {path} HTTP/1.1\r\n{fields}Expect: 100-continue\r\n\r\n"));
            // The server has processed the head.
            assert_eq!(peer.reply_to_head().status(), 100);
            assert_eq!(browser.post("/logout", ""), 303);
            peer.send("abc");
            assert_eq!(peer.reply().status(), then, "{path}");
        }
    }
}

#[test]
fn rejects_posts_from_other_sites() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(&["--scheduler", scheduler, "--data", "memory"]);
        let mut peer = program.connect();
        let own = format!("Origin: http://{}", program.address());
        let cases = [
            ("Sec-Fetch-Site: cross-site", false),
            ("Sec-Fetch-Site: same-site", false),
            ("Sec-Fetch-Site: same-origin", true),
            ("Sec-Fetch-Site: none", true),
            ("Origin: null", false),
            ("Origin: http://foe.example", false),
            (&*own, true),
            // Scripts cannot set Sec-Fetch-Site, so it has precedence over Origin.
            ("Sec-Fetch-Site: same-origin\r\nOrigin: null", true),
            // A client that is not a browser.
            ("Accept: */*", true),
        ];
        for (fields, is_own) in cases {
            let mut post = |path: &str, content: &str| {
                peer.send(format!(
                    "POST {path} HTTP/1.1\r\nHost: {}\r\n{fields}\r\nContent-Length: {}\r\n\r\n{content}",
                    program.address(),
                    content.len()
                ));
                peer.reply()
            };
            for (path, status) in
                [("/login/ann", 303), ("/login/ann/plain", 303), ("/value/a", 200)]
            {
                let reply = post(path, "x");
                let status = if is_own { status } else { 403 };
                assert_eq!(reply.status(), status, "{path} {fields}: {reply:?}");
                assert_eq!(reply.header("Set-Cookie").is_some(), is_own, "{path} {fields}");
            }
            assert_eq!(post("/paid/7", "").text(), "paid 7", "{fields}");
            // Links from other sites are permitted.
            let host = program.address();
            peer.send(format!("GET /nothing HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n\r\n"));
            assert_eq!(peer.reply().status(), 200, "{fields}");
        }
    }
}

/// A program that accepts cross-site posts at a path without a page. Does nothing as an ordinary
/// test.
#[test]
fn serve_missing_page_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    let app = App::new().page(name).allow_cross_origin_posts("/saml");
    app.run_with("Usage: sessions", options.lines())
}

#[test]
fn rejects_cross_site_posts_to_a_path_without_page() {
    let test = "sessions::serve_missing_page_program";
    let refused = Program::run(&mut program(test, &["--data", "memory"]));
    let told = "`.allow_cross_origin_posts(\"/saml\")` names no path of a page";
    assert!(refused.errors.contains(told), "{refused:?}");
}

/// Symptom: Back showed a user's page after the logout. Cause: a browser shows a stored page without
/// asking, or the page itself, which it has kept in memory. Fix: it may store neither.
#[test]
fn browsers_store_no_response_to_a_user() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(&["--scheduler", scheduler, "--data", "memory"]);
        let mut browser = Browser::of(&program);
        let mut control = |request: &str| {
            let reply = browser.ask(request, "");
            reply.header("Cache-Control").map(str::to_owned)
        };
        assert_eq!(control("GET /name").as_deref(), Some("private, no-cache"));
        control("POST /login/ann");
        for request in ["GET /name", "GET /name/plain", "GET /user", "GET /user/plain"] {
            assert_eq!(control(request).as_deref(), Some("no-store"), "{request}");
        }
        // The page's own choice has precedence.
        assert_eq!(control("GET /public").as_deref(), Some("public, max-age=60"));
        control("POST /logout");
        assert_eq!(control("GET /name").as_deref(), Some("private, no-cache"));
    }
}

/// Regression: a shared cache gave one visitor's session to the next.
#[test]
fn public_response_with_a_cookie_is_private() {
    let program = start(&["--data", "memory"]);
    let mut browser = Browser::of(&program);
    let first = browser.ask("GET /public", "");
    assert!(first.header("Set-Cookie").is_some(), "{}", first.head);
    assert_eq!(first.header("Cache-Control"), Some("private, no-cache"));
    let again = browser.ask("GET /public", "");
    assert_eq!(again.header("Set-Cookie"), None);
    assert_eq!(again.header("Cache-Control"), Some("public, max-age=60"));
}

/// Regression: a request concurrent with a login logged its visitor out again.
#[test]
fn request_with_cookie_from_before_login_sets_no_cookie() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(&["--scheduler", scheduler, "--data", "memory"]);
        let mut browser = Browser::of(&program);
        browser.post("/value/a", "1");
        let mut late = browser.clone();
        assert_eq!(browser.post("/login/ann", ""), 303);
        let reply = late.ask("GET /name", "");
        assert_eq!((reply.status(), reply.header("Set-Cookie")), (200, None));
        assert_eq!(late.get("/perhaps"), "nobody");
        assert_eq!(late.post("/value/a", "2"), 409);
        assert_eq!(browser.get("/value/a"), "ann a=1");
    }
}

#[test]
fn login_changes_cookie_and_invalidates_old_one() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(&["--scheduler", scheduler, "--data", "memory"]);
        for login in ["/login/ann", "/login/ann/plain"] {
            let mut foe = Browser::of(&program);
            foe.post("/value/a", "planted");
            let mut browser = foe.clone();
            assert_eq!(browser.post(login, ""), 303);
            assert_ne!(browser.cookie, foe.cookie);
            assert_eq!(browser.get("/value/a"), "ann a=planted");
            assert_eq!(foe.get("/value/a"), " a=");
            assert_eq!(browser.post("/logout", ""), 303);
            assert_eq!(browser.cookie, None);
        }
    }
}

#[test]
fn sessions_survive_a_kill_until_their_keys_are_removed() {
    let folder = Folder::new();
    let data = folder.join("data");
    let options = ["--data", data.to_str().unwrap()];
    let program = start(&options);
    let (mut known, mut stranger) = (Browser::of(&program), Browser::of(&program));
    known.post("/login/ann", "");
    known.post("/value/theme", "dark");
    let name = stranger.get("/name");
    program.kill();
    let program = start(&options);
    known.address = program.address();
    stranger.address = program.address();
    assert_eq!(known.get("/value/theme"), "ann theme=dark");
    assert_eq!(stranger.get("/name"), name);
    program.kill();
    std::fs::remove_file(data.join("session-keys")).unwrap();
    let program = start(&options);
    known.address = program.address();
    assert_eq!(known.get("/value/theme"), " theme=");
}

#[test]
fn concurrent_sessions_do_not_mix() {
    let program = start(&["--data", "memory"]);
    thread::scope(|scope| {
        for number in 0..8 {
            let new = Browser::of(&program);
            scope.spawn(move || {
                let user = format!("user{}", number % 2);
                for round in 0..10 {
                    let mut browser = new.clone();
                    assert_eq!(browser.post(&format!("/login/{user}"), ""), 303);
                    let value = format!("{number}-{round}");
                    assert_eq!(browser.post("/value/a", &value), 200);
                    assert_eq!(browser.get("/value/a"), format!("{user} a={value}"));
                }
            });
        }
    });
    let mut browser = Browser::of(&program);
    browser.post("/login/user0", "");
    assert_eq!(browser.get("/others"), "1 of 41");
    assert_eq!(browser.ask("POST /revoke-others", "").text(), "40");
    assert_eq!(browser.get("/others"), "1 of 1");
}

#[test]
fn cookie_with_tls_has_host_prefix() {
    let folder = Folder::new();
    let data = folder.join("data");
    let program = start(&["--data", data.to_str().unwrap(), "--tls", "self-signed"]);
    let address = format!("https://{}/name", program.address());
    for version in ["--http1.1", "--http2"] {
        let ask = |cookie: &str| {
            let mut curl = Command::new("curl");
            curl.args(["--silent", "--insecure", "--include", "--max-time", "20", version]);
            let output = curl.args(["--cookie", cookie, &address]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let reply = ask("");
        let (_, cookie) = reply.split_once("__Host-session=").expect(&reply);
        let (value, behind) = cookie.split_once("; ").unwrap();
        let (attributes, _) = behind.split_once("\r\n").unwrap();
        assert_eq!(attributes, "Path=/; Max-Age=1209600; HttpOnly; SameSite=Lax; Secure");
        let name = reply.lines().last();
        assert_eq!(ask(&format!("__Host-session={value}")).lines().last(), name, "{version}");
        assert!(ask(&format!("session={value}")).contains("__Host-session="), "not without TLS");
    }
}

#[test]
fn configuration_sets_lifetimes_of_sessions() {
    let program = start(&["--data", "memory", "--session-idle", "30m"]);
    let reply = Browser::of(&program).ask("GET /name", "");
    assert!(reply.header("Set-Cookie").unwrap().contains("; Max-Age=1800;"), "{}", reply.head);
    let test = "sessions::serve_session_program";
    let wrong = Program::run(&mut crate::app::program(test, &["--session-idle", "5s"]));
    let told = "--session-idle 5s: must be a time like 30m, 12h or 14d, from 10s to 400d";
    assert!(wrong.errors.contains(told), "{wrong:?}");
}
