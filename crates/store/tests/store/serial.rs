//! Decides whether every history of changes is that of one after the other: what many threads saw and did at the same
//! time is done once more by one, in the order of the commits, and must be seen the same.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use bine_store::disk::{Fault, SimulatedFolder};
use bine_store::{Changes, Error, Id, Pending, ReadSet, Store, Transaction};

use crate::model::{Deed, Model, Outcome, Pool, Query};
use crate::random::Random;
use crate::tables::{self, Receipt};

const THREADS: u64 = 4;
/// Of each thread.
const CHANGES: u64 = 50;
/// `BINE_HISTORIES` asks for more.
const HISTORIES: u64 = 100;

#[test]
fn every_history_is_that_of_one_after_the_other() {
    let mut played = Played::default();
    for seed in 0..histories() {
        let store = Store::in_memory(tables::options()).unwrap();
        let after = play(&store, seed, None, &mut played);
        assert_eq!(Model::of(&store.read()), after, "seed {seed}");
    }
    println!("{played:?}");
    assert!(played.conflicts > 100 && played.refused > 100 && played.changes > 1000, "{played:?}");
}

#[test]
fn a_disk_that_is_full_now_and_then_leaves_nothing_halfway() {
    let mut played = Played::default();
    for seed in 0..histories() {
        let disk = SimulatedFolder::new(seed, 1 << 30);
        let open = || {
            let options = tables::options().segment(2 << 10);
            let folder = Arc::new(disk.process());
            Store::in_folder(folder, options, &mut |_, _| {}).unwrap()
        };
        let store = open();
        let after = play(&store, seed, Some(&disk), &mut played);
        assert_eq!(Model::of(&store.read()), after, "seed {seed}");
        drop(store);
        disk.heal();
        disk.set_room(1 << 30);
        assert_eq!(Model::of(&open().read()), after, "seed {seed}");
    }
    println!("{played:?}");
    assert!(played.full > 20 && played.changes > 1000, "{played:?}");
}

fn histories() -> u64 {
    let wanted = std::env::var("BINE_HISTORIES").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(HISTORIES)
}

/// How often what happened, so that a test that tries nothing is noticed.
#[derive(Default, Debug)]
struct Played {
    changes: u64,
    looks: u64,
    refused: u64,
    conflicts: u64,
    full: u64,
    /// Changes that nobody waited for, and that had no room.
    forgotten: u64,
}

/// One change, or one look at all.
#[derive(Default, Debug)]
struct Deeds {
    /// The commit that it is, or behind which it comes.
    at: Option<u64>,
    steps: Vec<Step>,
    /// What it wrote counts.
    is_kept: bool,
    /// Somebody was told so, and did not only believe it.
    is_acknowledged: bool,
    receipt: Option<Id<Receipt>>,
}

#[derive(Debug)]
enum Step {
    Saw(Query, String),
    SawAll(Box<Model>),
    Did(Deed, Outcome),
}

/// Some users and messages, for changes to meet at.
fn fill(store: &Store) -> Pool {
    let mut random = Random(7);
    let mut pool = Pool::default();
    for _ in 0..40 {
        let made = store.change(|change| {
            let deed = Deed::draw(&pool, &mut random);
            let outcome = deed.make(change);
            Ok::<_, Error>((deed, outcome))
        });
        let (deed, outcome) = made.wait().unwrap();
        pool.learn(&deed, &outcome);
    }
    pool
}

/// Has threads change the same few rows, sees that it is as if one had come after the other, and says what there is
/// at the end.
fn play(store: &Store, seed: u64, disk: Option<&SimulatedFolder>, played: &mut Played) -> Model {
    let pool = fill(store);
    let model = Model::of(&store.read());
    let commits: Arc<Mutex<Vec<Changes>>> = Arc::default();
    let told = Arc::clone(&commits);
    store.observe(move |changes| told.lock().unwrap().push(Changes::clone(changes)));
    let before = store.read().sequence();
    let (conflicts, full) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut history: Vec<Deeds> = thread::scope(|scope| {
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
                        Ok(deeds) => history.push(deeds),
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
    played.conflicts += conflicts.into_inner();
    played.full += full.into_inner();
    let end = wait_for_all(store, disk);
    let mut commits = commits.lock().unwrap();
    let told: Vec<u64> = commits.iter().map(|changes| changes.sequence).collect();
    assert_eq!(told, (before + 1..=end).collect::<Vec<_>>(), "each is told of once, in order");
    commits.pop();
    history.retain_mut(|deeds| {
        let Some(receipt) = deeds.receipt.filter(|_| deeds.is_kept) else { return true };
        let now = store.read();
        if now.get(receipt).is_none() {
            assert!(!deeds.is_acknowledged, "{deeds:?} was acknowledged, and is not there");
            played.forgotten += 1;
            return false;
        }
        let found = commit_of(&now.reads(), &commits);
        assert!(deeds.at.is_none_or(|at| at == found), "{deeds:?} is the commit {found}");
        deeds.at = Some(found);
        true
    });
    replay(model, before, end - 1, &mut history, played)
}

/// Makes one more change, which comes behind all others, and says which commit it is.
fn wait_for_all(store: &Store, disk: Option<&SimulatedFolder>) -> u64 {
    if let Some(disk) = disk {
        disk.heal();
        disk.set_room(1 << 30);
    }
    loop {
        let mut change = store.begin();
        change.insert(Receipt { id: Id::new(), number: 0 }).unwrap();
        match store.commit(change).and_then(Pending::wait) {
            // It fell with those before it.
            Err(Error::Full) => {}
            end => return end.unwrap(),
        }
    }
}

/// The commit that touched what was read, of which there is one.
fn commit_of(reads: &ReadSet, commits: &[Changes]) -> u64 {
    let touching: Vec<u64> = commits
        .iter()
        .filter(|changes| reads.is_touched_by(changes))
        .map(|changes| changes.sequence)
        .collect();
    assert_eq!(touching.len(), 1, "one commit made it: {touching:?}");
    touching[0]
}

/// Changes something by chance, in one of the ways there are, or looks at everything.
fn change(store: &Store, pool: &mut Pool, random: &mut Random) -> Result<Deeds, Error> {
    let way = random.below(6);
    let mut deeds = Deeds::default();
    let mut act = |change: &mut Transaction| {
        deeds = act(change, pool, random);
        if deeds.is_kept { Ok(()) } else { Err(Declined(None)) }
    };
    let outcome = match way {
        0 => {
            let now = store.read();
            let steps = vec![Step::SawAll(Box::new(Model::of(&now)))];
            let at = Some(now.sequence());
            return Ok(Deeds { at, steps, ..Deeds::default() });
        }
        1 => store.change_once(act).wait(),
        2 => block_on(store.change(act)),
        3 | 4 => {
            let mut change = store.begin();
            if act(&mut change).is_err() {
                // Nobody has asked whether that holds.
                return Ok(deeds);
            }
            let pending = store.commit(change)?;
            if way == 3 {
                deeds.at = Some(pending.wait()?);
            } else {
                // It is made all the same, by others.
                deeds.is_acknowledged = deeds.receipt.is_none();
            }
            return Ok(deeds);
        }
        _ => store.change(act).wait(),
    };
    match outcome {
        Ok(()) | Err(Declined(None)) => Ok(deeds),
        Err(Declined(Some(error))) => Err(error),
    }
}

/// A change that was not wanted any more, or why it was not made.
struct Declined(Option<Error>);

impl From<Error> for Declined {
    fn from(error: Error) -> Self {
        Self(Some(error))
    }
}

/// Some steps of one change.
fn act(change: &mut Transaction, pool: &mut Pool, random: &mut Random) -> Deeds {
    let at = Some(change.sequence());
    let mut deeds = Deeds { at, is_kept: true, is_acknowledged: true, ..Deeds::default() };
    let mut writes = false;
    for _ in 0..=random.below(5) {
        // Somebody else comes in between.
        thread::yield_now();
        if random.below(2) == 0 {
            let query = Query::draw(pool, random);
            let answer = query.ask(change);
            deeds.steps.push(Step::Saw(query, answer));
            continue;
        }
        let deed = Deed::draw(pool, random);
        let outcome = deed.make(change);
        let is_refused = matches!(outcome, Outcome::Refused(_));
        writes |= !is_refused && outcome != Outcome::NothingToRemove;
        pool.learn(&deed, &outcome);
        deeds.steps.push(Step::Did(deed, outcome));
        if is_refused && random.below(4) == 0 {
            deeds.is_kept = false;
            return deeds;
        }
    }
    if writes {
        // It has no keys and names nobody.
        let receipt = change.insert(Receipt { id: Id::new(), number: random.below(1 << 40) });
        deeds.receipt = Some(receipt.unwrap());
        deeds.at = None;
    }
    deeds
}

/// Does all of it once more, one after the other, from the commit after `before` up to `last`.
fn replay(
    mut model: Model,
    before: u64,
    last: u64,
    history: &mut [Deeds],
    played: &mut Played,
) -> Model {
    // What only looked comes behind the commit that it saw last.
    history.sort_by_key(|deeds| (deeds.at, deeds.receipt.is_none() || !deeds.is_kept));
    let mut at = before;
    for deeds in history {
        let is_written = deeds.is_kept && deeds.receipt.is_some();
        let mut own = model.clone();
        for step in &deeds.steps {
            match step {
                Step::Saw(query, answer) => {
                    assert_eq!(*answer, own.ask(query), "{query:?} of {deeds:#?}");
                }
                Step::SawAll(seen) => assert_eq!(**seen, own, "at {:?}", deeds.at),
                Step::Did(deed, outcome) => {
                    played.refused += u64::from(matches!(outcome, Outcome::Refused(_)));
                    assert_eq!(*outcome, own.make(deed, outcome), "{deed:?} of {deeds:#?}");
                }
            }
        }
        if is_written {
            at += 1;
            played.changes += 1;
            model = own;
        } else {
            played.looks += 1;
        }
        assert_eq!(deeds.at, Some(at), "each commit is a change that was acknowledged");
    }
    assert_eq!(at, last, "and no other is told of");
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
