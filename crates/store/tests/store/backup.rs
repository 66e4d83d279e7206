//! Tests of backups of a store under constant writes, on a real disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use bine_store::disk::RealFolder;
use bine_store::journal::{
    BackupOptions, BackupSummary, Link, Until, backup, check_backup, restore,
};
use bine_store::{Id, Store, Sync, Time};

use crate::scratch::Scratch;
use crate::tables::{self, Receipt};

const WRITERS: usize = 3;
const RUNS: usize = 12;
/// More receipts than a writer inserts.
const MOST: u64 = 1 << 32;
/// The receipts that a writer keeps, so that snapshots stay small.
const KEPT: u64 = 40;

#[test]
fn backs_up_all_acknowledged_changes_of_a_store_that_is_written() {
    for sync in [Sync::Commit, Sync::None] {
        let scratch = Scratch::new(&format!("backup-{sync:?}"));
        let [data, target] = ["data", "backup"].map(|name| scratch.0.join(name));
        let store = open(&data, sync);
        let acknowledged: [AtomicU64; WRITERS] = Default::default();
        let is_done = AtomicBool::new(false);
        let mut snapshots = 0;
        thread::scope(|scope| {
            for (writer, acknowledged) in acknowledged.iter().enumerate() {
                let (store, is_done) = (&store, &is_done);
                scope.spawn(move || {
                    while !is_done.load(Ordering::Relaxed) {
                        let number = acknowledged.load(Ordering::Relaxed) + 1;
                        write(store, writer as u64 * MOST, number);
                        acknowledged.store(number, Ordering::Release);
                    }
                });
            }
            // Ends the writers, also after a failed assertion.
            let _done = SetOnDrop(&is_done);
            // A busy machine may write the first snapshot later.
            let mut run = 0;
            while run < RUNS || snapshots == 0 {
                assert!(run < 100 * RUNS, "no checkpoint was written");
                let before: Vec<u64> =
                    acknowledged.iter().map(|number| number.load(Ordering::Acquire)).collect();
                let summary = back_up(&data, &target, run % 2 == 0);
                let restored = scratch.0.join(format!("restored-{run}"));
                snapshots += u64::from(check(&target, &restored, Until::End, &before) > 0);
                if summary.before > 0 {
                    let until = Until::Change(summary.before);
                    check(&target, &restored, until, &[0; WRITERS]);
                }
                run += 1;
            }
        });
        store.close();
        let written: Vec<u64> =
            acknowledged.iter().map(|number| number.load(Ordering::Acquire)).collect();
        back_up(&data, &target, false);
        check(&target, &scratch.0.join("last"), Until::End, &written);
        let found = check_backup(&RealFolder::open_read_only(&target).unwrap()).unwrap();
        assert!(found.report.is_intact(), "{found}");
        assert!(back_up(&data, &target, false).copied == 0);
    }
}

struct SetOnDrop<'f>(&'f AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn open(folder: &Path, sync: Sync) -> Store {
    // A checkpoint is due after 16 KiB.
    let options = tables::options().segment(4096).sync(sync);
    Store::open(folder, options, &mut |_, _| {}).unwrap()
}

/// Inserts the next receipt of a writer and removes an old one, in one change.
fn write(store: &Store, base: u64, number: u64) {
    let change = store.change(|change| {
        change.insert(Receipt { id: Id::unassigned(), number: base + number })?;
        let old = number.checked_sub(KEPT).filter(|old| *old > 0).map(|old| base + old);
        let rows = old
            .into_iter()
            .flat_map(|old| change.all::<Receipt>().filter(move |receipt| receipt.number == old));
        let rows: Vec<_> = rows.map(|receipt| receipt.id).collect();
        for id in rows {
            change.remove(id)?;
        }
        Ok::<_, bine_store::Error>(())
    });
    match change.wait() {
        // A conflict with the other writers in each attempt.
        Err(bine_store::Error::Conflict) => write(store, base, number),
        outcome => outcome.unwrap(),
    }
}

fn back_up(data: &Path, target: &Path, is_linked: bool) -> BackupSummary {
    let link = |from: &str, to: &str| fs::hard_link(data.join(from), target.join(to));
    let options = BackupOptions {
        clock: &Time::now,
        files: &[],
        link: is_linked.then_some(&link as &Link<'_>),
        keep: None,
    };
    let source = RealFolder::open_read_only(data).unwrap();
    backup(&source, &RealFolder::open(target).unwrap(), &options).unwrap()
}

/// Restores a backup, and checks that it has whole changes only, and those up to `before`. Returns
/// the snapshot that it begins with.
fn check(target: &Path, restored: &Path, until: Until, before: &[u64]) -> u64 {
    let _ = fs::remove_dir_all(restored);
    let source = RealFolder::open_read_only(target).unwrap();
    let summary = restore(&source, &RealFolder::open(restored).unwrap(), until).unwrap();
    let store = open(restored, Sync::Commit);
    assert!(store.warnings().is_empty(), "{:?}", store.warnings());
    let now = store.read();
    assert_eq!(now.sequence(), summary.last);
    let mut found: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for receipt in now.all::<Receipt>() {
        found.entry(receipt.number / MOST).or_default().push(receipt.number % MOST);
    }
    for (writer, before) in before.iter().enumerate() {
        let numbers = found.remove(&(writer as u64)).unwrap_or_default();
        let last = numbers.last().copied().unwrap_or(0);
        assert!(last >= *before, "writer {writer}: {last} of {before}");
        let first = last.saturating_sub(KEPT - 1).max(1);
        assert_eq!(numbers, (first..=last).collect::<Vec<_>>(), "of writer {writer}");
    }
    assert!(found.is_empty());
    summary.snapshot
}
