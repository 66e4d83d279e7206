//! Tests of calls between services of one program.

use std::sync::Arc;

use bine_http::Method;
use bine_macros::service;
use bine_store::Id;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::call_arguments::{CallArguments, ServiceArguments};
use super::{InProcessAnswer, InProcessService, OtherServices, ServiceDirectory, ServiceSource};
use crate::error::Error;
use crate::respond::Response;
use crate::service::Rule;
use crate::service::{Call, Callable as _, Caller};
use crate::store::Transaction;
use crate::test::{Client, Reply, Site};
use crate::wire::Value;
use crate::{App, Text};

#[derive(Debug, PartialEq, bine_macros::Table)]
#[table(crate = crate)]
struct Note {
    id: Id<Note>,
    #[table(length = 1..=20)]
    text: Text,
}

#[derive(Serialize, Deserialize)]
struct Line {
    text: Text,
    count: Option<u64>,
}

#[service(crate = crate)]
fn write(call: &mut Call, lines: Vec<Line>) -> Result<u64, Error> {
    for Line { text, count } in lines {
        for _ in 0..count.unwrap_or(1) {
            call.insert(Note { id: Id::unassigned(), text: text.clone() })?;
        }
    }
    Ok(call.all::<Note>().count() as u64)
}

#[service(crate = crate)]
fn write_and_panic(call: &mut Call) -> Result<(), Error> {
    call.insert(Note { id: Id::unassigned(), text: "panics".into() })?;
    panic!("as the test wants");
}

#[service(once, crate = crate)]
fn write_once(call: &mut Call) -> Result<(), Error> {
    call.insert(Note { id: Id::unassigned(), text: "once".into() })?;
    Ok(())
}

#[service(safe, crate = crate)]
fn double(number: u64) -> u64 {
    number * 2
}

#[service(crate = crate)]
async fn slowly(caller: Caller, number: u64) -> Result<u64, Error> {
    caller.call_service("/bine/double", &json!({ "number": number })).await
}

#[service(who = "user", crate = crate)]
fn who_calls(caller: Caller) -> Option<Text> {
    caller.session().user()
}

#[service(crate = crate)]
async fn enter(caller: Caller, user: Text) -> Result<(), Error> {
    caller.session().log_in(&*user).await
}

#[service(crate = crate)]
fn page() -> Response {
    Response::text("for browsers")
}

#[service(crate = crate)]
fn descend(call: &mut Call, levels: u64) -> Result<u64, Error> {
    if levels == 0 {
        return Ok(0);
    }
    let levels = json!({ "levels": levels - 1 });
    Ok(1 + call.call_service::<u64>("/bine/descend", &levels)?)
}

#[service(crate = crate)]
async fn descend_slowly(caller: Caller, levels: u64) -> Result<u64, Error> {
    if levels == 0 {
        return Ok(0);
    }
    let levels = json!({ "levels": levels - 1 });
    Ok(1 + caller.call_service::<u64>("/bine/descend_slowly", &levels).await?)
}

/// Calls a service within a transaction, between two writes, and returns how the call ended.
#[service(crate = crate)]
fn within(call: &mut Call, path: Text, arguments: serde_json::Value) -> Result<String, Error> {
    call.insert(Note { id: Id::unassigned(), text: "before".into() })?;
    let told = match call.call_service::<Value>(&path, &arguments) {
        Ok(answer) => format!("{answer}"),
        Err(error) => format!("error: {error:?}"),
    };
    call.insert(Note { id: Id::unassigned(), text: "after".into() })?;
    Ok(told)
}

/// Calls a service outside of a transaction.
#[service(crate = crate)]
async fn outside(caller: Caller, path: Text, arguments: serde_json::Value) -> Result<Value, Error> {
    caller.call_service(&path, &arguments).await
}

#[service(safe, crate = crate)]
fn notes(caller: Caller) -> Vec<Text> {
    caller.store().read().all::<Note>().map(|note| note.text).collect()
}

/// Logs in by one service, and returns the user that the next one sees.
#[service(crate = crate)]
async fn enter_and_ask(caller: Caller) -> Result<Value, Error> {
    caller.call_service::<()>("/bine/enter", &json!({ "user": "eve" })).await?;
    caller.call_service("/bine/who_calls", &json!({})).await
}

/// A service that is no function of Rust: it adds two numbers.
struct Sum;

impl Sum {
    fn of(given: &CallArguments) -> Result<Value, Error> {
        let taken = <(f64, f64)>::take(given, &[("a", ""), ("b", "")]);
        let (a, b) =
            taken.map_err(|wrong| Error::of_arguments(bine_http::Status::BAD_REQUEST, wrong))?;
        Ok(json!(a + b))
    }
}

impl InProcessService for Sum {
    fn call(&self, _: Caller, given: CallArguments) -> InProcessAnswer {
        Box::pin(async move { Self::of(&given) })
    }

    fn join(&self, _: Caller, given: CallArguments, _: &mut Transaction) -> Result<Value, Error> {
        Self::of(&given)
    }
}

impl ServiceSource for Sum {
    fn find(&self, path: &str) -> Option<Arc<dyn InProcessService>> {
        (path == "/sum").then(|| Arc::new(Self) as Arc<dyn InProcessService>)
    }
}

fn services() -> ServiceDirectory {
    ServiceDirectory::of(&[
        write.service().route(),
        write_and_panic.service().route(),
        write_once.service().route(),
        double.service().route(),
        slowly.service().route(),
        who_calls.service().route(),
        enter.service().route(),
        page.service().route(),
        descend.service().route(),
        descend_slowly.service().route(),
    ])
}

fn site() -> Site {
    let app = App::new().table::<Note>().in_memory().default_service_rule(Rule::ANYONE);
    let app = app.state(OtherServices(Arc::new(Sum)));
    let app = app.service(within).service(outside).service(notes).service(descend);
    let app = app.service(descend_slowly).service(enter_and_ask).service(write);
    let app = app.service(write_and_panic).service(write_once).service(double).service(slowly);
    Site::new(app.service(who_calls).service(enter).service(page))
}

fn post(client: &Client, path: &str, arguments: &Value) -> Reply {
    let request = client.request(Method::Post, path).header("Content-Type", "application/json");
    request.body(arguments.to_string()).send()
}

/// Calls `path` through another service, and returns what that one answers.
#[track_caller]
fn check(client: &Client, through: &str, path: &str, arguments: &Value, expected: &str) {
    let call = json!({ "path": path, "arguments": arguments });
    let reply = post(client, through, &call);
    assert_eq!(reply.text(), expected, "{path} {}", reply.status());
}

fn stored(client: &Client) -> String {
    client.request(Method::Get, "/bine/notes").send().text().to_owned()
}

#[test]
fn called_service_joins_the_transaction_of_its_caller() {
    let site = site();
    let client = site.client();
    let lines = json!({ "lines": [{ "text": "a" }, { "text": "b", "count": 2 }] });
    // The called service sees the note that its caller has written.
    check(&client, "/bine/within", "/bine/write", &lines, "\"4\"");
    assert_eq!(stored(&client), r#"["before","a","b","b","after"]"#);
    check(&client, "/bine/within", "/bine/double", &json!({ "number": 4 }), "\"8\"");
}

#[test]
fn failed_service_loses_its_own_writes_only() {
    let site = site();
    let client = site.client();
    let lines = json!({ "lines": [{ "text": "a" }, { "text": "" }] });
    let reply =
        post(&client, "/bine/within", &json!({ "path": "/bine/write", "arguments": lines }));
    assert!(reply.text().contains("must have from 1 to 20 letters"), "{}", reply.text());
    let nothing = json!({});
    let panics = "\"error: 500 : /bine/write_and_panic panicked\"";
    check(&client, "/bine/within", "/bine/write_and_panic", &nothing, panics);
    assert_eq!(stored(&client), r#"["before","after","before","after"]"#);
}

#[test]
fn refuses_services_that_cannot_join_a_transaction() {
    let site = site();
    let client = site.client();
    for (path, arguments, reason) in [
        ("/bine/slowly", json!({ "number": 1 }), "but that one awaits: call it before or after"),
        ("/bine/write_once", json!({}), "but that one runs only once"),
        ("/bine/page", json!({}), "only a browser can use"),
        ("/bine/none", json!({}), "/bine/none, which is no service of the program"),
    ] {
        let call = json!({ "path": path, "arguments": arguments });
        let reply = post(&client, "/bine/within", &call);
        assert!(reply.text().contains(reason), "{path} {}", reply.text());
    }
    assert_eq!(stored(&client).matches("before").count(), 4);
    assert!(!stored(&client).contains("once"));
}

#[test]
fn answers_pass_as_json_outside_of_a_transaction() {
    let site = site();
    let client = site.client();
    let lines = json!({ "lines": [{ "text": "a" }] });
    check(&client, "/bine/outside", "/bine/write", &lines, "1");
    check(
        &client,
        "/bine/outside",
        "/bine/slowly",
        &json!({ "number": "9007199254740993" }),
        "\"18014398509481986\"",
    );
    check(&client, "/bine/outside", "/bine/write_once", &json!({}), "null");
    check(&client, "/bine/outside", "/sum", &json!({ "a": 1.5, "b": 2 }), "3.5");
    assert_eq!(stored(&client), r#"["a","once"]"#);
    let reply =
        post(&client, "/bine/outside", &json!({ "path": "/sum", "arguments": { "a": 1, "c": 2 } }));
    assert_eq!(reply.status(), 400);
    assert!(reply.text().contains("`c` is no argument of this service"), "{}", reply.text());
    assert!(reply.text().contains("`b` is missing"), "{}", reply.text());
}

#[test]
fn called_service_has_the_user_and_the_rule_of_a_call() {
    let site = site();
    let client = site.client();
    for through in ["/bine/outside", "/bine/within"] {
        let call = json!({ "path": "/bine/who_calls", "arguments": {} });
        let reply = post(&client, through, &call);
        assert!(reply.text().contains("Log in first"), "{}", reply.text());
    }
    // A called service logs the client in: the response sets the cookie.
    check(&client, "/bine/outside", "/bine/enter", &json!({ "user": "ann" }), "null");
    check(&client, "/bine/outside", "/bine/who_calls", &json!({}), "\"ann\"");
    check(&client, "/bine/within", "/bine/who_calls", &json!({}), "\"\\\"ann\\\"\"");
    // Calls of one request share its session.
    assert_eq!(post(&site.client(), "/bine/enter_and_ask", &json!({})).text(), "\"eve\"");
}

#[test]
fn endless_recursion_ends_with_an_error() {
    let site = site();
    let client = site.client();
    for path in ["/bine/descend", "/bine/descend_slowly"] {
        assert_eq!(post(&client, path, &json!({ "levels": 32 })).text(), "32");
        let reply = post(&client, path, &json!({ "levels": 10_000 }));
        assert_eq!(reply.status(), 503);
    }
}

#[test]
fn finds_services_by_the_name_of_their_function() {
    let services = services();
    let double = services.named("double").ok().unwrap();
    assert_eq!(double.path, "/bine/double");
    assert_eq!(services.iter().count(), 10);
    let told = |name| services.named(name).err().unwrap();
    assert_eq!(told("doubel"), "the program has no service `doubel`; did you mean `double`?");
    assert!(told("something_else").ends_with("add `.service(something_else)` to the app"));
}
