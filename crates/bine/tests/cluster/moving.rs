//! Moves of data into a cluster and out again.

use std::fs::{self, File};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use bine::store::Replica;
use bine::store::disk::{Folder as _, RealFolder};
use bine::test::Site;
use bine::{ClusterLocation, Method, MoveSummary, move_into_cluster, move_out_of_cluster};
use bine_cluster::{Cluster, Options};
use bine_nats_server::{NatsServer, wait_until};
use serde_json::{Value, json};

use crate::board;

/// A folder for data, which is removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("bine-move-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn location(nats: &NatsServer) -> ClusterLocation {
    let servers = nats.url();
    ClusterLocation {
        servers,
        name: None,
        credentials: None,
        authority: None,
        certificate: None,
        certificate_key: None,
        copies: 1,
    }
}

fn move_in(nats: &NatsServer, data: &Path) -> Result<MoveSummary, String> {
    move_into_cluster(data, &data.join("journal"), &location(nats), &mut |_, _, _| {})
}

fn move_out(nats: &NatsServer, data: &Path) -> Result<MoveSummary, String> {
    move_out_of_cluster(&location(nats), data, &mut |_, _, _| {})
}

/// Starts the program on one machine.
fn alone(data: &Path) -> Site {
    Site::with_settings(board::app(), &["--data", data.to_str().unwrap()])
}

/// Starts the program on a node.
fn node(nats: &NatsServer, name: &str) -> Site {
    let url = nats.url();
    Site::with_settings(board::app(), &["--cluster", &url, "--cluster-node", name])
}

fn count(site: &Site, name: &str) {
    assert_eq!(site.post_json("/cluster/count", &json!({ "name": name })).status(), 200);
}

fn publish(site: &Site, text: &str) {
    let reply = site.post_json("/channels/news", &json!(text));
    assert!((200..300).contains(&reply.status()), "{}", reply.text());
}

/// The messages of the channel, after a cursor.
fn messages(site: &Site, after: &str) -> Vec<Value> {
    site.get(&format!("/channels?c=news&after={after}&wait=0")).json()
}

/// The visits of a session.
fn visits(site: &Site, cookie: &str) -> String {
    let reply = site.request(Method::Get, "/visits").header("cookie", cookie.to_owned()).send();
    reply.text().to_owned()
}

fn notes(site: &Site) -> String {
    site.get("/").text().split("<ul>").nth(1).unwrap().to_owned()
}

/// A folder in which the program has run once, with one note.
fn data_of_a_program(data: &Path) {
    let site = alone(data);
    count(&site, "tea");
    end(site, data);
}

/// Stops a program, and waits until it has released its folder.
fn end(site: Site, data: &Path) {
    drop(site);
    let is_unlocked = || {
        let folder = RealFolder::open_read_only(data.join("journal")).unwrap();
        folder.lock("lock").is_ok()
    };
    wait_until("the program has ended", is_unlocked);
}

#[test]
fn program_moves_into_a_cluster_and_out_again() {
    let Some(nats) = NatsServer::start() else { return };
    let folder = Scratch::new();
    let (first, second) = (folder.join("first"), folder.join("second"));
    data_of_a_program(&first);
    let site = alone(&first);
    let reply = site.get("/visits");
    let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    (1..=2).for_each(|_| count(&site, "milk"));
    publish(&site, "one");
    publish(&site, "two");
    let (shown, all) = (notes(&site), messages(&site, "-1"));
    let busy = move_in(&nats, &first).unwrap_err();
    assert!(busy.contains("stop it"), "{busy}");
    end(site, &first);
    let moved = move_in(&nats, &first).unwrap();
    assert_eq!((moved.channels, moved.messages, moved.session_keys), (1, 2, 1));
    assert!(!moved.has_new_epoch && moved.rows > 3, "{moved:?}");

    let [a, b] = ["a", "b"].map(|name| node(&nats, name));
    assert_eq!((notes(&a), notes(&b)), (shown.clone(), shown));
    // A client continues after the message that it has.
    let cursor = all[0]["cursor"].as_str().unwrap();
    assert_eq!(messages(&a, cursor), all[1..]);
    assert_eq!(visits(&a, &cookie), "2");
    // The unique index has the moved row.
    count(&b, "milk");
    publish(&b, "three");
    wait_until("both nodes have the changes", || {
        notes(&a).contains("milk: 3") && messages(&a, "-1").len() == 3
    });
    wait_until("the other node has the session", || visits(&b, &cookie) != "1");
    let (shown, all) = (notes(&a), messages(&a, "-1"));
    let refused = move_in(&nats, &first).unwrap_err();
    assert!(refused.contains("the cluster `bine` has data already"), "{refused}");
    let visited: u32 = visits(&a, &cookie).parse().unwrap();
    drop((a, b));

    let moved = move_out(&nats, &second).unwrap();
    assert_eq!((moved.channels, moved.messages, moved.session_keys), (1, 3, 1));
    let again = move_out(&nats, &second).unwrap_err();
    assert!(again.contains("has files already: choose a new folder"), "{again}");
    let site = alone(&second);
    assert_eq!(notes(&site), shown);
    assert_eq!(messages(&site, cursor), all[1..]);
    assert!(visits(&site, &cookie).parse::<u32>().unwrap() > visited);
    count(&site, "milk");
    publish(&site, "four");
    assert!(notes(&site).contains("milk: 4"));
    assert_eq!(messages(&site, cursor).len(), 3);
    // The cluster stays as it was.
    let c = node(&nats, "c");
    assert_eq!((notes(&c), messages(&c, "-1")), (shown, all));
}

#[test]
fn interrupted_move_into_a_cluster_is_invisible_and_can_be_repeated() {
    let Some(nats) = NatsServer::start() else { return };
    let folder = Scratch::new();
    let data = folder.join("data");
    data_of_a_program(&data);
    let mover = Cluster::connect(Options::new(nats.url(), "mover")).unwrap();
    let position = mover.reserve(Replica::RESERVATION).unwrap();
    mover.stage_snapshot(position, [vec![1, 2, 3]].into_iter()).unwrap();
    // The other move ends here. No node can use the stream.
    let panicked = catch_unwind(|| node(&nats, "a")).err().unwrap();
    let message = panicked.downcast_ref::<String>().unwrap();
    assert!(message.contains("if that was interrupted, run it again"), "{message}");
    let empty = move_out(&nats, &folder.join("copy")).unwrap_err();
    assert!(empty.contains("if that was interrupted, run it again"), "{empty}");
    let moved = move_in(&nats, &data).unwrap();
    assert_eq!(moved.position, position + 1);
    assert!(notes(&node(&nats, "a")).contains("tea: 1"));
    let left = mover.staged_snapshot(position).next().unwrap();
    assert!(left.is_err(), "the next move removes what is left");
}

#[test]
fn interrupted_move_out_of_a_cluster_is_invisible_and_can_be_repeated() {
    let Some(nats) = NatsServer::start() else { return };
    let folder = Scratch::new();
    count(&node(&nats, "a"), "tea");
    let data = folder.join("data");
    let unfinished = folder.join("moving-data");
    fs::create_dir_all(unfinished.join("journal")).unwrap();
    File::create(unfinished.join("journal/snapshot-0000000000000007.bin.new")).unwrap();
    // Another move still writes there.
    let locked = RealFolder::open_read_only(unfinished.join("journal")).unwrap();
    let lock = locked.lock("lock").unwrap();
    let refused = move_out(&nats, &data).unwrap_err();
    assert!(refused.contains("another move writes"), "{refused}");
    drop(lock);
    fs::create_dir(&data).unwrap();
    move_out(&nats, &data).unwrap();
    assert!(!unfinished.exists());
    assert!(notes(&alone(&data)).contains("tea: 1"));
}

#[test]
fn move_out_of_an_unknown_or_empty_cluster_names_the_fix() {
    let Some(nats) = NatsServer::start() else { return };
    let folder = Scratch::new();
    let data = folder.join("data");
    let unknown = move_out(&nats, &data).unwrap_err();
    assert!(unknown.contains("has no cluster `bine`: correct the address"), "{unknown}");
    drop(Cluster::connect(Options::new(nats.url(), "a")).unwrap());
    let empty = move_out(&nats, &data).unwrap_err();
    assert!(empty.contains("the cluster has no data"), "{empty}");
    assert!(!data.exists());
}
