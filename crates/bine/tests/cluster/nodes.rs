//! Nodes that share tables, channels and sessions.

use std::net::TcpStream;
use std::thread;

use bine::Method;
use bine::test::{Client, Reply, Site};
use bine_nats_server::{NatsServer, wait_until};
use serde_json::{Value, json};

use crate::board;

/// Starts a node of the program.
pub(crate) fn node(nats: &NatsServer, name: &str) -> Site {
    node_with(nats, name, &[])
}

fn node_with(nats: &NatsServer, name: &str, settings: &[&str]) -> Site {
    node_with_all(&nats.url(), name, settings)
}

/// Starts a node that connects to the NATS server by this address.
pub(crate) fn node_at(url: &str, name: &str) -> Site {
    node_with_all(url, name, &[])
}

fn node_with_all(url: &str, name: &str, settings: &[&str]) -> Site {
    let own = ["--cluster", url, "--cluster-node", name];
    Site::with_settings(board::app(), &[&own[..], settings].concat())
}

pub(crate) fn count(site: &Site, name: &str) -> Reply {
    site.post_json("/cluster/count", &json!({ "name": name }))
}

/// The messages of the channel, after a cursor.
fn messages(site: &Site, after: &str) -> Vec<Value> {
    site.get(&format!("/channels?c=news&after={after}&wait=0")).json()
}

#[test]
fn nodes_share_tables_and_live_pages() {
    let Some(nats) = NatsServer::start() else { return };
    let [a, b] = ["a", "b"].map(|name| node(&nats, name));
    let mut tab = b.visit("/");
    tab.expect_count("li", 0);
    assert_eq!(count(&a, "tea").text(), "1");
    tab.expect("li", "tea: 1");
    assert_eq!(count(&b, "tea").text(), "2");
    tab.expect("li", "tea: 2");
    wait_until("the first node has the change of the second one", || {
        a.get("/").text().contains("tea: 2")
    });
}

#[test]
fn concurrent_changes_of_one_row_on_two_nodes_are_all_counted() {
    let Some(nats) = NatsServer::start() else { return };
    let sites = ["a", "b"].map(|name| node(&nats, name));
    // A client repeats what conflicts with others four times in a row.
    let repeat = |client: Client| {
        for _ in 0..50 {
            wait_until("the change is accepted", || {
                let reply = client.post_json("/cluster/count", &json!({ "name": "tea" }));
                assert!([200, 409].contains(&reply.status()), "{}", reply.text());
                reply.status() == 200
            });
        }
    };
    thread::scope(|scope| {
        for client in sites.each_ref().map(Site::client) {
            scope.spawn(move || repeat(client));
        }
    });
    for site in &sites {
        wait_until("all changes are there", || site.get("/").text().contains("tea: 100"));
    }
}

#[test]
fn nodes_share_sessions() {
    let Some(nats) = NatsServer::start() else { return };
    let [a, b] = ["a", "b"].map(|name| node(&nats, name));
    let first = a.get("/visits");
    let cookie = first.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    assert_eq!(first.text(), "1");
    let again = |site: &Site| {
        let reply = site.request(Method::Get, "/visits").header("cookie", cookie.clone()).send();
        reply.text().to_owned()
    };
    wait_until("the other node has the session", || again(&b) != "1");
    let seen: u32 = again(&b).parse().unwrap();
    wait_until("the first node has the visits", || again(&a).parse::<u32>().unwrap() > seen);
}

#[test]
fn nodes_have_the_same_messages_with_the_same_cursors() {
    let Some(nats) = NatsServer::start() else { return };
    let [a, b] = ["a", "b"].map(|name| node(&nats, name));
    for (site, text) in [(&a, "one"), (&b, "two"), (&a, "three")] {
        let reply = site.post_json("/channels/news", &json!(text));
        assert!((200..300).contains(&reply.status()), "{}", reply.text());
    }
    wait_until("both nodes have all messages", || {
        [&a, &b].iter().all(|site| messages(site, "-1").len() == 3)
    });
    let all = messages(&a, "-1");
    assert_eq!(messages(&b, "-1"), all);
    // A poll that began on one node goes on at the other one.
    let cursor = all[0]["cursor"].as_str().unwrap();
    assert_eq!(messages(&b, cursor), all[1..]);
}

#[test]
fn node_that_joins_later_has_everything() {
    let Some(nats) = NatsServer::start() else { return };
    let a = node_with(&nats, "a", &["--cluster-snapshot", "20K"]);
    for number in 0..200 {
        assert_eq!(count(&a, &format!("note {number}")).status(), 200);
    }
    let reply = a.post_json("/channels/news", &json!("hello"));
    assert!((200..300).contains(&reply.status()), "{}", reply.text());
    let b = node(&nats, "b");
    assert_eq!(b.get("/").text().matches("<li").count(), 200);
    assert_eq!(messages(&b, "-1"), messages(&a, "-1"));
    assert_eq!(count(&b, "note 7").text(), "2");
}

#[test]
fn node_that_is_cut_off_serves_pages_and_refuses_changes() {
    let Some(mut nats) = NatsServer::start() else { return };
    let a = node(&nats, "a");
    assert_eq!(count(&a, "tea").text(), "1");
    nats.pause();
    wait_until("the node notices", || count(&a, "tea").status() == 503);
    assert!(a.get("/").text().contains("tea: "));
    nats.resume();
    wait_until("the node goes on", || count(&a, "coffee").status() == 200);
    nats.restart();
    wait_until("the node goes on after a crash of the NATS server", || {
        count(&a, "coffee").status() == 200
    });
    let b = node(&nats, "b");
    let page = |site: &Site| site.get("/").text().split("<ul>").nth(1).unwrap().to_owned();
    assert_eq!(page(&b), page(&a));
}

#[test]
fn node_that_cannot_follow_the_stream_any_more_stops() {
    let Some(mut nats) = NatsServer::start() else { return };
    let a = node(&nats, "a");
    assert_eq!(count(&a, "tea").text(), "1");
    nats.erase();
    nats.restart();
    // Another node creates the stream again.
    let b = node(&nats, "b");
    assert_eq!(count(&b, "tea").text(), "1");
    wait_until("the program stops", || TcpStream::connect(a.address()).is_err());
}

#[test]
fn start_without_a_nats_server_names_the_fix() {
    let settings = ["--cluster", "nats://127.0.0.1:1"];
    let start = || Site::with_settings(board::app(), &settings);
    let panicked = std::panic::catch_unwind(start).err().unwrap();
    let message = panicked.downcast_ref::<String>().unwrap();
    assert!(message.contains("start one with `nats-server --jetstream`"), "{message}");
}
