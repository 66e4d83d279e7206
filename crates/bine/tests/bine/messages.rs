//! The program's own words for the texts of the framework, in the language of the visitor.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use bine::prelude::*;
use bine::store::{CursorError, Error as StoreError, InvalidValue, ValueFault};
use bine::test::{Method, Reply, RequestBuilder, Site};
use bine::{AccessRules, Rule, Upload, VisitorMessage, Who};
use serde::{Deserialize, Serialize};

#[derive(Table)]
struct Guest {
    id: Id<Guest>,
    #[table(unique, length = 1..=20, label = "Name")]
    name: Text,
    #[table(range = 18..=120)]
    age: u8,
}

#[derive(Serialize, Deserialize)]
enum Size {
    Small,
}

#[derive(Serialize, Deserialize)]
struct Pair {
    one: u8,
}

const NOBODY: Rule = Rule::new("nobody", |_| Ok(false));

#[service]
fn register(call: &mut Call, name: Text, age: u8) -> Result<(), Error> {
    call.insert(Guest { id: Id::unassigned(), name, age })?;
    Ok(())
}

#[service]
fn measure(size: Size, pair: Pair) {
    let _ = (size, pair.one);
}

#[service(who = "user")]
fn for_users() {}

#[service(who = NOBODY)]
fn for_nobody() {}

#[service]
fn framed(call: &mut Call) -> Result<(), Error> {
    call.frame().map(drop)
}

#[service]
async fn enter(caller: Caller, user: Text) -> Result<(), Error> {
    caller.session().log_in(&*user).await
}

#[service]
async fn fill(caller: Caller) -> Result<(), Error> {
    caller.session().set("long", "x".repeat(5000)).await
}

/// Fails as a store does.
#[page("/store/{error}")]
async fn store_error(error: Path<Text>) -> Result<Response, Error> {
    let invalid = |fault| {
        let (column, label) = ("name".into(), None);
        StoreError::InvalidValues(vec![InvalidValue { column, label, fault }])
    };
    Err(match &**error {
        "required" => invalid(ValueFault::Missing).into(),
        "type" => invalid(ValueFault::Type(bine::store::Kind::Bool)).into(),
        "type_refused" => invalid(ValueFault::Unreadable).into(),
        "bytes_length" => invalid(ValueFault::BytesLength { least: 1, most: 2, actual: 3 }).into(),
        "taken_together" => invalid(ValueFault::Duplicate { with: vec!["place".into()] }).into(),
        "row_gone" => {
            StoreError::NoSuchRow { table: "guest".into(), id: bine::store::RowId::default() }
                .into()
        }
        "row_in_use" => StoreError::StillReferenced { by: "guest".into() }.into(),
        "conflict" => StoreError::Conflict.into(),
        "writes_busy" => StoreError::Busy.into(),
        "row_too_large" => StoreError::TooLarge.into(),
        "disk_full" => StoreError::Full.into(),
        "cannot_save" => StoreError::Closed.into(),
        "maybe_saved" => StoreError::Unconfirmed("a reason".into()).into(),
        "bad_cursor" => CursorError::Invalid.into(),
        "failed" => std::io::Error::other("a fault of the test").into(),
        _ => Error::not_found("the words of the program"),
    })
}

/// Takes one argument of a type from the query.
macro_rules! argument_pages {
    ($($path:tt $name:ident: $type:ty,)*) => {$(
        #[page($path)]
        async fn $name(value: Query<$type>) -> Response {
            let _ = value;
            Response::text("read")
        }
    )*};
}

argument_pages! {
    "/argument/integer_range" integer_range: u8,
    "/argument/unsigned" unsigned: u32,
    "/argument/integer" integer: i64,
    "/argument/number" number: f64,
    "/argument/character" character: char,
    "/argument/id" id: Id<Guest>,
    "/argument/moment" moment: bine::store::Time,
    "/argument/boolean" boolean: bool,
    "/argument/base64" base64: bine::Bytes,
    "/argument/cursor" cursor: bine::store::Cursor,
}

#[page(POST "/form")]
async fn form(value: Form<Text>) -> Response {
    Response::text(value.0.to_string())
}

#[page(POST "/json")]
async fn json(value: bine::Json<u8>) -> Response {
    let _ = value;
    Response::text("read")
}

#[page(POST "/file")]
async fn file(value: Upload) -> Response {
    drop(value);
    Response::text("read")
}

#[page("/no_file")]
fn no_file() -> Result<Response, Error> {
    Response::file("/nowhere/at/all")
}

#[page("/not_a_file")]
fn not_a_file() -> Result<Response, Error> {
    Response::file("/")
}

#[page("/frame")]
async fn frame(frame: Frame) -> Response {
    drop(frame);
    Response::text("read")
}

#[page("/register")]
async fn registration() -> impl Page {
    html! {
        <form method="post" action={register}>
            <input name="name" aria-label="Name"> <input name="age" aria-label="Age">
        </form>
    }
}

#[page("/leave")]
async fn leave() -> impl Page {
    html!(<form method="post" action={action!(name = "leave", |_call| ())}></form>)
}

/// The language and the key of a message.
#[expect(clippy::unnecessary_wraps, reason = "a program may leave a message to the framework")]
pub(crate) fn words(message: &VisitorMessage, language: &str) -> Option<Cow<'static, str>> {
    let shown = format!("[{language}:{}]", message.key());
    Some(match message {
        VisitorMessage::Argument { subject, detail, .. } => {
            format!("{shown} {subject} {detail}").into()
        }
        _ => shown.into(),
    })
}

/// Answers with the language and the key of each message.
fn app() -> App {
    let app = App::new().table::<Guest>().in_memory().messages(&["en", "de"], words);
    let app = app.service(register).service(measure).service(for_users).service(for_nobody);
    let app = app.service(framed).service(enter).service(fill).page(store_error);
    let app = app.page(integer_range).page(unsigned).page(integer).page(number).page(character);
    let app = app.page(id).page(moment).page(boolean).page(base64).page(cursor);
    let app = app.page(form).page(json).page(file).page(no_file).page(not_a_file);
    let rules = AccessRules::new().allow("/closed", Who::Administrators);
    app.page(frame).page(registration).page(leave).rights(rules).api_tokens()
}

/// The messages that these tests do not cause: overload, faults of a disk, bodies of a megabyte, and
/// races of sessions.
const NOT_CAUSED: [&str; 9] = [
    "server_busy",
    "took_too_long",
    "body_too_long",
    "busy",
    "busy_page",
    "busy_title",
    "session_ended",
    "too_long",
    "unreadable",
];

const FORM: &str = "application/x-www-form-urlencoded";

struct Visitor {
    site: Site,
    seen: BTreeSet<&'static str>,
}

impl Visitor {
    fn get(&self, path: &str) -> RequestBuilder {
        self.request(Method::Get, path)
    }

    fn post(&self, path: &str, kind: &str, body: impl Into<Vec<u8>>) -> RequestBuilder {
        self.request(Method::Post, path).header("Content-Type", kind).body(body)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.site.request(method, path).header("Accept-Language", "fr, de-CH;q=0.8, en;q=0.5")
    }

    /// Checks that the response to a request has the messages with these keys in German.
    #[track_caller]
    fn check(&mut self, request: RequestBuilder, status: u16, keys: &[&'static str]) -> Reply {
        let reply = request.send();
        assert_eq!(reply.status(), status, "{keys:?} {}", reply.text());
        for key in keys {
            assert!(reply.text().contains(&format!("[de:{key}]")), "{key}\n{}", reply.text());
            self.seen.insert(key);
        }
        reply
    }
}

#[test]
fn every_message_reaches_the_program() {
    // This test is long because it causes each message once.
    let mut all = Visitor { site: Site::new(app()), seen: BTreeSet::new() };
    for (key, status) in [
        ("required", 422),
        ("type", 422),
        ("type_refused", 422),
        ("bytes_length", 422),
        ("taken_together", 409),
        ("row_gone", 404),
        ("row_in_use", 409),
        ("conflict", 409),
        ("writes_busy", 503),
        ("row_too_large", 413),
        ("disk_full", 507),
        ("cannot_save", 503),
        ("maybe_saved", 503),
        ("bad_cursor", 400),
        ("failed", 500),
    ] {
        all.check(all.get(&format!("/store/{key}")), status, &[key]);
    }
    // In production, the visitor reads the number of an error in place of its causes.
    let production = Visitor { site: Site::new(app().development(false)), seen: BTreeSet::new() };
    all.check(production.get("/store/failed"), 500, &["numbered"]);
    for key in [
        "integer_range",
        "unsigned",
        "integer",
        "number",
        "character",
        "id",
        "moment",
        "boolean",
        "base64",
        "cursor",
    ] {
        all.check(all.get(&format!("/argument/{key}?value=-+")), 400, &["argument", key]);
    }
    all.check(all.get("/argument/number"), 400, &["missing_from"]);
    all.check(all.get("/argument/number?value=%ff"), 400, &["not_encoded"]);
    all.check(all.post("/form", FORM, b"value=\xff".to_vec()), 400, &["not_utf8"]);
    all.check(all.post("/form", "text/plain", "a"), 400, &["no_form"]);
    all.check(all.post("/form", FORM, "a=&".repeat(1001)), 400, &["beyond_fields"]);
    let multipart = "multipart/form-data; boundary=b";
    all.check(all.post("/form", multipart, "--c--"), 400, &["broken_form"]);
    all.check(all.post("/file", FORM, "a=b"), 400, &["no_file_form"]);
    all.check(all.request(Method::Post, "/json"), 400, &["no_body"]);
    all.check(all.post("/json", "text/plain", "1"), 400, &["json_type"]);
    all.check(all.post("/json", "application/json", "a"), 400, &["json"]);
    all.check(all.get("/no_file"), 404, &["no_file"]);
    all.check(all.get("/not_a_file"), 404, &["not_a_file"]);

    // Services.
    all.check(all.post("/bine/register", FORM, ""), 400, &["missing"]);
    all.check(
        all.post("/bine/register", FORM, "name=&age=7"),
        422,
        &["text_length", "range", "label"],
    );
    all.check(all.post("/bine/register", FORM, "name=a&age=30"), 204, &[]);
    all.check(all.post("/bine/register", FORM, "name=a&age=30"), 409, &["taken"]);
    let body = "size=Huge&pair=1";
    all.check(all.post("/bine/measure", FORM, body), 400, &["unexpected", "not_from_form"]);
    let body = "nam=a&other=b";
    all.check(
        all.post("/bine/register", FORM, body),
        400,
        &["unknown_argument", "unknown_argument_near"],
    );
    let body = ["a=&b=&c=&d=&e=&f=&", "g=&h=&i=&j=&k=&l=&"].concat();
    all.check(all.post("/bine/register", FORM, body), 400, &["unknown_arguments"]);
    all.check(all.post("/bine/register", FORM, "name=%ff"), 400, &["malformed"]);
    all.check(all.post("/bine/register", "text/plain", "a"), 415, &["media_type"]);
    all.check(all.post("/bine/for_users", FORM, ""), 401, &["log_in_first"]);
    let token = all.post("/bine/for_nobody", FORM, "").header("Authorization", "bearer brewing");
    all.check(token, 401, &["token_not_accepted"]);
    let foreign = all.post("/bine/register", FORM, "").header("Origin", "http://evil.example");
    all.check(foreign, 403, &["another_site_calls"]);
    let foreign = all.post("/form", FORM, "value=a").header("Origin", "http://evil.example");
    all.check(foreign, 403, &["another_site_sends"]);
    all.check(all.post("/bine/framed", FORM, ""), 400, &["no_frame"]);
    all.check(all.post("/bine/enter", FORM, "user=*"), 422, &["user_name"]);
    all.check(all.post("/bine/fill", FORM, ""), 413, &["session_full"]);
    let old = all.post("/_bine/action/leave/AAAA", FORM, "");
    all.check(old, 403, &["page_of_other_visit"]);
    let old = all.post("/_bine/action/gone/AAAA", FORM, "");
    all.check(old, 410, &["page_of_old_program"]);

    // Pages of errors.
    let page = |request: RequestBuilder| request.header("Accept", "text/html");
    all.check(page(all.get("/nowhere")), 404, &["nothing_here", "title"]);
    let reply = all.check(page(all.post("/frame", FORM, "")), 405, &["method"]);
    assert_eq!(reply.header("content-language"), Some("de"));
    assert!(reply.text().contains("<html lang=\"de\">"), "{}", reply.text());
    let vary: Vec<_> =
        reply.headers().filter(|(name, _)| name.eq_ignore_ascii_case("vary")).collect();
    assert!(vary.iter().any(|(_, value)| *value == "Accept-Language"), "{vary:?}");
    let origin = format!("http://{}", all.site.address());
    let form = page(all.post("/bine/for_users", FORM, ""));
    let form = form.header("Referer", format!("{origin}/register"));
    all.check(form, 401, &["back"]);
    let long = all.post("/form", FORM, "a".repeat((1 << 20) + 1));
    all.check(page(long), 413, &["too_large", "title"]);
    all.check(all.get("/").header("Host", "evil.example"), 421, &["unknown_host"]);
    // The server has no request, and so no language of the visitor.
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nLong: {}\r\n\r\n", "a".repeat(70_000));
    for (request, status) in [("GET / HTTP/1.1\r\nHost : a\r\n\r\n", "400"), (&long, "431")] {
        let mut stream = TcpStream::connect(all.site.address()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{reply}");
        assert!(reply.ends_with("[en:request_fault]\n"), "{reply}");
        all.seen.insert("request_fault");
    }
    let mut location = "/frame".to_owned();
    for _ in 0..2 {
        location = all.get(&location).send().header("location").unwrap().to_owned();
    }
    all.check(all.get(&location), 400, &["cookies_needed"]);

    // The client keeps the cookie of its session.
    let client = all.site.client();
    let de = |request: RequestBuilder| request.header("Accept-Language", "de");
    let enter = client.request(Method::Post, "/bine/enter").header("Content-Type", FORM);
    assert_eq!(enter.body("user=ann").send().status(), 204);
    all.check(de(client.request(Method::Post, "/bine/for_nobody")), 403, &["not_allowed"]);

    // Rights and API tokens.
    all.check(all.get("/closed"), 401, &["log_in_to_see"]);
    all.check(de(client.request(Method::Get, "/closed")), 403, &["no_right"]);
    let bearer = |request: RequestBuilder, secret: &str| {
        request.header("Authorization", format!("Bearer {secret}"))
    };
    all.check(bearer(all.get("/"), "bine_unknown"), 401, &["invalid_token"]);
    let token = client.request(Method::Post, "/account/tokens").header("Content-Type", FORM);
    let page = token.body("label=a&days=1&paths=/bine/*").send();
    let start = page.text().find("bine_").unwrap();
    let secret = page.text()[start..start + 37].to_owned();
    all.check(bearer(all.get("/frame"), &secret), 403, &["token_scope"]);
    let enter = all.post("/bine/enter", FORM, "user=ben");
    all.check(bearer(enter, &secret), 403, &["log_in_by_token"]);

    let known: BTreeSet<_> = VisitorMessage::examples().iter().map(VisitorMessage::key).collect();
    assert_eq!(known.len(), VisitorMessage::examples().len(), "two messages have one key");
    all.seen.extend(NOT_CAUSED);
    // Other tests cause the messages of the areas.
    let is_of_core = |key: &&&str| !key.starts_with("account_") && !key.starts_with("api_token_");
    let missed: Vec<_> = known.difference(&all.seen).filter(is_of_core).collect();
    assert_eq!(missed, [&"frame_full"], "cause the message in this test");
}

#[test]
fn returns_a_rejected_form_in_the_language_of_the_visitor() {
    let visitor = Visitor { site: Site::new(app()), seen: BTreeSet::new() };
    let origin = format!("http://{}", visitor.site.address());
    let reply = visitor
        .post("/bine/register", FORM, "name=&age=x&more=")
        .header("Accept", "text/html")
        .header("Referer", format!("{origin}/register"))
        .send();
    // The page is in the language of the program.
    assert_eq!((reply.status(), reply.header("content-language")), (422, None));
    for part in [">[de:integer_range]</p>", ">more: [de:unknown_argument_near]</p></form>"] {
        assert!(reply.text().contains(part), "{part}\n{}", reply.text());
    }
}

#[test]
fn speaks_the_default_language_to_other_visitors() {
    let site = Site::new(app());
    for accepted in ["", "fr", "*", "de;q=0", "EN-us, de;q=0.5"] {
        let reply =
            site.request(Method::Get, "/nowhere").header("Accept-Language", accepted).send();
        assert_eq!(reply.text(), "[en:nothing_here]\n", "{accepted}");
        assert_eq!(reply.header("content-language"), Some("en"));
    }
    // The words of the program stay its own.
    let reply = site.request(Method::Get, "/store/own").header("Accept-Language", "de").send();
    assert_eq!(reply.text(), "the words of the program\n");
}

#[test]
fn sends_no_language_for_a_program_without_words() {
    let site =
        Site::new(App::new().page(registration).service(register).table::<Guest>().in_memory());
    let reply = site.request(Method::Get, "/nowhere").header("Accept-Language", "de").send();
    assert_eq!(reply.text(), "There is nothing at this address.\n");
    assert_eq!(reply.header("content-language"), None);
    assert!(reply.headers().all(|(_, value)| value != "Accept-Language"));
}
