//! Tests of tables without their row types.

use proptest::prelude::*;

use super::*;
use crate::reads::ReadSet;
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
fn finds_columns_by_their_names() {
    let store = store();
    let now = store.read();
    let table = now.table_named("tag").unwrap();
    let positions = ["word", "weight", "parent", "size"].map(|name| table.column(name));
    assert_eq!(positions, [Some(WORD), Some(WEIGHT), Some(PARENT), None]);
    assert!(now.table_named("tags").is_none());
}

#[test]
fn visits_the_first_rows_in_order() {
    let store = store();
    for weight in [3, 1, 2] {
        add(&store, &format!("w{weight}"), weight, None);
    }
    let now = store.read();
    let visited = |limit: Option<usize>| {
        let select = now.table_named("tag").unwrap().select();
        let select = select.order_by_column(WEIGHT, false);
        let select = match limit {
            Some(limit) => select.limit(limit),
            None => select,
        };
        let mut weights = Vec::new();
        assert!(select.visit(|_, values| weights.push(values[WEIGHT])).is_some());
        weights
    };
    let expected = [1, 2, 3].map(Value::Integer);
    assert_eq!(visited(None), expected);
    for limit in 0..=4 {
        assert_eq!(visited(Some(limit)), expected[..limit.min(3)], "{limit}");
    }
}

#[test]
fn visits_each_row_that_a_query_finds() {
    let store = store();
    for weight in [3, 1, 2] {
        add(&store, &format!("w{weight}"), weight, None);
    }
    let now = store.read();
    let visited = |select: Select<'_, Tag>| {
        let mut weights = Vec::new();
        select.for_each(|tag| weights.push(tag.weight));
        weights.sort_unstable();
        weights
    };
    assert_eq!(visited(now.select()), [1, 2, 3]);
    assert_eq!(visited(now.select().within(Tag::WEIGHT, 2..)), [2, 3]);
    assert_eq!(visited(now.select().order_by(Tag::WEIGHT).limit(2)), [1, 2]);
    assert_eq!(visited(now.select().filter(|tag: &Tag| tag.weight == 3)), [3]);
}

/// A client may use a cursor of all rows to ask for those with one value.
#[test]
fn page_has_only_the_wanted_rows_wherever_its_cursor_is() {
    let store = store();
    for (word, weight) in [("a", 1), ("b", 1), ("c", 2), ("d", 2), ("e", 3), ("f", 3)] {
        add(&store, word, weight, None);
    }
    let now = store.read();
    let table = now.table_named("tag").unwrap();
    let words = |page: &RowPage<RowView<'_>>| {
        let words = page.rows.iter().map(|row| match row.values()[WORD] {
            Value::Text(word) => word.to_owned(),
            other => panic!("{other:?}"),
        });
        words.collect::<String>()
    };
    for (is_descending, expected) in [(false, "cd"), (true, "dc")] {
        let order = TableOrder { index: Some(1), is_descending };
        let mut turn = Turn::First;
        let mut pages = 0;
        loop {
            let all = table.page(order, &[], &turn, 1).unwrap();
            let wanted = table.page(order, &[Value::Integer(2)], &turn, 2).unwrap();
            // Before the wanted rows, after them, or within them.
            let found = words(&wanted);
            assert!(expected.contains(&found) && !found.is_empty(), "{found}");
            pages += 1;
            let Some(next) = all.next else { break };
            turn = Turn::After(next);
        }
        assert_eq!(pages, 6);
    }
}

/// A cursor of a row at the edge of a table, whose neighbors were removed meanwhile.
#[test]
fn cursor_without_neighbors_leads_to_the_page_at_the_edge() {
    let (store, by_weight) = (store(), TableOrder { index: Some(1), is_descending: false });
    let ids: Vec<_> =
        (1..=5).map(|weight| add(&store, &format!("w{weight}"), weight, None)).collect();
    let weights = |rows: &[Tag]| rows.iter().map(|row| row.weight).collect::<Vec<_>>();
    let now = store.read();
    let of_row = now.select::<Tag>().order_by(Tag::WEIGHT);
    let after_fourth = of_row.page(&Turn::First, 4).unwrap().next.unwrap();
    let after_first = of_row.page(&Turn::First, 1).unwrap().next.unwrap();
    let before_second = of_row.page_after(&after_first, 1).unwrap().previous.unwrap();
    let of_view = now.table_named("tag").unwrap();
    let page = |turn: &Turn, limit| of_view.page(by_weight, &[], turn, limit).unwrap();
    let view_after_fourth = page(&Turn::First, 4).next.unwrap();
    let after = Turn::After(page(&Turn::First, 1).next.unwrap());
    let view_before_second = page(&after, 1).previous.unwrap();
    for gone in [ids[0], ids[4]] {
        assert!(store.change(|change| change.remove(gone)).wait().unwrap());
    }
    let now = store.read();
    let select = now.select::<Tag>().order_by(Tag::WEIGHT);
    let last = select.page_after(&after_fourth, 2).unwrap();
    assert_eq!((weights(&last.rows), last.previous.is_some(), last.next), (vec![3, 4], true, None));
    let first = select.page_before(&before_second, 2).unwrap();
    assert_eq!(
        (weights(&first.rows), first.previous, first.next.is_some()),
        (vec![2, 3], None, true)
    );
    let of_view = now.table_named("tag").unwrap();
    let page = |turn: Turn| {
        let page = of_view.page(by_weight, &[], &turn, 2).unwrap();
        let weights: Vec<_> = page.rows.iter().map(|row| row.values()[WEIGHT]).collect();
        (weights, page.previous.is_some(), page.next.is_some())
    };
    let number = |number: i128| Value::Integer(number);
    assert_eq!(page(Turn::After(view_after_fourth)), (vec![number(3), number(4)], true, false));
    assert_eq!(page(Turn::Before(view_before_second)), (vec![number(2), number(3)], false, true));
}

/// Only columns that the change makes unreadable are named.
#[test]
fn names_the_changed_column_that_the_row_type_cannot_hold() {
    let store = store();
    let id = add(&store, "one", 1, None).row();
    let refused = |changes: &[(usize, Value<'_>)]| {
        let change = store.change(|change| change.update_values("tag", id, changes));
        match change.wait().unwrap_err() {
            Error::InvalidValues(invalid) => {
                invalid.iter().map(|invalid| invalid.column.to_string()).collect::<Vec<_>>()
            }
            error => panic!("{error}"),
        }
    };
    assert_eq!(refused(&[(WORD, Value::Text("ONE"))]), ["word"]);
    assert_eq!(refused(&[(WEIGHT, Value::Integer(2)), (WORD, Value::Text("Two"))]), ["word"]);
    assert_eq!(change(&store, id, &[(WEIGHT, Value::Integer(2))]), "done");
    let values = [Value::Text("Two"), Value::Integer(1), Value::Null];
    let inserted = store.change(|change| change.insert_values("tag", &values)).wait();
    let Err(Error::InvalidValues(invalid)) = inserted else { panic!("{inserted:?}") };
    // Without a row so far, each column may be the reason.
    assert_eq!(invalid.len(), 3);
}

#[test]
fn repeats_a_read_of_the_same_rows_only() {
    let store = store();
    let one = add(&store, "one", 1, None);
    let visit = |now: &Snapshot| {
        now.table_named("tag").unwrap().select().limit(5).visit(|_, _| ()).expect("it is in order")
    };
    let repeats = |now: &Snapshot, read: &TableRead| now.table_named("tag").unwrap().repeat(read);
    let before = store.read();
    let read = visit(&before);
    let again = store.read();
    assert!(repeats(&again, &read));
    assert_eq!(again.reads(), before.reads());
    // A transaction sees its own change, which is taken back.
    let failed: Result<(), Error> = store
        .change(|change| {
            assert!(repeats(change, &read));
            change.update_values("tag", one.row(), &[(WEIGHT, Value::Integer(2))])?;
            assert!(!repeats(change, &read));
            Err(Error::Closed)
        })
        .wait();
    failed.unwrap_err();
    assert!(repeats(&store.read(), &read));
    // The same content after two changes is another version.
    for weight in [2, 1] {
        assert_eq!(change(&store, one.row(), &[(WEIGHT, Value::Integer(weight))]), "done");
        let now = store.read();
        assert!(!repeats(&now, &read));
        assert_eq!(now.reads(), ReadSet::default(), "a read that is not repeated is none");
    }
    assert!(repeats(&before, &read));
    let read = visit(&store.read());
    let other = Schema { columns: vec![Column::of::<u8>("n")], ..Schema::new("other") };
    store.declare(&[other]).unwrap().wait().unwrap();
    // Other tables may refer to this one now.
    assert!(!repeats(&store.read(), &read));
    let read = visit(&store.read());
    store.change(|change| change.insert_values("other", &[Value::Integer(1)])).wait().unwrap();
    assert!(repeats(&store.read(), &read), "another table has changed");
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

#[test]
fn inserts_and_updates_by_names_with_defaults() {
    let store = Store::in_memory(Options::new()).unwrap();
    let mut level = Column::new("level", Kind::Enum(vec!["low".into(), "high".into()].into()));
    level.default = Some(Constant::Text("high".into()));
    let mut at = Column::of::<crate::Time>("at");
    at.default = Some(Constant::Now);
    let mut title = Column::of::<String>("title");
    title.length = Some((1, 5));
    title.label = Some("The title".into());
    let note = Column { is_optional: true, ..Column::of::<String>("note") };
    let schema = Schema { columns: vec![title, level, at, note], ..Schema::new("item") };
    store.declare(&[schema]).unwrap().wait().unwrap();
    let before = crate::Time::now();
    let insert = |named: &[(&str, Value<'_>)]| {
        store.change(|change| change.insert_named("item", named)).wait()
    };
    let id = insert(&[("title", Value::Text("a"))]).unwrap();
    let change = [("note", Value::Text("n"))];
    store.change(|own| own.update_named("item", id, &change)).wait().unwrap();
    let now = store.read();
    let row = now.table_named("item").unwrap().row(id).unwrap();
    let [title, level, Value::Time(at), note] = row.values() else { panic!("{row:?}") };
    assert_eq!([title, level, note], [&Value::Text("a"), &Value::Enum(1), &Value::Text("n")]);
    assert!((before..=crate::Time::now()).contains(at));
    for (named, error) in [
        (&[][..], "The title must be given"),
        (&[("title", Value::Text(""))], "The title must have from 1 to 5 letters, not 0"),
        (&[("titel", Value::Text("a"))], "`titel` is not a column of the table"),
        (&[("title", Value::Text("a")), ("at", Value::Bool(true))], "`at` must be a moment"),
    ] {
        let found = insert(named).unwrap_err().to_string();
        assert!(found.starts_with(error), "{found}");
    }
    let update = store.change(|own| own.update_named("item", id, &[("x", Value::Null)])).wait();
    assert_eq!(update.unwrap_err().to_string(), "`x` is not a column of the table");
    let table = now.table_named("item").unwrap();
    assert!(table.select().equals_value(0, Value::Integer(1)).is_err());
    assert!(table.select().within_values(2, ..Value::Integer(1)).is_err());
}

/// A query of random conditions, for both kinds of access.
#[derive(Clone, Debug)]
struct Query {
    word: Option<String>,
    weight: Option<u8>,
    weights: Option<(u8, u8)>,
    /// The column of the order and whether it is descending.
    order: Option<(bool, bool)>,
    limit: Option<usize>,
}

fn query() -> impl Strategy<Value = Query> {
    let word = prop::option::weighted(0.2, "[a-c]{1,2}");
    let weight = prop::option::weighted(0.4, 0_u8..5);
    let weights = prop::option::weighted(0.4, (0_u8..5, 0_u8..6));
    let order = prop::option::of(any::<(bool, bool)>());
    let limit = prop::option::of(0_usize..6);
    (word, weight, weights, order, limit).prop_map(|(word, weight, weights, order, limit)| Query {
        word,
        weight,
        weights,
        order,
        limit,
    })
}

impl Query {
    /// The matching rows of a model, which is in the order of ids.
    fn expected(&self, model: &[Tag]) -> Vec<Tag> {
        let admits = |tag: &&Tag| {
            self.word.as_ref().is_none_or(|word| tag.word.0 == *word)
                && self.weight.is_none_or(|weight| tag.weight == weight)
                && self.weights.is_none_or(|(from, to)| (from..to).contains(&tag.weight))
        };
        let mut found: Vec<Tag> = model.iter().filter(admits).cloned().collect();
        match self.order {
            Some((true, _)) => found.sort_by(|one, other| one.word.0.cmp(&other.word.0)),
            Some((false, _)) => found.sort_by_key(|tag| tag.weight),
            None => {}
        }
        if self.order.is_some_and(|(_, is_descending)| is_descending) {
            found.reverse();
        }
        found.truncate(self.limit.unwrap_or(usize::MAX));
        found
    }

    fn typed<'s>(&self, now: &'s Snapshot) -> Select<'s, Tag> {
        let word = ColumnOf::<Tag, Word>::position(WORD);
        let mut select = now.select::<Tag>();
        if let Some(own) = &self.word {
            select = select.equals(word, Word(own.clone()));
        }
        if let Some(weight) = self.weight {
            select = select.equals(Tag::WEIGHT, weight);
        }
        if let Some((from, to)) = self.weights {
            select = select.within(Tag::WEIGHT, from..to);
        }
        select = match self.order {
            Some((true, true)) => select.order_by(word.descending()),
            Some((true, false)) => select.order_by(word.ascending()),
            Some((false, true)) => select.order_by(Tag::WEIGHT.descending()),
            Some((false, false)) => select.order_by(Tag::WEIGHT.ascending()),
            None => select,
        };
        match self.limit {
            Some(limit) => select.limit(limit),
            None => select,
        }
    }

    fn untyped<'s>(&self, now: &'s Snapshot) -> Select<'s, RowView<'s>> {
        let mut select = now.table_named("tag").unwrap().select();
        if let Some(word) = &self.word {
            select = select.equals_value(WORD, Value::Text(word)).unwrap();
        }
        if let Some(weight) = self.weight {
            select = select.equals_value(WEIGHT, weight.value()).unwrap();
        }
        if let Some((from, to)) = self.weights {
            select = select.within_values(WEIGHT, from.value()..to.value()).unwrap();
        }
        if let Some((is_word, is_descending)) = self.order {
            let column = if is_word { WORD } else { WEIGHT };
            select = select.order_by_column(column, is_descending);
        }
        match self.limit {
            Some(limit) => select.limit(limit),
            None => select,
        }
    }
}

proptest! {
    /// Rows are written through one kind of access and found through both, as a plain list has
    /// them, and both record the same reads.
    #[test]
    fn finds_and_records_as_typed_queries_do(
        rows in prop::collection::vec(("[a-c]{1,2}", 0_u8..5, any::<bool>()), 0..16),
        queries in prop::collection::vec(query(), 1..8),
    ) {
        let store = store();
        let mut model: Vec<Tag> = Vec::new();
        for (word, weight, is_typed) in rows {
            let is_taken = model.iter().any(|tag| tag.word.0 == word);
            let mut tag = Tag { id: Id::unassigned(), word: Word(word), weight, parent: None };
            let outcome = if is_typed {
                store.insert(tag.clone()).wait()
            } else {
                let named = [("weight", tag.weight.value()), ("word", tag.word.value())];
                let insert = store.change(|change| change.insert_named("tag", &named));
                insert.wait().map(Id::of)
            };
            prop_assert_eq!(outcome.is_err(), is_taken);
            if let Ok(id) = outcome {
                tag.id = id;
                model.push(tag);
            }
        }
        for query in queries {
            let expected = query.expected(&model);
            let (typed, untyped) = (store.read(), store.read());
            prop_assert_eq!(&query.typed(&typed).rows(), &expected);
            let rows = query.untyped(&untyped).rows();
            let tags = rows.iter().map(|row| Tag::from_values(row.id, row.values()).unwrap());
            prop_assert_eq!(&tags.collect::<Vec<_>>(), &expected);
            prop_assert_eq!(typed.reads(), untyped.reads());
            let (typed, untyped) = (store.read(), store.read());
            prop_assert_eq!(query.typed(&typed).count(), expected.len());
            prop_assert_eq!(query.untyped(&untyped).count(), expected.len());
            prop_assert_eq!(typed.reads(), untyped.reads());
            let explained = query.untyped(&store.read()).explain();
            prop_assert_eq!(query.typed(&store.read()).explain(), explained);
        }
    }
}
