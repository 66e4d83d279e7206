//! Services: calls, arguments, results, and access.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use bine::prelude::*;
use serde_json::{Value, json};

use crate::app::{options, program};
use crate::harness::{KINDS, Peer, Program};

#[derive(Clone, Table)]
struct Remark {
    id: Id<Remark>,
    forum: Text,
    #[table(length = 1..=20)]
    body: Text,
}

#[derive(Table)]
struct Account {
    id: Id<Account>,
    #[table(unique, length = 1..=20, label = "The name")]
    name: Text,
    #[table(unique)]
    mail: Text,
    #[table(range = 18..=120, label = "The age")]
    age: u8,
}

#[service]
fn enroll(call: &mut Call, name: Text, mail: Text, age: u8) -> Result<(), Error> {
    call.insert(Account { id: Id::unassigned(), name, mail, age })?;
    Ok(())
}

#[service]
fn post(call: &mut Call, forum: Text, body: Text) -> Result<Text, Error> {
    let id = call.insert(Remark { id: Id::unassigned(), forum, body })?;
    Ok(id.to_string().as_str().into())
}

#[service]
fn count(call: &mut Call) -> usize {
    call.count::<Remark>()
}

/// Takes an argument of each kind.
#[service(safe)]
fn add(one: i64, other: Option<u8>, more: Vec<i64>, minus: bool) -> i64 {
    let sum = one + i64::from(other.unwrap_or(0)) + more.iter().sum::<i64>();
    if minus { -sum } else { sum }
}

#[service("/elsewhere")]
async fn greet(caller: Caller, name: Text) -> Result<Text, Error> {
    let kept = caller.store().read().count::<Remark>();
    Ok(format!("Hello {name}: {kept}").as_str().into())
}

#[service]
fn forget(call: &mut Call) -> Result<(), Error> {
    for remark in call.newest::<Remark>(100) {
        call.remove(remark.id)?;
    }
    Ok(())
}

#[service(safe)]
async fn shown(times: u32) -> impl Page {
    html!(<p>{times} times</p>)
}

#[service]
fn broken(place: usize) -> u32 {
    [7, 8][place]
}

#[service(who = "user")]
fn secret() -> u32 {
    7
}

#[service]
async fn log_in(caller: Caller, user: Text) -> Result<Response, Error> {
    caller.session().log_in(&user).await?;
    Ok(Response::text("welcome"))
}

/// Declared safe, but writes if asked to.
#[service(safe)]
fn peek(call: &mut Call, writes: bool) -> Result<usize, Error> {
    if writes {
        call.insert(Remark { id: Id::unassigned(), forum: "x".into(), body: "peeked".into() })?;
    }
    Ok(call.count::<Remark>())
}

/// A concurrent change conflicts with the first runs. Returns the number of runs.
#[service]
fn interrupted(call: &mut Call, times: u32) -> Result<u32, Error> {
    run_among_others(call, times)
}

#[service(once)]
fn interrupted_once(call: &mut Call, times: u32) -> Result<u32, Error> {
    run_among_others(call, times)
}

fn run_among_others(call: &mut Call, times: u32) -> Result<u32, Error> {
    let state = call.state::<Runs>()?;
    let run = state.count.fetch_add(1, Ordering::Relaxed) + 1;
    let before = call.count::<Remark>();
    if run <= times {
        let mut other = state.store.get().expect("the store is open").begin();
        other.insert(Remark { id: Id::unassigned(), forum: "x".into(), body: "other".into() })?;
        state.store.get().expect("the store is open").commit(other)?.wait()?;
    }
    let body = format!("own {before}").as_str().into();
    call.insert(Remark { id: Id::unassigned(), forum: "x".into(), body })?;
    Ok(run)
}

#[derive(Clone, Default)]
struct Runs {
    count: Arc<AtomicU32>,
    store: Arc<OnceLock<Store>>,
}

#[page("/board")]
async fn board() -> impl Page {
    html! {
        <form method="post" action={post}>
            <input name="forum" aria-label="Forum"> <input name="body" aria-label="Remark">
            <button formaction={greet}>Greet</button>
        </form>
    }
}

/// A page with the address of a POST, to which no form can return.
#[page(POST "/answered")]
async fn answered() -> impl Page {
    html!(<form method="post" action={forget}></form>)
}

#[page("/account")]
async fn account(own: bine::User) -> impl Page {
    html!(<h1>{own}</h1>)
}

#[test]
fn serve_service_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    let runs = Runs::default();
    let store = Arc::clone(&runs.store);
    App::new()
        .table::<Remark>()
        .table::<Account>()
        .in_memory()
        .state(runs)
        .on_store_open(move |opened| {
            let _ = store.set(opened.clone());
            Ok(())
        })
        .service(interrupted)
        .service(interrupted_once)
        .page(board)
        .page(answered)
        .page(account)
        .allow_cross_origin_posts("/answered")
        .asset("/a.txt", "text/plain", b"a")
        .service(peek)
        .service(post)
        .service(count)
        .service(add)
        .service(greet)
        .service(forget)
        .service(enroll)
        .service(shown)
        .service(broken)
        .service(secret)
        .service(log_in)
        .run_with("Usage: services", options.lines())
}

fn start() -> Program {
    Program::start(&mut program("services::serve_service_program", &[]))
}

const JSON: &str = "Content-Type: application/json\r\n";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
/// Header fields of a form that a browser submits.
const BROWSER: &str = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nContent-Type: application/x-www-form-urlencoded\r\nOrigin: http://a\r\n";

#[test]
fn calls_service_by_name() {
    for scheduler in KINDS {
        let test = "services::serve_service_program";
        check_calls(&Program::start(&mut program(test, &["--scheduler", scheduler])));
    }
}

fn check_calls(program: &Program) {
    let mut peer = program.connect();
    let reply = peer.request("POST", "/bine/post", JSON, r#"{"forum": "garden", "body": "hops"}"#);
    assert_eq!((reply.status(), reply.header("Content-Type")), (200, Some("application/json")));
    assert_eq!(reply.text().len(), "\"\"".len() + Id::<Remark>::unassigned().to_string().len());
    assert_eq!(peer.request("POST", "/bine/count", "", "").text(), "1");
    // The arguments arrive after the head.
    peer.send(format!(
        "POST /elsewhere HTTP/1.1\r\nHost: a\r\n{FORM}Content-Length: 11\r\n\r\nname="
    ));
    peer.send("Anna+B");
    let reply = peer.reply();
    assert_eq!((reply.status(), reply.text()), (200, "\"Hello Anna B: 1\""));
    let reply = peer.request("POST", "/bine/forget", JSON, "{}");
    assert_eq!((reply.status(), reply.text()), (204, ""));
    assert_eq!(peer.request("POST", "/bine/count", "", "").text(), "0");
    let reply = peer.get("/bine/count");
    assert_eq!((reply.status(), reply.header("Allow")), (405, Some("POST, OPTIONS")));
}

#[test]
fn reads_arguments_of_safe_service_from_query() {
    let program = start();
    let mut peer = program.connect();
    assert_eq!(peer.get("/bine/add?one=1&more=2&more=3&minus=on").text(), "-6");
    assert_eq!(peer.get("/bine/add?one=1&other=").text(), "1");
    let reply =
        peer.request("POST", "/bine/add", JSON, r#"{"one": 1, "more": [], "minus": false}"#);
    assert_eq!(reply.text(), "1");
    assert!(peer.get("/bine/shown?times=3").text().contains("<p>3 times</p>"));
}

#[test]
fn redirects_form_to_its_page() {
    let program = start();
    let mut peer = program.connect();
    let page = peer.get("/board").text().to_owned();
    assert!(
        page.contains("action=\"/bine/post\"") && page.contains("formaction=\"/elsewhere\""),
        "{page}"
    );
    let form = "forum=garden&body=hops";
    for (referer, location) in [
        ("", "/"),
        ("Referer: http://a/board?x=1\r\n", "http://a/board?x=1"),
        ("Referer: http://a/answered?x=1\r\n", "/"),
        ("Referer: http://b/board\r\n", "/"),
        ("Referer: http://a.b/board\r\n", "/"),
        ("Referer: http://a@b/board\r\n", "/"),
    ] {
        let reply = peer.request("POST", "/bine/post", &format!("{BROWSER}{referer}"), form);
        assert_eq!((reply.status(), reply.header("Location")), (303, Some(location)), "{referer}");
    }
    let parts = "--x\r\nContent-Disposition: form-data; name=\"forum\"\r\n\r\na\r\n\
        --x\r\nContent-Disposition: form-data; name=\"body\"\r\n\r\nb\r\n--x--\r\n";
    let kind = "Content-Type: multipart/form-data; boundary=x\r\n";
    assert_eq!(peer.request("POST", "/bine/post", kind, parts).status(), 200);
    assert_eq!(peer.request("POST", "/bine/count", "", "").text(), "7");
}

#[test]
fn reports_all_invalid_columns_at_once() {
    let program = start();
    let mut peer = program.connect();
    let mut enroll = |content: &str| {
        let reply = peer.request("POST", "/bine/enroll", FORM, content);
        let problem = serde_json::from_str::<Value>(reply.text()).unwrap_or_default();
        (reply.status(), problem["detail"].clone(), problem["errors"].clone())
    };
    assert_eq!(enroll("name=Ann&mail=a&age=20").0, 204);
    let name = json!({ "name": "name", "label": "The name", "detail": "is taken already" });
    let mail = json!({ "name": "mail", "detail": "is taken already" });
    let too_young = "must be from 18 to 120, not 7";
    let age = json!({ "name": "age", "label": "The age", "detail": too_young });
    // Only duplicates are a conflict.
    let detail = json!("The name is taken already; `mail` is taken already");
    assert_eq!(enroll("name=Ann&mail=a&age=30"), (409, detail, json!([name, mail])));
    let detail = json!("The age must be from 18 to 120, not 7; `mail` is taken already");
    assert_eq!(enroll("name=Ben&mail=a&age=7"), (422, detail, json!([age, mail])));
    let length = "must have from 1 to 20 letters, not 0";
    let empty = json!({ "name": "name", "label": "The name", "detail": length });
    let detail = json!(format!("The name {length}; The age {too_young}"));
    assert_eq!(enroll("name=&mail=b&age=7"), (422, detail, json!([empty, age])));
}

#[test]
fn reports_errors_by_argument_name() {
    let program = start();
    let mut peer = program.connect();
    let check = |peer: &mut Peer, path: &str, fields: &str, content: &str, told: &str| {
        let reply = peer.request("POST", path, fields, content);
        assert_eq!(reply.header("Content-Type"), Some("application/problem+json"), "{content}");
        let text = reply.text();
        assert!(text.contains(told), "{content}: {text}");
        reply.status()
    };
    let told = r#"[{"detail":"is no argument of this service; did you mean `body`?","name":"bdy"},{"detail":"is missing","name":"body"}]"#;
    let content = r#"{"forum": "a", "bdy": "b"}"#;
    assert_eq!(check(&mut peer, "/bine/post", JSON, content, told), 400);
    assert_eq!(check(&mut peer, "/bine/post", FORM, "forum=a&bdy=b", told), 400);
    let told = "`body` must have from 1 to 20 letters, not 0";
    let status = check(&mut peer, "/bine/post", FORM, "forum=a&body=", told);
    assert_eq!(status, 422);
    let told =
        "\"detail\":\"`one` is missing; `other` must be a whole number from 0 to 255, not `256`\"";
    assert_eq!(check(&mut peer, "/bine/add", FORM, "other=256", told), 400);
    assert_eq!(check(&mut peer, "/bine/add", JSON, "[1]", "object, with each under its name"), 400);
    assert_eq!(
        check(
            &mut peer,
            "/bine/add",
            JSON,
            "{",
            "the arguments: EOF while parsing an object (at line 1 column 1)"
        ),
        400
    );
    let deep = format!("{{\"one\": {}1{}}}", "[".repeat(500), "]".repeat(500));
    assert_eq!(check(&mut peer, "/bine/add", JSON, &deep, "128"), 400);
    assert_eq!(check(&mut peer, "/bine/add", "Content-Type: text/plain\r\n", "x", "Send"), 415);
    assert_eq!(check(&mut peer, "/bine/broken", FORM, "place=2", "Something went wrong here"), 500);
    let browser = format!("{BROWSER}Referer: http://a/board?\"x\r\n");
    let reply = peer.request("POST", "/bine/post", &browser, "forum=a");
    assert_eq!(
        (reply.status(), reply.header("Content-Type")),
        (400, Some("text/html; charset=utf-8"))
    );
    let reply =
        peer.request("POST", "/nowhere", "Accept: application/json, text/html;q=0.5\r\n", "");
    assert_eq!(
        (reply.status(), reply.header("Content-Type")),
        (404, Some("application/problem+json"))
    );
    let reply = peer.request("POST", "/bine/post", &browser, "forum=a");
    let told = "<p>`body` is missing</p><p><a href=\"http://a/board?&quot;x\">Back</a></p>";
    assert!(reply.text().contains(told), "{}", reply.text());
}

#[test]
fn accepts_calls_only_from_same_site() {
    let program = start();
    let mut peer = program.connect();
    for (fields, status) in [
        ("", 200),
        ("Origin: http://a\r\nCookie: b=c\r\n", 200),
        ("Origin: http://b\r\n", 403),
        ("Origin: null\r\n", 403),
        ("Origin: \u{e4}\r\n", 403),
        ("Cookie: b=c\r\n", 403),
        ("Sec-Fetch-Site: same-origin\r\nOrigin: http://b\r\n", 200),
        ("Sec-Fetch-Site: none\r\n", 200),
        ("Sec-Fetch-Site: same-site\r\nOrigin: http://a\r\n", 403),
        ("Sec-Fetch-Site: cross-site\r\n", 403),
    ] {
        let reply = peer.request("POST", "/bine/count", fields, "");
        assert_eq!(reply.status(), status, "{fields}");
    }
}

#[test]
fn retries_service_after_conflict() {
    let program = start();
    let mut peer = program.connect();
    let reply = peer.request("POST", "/bine/interrupted", FORM, "times=3");
    assert_eq!((reply.status(), reply.text()), (200, "4"));
    assert_eq!(peer.request("POST", "/bine/count", "", "").text(), "4");
    let program = start();
    let mut peer = program.connect();
    let reply = peer.request("POST", "/bine/interrupted", FORM, "times=4");
    assert_eq!(
        (reply.status(), reply.header("Content-Type")),
        (409, Some("application/problem+json"))
    );
    assert_eq!(peer.request("POST", "/bine/count", "", "").text(), "4");
    let program = start();
    let mut peer = program.connect();
    assert_eq!(peer.request("POST", "/bine/interrupted_once", FORM, "times=1").status(), 409);
    assert_eq!(peer.request("POST", "/bine/count", "", "").text(), "1");
    let reply = peer.request("POST", "/bine/interrupted_once", FORM, "times=0");
    assert_eq!((reply.status(), reply.text()), (200, "2"));
}

#[test]
fn requires_login_for_user_service() {
    let program = start();
    let mut peer = program.connect();
    assert_eq!(peer.request("POST", "/bine/secret", "", "").status(), 401);
    let reply = peer.request("POST", "/bine/log_in", FORM, "user=anna");
    assert_eq!((reply.status(), reply.text()), (200, "welcome"));
    let cookie = reply.header("Set-Cookie").unwrap().split(';').next().unwrap();
    let fields = format!("Cookie: {cookie}\r\nOrigin: http://a\r\n");
    assert_eq!(peer.request("POST", "/bine/secret", &fields, "").text(), "7");
}

#[test]
fn lists_routes_of_the_program() {
    let told = |options: &[&str]| {
        let test = "services::serve_service_program";
        Program::run(&mut program(test, options)).output
    };
    let output = told(&["--routes"]);
    let lines: Vec<Vec<&str>> = output.lines().map(|line| line.split("  ").collect()).collect();
    let line = |path: &str| -> Vec<&str> {
        let own = lines.iter().find(|line| line.iter().any(|cell| cell.trim() == path));
        own.unwrap().iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty()).collect()
    };
    let post = [
        "POST",
        "/bine/post",
        "service",
        "bine::services::post",
        "forum: Text, body: Text",
        "anyone",
    ];
    assert_eq!(line("/bine/post"), post);
    let add = "one: i64, other: Option<u8>, more: Vec<i64>, minus: bool";
    assert_eq!(
        line("/bine/add"),
        ["GET|POST", "/bine/add", "service", "bine::services::add", add, "anyone", "safe"]
    );
    assert_eq!(
        line("/bine/secret"),
        ["POST", "/bine/secret", "service", "bine::services::secret", "users"]
    );
    assert_eq!(line("/bine/interrupted_once").last(), Some(&"once"));
    // Recognized by its type, whatever its name and path.
    assert_eq!(line("/account")[4..], ["own: bine::User", "users"]);
    assert_eq!(line("/answered")[4..], ["anyone", "from anywhere"]);
    assert_eq!(line("/a.txt")[2..], ["asset", "/a.txt", "anyone"]);
    assert_eq!(line("/_bine/live"), ["GET", "/_bine/live", "live", "anyone"]);
    assert!(output.contains("/_bine/action/tell/{sealed}"), "{output}");
    assert_eq!(line("/board"), ["GET", "/board", "page", "bine::services::board", "anyone"]);
    let output = told(&["--routes", "--json"]);
    let json = &output[output.find('[').unwrap()..=output.rfind(']').unwrap()];
    let routes: serde_json::Value = serde_json::from_str(json).unwrap();
    let post = routes.as_array().unwrap().iter().find(|route| route["path"] == "/bine/post");
    assert_eq!(post.unwrap()["arguments"][1]["name"], "body");
    let add = routes.as_array().unwrap().iter().find(|route| route["path"] == "/bine/add");
    assert_eq!(add.unwrap()["marks"][0], "safe");
}

#[test]
fn discards_writes_of_safe_service_and_logs_reason() {
    let program = start();
    let mut peer = program.connect();
    assert_eq!(peer.get("/bine/peek").text(), "0");
    assert_eq!(peer.get("/bine/peek?writes=on").status(), 500);
    assert_eq!(peer.get("/bine/peek").text(), "0");
    let errors = program.stop().errors;
    let told = "the service bine::services::peek is `safe` and has written to a table";
    assert!(errors.contains(told), "{errors}");
}

/// A program that accepts cross-site posts for a service, which is an error. Does nothing as an
/// ordinary test.
#[test]
fn serve_cross_site_service_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    let app = App::new().service(shown).allow_cross_origin_posts("/bine/shown");
    app.run_with("Usage: services", options.lines())
}

#[test]
fn rejects_cross_site_posts_to_a_service() {
    let test = "services::serve_cross_site_service_program";
    let refused = Program::run(&mut program(test, &[]));
    assert!(refused.errors.contains("bine::services::shown, which is no page"), "{refused:?}");
}
