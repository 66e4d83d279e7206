//! Tests of backups: their content, the copied bytes, interruptions and damage.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bine_store::Time;
use bine_store::disk::{Fault, Folder, SimulatedFolder};
use bine_store::journal::{
    BackupOptions, BackupSummary, Error, FileJournal, Finding, Journal, Options, RecoveryEvent,
    RestoreSummary, StoredFile, Until, backup, check_backup, restore,
};

use crate::interleaved::Interleaved;
use crate::random::Random;
use crate::trials::trials;

const ROOM: u64 = 1 << 24;
const SEGMENT: Options = Options { segment: 1000 };
/// A long time.
const FOREVER: Until = Until::Time(Time(i64::MAX));

/// A journal in use, and all records that it has acknowledged.
struct Server {
    disk: SimulatedFolder,
    journal: FileJournal,
    records: Vec<Vec<u8>>,
    random: Random,
}

impl Server {
    fn new(seed: u64) -> Self {
        Self::on(SimulatedFolder::new(seed, ROOM), seed)
    }

    fn on(disk: SimulatedFolder, seed: u64) -> Self {
        let (journal, records) = open(&disk).unwrap();
        Self { disk, journal, records, random: Random(seed) }
    }

    /// Commits a group of one to four records.
    fn commit(&mut self) {
        for _ in 0..=self.random.below(4) {
            let number = self.records.len() as u64 + 1;
            let mut record =
                format!("record {number} of {:x};", self.random.below(1 << 40)).into_bytes();
            record.resize(record.len() + self.random.below(150) as usize, b'.');
            assert_eq!(self.journal.append(&record).unwrap(), number);
            self.records.push(record);
        }
        self.journal.write(true).unwrap();
    }

    /// Writes a snapshot of all records, and removes what it makes obsolete.
    fn checkpoint(&mut self) {
        let last = self.records.len() as u64;
        let mut snapshot = self.journal.snapshot(last).unwrap();
        for record in &self.records {
            snapshot.block(record).unwrap();
        }
        snapshot.finish().unwrap();
        self.journal.compact(last).unwrap();
    }

    /// Makes some changes, at times with a checkpoint or a restart.
    fn work(&mut self) {
        for _ in 0..=self.random.below(6) {
            self.commit();
        }
        match self.random.below(6) {
            0 | 1 => self.checkpoint(),
            2 => self.restart(),
            _ => {}
        }
    }

    fn restart(&mut self) {
        self.journal.close().unwrap();
        let (journal, records) = open(&self.disk).unwrap();
        assert_eq!(records, self.records);
        self.journal = journal;
    }

    fn last(&self) -> u64 {
        self.records.len() as u64
    }
}

/// Opens a folder, and returns the records of its snapshot and its journal.
fn open(disk: &SimulatedFolder) -> Result<(FileJournal, Vec<Vec<u8>>), Error> {
    let mut records = Vec::new();
    let folder = Arc::new(disk.process());
    let opened = FileJournal::open(folder, SEGMENT, &mut |event| {
        match event {
            RecoveryEvent::Block(record) => records.push(record.to_vec()),
            RecoveryEvent::Record(number, record) => {
                records.push(record.to_vec());
                assert_eq!(number, records.len() as u64);
            }
            _ => {}
        }
        Ok(())
    })?;
    assert!(opened.warnings.is_empty(), "{:?}", opened.warnings);
    Ok((opened.journal, records))
}

fn back_up(source: &dyn Folder, target: &dyn Folder, time: i64) -> Result<BackupSummary, Error> {
    let clock = || Time(time);
    let options = BackupOptions { clock: &clock, files: &[], link: None, keep: None };
    backup(source, target, &options)
}

/// Restores into a new folder, and returns the records found there.
fn restored(
    backup: &SimulatedFolder,
    until: Until,
) -> Result<(RestoreSummary, Vec<Vec<u8>>), Error> {
    let target = SimulatedFolder::new(1, ROOM);
    let summary = restore(backup, &target, until)?;
    let (mut journal, records) = open(&target).expect("a restored journal opens");
    assert_eq!(summary.last, records.len() as u64);
    // The journal continues.
    assert_eq!(journal.append(b"next").unwrap(), summary.last + 1);
    journal.write(true).unwrap();
    Ok((summary, records))
}

/// All bytes of a backup, as far as they differ from leftovers: the lengths of its files.
fn bytes(folder: &SimulatedFolder) -> u64 {
    let names = folder.list().unwrap().into_iter();
    let names = names.filter(|name| name.starts_with("journal-") || name.starts_with("snapshot-"));
    names.map(|name| folder.content(&name).unwrap().len() as u64).sum()
}

const DOCUMENT: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/backup.md"));
const JOURNAL_DOCUMENT: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/journal.md"));

/// The code blocks of a document.
fn examples(document: &str) -> impl Iterator<Item = &str> {
    document.split("```text\n").skip(1).filter_map(|block| block.split("```").next())
}

#[test]
fn writes_and_reads_the_documented_manifest() {
    let byte = |digits| u8::from_str_radix(digits, 16).unwrap();
    let source = SimulatedFolder::new(1, ROOM);
    let names = [
        "journal-0000000000000001.log",
        "synced",
        "times-0000000000000001.bin",
        "snapshot-0000000000000002.bin",
    ];
    for (name, example) in names.into_iter().zip(examples(JOURNAL_DOCUMENT)) {
        source.put(name, &example.split_whitespace().map(byte).collect::<Vec<_>>());
    }
    let [example] = examples(DOCUMENT).collect::<Vec<_>>()[..] else { panic!("one example") };
    let target = SimulatedFolder::new(1, ROOM);
    let clock = || "2026-11-21T09:30:00Z".parse().unwrap();
    let files = [StoredFile { name: "region-key".to_owned(), bytes: (0..16).collect() }];
    let options = BackupOptions { clock: &clock, files: &files, link: None, keep: None };
    backup(&source, &target, &options).unwrap();
    assert_eq!(String::from_utf8(target.content("backup").unwrap()).unwrap(), example);
    target.put("backup", example.as_bytes());
    let found = check_backup(&target).unwrap();
    assert!(found.report.is_intact(), "{found}");
    let restored_to = SimulatedFolder::new(1, ROOM);
    assert_eq!(restore(&target, &restored_to, Until::End).unwrap().files, files);
    for name in names {
        assert_eq!(restored_to.content(name), source.content(name), "{name}");
    }
}

#[test]
fn restores_every_change_of_every_backup() {
    let mut snapshots = 0;
    for seed in 1..=trials(39) {
        let mut server = Server::new(seed);
        let target = SimulatedFolder::new(seed, ROOM);
        let mut runs = Vec::new();
        for time in 1..8 {
            server.work();
            let summary = back_up(&server.disk, &target, time).unwrap();
            assert_eq!(summary.last, server.last());
            runs.push((time, summary.last));
        }
        assert!(check_backup(&target).unwrap().report.is_intact());
        // With a backup after each few changes nothing is compacted before it is copied.
        let gaps = check_backup(&target).unwrap().ranges.len() > 1;
        for last in 1..=server.last() {
            match restored(&target, Until::Change(last)) {
                Ok((summary, records)) => {
                    assert_eq!(records, server.records[..last as usize], "seed {seed}");
                    snapshots += u64::from(summary.snapshot > 0);
                    assert_eq!(summary.dropped.is_some(), last < server.last());
                }
                Err(Error::Refused(why)) => assert!(gaps, "seed {seed}: {why}"),
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
        for (time, last) in runs {
            let (summary, _) = restored(&target, Until::Time(Time(time))).unwrap();
            assert_eq!((summary.last, summary.moment.unwrap().time), (last, Time(time)));
        }
        assert_eq!(restored(&target, FOREVER).unwrap().1, server.records);
        assert_eq!(restored(&target, Until::End).unwrap().1, server.records);
        let beyond = restored(&target, Until::Change(server.last() + 1));
        assert!(matches!(beyond, Err(Error::Refused(_))));
        assert!(matches!(restored(&target, Until::Time(Time(0))), Err(Error::Refused(_))));
    }
    assert!(trials(39) < 39 || snapshots > 100, "{snapshots}");
}

#[test]
fn contains_all_acknowledged_changes_whatever_the_server_does_meanwhile() {
    let mut points = 0;
    for kind in 0..6 {
        for at in 0.. {
            let mut server = Server::new(7);
            for _ in 0..12 {
                server.commit();
            }
            server.checkpoint();
            server.commit();
            let target = SimulatedFolder::new(1, ROOM);
            if at % 2 == 0 {
                back_up(&server.disk, &target, 1).unwrap();
                server.commit();
            }
            server.checkpoint();
            let acknowledged = server.last();
            let server = Arc::new(Mutex::new(server));
            let actor = Arc::clone(&server);
            let action = Box::new(move || {
                let mut server = actor.lock().unwrap();
                match kind {
                    0 => server.commit(),
                    1 => (0..8).for_each(|_| server.commit()),
                    2 => {
                        server.commit();
                        server.checkpoint();
                    }
                    3 => {
                        (0..20).for_each(|_| server.commit());
                        server.checkpoint();
                        (0..20).for_each(|_| server.commit());
                        server.checkpoint();
                    }
                    4 => server.restart(),
                    _ => {
                        // At some of the next operations.
                        if server.random.below(4) == 0 {
                            server.work();
                        }
                    }
                }
            });
            let disk = server.lock().unwrap().disk.clone();
            let source = Interleaved::new(disk, at, kind == 5, action);
            let summary = back_up(&source, &target, 2)
                .unwrap_or_else(|error| panic!("kind {kind}, operation {at}: {error}"));
            let (_, records) = restored(&target, Until::End).unwrap();
            let server = server.lock().unwrap();
            assert!(summary.last >= acknowledged, "kind {kind}, operation {at}");
            assert_eq!(records, server.records[..summary.last as usize]);
            assert!(check_backup(&target).unwrap().report.is_intact());
            // The next run completes the backup.
            back_up(&server.disk, &target, 3).unwrap();
            assert_eq!(restored(&target, Until::End).unwrap().1, server.records);
            points += 1;
            if source.operations() <= at {
                break;
            }
        }
    }
    assert!(points > 100, "{points}");
}

#[test]
fn copies_only_new_bytes() {
    let mut server = Server::new(3);
    let target = SimulatedFolder::new(1, ROOM);
    for _ in 0..20 {
        server.commit();
    }
    let first = back_up(&server.disk, &target, 1).unwrap();
    assert_eq!((first.before, first.last, first.copied), (0, server.last(), bytes(&target)));
    let idle = back_up(&server.disk, &target, 2).unwrap();
    assert_eq!((idle.copied, idle.before, idle.last), (0, first.last, first.last));
    for round in 0..30 {
        let before = bytes(&target);
        server.commit();
        let next = back_up(&server.disk, &target, 3 + round).unwrap();
        assert_eq!(next.before + 1..=next.last, next.before + 1..=server.last());
        assert_eq!(next.copied, bytes(&target) - before, "round {round}");
        let new: usize =
            server.records[next.before as usize..].iter().map(|record| record.len() + 24).sum();
        // The header of the group, and of a new segment.
        assert!(next.copied <= new as u64 + 40 + 32, "{} bytes for {new}", next.copied);
    }
    server.checkpoint();
    let snapshot = back_up(&server.disk, &target, 50).unwrap();
    let name = format!("snapshot-{:016x}.bin", server.last());
    assert_eq!(snapshot.copied, target.content(&name).unwrap().len() as u64);
    assert_eq!(snapshot.removed, 0);
}

#[test]
fn interrupted_backup_leaves_the_previous_one_as_it_was() {
    for fault in [Fault::Death, Fault::Broken, Fault::Full, Fault::Short] {
        for ahead in 0.. {
            let mut server = Server::new(5);
            let target = SimulatedFolder::new(ahead, ROOM);
            for _ in 0..9 {
                server.commit();
            }
            if ahead % 3 > 0 {
                back_up(&server.disk, &target, 1).unwrap();
            }
            let before = if ahead % 3 > 0 { server.last() } else { 0 };
            server.commit();
            server.checkpoint();
            for _ in 0..5 {
                server.commit();
            }
            target.fail(ahead, fault);
            let began = target.operations();
            let outcome = back_up(&server.disk, &target.process(), 2);
            let is_over = target.operations() - began <= ahead;
            target.heal();
            if ahead % 2 == 0 {
                target.lose_power();
            } else {
                target.revive();
            }
            match restored(&target, Until::End) {
                Ok((summary, records)) => {
                    assert_eq!(records, server.records[..summary.last as usize]);
                    let is_new = summary.last == server.last();
                    assert!(is_new || summary.last == before && outcome.is_err());
                    assert!(check_backup(&target).unwrap().report.is_intact());
                }
                Err(Error::Refused(_)) => assert!(before == 0 && outcome.is_err()),
                Err(error) => panic!("{fault:?} at {ahead}: {error}"),
            }
            if before > 0 {
                let (_, records) = restored(&target, Until::Change(before)).unwrap();
                assert_eq!(records, server.records[..before as usize]);
            }
            server.commit();
            back_up(&server.disk, &target, 3).unwrap();
            assert_eq!(restored(&target, Until::End).unwrap().1, server.records);
            assert!(check_backup(&target).unwrap().report.is_intact());
            let unfinished = target.list().unwrap().concat().contains(".new");
            assert!(!unfinished);
            if is_over {
                break;
            }
        }
    }
}

#[test]
fn interrupted_restore_never_opens_as_an_older_state() {
    let mut server = Server::new(11);
    let source = SimulatedFolder::new(1, ROOM);
    for _ in 0..9 {
        server.commit();
    }
    server.checkpoint();
    for _ in 0..9 {
        server.commit();
    }
    back_up(&server.disk, &source, 1).unwrap();
    let last = server.last() - 2;
    for ahead in 0.. {
        let target = SimulatedFolder::new(ahead, ROOM);
        target.fail(ahead, Fault::Death);
        let outcome = restore(&source, &target.process(), Until::Change(last));
        let is_over = target.operations() <= ahead;
        if ahead % 2 == 0 {
            target.lose_power();
        } else {
            target.revive();
        }
        match open(&target) {
            // Nothing was restored yet, or everything.
            Ok((_, records)) => {
                let is_whole = records == server.records[..last as usize];
                assert!(is_whole || records.is_empty() && outcome.is_err(), "operation {ahead}");
            }
            Err(Error::Damaged(_)) => assert!(outcome.is_err()),
            Err(error) => panic!("{error}"),
        }
        if is_over {
            break;
        }
    }
}

#[test]
fn reports_every_damaged_byte_of_a_backup() {
    let mut server = Server::new(2);
    let target = SimulatedFolder::new(1, ROOM);
    for _ in 0..6 {
        server.commit();
    }
    back_up(&server.disk, &target, 1).unwrap();
    server.checkpoint();
    for _ in 0..4 {
        server.commit();
    }
    back_up(&server.disk, &target, 2).unwrap();
    let mut fallbacks = 0;
    // Files of times have tests of their own.
    let names = target.list().unwrap().into_iter();
    for name in names.filter(|name| name != "lock" && !name.starts_with("times-")) {
        let whole = target.content(&name).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            target.put(&name, &bytes);
            match check_backup(&target) {
                Ok(found) => assert!(!found.report.is_intact(), "byte {at} of {name}"),
                Err(Error::Version { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            match restored(&target, Until::End) {
                Ok((summary, records)) => {
                    assert_eq!(records, server.records, "byte {at} of {name}");
                    fallbacks += summary.damages.len();
                }
                Err(Error::Damaged(_) | Error::Version { .. }) => {}
                Err(error) => panic!("byte {at} of {name}: {error}"),
            }
        }
        target.put(&name, &whole);
        target.remove(&name).unwrap();
        let is_reported = match check_backup(&target) {
            Ok(found) => {
                found.report.findings.iter().any(|finding| matches!(finding, Finding::Damaged(_)))
            }
            Err(error) => matches!(error, Error::Refused(_)),
        };
        assert!(is_reported, "{name} is missing");
        target.put(&name, &whole);
    }
    assert!(fallbacks > 100, "{fallbacks}");
    assert!(check_backup(&target).unwrap().report.is_intact());
}

/// A backup of a journal, and one of its snapshot and what follows it.
fn backup_with_snapshot() -> (Server, SimulatedFolder, String) {
    let mut server = Server::new(2);
    let target = SimulatedFolder::new(1, ROOM);
    (0..6).for_each(|_| server.commit());
    back_up(&server.disk, &target, 1).unwrap();
    server.checkpoint();
    (0..4).for_each(|_| server.commit());
    back_up(&server.disk, &target, 2).unwrap();
    let names = target.list().unwrap().into_iter();
    let snapshot = names.filter(|name| name.starts_with("snapshot-")).max().unwrap();
    (server, target, snapshot)
}

#[test]
fn counts_the_blocks_and_records_of_each_file() {
    let (server, target, snapshot) = backup_with_snapshot();
    let found = check_backup(&target).unwrap();
    assert!(found.report.is_intact());
    let (mut records, mut blocks) = (0, 0);
    for checked in &found.report.files {
        assert_eq!(checked.bytes, target.content(&checked.file).unwrap().len() as u64);
        let numbers = checked.records.clone().unwrap();
        if checked.file == snapshot {
            // Each block is a record.
            blocks += checked.count;
            assert_eq!(checked.count, *numbers.end());
        } else {
            records += checked.count;
            assert_eq!(checked.count, numbers.end() - numbers.start() + 1, "{}", checked.file);
        }
    }
    assert!(blocks > 1 && records == server.last(), "{blocks} {records}");
}

/// All of an older copy is intact, but the manifest lists later groups.
#[test]
fn reports_a_segment_that_lacks_its_last_groups() {
    let disk = SimulatedFolder::new(2, ROOM);
    let opened = FileJournal::open(Arc::new(disk.process()), Options::default(), &mut |_| Ok(()));
    let mut journal = opened.unwrap().journal;
    let target = SimulatedFolder::new(1, ROOM);
    let mut copies = Vec::new();
    for time in 1..3 {
        journal.append(b"record").unwrap();
        journal.write(true).unwrap();
        back_up(&disk, &target, time).unwrap();
        copies.push(target.content("journal-0000000000000001.log").unwrap());
    }
    assert!(check_backup(&target).unwrap().report.is_intact());
    target.put("journal-0000000000000001.log", &copies[0]);
    let report = check_backup(&target).unwrap().to_string();
    assert!(report.contains("its groups are not those that were copied (record 2)"), "{report}");
    let outcome = restore(&target, &SimulatedFolder::new(3, ROOM), Until::End);
    assert!(matches!(outcome, Err(Error::Damaged(_))));
}

#[test]
fn check_lists_changes_without_times() {
    let disk = SimulatedFolder::new(2, ROOM);
    let opened = FileJournal::open(Arc::new(disk.process()), Options::default(), &mut |_| Ok(()));
    let mut journal = opened.unwrap().journal;
    for _ in 0..3 {
        journal.append(b"record").unwrap();
        journal.write(true).unwrap();
    }
    let target = SimulatedFolder::new(1, ROOM);
    back_up(&disk, &target, 1).unwrap();
    let found = check_backup(&target).unwrap();
    assert!(found.untimed.is_empty(), "{found}");
    assert!(!found.to_string().contains("times"), "{found}");
    target.remove("times-0000000000000001.bin").unwrap();
    let found = check_backup(&target).unwrap();
    assert_eq!(found.untimed, [1..=3]);
    assert!(found.report.is_intact(), "{found}");
    let line = "the times of the changes from 1 to 3 are not known";
    assert!(found.to_string().contains(line), "{found}");
}

/// A server has created the next segment and has not written to it yet.
#[test]
fn backs_up_a_journal_whose_last_segment_is_empty() {
    let mut server = Server::new(5);
    server.commit();
    let target = SimulatedFolder::new(1, ROOM);
    back_up(&server.disk, &target, 1).unwrap();
    let count = |disk: &SimulatedFolder| {
        disk.list().unwrap().iter().filter(|name| name.starts_with("journal-")).count()
    };
    let before = count(&server.disk);
    server.journal.find_room(SEGMENT.segment).unwrap();
    assert_eq!(count(&server.disk), before + 1);
    let summary = back_up(&server.disk, &target, 2).unwrap();
    assert_eq!((summary.last, summary.copied), (server.last(), 0));
    assert_eq!(restored(&target, Until::End).unwrap().1, server.records);
}

#[test]
fn restores_from_the_journal_if_a_snapshot_is_missing() {
    let (server, target, snapshot) = backup_with_snapshot();
    let (summary, records) = restored(&target, Until::End).unwrap();
    assert_eq!((summary.damages.len(), &records), (0, &server.records));
    target.remove(&snapshot).unwrap();
    let (summary, records) = restored(&target, Until::End).unwrap();
    assert_eq!(records, server.records);
    let damages: Vec<String> = summary.damages.iter().map(ToString::to_string).collect();
    assert_eq!(damages.len(), 1);
    assert!(damages[0].contains(&snapshot) && damages[0].contains("missing"), "{damages:?}");
    let report = check_backup(&target).unwrap().report;
    let is_reported =
        |finding: &Finding| matches!(finding, Finding::Damaged(damage) if damage.file == snapshot);
    assert!(report.findings.iter().any(is_reported), "{report}");
}

/// A disk that fails is no damage of the backup: another attempt may succeed.
#[test]
fn reports_a_failing_disk_as_such() {
    let (server, target, _) = backup_with_snapshot();
    let begin = target.operations();
    check_backup(&target).unwrap();
    let check = target.operations() - begin;
    restored(&target, Until::End).unwrap();
    let restore = target.operations() - begin - check;
    assert!(check > 10 && restore > 10, "{check} {restore}");
    let is_of_disk = |error: Option<Error>| matches!(error, Some(Error::Disk { .. }));
    for ahead in 0..check {
        target.fail(ahead, Fault::Broken);
        assert!(is_of_disk(check_backup(&target).err()), "operation {ahead} of the check");
        target.heal();
    }
    let mut complete = 0;
    for ahead in 0..restore {
        target.fail(ahead, Fault::Broken);
        match restored(&target, Until::End) {
            // The times of records are unreadable, which a restore of all records does not need.
            Ok((_, records)) => {
                assert_eq!(records, server.records);
                complete += 1;
            }
            Err(error) => assert!(is_of_disk(Some(error)), "operation {ahead} of {restore}"),
        }
        target.heal();
    }
    assert!(complete < restore / 2, "{complete} of {restore}");
}

#[test]
fn reports_damage_of_the_journal() {
    let mut server = Server::new(2);
    for _ in 0..20 {
        server.commit();
    }
    let target = SimulatedFolder::new(1, ROOM);
    back_up(&server.disk, &target, 1).unwrap();
    for name in server.disk.list().unwrap().into_iter().filter(|name| name.starts_with("journal-"))
    {
        let whole = server.disk.content(&name).unwrap();
        let end = whole.iter().rposition(|byte| *byte != 0).unwrap();
        for at in (32..=end).step_by(43) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            server.disk.put(&name, &bytes);
            let error = back_up(&server.disk, &SimulatedFolder::new(1, ROOM), 1).unwrap_err();
            assert!(matches!(error, Error::Damaged(_)), "byte {at} of {name}: {error}");
        }
        server.disk.put(&name, &whole);
    }
    // The disk loses the synced end of the last segment.
    let name =
        server.disk.list().unwrap().into_iter().filter(|name| name.starts_with("journal-")).max();
    let whole = server.disk.content(name.as_ref().unwrap()).unwrap();
    server.disk.zero_tail(name.as_ref().unwrap(), 32);
    let error = back_up(&server.disk, &SimulatedFolder::new(1, ROOM), 1).unwrap_err();
    assert!(matches!(error, Error::Damaged(_)), "{error}");
    let error = back_up(&server.disk, &target, 2).unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error}");
    server.disk.put(name.as_ref().unwrap(), &whole);
    back_up(&server.disk, &target, 2).unwrap();
    // A damaged snapshot is reported, and the backup is complete without it.
    server.checkpoint();
    let name = format!("snapshot-{:016x}.bin", server.last());
    let mut bytes = server.disk.content(&name).unwrap();
    bytes[60] ^= 1;
    server.disk.put(&name, &bytes);
    let summary = back_up(&server.disk, &target, 3).unwrap();
    assert_eq!(summary.damages.len(), 1);
    assert_eq!(restored(&target, Until::End).unwrap().1, server.records);
}

#[test]
fn refuses_a_folder_with_another_history() {
    let mut server = Server::new(4);
    let target = SimulatedFolder::new(1, ROOM);
    let mut refused = 0;
    for _ in 0..12 {
        server.commit();
        back_up(&server.disk, &target, 1).unwrap();
    }
    for last in 1..server.last() {
        let disk = SimulatedFolder::new(last, ROOM);
        restore(&target, &disk, Until::Change(last)).unwrap();
        let mut restored = Server::on(disk, 100 + last);
        let error = back_up(&restored.disk, &target, 2).unwrap_err();
        assert!(error.to_string().contains("does not have"), "{error}");
        while restored.last() <= server.last() {
            restored.commit();
            let error = back_up(&restored.disk, &target, 2).unwrap_err();
            assert!(matches!(error, Error::Refused(_)), "{error}");
            refused += 1;
        }
        let other = SimulatedFolder::new(1, ROOM);
        back_up(&restored.disk, &other, 1).unwrap();
        assert_eq!(self::restored(&other, Until::End).unwrap().1, restored.records);
    }
    assert!(refused > 20, "{refused}");
    assert_eq!(restored(&target, Until::End).unwrap().1, server.records);
}

/// Symptom that this prevents: a journal that was restored to an earlier change has removed all
/// segments of the backup, its oldest one begins with the record after the last one of the backup,
/// and a restore combines the two histories.
#[test]
fn never_combines_files_of_two_histories() {
    let mut outcomes = [0; 2];
    for seed in 1..=trials(29) {
        let mut server = Server::new(seed);
        let target = SimulatedFolder::new(1, ROOM);
        for _ in 0..10 {
            server.commit();
            if server.random.below(5) == 0 {
                server.checkpoint();
            }
            back_up(&server.disk, &target, 1).unwrap();
        }
        let disk = SimulatedFolder::new(seed, ROOM);
        let shared = server.last() - 1 - server.random.below(5);
        restore(&target, &disk, Until::Change(shared)).unwrap();
        let mut other = Server::on(disk, 100 + seed);
        while other.last() <= server.last() || other.random.below(9) > 0 {
            other.commit();
            if other.random.below(3) == 0 {
                other.checkpoint();
            }
            if back_up(&other.disk, &target, 2).is_ok() {
                break;
            }
        }
        let is_accepted = check_backup(&target).unwrap().newest.unwrap().last > server.last();
        outcomes[usize::from(is_accepted)] += 1;
        for last in 1..=other.last() {
            let target_folder = SimulatedFolder::new(1, ROOM);
            if restore(&target, &target_folder, Until::Change(last)).is_ok() {
                let (_, records) = open(&target_folder).unwrap();
                let of = |server: &Server| server.records.get(..last as usize) == Some(&*records);
                assert!(of(&server) || of(&other), "seed {seed}, change {last}");
            }
        }
        assert_eq!(restored(&target, Until::Change(server.last())).unwrap().1, server.records);
    }
    assert!(trials(29) < 29 || outcomes.iter().all(|count| *count > 2), "{outcomes:?}");
}

#[test]
fn continues_the_backup_that_it_was_restored_from() {
    for seed in 1..=trials(29) {
        let mut server = Server::new(seed);
        let target = SimulatedFolder::new(1, ROOM);
        for time in 1..6 {
            server.work();
            back_up(&server.disk, &target, time).unwrap();
            if server.random.below(2) == 0 {
                server.checkpoint();
                back_up(&server.disk, &target, time).unwrap();
            }
            let disk = SimulatedFolder::new(seed, ROOM);
            restore(&target, &disk, Until::End).unwrap();
            server = Server::on(disk, 10 * seed + time.unsigned_abs());
        }
        assert_eq!(restored(&target, Until::End).unwrap().1, server.records);
    }
}

#[test]
fn refuses_folders_of_another_kind() {
    let mut server = Server::new(4);
    server.commit();
    let target = SimulatedFolder::new(1, ROOM);
    back_up(&server.disk, &target, 1).unwrap();
    let refused = |outcome: Result<BackupSummary, Error>, text: &str| {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    };
    let mut other = Server::new(5);
    other.commit();
    refused(back_up(&other.disk, &target, 2), "of another store");
    refused(back_up(&server.disk, &other.disk.process(), 2), "uses a simulated folder");
    other.journal.close().unwrap();
    refused(back_up(&server.disk, &other.disk, 2), "has a journal and no backup");
    refused(back_up(&target, &SimulatedFolder::new(1, ROOM), 2), "is a backup");
    refused(back_up(&SimulatedFolder::new(1, ROOM), &target, 2), "there is no journal");
    assert!(matches!(open(&target), Err(Error::Refused(_))));
    let into_other = restore(&target, &other.disk, Until::End).unwrap_err();
    assert!(into_other.to_string().contains("has data already"), "{into_other}");
    let of_journal = restore(&other.disk, &SimulatedFolder::new(1, ROOM), Until::End).unwrap_err();
    assert!(of_journal.to_string().contains("is no backup"), "{of_journal}");
    let held = target.lock("lock").unwrap();
    refused(back_up(&server.disk, &target, 2), "uses a simulated folder");
    drop(held);
    assert_eq!(restored(&target, Until::End).unwrap().1, server.records);
}

#[test]
fn forgets_only_what_is_older_than_asked() {
    const DAY: i64 = 24 * 60 * 60 * 1_000_000;
    for seed in 1..6 {
        let mut server = Server::new(seed);
        let target = SimulatedFolder::new(seed, ROOM);
        let mut runs = Vec::new();
        let mut removed = 0;
        for day in 1..20 {
            server.disk.set_time(Time(day * DAY));
            for _ in 0..3 {
                server.commit();
            }
            if day % 3 == 0 {
                server.checkpoint();
            }
            let clock = || Time(day * DAY);
            let keep = Some(Duration::from_hours(7 * 24));
            let options = BackupOptions { clock: &clock, files: &[], link: None, keep };
            removed += backup(&server.disk, &target, &options).unwrap().removed;
            runs.push((day, server.last()));
            for (past, last) in runs.iter().filter(|(past, _)| *past >= day - 7) {
                let (summary, records) = restored(&target, Until::Time(Time(past * DAY))).unwrap();
                assert_eq!((summary.last, &*records), (*last, &server.records[..*last as usize]));
            }
        }
        assert!(removed > 2, "{removed}");
        assert!(restored(&target, Until::Change(1)).is_err());
        assert!(check_backup(&target).unwrap().report.is_intact());
    }
}

#[test]
fn stores_files_with_the_journal() {
    let mut server = Server::new(1);
    server.commit();
    let target = SimulatedFolder::new(1, ROOM);
    let file =
        |name: &str, bytes: &[u8]| StoredFile { name: name.to_owned(), bytes: bytes.to_vec() };
    let run = |files: &[StoredFile]| {
        let clock = || Time(1);
        backup(
            &server.disk,
            &target,
            &BackupOptions { clock: &clock, files, link: None, keep: None },
        )
    };
    run(&[file("session-keys", b"old"), file("acme/a.example.pem", b"\0\xff\n")]).unwrap();
    let files = [file("acme/a.example.pem", b""), file("region-key", b"new")];
    run(&files).unwrap();
    assert_eq!(restored(&target, Until::End).unwrap().0.files, files);
    for name in ["", "/a", "a/", "../a", "a/../b", ".", "a b", "a\nb", "\u{e4}"] {
        assert!(matches!(run(&[file(name, b"")]), Err(Error::Refused(_))), "{name:?}");
    }
    assert!(matches!(run(&[file("a", &vec![0; 5 << 20])]), Err(Error::Refused(_))));
    assert_eq!(restored(&target, Until::End).unwrap().0.files, files);
}

/// Symptom that this prevents: a power failure takes a group from the journal that was copied before
/// it was synced, the journal uses its numbers again, and the backup has another history.
#[test]
fn syncs_what_it_copies() {
    for seed in 1..=trials(49) {
        let mut server = Server::new(seed);
        server.commit();
        server.journal.append(b"written, not synced").unwrap();
        server.journal.write(false).unwrap();
        server.records.push(b"written, not synced".to_vec());
        let target = SimulatedFolder::new(seed, ROOM);
        let summary = back_up(&server.disk, &target, 1).unwrap();
        assert_eq!(summary.last, server.last());
        server.disk.lose_power();
        let (journal, records) = open(&server.disk).unwrap();
        assert_eq!(records, server.records);
        server.journal = journal;
        server.commit();
        back_up(&server.disk, &target, 2).unwrap();
        assert_eq!(restored(&target, Until::End).unwrap().1, server.records);
    }
}

#[test]
fn restores_repaired_journals_with_their_gaps() {
    let mut server = Server::new(6);
    for _ in 0..12 {
        server.commit();
    }
    server.journal.close().unwrap();
    let name = "journal-0000000000000001.log";
    let mut bytes = server.disk.content(name).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[end / 2] ^= 1;
    server.disk.put(name, &bytes);
    let folder: Arc<dyn Folder> = Arc::new(server.disk.clone());
    let repaired = bine_store::journal::repair(&folder).unwrap();
    assert!(!repaired.lost.is_empty());
    let target = SimulatedFolder::new(1, ROOM);
    let last = back_up(&server.disk, &target, 1).unwrap().last;
    for until in 1..=last {
        let folder = SimulatedFolder::new(1, ROOM);
        restore(&target, &folder, Until::Change(until)).unwrap();
        let mut numbers = Vec::new();
        let opened = FileJournal::open(Arc::new(folder.clone()), SEGMENT, &mut |event| {
            if let RecoveryEvent::Record(number, _) = event {
                numbers.push(number);
            }
            Ok(())
        });
        assert_eq!(opened.unwrap().last, until);
        let is_lost = |number: &u64| repaired.lost.iter().any(|lost| lost.contains(number));
        let expected: Vec<u64> = (1..=until).filter(|number| !is_lost(number)).collect();
        assert_eq!(numbers, expected);
    }
}
