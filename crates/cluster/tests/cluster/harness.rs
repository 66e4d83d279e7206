//! Nodes with a simple replica.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak};

use bine_cluster::{Cluster, Link, Options, Outgoing, Replica};
use bine_nats_server::DEADLINE;

/// A node with a list as its replica.
pub(crate) struct Node {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) list: Arc<List>,
}

impl Node {
    /// Connects and follows the stream from its beginning.
    pub(crate) fn start(servers: &str, name: &str) -> Self {
        Self::start_with(Options::new(servers, name), 0)
    }

    pub(crate) fn start_with(options: Options, after: u64) -> Self {
        let name = options.node.clone();
        let cluster = Arc::new(Cluster::connect(options).unwrap());
        let list = Arc::new(List::new(&name));
        list.cluster.set(Arc::downgrade(&cluster)).ok().unwrap();
        cluster.follow(Arc::clone(&list) as Arc<dyn Replica>, after).unwrap();
        Self { cluster, list }
    }

    /// Publishes `count` further messages, and does not wait.
    pub(crate) fn publish(&self, count: u64) {
        for _ in 0..count {
            self.list.queue();
            self.cluster.notify();
        }
    }
}

/// A replica: the accepted messages of all nodes, in order. A message is `node number`.
pub(crate) struct List {
    node: String,
    cluster: OnceLock<Weak<Cluster>>,
    content: Mutex<Content>,
    changed: Condvar,
}

#[derive(Default)]
struct Content {
    accepted: Vec<String>,
    /// The last accepted number of each node.
    last: HashMap<String, u64>,
    /// Messages of this node that the stream has not delivered.
    unconfirmed: VecDeque<u64>,
    queued: u64,
    positions: Vec<u64>,
    links: Vec<Link>,
    warnings: Vec<String>,
}

impl List {
    fn new(node: &str) -> Self {
        Self {
            node: node.to_owned(),
            cluster: OnceLock::new(),
            content: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn queue(&self) {
        let mut content = self.content.lock().unwrap();
        content.queued += 1;
        let number = content.queued;
        content.unconfirmed.push_back(number);
    }

    pub(crate) fn accepted(&self) -> Vec<String> {
        self.content.lock().unwrap().accepted.clone()
    }

    /// Checks that each node's messages are complete and in order, and that positions have no gaps.
    pub(crate) fn check(&self, counts: &[(&str, u64)]) {
        let content = self.content.lock().unwrap();
        for (node, count) in counts {
            let prefix = format!("{node} ");
            let own = content.accepted.iter().filter_map(|text| text.strip_prefix(&prefix));
            let numbers: Vec<u64> = own.map(|number| number.parse().unwrap()).collect();
            assert_eq!(numbers, (1..=*count).collect::<Vec<_>>(), "{node} at {}", self.node);
        }
        assert!(content.positions.windows(2).all(|pair| pair[1] == pair[0] + 1));
    }

    pub(crate) fn wait_for_length(&self, length: usize) {
        drop(self.wait("messages", |content| content.accepted.len() >= length));
    }

    pub(crate) fn wait_for_connected(&self) {
        drop(self.wait("connected", |content| content.links.last() == Some(&Link::Connected)));
    }

    pub(crate) fn wait_for_cut_off(&self) {
        drop(self.wait("cut off", |content| matches!(content.links.last(), Some(Link::CutOff(_)))));
    }

    /// Waits until the node reports a reason for being cut off.
    pub(crate) fn wait_for_cut_off_by(&self, part: &str) {
        let is_it = |link: &Link| matches!(link, Link::CutOff(reason) if reason.contains(part));
        drop(self.wait(part, |content| content.links.last().is_some_and(is_it)));
    }

    /// Waits until the node warns of a problem, and returns all warnings.
    pub(crate) fn wait_for_warning(&self) -> Vec<String> {
        self.wait("a warning", |content| !content.warnings.is_empty()).warnings.clone()
    }

    /// Waits for the end of the link, and returns its reason.
    pub(crate) fn wait_for_end(&self) -> String {
        let content =
            self.wait("ended", |content| matches!(content.links.last(), Some(Link::Ended(_))));
        let Some(Link::Ended(reason)) = content.links.last() else { unreachable!() };
        reason.clone()
    }

    fn wait(&self, what: &str, is_met: impl Fn(&Content) -> bool) -> MutexGuard<'_, Content> {
        let content = self.content.lock().unwrap();
        let waiting =
            self.changed.wait_timeout_while(content, DEADLINE, |content| !is_met(content));
        let (content, timeout) = waiting.unwrap();
        let (links, length) = (&content.links, content.accepted.len());
        assert!(
            !timeout.timed_out(),
            "{} in vain: {what}; {links:?}, {length} messages",
            self.node
        );
        content
    }
}

impl Replica for List {
    fn unconfirmed_after(&self, number: u64) -> Option<Outgoing> {
        let content = self.content.lock().unwrap();
        let first = *content.unconfirmed.front()?;
        let next = first.max(number + 1);
        let bytes = format!("{} {next}", self.node).into();
        content.unconfirmed.get((next - first) as usize).map(|_| Outgoing { number: next, bytes })
    }

    fn deliver(&self, position: u64, message: &[u8]) -> Result<(), String> {
        let text = std::str::from_utf8(message).unwrap();
        let Some((node, number)) = text.split_once(' ') else { return Err(text.to_owned()) };
        let number: u64 = number.parse().unwrap();
        let mut content = self.content.lock().unwrap();
        content.positions.push(position);
        let last = content.last.entry(node.to_owned()).or_default();
        if number == *last + 1 {
            *last = number;
            content.accepted.push(text.to_owned());
            if node == self.node {
                assert_eq!(content.unconfirmed.pop_front(), Some(number));
            }
        } else if number > *last && node == self.node {
            self.cluster.get().and_then(Weak::upgrade).unwrap().resend();
        }
        self.changed.notify_all();
        Ok(())
    }

    fn use_link(&self, link: &Link) {
        self.content.lock().unwrap().links.push(link.clone());
        self.changed.notify_all();
    }

    fn warn(&self, problem: &str) {
        self.content.lock().unwrap().warnings.push(problem.to_owned());
        self.changed.notify_all();
    }
}
