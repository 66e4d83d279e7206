//! Tests several nodes on a stream in memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use bine_store::Replica;

use super::super::machine::RosterChangeKind;
use super::*;
use crate::store::Options;

/// Lists the nodes of a test.
#[derive(Clone)]
struct TestDirectory {
    own: Arc<str>,
    names: Arc<Mutex<Vec<String>>>,
}

impl NodeDirectory for TestDirectory {
    fn own_name(&self) -> Option<Arc<str>> {
        Some(Arc::clone(&self.own))
    }

    fn names(&self) -> Option<Vec<String>> {
        Some(self.names.lock().unwrap().clone())
    }
}

struct TestNode {
    state: SharedState,
    replica: Replica,
    /// The number of its last message in the stream.
    sent: u64,
    is_up: bool,
}

/// The nodes, and the messages of their stream.
type Carried = (Vec<TestNode>, Vec<Vec<u8>>);

/// The nodes, their stream, and the thread that carries messages.
struct TestStream {
    nodes: Arc<Mutex<Carried>>,
    names: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
    carrier: Option<JoinHandle<()>>,
}

impl TestStream {
    fn new() -> Self {
        let nodes: Arc<Mutex<Carried>> = Arc::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let (all, over) = (Arc::clone(&nodes), Arc::clone(&is_over));
        let carry = move || {
            while !over.load(Ordering::Relaxed) {
                let (nodes, stream) = &mut *all.lock().unwrap();
                for node in nodes.iter_mut().filter(|node| node.is_up) {
                    if let Some((number, message)) = node.replica.unconfirmed_after(node.sent) {
                        node.sent = number;
                        stream.push(message.to_vec());
                    }
                    while let Some(message) = stream.get(node.replica.position() as usize) {
                        node.replica.deliver(node.replica.position() + 1, message).unwrap();
                    }
                }
                thread::yield_now();
            }
        };
        let carrier = Some(thread::spawn(carry));
        Self { nodes, names: Arc::default(), is_over, carrier }
    }

    /// Starts a node. `prepare` runs before its store is open.
    fn node(&self, name: &str, prepare: impl FnOnce(&SharedState)) -> SharedState {
        let state = SharedState::default();
        prepare(&state);
        let options = Options::new().extension(state.extension());
        let replica = Replica::new(options, || {}).unwrap();
        let store = replica.store().clone();
        self.names.lock().unwrap().push(name.to_owned());
        let node = TestNode { state: state.clone(), replica, sent: 0, is_up: true };
        self.nodes.lock().unwrap().0.push(node);
        let directory = TestDirectory { own: name.into(), names: Arc::clone(&self.names) };
        wait_until("the node has caught up", || {
            let (nodes, stream) = &*self.nodes.lock().unwrap();
            nodes.last().unwrap().replica.position() as usize == stream.len()
        });
        state.begin(&store, Some(Arc::new(directory))).unwrap();
        state
    }

    /// Ends a node without a word.
    fn kill(&self, at: usize, name: &str) {
        self.nodes.lock().unwrap().0[at].is_up = false;
        self.names.lock().unwrap().retain(|own| own != name);
    }
}

impl Drop for TestStream {
    fn drop(&mut self) {
        for node in &self.nodes.lock().unwrap().0 {
            node.state.0.is_over.store(true, Ordering::Release);
        }
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.carrier.take().unwrap().join();
        for node in &self.nodes.lock().unwrap().0 {
            node.replica.cut_off("the test has ended");
        }
    }
}

#[track_caller]
fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_true() {
        assert!(begun.elapsed() < Duration::from_mins(1), "{what}: never");
        thread::yield_now();
    }
}

/// The keys at a place.
fn keys(state: &SharedState, place: &str) -> Vec<String> {
    state.roster(place, 100).first.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

#[test]
fn all_nodes_see_the_entries_of_all() {
    let stream = TestStream::new();
    let [a, b] = ["a", "b"].map(|name| stream.node(name, |_| {}));
    a.enter("x", "ann", "1");
    b.enter("x", "bob", "1");
    b.enter("x", "ann", "1");
    let late = stream.node("c", |_| {});
    for node in [&a, &b, &late] {
        wait_until("everybody is there", || keys(node, "x") == ["ann=1", "bob=1"]);
    }
    a.leave("x", "ann");
    b.enter("x", "bob", "2");
    for node in [&a, &b, &late] {
        wait_until("the value is replaced", || keys(node, "x") == ["ann=1", "bob=2"]);
    }
    b.end();
    for node in [&a, &late] {
        wait_until("the entries of a node end with it", || keys(node, "x").is_empty());
    }
}

/// Counts removed entries.
struct Leaves(Arc<AtomicUsize>);

impl RosterObserver for Leaves {
    fn prefix(&self) -> &'static str {
        "room:"
    }

    fn follow(&self, _sequence: u64, _time: u64, changes: &[RosterChange]) {
        let is_removed = |change: &&RosterChange| change.kind == RosterChangeKind::Removed;
        self.0.fetch_add(changes.iter().filter(is_removed).count(), Ordering::Relaxed);
    }
}

#[test]
fn entries_of_a_missing_node_are_removed_once() {
    let stream = TestStream::new();
    let left = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&left);
    let a = stream.node("a", |state| state.observe(Arc::new(Leaves(count))));
    let b = stream.node("b", |_| {});
    let c = stream.node("c", |_| {});
    b.enter("room:1", "ann", "");
    b.enter("other", "ann", "");
    wait_until("everybody is there", || {
        [&a, &c].iter().all(|node| keys(node, "room:1").len() + keys(node, "other").len() == 2)
    });
    stream.kill(1, "b");
    for state in [&a, &c] {
        let mut missing = HashMap::new();
        let link = state.0.link.get().unwrap();
        for _ in 0..MISSING_CHECKS {
            state.0.remove_ended(link, &mut missing);
        }
    }
    wait_until("nobody is there", || keys(&a, "room:1").is_empty() && keys(&a, "other").is_empty());
    assert_eq!(left.load(Ordering::Relaxed), 1);
}

#[test]
fn node_that_others_missed_for_a_while_enters_again() {
    let stream = TestStream::new();
    let [a, b] = ["a", "b"].map(|name| stream.node(name, |_| {}));
    b.enter("x", "ann", "1");
    wait_until("the entry is there", || keys(&a, "x") == ["ann=1"]);
    let link = a.0.link.get().unwrap();
    let end = StateRecord::End { node: "b".into(), time: 1 };
    a.0.append(link, end).unwrap().wait().unwrap();
    wait_until("the entry is there again", || keys(&a, "x") == ["ann=1"]);
}

#[test]
fn process_with_the_name_of_an_earlier_one_replaces_its_entries() {
    let stream = TestStream::new();
    let a = stream.node("a", |_| {});
    let b = stream.node("b", |_| {});
    b.enter("x", "ann", "1");
    wait_until("the entry is there", || keys(&a, "x") == ["ann=1"]);
    stream.kill(1, "b");
    let again = stream.node("b", |_| {});
    assert!(keys(&again, "x").is_empty());
    again.enter("x", "bob", "1");
    wait_until("the entry is there", || keys(&a, "x") == ["bob=1"]);
}

#[test]
fn nodes_that_set_a_value_at_once_agree() {
    let stream = TestStream::new();
    let seen: [Arc<Mutex<String>>; 2] = Default::default();
    let nodes = [0, 1].map(|at| {
        let seen = Arc::clone(&seen[at]);
        stream.node(["a", "b"][at], |state| {
            state.watch_value("v", move |json| json.clone_into(&mut seen.lock().unwrap()));
        })
    });
    thread::scope(|scope| {
        for (node, letter) in nodes.iter().zip(["a", "b"]) {
            scope.spawn(move || {
                for number in 0..200 {
                    node.set_value("v", &format!("{letter}{number}"));
                    thread::yield_now();
                }
            });
        }
    });
    wait_until("both agree on the last value of one of them", || {
        let [one, other] = seen.each_ref().map(|seen| seen.lock().unwrap().clone());
        one == other && one.ends_with("199")
    });
    let late = Arc::new(Mutex::new(String::new()));
    let own = Arc::clone(&late);
    stream.node("c", |state| {
        state.watch_value("v", move |json| json.clone_into(&mut own.lock().unwrap()));
    });
    assert_eq!(*late.lock().unwrap(), *seen[0].lock().unwrap());
}

/// A node whose own value was too long did not follow the values of other nodes any more.
#[test]
fn value_beyond_the_bound_does_not_hide_later_ones_of_other_nodes() {
    let stream = TestStream::new();
    let seen = Arc::new(Mutex::new(String::new()));
    let own = Arc::clone(&seen);
    let a = stream.node("a", |state| {
        state.watch_value("v", move |json| json.clone_into(&mut own.lock().unwrap()));
    });
    let b = stream.node("b", |_| {});
    a.set_value("v", &"x".repeat(1 << 20));
    wait_until("the long value has come back", || {
        let outbox = a.0.outbox();
        outbox.values.is_empty() && outbox.sent_values.is_empty()
    });
    b.set_value("v", "1");
    wait_until("the value of the other node is there", || *seen.lock().unwrap() == "1");
}

#[test]
fn messages_reach_the_nodes_that_they_are_sent_to() {
    let stream = TestStream::new();
    let heard: [Arc<Mutex<Vec<String>>>; 2] = Default::default();
    let [a, b] = [0, 1].map(|at| {
        let heard = Arc::clone(&heard[at]);
        stream.node(["a", "b"][at], |state| {
            state.receive("t", move |body| heard.lock().unwrap().push(body.to_owned()));
        })
    });
    a.send("t", None, "to all").unwrap();
    a.send("t", Some("b"), "to b").unwrap();
    b.send_later("t", Some("a"), "to a");
    a.send("other", None, "to nobody").unwrap();
    let all = || heard.each_ref().map(|heard| heard.lock().unwrap().join(", "));
    wait_until("all have arrived", || all() == ["to all, to a", "to all, to b"]);
}
