//! Tests of tables on a simulated disk that fails, tears writes, loses unsynced data, and fills up.
//!
//! The environment variable `BINE_SIMULATED_RUNS` sets the number of runs, `BINE_SIMULATED_SEED`
//! the first seed. A failure reports its seed. Three of four seeds are deterministic; the fourth
//! writes checkpoints on a second thread.

use std::sync::Arc;
use std::thread;

use bine_store::disk::{Fault, SimulatedFolder};
use bine_store::{Error, Pending, Store, Sync, Transaction};

use crate::model::{IdPool, Model, Operation, Outcome};
use crate::random::Random;
use crate::tables;

/// Enough runs to see each kind of event, few enough for daily use.
const RUNS: u64 = 2000;
/// More than a run writes.
const ROOM: u64 = 1 << 24;

#[test]
fn acknowledged_changes_survive_any_end_exactly_once() {
    let number = |name: &str, otherwise| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let first = number("BINE_SIMULATED_SEED", 1);
    let runs = number("BINE_SIMULATED_RUNS", RUNS);
    let mut counts = EventCounts::default();
    for seed in first..first + runs {
        let Ok(one) = std::panic::catch_unwind(|| Run::new(seed).go()) else {
            panic!("failed; to repeat: BINE_SIMULATED_SEED={seed} BINE_SIMULATED_RUNS=1");
        };
        counts.add(&one);
    }
    println!("{runs} runs: {counts:?}");
    if runs >= RUNS {
        let EventCounts { ends, changes, full, broken, torn, snapshots, later, resumed } = counts;
        let all = [ends, changes, full, broken, torn, snapshots, later, resumed];
        assert!(all.iter().all(|count| *count > runs / 100), "{counts:?}");
    }
}

/// Counts events, so that a test without effect is noticed.
#[derive(Clone, Copy, Debug, Default)]
struct EventCounts {
    /// Power losses, kills and closes.
    ends: u64,
    changes: u64,
    /// Changes rejected because the disk was full.
    full: u64,
    /// Processes that met a disk failure.
    broken: u64,
    torn: u64,
    /// Starts that read a snapshot.
    snapshots: u64,
    /// Starts that found changes which were never acknowledged as durable.
    later: u64,
    /// Changes accepted once the disk had room again.
    resumed: u64,
}

impl EventCounts {
    fn add(&mut self, other: &Self) {
        self.ends += other.ends;
        self.changes += other.changes;
        self.full += other.full;
        self.broken += other.broken;
        self.torn += other.torn;
        self.snapshots += other.snapshots;
        self.later += other.later;
        self.resumed += other.resumed;
    }
}

/// One folder through several processes, with the state that must be found in it.
struct Run {
    random: Random,
    disk: SimulatedFolder,
    /// Whether a thread writes checkpoints.
    has_checkpoints: bool,
    pool: IdPool,
    /// The state after each change that was or may have been committed, with its sequence,
    /// beginning with the state at the start.
    history: Vec<(u64, Model)>,
    /// The index of the last visible state.
    visible: usize,
    /// The index of the last durable state.
    durable: usize,
    sync: Sync,
    /// Whether faults are scheduled for this process.
    has_faults: bool,
    has_room: bool,
    /// Whether a change was rejected because the disk was full, and no later one has succeeded.
    is_full: bool,
    counts: EventCounts,
}

impl Run {
    fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            disk: SimulatedFolder::new(seed, ROOM),
            has_checkpoints: seed.is_multiple_of(4),
            pool: IdPool::default(),
            history: vec![(0, Model::default())],
            visible: 0,
            durable: 0,
            sync: Sync::Commit,
            has_faults: false,
            has_room: true,
            is_full: false,
            counts: EventCounts::default(),
        }
    }

    fn go(mut self) -> EventCounts {
        for _ in 0..2 + self.random.below(3) {
            self.sync = if self.random.below(4) == 0 { Sync::None } else { Sync::Commit };
            self.has_room = self.random.below(8) > 0;
            self.disk.set_room(if self.has_room { ROOM } else { 10_000 });
            self.is_full = false;
            self.has_faults = self.random.below(2) == 0;
            if self.has_faults {
                self.plan_faults();
            }
            match self.open() {
                Ok(store) => {
                    self.use_store(&store);
                    self.end(store);
                }
                // A start may fail only while the disk fails.
                Err(why) => {
                    assert!(!why.contains("damaged"), "{why}");
                    self.disk.lose_power();
                }
            }
            self.disk.heal();
            self.disk.set_room(ROOM);
            drop(self.open().expect("a start after the end of a process or of the power"));
            self.disk.revive();
        }
        self.counts
    }

    fn plan_faults(&mut self) {
        for _ in 0..=self.random.below(3) {
            let ahead = self.random.below(100);
            let fault = match self.random.below(5) {
                0 => Fault::Broken,
                1 => Fault::Full,
                2 => Fault::Death,
                _ => Fault::Short,
            };
            self.disk.fail(ahead, fault);
            if self.random.below(4) == 0 {
                self.disk.fail(ahead + 1, Fault::Full);
            }
        }
    }

    /// Opens the store and compares its rows with the expected ones.
    fn open(&mut self) -> Result<Store, String> {
        let options = tables::options().sync(self.sync);
        // Without checkpoints the journal nearly always stays below the length that triggers one.
        let options = options.segment(if self.has_checkpoints { 400 } else { 5 << 10 });
        let folder = self.disk.process();
        let store = Store::in_folder(Arc::new(folder), options, &mut |_, _| {})?;
        let warnings = store.warnings().iter().map(ToString::to_string);
        self.counts.torn +=
            warnings.filter(|warnings| warnings.contains("incomplete group")).count() as u64;
        let names = bine_store::disk::Folder::list(&self.disk).unwrap_or_default();
        let is_snapshot = |name: &String| name.starts_with("snapshot-") && !name.contains(".new");
        self.counts.snapshots += u64::from(names.iter().any(is_snapshot));
        let now = store.read();
        let (sequence, found) = (now.sequence(), Model::of(&now));
        let is_found = |(at, model): &(u64, Model)| {
            // The very first record holds the table definitions.
            model == &found && (*at == sequence || *at == 0)
        };
        let position = self.history.iter().rposition(is_found);
        let position = position.unwrap_or_else(|| {
            panic!("at {sequence} there is {found:#?}, which never was of {:#?}", self.history)
        });
        assert!(position >= self.durable, "{position} of {} changes are found", self.durable);
        self.counts.later += u64::from(position > self.durable);
        // The start has reported these rows, so they count as durable now.
        self.history = vec![(sequence, found)];
        (self.visible, self.durable) = (0, 0);
        Ok(store)
    }

    fn use_store(&mut self, store: &Store) {
        for _ in 0..self.random.below(if self.has_checkpoints { 40 } else { 20 }) {
            let changes = match self.random.below(10) {
                0 => {
                    self.has_room = false;
                    self.disk.set_room(self.random.below(4_000));
                    continue;
                }
                1 | 2 => {
                    self.has_room = true;
                    self.disk.set_room(ROOM);
                    1
                }
                // With several changes, the store's thread might write a part before all are
                // staged.
                _ if self.has_checkpoints => 1,
                _ => 1 + self.random.below(3),
            };
            self.write(store, changes);
            if self.has_checkpoints {
                // Gives the checkpoint thread time.
                (0..50).for_each(|_| thread::yield_now());
            }
            if self.random.below(4) == 0 {
                let now = store.read();
                let (sequence, model) = &self.history[self.visible];
                assert_eq!((now.sequence(), &Model::of(&now)), (*sequence, model), "reads go on");
            }
            if let Err(error) = store.commit(store.begin()) {
                assert!(matches!(error, Error::Broken(_)), "{error}");
                self.counts.broken += 1;
                return;
            }
        }
    }

    /// Commits several changes as one group.
    fn write(&mut self, store: &Store, changes: u64) {
        let mut in_progress: Vec<(Pending, Model)> = Vec::new();
        for _ in 0..changes {
            let mut change = store.begin();
            let operations = self.act(&mut change);
            let last = in_progress.last().map(|(_, model)| model);
            let mut model = last.unwrap_or(&self.history[self.visible].1).clone();
            match store.commit(change) {
                Ok(pending) if !operations.is_empty() => {
                    for (operation, outcome) in &operations {
                        assert_eq!(model.apply(operation, outcome), *outcome, "{operation:?}");
                    }
                    in_progress.push((pending, model));
                }
                // The change did not see staged commits, and may conflict with them.
                Ok(_) | Err(Error::Conflict) => {}
                Err(error) => panic!("{error}"),
            }
        }
        for (pending, model) in in_progress {
            let (last, _) = self.history[self.history.len() - 1];
            match pending.wait() {
                Ok(sequence) => {
                    assert_eq!((sequence, self.visible), (last + 1, self.history.len() - 1));
                    self.history.push((sequence, model));
                    self.visible += 1;
                    if self.sync == Sync::Commit {
                        self.durable = self.visible;
                    }
                    self.counts.changes += 1;
                    self.counts.resumed += u64::from(self.is_full && self.has_room);
                    self.is_full &= !self.has_room;
                }
                Err(Error::Full) => {
                    assert!(self.has_faults || !self.has_room, "there is room");
                    self.is_full = true;
                    self.counts.full += 1;
                }
                // A later start may or may not find it.
                Err(Error::Broken(_)) if self.has_faults => self.history.push((last + 1, model)),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Runs the operations of one change; empty if it writes no rows.
    fn act(&mut self, change: &mut Transaction) -> Vec<(Operation, Outcome)> {
        let mut operations = Vec::new();
        let mut writes = false;
        for _ in 0..=self.random.below(3) {
            let operation = Operation::draw(&self.pool, &mut self.random);
            let outcome = operation.apply_to(change);
            self.pool.learn(&operation, &outcome);
            writes |= !matches!(outcome, Outcome::Refused(_) | Outcome::NothingToRemove);
            operations.push((operation, outcome));
        }
        if writes { operations } else { Vec::new() }
    }

    /// Ends the process, cleanly or not, with or without a power failure.
    fn end(&mut self, store: Store) {
        self.counts.ends += 1;
        if self.random.below(3) == 0 {
            drop(store);
            if !self.has_faults {
                self.durable = self.visible;
            }
        }
        if self.random.below(2) == 0 {
            self.disk.lose_power();
        } else {
            self.disk.revive();
            // A kernel that keeps running keeps all written data.
            self.durable = self.visible;
        }
    }
}
