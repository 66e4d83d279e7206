//! Tests of tables without their row types.

use proptest::prelude::*;

use super::*;
use crate::{Column, ColumnOf, Field, Id, Index, InvalidValue, Options, Schema, Store, Table};

/// A word in lower case: a type that accepts fewer texts than its column.
#[derive(Clone, PartialEq, Debug)]
struct Word(String);

impl Field for Word {
    fn kind() -> Kind {
        Kind::Text
    }

    fn value(&self) -> Value<'_> {
        Value::Text(&self.0)
    }

    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Text(text) if text == text.to_lowercase() => Some(Self(text.to_owned())),
            _ => None,
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
struct Tag {
    id: Id<Tag>,
    word: Word,
    weight: u8,
    parent: Option<Id<Tag>>,
}

impl Tag {
    const WEIGHT: ColumnOf<Self, u8> = ColumnOf::position(1);
}

impl Table for Tag {
    const NAME: &'static str = "tag";

    fn schema() -> Schema {
        let mut word = Column::of::<Word>("word");
        word.length = Some((1, 8));
        let weight = Column::of::<u8>("weight");
        let mut parent = Column::of::<Option<u8>>("parent");
        parent.kind = Kind::Reference("tag".into());
        parent.on_remove = OnRemove::Cascade;
        Schema {
            columns: vec![word, weight, parent],
            indexes: vec![
                Index { columns: vec![0], is_unique: true },
                Index { columns: vec![1], is_unique: false },
                Index { columns: vec![1, 0], is_unique: false },
            ],
            ..Schema::new("tag")
        }
    }

    fn id(&self) -> RowId {
        self.id.row()
    }

    fn set_id(&mut self, id: RowId) {
        self.id = Id::of(id);
    }

    fn values<'r>(&'r self, to: &mut Vec<Value<'r>>) {
        let parent = self.parent.map_or(Value::Null, |parent| Value::Id(parent.row()));
        to.extend([self.word.value(), self.weight.value(), parent]);
    }

    fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self> {
        let [word, weight, parent] = values else { return None };
        let parent = match parent {
            Value::Id(id) => Some(Id::of(*id)),
            _ => None,
        };
        let (word, weight) = (Word::from_value(*word)?, u8::from_value(*weight)?);
        Some(Self { id: Id::of(id), word, weight, parent })
    }
}

const WORD: usize = 0;
const WEIGHT: usize = 1;
const PARENT: usize = 2;

fn store() -> Store {
    Store::in_memory(Options::new().table::<Tag>()).unwrap()
}

fn add(store: &Store, word: &str, weight: u8, parent: Option<Id<Tag>>) -> Id<Tag> {
    let word = Word(word.to_owned());
    store.insert(Tag { id: Id::unassigned(), word, weight, parent }).wait().unwrap()
}

/// Changes a row by named values, and returns the result as text.
fn change(store: &Store, id: RowId, changes: &[(usize, Value<'_>)]) -> String {
    let change = store.change(|change| change.update_values("tag", id, changes));
    match change.wait() {
        Ok(()) => "done".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn changes_rows_by_the_rules_of_their_table() {
    let store = store();
    let (one, two) = (add(&store, "one", 1, None), add(&store, "two", 2, None));
    let id = one.row();
    assert_eq!(change(&store, id, &[(WEIGHT, Value::Integer(7))]), "done");
    let row = store.read().get(one).unwrap();
    assert_eq!((row.word.0.as_str(), row.weight), ("one", 7));
    for (changes, error) in [
        ((WORD, Value::Text("two")), "`word` is taken already"),
        ((WORD, Value::Text("")), "`word` must have from 1 to 8 letters, not 0"),
        ((WORD, Value::Null), "`word` must be given"),
        ((WEIGHT, Value::Integer(256)), "`weight` must be a whole number from 0 to 255"),
        ((WEIGHT, Value::Text("7")), "`weight` must be a whole number from 0 to 255"),
    ] {
        assert_eq!(change(&store, id, &[changes]), error);
    }
    let missing = RowId::from_number(7);
    let error = format!("there is no row {missing} in `tag`");
    assert_eq!(change(&store, id, &[(PARENT, Value::Id(missing))]), error);
    assert_eq!(change(&store, missing, &[]), error);
    assert_eq!(change(&store, id, &[(PARENT, Value::Id(two.row()))]), "done");
    assert_eq!(store.read().get(one).unwrap().parent, Some(two));
}

/// A row that its type cannot hold would panic in the next read.
#[test]
fn rejects_values_that_the_row_type_cannot_hold() {
    let store = store();
    let id = add(&store, "one", 1, None).row();
    let loud = [(WORD, Value::Text("ONE")), (WEIGHT, Value::Integer(2))];
    let error = store.change(|change| change.update_values("tag", id, &loud)).wait().unwrap_err();
    let Error::InvalidValues(invalid) = error else { panic!("{error}") };
    let [InvalidValue { column, fault: ValueFault::Unreadable, .. }] = &invalid[..] else {
        panic!("{invalid:?}")
    };
    assert_eq!(column, "word");
    let values = [Value::Text("Two"), Value::Integer(1), Value::Null];
    let inserted = store.change(|change| change.insert_values("tag", &values)).wait();
    assert!(matches!(inserted, Err(Error::InvalidValues(_))));
    assert_eq!(store.read().all::<Tag>().count(), 1);
}

#[test]
fn inserts_and_removes_rows() {
    let store = store();
    let values = [Value::Text("one"), Value::Integer(1), Value::Null];
    let id = store.change(|change| change.insert_values("tag", &values)).wait().unwrap();
    let child = add(&store, "two", 2, Some(Id::of(id)));
    assert!(matches!(
        store.change(|change| change.insert_values("nothing", &values)).wait(),
        Err(Error::NoSuchRow { table, .. }) if table == "nothing"
    ));
    let removed = store.change(|change| -> Result<_, Error> {
        let is_removed = change.remove_row("tag", id)?;
        let written: Vec<_> = change
            .written_rows()
            .into_iter()
            .map(|(table, counts)| (table.to_owned(), counts))
            .collect();
        Ok((is_removed, written))
    });
    assert_eq!(removed.wait().unwrap(), (true, vec![("tag".to_owned(), [0, 2])]));
    assert!(store.read().get(child).is_none());
    assert!(!store.change(|change| change.remove_row("tag", id)).wait().unwrap());
}

#[test]
fn describes_tables_and_the_rows_that_refer_to_a_row() {
    let store = store();
    let one = add(&store, "one", 1, None);
    for word in ["a", "b", "c"] {
        add(&store, word, 2, Some(one));
    }
    let snapshot = store.read();
    let names: Vec<_> = snapshot.tables().map(|table| table.schema().name.clone()).collect();
    assert_eq!(names, ["tag"]);
    assert!(snapshot.table_named("other").is_none());
    let table = snapshot.table_named("tag").unwrap();
    assert_eq!((table.count(), table.rows(None, None).count()), (4, 4));
    let [referring] = &table.referring_columns().collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!((referring.column, referring.on_remove), (PARENT, OnRemove::Cascade));
    let values = [Value::Id(one.row())];
    let count = |most| referring.table.count_with(referring.index, &values, most);
    assert_eq!((count(100), count(2)), (3, 2));
    let row = table.row(one.row()).unwrap();
    assert_eq!(row.values(), [Value::Text("one"), Value::Integer(1), Value::Null]);
}

#[test]
fn estimates_memory_from_a_sample() {
    let store = store();
    for number in 0..600_u32 {
        add(&store, &format!("{number:08}"), 1, None);
    }
    let snapshot = store.read();
    let table = snapshot.table_named("tag").unwrap();
    let rows: usize = snapshot.state.tables[0].rows.iter().map(|(_, row)| row.len() + 16).sum();
    let estimated = table.estimated_bytes();
    // Four indexes of about 30 bytes for each row, one of them of the reference.
    assert!(estimated > rows + 600 * 4 * 16 && estimated < rows + 600 * 4 * 64, "{estimated}");
}

#[test]
fn rejects_cursors_of_another_order() {
    let store = store();
    (0..9).for_each(|number| {
        add(&store, &format!("w{number}"), number, None);
    });
    let snapshot = store.read();
    let table = snapshot.table_named("tag").unwrap();
    let by = |index| TableOrder { index, is_descending: false };
    let next = |index| table.page(by(index), &[], &Turn::First, 2).unwrap().next.unwrap();
    for (index, other) in [(None, Some(1)), (Some(1), None), (Some(1), Some(2))] {
        let page = table.page(by(index), &[], &Turn::After(next(other)), 2);
        assert_eq!(page, Err(CursorError::Invalid));
    }
}

proptest! {
    /// The pages of a table without its type are those of a query with it, in both directions.
    #[test]
    fn pages_equal_those_of_typed_queries(
        weights in prop::collection::vec(0_u8..4, 0..30),
        by_weight: bool, is_descending: bool, only in prop::option::of(0_u8..4), limit in 1_usize..6
    ) {
        let store = store();
        for (number, weight) in weights.iter().enumerate() {
            add(&store, &format!("w{number}"), *weight, None);
        }
        let snapshot = store.read();
        let table = snapshot.table_named("tag").unwrap();
        let mut query = snapshot.select::<Tag>();
        let only = only.filter(|_| by_weight);
        if let Some(weight) = only {
            query = query.equals(Tag::WEIGHT, weight);
        } else if by_weight {
            query = query.order_by(Tag::WEIGHT);
        }
        let query = if is_descending { query.rev() } else { query };
        let order = TableOrder { index: by_weight.then_some(1), is_descending };
        let only: Vec<Value<'_>> = only.iter().map(Field::value).collect();
        let expected: Vec<RowId> = query.rows().iter().map(Table::id).collect();
        let page = |turn: &Turn| {
            let page = table.page(order, &only, turn, limit).unwrap();
            let ids: Vec<RowId> = page.rows.iter().map(|row| row.id).collect();
            (ids, page.previous, page.next)
        };
        let (mut pages, mut turn) = (Vec::new(), Turn::First);
        loop {
            let (ids, previous, next) = page(&turn);
            prop_assert_eq!(previous.is_some(), !pages.is_empty());
            if let Some(previous) = previous {
                let before = page(&Turn::Before(previous)).0;
                prop_assert_eq!(Some(&before), pages.last());
            }
            pages.push(ids);
            match next {
                Some(next) => turn = Turn::After(next),
                None => break,
            }
        }
        prop_assert_eq!(pages.concat(), expected);
    }
}
