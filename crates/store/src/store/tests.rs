//! Tests of tables through the public interface.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::declaration::DeclaredTable;
use crate::disk::SimulatedFolder;
use crate::state::Write;
use crate::{Column, Field, Id, Index, IndexOf, Recorder, RowId, Schema, Table, Value};

#[derive(Clone, PartialEq, Debug)]
struct User {
    id: Id<User>,
    name: String,
    age: Option<u8>,
}

impl User {
    const NAME: IndexOf<Self, (String,)> = IndexOf::position(0);
    const AGE: IndexOf<Self, (Option<u8>, String)> = IndexOf::position(1);

    fn new(name: &str, age: Option<u8>) -> Self {
        Self { id: Id::unassigned(), name: name.to_owned(), age }
    }
}

impl Table for User {
    const NAME: &'static str = "user";

    fn schema() -> Schema {
        let mut age = Column::new("age", u8::kind());
        age.is_optional = true;
        let mut name = Column::new("name", String::kind());
        name.length = Some((1, 20));
        Schema {
            columns: vec![name, age],
            indexes: vec![
                Index { columns: vec![0], is_unique: true },
                Index { columns: vec![1, 0], is_unique: false },
            ],
            ..Schema::new("user")
        }
    }

    fn id(&self) -> RowId {
        self.id.row()
    }

    fn set_id(&mut self, id: RowId) {
        self.id = Id::of(id);
    }

    fn values<'r>(&'r self, to: &mut Vec<Value<'r>>) {
        to.extend([self.name.value(), self.age.value()]);
    }

    fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self> {
        let [name, age] = values else { return None };
        Some(Self {
            id: Id::of(id),
            name: Field::from_value(*name)?,
            age: Field::from_value(*age)?,
        })
    }
}

fn store() -> Store {
    Store::in_memory(Options::new().table::<User>()).unwrap()
}

fn names(rows: impl IntoIterator<Item = User>) -> Vec<String> {
    rows.into_iter().map(|user| user.name).collect()
}

fn add(store: &Store, name: &str, age: Option<u8>) -> Id<User> {
    store.change(|change| change.insert(User::new(name, age))).wait().unwrap()
}

#[test]
fn finds_rows_by_id_index_and_age() {
    let store = store();
    let ids = [("carl", Some(30)), ("anna", None), ("ben", Some(30)), ("dora", Some(8))]
        .map(|(name, age)| add(&store, name, age));
    let now = store.read();
    assert_eq!(now.get(ids[1]).unwrap().name, "anna");
    assert_eq!(now.one(User::NAME, "ben").unwrap().id, ids[2]);
    assert_eq!(now.one(User::NAME, "be"), None);
    assert_eq!(names(now.find(User::AGE, (Some(30),))), ["ben", "carl"]);
    assert_eq!(names(now.find(User::AGE, (None,))), ["anna"]);
    assert_eq!(names(now.find(User::AGE, (Some(30), "carl"))), ["carl"]);
    assert_eq!(names(now.range(User::AGE, (Some(9),)..)), ["ben", "carl"]);
    assert_eq!(
        names(now.range(User::AGE, (Some(8),)..=(Some(30),)).rev()),
        ["carl", "ben", "dora"]
    );
    assert_eq!(names(now.range(User::NAME, "b".."d")), ["ben", "carl"]);
    assert_eq!(names(now.range(User::NAME, "d".."b")), [""; 0]);
    assert_eq!(names(now.newest(2)), ["dora", "ben"]);
    assert_eq!(names(now.all()), ["carl", "anna", "ben", "dora"]);
    assert_eq!(now.count::<User>(), 4);
}

#[test]
fn snapshot_does_not_change() {
    let store = store();
    let anna = add(&store, "anna", None);
    let before = store.read();
    store
        .change(|change| change.update(anna, |user: &mut User| user.age = Some(9)))
        .wait()
        .unwrap();
    store.change(|change| change.insert(User::new("ben", None))).wait().unwrap();
    assert_eq!(before.get(anna).unwrap().age, None);
    assert_eq!(before.count::<User>(), 1);
    assert_eq!(store.read().get(anna).unwrap().age, Some(9));
    assert_eq!(names(store.read().find(User::AGE, (Some(9),))), ["anna"]);
    assert_eq!(names(store.read().find(User::AGE, (None,))), ["ben"]);
}

#[test]
fn isolates_uncommitted_writes() {
    let store = store();
    let mut change = store.begin();
    let id = change.insert(User::new("anna", Some(1))).unwrap();
    assert_eq!(names(change.find(User::AGE, (Some(1),))), ["anna"]);
    let other = change.insert(User::new("ben", Some(1))).unwrap();
    assert_eq!(names(change.find(User::AGE, (Some(1),))), ["anna", "ben"]);
    assert_eq!(change.remove(other), Ok(true));
    assert_eq!(names(change.find(User::AGE, (Some(1),))), ["anna"]);
    assert_eq!(store.read().get(id), None);
    assert_eq!(store.commit(change).unwrap().wait(), Ok(2));
    assert_eq!(store.read().get(id).unwrap().name, "anna");
    let mut change = store.begin();
    assert_eq!(change.remove(id), Ok(true));
    assert_eq!(change.remove(id), Ok(false));
    assert_eq!(change.count::<User>(), 0);
    drop(change);
    assert_eq!(store.read().count::<User>(), 1);
}

#[test]
fn reports_invalid_values_without_a_change() {
    let store = store();
    let anna = add(&store, "anna", None);
    let messages = |change: &dyn Fn(&mut Transaction) -> Result<(), Error>| {
        store.change(|transaction| change(transaction)).wait().unwrap_err().to_string()
    };
    assert_eq!(
        messages(&|change| change.insert(User::new("anna", None)).map(drop)),
        "`name` is taken already"
    );
    assert_eq!(
        messages(&|change| change.update(anna, |user: &mut User| user.name.clear())),
        "`name` must have from 1 to 20 letters, not 0"
    );
    let nobody: Id<User> = Id::of(RowId::from_number(7));
    assert!(messages(&|change| change.update(nobody, |_| ())).contains("there is no row 0000"));
    assert_eq!(names(store.read().all()), ["anna"]);
    // Its own name is not a duplicate.
    store
        .change(|change| change.update(anna, |user: &mut User| user.age = Some(1)))
        .wait()
        .unwrap();
}

#[test]
fn retries_conflicting_changes_except_change_once() {
    let store = store();
    let anna = add(&store, "anna", Some(0));
    let other = store.clone();
    let mut runs = 0;
    let grow = |change: &mut Transaction| {
        change.update(anna, |user: &mut User| user.age = user.age.map(|age| age + 1))
    };
    store
        .change(|change| {
            grow(change)?;
            runs += 1;
            if runs == 1 {
                other.change(grow).wait()?;
            }
            Ok::<_, Error>(())
        })
        .wait()
        .unwrap();
    assert_eq!((runs, store.read().get(anna).unwrap().age), (2, Some(2)));
    let outcome = store
        .change_once(|change| {
            grow(change)?;
            other.change(grow).wait()
        })
        .wait();
    assert_eq!((outcome, store.read().get(anna).unwrap().age), (Err(Error::Conflict), Some(3)));
    let outcome = store
        .change(|change| {
            grow(change)?;
            other.change(grow).wait()
        })
        .wait();
    assert_eq!((outcome, store.read().get(anna).unwrap().age), (Err(Error::Conflict), Some(7)));
}

/// Stages a commit that nobody waits for, so that it is not written yet.
fn stage_age(store: &Store, id: Id<User>, age: u8) -> Pending {
    let mut change = store.begin();
    change.update(id, |user: &mut User| user.age = Some(age)).unwrap();
    store.commit(change).unwrap()
}

#[test]
fn change_follows_staged_commits_without_a_conflict() {
    let store = store();
    let [anna, ben] = ["anna", "ben"].map(|name| add(&store, name, Some(0)));
    let _staged = [stage_age(&store, anna, 5), stage_age(&store, ben, 6)];
    let age = |now: &Snapshot, id| now.get::<User>(id).unwrap().age;
    assert_eq!(age(&store.read(), anna), Some(0), "it is staged only");
    let mut runs = 0;
    let change = store.change_once(|change| {
        runs += 1;
        for id in [anna, ben, anna] {
            // This read applies the writes before it.
            let sum = age(change, anna).unwrap() + age(change, ben).unwrap();
            change.update(id, |user: &mut User| user.age = Some(sum))?;
        }
        Ok::<_, Error>(())
    });
    change.wait().unwrap();
    assert_eq!((runs, store.stats().conflicts), (1, 0));
    // 5 + 6, then 11 + 6, then 11 + 17.
    assert_eq!([anna, ben].map(|id| age(&store.read(), id)), [Some(28), Some(17)]);
}

#[test]
fn awaited_change_follows_staged_commits_too() {
    let store = store();
    let anna = add(&store, "anna", Some(0));
    let _staged = stage_age(&store, anna, 5);
    let change = store.change_once(|change| {
        change.update(anna, |user: &mut User| user.age = user.age.map(|age| age + 1))
    });
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(pin!(change).poll(&mut context), Poll::Ready(Ok(())));
    assert_eq!((store.read().get(anna).unwrap().age, store.stats().conflicts), (Some(6), 0));
}

/// A caller may return what it has read besides rows: it must be durable too.
#[test]
fn change_waits_for_reads_that_are_not_recorded_and_for_definitions() {
    let store = store();
    let anna = add(&store, "anna", Some(0));
    let age = || store.read().get(anna).unwrap().age;
    let looks: [fn(&Transaction); 2] =
        [|change| drop(change.untracked()), |change| assert!(change.sequence() > 0)];
    for (look, staged) in looks.into_iter().zip(5..) {
        let _staged = stage_age(&store, anna, staged);
        assert_ne!(age(), Some(staged));
        let change = store.change(|change| {
            look(change);
            Ok::<_, Error>(())
        });
        change.wait().unwrap();
        assert_eq!(age(), Some(staged));
    }
    let _staged = store.declare(&[Schema::new("note")]).unwrap();
    assert!(store.read().table_named("note").is_none());
    let is_known = store.change(|change| Ok::<_, Error>(change.table_named("note").is_some()));
    assert_eq!(is_known.wait(), Ok(true));
    assert!(store.read().table_named("note").is_some());
}

#[test]
fn change_without_writes_waits_for_what_it_read_alone() {
    let store = store();
    let [anna, ben] = ["anna", "ben"].map(|name| add(&store, name, Some(0)));
    let age = |now: &Snapshot, id| now.get::<User>(id).unwrap().age;
    let _staged = stage_age(&store, anna, 5);
    let read = |id| store.change(|change| Ok::<_, Error>(age(change, id))).wait();
    assert_eq!(read(ben), Ok(Some(0)));
    assert_eq!(age(&store.read(), anna), Some(0), "nothing has waited for it");
    let failed = store.change(|change| match age(change, ben) {
        Some(0) => Err::<(), _>(Error::Busy),
        _ => Ok(()),
    });
    assert_eq!(failed.wait(), Err(Error::Busy));
    assert_eq!(age(&store.read(), anna), Some(0), "nothing has waited for it");
    assert_eq!(read(anna), Ok(Some(5)));
    assert_eq!(age(&store.read(), anna), Some(5), "the reader has waited");
    let _staged = stage_age(&store, anna, 6);
    let failed = store.change(|change| match age(change, anna) {
        Some(6) => Err::<(), _>(Error::Busy),
        _ => Ok(()),
    });
    assert_eq!(failed.wait(), Err(Error::Busy));
    assert_eq!(age(&store.read(), anna), Some(6), "the failed change has waited");
}

#[test]
fn recorder_notes_the_reads_of_a_change() {
    let store = store();
    let anna = add(&store, "anna", None);
    let recorder = Recorder::default();
    let change = store.with_recorder(&recorder).change(|change| {
        assert!(change.get(anna).is_some());
        Ok::<_, Error>(())
    });
    change.wait().unwrap();
    assert_eq!(recorder.count(), 1);
}

#[test]
fn runs_after_commit_actions_only_after_a_commit() {
    let store = store();
    let (other, failing) = (store.clone(), store.clone());
    store
        .change(|change| {
            let other = other.clone();
            change.after_commit(move || {
                add(&other, "ben", None);
            });
            change.insert(User::new("anna", None))
        })
        .wait()
        .unwrap();
    assert_eq!(names(store.read().all()), ["anna", "ben"]);
    let outcome = store
        .change(|change| {
            let failing = failing.clone();
            change.after_commit(move || {
                add(&failing, "carl", None);
            });
            change.insert(User::new("anna", None))
        })
        .wait();
    assert!(outcome.is_err());
    assert_eq!(store.read().count::<User>(), 2);
}

#[test]
fn after_commit_action_may_drop_the_last_handle() {
    let store = store();
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut change = store.begin();
    change.insert(User::new("anna", None)).unwrap();
    let last = store.clone();
    change.after_commit(move || {
        drop(last);
        sender.send(()).unwrap();
    });
    let pending = store.commit(change).unwrap();
    drop(store);
    // Only the store's own thread can write the commit now.
    drop(pending);
    assert_eq!(receiver.recv(), Ok(()));
}

#[test]
fn in_memory_change_commits_on_poll_and_runs_actions_elsewhere() {
    let store = store();
    let (sender, receiver) = std::sync::mpsc::channel();
    store.observe(move |_| sender.send(thread::current().id()).unwrap());
    let (action_sender, action_receiver) = std::sync::mpsc::channel();
    let change = store.change(|change| {
        let action_sender = action_sender.clone();
        change.after_commit(move || action_sender.send(thread::current().id()).unwrap());
        change.insert(User::new("anna", None))
    });
    let mut task = Context::from_waker(Waker::noop());
    let polled = pin!(change).poll(&mut task);
    assert!(matches!(polled, Poll::Ready(Ok(_))));
    assert_eq!(receiver.recv(), Ok(thread::current().id()));
    assert!(action_receiver.recv().is_ok_and(|thread| thread != thread::current().id()));
}

#[test]
fn acknowledges_commits_despite_a_panicking_observer() {
    let store = store();
    store.observe(|changes| assert_eq!(changes.sequence, 0, "as this test wants it"));
    add(&store, "anna", None);
    add(&store, "ben", None);
    assert_eq!(store.read().count::<User>(), 2);
}

type ReadAction = fn(&Snapshot);

impl Snapshot {
    /// The id of the oldest row, read without a record of the read.
    fn first_untracked(&self) -> Id<User> {
        Id::of(self.state.tables[0].rows.iter().next().unwrap().0)
    }
}

#[test]
fn lists_changed_rows_up_to_a_limit() {
    let store = store();
    let (sender, receiver) = std::sync::mpsc::channel();
    let ids = ["anna", "ben"].map(|name| add(&store, name, None));
    store.observe(move |changes| sender.send(Changes::clone(changes)).unwrap());
    let commit = |change: &dyn Fn(&mut Transaction) -> Result<(), Error>| {
        store.change(|transaction| change(transaction)).wait().unwrap();
        receiver.recv().unwrap()
    };
    let changes = commit(&|change| {
        assert!(change.remove(ids[1])?);
        change.update(ids[0], |user: &mut User| user.age = Some(1))
    });
    let now = store.read();
    assert_eq!(now.changed::<User>(&changes), Some(&ids.map(Id::row)[..]));
    assert!(now.reads().is_empty());
    let changes = commit(&|change| {
        (0..5000).try_for_each(|n| change.insert(User::new(&format!("{n}"), None)).map(drop))
    });
    assert_eq!(store.read().changed::<User>(&changes), None);
}

#[test]
fn read_set_detects_changes_that_matter() {
    let store = store();
    let ids =
        [("anna", 1), ("ben", 2), ("carl", 3)].map(|(name, age)| add(&store, name, Some(age)));
    let (sender, receiver) = std::sync::mpsc::channel();
    store.observe(move |changes| sender.send(Changes::clone(changes)).unwrap());
    let views: [(&str, ReadAction); 7] = [
        ("row", |now| drop(now.get(now.first_untracked()))),
        ("newest", |now| drop(now.newest::<User>(2))),
        ("few", |now| drop(now.newest::<User>(9))),
        ("name", |now| drop(now.one(User::NAME, "dora"))),
        ("age", |now| drop(now.find(User::AGE, (Some(2),)))),
        ("range", |now| drop(now.range(User::AGE, (Some(2),)..(Some(4),)))),
        ("count", |now| assert!(now.count::<User>() > 0)),
    ];
    let touched = |change: &dyn Fn(&mut Transaction) -> Result<(), Error>| {
        let readers = views.map(|(name, look)| {
            let now = store.read();
            look(&now);
            (name, now)
        });
        store.change(|transaction| change(transaction)).wait().unwrap();
        let changes = receiver.recv().unwrap();
        let touched = readers.iter().filter(|(_, now)| now.reads().is_touched_by(&changes));
        touched.map(|(name, _)| *name).collect::<Vec<_>>()
    };
    assert_eq!(
        touched(&|change| change.update(ids[0], |user: &mut User| user.age = Some(9))),
        ["row", "few", "count"]
    );
    assert_eq!(
        touched(&|change| change.update(ids[1], |user: &mut User| user.name.push('x'))),
        ["newest", "few", "age", "range", "count"]
    );
    assert_eq!(
        touched(&|change| change.insert(User::new("dora", Some(20))).map(drop)),
        ["newest", "few", "name", "count"]
    );
    assert_eq!(
        touched(&|change| change.remove(ids[2]).map(drop)),
        ["newest", "few", "range", "count"]
    );
}

/// A disk in memory.
fn disk(seed: u64) -> SimulatedFolder {
    SimulatedFolder::new(seed, 1 << 30)
}

fn open(disk: &SimulatedFolder, options: Options) -> Result<Store, String> {
    let folder = Arc::new(disk.clone());
    Store::in_folder(folder, options, &mut |_, _| {})
}

#[test]
fn rows_survive_a_power_failure() {
    let disk = disk(1);
    let store = open(&disk, Options::new().table::<User>()).unwrap();
    let ids = ["anna", "ben", "carl"].map(|name| add(&store, name, Some(3)));
    store.change(|change| change.remove(ids[1])).wait().unwrap();
    store.change(|change| change.update(ids[2], |user: &mut User| user.age = None)).wait().unwrap();
    disk.lose_power();
    drop(store);
    disk.revive();
    let store = open(&disk, Options::new().table::<User>()).unwrap();
    let now = store.read();
    assert_eq!(names(now.all()), ["anna", "carl"]);
    assert_eq!(names(now.find(User::AGE, (Some(3),))), ["anna"]);
    assert_eq!(names(now.find(User::AGE, (None,))), ["carl"]);
    assert!(add(&store, "dora", None) > ids[2]);
    assert!(open(&disk, Options::new().table::<User>()).unwrap_err().contains("another server"));
}

#[test]
fn keeps_tables_of_another_program() {
    let disk = disk(1);
    let store = open(&disk, Options::new().table::<User>()).unwrap();
    add(&store, "anna", None);
    drop(store);
    drop(open(&disk, Options::new()).unwrap());
    let store = open(&disk, Options::new().table::<User>()).unwrap();
    assert_eq!(names(store.read().all()), ["anna"]);
}

#[test]
fn warns_about_cut_and_lost_records() {
    let disk = disk(1);
    let store = open(&disk, Options::new().table::<User>()).unwrap();
    for name in ["anna", "ben", "carl"] {
        add(&store, name, None);
    }
    store.close();
    assert_eq!(store.warnings(), []);
    let name = "journal-0000000000000001.log";
    let mut bytes = disk.content(name).unwrap();
    let at = bytes.windows(3).position(|window| window == b"ben").unwrap();
    bytes[at] ^= 1;
    disk.put(name, &bytes);
    let folder: Arc<dyn disk::Folder> = Arc::new(disk.clone());
    journal::repair(&folder).unwrap();
    let store = open(&disk, Options::new().table::<User>()).unwrap();
    let messages: Vec<String> = store.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(messages, ["record 3 is lost: a repair could not read it"]);
    assert_eq!(names(store.read().all()), ["anna", "carl"]);
    store.close();

    let names = crate::disk::Folder::list(&disk).unwrap();
    let name = names.iter().filter(|name| name.starts_with("journal-")).max().unwrap();
    let mut bytes = disk.content(name).unwrap();
    bytes.extend_from_within(8..16);
    bytes.extend_from_slice(&[0; 64]);
    disk.put(name, &bytes);
    let store = open(&disk, Options::new().table::<User>()).unwrap();
    let messages: Vec<String> = store.warnings().iter().map(ToString::to_string).collect();
    let [lost, torn] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!(lost, "record 3 is lost: a repair could not read it");
    assert!(torn.contains("ends with an incomplete group and is cut off at byte"), "{torn}");
}

#[test]
fn rejects_rows_whose_table_definition_is_lost() {
    let disk = disk(1);
    let store = open(&disk, Options::new().table::<User>()).unwrap();
    add(&store, "anna", None);
    store.close();
    let name = "journal-0000000000000001.log";
    let mut bytes = disk.content(name).unwrap();
    let at = bytes.windows(3).position(|window| window == b"age").unwrap();
    bytes[at] ^= 1;
    disk.put(name, &bytes);
    let folder: Arc<dyn disk::Folder> = Arc::new(disk.clone());
    journal::repair(&folder).unwrap();
    let error = open(&disk, Options::new().table::<User>()).unwrap_err();
    assert!(
        error.contains("record 2: the definition of its table was in a record that is lost"),
        "{error}"
    );
}

/// An earlier version of the same table.
struct Older;

impl Older {
    fn options() -> Options {
        let mut options = Options::new();
        let schema = Schema {
            columns: vec![Column::new("called", String::kind()), Column::new("shoe", u8::kind())],
            ..Schema::new("user")
        };
        options.tables.push(DeclaredTable { schema, row_type: None, accepts: |_, _| true });
        options
    }

    fn put(store: &Store, names: &[&str]) {
        for name in names {
            let mut change = store.begin();
            let values = [Value::Text(name), Value::Integer(44)];
            let row = change.definitions[0].layout.write(&values);
            let id = add_id(store);
            change.write(Write { table: 0, id, row: Some(row) });
            store.commit(change).unwrap().wait().unwrap();
        }
    }
}

fn add_id(store: &Store) -> RowId {
    (store.inner.ids)()
}

/// The next version of the schema of `user`.
fn newer(change: impl FnOnce(&mut Schema)) -> Options {
    let mut options = Options::new().table::<User>();
    let schema = &mut options.tables[0].schema;
    schema.columns[0].former_name = Some("called".into());
    schema.dropped = vec!["shoe".into()];
    change(schema);
    options
}

#[test]
fn migrates_a_table_or_changes_nothing() {
    let disk = disk(1);
    let store = open(&disk, Older::options()).unwrap();
    Older::put(&store, &["anna", "ben"]);
    drop(store);
    let refused = |options: Options, expected: &str| {
        let error = open(&disk, options).unwrap_err();
        assert!(error.contains(expected), "{error}");
    };
    refused(
        newer(|schema| schema.dropped.clear()),
        "a column `shoe` that the program does not know",
    );
    refused(newer(|schema| schema.columns[1].is_optional = false), "`user.age` is new");
    let store = open(&disk, newer(|_| {})).unwrap();
    assert_eq!(names(store.read().range(User::NAME, "a"..)), ["anna", "ben"]);
    assert_eq!(store.read().one(User::NAME, "ben").unwrap().age, None);
    drop(store);
    // A dropped column is lost for a program that still declares it.
    refused(Older::options(), "the column `user.called` is new");
    drop(open(&disk, Options::new().table::<User>()).unwrap());
}

#[test]
fn ids_have_the_time_of_the_system_clock() {
    let store = Store::in_memory(Options::new().table::<User>()).unwrap();
    let milliseconds = || now();
    let before = milliseconds();
    let user = User { id: Id::unassigned(), name: "anna".to_owned(), age: None };
    let id = store.insert(user).wait().unwrap();
    assert!((before..=milliseconds()).contains(&id.row().milliseconds()));
    // The year is 2026 or later.
    let clock = crate::time::Time::now();
    assert!(before > 1_767_225_600_000 && before <= clock.unix() * 1000 + 999, "{before}");
}

#[test]
fn rejects_a_unique_index_over_duplicate_rows() {
    let disk = disk(1);
    let store = open(&disk, Older::options()).unwrap();
    Older::put(&store, &["anna", "anna"]);
    drop(store);
    let error = open(&disk, newer(|_| {})).unwrap_err();
    assert!(error.contains("`user` must not have two rows with the same `name`"), "{error}");
}

#[test]
fn rejects_changes_on_a_full_disk_and_resumes() {
    let disk = disk(1);
    let store = open(&disk, Older::options()).unwrap();
    let long = "a".repeat(1 << 20);
    let put = || {
        let mut change = store.begin();
        let row = change.definitions[0].layout.write(&[Value::Text(&long), Value::Integer(44)]);
        change.write(Write { table: 0, id: add_id(&store), row: Some(row) });
        store.commit(change).and_then(Pending::wait)
    };
    put().unwrap();
    assert!(!store.stats().is_full);
    // No new segment has room; the current one fills up after a few more records.
    disk.set_room(0);
    let full = (0..100).find_map(|_| put().err());
    assert_eq!(full, Some(Error::Full));
    assert!(store.stats().is_full);
    let count = store.read().state.tables[0].rows.len();
    disk.set_room(1 << 30);
    put().unwrap();
    assert!(!store.stats().is_full);
    drop(store);
    let store = open(&disk, Older::options()).unwrap();
    assert_eq!(store.read().state.tables[0].rows.len(), count + 1);
}

#[derive(Clone)]
struct Long(Id<Long>, String);

impl Table for Long {
    const NAME: &'static str = "long";

    fn schema() -> Schema {
        Schema { columns: vec![Column::of::<String>("text")], ..Schema::new(Self::NAME) }
    }

    fn id(&self) -> RowId {
        self.0.row()
    }

    fn set_id(&mut self, id: RowId) {
        self.0 = Id::of(id);
    }

    fn values<'r>(&'r self, to: &mut Vec<Value<'r>>) {
        to.push(self.1.value());
    }

    fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self> {
        Some(Self(Id::of(id), Field::from_value(*values.first()?)?))
    }
}

/// Symptom: reopening a closed store in the same process failed with "another server uses it".
/// Cause: a running checkpoint kept the folder locked. Fix: closing the store stops the checkpoint
/// first.
#[test]
fn reopens_a_folder_after_close() {
    let disk = disk(1);
    let options = || Options::new().table::<Long>();
    let store = open(&disk, options()).unwrap();
    for _ in 0..9 {
        let row = Long(Id::unassigned(), "a".repeat((8 << 20) - 100));
        store.change(|change| change.insert(row.clone())).wait().unwrap();
    }
    let names = || crate::disk::Folder::list(&disk).unwrap();
    while !names().iter().any(|name| name.starts_with("snapshot-")) {
        assert_eq!(store.checkpoint_failure(), None);
        thread::yield_now();
    }
    store.close();
    assert_eq!(store.read().count::<Long>(), 9);
    let again = open(&disk, options()).unwrap();
    assert_eq!(again.read().count::<Long>(), 9);
}

/// Symptom: every checkpoint failed. Cause: a row was longer than a snapshot block.
#[test]
fn checkpoints_rows_of_any_length() {
    let disk = disk(1);
    let options = || Options::new().table::<Long>();
    let store = open(&disk, options()).unwrap();
    let put = |length: usize| {
        let row = Long(Id::unassigned(), "a".repeat(length));
        store.change(|change| change.insert(row.clone())).wait()
    };
    assert_eq!(put(9 << 20), Err(Error::TooLarge));
    // Enough data for a checkpoint, with a short row before each long one.
    for _ in 0..9 {
        put(200_000).unwrap();
        put((8 << 20) - 100).unwrap();
    }
    let has_snapshot = || {
        let names = crate::disk::Folder::list(&disk).unwrap();
        names.iter().any(|name| name.starts_with("snapshot-") && !name.ends_with("new"))
    };
    while !has_snapshot() {
        assert_eq!(store.checkpoint_failure(), None);
        thread::yield_now();
    }
    put(7).unwrap();
    disk.lose_power();
    drop(store);
    disk.revive();
    let store = open(&disk, options()).unwrap();
    assert_eq!(store.read().count::<Long>(), 19);
}

#[test]
fn recorder_notes_reads_of_its_own_run_only() {
    let store = store();
    let (sender, receiver) = std::sync::mpsc::channel();
    store.observe(move |changes| sender.send(Changes::clone(changes)).unwrap());
    let (recorder, other) = (Recorder::default(), Recorder::default());
    let before = store.read();
    let (within, change) = recorder.scope(|| (store.read(), store.begin()));
    let of_another = recorder.scope(|| other.scope(|| store.read()));
    let unnoted = recorder.scope(|| store.read().without_tracking());
    let after = store.read();
    let all: [(&str, &Snapshot); 6] = [
        ("before", &before),
        ("within", &within),
        ("change", &change),
        ("another", &of_another),
        ("unnoted", &unnoted),
        ("behind", &after),
    ];
    for (name, snapshot) in all {
        assert!(snapshot.one(User::NAME, name).is_none());
    }
    let with_recorder = |recorder: &Recorder| {
        let names = all.iter().filter(|(name, _)| {
            add(&store, name, None);
            let changes = receiver.recv().unwrap();
            store.change(|change| change.remove(id_of(change, name))).wait().unwrap();
            receiver.recv().unwrap();
            recorder.reads().is_touched_by(&changes)
        });
        names.map(|(name, _)| *name).collect::<Vec<_>>()
    };
    assert_eq!(with_recorder(&recorder), ["within", "change"]);
    assert_eq!(with_recorder(&other), ["another"]);
}

fn id_of(snapshot: &Snapshot, name: &str) -> Id<User> {
    snapshot.one(User::NAME, name).expect("it was added").id
}

#[test]
fn recorder_notes_commits_with_writes() {
    let store = store();
    let recorder = Recorder::default();
    let (idle, busy) = recorder.scope(|| (store.begin(), store.begin()));
    store.commit(idle).unwrap().wait().unwrap();
    assert!(!recorder.has_written(), "nothing was changed");
    add(&store, "another", None);
    assert!(!recorder.has_written(), "another has");
    let mut busy = busy;
    busy.insert(User::new("own", None)).unwrap();
    store.commit(busy).unwrap().wait().unwrap();
    assert!(recorder.has_written());
}

#[test]
fn recorder_counts_different_reads() {
    let store = store();
    let (anna, ben) = (add(&store, "anna", None), add(&store, "ben", None));
    let recorder = Recorder::default();
    assert_eq!(recorder.count(), 0);
    recorder.scope(|| {
        let now = store.read();
        assert!(now.get(anna).is_some() && now.get(anna).is_some());
    });
    assert_eq!(recorder.count(), 1);
    recorder.scope(|| assert!(store.read().get(ben).is_some()));
    assert_eq!((recorder.count(), recorder.reads().len()), (2, 2));
}
