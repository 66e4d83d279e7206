//! Tests of read sets: a commit that changes a view's result always affects its read set, and false
//! positives are few.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};

use bine_store::{Error, Id, ReadSet, Store};

use crate::model::{IdPool, Operation, Outcome, Query};
use crate::random::Random;
use crate::tables::{self, Receipt};

/// The environment variable `BINE_COMMITS` overrides this number.
const COMMITS: u64 = 1000;
/// Views for each commit.
const VIEWS: u64 = 30;

/// A view: one or several queries, or an attempted operation with its outcome.
#[derive(Debug)]
enum View {
    Queries(Vec<Query>),
    Attempt(Operation),
}

impl View {
    fn draw(pool: &IdPool, random: &mut Random) -> Self {
        match random.below(6) {
            0 => Self::Attempt(Operation::draw(pool, random)),
            1 => Self::Queries((0..4).map(|_| Query::draw(pool, random)).collect()),
            _ => Self::Queries(vec![Query::draw(pool, random)]),
        }
    }

    /// The view's current result and read set.
    fn look(&self, store: &Store) -> (String, ReadSet) {
        match self {
            Self::Queries(queries) => {
                let now = store.read();
                let answers: Vec<String> = queries.iter().map(|query| query.ask(&now)).collect();
                (answers.join("\n"), now.reads())
            }
            Self::Attempt(operation) => {
                let mut change = store.begin();
                let outcome = match operation.apply_to(&mut change) {
                    // Each attempt gets a new id.
                    Outcome::Added(_) => Outcome::Set,
                    outcome => outcome,
                };
                (format!("{outcome:?}"), change.reads())
            }
        }
    }

    fn kind(&self) -> String {
        let kind = match self {
            Self::Attempt(_) => return "a change".to_owned(),
            Self::Queries(queries) if queries.len() > 1 => return "four questions".to_owned(),
            Self::Queries(queries) => format!("{:?}", queries[0]),
        };
        kind.split('(').next().unwrap_or_default().to_owned()
    }
}

/// Counts for the views of one kind.
#[derive(Default)]
struct Count {
    changed: u64,
    unchanged: u64,
    /// Commits that affected the read set without changing the result.
    false_positives: u64,
}

#[test]
fn read_sets_catch_every_change_with_few_false_positives() {
    let commits = std::env::var("BINE_COMMITS").ok().and_then(|text| text.parse().ok());
    let store = Store::in_memory(tables::options()).unwrap();
    let (sender, receiver) = mpsc::channel();
    store.observe(move |changes| sender.send(Arc::clone(changes)).unwrap());
    let mut random = Random(1);
    let mut pool = IdPool::default();
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let commits = commits.unwrap_or(COMMITS);
    for _ in 0..commits {
        let views: Vec<View> = (0..VIEWS).map(|_| View::draw(&pool, &mut random)).collect();
        let before: Vec<(String, ReadSet)> = views.iter().map(|view| view.look(&store)).collect();
        commit(&store, &mut pool, &mut random);
        let changes = receiver.recv().unwrap();
        for (view, (shown, reads)) in views.iter().zip(before) {
            let is_changed = view.look(&store).0 != shown;
            let is_affected = reads.is_touched_by(&changes);
            assert!(
                is_affected || !is_changed,
                "{view:?} showed {shown}, and its read set misses {changes:?}"
            );
            let count = counts.entry(view.kind()).or_default();
            count.changed += u64::from(is_changed);
            count.unchanged += u64::from(!is_changed);
            count.false_positives += u64::from(is_affected && !is_changed);
        }
    }
    let (mut all, mut false_positives) = (0, 0);
    for (kind, count) in &counts {
        let Count { changed, unchanged, false_positives: own } = count;
        let share = percent(*own, *unchanged);
        println!(
            "{kind}: {changed} changed, {unchanged} not, of these {own} false positives ({share:.1} %)"
        );
        assert!(*changed > 0 || commits < COMMITS, "no commit has changed {kind}");
        (all, false_positives) = (all + unchanged, false_positives + own);
    }
    let share = percent(false_positives, all);
    println!("all: {false_positives} false positives of {all} ({share:.1} %)");
    assert!(
        share < 12.0 || commits < COMMITS,
        "{share} % of the unrelated commits are false positives"
    );
}

fn percent(part: u64, of: u64) -> f64 {
    part as f64 * 100.0 / of.max(1) as f64
}

/// Commits a few random operations.
fn commit(store: &Store, pool: &mut IdPool, random: &mut Random) {
    let mut change = store.begin();
    let mut left = 1 + random.below(3);
    while left > 0 {
        let operation = Operation::draw(pool, random);
        let outcome = operation.apply_to(&mut change);
        pool.learn(&operation, &outcome);
        left -= u64::from(!matches!(outcome, Outcome::Refused(_) | Outcome::NothingToRemove));
    }
    store.commit(change).unwrap().wait().unwrap();
}

/// Large read sets and large commits cause false positives only.
#[test]
fn coarsens_large_read_sets_and_changes() {
    const MANY: u64 = 5000;
    let store = Store::in_memory(tables::options()).unwrap();
    let (sender, receiver) = mpsc::channel();
    store.observe(move |changes| sender.send(Arc::clone(changes)).unwrap());
    let ids = store.change(|change| {
        let row = |number| Receipt { id: Id::unassigned(), number };
        (0..MANY).map(|number| change.insert(row(number))).collect::<Result<Vec<_>, Error>>()
    });
    let ids = ids.wait().unwrap();
    let nothing = store.read();
    let one = store.read();
    assert!(one.get(ids[0]).is_some() && nothing.get(Id::<Receipt>::unassigned()).is_none());
    let many = store.read();
    assert!(ids.iter().all(|id| many.get(*id).is_some()));
    let all = receiver.recv().unwrap();
    assert!(nothing.reads().is_touched_by(&all) && one.reads().is_touched_by(&all));
    let touched = |id| {
        store.update(id, |row: &mut Receipt| row.number += 1).wait().unwrap();
        let changes = receiver.recv().unwrap();
        [&nothing, &one, &many].map(|view| view.reads().is_touched_by(&changes))
    };
    assert_eq!(touched(ids[0]), [false, true, true]);
    assert_eq!(touched(ids[MANY as usize - 1]), [false, false, true]);
}
