//! Tests of `bine data move`, with a real NATS server. They are skipped unless the variable
//! `NATS_SERVER` names its program.

use std::fs;

use bine_nats_server::{NatsServer, wait_until};
use serde_json::Value;

use crate::harness::{Ended, Folder, Program};
use crate::{bine, run};

/// Starts the demo with these options.
fn demo(options: &[&str]) -> Program {
    Program::start(&mut bine(&[&["--listen", "127.0.0.1:0"], options].concat()))
}

fn node(nats: &NatsServer, name: &str) -> Program {
    let url = nats.url();
    demo(&["--data", "memory", "--control", "off", "--cluster", &url, "--cluster-node", name])
}

/// Posts a message in a session. Returns the cookie of the session.
fn post(server: &Program, cookie: &str, body: &str) -> String {
    let kind = "Content-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: same-origin\r\n";
    let fields = format!("{kind}Cookie: {cookie}\r\n");
    let form = format!("forum=garden&body={body}");
    let reply = server.connect().request("POST", "/board/post", &fields, &form);
    assert_eq!(reply.status(), 204, "{reply:?}");
    // A node of a cluster sets the cookie of the position.
    let set = reply.header("Set-Cookie").filter(|set| set.starts_with("session="));
    let set = set.unwrap_or(cookie);
    set.split(';').next().unwrap().to_owned()
}

/// The messages of the demo's channel after a cursor: the cursor and the text of each.
fn messages(server: &Program, after: &str) -> Vec<(String, String)> {
    let reply = server.connect().get(&format!("/channels?c=board&after={after}&wait=0"));
    if reply.status() == 204 {
        return Vec::new();
    }
    let all: Vec<Value> = serde_json::from_str(reply.text()).unwrap();
    let text = |message: &Value, name: &str| message[name].as_str().unwrap().to_owned();
    all.iter().map(|message| (text(message, "cursor"), text(message, "data"))).collect()
}

/// The messages after a cursor, when there are `count`: the demo publishes after it has answered.
fn await_messages(server: &Program, after: &str, count: usize) -> Vec<(String, String)> {
    wait_until("the messages are published", || messages(server, after).len() == count);
    messages(server, after)
}

fn shows(server: &Program, body: &str) -> bool {
    server.connect().get("/board/garden").text().contains(&format!("<p>{body}</p>"))
}

/// Returns the standard output of a command that must succeed.
#[track_caller]
fn output_of(ended: Ended) -> String {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.output
}

#[test]
fn moves_the_data_of_a_server_into_a_cluster_and_out_again() {
    let Some(nats) = NatsServer::start() else { return };
    let (url, folder) = (nats.url(), Folder::new());
    let [data, back] = ["data", "back"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    let move_in = || run(&["data", "move", "--data", &data, "--to", &url]);
    let move_out = || run(&["data", "move", "--from", &url, "--data", &back]);

    let server = demo(&["--data", &data]);
    let cookie = post(&server, "", "first");
    post(&server, &cookie, "second");
    let first = await_messages(&server, "-1", 2);
    let (author, _) = first[0].1.split_once(" in garden").unwrap();
    let busy = move_in();
    assert_eq!((busy.code, busy.errors.contains("stop it")), (Some(1), true), "{busy:?}");
    server.stop();
    fs::create_dir(folder.join("data/uploads")).unwrap();
    let dump = |folder: &str| run(&["data", "dump", folder]).output;
    let before = dump(&data);

    let moved = output_of(move_in());
    assert!(moved.contains("1 channel with 2 messages, and 1 key of sessions"), "{moved}");
    for left in ["region-key", "uploads"] {
        assert!(moved.contains(&format!("not moved: {data}/{left}\n")), "{moved}");
    }
    assert_eq!(dump(&data), before);
    let again = move_in();
    assert!(again.errors.contains("has data already: choose a new `cluster-name`"), "{again:?}");

    let nodes = ["a", "b"].map(|name| node(&nats, name));
    for node in &nodes {
        assert!(shows(node, "first") && shows(node, "second"));
        assert_eq!(messages(node, &first[0].0), first[1..]);
    }
    // The session and its key are there: the author keeps the name.
    assert_eq!(post(&nodes[0], &cookie, "third"), cookie);
    wait_until("both nodes have the message", || {
        nodes.iter().all(|node| shows(node, "third") && messages(node, "-1").len() == 3)
    });
    let all = messages(&nodes[1], "-1");
    assert_eq!(all[2].1, format!("{author} in garden: third"));
    for node in nodes {
        node.stop();
    }

    let moved = output_of(move_out());
    assert!(moved.contains("1 channel with 3 messages, and 1 key of sessions"), "{moved}");
    let again = move_out();
    assert_eq!((again.code, again.errors.contains("choose a new folder")), (Some(1), true));
    assert!(output_of(run(&["data", "check", &back])).ends_with("all is well\n"));
    let server = demo(&["--data", &back]);
    assert!(shows(&server, "first") && shows(&server, "third"));
    assert_eq!(messages(&server, &first[0].0), all[1..]);
    assert_eq!(post(&server, &cookie, "fourth"), cookie);
    let fourth = await_messages(&server, &all[2].0, 1);
    assert_eq!(fourth[0].1, format!("{author} in garden: fourth"));
    server.stop();

    // A program that moved out can move into a cluster again.
    let into_new = ["data", "move", "--data", &back, "--to", &url, "--cluster-name", "new"];
    let moved = output_of(run(&into_new));
    assert!(moved.contains("1 channel with 4 messages, and 1 key of sessions"), "{moved}");
    assert!(moved.ends_with(&format!("--cluster {url} --cluster-name new\n")), "{moved}");
}

#[test]
fn reports_what_cannot_be_moved() {
    let Some(nats) = NatsServer::start() else { return };
    let (url, folder) = (nats.url(), Folder::new());
    let data = folder.join("data").to_str().unwrap().to_owned();
    let missing = run(&["data", "move", "--from", &url, "--data", &data]);
    assert!(missing.errors.contains("no cluster `bine`: correct the address"), "{missing:?}");
    let empty = run(&["data", "move", "--data", &data, "--to", &url]);
    assert_eq!(empty.errors, format!("bine: there are no tables in {data}\n"));
    let unreachable = run(&["data", "move", "--from", "nats://127.0.0.1:1", "--data", &data]);
    assert!(unreachable.errors.contains("no NATS server answers"), "{unreachable:?}");
    assert!(!folder.join("data").exists());
    let wrong = run(&["data", "move", "--data", &data]);
    assert_eq!((wrong.code, wrong.errors.contains("give either --to or --from")), (Some(2), true));
    let help = output_of(run(&["data", "move", "--help"]));
    assert!(help.starts_with("Usage: bine data move --data FOLDER --to URL"), "{help}");
}
