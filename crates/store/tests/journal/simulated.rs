//! Tests of the journal on a simulated disk that fails, tears writes, loses unsynced data, and
//! fills up.
//!
//! The environment variable `BINE_SIMULATED_RUNS` sets the number of runs, `BINE_SIMULATED_SEED`
//! the first seed. A failure reports its seed.

use std::sync::Arc;

use bine_store::disk::{Fault, SimulatedFolder};
use bine_store::journal::{
    Error, FileJournal, Journal, Options, RecoveryEvent, SnapshotWriter, Warning,
};

use crate::random::Random;

/// Enough runs to see each kind of event, few enough for daily use.
const RUNS: u64 = 2000;

#[test]
fn acknowledged_records_survive_any_end() {
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
        let EventCounts { ends, torn, full, broken, snapshots, compactions, later } = counts;
        let all = [ends, torn, full, broken, snapshots, compactions, later];
        assert!(all.iter().all(|count| *count > runs / 100), "{counts:?}");
    }
}

/// Counts events, so that a test without effect is noticed.
#[derive(Clone, Copy, Debug, Default)]
struct EventCounts {
    /// Power losses, kills and closes.
    ends: u64,
    torn: u64,
    full: u64,
    broken: u64,
    snapshots: u64,
    compactions: u64,
    /// Records found that were never acknowledged as durable.
    later: u64,
}

impl EventCounts {
    fn add(&mut self, other: &Self) {
        self.ends += other.ends;
        self.torn += other.torn;
        self.full += other.full;
        self.broken += other.broken;
        self.snapshots += other.snapshots;
        self.compactions += other.compactions;
        self.later += other.later;
    }
}

/// One folder through several processes, with the state that must be found in it.
struct Run {
    random: Random,
    folder: SimulatedFolder,
    /// All records that were or may have been written, in order, without rejected ones.
    records: Vec<Vec<u8>>,
    /// The number of records acknowledged as durable.
    durable: usize,
    /// The number of records acknowledged as written to this process.
    written: usize,
    /// The valid numbers of found records: the ends of groups.
    ends: Vec<usize>,
    counts: EventCounts,
}

impl Run {
    fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            folder: SimulatedFolder::new(seed, 1 << 20),
            records: Vec::new(),
            durable: 0,
            written: 0,
            ends: Vec::new(),
            counts: EventCounts::default(),
        }
    }

    fn go(mut self) -> EventCounts {
        for _ in 0..2 + self.random.below(4) {
            self.folder.set_room(if self.random.below(4) == 0 { 6_000 } else { 1 << 20 });
            if self.random.below(2) == 0 {
                self.plan_faults();
            }
            let opened = self.open();
            match opened {
                Ok(mut journal) => self.use_journal(&mut journal),
                // A start may fail only while the disk fails.
                Err(error) => assert!(!matches!(error, Error::Damaged(_)), "{error}"),
            }
            self.end();
            self.folder.set_room(1 << 20);
            drop(self.open().expect("a start after the end of a process or of the power"));
            self.folder.revive();
        }
        self.counts
    }

    fn plan_faults(&mut self) {
        for _ in 0..=self.random.below(3) {
            let ahead = self.random.below(120);
            match self.random.below(5) {
                0 => self.folder.fail(ahead, Fault::Broken),
                1 => self.folder.fail(ahead, Fault::Full),
                2 => self.folder.fail(ahead, Fault::Death),
                3 => self.folder.fail(ahead, Fault::Short),
                _ => {
                    self.folder.fail(ahead, Fault::Short);
                    self.folder.fail(ahead + 1, Fault::Full);
                }
            }
        }
    }

    /// Opens the journal and compares its records with the expected ones.
    fn open(&mut self) -> Result<FileJournal, Error> {
        let mut found: Vec<Vec<u8>> = Vec::new();
        let options = Options { segment: 2048 + 1024 * (self.records.len() as u64 % 7) };
        let mut receive = |loaded: RecoveryEvent<'_>| {
            match loaded {
                RecoveryEvent::Block(block) => {
                    for record in block.chunk_by(|byte, _| *byte != END) {
                        found.push(record[..record.len() - 1].to_vec());
                    }
                }
                RecoveryEvent::Record(sequence, record) => {
                    assert_eq!(sequence, found.len() as u64 + 1);
                    found.push(record.to_vec());
                }
                RecoveryEvent::Lost(records) => panic!("{records:?} are lost"),
                RecoveryEvent::Progress { done, all } => assert!(done <= all),
            }
            Ok(())
        };
        let opened = FileJournal::open(Arc::new(self.folder.clone()), options, &mut receive)?;
        assert_eq!(opened.last, found.len() as u64);
        for warning in &opened.warnings {
            match warning {
                Warning::Torn(_) => self.counts.torn += 1,
                // The process ended during its write.
                Warning::Mark { .. } => {}
                Warning::Snapshot { .. } => panic!("{warning}"),
            }
        }
        assert!(found.len() >= self.durable, "{} of {} are found", found.len(), self.durable);
        assert!(found.len() <= self.records.len(), "{} are found", found.len());
        assert_eq!(found, self.records[..found.len()]);
        let is_whole = found.len() == self.durable || self.ends.contains(&found.len());
        assert!(is_whole, "{} are found, and {:?} are ends of groups", found.len(), self.ends);
        self.counts.later += u64::from(found.len() > self.durable);
        // The start has reported these records, so they count as durable now.
        self.records = found;
        self.durable = self.records.len();
        self.written = self.durable;
        self.ends = vec![self.durable];
        Ok(opened.journal)
    }

    fn use_journal(&mut self, journal: &mut FileJournal) {
        let mut unfinished: Vec<Box<dyn SnapshotWriter>> = Vec::new();
        for _ in 0..self.random.below(40) {
            let alive = match self.random.below(20) {
                0 => {
                    self.folder.set_room(self.random.below(8_000));
                    true
                }
                1 | 5 | 6 => {
                    self.folder.set_room(1 << 20);
                    true
                }
                2 => self.snapshot(journal, &mut unfinished),
                3 | 4 => self.sync(journal),
                _ => self.write(journal),
            };
            if !alive {
                self.counts.broken += 1;
                let refused = [journal.append(b"x").is_err(), journal.write(true).is_err()];
                assert_eq!(refused, [true, true], "a broken journal goes on");
                break;
            }
        }
        if self.random.below(4) == 0 && journal.close().is_ok() {
            self.durable = self.written;
        }
    }

    /// Writes a group. Returns `false` if the journal is broken.
    fn write(&mut self, journal: &mut FileJournal) -> bool {
        let before = self.records.len();
        for _ in 0..=self.random.below(5) {
            let longest = if self.random.below(4) == 0 { 1500 } else { 60 };
            let length = self.random.below(longest);
            let letter = b'a' + self.random.below(26) as u8;
            let mut record = format!("{} ", self.random.below(1 << 40)).into_bytes();
            record.resize(record.len() + length as usize, letter);
            if journal.append(&record).is_err() {
                return false;
            }
            self.records.push(record);
        }
        let durably = self.random.below(3) > 0;
        match journal.write(durably) {
            Ok(last) => {
                assert_eq!(last, self.records.len() as u64);
                self.written = self.records.len();
                self.ends.push(self.written);
                if durably {
                    self.durable = self.written;
                }
                assert_eq!(journal.durable(), self.durable_as_told(journal));
                true
            }
            Err(Error::Full { .. }) => {
                self.counts.full += 1;
                self.records.truncate(before);
                true
            }
            Err(Error::Broken { .. }) => {
                self.ends.push(self.records.len());
                false
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// A new segment proves the previous one durable, so the journal may report more than was
    /// requested.
    fn durable_as_told(&mut self, journal: &FileJournal) -> u64 {
        assert!(journal.durable() >= self.durable as u64);
        self.durable = journal.durable() as usize;
        journal.durable()
    }

    fn sync(&mut self, journal: &mut FileJournal) -> bool {
        match journal.sync() {
            Ok(last) => {
                assert_eq!(last, self.written as u64);
                self.durable = self.written;
                true
            }
            Err(error) => {
                assert!(matches!(error, Error::Broken { .. }), "{error}");
                false
            }
        }
    }

    fn snapshot(
        &mut self,
        journal: &mut FileJournal,
        unfinished: &mut Vec<Box<dyn SnapshotWriter>>,
    ) -> bool {
        let last = self.written;
        let mut writer = match journal.snapshot(last as u64) {
            Ok(writer) => writer,
            Err(Error::Broken { .. }) => return false,
            Err(_) => return true,
        };
        self.durable = last;
        let mut written = true;
        for records in self.records[..last].chunks(7) {
            let mut block = Vec::new();
            for record in records {
                block.extend_from_slice(record);
                block.push(END);
            }
            written = written && writer.block(&block).is_ok();
        }
        if !written {
            return true;
        }
        if self.random.below(5) == 0 {
            unfinished.push(writer);
            return true;
        }
        if writer.finish().is_ok() {
            self.counts.snapshots += 1;
            if self.random.below(2) == 0 && journal.compact(last as u64).is_ok() {
                self.counts.compactions += 1;
            }
        }
        true
    }

    /// Ends the process, with or without a power failure.
    fn end(&mut self) {
        self.counts.ends += 1;
        if self.random.below(2) == 0 {
            self.folder.lose_power();
        } else {
            self.folder.revive();
            // A kernel that keeps running keeps all written data.
            self.durable = self.written;
        }
    }
}

/// Terminates a record within a block. Records do not contain it.
const END: u8 = 0;
