//! Tests of removals: a row is removed together with the rows that its references demand, or not at
//! all, as in a plain vector.

use std::sync::{Arc, mpsc};

use bine_store::{
    Column, Error, Field, Id, OnRemove, Options, RowId, Schema, Store, Table, Transaction, Value,
};

use crate::random::Random;

/// A row that refers to rows of its table, with a different rule for each column.
#[derive(Clone, PartialEq, Debug)]
struct Part {
    id: Id<Part>,
    whole: Option<Id<Part>>,
    neighbor: Option<Id<Part>>,
    spare: Option<Id<Part>>,
    keeper: Option<Id<Part>>,
    number: u64,
}

/// A row that refers to a part by a required column.
#[derive(Clone, PartialEq, Debug)]
struct Label {
    id: Id<Label>,
    part: Id<Part>,
}

impl Table for Part {
    const NAME: &'static str = "part";

    fn schema() -> Schema {
        let reference = |name: &'static str, on_remove| Column {
            on_remove,
            ..Column::of::<Option<Id<Self>>>(name)
        };
        let columns = vec![
            reference("whole", OnRemove::Cascade),
            reference("neighbor", OnRemove::SetNone),
            reference("spare", OnRemove::SetNone),
            reference("keeper", OnRemove::Reject),
            Column::of::<u64>("number"),
        ];
        Schema { columns, ..Schema::new(Self::NAME) }
    }

    fn id(&self) -> RowId {
        self.id.row()
    }

    fn set_id(&mut self, id: RowId) {
        self.id = Id::of(id);
    }

    fn values<'r>(&'r self, to: &mut Vec<Value<'r>>) {
        let references = [&self.whole, &self.neighbor, &self.spare, &self.keeper];
        to.extend(references.map(Field::value));
        to.push(self.number.value());
    }

    fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self> {
        let [whole, neighbor, spare, keeper, number] = values else { return None };
        Some(Self {
            id: Id::of(id),
            whole: Field::from_value(*whole)?,
            neighbor: Field::from_value(*neighbor)?,
            spare: Field::from_value(*spare)?,
            keeper: Field::from_value(*keeper)?,
            number: Field::from_value(*number)?,
        })
    }
}

impl Table for Label {
    const NAME: &'static str = "label";

    fn schema() -> Schema {
        let part = Column { on_remove: OnRemove::Cascade, ..Column::of::<Id<Part>>("part") };
        Schema { columns: vec![part], ..Schema::new(Self::NAME) }
    }

    fn id(&self) -> RowId {
        self.id.row()
    }

    fn set_id(&mut self, id: RowId) {
        self.id = Id::of(id);
    }

    fn values<'r>(&'r self, to: &mut Vec<Value<'r>>) {
        to.push(self.part.value());
    }

    fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self> {
        let [part] = values else { return None };
        Some(Self { id: Id::of(id), part: Field::from_value(*part)? })
    }
}

/// The rows of both tables.
type Rows = (Vec<Part>, Vec<Label>);

fn open() -> Store {
    Store::in_memory(Options::new().table::<Part>().table::<Label>()).unwrap()
}

fn part(number: u64) -> Part {
    Part { id: Id::unassigned(), whole: None, neighbor: None, spare: None, keeper: None, number }
}

fn rows(now: &bine_store::Snapshot) -> Rows {
    (now.all::<Part>().collect(), now.all::<Label>().collect())
}

/// Removes a part from plain vectors. Returns false if that is rejected.
fn remove_from((parts, labels): &mut Rows, id: Id<Part>) -> bool {
    let mut removed = vec![id];
    loop {
        let is_new = |part: &&Part| {
            !removed.contains(&part.id) && part.whole.is_some_and(|whole| removed.contains(&whole))
        };
        let Some(next) = parts.iter().find(is_new) else { break };
        removed.push(next.id);
    }
    let is_removed = |id: Option<Id<Part>>| id.is_some_and(|id| removed.contains(&id));
    if parts.iter().any(|part| is_removed(part.keeper) && !is_removed(Some(part.id))) {
        return false;
    }
    parts.retain(|part| !is_removed(Some(part.id)));
    labels.retain(|label| !is_removed(Some(label.part)));
    for part in parts {
        part.neighbor = part.neighbor.filter(|id| !is_removed(Some(*id)));
        part.spare = part.spare.filter(|id| !is_removed(Some(*id)));
    }
    true
}

/// Changes a few random rows, without a removal.
fn change_some(change: &mut Transaction, random: &mut Random) {
    let parts: Vec<Part> = change.all::<Part>().collect();
    let some = |random: &mut Random| {
        let place = random.below(parts.len() as u64 * 3 + 1) as usize;
        parts.get(place).map(|part| part.id)
    };
    match random.below(4) {
        0 => {
            if let Some(id) = some(random) {
                change.insert(Label { id: Id::unassigned(), part: id }).unwrap();
            }
        }
        1 if !parts.is_empty() => {
            let mut part = parts[random.below(parts.len() as u64) as usize].clone();
            // References to itself and in cycles are possible.
            (part.whole, part.neighbor) = (some(random), some(random));
            (part.spare, part.keeper) =
                (some(random), some(random).filter(|_| random.below(2) == 0));
            change.replace(&part).unwrap();
        }
        _ => {
            change.insert(Part { whole: some(random), ..part(random.below(100)) }).unwrap();
        }
    }
}

#[test]
fn removes_dependents_as_a_plain_vector_does() {
    let store = open();
    let mut random = Random(6);
    let (mut removed, mut rejected) = (0, 0);
    for _ in 0..2000 {
        let outcome = store.change(|change| {
            for _ in 0..random.below(6) {
                change_some(change, &mut random);
            }
            let mut expected = rows(change);
            let parts = &expected.0;
            let Some(part) = parts.get(random.below(parts.len().max(1) as u64) as usize) else {
                return Ok(None);
            };
            let id = part.id;
            let is_removed = remove_from(&mut expected, id);
            let outcome = change.remove(id);
            let refusal = Err(Error::StillReferenced { by: "part".into() });
            assert_eq!(outcome, if is_removed { Ok(true) } else { refusal });
            assert_eq!(rows(change), expected);
            Ok::<_, Error>(Some((is_removed, expected)))
        });
        let Some((is_removed, expected)) = outcome.wait().unwrap() else { continue };
        assert_eq!(rows(&store.read()), expected);
        *(if is_removed { &mut removed } else { &mut rejected }) += 1;
    }
    assert!(removed > 100 && rejected > 100, "{removed} {rejected}");
}

/// Each commit that changes the effect of a removal affects its reads, so that the two conflict.
#[test]
fn removals_read_all_that_they_depend_on() {
    let store = open();
    let (sender, receiver) = mpsc::channel();
    store.observe(move |changes| sender.send(Arc::clone(changes)).unwrap());
    let mut random = Random(7);
    for _ in 0..20 {
        store
            .change(|change| {
                change_some(change, &mut random);
                Ok::<_, Error>(())
            })
            .wait()
            .unwrap();
        let _ = receiver.try_recv();
    }
    // The rows that are removed or rewritten. A commit that only adds a row does not count.
    let attempt = |id: Id<Part>| {
        let before = rows(&store.read().without_tracking());
        let mut change = store.begin();
        let outcome = change.remove(id).is_ok();
        let reads = change.reads();
        let after = rows(&change);
        let lost: Vec<_> =
            before.0.iter().filter(|part| !after.0.contains(part)).map(|part| part.id).collect();
        let written: Vec<Part> =
            after.0.into_iter().filter(|part| !before.0.contains(part)).collect();
        let labels: Vec<_> =
            before.1.into_iter().filter(|label| !after.1.contains(label)).collect();
        ((outcome, lost, written, labels), reads)
    };
    let mut changed = 0;
    for _ in 0..400 {
        let now = store.read();
        let ids: Vec<Id<Part>> = now.all::<Part>().map(|part| part.id).collect();
        let before: Vec<_> = ids.iter().map(|id| attempt(*id)).collect();
        let mut change = store.begin();
        if random.below(3) == 0 && ids.len() > 12 {
            let _ = change.remove(ids[random.below(ids.len() as u64) as usize]);
        } else {
            change_some(&mut change, &mut random);
        }
        if !change.has_written() {
            continue;
        }
        store.commit(change).unwrap().wait().unwrap();
        let changes = receiver.recv().unwrap();
        for (id, (effect, reads)) in ids.iter().zip(before) {
            let is_changed = attempt(*id).0 != effect;
            assert!(!is_changed || reads.is_touched_by(&changes), "{effect:?}");
            changed += u64::from(is_changed);
        }
    }
    assert!(changed > 100, "{changed}");
}

#[test]
fn removes_a_cycle_at_once() {
    let store = open();
    let ids = store.change(|change| {
        let ids: Vec<Id<Part>> =
            (0..3).map(|number| change.insert(part(number))).collect::<Result<_, Error>>()?;
        for (place, id) in ids.iter().enumerate() {
            let next = ids[(place + 1) % ids.len()];
            change.update(*id, |part| (part.whole, part.keeper) = (Some(next), Some(next)))?;
        }
        Ok::<_, Error>(ids)
    });
    let ids = ids.wait().unwrap();
    assert_eq!(store.remove(ids[1]).wait(), Ok(true));
    assert_eq!(rows(&store.read()), (vec![], vec![]));
}

/// Many dependents are one commit, and a rejected removal of them changes nothing.
#[test]
fn removes_many_dependents_in_one_commit() {
    const MANY: u64 = 10_000;
    let store = open();
    let whole = store.insert(part(0)).wait().unwrap();
    let last = store.change(|change| {
        let mut last = whole;
        for number in 1..MANY {
            // A chain and a fan.
            let whole = if number % 2 == 0 { whole } else { last };
            last = change.insert(Part { whole: Some(whole), ..part(number) })?;
        }
        Ok::<_, Error>(last)
    });
    let last = last.wait().unwrap();
    let keeper = store.insert(Part { keeper: Some(last), ..part(MANY) }).wait().unwrap();
    let refused = Err(Error::StillReferenced { by: "part".into() });
    assert_eq!(store.remove(whole).wait(), refused);
    assert_eq!(store.read().count::<Part>() as u64, MANY + 1);
    store.update(keeper, |part: &mut Part| part.keeper = None).wait().unwrap();
    let before = store.read().sequence();
    assert_eq!(store.remove(whole).wait(), Ok(true));
    let now = store.read();
    assert_eq!((now.count::<Part>(), now.sequence()), (1, before + 1));
}

#[test]
fn rejects_a_required_column_that_would_become_null() {
    struct Tag(Label);

    impl Table for Tag {
        const NAME: &'static str = "tag";

        fn schema() -> Schema {
            let part = Column { on_remove: OnRemove::SetNone, ..Column::of::<Id<Part>>("part") };
            Schema { columns: vec![part], ..Schema::new(Self::NAME) }
        }

        fn id(&self) -> RowId {
            self.0.id()
        }

        fn set_id(&mut self, id: RowId) {
            self.0.set_id(id);
        }

        fn values<'r>(&'r self, to: &mut Vec<Value<'r>>) {
            self.0.values(to);
        }

        fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self> {
            Label::from_values(id, values).map(Self)
        }
    }

    let refused = Store::in_memory(Options::new().table::<Part>().table::<Tag>());
    let expected = "`tag.part` cannot become null when its row is removed: make it optional";
    assert_eq!(refused.err().as_deref(), Some(expected));
}
