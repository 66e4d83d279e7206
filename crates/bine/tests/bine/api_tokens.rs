//! API tokens: a request with one has its user everywhere a session does, within its scope, until it
//! expires or is revoked.

use bine::prelude::*;
use bine::test::{Client, Method, Reply, Site};
use bine::{ApiTokens, NewApiToken, Rule};
use serde_json::{Value, json};

use crate::harness::KINDS;
use crate::logins::{Waiting, ask, log_in_as, start};

#[page(POST "/log-in/{user}")]
async fn log_in(session: Session, user: Path<Text>) -> Result<Response, Error> {
    session.log_in(user).await?;
    Ok(Response::text("in"))
}

#[page(POST "/make")]
async fn make(tokens: ApiTokens, wanted: Json<Wanted>) -> Result<Json<Value>, Error> {
    let Wanted { read_only, paths, days } = wanted.0;
    let mut token = NewApiToken::new("a test").paths(paths).expires_in_days(days);
    if read_only {
        token = token.read_only();
    }
    let created = tokens.create(token).await?;
    Ok(Json(json!({ "secret": created.secret, "id": created.token.id.to_string() })))
}

#[derive(serde::Deserialize)]
struct Wanted {
    read_only: bool,
    paths: Vec<String>,
    days: u32,
}

#[page(POST "/revoke/{id}")]
async fn revoke(tokens: ApiTokens, id: Path<Text>) -> Result<Json<bool>, Error> {
    let id = id.0.parse().map_err(|_| Error::not_found("no id"))?;
    Ok(Json(tokens.revoke(id).await?))
}

#[page("/list")]
async fn list(tokens: ApiTokens) -> Json<Vec<String>> {
    Json(tokens.all().into_iter().map(|token| token.scope).collect())
}

#[page("/whoami")]
async fn whoami(user: Option<User>) -> Response {
    Response::text(user.map_or("nobody".to_owned(), |user| user.to_string()))
}

#[page(POST "/whoami")]
fn whoami_with_body(user: User, body: bine::Body) -> Response {
    Response::text(format!("{user} sent {}", body.0.len()))
}

#[page("/visits")]
async fn visits(session: Session) -> Result<Response, Error> {
    let visits: u32 = session.get("visits").unwrap_or(0) + 1;
    session.set("visits", visits).await?;
    Ok(Response::text(visits.to_string()))
}

#[service(who = Rule::USERS)]
fn greet(call: &mut Call) -> Text {
    call.user().map_or_else(Text::default, |user| user.0)
}

fn site() -> Site {
    let app = App::new().api_tokens().page(log_in).page(make).page(revoke).page(list);
    Site::new(app.page(whoami).page(whoami_with_body).page(visits).service(greet).in_memory())
}

/// A client with a session of this user.
fn logged_in(site: &Site, user: &str) -> Client {
    let client = site.client();
    assert_eq!(client.request(Method::Post, &format!("/log-in/{user}")).send().text(), "in");
    client
}

fn new_token(client: &Client, wanted: &Value) -> (String, String) {
    let reply = client.post_json("/make", wanted);
    assert_eq!(reply.status(), 200, "{reply:?}");
    let made: Value = reply.json();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("secret"), text("id"))
}

fn anything() -> Value {
    json!({ "read_only": false, "paths": [], "days": 1 })
}

fn with_token(site: &Site, method: Method, path: &str, secret: &str) -> Reply {
    site.request(method, path).header("Authorization", format!("Bearer {secret}")).send()
}

#[test]
fn identifies_the_user_of_a_token_in_pages_and_services() {
    let site = site();
    let ann = logged_in(&site, "ann");
    let (secret, _) = new_token(&ann, &anything());
    assert!(secret.starts_with("bine_") && secret.len() == 37, "{secret}");
    let reply = with_token(&site, Method::Get, "/whoami", &secret);
    assert_eq!(reply.text(), "ann");
    // No shared cache may serve it to others, and it sets no cookie.
    assert_eq!(reply.header("Vary"), Some("Authorization"));
    assert_eq!(reply.header("Cache-Control"), Some("no-store"));
    assert_eq!(reply.header("Set-Cookie"), None);
    let bearer = format!("Bearer {secret}");
    let call = site.request(Method::Post, "/bine/greet").header("Authorization", &*bearer);
    assert_eq!(call.json(&json!({})).send().json::<String>(), "ann");
    assert_eq!(site.post_json("/bine/greet", &json!({})).status(), 401);
    let long = "x".repeat(300_000);
    let post = site.request(Method::Post, "/whoami").header("Authorization", bearer);
    assert_eq!(post.body(long).send().text(), "ann sent 300000");
}

#[test]
fn accepts_a_token_as_the_password_of_its_user() {
    let site = site();
    let (secret, _) = new_token(&logged_in(&site, "ann"), &anything());
    let basic = |pair: String| {
        let field = format!("Basic {}", base64(pair.as_bytes()));
        site.request(Method::Get, "/whoami").header("Authorization", field).send()
    };
    assert_eq!(basic(format!("ann:{secret}")).text(), "ann");
    assert_eq!(basic(format!(":{secret}")).text(), "ann");
    assert_eq!(basic(format!("ben:{secret}")).status(), 401);
    // Passwords and foreign credentials are for other parts of a program.
    assert_eq!(basic("ann:secret".to_owned()).text(), "nobody");
}

#[test]
fn rejects_invalid_tokens_instead_of_serving_a_visitor() {
    let site = site();
    let ann = logged_in(&site, "ann");
    let (secret, id) = new_token(&ann, &anything());
    let mut forged = secret.clone();
    let last = if forged.pop() == Some('A') { 'B' } else { 'A' };
    forged.push(last);
    for wrong in [&*forged, "bine_", "bine_short", &"bine_x".repeat(500)] {
        let reply = with_token(&site, Method::Get, "/whoami", wrong);
        assert_eq!(reply.status(), 401, "{wrong}");
        let challenge = reply.header("WWW-Authenticate").unwrap();
        assert!(challenge.starts_with("Bearer ") && challenge.contains("invalid_token"));
    }
    // A token of a channel is not a token of a user.
    assert_eq!(with_token(&site, Method::Get, "/whoami", "eyJ.x.y").text(), "nobody");
    assert!(!logged_in(&site, "ben").post_json(&format!("/revoke/{id}"), &()).json::<bool>());
    assert_eq!(with_token(&site, Method::Get, "/whoami", &secret).text(), "ann");
    assert!(ann.post_json(&format!("/revoke/{id}"), &()).json::<bool>());
    assert_eq!(with_token(&site, Method::Get, "/whoami", &secret).status(), 401);
}

#[test]
fn permits_only_requests_within_the_scope() {
    let site = site();
    let ann = logged_in(&site, "ann");
    let wanted = json!({ "read_only": true, "paths": ["/whoami", "/list"], "days": 30 });
    let (secret, _) = new_token(&ann, &wanted);
    assert_eq!(with_token(&site, Method::Get, "/whoami", &secret).text(), "ann");
    for (method, path) in
        [(Method::Post, "/whoami"), (Method::Get, "/visits"), (Method::Get, "/nothing")]
    {
        let reply = with_token(&site, method, path, &secret);
        assert_eq!(reply.status(), 403, "{method:?} {path}");
        assert!(reply.header("WWW-Authenticate").unwrap().contains("insufficient_scope"));
        assert!(reply.text().contains("read /whoami /list"), "{}", reply.text());
    }
    assert_eq!(ann.get("/list").json::<Vec<String>>(), ["read /whoami /list"]);
}

#[test]
fn token_cannot_create_or_revoke_tokens_or_log_in() {
    let site = site();
    let (secret, id) = new_token(&logged_in(&site, "ann"), &anything());
    let bearer = format!("Bearer {secret}");
    let post = |path: &str| site.request(Method::Post, path).header("Authorization", &*bearer);
    assert_eq!(post("/make").json(&anything()).send().status(), 403);
    assert_eq!(post(&format!("/revoke/{id}")).send().status(), 403);
    let reply = post("/log-in/ben").send();
    assert_eq!((reply.status(), reply.header("Set-Cookie")), (403, None));
}

#[test]
fn token_has_session_values_without_a_cookie() {
    let site = site();
    let ann = logged_in(&site, "ann");
    let (one, _) = new_token(&ann, &anything());
    let (two, _) = new_token(&ann, &anything());
    for (secret, expected) in [(&one, "1"), (&one, "2"), (&two, "1"), (&one, "3")] {
        let reply = with_token(&site, Method::Get, "/visits", secret);
        assert_eq!((reply.text(), reply.header("Set-Cookie")), (expected, None));
    }
    assert_eq!(ann.get("/visits").text(), "1");
}

#[test]
fn refuses_invalid_properties_and_too_many_tokens() {
    let site = site();
    let ann = logged_in(&site, "ann");
    for (wanted, argument) in [
        (json!({ "read_only": false, "paths": ["api"], "days": 1 }), "paths"),
        (json!({ "read_only": false, "paths": [], "days": 0 }), "days"),
        (json!({ "read_only": false, "paths": [], "days": 366 }), "days"),
    ] {
        let reply = ann.post_json("/make", &wanted);
        assert_eq!(reply.status(), 422, "{wanted}");
        assert!(reply.text().contains(argument), "{}", reply.text());
    }
    for _ in 0..50 {
        new_token(&ann, &anything());
    }
    let reply = ann.post_json("/make", &anything());
    assert_eq!(reply.status(), 409, "{reply:?}");
    assert!(reply.text().contains("at most 50"), "{}", reply.text());
    // Another user's tokens are not affected.
    new_token(&logged_in(&site, "ben"), &anything());
}

#[test]
fn pages_show_a_token_once_and_revoke_it() {
    let site = site();
    let ann = logged_in(&site, "ann");
    assert_eq!(site.get("/account/tokens").status(), 401);
    let mut tab = ann.visit("/account/tokens");
    tab.submit("form", [("label", "phone"), ("days", "30"), ("paths", "/whoami")]);
    let secret = tab.text("code");
    assert_eq!(with_token(&site, Method::Get, "/whoami", &secret).text(), "ann");
    tab.visit("/account/tokens");
    tab.expect("td", "phone");
    assert!(!tab.text("table").contains(&secret));
    tab.click("td button");
    tab.expect("p:nth-child(3)", "You have no tokens.");
    assert_eq!(with_token(&site, Method::Get, "/whoami", &secret).status(), 401);
}

#[test]
fn waiting_requests_end_when_their_token_is_revoked() {
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let program = start(scheduler);
        let cookie = log_in_as(program.address(), "ann");
        let mut peer = program.connect();
        let form = "Content-Type: application/x-www-form-urlencoded\r\n";
        let fields = format!("{cookie}{form}");
        let make = |peer: &mut _| {
            let page =
                ask(peer, "POST /account/tokens", &fields, "label=a&days=1").text().to_owned();
            let start = page.find("bine_").unwrap();
            page[start..start + 37].to_owned()
        };
        let (kept, revoked) = (make(&mut peer), make(&mut peer));
        let field = |secret: &str| format!("Authorization: Bearer {secret}\r\n");
        let (staying, ending) = (
            Waiting::by(&program, "ann", &field(&kept)),
            Waiting::by(&program, "ann", &field(&revoked)),
        );
        let page = ask(&mut peer, "GET /account/tokens", &cookie, "").text().to_owned();
        let id = page.rsplit_once("name=\"id\" value=\"").unwrap().1[..36].to_owned();
        let reply = ask(&mut peer, "POST /account/tokens/revoke", &fields, &format!("id={id}"));
        assert_eq!(reply.status(), 303, "{reply:?}");
        ending.expect_end();
        assert_eq!(ask(&mut peer, "POST /publish/inbox/ann", "", "").text(), "said");
        staying.expect_news();
    }
}

/// Base64 with padding (RFC 4648 section 4).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |part: &[u8]| {
        let bits = part.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - part.len()));
        let letter = |place: usize| {
            let index = (bits >> (18 - 6 * place)) as usize & 63;
            if place <= part.len() { LETTERS[index] as char } else { '=' }
        };
        [letter(0), letter(1), letter(2), letter(3)]
    };
    bytes.chunks(3).flat_map(group).collect()
}
