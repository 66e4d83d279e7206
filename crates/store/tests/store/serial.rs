//! Tests of serializability: the reads and writes of concurrent transactions equal those of a
//! serial execution in commit order.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use bine_store::disk::{Fault, SimulatedFolder};
use bine_store::{Changes, Error, Id, Pending, ReadSet, Store, Transaction};

use crate::model::{IdPool, Model, Operation, Outcome, Query};
use crate::random::Random;
use crate::tables::{self, Receipt};

const THREADS: u64 = 4;
/// Transactions of each thread.
const CHANGES: u64 = 50;
/// The environment variable `BINE_HISTORIES` overrides this number.
const HISTORIES: u64 = 100;

#[test]
fn concurrent_changes_are_serializable() {
    let mut stats = HistoryStats::default();
    for seed in 0..histories() {
        let store = Store::in_memory(tables::options()).unwrap();
        let after = run_history(&store, seed, None, &mut stats);
        assert_eq!(Model::of(&store.read()), after, "seed {seed}");
    }
    println!("{stats:?}");
    if histories() >= HISTORIES {
        let counts = [stats.conflicts / 100, stats.refused / 100, stats.changes / 1000];
        assert!(counts.iter().all(|count| *count > 0), "{stats:?}");
    }
}

#[test]
fn changes_are_serializable_on_a_full_disk() {
    let mut stats = HistoryStats::default();
    for seed in 0..histories() {
        let disk = SimulatedFolder::new(seed, 1 << 30);
        let open = || {
            let options = tables::options().segment(2 << 10);
            let folder = Arc::new(disk.process());
            Store::in_folder(folder, options, &mut |_, _| {}).unwrap()
        };
        let store = open();
        let after = run_history(&store, seed, Some(&disk), &mut stats);
        assert_eq!(Model::of(&store.read()), after, "seed {seed}");
        drop(store);
        disk.heal();
        disk.set_room(1 << 30);
        assert_eq!(Model::of(&open().read()), after, "seed {seed}");
    }
    println!("{stats:?}");
    if histories() >= HISTORIES {
        assert!(stats.full > 20 && stats.changes > 1000, "{stats:?}");
    }
}

fn histories() -> u64 {
    let wanted = std::env::var("BINE_HISTORIES").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(HISTORIES)
}

/// Counts events, so that a test without effect is noticed.
#[derive(Default, Debug)]
struct HistoryStats {
    changes: u64,
    read_only: u64,
    refused: u64,
    conflicts: u64,
    full: u64,
    /// Changes without a waiting caller that failed on a full disk.
    forgotten: u64,
}

/// A transaction, or a read of all tables.
#[derive(Default, Debug)]
struct Transcript {
    /// Its own commit, or the last one before it.
    at: Option<u64>,
    steps: Vec<Step>,
    /// Whether its writes should be committed.
    is_kept: bool,
    /// Whether its commit was acknowledged.
    is_acknowledged: bool,
    receipt: Option<Id<Receipt>>,
}

#[derive(Debug)]
enum Step {
    Read(Query, String),
    ReadAll(Box<Model>),
    Wrote(Operation, Outcome),
}

/// Creates users and messages, so that transactions conflict.
fn fill(store: &Store) -> IdPool {
    let mut random = Random(7);
    let mut pool = IdPool::default();
    for _ in 0..40 {
        let made = store.change(|change| {
            let operation = Operation::draw(&pool, &mut random);
            let outcome = operation.apply_to(change);
            Ok::<_, Error>((operation, outcome))
        });
        let (operation, outcome) = made.wait().unwrap();
        pool.learn(&operation, &outcome);
    }
    pool
}

/// Runs transactions on the same few rows in several threads, checks that they are serializable,
/// and returns the final state.
fn run_history(
    store: &Store,
    seed: u64,
    disk: Option<&SimulatedFolder>,
    stats: &mut HistoryStats,
) -> Model {
    let pool = fill(store);
    let model = Model::of(&store.read());
    let commits: Arc<Mutex<Vec<Changes>>> = Arc::default();
    let observed = Arc::clone(&commits);
    store.observe(move |changes| observed.lock().unwrap().push(Changes::clone(changes)));
    let before = store.read().sequence();
    let (conflicts, full) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut history: Vec<Transcript> = thread::scope(|scope| {
        let threads = [0, 1, 2, 3].map(|number| {
            let (conflicts, full) = (&conflicts, &full);
            let mut random = Random(seed * THREADS + number);
            let mut pool = pool.clone();
            scope.spawn(move || {
                let mut history = Vec::new();
                for _ in 0..CHANGES {
                    if let Some(disk) = disk.filter(|_| random.below(8) == 0) {
                        disk.set_room(if random.below(2) == 0 { 0 } else { 1 << 30 });
                        disk.fail(random.below(20), Fault::Short);
                    }
                    match change(store, &mut pool, &mut random) {
                        Ok(transcript) => history.push(transcript),
                        Err(Error::Conflict) => drop(conflicts.fetch_add(1, Ordering::Relaxed)),
                        Err(Error::Full) => drop(full.fetch_add(1, Ordering::Relaxed)),
                        Err(error) => panic!("{error}"),
                    }
                }
                history
            })
        });
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    stats.conflicts += conflicts.into_inner();
    stats.full += full.into_inner();
    let end = wait_for_all(store, disk);
    let mut commits = commits.lock().unwrap();
    let observed: Vec<u64> = commits.iter().map(|changes| changes.sequence).collect();
    assert_eq!(
        observed,
        (before + 1..=end).collect::<Vec<_>>(),
        "each commit is observed once, in order"
    );
    commits.pop();
    history.retain_mut(|transcript| {
        let Some(receipt) = transcript.receipt.filter(|_| transcript.is_kept) else { return true };
        let now = store.read();
        if now.get(receipt).is_none() {
            assert!(
                !transcript.is_acknowledged,
                "{transcript:?} was acknowledged, and is not there"
            );
            stats.forgotten += 1;
            return false;
        }
        let found = commit_of(&now.reads(), &commits);
        assert!(transcript.at.is_none_or(|at| at == found), "{transcript:?} is the commit {found}");
        transcript.at = Some(found);
        true
    });
    replay(model, before, end - 1, &mut history, stats)
}

/// Commits a final change, and returns its sequence.
fn wait_for_all(store: &Store, disk: Option<&SimulatedFolder>) -> u64 {
    if let Some(disk) = disk {
        disk.heal();
        disk.set_room(1 << 30);
    }
    loop {
        let mut change = store.begin();
        change.insert(Receipt { id: Id::unassigned(), number: 0 }).unwrap();
        match store.commit(change).and_then(Pending::wait) {
            // It failed together with earlier ones.
            Err(Error::Full) => {}
            end => return end.unwrap(),
        }
    }
}

/// The only commit that affects these reads.
fn commit_of(reads: &ReadSet, commits: &[Changes]) -> u64 {
    let touching: Vec<u64> = commits
        .iter()
        .filter(|changes| reads.is_touched_by(changes))
        .map(|changes| changes.sequence)
        .collect();
    assert_eq!(touching.len(), 1, "one commit made it: {touching:?}");
    touching[0]
}

/// Runs a random transaction in one of the possible ways, or reads all tables.
fn change(store: &Store, pool: &mut IdPool, random: &mut Random) -> Result<Transcript, Error> {
    let way = random.below(6);
    let mut transcript = Transcript::default();
    let mut act = |change: &mut Transaction| {
        transcript = act(change, pool, random);
        if transcript.is_kept { Ok(()) } else { Err(Abandoned(None)) }
    };
    let outcome = match way {
        0 => {
            let now = store.read();
            let steps = vec![Step::ReadAll(Box::new(Model::of(&now)))];
            let at = Some(now.sequence());
            return Ok(Transcript { at, steps, ..Transcript::default() });
        }
        1 => store.change_once(act).wait(),
        2 => block_on(store.change(act)),
        3 | 4 => {
            let mut change = store.begin();
            if act(&mut change).is_err() {
                // This outcome is unchecked and may rest on a conflict.
                return Ok(transcript);
            }
            let pending = store.commit(change)?;
            if way == 3 {
                transcript.at = Some(pending.wait()?);
            } else {
                // Other threads write it.
                transcript.is_acknowledged = transcript.receipt.is_none();
            }
            return Ok(transcript);
        }
        _ => store.change(act).wait(),
    };
    match outcome {
        Ok(()) | Err(Abandoned(None)) => Ok(transcript),
        Err(Abandoned(Some(error))) => Err(error),
    }
}

/// Why a change did not happen: the action gave up, or the commit failed.
struct Abandoned(Option<Error>);

impl From<Error> for Abandoned {
    fn from(error: Error) -> Self {
        Self(Some(error))
    }
}

/// Random operations of one transaction.
fn act(change: &mut Transaction, pool: &mut IdPool, random: &mut Random) -> Transcript {
    let at = Some(change.sequence());
    let mut transcript =
        Transcript { at, is_kept: true, is_acknowledged: true, ..Transcript::default() };
    let mut writes = false;
    for _ in 0..=random.below(5) {
        // Lets a concurrent thread commit in between.
        thread::yield_now();
        if random.below(2) == 0 {
            let query = Query::draw(pool, random);
            let answer = query.ask(change);
            transcript.steps.push(Step::Read(query, answer));
            continue;
        }
        let operation = Operation::draw(pool, random);
        let outcome = operation.apply_to(change);
        let is_refused = matches!(outcome, Outcome::Refused(_));
        writes |= !is_refused && outcome != Outcome::NothingToRemove;
        pool.learn(&operation, &outcome);
        transcript.steps.push(Step::Wrote(operation, outcome));
        if is_refused && random.below(4) == 0 {
            transcript.is_kept = false;
            return transcript;
        }
    }
    if writes {
        // A receipt has no keys and no references.
        let receipt =
            change.insert(Receipt { id: Id::unassigned(), number: random.below(1 << 40) });
        transcript.receipt = Some(receipt.unwrap());
        transcript.at = None;
    }
    transcript
}

/// Executes the history serially, from the commit after `before` up to `last`.
fn replay(
    mut model: Model,
    before: u64,
    last: u64,
    history: &mut [Transcript],
    stats: &mut HistoryStats,
) -> Model {
    // A read-only transaction follows the last commit that it saw.
    history.sort_by_key(|transcript| {
        (transcript.at, transcript.receipt.is_none() || !transcript.is_kept)
    });
    let mut at = before;
    for transcript in history {
        let is_written = transcript.is_kept && transcript.receipt.is_some();
        let mut own = model.clone();
        for step in &transcript.steps {
            match step {
                Step::Read(query, answer) => {
                    assert_eq!(*answer, own.ask(query), "{query:?} of {transcript:#?}");
                }
                Step::ReadAll(seen) => assert_eq!(**seen, own, "at {:?}", transcript.at),
                Step::Wrote(operation, outcome) => {
                    stats.refused += u64::from(matches!(outcome, Outcome::Refused(_)));
                    assert_eq!(
                        *outcome,
                        own.apply(operation, outcome),
                        "{operation:?} of {transcript:#?}"
                    );
                }
            }
        }
        if is_written {
            at += 1;
            stats.changes += 1;
            model = own;
        } else {
            stats.read_only += 1;
        }
        assert_eq!(transcript.at, Some(at), "each commit is a change that was acknowledged");
    }
    assert_eq!(at, last, "no further commit is observed");
    model
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => thread::park(),
        }
    }
}
