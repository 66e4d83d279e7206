//! Measures transactions of several nodes that share one stream, with a running NATS server. All nodes are
//! in this process, each with its own connection, so CPU time is that of all nodes together.
//!
//! `nats-server --jetstream --store_dir FOLDER`, then `cargo run --release -p bine-bench --example
//! replicated-commits -- nats://127.0.0.1:4222 [ROWS [COPIES [COMMITS]]]`. ROWS is the size of the
//! table that a node joins with, by default a million; 0: no node joins. COPIES is the number of
//! NATS servers that store each change. COMMITS is the number of transactions of each rate, by
//! default 60 000; a twentieth of this number is measured one at a time. Each run uses new streams.
//! `bine-bench commits` starts NATS servers and this program.

mod compare_and_set;
mod publishes;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};
use std::{panic, process, thread};

use bine_cluster::{Cluster, Link, Options as LinkOptions, Outgoing};
use bine_store::{
    Change, Column, Delivered, Error, Options, Replica, ReplicaSnapshot, RowId, Schema, Store,
    Transaction, Value,
};
use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};

/// Transactions of each rate, unless the command has a different number.
const MANY: usize = 60_000;
/// Transactions under way at a time.
const IN_FLIGHT: usize = 256;
/// The number of transactions of a rate for each transaction that is measured one at a time.
const SINGLE_SHARE: usize = 20;
/// Rows of one transaction that fills the table.
const ROWS_AT_ONCE: usize = 500;
/// The longest wait.
const DEADLINE: Duration = Duration::from_mins(5);

/// The NATS servers.
struct Target {
    url: String,
    /// The number of servers that store each change.
    copies: usize,
}

/// A replica and its link.
struct Node {
    replica: Replica,
    cluster: Arc<OnceLock<Cluster>>,
    is_connected: Mutex<bool>,
    changed: Condvar,
}

impl bine_cluster::Replica for Node {
    fn unconfirmed_after(&self, number: u64) -> Option<Outgoing> {
        let (number, bytes) = self.replica.unconfirmed_after(number)?;
        Some(Outgoing { number, bytes: Bytes::from_owner(bytes) })
    }

    fn deliver(&self, position: u64, message: &[u8]) -> Result<(), String> {
        if self.replica.deliver(position, message)? == Delivered::NeedsResend {
            self.link().resend();
        }
        Ok(())
    }

    fn use_link(&self, link: &Link) {
        *self.is_connected.lock().expect("no panic") = *link == Link::Connected;
        self.changed.notify_all();
    }
}

impl Node {
    fn link(&self) -> &Cluster {
        self.cluster.get().expect("it is set")
    }

    /// Starts a node and waits until it has caught up and declared its table.
    fn start(target: &Target, stream: &str, name: &str) -> Arc<Self> {
        let options = LinkOptions {
            name: stream.to_owned(),
            replicas: target.copies,
            ..LinkOptions::new(&target.url, name)
        };
        let link = Cluster::connect(options).expect("a NATS server answers");
        let cluster: Arc<OnceLock<Cluster>> = Arc::default();
        let own = Arc::clone(&cluster);
        let wake = move || {
            if let Some(cluster) = own.get() {
                cluster.notify();
            }
        };
        let snapshot = link.newest_snapshot().expect("the bucket answers");
        let replica = match snapshot {
            Some(blocks) => {
                let blocks = blocks.map(|block| block.map_err(|error| error.to_string()));
                Replica::from_snapshot(Options::new(), blocks, wake)
            }
            None => Replica::new(Options::new(), wake),
        };
        let replica = replica.expect("the snapshot is intact");
        let after = replica.position();
        let node = Arc::new(Self {
            replica,
            cluster,
            is_connected: Mutex::default(),
            changed: Condvar::new(),
        });
        assert!(node.cluster.set(link).is_ok());
        let following: Arc<dyn bine_cluster::Replica> = Arc::<Self>::clone(&node);
        node.link().follow(following, after).expect("once");
        let connected = node.is_connected.lock().expect("no panic");
        let waited = node.changed.wait_timeout_while(connected, DEADLINE, |connected| !*connected);
        assert!(!waited.expect("no panic").1.timed_out(), "the node does not catch up");
        let mut row = Schema::new("row");
        row.columns.push(Column::of::<String>("text"));
        row.columns.push(Column::of::<i64>("number"));
        node.store().declare(&[row]).expect("it is valid").wait().expect("it is delivered");
        node
    }

    fn store(&self) -> &Store {
        self.replica.store()
    }

    /// Waits until the node has all messages of `other`.
    fn catch_up(&self, other: &Self) {
        let deadline = Instant::now() + DEADLINE;
        while self.replica.position() < other.replica.position() {
            assert!(Instant::now() < deadline, "the node does not catch up");
            thread::park_timeout(Duration::from_millis(1));
        }
    }
}

/// A row of about 100 bytes.
fn insert(change: &mut Transaction) -> Result<RowId, Error> {
    const TEXT: &str = "a row of a hundred bytes, as the other measurements of the store have it, to be comparable";
    change.insert_values("row", &[Value::Text(TEXT), Value::Integer(0)])
}

fn cpu() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec.unsigned_abs() as u32)
}

/// The resident memory of the process in MB.
fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok());
    pages.unwrap_or_default() * 4096.0 / 1e6
}

fn main() {
    // If a node panicked, the remaining nodes would wait for ever.
    let report = panic::take_hook();
    #[expect(clippy::disallowed_methods, reason = "the other threads would wait for ever")]
    panic::set_hook(Box::new(move |panic| {
        report(panic);
        process::exit(1);
    }));
    let mut arguments = std::env::args().skip(1);
    let Some(url) = arguments.next() else {
        eprintln!("name the NATS servers: nats://127.0.0.1:4222");
        return;
    };
    let mut number = |default| match arguments.next() {
        Some(word) => word.parse().expect("a number"),
        None => default,
    };
    let (rows, copies) = (number(1_000_000), number(1));
    let many = number(MANY);
    let single = (many / SINGLE_SHARE).max(1);
    let target = Target { url, copies };
    let run = std::process::id();
    publishes::measure(&target, &format!("bench-{run}-bare"), [single, many]);
    println!(
        "\n| nodes | one at a time, p50 ms | p99 ms | {IN_FLIGHT} in flight, tx/s | CPU us a tx, all nodes |"
    );
    println!("|---|---|---|---|---|");
    for count in [1, 2, 4] {
        let stream = format!("bench-{run}-{count}");
        let nodes = start_all(&target, &stream, count);
        let (p50, p99) = latency(&nodes[0], single);
        let (rate, cpu) = throughput(&nodes, many);
        println!("| {count} | {p50:.2} | {p99:.2} | {rate:.0} | {cpu:.0} |");
        leave(nodes);
    }
    println!(
        "\n| nodes | change | validation | tx/s | attempts that conflict, % | CPU us a tx, all nodes |"
    );
    println!("|---|---|---|---|---|---|");
    for count in [2, 4] {
        let stream = format!("bench-{run}-contended-{count}");
        let nodes = start_all(&target, &stream, count);
        for is_one_row in [true, false] {
            contention(&nodes, is_one_row, single);
            let stream = format!("bench-{run}-last-{count}-{is_one_row}");
            compare_and_set::measure(&target, &stream, [count, single], is_one_row);
        }
        leave(nodes);
    }
    if rows > 0 {
        println!();
        join(&target, &format!("bench-{run}-join"), rows);
    }
}

fn start_all(target: &Target, stream: &str, count: usize) -> Vec<Arc<Node>> {
    (0..count).map(|number| Node::start(target, stream, &format!("n{number}"))).collect()
}

fn leave(nodes: Vec<Arc<Node>>) {
    for node in nodes {
        node.link().leave();
    }
}

/// One transaction at a time.
fn latency(node: &Node, count: usize) -> (f64, f64) {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        node.store().change(insert).wait().expect("it is accepted");
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    (times[count / 2], times[count * 99 / 100])
}

/// Many transactions at a time, from all nodes alike. Returns the rate and the CPU time of each.
fn throughput(nodes: &[Arc<Node>], many: usize) -> (f64, f64) {
    let (begun, cpu_before) = (Instant::now(), cpu());
    let share = many / nodes.len();
    thread::scope(|scope| {
        for node in nodes {
            scope.spawn(move || {
                let mut pending = VecDeque::new();
                for _ in 0..share {
                    let mut change = node.store().begin();
                    insert(&mut change).expect("it is valid");
                    pending.push_back(node.store().commit(change).expect("it is accepted"));
                    if pending.len() >= IN_FLIGHT / nodes.len() {
                        pending.pop_front().expect("there is one").wait().expect("no conflict");
                    }
                }
                for one in pending {
                    one.wait().expect("no conflict");
                }
            });
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    for node in nodes {
        node.catch_up(&nodes[0]);
    }
    let total = (share * nodes.len()) as f64;
    (total / seconds, cpu().saturating_sub(cpu_before).as_secs_f64() * 1e6 / total)
}

/// All nodes change one row, or each node changes a separate row, `changes` times each.
fn contention(nodes: &[Arc<Node>], is_one_row: bool, changes: usize) {
    let store = nodes[0].store();
    let new_row = || store.change(insert).wait().expect("it is accepted");
    let first = new_row();
    let rows: Vec<RowId> =
        nodes.iter().map(|_| if is_one_row { first } else { new_row() }).collect();
    for node in nodes {
        node.catch_up(&nodes[0]);
    }
    let (begun, cpu_before) = (Instant::now(), cpu());
    let refused: usize = thread::scope(|scope| {
        let start = |(node, row): (&Arc<Node>, RowId)| {
            let node = Arc::clone(node);
            scope.spawn(move || (0..changes).map(|_| refused_before(&node, row)).sum::<usize>())
        };
        let threads: Vec<_> = nodes.iter().zip(rows).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    let contended = Contended {
        nodes: nodes.len(),
        changes,
        is_one_row,
        refused,
        elapsed: begun.elapsed(),
        cpu: cpu().saturating_sub(cpu_before),
    };
    contended.print("read set");
}

/// The outcome of nodes that change rows at the same time.
struct Contended {
    nodes: usize,
    /// The changes of each node.
    changes: usize,
    is_one_row: bool,
    /// Attempts that conflicted.
    refused: usize,
    elapsed: Duration,
    /// The CPU time of all nodes.
    cpu: Duration,
}

impl Contended {
    fn print(&self, validation: &str) {
        let Self { nodes, changes, refused, elapsed, cpu, .. } = self;
        let done = (nodes * changes) as f64;
        let change = if self.is_one_row { "one row" } else { "rows of their own" };
        let (rate, share) =
            (done / elapsed.as_secs_f64(), 100.0 * *refused as f64 / (*refused as f64 + done));
        let cpu = cpu.as_secs_f64() * 1e6 / done;
        println!("| {nodes} | {change} | {validation} | {rate:.0} | {share:.0} | {cpu:.0} |");
    }
}

/// Adds one to a row, and returns how many attempts conflicted.
fn refused_before(node: &Node, row: RowId) -> usize {
    let add = |change: &mut Transaction| {
        let table = change.table_named("row").expect("it is declared");
        let number = match table.row(row).map(|row| row.values()[1]) {
            Some(Value::Integer(number)) => number,
            _ => 0,
        };
        change.update_named("row", row, &[("number", Value::Integer(number + 1))])
    };
    let mut refused = 0;
    loop {
        let once: Change<_, _, Error> = node.store().change_once(add);
        match once.wait() {
            Ok(()) => return refused,
            Err(Error::Conflict) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A node joins by a snapshot.
fn join(target: &Target, stream: &str, rows: usize) {
    let empty = resident();
    let first = Node::start(target, stream, "first");
    let mut pending = VecDeque::new();
    let begun = Instant::now();
    for _ in 0..rows.div_ceil(ROWS_AT_ONCE) {
        let mut change = first.store().begin();
        for _ in 0..ROWS_AT_ONCE {
            insert(&mut change).expect("it is valid");
        }
        pending.push_back(first.store().commit(change).expect("it is accepted"));
        if pending.len() >= IN_FLIGHT {
            pending.pop_front().expect("there is one").wait().expect("no conflict");
        }
    }
    for one in pending {
        one.wait().expect("no conflict");
    }
    let filled = begun.elapsed().as_secs_f64();
    let with_rows = resident();
    let begun = Instant::now();
    let (sender, receiver) = mpsc::channel::<ReplicaSnapshot>();
    let then = move |snapshot| sender.send(snapshot).expect("it is awaited");
    first.replica.request_snapshot(then).expect("it is accepted");
    let snapshot = receiver.recv_timeout(DEADLINE).expect("the mark comes back");
    let position = snapshot.position();
    let (sender, blocks) = mpsc::sync_channel(2);
    let written = thread::spawn(move || {
        let mut put = |block: &[u8]| sender.send(block.to_vec()).map_err(|error| error.to_string());
        snapshot.write(&mut put)
    });
    let stored = first.link().write_snapshot(position, blocks.into_iter()).expect("it is stored");
    written.join().expect("no panic").expect("all blocks are taken");
    let wrote = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let second = Node::start(target, stream, "second");
    let joined = begun.elapsed().as_secs_f64();
    let count = second.store().read().table_named("row").map_or(0, |table| table.count());
    println!(
        "{count} rows: filled in {filled:.1} s; snapshot of {} MB in {wrote:.1} s; a node joins in {joined:.1} s; resident {empty:.0} MB, {with_rows:.0} with one node, {:.0} with two",
        stored.bytes / 1_000_000,
        resident(),
    );
    for node in [first, second] {
        node.link().leave();
    }
}
