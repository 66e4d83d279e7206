//! Calls of other servers by `remote`.

use std::net::TcpListener;

use bine::App;
use bine::Rule;
use bine::prelude::*;
use bine::test::Site;
use serde_json::{Value, json};

use crate::folder::Folder;

const BREWERS: Rule =
    Rule::new("brewers", |caller| Ok(caller.header("authorization") == Some("Bearer brewing")));

#[service]
fn heat(degrees: f64, until: Option<Text>) -> Result<Text, Error> {
    if degrees > 25.0 {
        return Err(Error::conflict("that is too warm for hops"));
    }
    Ok(format!("{degrees} {until:?}").as_str().into())
}

#[service(who = BREWERS)]
fn secret() -> u64 {
    u64::MAX
}

#[service]
async fn never() {
    std::future::pending::<()>().await;
}

#[service]
fn long() -> Text {
    "x".repeat(2000).as_str().into()
}

#[service]
fn ring(caller: Caller, tone: u32) -> Result<(), Error> {
    caller.events().broadcast("bell", tone)?;
    Ok(())
}

/// The server that is called.
fn cellar() -> Site {
    Site::new(
        App::new()
            .event("bell")
            .service(heat)
            .service(secret)
            .service(never)
            .service(long)
            .service(ring),
    )
}

/// An application that calls the server at this address. It is long because all tests call one
/// application.
fn house(address: &str) -> Folder {
    let source = format!(
        r#"import {{ change, page, remote, RemoteError, remoteEvents, service, table, text }} from "bine";
const url = "http://{address}/scripts";
const cellar = remote(url);
const rows = table("rows", {{ body: text() }});
const told = async (run) => {{
  try {{
    return await run();
  }} catch (error) {{
    if (!(error instanceof RemoteError)) throw error;
    return `${{error.name}} ${{error.reason}} ${{error.status}}: ${{error.message.replaceAll("{address}", "HOST")}}`;
  }}
}};
export const warm = service(async (ctx, {{ degrees, until }}: {{ degrees: number; until?: string }}) =>
  cellar.heat({{ degrees, until }}));
export const caught = service(async (ctx, {{ degrees }}: {{ degrees: number }}) =>
  told(() => cellar.heat({{ degrees }})));
export const outcomes = service(async () => [
  await told(() => cellar.secret()),
  await told(() => remote(url, {{ token: "brewing" }}).secret()),
  await told(() => remote(url, {{ timeout: 1000 }}).never()),
  await told(() => remote(url, {{ maxResponse: 100 }}).long()),
  await told(() => cellar.nothing()),
  await told(() => cellar.heat({{ degree: 1 }})),
  await told(() => remote("http://127.0.0.1:1").heat()),
  await told(() => remote("cellar").heat()),
]);
export const slow = service(async () => {{ await remote(url, {{ timeout: 1000 }}).never(); }});
export const unreached = service(async () => remote("http://127.0.0.1:1").heat());
export const inTransaction = service(() => {{
  rows.insert({{ body: "a" }});
  cellar.heat({{ degrees: 1 }}).catch((error) => console.log(String(error)));
}});
export const inChange = service(async () => {{
  let reason = "";
  await change(() => {{
    cellar.heat({{ degrees: 1 }}).catch((error) => {{ reason = String(error); }});
  }});
  await null;
  return reason;
}});
export const misused = service(async () => {{
  const all = [];
  for (const run of [
    () => remote(7), () => remote(url, {{ tokn: "a" }}), () => remote(url, {{ timeout: -1 }}),
    () => remote(url, {{ token: 1 }}), () => remote(url, null), () => cellar.heat([1]),
    () => cellar.heat({{ degrees: () => 1 }}), () => {{ const own = remote(url); own.heat = 1; }},
    () => remoteEvents(url), () => remoteEvents(url, "bell").next("a"),
  ]) {{
    try {{ await run(); all.push("no error"); }} catch (error) {{ all.push(`${{error.name}}: ${{error.message}}`); }}
  }}
  return all;
}});
export const listen = service(async () => {{
  const bells = remoteEvents(url.replace("/scripts", ""), "bell");
  let heard;
  // An event before the connection is open is missed.
  for (let tone = 1; heard === undefined; tone++) {{
    const waiting = bells.next(100);
    await cellar.ring({{ tone }});
    heard = await waiting;
  }}
  bells.close();
  return typeof heard;
}});
export const silence = service(async () => {{
  const bells = remoteEvents(url.replace("/scripts", ""), "bell");
  const none = await bells.next(20);
  const both = [bells.next(50), bells.next(50)];
  const second = await both[1].catch((error) => error.message);
  await both[0];
  const many = [];
  let reason = "";
  try {{
    for (let count = 0; count < 40; count++) {{
      const one = remoteEvents(url.replace("/scripts", ""), "bell");
      many.push(one);
      await one.next(0);
    }}
  }} catch (error) {{ reason = error.message; }}
  for (const one of many) one.close();
  bells.close();
  return [none === undefined, second, reason];
}});
export const refused = service(async () => told(() => remoteEvents(url, "bell").next(60000)));
export default page(async () => <p>{{await cellar.heat({{ degrees: 20 }})}}</p>);
"#
    );
    Folder::with(&[("index.tsx", &source)])
}

fn both() -> (Folder, Site, Site) {
    let cellar = cellar();
    let folder = house(&cellar.address().to_string());
    let house = folder.site();
    (folder, cellar, house)
}

#[test]
fn calls_services_of_another_server() {
    let (_folder, _cellar, house) = both();
    let page = house.get("/").text().to_owned();
    assert!(page.contains("<p>20 None</p>"), "{page}");
    let warm = house.post_json("/warm", &json!({ "degrees": 21.5, "until": "noon" }));
    assert_eq!(warm.json::<String>(), "21.5 Some(\"noon\")", "{}", warm.text());
}

#[test]
fn passes_refusals_on_and_hides_other_failures() {
    let (_folder, _cellar, house) = both();
    let warm = house.post_json("/warm", &json!({ "degrees": 26 }));
    assert_eq!(warm.status(), 409);
    assert!(warm.text().contains("that is too warm for hops"), "{}", warm.text());
    let caught = house.post_json("/caught", &json!({ "degrees": 26 })).json::<String>();
    assert_eq!(
        caught,
        "RemoteError refused 409: http://HOST/scripts: refused with 409 Conflict: that is too warm for hops"
    );
    assert_eq!(house.post_json("/slow", &json!({})).status(), 504);
    assert_eq!(house.post_json("/unreached", &json!({})).status(), 502);
}

#[test]
fn tells_whether_a_call_may_have_been_carried_out() {
    let (_folder, _cellar, house) = both();
    let reply = house.post_json("/outcomes", &json!({}));
    let told: Vec<Value> = reply.json();
    let starts = |place: usize, start: &str| {
        let text = told[place].as_str().unwrap_or_default();
        assert!(text.starts_with(start), "{place}: {}", told[place]);
    };
    starts(0, "RemoteError refused 401: ");
    assert_eq!(told[1], json!(u64::MAX.to_string()));
    starts(2, "RemoteError timedOut null: http://HOST/scripts: no answer in time");
    starts(3, "RemoteError misunderstood null: http://HOST/scripts: its answer has more than 100");
    starts(4, "RemoteError refused 404: ");
    starts(5, "RemoteError refused 400: ");
    starts(6, "RemoteError unreached null: http://127.0.0.1:1: ");
    starts(7, "RemoteError misused null: `cellar` is no address of a server: it begins with https");
}

#[test]
fn calls_no_server_in_a_transaction() {
    let (_folder, _cellar, house) = both();
    assert_eq!(house.post_json("/inTransaction", &json!({})).status(), 204);
    let reason = house.post_json("/inChange", &json!({})).json::<String>();
    assert!(reason.starts_with("Error: a transaction calls no other server"), "{reason}");
    assert!(reason.contains("await change(() => ..)"), "{reason}");
}

#[test]
fn names_the_fix_for_misused_words() {
    let (_folder, _cellar, house) = both();
    let told: Vec<String> = house.post_json("/misused", &json!({})).json();
    let expected = [
        "TypeError: `remote` takes the address of a server: remote(\"https://cellar.home:8443\")",
        "TypeError: `remote` has no option `tokn`: the options are token, timeout, certificates, maxResponse",
        "TypeError: the option `timeout` of `remote` is a number greater than 0",
        "TypeError: the option `token` of `remote` is a string",
        "TypeError: the options of `remote` are an object with token, timeout, certificates, maxResponse",
        "TypeError: the arguments of `heat` are an object, with each under its name",
        "TypeError: a function cannot pass as JSON: pass its text",
        "TypeError: `heat` is a service of another server and cannot be changed",
        "TypeError: `remoteEvents` takes the name of an event: remoteEvents(url, \"temperature\")",
        "TypeError: `next` takes the number of milliseconds to wait",
    ];
    assert_eq!(told, expected);
}

#[test]
fn receives_events_of_another_server() {
    let (_folder, _cellar, house) = both();
    assert_eq!(house.post_json("/listen", &json!({})).json::<String>(), "number");
    let told: Value = house.post_json("/silence", &json!({})).json();
    assert_eq!(told[0], json!(true), "{told}");
    let second = "another call waits for the next event of this listener: await it first";
    assert_eq!(told[1], json!(second));
    let many = told[2].as_str().unwrap();
    assert!(many.contains("has 16 listeners on this thread: call `close()`"), "{told}");
    // The server has no events at this address.
    let refused = house.post_json("/refused", &json!({})).json::<String>();
    assert!(refused.starts_with("RemoteError refused 404"), "{refused}");
}

#[test]
fn reports_a_server_that_ends_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || listener.accept().map(drop));
    let folder = house(&address);
    let house = folder.site();
    let told = house.post_json("/caught", &json!({ "degrees": 1 })).json::<String>();
    assert!(told.starts_with("RemoteError unanswered null: "), "{told}");
}
