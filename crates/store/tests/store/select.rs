//! Tests of `select`: answers, pages and figures equal those of a plain vector, and read sets of
//! queries in the order of an index are exact.

use std::sync::{Arc, mpsc};

use bine_store::{
    Column, ColumnOf, CursorError, Field, Id, Options, RowId, Schema, Store, Table, Turn, Value,
};

use crate::model::{IdPool, Model, Operation, Outcome};
use crate::random::Random;
use crate::selection::{OrderColumn, Selection};
use crate::tables::{self, Message, User};

/// A store with many messages of few authors, and the ids of all rows.
fn filled(random: &mut Random, operations: usize) -> (Store, IdPool) {
    let store = Store::in_memory(tables::options()).unwrap();
    let mut pool = IdPool::default();
    for _ in 0..operations {
        commit(&store, &mut pool, random);
    }
    (store, pool)
}

/// Commits one operation that has an effect.
fn commit(store: &Store, pool: &mut IdPool, random: &mut Random) {
    loop {
        let mut change = store.begin();
        let operation = Operation::draw(pool, random);
        let outcome = operation.apply_to(&mut change);
        pool.learn(&operation, &outcome);
        if !matches!(outcome, Outcome::Refused(_) | Outcome::NothingToRemove) {
            store.commit(change).unwrap().wait().unwrap();
            return;
        }
    }
}

#[test]
fn answers_selections_as_a_plain_vector_does() {
    let mut random = Random(2);
    let (store, mut pool) = filled(&mut random, 60);
    for _ in 0..200 {
        commit(&store, &mut pool, &mut random);
        let now = store.read();
        let model = Model::of(&now);
        for _ in 0..40 {
            let selection = Selection::draw(&pool, &mut random);
            assert_eq!(selection.ask(&now), selection.expected(&model), "{selection:?}");
        }
    }
}

/// The pages forwards and backwards are the same, and a cursor stays valid when its row is removed.
#[test]
fn pages_contain_each_row_once_in_both_directions() {
    let mut random = Random(3);
    let (store, mut pool) = filled(&mut random, 120);
    for _ in 0..150 {
        commit(&store, &mut pool, &mut random);
        let now = store.read();
        let model = Model::of(&now);
        let mut selection = Selection::draw(&pool, &mut random);
        selection.limit = None;
        let (select, all) = (selection.select(&now), selection.matches(&model));
        let length = 1 + random.below(4) as usize;
        let mut page = select.page(&Turn::First, length).unwrap();
        let mut pages = vec![page.clone()];
        while let Some(next) = &page.next {
            page = select.page_after(next, length).unwrap();
            pages.push(page.clone());
        }
        let rows: Vec<Message> = pages.iter().flat_map(|page| page.rows.clone()).collect();
        assert_eq!(rows, all, "{selection:?}");
        let mut back = pages.pop().unwrap();
        while let Some(previous) = &back.previous {
            back = select.page_before(previous, length).unwrap();
            assert_eq!(Some(&back), pages.pop().as_ref(), "{selection:?}");
        }
        assert!(pages.is_empty());
    }
}

#[test]
fn pages_continue_after_a_removed_row() {
    let store = Store::in_memory(Options::new().table::<Reading>()).unwrap();
    for value in [1, 2, 2, 3] {
        store.insert(Reading::new(value)).wait().unwrap();
    }
    let values = |rows: &[Reading]| rows.iter().map(|row| row.value).collect::<Vec<_>>();
    let now = store.read();
    let by_value = now.select::<Reading>().order_by(Reading::COLUMN_VALUE);
    let first = by_value.page(&Turn::First, 2).unwrap();
    store.remove(first.rows[1].id).wait().unwrap();
    let now = store.read();
    let by_value = now.select::<Reading>().order_by(Reading::COLUMN_VALUE);
    let second = by_value.page_after(first.next.as_ref().unwrap(), 2).unwrap();
    assert_eq!(values(&second.rows), [2, 3]);
    assert_eq!(second.next, None);
    // Without a row after the cursor the page is the last one, and without one before it the first.
    for row in &second.rows {
        store.remove(row.id).wait().unwrap();
    }
    let now = store.read();
    let by_value = now.select::<Reading>().order_by(Reading::COLUMN_VALUE);
    let last = by_value.page_after(first.next.as_ref().unwrap(), 2).unwrap();
    assert_eq!((values(&last.rows), last.previous, last.next), (vec![1], None, None));
    store.remove(first.rows[0].id).wait().unwrap();
    store.insert(Reading::new(9)).wait().unwrap();
    let now = store.read();
    let by_value = now.select::<Reading>().order_by(Reading::COLUMN_VALUE);
    let only = by_value.page_before(second.previous.as_ref().unwrap(), 2).unwrap();
    assert_eq!((values(&only.rows), only.previous, only.next), (vec![9], None, None));
    let other = now.select::<Reading>().order_by(Reading::COLUMN_VALUE.descending());
    let refused = other.page_after(first.next.as_ref().unwrap(), 2);
    assert_eq!(refused.unwrap_err(), CursorError::Invalid);
}

/// For queries that an index answers in order, a commit of one row affects the read set exactly if
/// it changes the result.
#[test]
fn reads_of_an_ordered_index_are_exact() {
    let mut random = Random(4);
    let (store, mut pool) = filled(&mut random, 80);
    let (sender, receiver) = mpsc::channel();
    store.observe(move |changes| sender.send(Arc::clone(changes)).unwrap());
    let (mut changed, mut unchanged) = (0, 0);
    for _ in 0..600 {
        let limits: Vec<(usize, bool, Option<Id<User>>)> = (0..20)
            .map(|_| {
                let limit = random.below(5) as usize;
                (limit, random.below(2) == 0, (random.below(4) > 0).then(|| pool.user(&mut random)))
            })
            .collect();
        let look = |&(limit, is_descending, author): &(usize, bool, Option<Id<User>>)| {
            let now = store.read();
            let select = now.select::<Message>().limit(limit);
            let select = match author {
                Some(author) => {
                    select.equals(Message::COLUMN_AUTHOR, author).order_by(Message::COLUMN_SCORE)
                }
                None => select,
            };
            let select = if is_descending { select.rev() } else { select };
            (select.rows(), now.reads())
        };
        let before: Vec<_> = limits.iter().map(look).collect();
        let old = store.read().without_tracking();
        commit(&store, &mut pool, &mut random);
        let changes = receiver.recv().unwrap();
        // A row that is written with the same values is a change for the read set alone.
        let now = store.read();
        let rows = now.changed::<Message>(&changes).unwrap();
        if rows.iter().any(|id| old.get(Id::<Message>::of(*id)) == now.get(Id::of(*id))) {
            continue;
        }
        for (limit, (shown, reads)) in limits.iter().zip(before) {
            let is_changed = look(limit).0 != shown;
            assert_eq!(reads.is_touched_by(&changes), is_changed, "{limit:?} showed {shown:?}");
            *(if is_changed { &mut changed } else { &mut unchanged }) += 1;
        }
    }
    assert!(changed > 300 && unchanged > 300, "{changed} {unchanged}");
}

#[test]
fn explains_the_choice_of_an_index() {
    let mut random = Random(5);
    let (store, _) = filled(&mut random, 200);
    let now = store.read();
    let all = now.count::<Message>();
    let authors = now.select::<Message>().group_by(Message::COLUMN_AUTHOR).count();
    let (author, by_author) = *authors.iter().max_by_key(|(_, count)| *count).unwrap();
    let limit = 1;
    let check = |change: &dyn Fn(&mut Selection), expected: &str| {
        let mut selection = Selection::plain();
        change(&mut selection);
        let explained = selection.select(&now).explain().to_string();
        assert_eq!(explained, expected, "{selection:?}");
    };
    check(&|_| {}, &format!("all of `message`: {all} examined, {all} returned"));
    check(&|own| own.limit = Some(limit), "all of `message`: 1 examined, 1 returned");
    check(
        &|own| (own.order, own.limit) = (Some(OrderColumn::Parent), Some(limit)),
        "`message` by the index of `parent`: 1 examined, 1 returned",
    );
    check(
        &|own| (own.order, own.limit) = (Some(OrderColumn::Score), Some(limit)),
        &format!("all of `message`, sorted: {all} examined, 1 returned"),
    );
    // Rows with the same subject would be in the order of the score.
    check(
        &|own| (own.order, own.limit) = (Some(OrderColumn::Subject), Some(limit)),
        &format!("all of `message`, sorted: {all} examined, 1 returned"),
    );
    check(
        &|own| {
            (own.author, own.order, own.limit) =
                (Some(author), Some(OrderColumn::Score), Some(limit));
        },
        "`message` by the index of `author`, `score`: 1 examined, 1 returned",
    );
    check(
        &|own| (own.author, own.limit) = (Some(author), Some(limit)),
        &format!(
            "`message` by the index of `author`, `score`, sorted: {by_author} examined, 1 returned"
        ),
    );
    assert!(by_author > 1 && by_author < all, "{by_author} of {all}");
}

/// A table without an index.
#[derive(Clone, PartialEq, Debug)]
struct Reading {
    id: Id<Reading>,
    value: i64,
    weight: Option<f64>,
}

impl Reading {
    const COLUMN_VALUE: ColumnOf<Self, i64> = ColumnOf::position(0);
    const COLUMN_WEIGHT: ColumnOf<Self, Option<f64>> = ColumnOf::position(1);

    fn new(value: i64) -> Self {
        Self { id: Id::unassigned(), value, weight: None }
    }
}

impl Table for Reading {
    const NAME: &'static str = "reading";

    fn schema() -> Schema {
        let columns = vec![Column::of::<i64>("value"), Column::of::<Option<f64>>("weight")];
        Schema { columns, ..Schema::new(Self::NAME) }
    }

    fn id(&self) -> RowId {
        self.id.row()
    }

    fn set_id(&mut self, id: RowId) {
        self.id = Id::of(id);
    }

    fn values<'r>(&'r self, to: &mut Vec<Value<'r>>) {
        to.extend([self.value.value(), self.weight.value()]);
    }

    fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self> {
        let [value, weight] = values else { return None };
        Some(Self {
            id: Id::of(id),
            value: Field::from_value(*value)?,
            weight: Field::from_value(*weight)?,
        })
    }
}

#[test]
fn sums_do_not_overflow() {
    let store = Store::in_memory(Options::new().table::<Reading>()).unwrap();
    let select = |now: &bine_store::Snapshot| {
        let select = now.select::<Reading>();
        (select.sum(Reading::COLUMN_VALUE), select.average(Reading::COLUMN_VALUE))
    };
    assert_eq!(select(&store.read()), (0, None));
    for _ in 0..3 {
        store.insert(Reading::new(i64::MAX)).wait().unwrap();
    }
    assert_eq!(select(&store.read()), (3 * i128::from(i64::MAX), Some(i64::MAX as f64)));
    for _ in 0..6 {
        store.insert(Reading::new(i64::MIN)).wait().unwrap();
    }
    let expected = 3 * i128::from(i64::MAX) + 6 * i128::from(i64::MIN);
    assert_eq!(select(&store.read()).0, expected);
}

#[test]
fn figures_leave_out_missing_values() {
    let store = Store::in_memory(Options::new().table::<Reading>()).unwrap();
    for (value, weight) in [(1, Some(2.5)), (1, None), (2, None), (1, Some(-0.5))] {
        store.insert(Reading { weight, ..Reading::new(value) }).wait().unwrap();
    }
    let now = store.read();
    let select = now.select::<Reading>();
    let weight = Reading::COLUMN_WEIGHT;
    assert_eq!((select.min(weight), select.max(weight)), (Some(-0.5), Some(2.5)));
    assert_eq!((select.sum(weight), select.average(weight)), (2.0, Some(1.0)));
    let groups = now.select::<Reading>().group_by(Reading::COLUMN_VALUE);
    assert_eq!(groups.count(), [(1, 3), (2, 1)]);
    assert_eq!(groups.sum(weight), [(1, 2.0), (2, 0.0)]);
    assert_eq!(groups.average(weight), [(1, Some(1.0)), (2, None)]);
    assert_eq!(groups.max(weight), [(1, Some(2.5)), (2, None)]);
    let newest = now.select::<Reading>().rev().limit(2);
    assert_eq!(
        (newest.count(), newest.min(weight), newest.sum(Reading::COLUMN_VALUE)),
        (2, Some(-0.5), 3)
    );
}

/// The reads of a join are the rows of the query and the rows that they refer to, and no others.
#[test]
fn joins_read_only_the_rows_that_are_referred_to() {
    let store = Store::in_memory(tables::options()).unwrap();
    let (sender, receiver) = mpsc::channel();
    let [ann, bob] = ["ann", "bob"].map(|name| store.insert(User::new(name, None)).wait().unwrap());
    // More rows than a read set lists.
    store
        .change(|change| {
            (0..5000).try_for_each(|score| {
                let (id, parent, subject) = (Id::unassigned(), None, None);
                change.insert(Message { id, author: ann, parent, subject, score }).map(|_| ())
            })
        })
        .wait()
        .unwrap();
    store.observe(move |changes| sender.send(Arc::clone(changes)).unwrap());
    let now = store.read();
    let pairs = now.select::<Message>().with(|message| message.author).rows();
    assert_eq!(pairs.len(), 5000);
    assert!(pairs.iter().all(|(message, author)| message.author == author.id));
    let (message, author) = now.select::<Message>().with(|message| message.author).first().unwrap();
    assert_eq!((message.id, author.id), (pairs[0].0.id, ann));
    let touched = |user| {
        store.update(user, |user: &mut User| user.age = Some(1)).wait().unwrap();
        now.reads().is_touched_by(&receiver.recv().unwrap())
    };
    assert!(!touched(bob));
    assert!(touched(ann));
}
