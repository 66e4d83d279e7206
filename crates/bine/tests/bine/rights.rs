//! Rights: who may use which paths, files, services and channels, and changes that are in effect at
//! once.

use bine::channels::{Access, Settings};
use bine::prelude::*;
use bine::test::Site;
use bine::{AccessRules, Right, Rights, Rule, Who};
use serde_json::json;

use crate::app::{options, program};
use crate::harness::{Folder, KINDS, Peer, Program, Reply};
use crate::websocket::{Socket, upgrade_request};

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_program_with_rights() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    let rules = AccessRules::new()
        .allow("/admin/*", Who::Administrators)
        .member("administrators", "root")
        .read("/docs/*", Who::Anonymous)
        .allow("/docs/*", Who::group("editors"))
        .read("/secret/*", Who::group("editors"))
        .read("/plain.html", Who::group("editors"))
        .read("/indexed", Who::group("editors"))
        .read("/held", Who::group("editors"))
        .allow("/publish-page", Who::Users)
        .with("news/*", Right::Follow, Who::group("editors"))
        .with("news/*", Right::Publish, Who::user("ann"))
        .with("open", Right::Follow, Who::Anonymous)
        .with("/closed/*", Right::Read, Who::Users)
        .log_in_page("/closed/log-in");
    App::new()
        .rights(rules)
        .channels(Access::anyone_follows())
        .channel("news/today", Settings::default())
        .channel("other", Settings::default())
        .channel("open", Settings::default())
        .page(log_in)
        .page(admin)
        .page(read_docs)
        .page(write_docs)
        .page(change_group)
        .page(change_right)
        .page(about)
        .page(close_channel)
        .page(held)
        .service(revise)
        .run_with("Usage: rights", options.lines())
}

#[page(POST "/login/{user}")]
async fn log_in(session: Session, user: Path<Text>) -> Result<Response, Error> {
    session.log_in(user).await?;
    Ok(Response::text("in"))
}

#[page("/admin")]
async fn admin() -> Response {
    Response::text("administration")
}

#[page("/docs/{name}")]
async fn read_docs(name: Path<Text>) -> Response {
    Response::text(name.to_string())
}

#[page(POST "/docs/{name}")]
async fn write_docs(name: Path<Text>) -> Response {
    Response::text(format!("wrote {name}"))
}

/// Changes a membership as the client.
#[page(POST "/group/{word}/{user}/{group}")]
async fn change_group(
    rights: Rights,
    word: Path<Text>,
    user: Path<Text>,
    group: Path<Text>,
) -> Result<Response, Error> {
    let has_changed = match &**word {
        "add" => rights.add_to_group(&user, &group).await?,
        _ => rights.remove_from_group(&user, &group).await?,
    };
    Ok(Response::text(has_changed.to_string()))
}

/// Changes a right to read as the client.
#[page(POST "/right/{word}/{user}/{path..}")]
fn change_right(
    rights: Rights,
    word: Path<Text>,
    user: Path<Text>,
    path: Path<Text>,
) -> Result<Response, Error> {
    let (who, pattern) = (Who::user(user.0), format!("/{}", *path));
    let has_changed = match &**word {
        "grant" => rights.grant(who, Right::Read, &pattern).wait()?,
        _ => rights.revoke(who, Right::Read, &pattern).wait()?,
    };
    Ok(Response::text(has_changed.to_string()))
}

#[page("/about")]
async fn about(rights: Rights) -> Response {
    let groups: Vec<_> = rights.groups().iter().map(ToString::to_string).collect();
    let may = rights.may(Right::Write, "/docs/x");
    Response::text(format!(
        "{} {} {} {may} {}",
        groups.join(","),
        rights.is_in("editors"),
        rights.allows("/admin"),
        rights.may(Right::Publish, "news/today"),
    ))
}

#[page("/held")]
async fn held(channels: Channels) -> Response {
    channels.respond(["other"]).into()
}

/// Denies a channel to everyone but its owner.
#[page(POST "/channel-rule")]
async fn close_channel(rights: Rights) -> Result<Response, Error> {
    rights.grant(Who::user("owner"), Right::Follow, "other").await?;
    Ok(Response::text("closed"))
}

const EDITORS: Rule = Rule::group("editors");

#[service(who = EDITORS)]
fn revise(text: Text) -> Text {
    text
}

fn start(scheduler: &str, root: &str) -> Program {
    let options = ["--data", "memory", "--scheduler", scheduler, "--workers", "48", "--root", root];
    Program::start(&mut program("rights::serve_program_with_rights", &options))
}

/// A folder of files, and the program on each scheduler.
fn on_each(check: impl Fn(&Program)) {
    let folder = Folder::new();
    for (name, content) in [
        ("secret/a.txt", "confidential"),
        ("secret/index.html", "confidential"),
        ("plain.html", "confidential"),
        ("plain.html.gz", "confidential"),
        ("indexed/index.html", "confidential"),
        ("indexed/open.txt", "public"),
    ] {
        folder.write(name, content.as_bytes());
    }
    for scheduler in KINDS {
        println!("on {scheduler}:");
        check(&start(scheduler, folder.path().to_str().unwrap()));
    }
}

fn ask(program: &Program, request: &str, fields: &str) -> Reply {
    let mut peer = program.connect();
    peer.send(format!("{request} HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: 0\r\n\r\n"));
    peer.reply()
}

/// Logs in a user. Returns the cookie as a header field.
fn log_in_as(program: &Program, user: &str) -> String {
    let reply = ask(program, &format!("POST /login/{user}"), "");
    let (pair, _) = reply.header("Set-Cookie").unwrap().split_once(';').unwrap();
    format!("Cookie: {pair}\r\n")
}

#[test]
fn rejects_clients_by_the_most_specific_rule() {
    on_each(|program| {
        let [ann, root] = ["ann", "root"].map(|user| log_in_as(program, user));
        let reply = ask(program, "GET /admin", "");
        assert_eq!((reply.status(), reply.header("Cache-Control")), (401, Some("no-store")));
        let reply = ask(program, "GET /admin?a=b&c", "Accept: text/html,*/*\r\n");
        assert_eq!(reply.status(), 303);
        assert_eq!(reply.header("Location"), Some("/closed/log-in?next=%2Fadmin%3Fa%3Db%26c"));
        // The page to log in is open, as far as it exists.
        let status = |target: &str| ask(program, target, "Accept: text/html\r\n").status();
        assert_eq!((status("GET /closed/log-in"), status("GET /closed/x")), (404, 303));
        assert_eq!(ask(program, "POST /admin", "Accept: text/html,*/*\r\n").status(), 401);
        assert_eq!(ask(program, "GET /admin", &ann).status(), 403);
        assert_eq!(ask(program, "GET /admin/x", &ann).status(), 403);
        let reply = ask(program, "GET /admin", &root);
        assert_eq!((reply.status(), reply.text()), (200, "administration"));
        assert_eq!(reply.header("Cache-Control"), Some("no-store"));
        // What everyone may read is not private.
        let reply = ask(program, "GET /docs/x", &ann);
        assert_eq!((reply.status(), reply.header("Cache-Control")), (200, None));
        assert_eq!(ask(program, "POST /docs/x", "").status(), 401);
        assert_eq!(ask(program, "POST /docs/x", &ann).status(), 403);
        // A path that no rule matches is open.
        assert_eq!(ask(program, "GET /about", "").text(), " false false false false");
        assert_eq!(ask(program, "GET /health", "").status(), 200);
    });
}

#[test]
fn changes_of_groups_and_rights_are_in_effect_at_once() {
    on_each(|program| {
        let [ann, root] = ["ann", "root"].map(|user| log_in_as(program, user));
        let post = |target: &str| ask(program, &format!("POST {target}"), &root);
        assert_eq!(post("/group/add/ann/editors").text(), "true");
        assert_eq!(post("/group/add/ann/editors").text(), "false");
        assert_eq!(ask(program, "POST /docs/x", &ann).text(), "wrote x");
        assert_eq!(ask(program, "GET /about", &ann).text(), "editors true false true true");
        assert_eq!(post("/group/remove/ann/editors").text(), "true");
        assert_eq!(ask(program, "POST /docs/x", &ann).status(), 403);
        assert_eq!(post("/right/grant/ann/admin/*").text(), "true");
        assert_eq!(ask(program, "GET /admin", &ann).status(), 200);
        assert_eq!(ask(program, "POST /admin", &ann).status(), 403);
        // A new rule closes a path that was open.
        assert_eq!(post("/right/grant/ann/about").text(), "true");
        assert_eq!(ask(program, "GET /about", &root).status(), 403);
        assert_eq!(post("/right/revoke/ann/about").text(), "true");
        assert_eq!(ask(program, "GET /about", &root).status(), 200);
        let reply = post("/right/grant/ann/a*b");
        assert_eq!(reply.status(), 400);
        assert!(reply.text().contains("the whole last segment"), "{}", reply.text());
        assert_eq!(post("/group/add/anonymous/editors").status(), 400);
    });
}

#[test]
fn protects_files_in_all_spellings() {
    on_each(|program| {
        let [ann, root] = ["ann", "root"].map(|user| log_in_as(program, user));
        ask(program, "POST /group/add/ann/editors", &root);
        for target in [
            "/secret/a.txt",
            "/%73ecret/a.txt",
            "/secret/./a.txt",
            "/x/../secret/a.txt",
            "/secret/%2e/a.txt",
            "/secret/x/%2E%2E/a.txt",
            "//secret/a.txt",
            "/secret//a.txt",
            "/secret/a.txt/",
            "/secret%2Fa.txt",
            "/secret%5Ca.txt",
            "/secret/",
            "/secret",
            "/secret/index.html",
            "/secret/a%2Etxt?x=/docs/",
            "http://a/secret/a.txt",
            "/plain.html",
            "/plain.html.gz",
            "/plain.html/",
            "/plain%2ehtml%2egz",
            "/indexed/",
            "/indexed",
            "/indexed/index.html",
            "/indexed/./index.html",
        ] {
            let reply = ask(program, &format!("GET {target}"), "Accept-Encoding: gzip\r\n");
            assert!(matches!(reply.status(), 400 | 401 | 404), "{target}: {}", reply.status());
            assert!(!reply.text().contains("confidential"), "{target}: {}", reply.text());
        }
        for target in ["/secret/a.txt", "/secret/", "/plain.html", "/plain.html.gz", "/indexed/"] {
            let reply = ask(program, &format!("GET {target}"), &ann);
            assert_eq!((reply.status(), reply.text()), (200, "confidential"), "{target}");
            assert_eq!(reply.header("Cache-Control"), Some("private, no-cache"), "{target}");
            assert_eq!(ask(program, &format!("GET {target}"), &root).status(), 403, "{target}");
        }
        assert_eq!(ask(program, "GET /indexed/open.txt", "").text(), "public");
    });
}

#[test]
fn services_are_for_members_of_a_group() {
    on_each(|program| {
        let [ann, root] = ["ann", "root"].map(|user| log_in_as(program, user));
        let call = |fields: &str| {
            let mut peer = program.connect();
            let fields =
                format!("{fields}Content-Type: application/json\r\nContent-Length: 12\r\n");
            let fields = format!("{fields}Sec-Fetch-Site: same-origin\r\n");
            peer.send(format!(
                "POST /bine/revise HTTP/1.1\r\nHost: a\r\n{fields}\r\n{{\"text\":\"a\"}}"
            ));
            peer.reply()
        };
        let [anonymous, not_yet] = [call(""), call(&ann)];
        assert_eq!((anonymous.status(), not_yet.status()), (401, 403), "{anonymous:?}");
        ask(program, "POST /group/add/ann/editors", &root);
        let reply = call(&ann);
        assert_eq!((reply.status(), reply.text().trim()), (200, "\"a\""));
    });
}

/// A client that waits for messages of a channel.
fn wait_for(program: &Program, target: &str, fields: &str) -> Peer {
    let mut peer = program.connect();
    peer.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    peer
}

#[test]
fn rules_of_channels_take_the_place_of_the_programs_own() {
    on_each(|program| {
        let [ann, root] = ["ann", "root"].map(|user| log_in_as(program, user));
        let status = |target: &str, fields: &str| ask(program, target, fields).status();
        assert_eq!(status("GET /channels?c=news/today&wait=0", ""), 401);
        assert_eq!(status("GET /channels?c=news/today&wait=0", &ann), 403);
        assert_eq!(status("GET /channels?c=other&wait=0", ""), 204);
        assert_eq!(status("GET /channels?c=open&wait=0", ""), 204);
        assert_eq!(status("GET /channels?c=other&c=news/today&wait=0", ""), 401);
        ask(program, "POST /group/add/ann/editors", &root);
        assert_eq!(status("GET /channels?c=news/today&wait=0", &ann), 204);
        let publish = |name: &str, fields: &str| {
            let mut peer = program.connect();
            let fields =
                format!("{fields}Content-Type: application/octet-stream\r\nContent-Length: 1\r\n");
            peer.send(format!("POST /channels/{name} HTTP/1.1\r\nHost: a\r\n{fields}\r\na"));
            peer.reply()
        };
        assert_eq!(publish("news/today", "").status(), 401);
        assert_eq!(publish("news/today", &root).status(), 403);
        let reply = publish("news/today", &ann);
        assert_eq!(reply.status(), 204, "{reply:?}");
        assert_eq!(publish("other", &ann).status(), 403);
    });
}

#[test]
fn lost_rights_end_held_channels_and_no_others() {
    on_each(|program| {
        let [ann, root] = ["ann", "root"].map(|user| log_in_as(program, user));
        ask(program, "POST /group/add/ann/editors", &root);
        let target = "/channels?c=news/today&wait=55";
        let mut stream = wait_for(program, target, &format!("{ann}Accept: text/event-stream\r\n"));
        stream.await_text("\r\n\r\n");
        let mut other = wait_for(
            program,
            "/channels?c=other&c=open",
            &format!("{ann}Accept: text/event-stream\r\n"),
        );
        other.await_text("\r\n\r\n");
        let mut socket = Socket::ask(program, upgrade_request(target, &ann));
        socket.receive_text();
        let events = format!("{ann}Accept: text/event-stream\r\n");
        let mut page = wait_for(program, "/held", &events);
        page.await_text("\r\n\r\n");
        let mut page_socket = Socket::ask(program, upgrade_request("/held", &ann));
        page_socket.receive_text();
        let mut poll = wait_for(program, target, &ann);
        assert_eq!(ask(program, "POST /group/remove/ann/editors", &root).text(), "true");
        stream.await_text("0\r\n\r\n");
        socket.expect_close(4401);
        page.await_text("0\r\n\r\n");
        page_socket.expect_close(4401);
        assert!(matches!(poll.reply().status(), 401 | 403));
        assert_eq!(ask(program, "GET /channels?c=news/today&wait=0", &ann).status(), 403);
        // A rule that denies a channel that was open ends its followers too.
        assert_eq!(ask(program, "POST /channel-rule", &root).status(), 200);
        other.await_text("0\r\n\r\n");
    });
}

#[test]
fn lists_rules_with_the_routes() {
    let options = ["--data", "memory", "--routes", "--rule", "/docs/* write ann, group:staff"];
    let ended = Program::run(&mut program("rights::serve_program_with_rights", &options));
    let line = |start: [&str; 3]| {
        let is_own = |line: &&str| line.split_whitespace().take(3).eq(start);
        let found = ended.output.lines().find(is_own);
        found.unwrap_or_else(|| panic!("{start:?} is not in {}", ended.output))
    };
    for (start, rule) in [
        (["GET", "/admin", "page"], Some("anyone; rule /admin/*")),
        (["POST", "/docs/{name}", "page"], Some("anyone; rule /docs/*")),
        (["POST", "/bine/revise", "service"], Some("editors")),
        (["GET", "/about", "page"], None),
    ] {
        let text = line(start);
        match rule {
            Some(rule) => assert!(text.contains(rule), "{rule}: {text}"),
            None => assert!(!text.contains("rule"), "{text}"),
        }
    }
    for (pattern, rule, source) in [
        ("/admin/*", "write administrators", "program"),
        ("/docs/*", "read anonymous", "program"),
        ("/docs/*", "write group:staff", "configuration"),
        ("/docs/*", "write ann", "configuration"),
        ("news/*", "follow group:editors", "program"),
        ("/_bine/reload", "write administrators", "program"),
    ] {
        let is_listed =
            |line: &str| line.contains(pattern) && line.contains(rule) && line.contains(source);
        assert!(ended.output.lines().any(is_listed), "{pattern} {rule}: {}", ended.output);
    }
}

#[test]
fn administrators_reload_and_read_metrics() {
    on_each(|program| {
        let [ann, root] = ["ann", "root"].map(|user| log_in_as(program, user));
        assert_eq!(ask(program, "GET /_bine/metrics", "").status(), 401);
        assert_eq!(ask(program, "GET /_bine/metrics", &ann).status(), 403);
        let reply = ask(program, "GET /_bine/metrics", &root);
        assert_eq!(reply.status(), 200);
        assert!(reply.text().contains("bine_build_info"), "{}", reply.text());
        assert_eq!(reply.header("Cache-Control"), Some("no-store"));
        let own = "Sec-Fetch-Site: same-origin\r\n";
        assert_eq!(ask(program, "POST /_bine/reload", own).status(), 401);
        assert_eq!(ask(program, "POST /_bine/reload", &format!("{ann}{own}")).status(), 403);
        let reply = ask(program, "POST /_bine/reload", &format!("{root}{own}"));
        assert_eq!((reply.status(), reply.text()), (200, "reloaded\n"));
        let foreign = format!("{root}Sec-Fetch-Site: cross-site\r\n");
        assert_eq!(ask(program, "POST /_bine/reload", &foreign).status(), 403);
        assert_eq!(ask(program, "POST /_bine/reload", &root).status(), 403);
        assert_eq!(ask(program, "GET /_bine/reload", &root).status(), 405);
    });
}

#[test]
fn group_rule_or_argument_needs_no_other_declaration() {
    let site = Site::new(App::new().service(revise).page(about));
    let client = site.client();
    assert_eq!(client.post_json("/bine/revise", &json!({ "text": "a" })).status(), 401);
    assert_eq!(client.get("/about").text(), " false true true false");
}

#[derive(Table)]
#[table(name = "right_board")]
struct RightBoard {
    id: Id<RightBoard>,
    #[table(length = 1..=20)]
    title: Text,
}

/// Creates a board whose creator may change it: both or neither.
#[service("/boards/create")]
fn create_board(call: &mut Call, title: Text, fails: bool) -> Result<Id<RightBoard>, Error> {
    let user = call.user().ok_or_else(|| Error::unauthorized("log in"))?.0;
    let rights = call.rights()?;
    let board = call.insert(RightBoard { id: Id::unassigned(), title })?;
    let pattern = format!("/boards/{board}/*");
    assert!(rights.grant_in(call, Who::user(&*user), Right::Write, &pattern)?);
    assert!(rights.add_to_group_in(call, &user, "creators")?);
    assert!(!rights.add_to_group_in(call, &user, "creators")?);
    assert!(rights.remove_from_group_in(call, &user, "creators")?);
    assert!(rights.add_to_group_in(call, &user, "creators")?);
    if fails {
        return Err(Error::conflict("not today"));
    }
    Ok(board)
}

#[service("/boards/rename")]
fn rename_board(call: &mut Call, board: Id<RightBoard>, title: Text) -> Result<(), Error> {
    if !call.rights()?.may(Right::Write, &format!("/boards/{board}")) {
        return Err(Error::forbidden("only the creator may rename it"));
    }
    call.update(board, |board| board.title = title)?;
    Ok(())
}

#[service("/boards/leave")]
fn leave_board(call: &mut Call, board: Id<RightBoard>) -> Result<bool, Error> {
    let user = call.user().ok_or_else(|| Error::unauthorized("log in"))?.0;
    let pattern = format!("/boards/{board}/*");
    call.rights()?.revoke_in(call, Who::user(user), Right::Write, &pattern)
}

#[test]
fn changes_of_rights_commit_with_the_transaction_of_a_service() {
    let rules =
        AccessRules::new().read("/boards/*", Who::Users).allow("/boards/create", Who::Users);
    let rules = ["rename", "leave"]
        .into_iter()
        .fold(rules, |rules, name| rules.allow(&format!("/boards/{name}"), Who::Users));
    let app = App::new().table::<RightBoard>().rights(rules);
    let app = app.service(create_board).service(rename_board).service(leave_board);
    let site = Site::new(app.page(log_in).page(about));
    let [ann, ben] = ["ann", "ben"].map(|user| {
        let client = site.client();
        let reply = client.request(bine::Method::Post, &format!("/login/{user}")).send();
        assert_eq!(reply.status(), 200);
        client
    });
    let create = |title: &str, fails: bool| {
        ann.post_json("/boards/create", &json!({ "title": title, "fails": fails }))
    };
    // A transaction that fails takes its rights and groups along, whoever rejects it.
    assert_eq!((create("a", true).status(), create("", false).status()), (409, 422));
    assert_eq!(ann.get("/about").text(), " false true true false");
    let reply = create("a", false);
    assert_eq!(reply.status(), 200, "{}", reply.text());
    assert_eq!(ann.get("/about").text(), "creators false true true false");
    let board: String = reply.json();
    let rename = |client: &bine::test::Client| {
        client.post_json("/boards/rename", &json!({ "board": board, "title": "b" })).status()
    };
    assert_eq!((rename(&ann), rename(&ben)), (204, 403));
    let leave = json!({ "board": board });
    assert_eq!(ann.post_json("/boards/leave", &leave).text().trim(), "true");
    assert_eq!((rename(&ann), rename(&ben)), (403, 403));
}
