//! Tests of contents: histories on one machine, then on a node, then on one machine again.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use proptest::prelude::*;

use super::*;
use crate::commit::{Pending, Sync};
use crate::disk::SimulatedFolder;
use crate::error::Error;
use crate::extension::SnapshotBlocks;
use crate::options::Options;
use crate::replica::{Replica, ReplicaSnapshot};
use crate::schema::{Column, Constant, Index};
use crate::store::Store;
use crate::transaction::Transaction;
use crate::value::Kind;

/// An extension that keeps its records with their sequences.
#[derive(Default)]
struct KeptRecords(Mutex<Vec<(u64, Vec<u8>)>>);

impl KeptRecords {
    fn push(&self, sequence: u64, record: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((sequence, record.to_vec()));
    }

    fn all(&self) -> Vec<(u64, Vec<u8>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Extension for KeptRecords {
    fn load_block(&self, block: &[u8]) -> Result<(), String> {
        let (sequence, record) = block.split_first_chunk().ok_or("a block has a sequence")?;
        self.push(u64::from_be_bytes(*sequence), record);
        Ok(())
    }

    fn replay(&self, sequence: u64, record: &[u8]) -> Result<(), String> {
        self.push(sequence, record);
        Ok(())
    }

    fn finish_load(&self) -> Result<(), String> {
        Ok(())
    }

    fn snapshot(&self) -> SnapshotBlocks {
        let block =
            |(sequence, record): (u64, Vec<u8>)| [&sequence.to_be_bytes()[..], &record].concat();
        Box::new(self.all().into_iter().map(block))
    }
}

/// A step of a history.
#[derive(Clone, Debug)]
enum Action {
    /// Inserts a note with this name, which is unique, and a count.
    Insert(u8, i64),
    /// Changes the last column of a note, selected by a number.
    Update(usize, i64),
    Remove(usize),
    /// Inserts a row of a table that newer programs do not declare.
    Tag(Vec<u8>),
    /// Appends a record of the extension.
    Record(u8),
    /// Ends the program and starts the next version of it.
    Upgrade,
}

fn actions(most: usize) -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        6 => (0..24_u8, any::<i64>()).prop_map(|(name, count)| Action::Insert(name, count)),
        3 => (any::<usize>(), any::<i64>()).prop_map(|(row, count)| Action::Update(row, count)),
        3 => any::<usize>().prop_map(Action::Remove),
        2 => prop::collection::vec(any::<u8>(), 0..300).prop_map(Action::Tag),
        2 => any::<u8>().prop_map(Action::Record),
        1 => Just(Action::Upgrade),
    ];
    prop::collection::vec(action, 0..most)
}

/// The tables of a version of the program. Version 1 adds a column with an index, version 2 drops a
/// column and a table.
fn program(version: usize) -> Vec<Schema> {
    let mut note = Schema::new("note");
    note.columns.push(Column::of::<String>("name"));
    note.indexes.push(Index { columns: vec![0], is_unique: true });
    if version < 2 {
        note.columns.push(Column::of::<i64>("count"));
    } else {
        note.dropped.push("count".into());
    }
    if version > 0 {
        let mood = Column { default: Some(Constant::Integer(5)), ..Column::of::<i64>("mood") };
        note.columns.push(mood);
        note.indexes.push(Index { columns: vec![note.columns.len() - 1], is_unique: false });
    }
    let mut tag = Schema::new("tag");
    tag.columns.push(Column::new("bytes", Kind::Bytes));
    if version < 2 { vec![tag, note] } else { vec![note] }
}

/// The values of a row by the names of its columns.
type ExpectedRow = BTreeMap<&'static str, String>;

/// A program, its store, and the rows that the store must have.
struct History {
    version: usize,
    store: Store,
    records: Arc<KeptRecords>,
    /// The replica of a node, and the number of its last message that was delivered.
    node: Option<(Replica, u64)>,
    notes: BTreeMap<RowId, ExpectedRow>,
    tags: BTreeMap<RowId, Vec<u8>>,
    appended: Vec<u8>,
}

impl History {
    /// Starts the program on one machine.
    fn begin(folder: &SimulatedFolder) -> Self {
        let records = Arc::<KeptRecords>::default();
        let store = open(folder, &records);
        let mut own = Self {
            version: 0,
            store,
            records,
            node: None,
            notes: BTreeMap::new(),
            tags: BTreeMap::new(),
            appended: Vec::new(),
        };
        own.declare();
        own
    }

    /// Continues on a node that has this snapshot.
    fn join(&mut self, blocks: Vec<Vec<u8>>) {
        self.records = Arc::default();
        let extension: Arc<dyn Extension> = Arc::<KeptRecords>::clone(&self.records);
        let options = Options::new().extension(extension);
        let replica = Replica::from_snapshot(options, blocks.into_iter().map(Ok), || {}).unwrap();
        self.store = replica.store().clone();
        self.node = Some((replica, 0));
        self.declare();
    }

    fn declare(&mut self) {
        let declared =
            self.store.declare(&program(self.version)).map_err(|error| error.to_string());
        self.exchange();
        declared.unwrap().wait().unwrap();
    }

    /// Delivers the messages of the node to itself.
    fn exchange(&mut self) {
        let Some((node, sent)) = &mut self.node else { return };
        while let Some((number, message)) = node.unconfirmed_after(*sent) {
            node.deliver(node.position() + 1, &message).unwrap();
            *sent = number;
        }
    }

    fn commit(&mut self, transaction: Transaction) {
        let pending = self.store.commit(transaction).unwrap();
        self.settle(pending);
    }

    fn settle(&mut self, pending: Pending) {
        self.exchange();
        pending.wait().unwrap();
    }

    fn run(&mut self, actions: &[Action], folder: Option<&SimulatedFolder>) {
        for action in actions {
            match action {
                Action::Insert(name, count) => self.insert(*name, *count),
                Action::Update(row, count) => {
                    let Some(id) = self.nth(*row) else { continue };
                    let column = if self.version == 0 { "count" } else { "mood" };
                    let mut change = self.store.begin();
                    let value = Value::Integer(i128::from(*count));
                    change.update_named("note", id, &[(column, value)]).unwrap();
                    self.commit(change);
                    let expected = self.notes.get_mut(&id).unwrap();
                    expected.insert(column, format!("{value:?}"));
                }
                Action::Remove(row) => {
                    let Some(id) = self.nth(*row) else { continue };
                    let mut change = self.store.begin();
                    assert!(change.remove_row("note", id).unwrap());
                    self.commit(change);
                    self.notes.remove(&id);
                }
                Action::Tag(bytes) if self.version < 2 => {
                    let mut change = self.store.begin();
                    let id = change.insert_values("tag", &[Value::Bytes(bytes)]).unwrap();
                    self.commit(change);
                    self.tags.insert(id, bytes.clone());
                }
                Action::Tag(_) => {}
                Action::Record(record) => {
                    let (records, record) = (Arc::clone(&self.records), *record);
                    let then = move |sequence| records.push(sequence, &[record]);
                    let pending = self.store.append(&[record], Sync::Commit, then).unwrap();
                    self.settle(pending);
                    self.appended.push(record);
                }
                Action::Upgrade => self.upgrade(folder),
            }
        }
    }

    fn insert(&mut self, name: u8, count: i64) {
        let text = format!("note {name}");
        let number = Value::Integer(i128::from(count));
        let mut values = vec![("name", Value::Text(&text))];
        if self.version < 2 {
            values.push(("count", number));
        }
        let shown = format!("{:?}", Value::Text(&text));
        let mut change = self.store.begin();
        let inserted = change.insert_named("note", &values);
        if self.notes.values().any(|row| row["name"] == shown) {
            assert!(matches!(inserted, Err(Error::InvalidValues(_))), "{inserted:?}");
            return;
        }
        let id = inserted.unwrap();
        self.commit(change);
        let last = self.notes.keys().chain(self.tags.keys()).max();
        assert!(last.is_none_or(|last| *last < id), "a new id follows all others");
        let mut expected = ExpectedRow::from([("name", shown), ("mood", initial_mood())]);
        if self.version < 2 {
            expected.insert("count", format!("{number:?}"));
        }
        self.notes.insert(id, expected);
    }

    fn upgrade(&mut self, folder: Option<&SimulatedFolder>) {
        self.version = (self.version + 1).min(2);
        self.store.close();
        match (folder, self.node.take()) {
            (_, Some((node, _))) => {
                let snapshot = ReplicaSnapshot::first(&node.contents(), node.position());
                self.join(blocks(snapshot));
            }
            (Some(folder), None) => {
                self.records = Arc::default();
                self.store = open(folder, &self.records);
                self.declare();
            }
            (None, None) => panic!("the program has a folder or is a node"),
        }
        if self.version == 2 {
            self.notes.values_mut().for_each(|row| drop(row.remove("count")));
        }
    }

    fn nth(&self, number: usize) -> Option<RowId> {
        self.notes.keys().nth(number % self.notes.len().max(1)).copied()
    }

    /// Compares the store with the rows and records that it must have.
    fn check(&self) {
        let read = self.store.read();
        let table = read.table_named("note").unwrap();
        let names: Vec<_> = table.schema().columns.iter().map(|one| one.name.clone()).collect();
        let rows = table.select().rows();
        let found: Vec<(RowId, Vec<String>)> = rows
            .iter()
            .map(|row| (row.id, row.values().iter().map(|value| format!("{value:?}")).collect()))
            .collect();
        let shown = |row: &ExpectedRow| names.iter().map(|name| row[&**name].clone()).collect();
        let expected: Vec<(RowId, Vec<String>)> =
            self.notes.iter().map(|(id, row)| (*id, shown(row))).collect();
        assert_eq!(found, expected);
        if let Some(tags) = read.table_named("tag") {
            let rows = tags.select().rows();
            let found = rows.iter().map(|row| (row.id, row.values().to_vec()));
            let expected = self.tags.iter().map(|(id, tag)| (*id, vec![Value::Bytes(tag)]));
            assert!(found.eq(expected));
        }
        let records = self.records.all();
        assert!(records.is_sorted_by(|one, next| one.0 < next.0), "{records:?}");
        let appended: Vec<u8> = records.iter().map(|(_, record)| record[0]).collect();
        assert_eq!(appended, self.appended);
    }
}

fn initial_mood() -> String {
    format!("{:?}", Value::Integer(5))
}

fn open(folder: &SimulatedFolder, records: &Arc<KeptRecords>) -> Store {
    let extension: Arc<dyn Extension> = Arc::<KeptRecords>::clone(records);
    let options = Options::new().segment(4096).extension(extension);
    Store::in_folder(Arc::new(folder.clone()), options, &mut |_, _| {}).unwrap()
}

fn disk() -> SimulatedFolder {
    SimulatedFolder::new(1, 1 << 30)
}

fn read(folder: &SimulatedFolder) -> StoreContents {
    let extension = Arc::<KeptRecords>::default();
    StoreContents::read(folder, Some(extension), &mut |_, _| {}).unwrap()
}

fn write(contents: &StoreContents, folder: &SimulatedFolder) -> Result<u64, journal::Error> {
    let mut reported = 0;
    let mut progress = |bytes| {
        assert!(bytes > reported);
        reported = bytes;
    };
    let options = journal::Options { segment: 4096 };
    let written = contents.write(Arc::new(folder.clone()), options, &mut progress);
    assert!(written.is_err() || reported > contents.size().bytes);
    written
}

fn blocks(snapshot: ReplicaSnapshot) -> Vec<Vec<u8>> {
    let mut blocks = Vec::new();
    let mut put = |block: &[u8]| {
        blocks.push(block.to_vec());
        Ok(())
    };
    snapshot.write(&mut put).unwrap();
    blocks
}

/// The names of all files but the lock, with their bytes.
fn files(folder: &SimulatedFolder) -> BTreeMap<String, Option<Vec<u8>>> {
    let names = folder.list().unwrap().into_iter().filter(|name| name != "lock");
    names.map(|name| (name.clone(), folder.content(&name))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn histories_continue_on_a_node_and_on_one_machine_again(
        local in actions(40), shared in actions(40), last in actions(20)
    ) {
        let first = disk();
        let mut history = History::begin(&first);
        history.run(&local, Some(&first));
        history.check();
        history.store.close();
        let before = files(&first);
        let contents = read(&first);
        prop_assert_eq!(&files(&first), &before);

        history.join(blocks(ReplicaSnapshot::first(&contents, 7)));
        let (node, _) = history.node.as_ref().unwrap();
        prop_assert_eq!(node.position(), 7);
        let copy = node.contents();
        prop_assert_eq!(contents.difference(&copy), None);
        prop_assert_eq!((copy.sequence(), copy.size()), (contents.sequence(), contents.size()));
        history.check();
        history.run(&shared, None);
        history.check();

        let contents = history.node.take().unwrap().0.contents();
        let second = disk();
        let written = write(&contents, &second).unwrap();
        let copy = read(&second);
        prop_assert_eq!(contents.difference(&copy), None);
        prop_assert_eq!((copy.sequence(), written), (written, contents.sequence() + 1));
        prop_assert_eq!(contents.size(), copy.size());
        drop(copy);

        history.records = Arc::default();
        history.store = open(&second, &history.records);
        history.declare();
        history.check();
        history.run(&last, Some(&second));
        history.check();
    }
}

/// A table of two columns with rows, in a folder.
fn sample() -> (SimulatedFolder, History) {
    let folder = disk();
    let mut history = History::begin(&folder);
    let insert = |name| Action::Insert(name, i64::from(name));
    let actions: Vec<_> = (0..9).map(insert).chain([Action::Record(1)]).collect();
    history.run(&actions, Some(&folder));
    history.store.close();
    (folder, history)
}

#[test]
fn either_of_two_files_leads_to_contents_that_were_written() {
    let (folder, mut history) = sample();
    let contents = read(&folder);
    let copy = disk();
    write(&contents, &copy).unwrap();
    let snapshots = |copy: &SimulatedFolder| {
        let names = copy.list().unwrap().into_iter();
        let mut names: Vec<_> = names.filter(|name| name.starts_with("snapshot-")).collect();
        names.sort();
        names
    };
    assert_eq!(snapshots(&copy).len(), 2);
    for place in [0, 1] {
        let copy = disk();
        write(&contents, &copy).unwrap();
        let name = snapshots(&copy)[place].clone();
        let mut bytes = copy.content(&name).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        copy.put(&name, &bytes);
        history.records = Arc::default();
        history.store = open(&copy, &history.records);
        history.declare();
        history.check();
        history.store.close();
    }
}

#[test]
fn finds_each_kind_of_difference() {
    let (folder, _) = sample();
    let contents = || {
        let contents = read(&folder);
        StoreContents { _folder: None, ..contents }
    };
    let (one, mut other) = (contents(), contents());
    assert_eq!(one.difference(&other), None);
    let note = other.stored.iter().position(|table| table.name == "note").unwrap();
    let (id, row) = one.rows[note].iter().nth(4).unwrap();
    let row_differs = || Some(Difference::Row { table: "note".to_owned(), id });
    other.rows[note].remove(id);
    assert_eq!((one.difference(&other), other.difference(&one)), (row_differs(), row_differs()));
    let mut changed = row.to_vec();
    *changed.last_mut().unwrap() ^= 1;
    other.rows[note].insert(id, &changed);
    assert_eq!(one.difference(&other), row_differs());
    other.rows[note].insert(id, row);
    assert_eq!(one.difference(&other), None);
    other.stored[note].columns[0].is_optional ^= true;
    assert_eq!(one.difference(&other), Some(Difference::Definitions));
    let other = StoreContents { extension: Extensions::default(), ..contents() };
    assert_eq!(one.difference(&other), Some(Difference::Extension));
    let last = one.rows[note].iter().next_back().unwrap().0;
    let mut longer = contents();
    longer.rows[note].insert(RowId::from_number(last.number() + 1), row);
    let difference = one.difference(&longer).unwrap().to_string();
    assert!(difference.contains("of `note` differs"), "{difference}");
}

#[test]
fn inserts_rows_into_new_and_existing_tables() {
    let (folder, _) = sample();
    let mut contents = StoreContents { _folder: None, ..read(&folder) };
    let before = contents.size();
    let mut key = Schema::new("key");
    key.columns.push(Column { is_private: true, ..Column::of::<String>("line") });
    assert_eq!(contents.texts("key", "line"), Vec::<String>::new());
    for line in ["one", "two"] {
        contents.insert(&key, &[&[Value::Text(line)]]).unwrap();
    }
    assert_eq!(contents.texts("key", "line"), ["one", "two"]);
    assert_eq!(contents.texts("key", "text"), Vec::<String>::new());
    let after = contents.size();
    assert_eq!((after.tables, after.rows), (before.tables + 1, before.rows + 2));
    key.columns[0] = Column::of::<i64>("line");
    assert!(contents.insert(&key, &[&[Value::Integer(1)]]).is_err());
    // A program that declares the same table finds the rows.
    let replica = Replica::from_snapshot(
        Options::new().extension(Arc::<KeptRecords>::default()),
        blocks(ReplicaSnapshot::first(&contents, 1)).into_iter().map(Ok),
        || {},
    )
    .unwrap();
    key.columns[0] = Column { is_private: true, ..Column::of::<String>("line") };
    replica.store().declare(&[key]).unwrap().wait().unwrap();
    assert_eq!(replica.unconfirmed_after(0), None);
    assert_eq!(replica.store().read().table_named("key").unwrap().count(), 2);
}

#[test]
fn reservation_stops_nodes_without_the_snapshot() {
    let replica = Replica::new(Options::new(), || {}).unwrap();
    let refused = replica.deliver(1, Replica::RESERVATION).unwrap_err();
    assert!(refused.contains("start the node again after `bine data move`"), "{refused}");
}

#[test]
fn writes_only_into_a_new_folder() {
    let (folder, _) = sample();
    let contents = StoreContents { _folder: None, ..read(&folder) };
    let refused = write(&contents, &folder).unwrap_err().to_string();
    assert!(refused.contains("has data already: choose another folder"), "{refused}");
}

#[test]
fn reads_only_an_intact_folder_that_no_program_uses() {
    let (folder, _) = sample();
    let locked = read(&folder);
    let error = |folder: &SimulatedFolder| {
        let extension = Arc::<KeptRecords>::default();
        StoreContents::read(folder, Some(extension), &mut |_, _| {}).unwrap_err()
    };
    assert!(error(&folder.process()).contains("stop it"), "{}", error(&folder.process()));
    drop(locked);
    let without = StoreContents::read(&folder, None, &mut |_, _| {}).unwrap_err();
    assert!(without.contains("data of an extension"), "{without}");
    let copy = disk();
    write(&StoreContents { _folder: None, ..read(&folder) }, &copy).unwrap();
    let names = copy.list().unwrap();
    let newest = names.iter().filter(|name| name.starts_with("snapshot-")).max().unwrap();
    let mut bytes = copy.content(newest).unwrap();
    bytes[100] ^= 1;
    copy.put(newest, &bytes);
    let before = files(&copy);
    assert!(error(&copy).contains("`bine data repair`"), "{}", error(&copy));
    assert_eq!(files(&copy), before);
}
