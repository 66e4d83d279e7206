//! Tests of the times of records: a restore to a point in time keeps what was written before it,
//! whatever ended the processes, and whatever has happened to the files of times.

use std::ops::RangeInclusive;
use std::sync::Arc;

use bine_store::Time;
use bine_store::disk::{Fault, Folder, SimulatedFolder};
use bine_store::journal::{
    BackupOptions, Error, FileJournal, Journal, Options, RestoreSummary, Until, backup, restore,
};

use crate::random::Random;

const ROOM: u64 = 1 << 24;
const SECOND: i64 = 1_000_000;
/// Enough to see each kind of event, few enough for daily use.
const RUNS: u64 = 250;

/// A journal on a simulated disk, and the times of all records in it.
struct Run {
    random: Random,
    disk: SimulatedFolder,
    journal: FileJournal,
    backup: SimulatedFolder,
    now: i64,
    /// The time of each record.
    times: Vec<i64>,
    /// Whether each process so far has ended in order, and no segment was removed before a backup.
    is_exact: bool,
}

fn open(disk: &SimulatedFolder) -> (FileJournal, u64) {
    let folder = Arc::new(disk.process());
    let opened = FileJournal::open(folder, Options { segment: 700 }, &mut |_| Ok(())).unwrap();
    (opened.journal, opened.last)
}

impl Run {
    fn new(seed: u64) -> Self {
        let (disk, backup) = (SimulatedFolder::new(seed, ROOM), SimulatedFolder::new(seed, ROOM));
        let now = 1_000 * SECOND;
        disk.set_time(Time(now));
        let (journal, _) = open(&disk);
        let random = Random(seed);
        Self { random, disk, journal, backup, now, times: Vec::new(), is_exact: true }
    }

    /// Advances the clock by a part of a second, or by some seconds.
    fn pass_time(&mut self) {
        let most = if self.random.below(3) == 0 { 4 * SECOND } else { SECOND / 2 };
        self.now += self.random.below(most.unsigned_abs()).cast_signed();
        self.disk.set_time(Time(self.now));
    }

    fn write(&mut self) {
        for _ in 0..=self.random.below(2) {
            self.journal.append(b"a record").unwrap();
            self.times.push(self.now);
        }
        self.journal.write(self.random.below(2) == 0).unwrap();
    }

    fn back_up(&mut self) {
        if !self.disk.list().unwrap().iter().any(|name| name.starts_with("journal-")) {
            return;
        }
        let clock = || Time(self.now);
        let options = BackupOptions { clock: &clock, files: &[], link: None, keep: None };
        backup(&self.disk, &self.backup, &options).unwrap();
    }

    /// Writes a snapshot and removes the segments before the previous one.
    fn checkpoint(&mut self) {
        let last = self.times.len() as u64;
        let mut snapshot = self.journal.snapshot(last).unwrap();
        snapshot.block(b"state").unwrap();
        snapshot.finish().unwrap();
        self.journal.compact(last).unwrap();
        self.is_exact = false;
    }

    /// Ends the process and starts the next one.
    fn end(&mut self) {
        match self.random.below(3) {
            0 => self.journal.close().unwrap(),
            1 => {
                self.disk.revive();
                self.is_exact = false;
            }
            _ => {
                self.disk.lose_power();
                self.is_exact = false;
            }
        }
        self.pass_time();
        let (journal, last) = open(&self.disk);
        self.journal = journal;
        // Records that were not synced may be lost; their numbers are used again.
        self.times.truncate(last as usize);
    }

    fn go(mut self) -> Counts {
        for _ in 0..30 + self.random.below(60) {
            self.pass_time();
            match self.random.below(12) {
                0 => self.end(),
                1 => self.back_up(),
                2 if !self.times.is_empty() && self.random.below(3) == 0 => self.checkpoint(),
                _ => self.write(),
            }
        }
        self.write();
        self.back_up();
        let mut counts = Counts::default();
        for _ in 0..40 {
            let range = (self.now - 996 * SECOND).unsigned_abs();
            let time = 998 * SECOND + self.random.below(range).cast_signed();
            self.check(time, &mut counts);
        }
        counts
    }

    /// Compares the restore to a point in time with the times of the records.
    fn check(&self, time: i64, counts: &mut Counts) {
        let second = time.div_euclid(SECOND) * SECOND;
        match restored(&self.backup, time) {
            Ok(RestoreSummary { last, unknown, .. }) => {
                let kept = &self.times[..last as usize];
                assert!(kept.iter().all(|written| *written <= time), "{last} at {time}");
                let dropped = &self.times[last as usize..];
                let early = dropped.iter().take_while(|written| **written < second).count() as u64;
                let unknown = unknown.map(|(records, _)| records);
                let reported = unknown.clone().map_or(0, count);
                assert!(early <= reported, "{early} records are missing at {time}: {unknown:?}");
                assert!(!(self.is_exact && unknown.is_some()), "{unknown:?} at {time}");
                counts.exact += u64::from(unknown.is_none());
                counts.unknown += u64::from(unknown.is_some());
            }
            Err(Error::Refused(why)) => {
                // Everything is later, or the times of the first records are lost.
                let is_early = self.times.first().is_none_or(|first| *first >= second);
                assert!(is_early || !self.is_exact || why.contains("cannot be restored"), "{why}");
                counts.refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Counts outcomes, so that a test without effect is noticed.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    exact: u64,
    unknown: u64,
    refused: u64,
}

fn count(records: RangeInclusive<u64>) -> u64 {
    records.end() + 1 - records.start()
}

fn restored(backup: &SimulatedFolder, time: i64) -> Result<RestoreSummary, Error> {
    restore(backup, &SimulatedFolder::new(1, ROOM), Until::Time(Time(time)))
}

#[test]
fn restores_what_was_written_before_any_second() {
    let mut counts = Counts::default();
    for seed in 1..=RUNS {
        let Ok(one) = std::panic::catch_unwind(|| Run::new(seed).go()) else {
            panic!("seed {seed} failed");
        };
        counts.exact += one.exact;
        counts.unknown += one.unknown;
        counts.refused += one.refused;
    }
    println!("{counts:?}");
    let Counts { exact, unknown, refused } = counts;
    assert!([exact, unknown, refused].iter().all(|count| *count > RUNS), "{counts:?}");
}

/// A journal with one record in each of ten seconds.
fn one_a_second(disk: &SimulatedFolder) -> FileJournal {
    let (mut journal, _) = open(disk);
    for second in 1..=10 {
        disk.set_time(Time(second * SECOND + 500));
        journal.append(b"a record").unwrap();
        journal.write(true).unwrap();
    }
    journal
}

fn back_up(disk: &SimulatedFolder, target: &SimulatedFolder) {
    let clock = || Time(99 * SECOND);
    let options = BackupOptions { clock: &clock, files: &[], link: None, keep: None };
    backup(disk, target, &options).unwrap();
}

#[test]
fn restores_to_each_second_between_two_backups() {
    let (disk, target) = (SimulatedFolder::new(1, ROOM), SimulatedFolder::new(1, ROOM));
    one_a_second(&disk).close().unwrap();
    back_up(&disk, &target);
    for second in 2..=10_u64 {
        let time = second.cast_signed() * SECOND;
        assert_eq!(restored(&target, time).unwrap().last, second - 1);
        // Within a second, the order of its records is not known.
        assert_eq!(restored(&target, time + SECOND - 1).unwrap().last, second - 1);
    }
    assert_eq!(restored(&target, 11 * SECOND).unwrap().last, 10);
    let early = restored(&target, SECOND).unwrap_err().to_string();
    assert_eq!(early, "the first change was made later than 1970-01-01T00:00:01Z");
}

#[test]
fn keeps_the_times_of_restored_records() {
    let (disk, target) = (SimulatedFolder::new(1, ROOM), SimulatedFolder::new(1, ROOM));
    one_a_second(&disk).close().unwrap();
    back_up(&disk, &target);
    let (copy, second) = (SimulatedFolder::new(2, ROOM), SimulatedFolder::new(2, ROOM));
    copy.set_time(Time(50 * SECOND));
    restore(&target, &copy, Until::Change(7)).unwrap();
    let (mut journal, last) = open(&copy);
    assert_eq!(last, 7);
    journal.append(b"later").unwrap();
    journal.write(true).unwrap();
    back_up(&copy, &second);
    for time in 2..=7_i64 {
        let last = restored(&second, time * SECOND).unwrap().last;
        assert_eq!(last, time.unsigned_abs() - 1);
    }
    assert_eq!(restored(&second, 51 * SECOND).unwrap().last, 8);
    // The next record of the backup was of the eighth second, and that of the copy is of the fiftieth.
    let summary = restored(&second, 20 * SECOND).unwrap();
    assert_eq!((summary.last, summary.unknown), (7, None));
}

#[test]
fn reports_records_whose_times_are_lost() {
    let (disk, target) = (SimulatedFolder::new(1, ROOM), SimulatedFolder::new(1, ROOM));
    one_a_second(&disk).close().unwrap();
    back_up(&disk, &target);
    let names: Vec<String> = target.list().unwrap();
    let first = names.iter().find(|name| name.starts_with("times-")).unwrap();
    let whole = target.content(first).unwrap();
    for index in 0..(whole.len() - 32) / 24 {
        let mut bytes = whole.clone();
        bytes[32 + 24 * index + 3] ^= 1;
        target.put(first, &bytes);
        for time in 2..=11_i64 {
            // The record of the damaged entry, the one before it, and no other one.
            match restored(&target, time * SECOND) {
                Ok(RestoreSummary { last, unknown, .. }) => {
                    let end = unknown.as_ref().map_or(last, |(records, _)| *records.end());
                    assert!(
                        (last..=end).contains(&(time.unsigned_abs() - 1)),
                        "{last} {unknown:?}"
                    );
                    assert!(unknown.is_none_or(|(records, _)| count(records) <= 2));
                }
                Err(error) => assert!(time <= 3 && index < 2, "{error}"),
            }
        }
    }
    for name in names.iter().filter(|name| name.starts_with("times-")) {
        target.remove(name).unwrap();
    }
    let error = restored(&target, 5 * SECOND).unwrap_err().to_string();
    assert_eq!(error, "the backup begins later: its first run ended at 1970-01-01T00:01:39Z");
    assert_eq!(restore(&target, &SimulatedFolder::new(1, ROOM), Until::End).unwrap().last, 10);
    // The next run copies them again.
    back_up(&disk, &target);
    assert_eq!(restored(&target, 5 * SECOND).unwrap().last, 4);
}

#[test]
fn backs_up_records_whose_times_cannot_be_read() {
    let options =
        || BackupOptions { clock: &|| Time(99 * SECOND), files: &[], link: None, keep: None };
    let whole = SimulatedFolder::new(1, ROOM);
    one_a_second(&whole).close().unwrap();
    let before = whole.operations();
    backup(&whole, &SimulatedFolder::new(1, ROOM), &options()).unwrap();
    let operations = whole.operations() - before;
    let (mut without_times, mut failed) = (0, 0);
    for ahead in 0..operations {
        let (disk, target) = (SimulatedFolder::new(1, ROOM), SimulatedFolder::new(1, ROOM));
        one_a_second(&disk).close().unwrap();
        disk.fail(ahead, Fault::Broken);
        let backed_up = backup(&disk, &target, &options());
        disk.heal();
        if backed_up.is_ok() {
            // Only what reads times may fail without the backup.
            without_times += 1;
            let end = restore(&target, &SimulatedFolder::new(1, ROOM), Until::End).unwrap();
            assert_eq!(end.last, 10, "{ahead}");
        } else {
            failed += 1;
        }
        // The next run copies what is missing.
        back_up(&disk, &target);
        assert_eq!(restored(&target, 5 * SECOND).unwrap().last, 4, "{ahead}");
    }
    assert!(without_times > 0 && failed > 0, "{without_times} of {operations}, {failed} failed");
}

#[test]
fn disk_without_room_for_times_stores_records() {
    for ahead in 0..40 {
        let (disk, target) = (SimulatedFolder::new(1, ROOM), SimulatedFolder::new(1, ROOM));
        let (mut journal, _) = open(&disk);
        disk.fail(ahead, Fault::Full);
        let mut written = Vec::new();
        for second in 1..=10 {
            disk.set_time(Time(second * SECOND));
            journal.append(b"a record").unwrap();
            match journal.write(true) {
                Ok(_) => written.push(second),
                Err(Error::Full { .. }) => {}
                // A sync without room is a failure of the disk.
                Err(Error::Broken { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        if journal.close().is_err() {
            continue;
        }
        assert!(written.len() >= 9, "one operation failed");
        back_up(&disk, &target);
        for time in 2..=11 {
            let kept = match restored(&target, time * SECOND) {
                Ok(summary) => summary.last as usize,
                Err(_) => 0,
            };
            assert!(
                written[..kept].iter().all(|second| *second < time),
                "{ahead}: {kept} at {time}"
            );
        }
    }
}

#[test]
fn set_back_clock_ends_the_search() {
    let (disk, target) = (SimulatedFolder::new(1, ROOM), SimulatedFolder::new(1, ROOM));
    let (mut journal, _) = open(&disk);
    for second in [10, 20, 15, 25] {
        disk.set_time(Time(second * SECOND));
        journal.append(b"a record").unwrap();
        journal.write(true).unwrap();
    }
    journal.close().unwrap();
    back_up(&disk, &target);
    let last = |second| restored(&target, second * SECOND).unwrap().last;
    assert_eq!([11, 17, 21, 26].map(last), [1, 1, 3, 4]);
}
