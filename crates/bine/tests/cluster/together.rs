//! What nodes share besides tables: presence, events and signals.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use bine::channels::{Access, Settings};
use bine::prelude::*;
use bine::test::Site;
use bine_nats_server::{NatsServer, wait_until};
use serde_json::{Value, json};

/// The program's state: a signal that all nodes share.
#[derive(Clone)]
struct House {
    degrees: Signal<f64>,
}

#[page("/here")]
async fn here(presence: Presence) -> impl Page {
    html!(<Live><p>{presence.people()}" people in "{presence.tabs()}" tabs"</p></Live>)
}

#[page("/degrees")]
async fn temperature(house: State<House>) -> impl Page {
    html!(<Live><p>{house.degrees.get()}" degrees"</p></Live>)
}

#[page(POST "/degrees")]
async fn heat(house: State<House>, degrees: Json<f64>) -> Response {
    house.degrees.set(degrees.0);
    Response::text("set")
}

#[page("/bell")]
async fn bell(events: Events) -> impl Page {
    html!(<Live><p>{events.listeners("bell")}" hear the bell"</p></Live>)
}

#[page(POST "/ring")]
async fn ring(events: Events, text: Json<Text>) -> Result<Response, Error> {
    events.broadcast("bell", &*text.0)?;
    Ok(Response::text("rung"))
}

#[page(POST "/ring-one")]
async fn ring_one(events: Events, text: Json<Text>) -> Result<Response, Error> {
    Ok(Response::text(events.notify_one("bell", &*text.0)?.to_string()))
}

#[derive(Table)]
struct Run {
    id: Id<Run>,
    node: Text,
}

/// The name of a node.
struct NodeName(Text);

/// Notes that this node runs the scheduled work.
#[service(who = bine::Rule::PROGRAM)]
fn work(call: &mut Call) -> Result<(), Error> {
    let node = call.state::<NodeName>()?.0.clone();
    call.insert(Run { id: Id::unassigned(), node })?;
    Ok(())
}

/// The nodes that have run the scheduled work, in the order of the runs.
#[page("/runs")]
async fn runs(store: Store) -> Json<Vec<Text>> {
    Json(store.read().all::<Run>().map(|run| run.node).collect())
}

fn node(nats: &NatsServer, name: &str) -> Site {
    let degrees = Signal::new(20.0);
    let app = App::new()
        .page(here)
        .page(temperature)
        .page(heat)
        .page(bell)
        .page(ring)
        .page(ring_one)
        .event("bell")
        .shared_signal("degrees", &degrees)
        .state(House { degrees })
        .table::<Run>()
        .state(NodeName(name.into()))
        .page(runs)
        .service(work)
        .every(Duration::from_secs(1), work)
        .channels(Access::allow_all())
        .channel("room", Settings::default())
        .presence("room", Duration::ZERO);
    let url = nats.url();
    Site::with_settings(app, &["--cluster", &url, "--cluster-node", name])
}

/// Follows a channel as this session until the connection is dropped.
fn follow(site: &Site, session: &str) -> TcpStream {
    let mut stream = TcpStream::connect(site.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let request = format!(
        "GET /channels?c=room&session={session} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_exact(&mut [0; 12]).unwrap();
    stream
}

/// The sessions that a node reports as present.
fn present(site: &Site) -> Vec<Value> {
    let reply: Value = site.get("/channels?c=room&present").json();
    reply[0]["sessions"].as_array().unwrap().clone()
}

/// The messages about joins and leaves, with their cursors.
fn told(site: &Site) -> Vec<Value> {
    site.get("/channels?c=room/presence&after=-1&wait=0").json()
}

#[test]
fn nodes_count_the_sessions_of_a_channel_together() {
    let Some(nats) = NatsServer::start() else { return };
    let [a, b] = ["a", "b"].map(|name| node(&nats, name));
    let ann = follow(&a, "ann");
    let ann_too = follow(&b, "ann");
    let bob = follow(&b, "bob");
    for site in [&a, &b] {
        wait_until("both are present", || present(site) == ["ann", "bob"]);
    }
    drop(ann);
    drop(bob);
    for site in [&a, &b] {
        wait_until("one is present", || present(site) == ["ann"]);
    }
    drop(ann_too);
    for site in [&a, &b] {
        wait_until("nobody is present", || present(site).is_empty());
    }
    let count = |all: &[Value], event: &str| all.iter().filter(|one| one["event"] == event).count();
    // The message follows the change of what a node reports.
    for site in [&a, &b] {
        wait_until("both have left", || count(&told(site), "leave") == 2);
    }
    let all = told(&a);
    assert_eq!(told(&b), all);
    assert_eq!(all[0]["event"], "begin");
    assert_eq!((count(&all, "join"), count(&all, "leave")), (2, 2), "{all:?}");
}

#[test]
fn nodes_count_the_tabs_of_a_page_together() {
    let Some(nats) = NatsServer::start() else { return };
    let [a, b] = ["a", "b"].map(|name| node(&nats, name));
    let (mut one, mut other) = (a.visit("/here"), b.visit("/here"));
    one.expect("p", "2 people in 2 tabs");
    other.expect("p", "2 people in 2 tabs");
    drop(one);
    other.expect("p", "1 people in 1 tabs");
}

#[test]
fn signal_that_is_shared_has_one_value_on_all_nodes() {
    let Some(nats) = NatsServer::start() else { return };
    let [a, b] = ["a", "b"].map(|name| node(&nats, name));
    let mut tab = b.visit("/degrees");
    tab.expect("p", "20 degrees");
    assert_eq!(a.post_json("/degrees", &22.5).status(), 200);
    tab.expect("p", "22.5 degrees");
    let c = node(&nats, "c");
    c.visit("/degrees").expect("p", "22.5 degrees");
}

#[test]
fn events_reach_the_listeners_of_all_nodes() {
    let Some(nats) = NatsServer::start() else { return };
    let sites = ["a", "b", "c"].map(|name| node(&nats, name));
    let [a, b, c] = &sites;
    let ring_one =
        |site: &Site, text: &str| site.post_json("/ring-one", &json!(text)).json::<bool>();
    assert!(!ring_one(a, "nobody hears"));
    let mut listeners = [a.visit("/bell"), b.visit("/bell")];
    for tab in &mut listeners {
        tab.listen("bell");
    }
    let mut watching = c.visit("/bell");
    watching.expect("p", "2 hear the bell");
    assert_eq!(c.post_json("/ring", &json!("all")).status(), 200);
    for tab in &mut listeners {
        assert_eq!(tab.expect_event("bell"), "all");
    }
    for text in ["one", "two", "three", "four"] {
        assert!(ring_one(c, text));
    }
    assert_eq!(c.post_json("/ring", &json!("end")).status(), 200);
    let heard = listeners.each_mut().map(|tab| {
        let mut heard = Vec::new();
        loop {
            match tab.expect_event("bell") {
                Value::String(text) if text == "end" => return heard,
                event => heard.push(event),
            }
        }
    });
    assert_eq!(heard.each_ref().map(Vec::len), [2, 2], "{heard:?}");
    drop(listeners);
    watching.expect("p", "0 hear the bell");
}

#[test]
fn scheduled_work_runs_on_one_node_and_moves_to_another() {
    let Some(nats) = NatsServer::start() else { return };
    let sites = ["a", "b"].map(|name| node(&nats, name));
    let all = |site: &Site| site.get("/runs").json::<Vec<String>>();
    wait_until("the work runs", || all(&sites[0]).len() >= 3);
    let [a, b] = sites;
    drop(a);
    let before = all(&b).len();
    wait_until("the other node goes on", || {
        all(&b)[before..].iter().filter(|node| *node == "b").count() >= 2
    });
}
