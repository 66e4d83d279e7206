//! Tests of several replicas on one simulated stream, which loses, repeats and delays messages, with
//! nodes that crash and return.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::*;
use crate::IndexOf;
use crate::extension::{Extension, SnapshotBlocks};
use crate::id::{Id, RowId};
use crate::schema::{Column, Index, Schema, Table};
use crate::snapshot::Snapshot;
use crate::stream::message::{Entry, Message, Origin};
use crate::transaction::Transaction;
use crate::value::{Field, Value};

/// A row with a unique key, a group and an amount.
#[derive(Clone, PartialEq, Debug)]
struct Account {
    id: Id<Account>,
    key: u8,
    group: u8,
    amount: u64,
}

const KEY: IndexOf<Account, (u8,)> = IndexOf::position(0);
const GROUP: IndexOf<Account, (u8, u8)> = IndexOf::position(1);

impl Table for Account {
    const NAME: &'static str = "account";

    fn schema() -> Schema {
        let columns =
            vec![Column::of::<u8>("key"), Column::of::<u8>("group"), Column::of::<u64>("amount")];
        let indexes = vec![
            Index { columns: vec![0], is_unique: true },
            Index { columns: vec![1, 0], is_unique: false },
        ];
        Schema { columns, indexes, ..Schema::new("account") }
    }

    fn id(&self) -> RowId {
        self.id.row()
    }

    fn set_id(&mut self, id: RowId) {
        self.id = Id::of(id);
    }

    fn values<'r>(&'r self, to: &mut Vec<Value<'r>>) {
        to.extend([self.key.value(), self.group.value(), self.amount.value()]);
    }

    fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self> {
        let [key, group, amount] = values else { return None };
        let (key, group) = (Field::from_value(*key)?, Field::from_value(*group)?);
        Some(Self { id: Id::of(id), key, group, amount: Field::from_value(*amount)? })
    }
}

/// One row for each committed transaction.
struct Receipt {
    id: Id<Receipt>,
}

impl Table for Receipt {
    const NAME: &'static str = "receipt";

    fn schema() -> Schema {
        Schema::new("receipt")
    }

    fn id(&self) -> RowId {
        self.id.row()
    }

    fn set_id(&mut self, id: RowId) {
        self.id = Id::of(id);
    }

    fn values<'r>(&'r self, _to: &mut Vec<Value<'r>>) {}

    fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self> {
        values.is_empty().then_some(Self { id: Id::of(id) })
    }
}

/// An extension that keeps all its records.
#[derive(Default)]
struct Records(Mutex<Vec<(u64, Vec<u8>)>>);

impl Records {
    fn push(&self, sequence: u64, record: &[u8]) {
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        own.push((sequence, record.to_vec()));
    }

    fn all(&self) -> Vec<(u64, Vec<u8>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Extension for Records {
    fn load_block(&self, block: &[u8]) -> Result<(), String> {
        let (sequence, record) = block.split_first_chunk().ok_or("a block has a sequence")?;
        self.push(u64::from_be_bytes(*sequence), record);
        Ok(())
    }

    fn replay(&self, sequence: u64, record: &[u8]) -> Result<(), String> {
        self.push(sequence, record);
        Ok(())
    }

    fn finish_load(&self) -> Result<(), String> {
        Ok(())
    }

    fn snapshot(&self) -> SnapshotBlocks {
        let block =
            |(sequence, record): (u64, Vec<u8>)| [&sequence.to_be_bytes()[..], &record].concat();
        Box::new(self.all().into_iter().map(block))
    }
}

/// A reproducible random generator (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A step of a transaction, with what it observed.
#[derive(Clone, Debug)]
enum Step {
    Read(u8, Option<u64>),
    /// The number and the sum of the rows of a group.
    Sum(u8, (usize, u64)),
    Put(u8, u8, u64),
    Remove(u8),
}

/// A transaction of the test, by its receipt.
struct Recorded {
    steps: Vec<Step>,
    outcome: Outcome,
}

enum Outcome {
    Open(Pending),
    Committed(u64),
    Conflict,
    Unknown,
}

/// The commits that a node has seen: sequence and receipt.
type Seen = Arc<Mutex<Vec<(u64, RowId)>>>;

struct Node {
    replica: Replica,
    records: Arc<Records>,
    /// The number of the last message in the stream or lost.
    sent: u64,
    /// Transactions that have not been committed yet.
    open: Vec<(Transaction, RowId, Vec<Step>)>,
}

/// The position and the blocks of a snapshot.
type KeptSnapshot = (u64, Vec<Vec<u8>>);

/// A mistake that the checker must find.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bug {
    /// Nodes do not see what a transaction has read.
    ForgetsReads,
    /// One node misses the entries of some messages.
    LosesEntries,
    /// One node applies some neighboring messages in the other order.
    SwapsMessages,
}

/// Several nodes, and the stream that they share.
struct Simulation {
    random: Random,
    stream: Vec<Vec<u8>>,
    nodes: Vec<Option<Node>>,
    transactions: BTreeMap<RowId, Recorded>,
    /// All commits that any node has seen.
    seen: Vec<Seen>,
    snapshots: Arc<Mutex<Vec<KeptSnapshot>>>,
    bug: Option<Bug>,
    /// A failed step of a transaction.
    failure: Option<Error>,
}

const KEYS: u64 = 8;
const GROUPS: u64 = 3;

impl Simulation {
    fn new(seed: u64, bug: Option<Bug>) -> Self {
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut own = Self {
            random,
            stream: Vec::new(),
            nodes: Vec::new(),
            transactions: BTreeMap::new(),
            seen: Vec::new(),
            snapshots: Arc::default(),
            bug,
            failure: None,
        };
        for _ in 0..3 {
            own.nodes.push(None);
        }
        for node in 0..3 {
            own.join(node);
        }
        own
    }

    /// Starts a node from a snapshot, if there is one, or from the begin of the stream.
    fn join(&mut self, at: usize) {
        let records = Arc::new(Records::default());
        let extension: Arc<dyn Extension> = Arc::<Records>::clone(&records);
        let options = Options::new().table::<Account>().table::<Receipt>().extension(extension);
        let snapshots = self.snapshots.lock().unwrap();
        let replica = match snapshots.last() {
            Some((position, blocks)) => {
                let blocks = blocks.iter().cloned().map(Ok);
                let replica = Replica::from_snapshot(options, blocks, || {}).unwrap();
                assert_eq!(replica.position(), *position);
                replica
            }
            None => Replica::new(options, || {}).unwrap(),
        };
        drop(snapshots);
        let seen = Seen::default();
        let own = Arc::clone(&seen);
        self.nodes[at] = Some(Node { replica, records, sent: 0, open: Vec::new() });
        self.seen.push(seen);
        self.receive(at, usize::MAX);
        let node = self.nodes[at].as_ref().unwrap();
        let declared = match node.replica.declare() {
            Ok(declared) => declared,
            Err(error) => {
                self.failure = Some(Error::Broken(error.to_string().into()));
                self.nodes[at] = None;
                return;
            }
        };
        self.send_all(at);
        self.receive(at, usize::MAX);
        let node = self.nodes[at].as_ref().unwrap();
        declared.wait().unwrap();
        let replica = node.replica.store().clone();
        let position =
            replica.read().definitions.iter().position(|own| own.schema.name == "receipt");
        let position = position.unwrap();
        replica.observe(move |changes| {
            let rows = changes.rows(position).unwrap_or_default();
            let mut own = own.lock().unwrap();
            own.extend(rows.iter().map(|row| (changes.sequence, *row)));
        });
    }

    /// Appends up to one message of a node to the stream.
    fn send(&mut self, at: usize, is_faulty: bool) -> bool {
        let Some(node) = &mut self.nodes[at] else { return false };
        let Some((number, message)) = node.replica.unconfirmed_after(node.sent) else {
            return false;
        };
        node.sent = number;
        if is_faulty && self.random.chance(5) {
            // Lost: the node notices when its next message comes back.
            return true;
        }
        self.stream.push(message.to_vec());
        if is_faulty && self.random.chance(5) {
            self.stream.push(message.to_vec());
        }
        true
    }

    fn send_all(&mut self, at: usize) {
        while self.send(at, false) {}
    }

    /// Delivers up to `count` messages to a node.
    fn receive(&mut self, at: usize, count: usize) {
        for _ in 0..count {
            let Some(node) = &mut self.nodes[at] else { return };
            let position = node.replica.position();
            let Some(message) = self.stream.get(position as usize) else { return };
            let is_buggy = at == 1 && self.random.chance(10);
            let message = match self.bug {
                Some(Bug::ForgetsReads) => without_reads(message),
                Some(Bug::LosesEntries) if is_buggy => without_entries(message),
                Some(Bug::SwapsMessages) if is_buggy => {
                    let next = self.stream.get(position as usize + 1);
                    // Another node's message, so that this one notices nothing.
                    let is_other = |next: &&Vec<u8>| next[1..17] != message[1..17];
                    if let Some(next) = next.filter(is_other) {
                        let pair = [(1, next), (2, message)];
                        for (step, message) in pair {
                            let delivered = node.replica.deliver(position + step, message);
                            if let Err(why) = delivered {
                                self.failure = Some(Error::Broken(why.into()));
                            }
                        }
                        continue;
                    }
                    message.clone()
                }
                _ => message.clone(),
            };
            match node.replica.deliver(position + 1, &message) {
                Ok(Delivered::NeedsResend) => node.sent = 0,
                Ok(Delivered::Applied | Delivered::Ignored) => {}
                Err(why) => {
                    self.failure = Some(Error::Broken(why.into()));
                    self.nodes[at] = None;
                }
            }
        }
    }

    /// Runs the steps of a transaction on a node, and leaves it open.
    fn begin(&mut self, at: usize) {
        let Some(node) = &mut self.nodes[at] else { return };
        let random = &mut self.random;
        let mut transaction = node.replica.store().begin();
        let receipt = transaction.insert(Receipt { id: Id::unassigned() }).unwrap().row();
        let mut steps = Vec::new();
        for _ in 0..=random.below(4) {
            let (key, group) = (random.below(KEYS) as u8, random.below(GROUPS) as u8);
            let found = transaction.one(KEY, key);
            steps.push(Step::Read(key, found.as_ref().map(|found| found.amount)));
            match random.below(4) {
                0 => {
                    let rows: Vec<Account> =
                        transaction.range(GROUP, (group, 0)..=(group, u8::MAX)).collect();
                    let sum = rows.iter().map(|row| row.amount).sum();
                    steps.push(Step::Sum(group, (rows.len(), sum)));
                }
                1 => {
                    if let Some(found) = found {
                        transaction.remove(found.id).unwrap();
                    }
                    steps.push(Step::Remove(key));
                }
                _ => {
                    let amount = random.below(1000);
                    let written = match found {
                        Some(found) => transaction.update(found.id, |row: &mut Account| {
                            (row.group, row.amount) = (group, amount);
                        }),
                        None => {
                            let row = Account { id: Id::unassigned(), key, group, amount };
                            transaction.insert(row).map(drop)
                        }
                    };
                    self.failure = self.failure.take().or(written.err());
                    steps.push(Step::Put(key, group, amount));
                }
            }
        }
        node.open.push((transaction, receipt, steps));
    }

    /// Commits the oldest open transaction of a node.
    fn commit(&mut self, at: usize) {
        let Some(node) = &mut self.nodes[at] else { return };
        if node.open.is_empty() {
            return;
        }
        let (transaction, receipt, steps) = node.open.remove(0);
        let outcome = match node.replica.store().commit(transaction) {
            Ok(pending) => Outcome::Open(pending),
            Err(Error::Conflict) => Outcome::Conflict,
            Err(error) => panic!("{error}"),
        };
        self.transactions.insert(receipt, Recorded { steps, outcome });
    }

    fn step(&mut self) {
        let at = self.random.below(3) as usize;
        match self.random.below(100) {
            // The first node sees all commits.
            0 if at > 0 => self.nodes[at] = None,
            1 => {
                if let Some(node) = &mut self.nodes[at] {
                    node.replica.cut_off("test");
                    assert!(node.replica.unconfirmed_after(0).is_none());
                    node.sent = 0;
                    node.replica.reconnect();
                }
            }
            2 => self.request_snapshot(at),
            3..6 => {
                if let Some(node) = &self.nodes[at] {
                    let record = [at as u8, self.random.below(256) as u8];
                    let records = Arc::clone(&node.records);
                    let then = move |sequence| records.push(sequence, &record);
                    drop(node.replica.store().append(&record, Sync::Commit, then).unwrap());
                }
            }
            6..30 => self.begin(at),
            30..50 => self.commit(at),
            50..70 => drop(self.send(at, true)),
            _ => {
                let count = self.random.below(4) as usize;
                self.receive(at, count);
            }
        }
        if self.nodes[at].is_none() && self.random.chance(20) {
            self.join(at);
        }
    }

    fn request_snapshot(&self, at: usize) {
        let Some(node) = &self.nodes[at] else { return };
        let snapshots = Arc::clone(&self.snapshots);
        let keep = move |snapshot: ReplicaSnapshot| {
            let (position, mut blocks) = (snapshot.position(), Vec::new());
            let mut put = |block: &[u8]| {
                blocks.push(block.to_vec());
                Ok(())
            };
            snapshot.write(&mut put).unwrap();
            snapshots.lock().unwrap().push((position, blocks));
        };
        node.replica.request_snapshot(keep).unwrap();
    }

    /// Lets all nodes complete what they have begun.
    fn finish(&mut self) {
        for at in 0..3 {
            if self.nodes[at].is_none() {
                self.join(at);
            }
        }
        for _ in 0..3 {
            for at in 0..3 {
                self.receive(at, usize::MAX);
                if let Some(node) = &mut self.nodes[at] {
                    node.sent = 0;
                }
                self.send_all(at);
            }
        }
        for at in 0..3 {
            self.receive(at, usize::MAX);
        }
        for recorded in self.transactions.values_mut() {
            let Outcome::Open(pending) = &mut recorded.outcome else { continue };
            let poll = Pin::new(pending).poll(&mut Context::from_waker(Waker::noop()));
            recorded.outcome = match poll {
                Poll::Ready(Ok(sequence)) => Outcome::Committed(sequence),
                Poll::Ready(Err(Error::Conflict)) => Outcome::Conflict,
                // The node was cut off, or has crashed.
                Poll::Ready(Err(Error::Unconfirmed(_) | Error::Closed)) => Outcome::Unknown,
                other => {
                    let message = format!("{other:?}");
                    self.failure = Some(Error::Broken(message.into()));
                    Outcome::Unknown
                }
            };
        }
    }

    /// Checks that all nodes have seen one history, that it is serializable in its own order, and
    /// that each acknowledged transaction is in it.
    fn check(&self) -> Result<(), String> {
        if let Some(error) = &self.failure {
            return Err(error.to_string());
        }
        let mut order = BTreeMap::new();
        for seen in &self.seen {
            let seen = seen.lock().unwrap();
            if !seen.is_sorted_by_key(|(sequence, _)| *sequence) {
                return Err("a node saw commits in another order".to_owned());
            }
            for (sequence, receipt) in &*seen {
                if order.insert(*sequence, *receipt).is_some_and(|other| other != *receipt) {
                    return Err(format!("two commits have the sequence {sequence}"));
                }
            }
        }
        let mut sequences = BTreeMap::new();
        for (sequence, receipt) in &order {
            if sequences.insert(*receipt, *sequence).is_some() {
                return Err(format!("a commit was applied twice, the second time as {sequence}"));
            }
        }
        for (receipt, recorded) in &self.transactions {
            match (&recorded.outcome, sequences.get(receipt)) {
                (Outcome::Committed(told), Some(sequence)) if told == sequence => {}
                (Outcome::Conflict, None) | (Outcome::Unknown, _) => {}
                (Outcome::Committed(told), _) => {
                    return Err(format!("the acknowledged commit {told} is lost"));
                }
                (_, found) => return Err(format!("a rejected commit has an effect: {found:?}")),
            }
        }
        let mut model = BTreeMap::new();
        for (sequence, receipt) in &order {
            replay(&mut model, &self.transactions[receipt].steps)
                .map_err(|why| format!("commit {sequence}: {why}"))?;
        }
        self.compare_nodes(&model)
    }

    fn compare_nodes(&self, model: &BTreeMap<u8, (u8, u64)>) -> Result<(), String> {
        let nodes: Vec<&Node> = self.nodes.iter().flatten().collect();
        let snapshots: Vec<Snapshot> =
            nodes.iter().map(|node| node.replica.store().read()).collect();
        let rows = |snapshot: &Snapshot| snapshot.all::<Account>().collect::<Vec<Account>>();
        let first = rows(&snapshots[0]);
        for (node, snapshot) in nodes.iter().zip(&snapshots) {
            if rows(snapshot) != first || snapshot.sequence() != snapshots[0].sequence() {
                return Err("nodes have different rows".to_owned());
            }
            let receipts = snapshot.all::<Receipt>().count();
            if receipts != snapshots[0].all::<Receipt>().count() {
                return Err("nodes have different receipts".to_owned());
            }
            if node.records.all() != nodes[0].records.all() {
                return Err("nodes have different records of the extension".to_owned());
            }
        }
        let rows = first.iter().map(|row| (row.key, (row.group, row.amount)));
        if rows.collect::<BTreeMap<_, _>>() != *model {
            return Err("the rows are not those of the history".to_owned());
        }
        Ok(())
    }
}

/// Runs the steps of a transaction on a model of the accounts, and compares what it observed.
fn replay(model: &mut BTreeMap<u8, (u8, u64)>, steps: &[Step]) -> Result<(), String> {
    for step in steps {
        match step {
            Step::Read(key, observed) => {
                let amount = model.get(key).map(|(_, amount)| *amount);
                if amount != *observed {
                    return Err(format!("read {observed:?} at {key} in place of {amount:?}"));
                }
            }
            Step::Sum(group, observed) => {
                let rows = model.values().filter(|(own, _)| own == group);
                let sum = rows.fold((0, 0), |(count, sum), (_, amount)| (count + 1, sum + amount));
                if sum != *observed {
                    return Err(format!("summed up {observed:?} in place of {sum:?}"));
                }
            }
            Step::Put(key, group, amount) => {
                model.insert(*key, (*group, *amount));
            }
            Step::Remove(key) => {
                model.remove(key);
            }
        }
    }
    Ok(())
}

fn rewritten(message: &[u8], change: impl Fn(Entry<'_>) -> Option<Entry<'_>>) -> Vec<u8> {
    let message = Message::read(message).unwrap();
    let entries = Entry::read_all(message.body).unwrap();
    let mut body = Vec::new();
    entries.into_iter().filter_map(change).for_each(|entry| entry.write(&mut body));
    Message { body: &body, ..message }.write()
}

fn without_reads(message: &[u8]) -> Vec<u8> {
    rewritten(message, |entry| match entry {
        Entry::Rows { base, record, .. } => Some(Entry::Rows { base, reads: &[], record }),
        entry => Some(entry),
    })
}

fn without_entries(message: &[u8]) -> Vec<u8> {
    rewritten(message, |entry| match entry {
        Entry::Rows { .. } => None,
        entry => Some(entry),
    })
}

fn run(seed: u64, steps: usize, bug: Option<Bug>) -> (Result<(), String>, Simulation) {
    let mut simulation = Simulation::new(seed, bug);
    for _ in 0..steps {
        simulation.step();
    }
    simulation.finish();
    (simulation.check(), simulation)
}

#[test]
fn histories_of_three_nodes_are_serializable_and_equal() {
    let (mut committed, mut conflicts, mut snapshots) = (0, 0, 0);
    for seed in 0..1000 {
        let (checked, simulation) = run(seed, 250, None);
        checked.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        for recorded in simulation.transactions.values() {
            match recorded.outcome {
                Outcome::Committed(_) => committed += 1,
                Outcome::Conflict => conflicts += 1,
                Outcome::Open(_) | Outcome::Unknown => {}
            }
        }
        snapshots += simulation.snapshots.lock().unwrap().len();
    }
    assert!(
        committed > 5000 && conflicts > 5000 && snapshots > 500,
        "{committed} {conflicts} {snapshots}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn rejects_or_applies_any_message_without_panic(
        bodies in prop::collection::vec((0_u8..3, any::<Vec<u8>>()), 0..6),
        rows: Vec<u8>,
    ) {
        let mut simulation = Simulation::new(1, None);
        let node = simulation.nodes[0].take().unwrap();
        // A body of arbitrary bytes, and one with an arbitrary row of the first table.
        let row = [&[1, 0, 1][..], &[7; 16], &[rows.len() as u8], &rows].concat();
        let mut with_row = Vec::new();
        Entry::Rows { base: node.replica.position(), reads: &[], record: &row }.write(&mut with_row);
        let bodies = bodies.into_iter().chain([(9, with_row)]);
        for (number, (origin, body)) in (1..).zip(bodies) {
            let origin = Origin([origin; 16]);
            let message = Message { origin, number: 1, is_continued: number % 3 == 0, body: &body };
            if node.replica.deliver(node.replica.position() + 1, &message.write()).is_err() {
                break;
            }
        }
    }
}

#[test]
fn checker_finds_planted_bugs() {
    for bug in [Bug::ForgetsReads, Bug::LosesEntries, Bug::SwapsMessages] {
        let is_found = (0..50).any(|seed| run(seed, 400, Some(bug)).0.is_err());
        assert!(is_found);
    }
}
