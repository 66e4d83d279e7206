//! Tests of changes that begin with commits which cannot be written.

use std::sync::atomic::Ordering;

use super::tests::{Counter, Fixture, counters, flaky_store};
use super::{MAX_FALLBACKS, Pending, Sync};
use crate::error::Error;
use crate::id::Id;

#[test]
fn conflicts_after_reading_a_failed_commit() {
    let Fixture { store, full, .. } = flaky_store(1, 0, None);
    let id = counters(&store, 1)[0];
    let mut lost = store.begin();
    lost.update(id, |row: &mut Counter| row.number = 9).unwrap();
    let lost = store.commit(lost).unwrap();
    let mut writer_of_lost = store.begin_at_head();
    assert_eq!(writer_of_lost.get(id).unwrap().number, 9);
    writer_of_lost.insert(Counter { id: Id::unassigned(), half: 4, number: 9 }).unwrap();
    let reader = store.begin_at_head();
    assert_eq!(reader.get(id).unwrap().number, 9);
    full.store(100, Ordering::Relaxed);
    assert_eq!(lost.wait(), Err(Error::Full));
    full.store(0, Ordering::Relaxed);
    // The journal again has the sequence at which it was staged.
    counters(&store, 3);
    assert_eq!(store.commit(writer_of_lost).map(drop), Err(Error::Conflict));
    assert_eq!(store.commit(reader).map(drop), Err(Error::Conflict));
    assert_eq!(store.read().get(id).unwrap().number, 0);
}

#[test]
fn change_that_began_with_a_failed_commit_runs_again_or_has_its_error() {
    let Fixture { store, full, .. } = flaky_store(1, 0, None);
    let id = counters(&store, 1)[0];
    let stage = || {
        let mut lost = store.begin();
        lost.update(id, |row: &mut Counter| row.number = 9).unwrap();
        store.commit(lost).unwrap()
    };
    let fail = |lost: Pending| {
        full.store(100, Ordering::Relaxed);
        assert_eq!(lost.wait(), Err(Error::Full));
        full.store(0, Ordering::Relaxed);
    };
    let (mut lost, mut seen) = (Some(stage()), Vec::new());
    let change = store.change(|change| {
        lost.take().into_iter().for_each(fail);
        change.update(id, |row: &mut Counter| {
            seen.push(row.number);
            row.number += 1;
        })
    });
    change.wait().unwrap();
    assert_eq!((seen, store.read().get(id).unwrap().number), (vec![9, 0], 1));
    let lost = stage();
    let change = store.change_once(|change| {
        fail(lost);
        change.update(id, |row: &mut Counter| row.number += 1)
    });
    assert_eq!(change.wait(), Err(Error::Full));
}

/// Symptom: after many fallbacks each change without a retry conflicted for good, and each fallback
/// used memory. Cause: each fallback counted against the visible state.
#[test]
fn long_full_disk_causes_no_later_conflicts() {
    let Fixture { store, full, .. } = flaky_store(1, 0, None);
    let id = counters(&store, 1)[0];
    let reader = store.begin();
    assert_eq!(reader.count::<Counter>(), 1);
    full.store(100, Ordering::Relaxed);
    for _ in 0..=2 * MAX_FALLBACKS {
        assert_eq!(store.remove(id).wait(), Err(Error::Full));
    }
    full.store(0, Ordering::Relaxed);
    assert_eq!(store.change_once(|change| change.remove(id)).wait(), Ok(true));
    let pending = store.commit(store.begin()).unwrap();
    assert!(pending.committer.head().fallbacks.len() <= MAX_FALLBACKS);
    // An extension's record must not change that.
    let kept = pending.committer.append(vec![9], Sync::Commit, Box::new(|_| ())).unwrap();
    kept.wait().unwrap();
    assert_eq!(store.change_once(|change| change.remove(id)).wait(), Ok(false));
    counters(&store, 1);
    // A base older than the remembered fallbacks must conflict, and must not pass as a recent one.
    assert_eq!(store.commit(reader).map(drop), Err(Error::Conflict));
}
