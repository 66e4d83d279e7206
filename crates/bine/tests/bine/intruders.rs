//! Attacks on accounts, rights and API tokens in one program.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bine::prelude::*;
use bine::test::{Client, Method, Reply};
use bine::{AccessRules, Accounts, HashingCost, Mail, Who};
use serde_json::json;

use crate::app::{options, program};
use crate::harness::{Folder, Program};

const PASSWORD: &str = "hop vines in May";

/// The links of all mails.
static LINKS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The program under test. Ordinary test runs skip it.
#[test]
fn serve_program_with_accounts_rights_and_tokens() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    let rules = AccessRules::new()
        .member("administrators", "root")
        .read("/board", Who::group("editors"))
        .read("/by-name", Who::user("Zoe"));
    let send = |mail: Mail| async move {
        LINKS.lock().unwrap().extend(mail.link);
        Ok::<(), Error>(())
    };
    let accounts = Accounts::new().hashing_cost(HashingCost::new(8, 1)).mail(send);
    let app = App::new().accounts(accounts).api_tokens().rights(rules).development(false);
    app.page(who)
        .page(board)
        .page(links)
        .table::<Note>()
        .run_with("Usage: intruders", options.lines())
}

#[derive(Table)]
#[table(name = "intruder_note")]
struct Note {
    id: Id<Note>,
}

#[page("/who")]
async fn who(user: Option<User>) -> Response {
    Response::text(user.map_or_else(|| "nobody".to_owned(), |user| user.to_string()))
}

#[page("/board")]
async fn board() -> impl Page {
    html!(<Live><p>confidential</p></Live>)
}

#[page("/links")]
async fn links() -> Response {
    Response::text(LINKS.lock().unwrap().join("\n"))
}

/// A running program and its files.
struct Target {
    program: Option<Program>,
    socket: PathBuf,
    data: PathBuf,
    /// Removes the files when it is dropped.
    _folder: Folder,
}

impl Target {
    fn new() -> Self {
        let folder = Folder::new();
        let (socket, data) = (folder.path().join("control"), folder.path().join("data"));
        let mut own = Self { program: None, socket, data, _folder: folder };
        own.restart(&[]);
        own
    }

    /// Starts the program again with the same data.
    fn restart(&mut self, more: &[&str]) {
        if let Some(program) = self.program.take() {
            program.stop();
        }
        let test = "intruders::serve_program_with_accounts_rights_and_tokens";
        let (data, socket) = (self.data.to_str().unwrap(), self.socket.to_str().unwrap());
        let usual = ["--data", data, "--control", socket, "--hosts", "auto"];
        self.program = Some(Program::start(&mut program(test, &[&usual, more].concat())));
    }

    fn client(&self) -> Client {
        Client::at(self.program.as_ref().unwrap().address())
    }

    fn command(&self, words: &[&str]) -> String {
        let answer = send_command(&self.socket, words);
        answer.strip_prefix("ok\n").unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// A client that has signed up with this name.
    fn sign_up(&self, name: &str) -> Client {
        let client = self.client();
        let reply = sign_up(&client, name);
        assert_eq!(reply.status(), 200, "{reply:?}");
        client
    }

    /// Requests this path with a token.
    fn with_token(&self, method: Method, path: &str, token: &str) -> Reply {
        let request = self.client().request(method, path);
        request.header("Authorization", format!("Bearer {token}")).send()
    }

    fn who(&self, token: &str) -> String {
        let reply = self.with_token(Method::Get, "/who", token);
        if reply.status() == 200 { reply.text().to_owned() } else { reply.status().to_string() }
    }
}

/// Sends a command to the control socket of a server, and returns the response.
pub(crate) fn send_command(socket: &Path, words: &[&str]) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(format!("{}\n", json!(words)).as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn sign_up(client: &Client, name: &str) -> Reply {
    client.post_json("/accounts/sign-up", &json!({ "name": name, "password": PASSWORD }))
}

/// Creates a token for these paths; all paths if the text is empty.
fn token(client: &Client, paths: &str) -> String {
    let mut tab = client.visit("/account/tokens");
    tab.submit(
        "form[action='/account/tokens']",
        [("label", "a test"), ("days", "30"), ("paths", paths)],
    );
    tab.text("code")
}

#[test]
fn blocked_user_has_no_session_and_no_token() {
    let target = Target::new();
    let ann = target.sign_up("Ann");
    let token = token(&ann, "");
    assert_eq!(target.who(&token), "Ann");
    target.command(&["user", "block", "ann"]);
    assert_eq!(target.who(&token), "401");
    assert_eq!(ann.get("/who").text(), "nobody");
    // A token that leaked before the block does not come back.
    target.command(&["user", "unblock", "ann"]);
    assert_eq!(target.who(&token), "401");
}

#[test]
fn password_set_by_the_operator_ends_sessions_and_tokens() {
    let target = Target::new();
    let ann = target.sign_up("Ann");
    let token = token(&ann, "");
    assert_eq!(target.who(&token), "Ann");
    target.command(&["user", "password", "ann", "another good phrase"]);
    assert_eq!(target.who(&token), "401");
    assert_eq!(ann.get("/who").text(), "nobody");
}

#[test]
fn declared_account_inherits_nothing_and_leaves_nothing() {
    let mut target = Target::new();
    let ann = target.sign_up("Ann");
    let before = token(&ann, "");
    let hash = target.command(&["user", "hash", "another good phrase"]);
    let declared = format!("Ann:{}", hash.trim_end());
    // The operator takes the name over from a visitor who has chosen it.
    target.restart(&["--account", &declared]);
    assert_eq!(target.who(&before), "401");
    target.command(&["user", "group", "Ann", "+editors"]);
    let declared_token = target.command(&["user", "token", "Ann", "export"]);
    assert_eq!(target.with_token(Method::Get, "/board", declared_token.trim_end()).status(), 200);
    target.restart(&[]);
    assert_eq!(target.who(declared_token.trim_end()), "401");
    let next = target.sign_up("Ann");
    assert_eq!(next.get("/board").status(), 403);
}

#[test]
fn nobody_signs_up_with_a_name_that_has_rights() {
    let target = Target::new();
    target.command(&["user", "group", "ben", "+editors"]);
    target.command(&["user", "grant", "carl", "read", "/board"]);
    // Other spellings are the same name.
    for name in ["root", "Zoe", "ben", "Ben", "CARL", " root "] {
        let reply = sign_up(&target.client(), name);
        assert_eq!(reply.status(), 422, "{name}: {reply:?}");
        assert!(reply.text().contains("is taken"), "{}", reply.text());
    }
    // The operator gives such a name.
    target.command(&["user", "add", "root", PASSWORD]);
    let other = target.sign_up("Benn");
    assert_eq!(other.get("/board").status(), 403);
}

#[test]
fn account_of_the_same_name_inherits_nothing() {
    let target = Target::new();
    let ann = target.sign_up("Ann");
    let token = token(&ann, "");
    target.command(&["user", "group", "Ann", "+editors"]);
    target.command(&["user", "grant", "Ann", "read", "/who"]);
    assert_eq!(target.with_token(Method::Get, "/board", &token).status(), 200);
    target.command(&["user", "remove", "ANN"]);
    assert_eq!(target.who(&token), "401");
    assert_eq!(ann.get("/board").status(), 401);
    let next = target.sign_up("Ann");
    assert_eq!(next.get("/board").status(), 403);
    assert_eq!(next.get("/who").text(), "Ann");
    assert_eq!(target.who(&token), "401");
}

#[test]
fn token_changes_no_credentials() {
    let target = Target::new();
    let ann = target.sign_up("Ann");
    let token = token(&ann, "");
    let services = [
        (
            "change-password",
            json!({ "current_password": PASSWORD, "new_password": "a new phrase for Ann" }),
        ),
        ("change-email", json!({ "current_password": PASSWORD, "email": "ann@example.org" })),
        ("end-other-sessions", json!({ "current_password": PASSWORD })),
        ("remove", json!({ "current_password": PASSWORD })),
        ("log-in", json!({ "name": "Ann", "password": PASSWORD })),
        ("sign-up", json!({ "name": "Eve", "password": PASSWORD })),
    ];
    for (service, body) in services {
        let call = target.client().request(Method::Post, &format!("/accounts/{service}"));
        let reply = call.header("Authorization", format!("Bearer {token}")).json(&body).send();
        assert_eq!(reply.status(), 403, "{service}: {reply:?}");
        assert_eq!(reply.header("Set-Cookie"), None, "{service}");
    }
    assert_eq!(target.command(&["user", "list"]), "Ann\t-\n");
    // A wrong password is not told apart from the right one.
    let body = json!({ "name": "Ann", "password": "wrong" });
    let call = target.client().request(Method::Post, "/accounts/log-in");
    let reply = call.header("Authorization", format!("Bearer {token}")).json(&body).send();
    assert!(reply.text().contains("API token"), "{}", reply.text());
    for (path, form) in
        [("/account/tokens", "label=more&days=1"), ("/account/tokens/revoke", "id=0")]
    {
        let call = target.client().request(Method::Post, path);
        let call = call.header("Authorization", format!("Bearer {token}"));
        let call = call.header("Content-Type", "application/x-www-form-urlencoded");
        let reply = call.body(form).send();
        assert!((400..500).contains(&reply.status()), "{path}: {reply:?}");
        assert!(!reply.text().contains("bine_"), "{}", reply.text());
    }
    assert_eq!(ann.get("/who").text(), "Ann");
}

#[test]
fn token_of_an_administrator_reaches_no_data_browser() {
    let target = Target::new();
    target.command(&["user", "add", "root", PASSWORD]);
    let root = target.client();
    let fields = json!({ "name": "root", "password": PASSWORD });
    assert_eq!(root.post_json("/accounts/log-in", &fields).status(), 200);
    assert_eq!(root.get("/_bine/data").status(), 200);
    for paths in ["", "/_bine/data/* /_bine/data /_bine/reload"] {
        let token = token(&root, paths);
        for path in ["/_bine/data", "/_bine/data/tables/bine_account"] {
            assert_eq!(target.with_token(Method::Get, path, &token).status(), 401, "{path}");
        }
        // Deployments reload by a token, within its scope.
        assert_eq!(target.with_token(Method::Post, "/_bine/reload", &token).status(), 200);
    }
    let other = token(&root, "/who");
    assert_eq!(target.with_token(Method::Post, "/_bine/reload", &other).status(), 403);
}

#[test]
fn scope_bounds_streams_channels_and_all_spellings() {
    let target = Target::new();
    let ann = target.sign_up("Ann");
    target.command(&["user", "group", "Ann", "+editors"]);
    let all = token(&ann, "");
    assert_eq!(target.with_token(Method::Get, "/board", &all).status(), 200);
    let stream = "/_bine/live?page=%2Fboard";
    let own = token(&ann, "/who /_bine/*");
    for path in [
        "/board",
        "/board/",
        "//board",
        "/%62oard",
        "/who/../board",
        "/who/%2e%2e/board",
        "/x/../board",
        "/accounts/me",
        "/account",
        "/account/tokens",
        stream,
        "/_bine/live?page=%2F%2562oard",
        "/_bine/live?page=%2Fwho%2F..%2Fboard",
        "/_bine/../board",
    ] {
        let reply = target.with_token(Method::Get, path, &own);
        assert_ne!(reply.status(), 200, "{path}: {reply:?}");
        assert!(!reply.text().contains("confidential"), "{path}");
    }
}

#[test]
fn host_of_a_request_never_gets_into_the_link_of_another_user() {
    let target = Target::new();
    target.command(&["user", "add", "Ann", "--email", "ann@example.org", PASSWORD]);
    let ann = target.client();
    let body = json!({ "email": "ann@example.org" }).to_string();
    for host in ["203.0.113.9", "203.0.113.9:80", "intranet", "[2001:db8::1]"] {
        let mut peer = target.program.as_ref().unwrap().connect();
        peer.send(format!(
            "POST /accounts/forgot-password HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        let reply = peer.reply();
        let links = ann.get("/links").text().to_owned();
        assert_eq!(reply.status(), 403, "{host}: {reply:?}");
        assert!(!links.contains(host), "{host}: {links}");
    }
    // The server answers for the host of the target, which the field may contradict.
    let mut peer = target.program.as_ref().unwrap().connect();
    peer.send(format!(
        "POST http://localhost/accounts/forgot-password HTTP/1.1\r\nHost: a.example\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    let reply = peer.reply();
    assert!([204, 400].contains(&reply.status()), "{reply:?}");
    assert!(!ann.get("/links").text().contains("a.example"));
    // The name of this machine is no choice of a client.
    let fields = json!({ "email": "ann@example.org" });
    let reply = ann.post_json("/accounts/forgot-password", &fields);
    assert_eq!(reply.status(), 204, "{}", reply.text());
}
