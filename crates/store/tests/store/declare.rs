//! Tests of tables that are declared while the store is open.

use std::sync::Arc;
use std::thread;

use bine_store::disk::{Fault, SimulatedFolder};
use bine_store::{
    Archive, Column, Constant, DeclareError, Error, Field, Id, Index, Kind, OnRemove, Options,
    RowId, Schema, Store, Table, Value,
};

use crate::random::Random;

/// More than a run writes.
const ROOM: u64 = 1 << 24;

/// A table of Rust, to which tables of scripts refer.
#[derive(Clone, PartialEq, Debug)]
struct User {
    id: Id<User>,
    name: String,
}

impl Table for User {
    const NAME: &'static str = "user";

    fn schema() -> Schema {
        Schema { columns: vec![Column::of::<String>("name")], ..Schema::new("user") }
    }

    fn id(&self) -> RowId {
        self.id.row()
    }

    fn set_id(&mut self, id: RowId) {
        self.id = Id::of(id);
    }

    fn values<'r>(&'r self, to: &mut Vec<Value<'r>>) {
        to.push(self.name.value());
    }

    fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self> {
        let [name] = values else { return None };
        Some(Self { id: Id::of(id), name: Field::from_value(*name)? })
    }
}

fn options() -> Options {
    Options::new().table::<User>()
}

fn schema(name: &'static str, columns: Vec<Column>) -> Schema {
    Schema { columns, ..Schema::new(name) }
}

fn text(name: &'static str) -> Column {
    Column::of::<String>(name)
}

fn reference(name: &'static str, table: &'static str, on_remove: OnRemove) -> Column {
    let is_optional = on_remove == OnRemove::SetNone;
    Column { on_remove, is_optional, ..Column::new(name, Kind::Reference(table.into())) }
}

fn index(columns: &[usize], is_unique: bool) -> Index {
    Index { columns: columns.to_vec(), is_unique }
}

fn declare(store: &Store, tables: &[Schema]) {
    store.declare(tables).unwrap().wait().unwrap();
}

fn rejection(store: &Store, tables: &[Schema]) -> String {
    match store.declare(tables) {
        Err(error @ DeclareError::Rejected(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

fn insert(store: &Store, table: &str, values: &[Value<'_>]) -> RowId {
    store.change(|change| change.insert_values(table, values)).wait().unwrap()
}

fn open(disk: &SimulatedFolder) -> Store {
    Store::in_folder(Arc::new(disk.clone()), options(), &mut |_, _| {}).unwrap()
}

/// All rows of a table as text.
fn rows(store: &Store, table: &str) -> Vec<String> {
    let now = store.read();
    let table = now.table_named(table).expect("it is declared");
    table.rows(None, None).map(|row| format!("{:?}", row.values())).collect()
}

#[test]
fn adds_tables_that_refer_to_each_other_and_to_row_types() {
    let store = Store::in_memory(options()).unwrap();
    let user = store.insert(User { id: Id::unassigned(), name: "a".into() }).wait().unwrap();
    let before = store.read();
    let post = schema("post", vec![text("title"), reference("by", "user", OnRemove::Cascade)]);
    let note = schema("note", vec![reference("post", "post", OnRemove::SetNone)]);
    declare(&store, &[note, post]);
    assert!(before.table_named("post").is_none());
    let by = Value::Id(user.row());
    let post = insert(&store, "post", &[Value::Text("t"), by]);
    insert(&store, "note", &[Value::Id(post)]);
    assert!(store.remove(user).wait().unwrap());
    assert_eq!(rows(&store, "post"), [""; 0]);
    assert_eq!(rows(&store, "note"), ["[Null]"]);
}

#[test]
fn rejects_what_a_start_rejects_and_changes_nothing() {
    let store = Store::in_memory(options()).unwrap();
    declare(&store, &[schema("a", vec![text("x"), Column::of::<u8>("n")])]);
    insert(&store, "a", &[Value::Text("same"), Value::Integer(1)]);
    insert(&store, "a", &[Value::Text("same"), Value::Integer(2)]);
    let unique = Schema {
        indexes: vec![index(&[0], true)],
        ..schema("a", vec![text("x"), Column::of::<u8>("n")])
    };
    for (tables, why) in [
        (vec![schema("a", vec![text("n"), text("x")])], "the column `a.n` is text in the program"),
        (vec![schema("a", vec![text("x")])], "the table `a` has a column `n` that the program"),
        (
            vec![schema("a", vec![text("x"), Column::of::<u8>("n"), text("y")])],
            "the column `a.y` is new and has no value in older rows",
        ),
        (vec![unique], "`a` must not have two rows with the same `x`"),
        (
            vec![schema("user", vec![text("name")])],
            "the program has a table `user` with a row type",
        ),
        (vec![schema("b", vec![]), schema("b", vec![])], "two tables have the name `b`"),
        (
            vec![schema("b", vec![]), schema("c", vec![reference("z", "none", OnRemove::Reject)])],
            "`c.z` refers to the table `none`, which does not exist",
        ),
        (vec![schema("b", vec![text("id")])], "the table `b` declares a column `id`"),
        (vec![schema("b", vec![text("x"), text("x")])], "the table `b` has two columns `x`"),
        (
            vec![Schema { indexes: vec![index(&[3], false)], ..schema("b", vec![text("x")]) }],
            "an index of `b` needs columns of the table",
        ),
        (
            vec![schema("b", vec![Column::new("x", Kind::Enum(Vec::new().into()))])],
            "`b.x` needs from 1 to 65536 different words",
        ),
    ] {
        let rejected = rejection(&store, &tables);
        assert!(rejected.starts_with(why), "{rejected}");
        let now = store.read();
        let names: Vec<_> = now.tables().map(|table| table.schema().name.to_string()).collect();
        assert_eq!(names, ["user", "a"]);
    }
    assert_eq!(rows(&store, "a").len(), 2);
}

#[test]
fn migrates_a_table_that_is_declared_again() {
    let disk = SimulatedFolder::new(1, ROOM);
    let store = open(&disk);
    declare(&store, &[schema("a", vec![text("x"), Column::of::<u8>("n"), text("old")])]);
    let values = |x, n| [Value::Text(x), Value::Integer(n), Value::Text("gone")];
    insert(&store, "a", &values("one", 1));
    insert(&store, "a", &values("two", 2));
    let mut more = text("more");
    more.default = Some(Constant::from("d"));
    let renamed = Column { former_name: Some("x".into()), ..text("name") };
    let changed = Schema {
        indexes: vec![index(&[0], true), index(&[1], false)],
        dropped: vec!["old".into()],
        ..schema("a", vec![Column::of::<u32>("n"), renamed, more])
    };
    declare(&store, std::slice::from_ref(&changed));
    let expected =
        [r#"[Integer(1), Text("one"), Text("d")]"#, r#"[Integer(2), Text("two"), Text("d")]"#];
    assert_eq!(rows(&store, "a"), expected);
    let one = [Value::Integer(1), Value::Text("three"), Value::Text("")];
    let duplicate = store.change(|change| change.insert_values("a", &one)).wait();
    assert_eq!(duplicate.unwrap_err().to_string(), "`n` is taken already");
    // The next declaration drops the unique index.
    let bare = Schema { indexes: Vec::new(), ..changed };
    declare(&store, std::slice::from_ref(&bare));
    insert(&store, "a", &one);
    drop(store);
    let store = open(&disk);
    assert!(store.read().table_named("a").is_none());
    insert_user(&store);
    declare(&store, &[bare]);
    assert_eq!(rows(&store, "a").len(), 3);
    assert_eq!(rows(&store, "a")[..2], expected);
}

fn insert_user(store: &Store) {
    store.insert(User { id: Id::unassigned(), name: "u".into() }).wait().unwrap();
}

#[test]
fn transaction_on_a_replaced_table_runs_again() {
    let store = Store::in_memory(options()).unwrap();
    declare(&store, &[schema("a", vec![text("x")]), schema("b", vec![text("x")])]);
    let mut wide = vec![text("x"), text("y")];
    wide[1].default = Some(Constant::from(""));
    let [on_replaced, on_other] = ["a", "b"].map(|table| {
        let mut transaction = store.begin();
        transaction.insert_values(table, &[Value::Text("old")]).unwrap();
        transaction
    });
    let mut reader = store.begin();
    assert_eq!(reader.table_named("a").unwrap().count(), 0);
    reader.insert_values("b", &[Value::Text("r")]).unwrap();
    declare(&store, &[schema("a", wide)]);
    assert_eq!(store.commit(on_replaced).unwrap_err(), Error::Conflict);
    assert_eq!(store.commit(reader).unwrap_err(), Error::Conflict);
    store.commit(on_other).unwrap().wait().unwrap();
    assert_eq!(rows(&store, "b").len(), 1);
    // A retry sees the new columns.
    let mut runs = 0;
    let change = store.change(|change| {
        runs += 1;
        if runs == 1 {
            let mut columns = vec![text("x"), text("y")];
            columns.push(Column { is_optional: true, ..text("z") });
            columns[1].default = Some(Constant::from(""));
            declare(&store, &[schema("a", columns)]);
        }
        let count = change.table_named("a").unwrap().schema().columns.len();
        let values = vec![Value::Text("v"); count];
        change.insert_values("a", &values)
    });
    change.wait().unwrap();
    assert_eq!((runs, rows(&store, "a").len()), (2, 1));
}

#[test]
fn new_reference_conflicts_with_a_removal_of_its_row() {
    let store = Store::in_memory(options()).unwrap();
    let user = store.insert(User { id: Id::unassigned(), name: "a".into() }).wait().unwrap();
    let mut removal = store.begin();
    assert!(removal.remove(user).unwrap());
    declare(&store, &[schema("post", vec![reference("by", "user", OnRemove::Reject)])]);
    insert(&store, "post", &[Value::Id(user.row())]);
    assert_eq!(store.commit(removal).unwrap_err(), Error::Conflict);
    let error = store.remove(user).wait().unwrap_err();
    assert_eq!(error, Error::StillReferenced { by: "post".into() });
}

#[test]
fn touches_reads_of_replaced_tables_only() {
    let store = Store::in_memory(options()).unwrap();
    let columns = || vec![text("x"), Column::of::<u8>("n")];
    let indexed =
        Schema { indexes: vec![index(&[0], false), index(&[1], false)], ..schema("a", columns()) };
    declare(&store, &[indexed, schema("b", vec![text("x")])]);
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let to = Arc::clone(&seen);
    store.observe(move |changes| to.lock().unwrap().push(Arc::clone(changes)));
    let by_index = store.read();
    by_index.table_named("a").unwrap().select().equals_value(1, Value::Integer(7)).unwrap().rows();
    let [other, users] = [store.read(), store.read()];
    other.table_named("b").unwrap().count();
    users.newest::<User>(5);
    // The new definition has fewer indexes, and `c` refers to `user`.
    let fewer = schema("a", columns());
    declare(&store, &[fewer, schema("c", vec![reference("by", "user", OnRemove::Reject)])]);
    insert(&store, "a", &[Value::Text(""), Value::Integer(8)]);
    let seen = seen.lock().unwrap();
    let touched = |now: &bine_store::Snapshot| {
        let reads = now.reads();
        seen.iter().map(|changes| reads.is_touched_by(changes)).collect::<Vec<_>>()
    };
    assert_eq!(touched(&by_index), [true, true]);
    assert_eq!(touched(&other), [false, false]);
    assert_eq!(touched(&users), [false, false]);
}

#[test]
fn concurrent_inserts_survive_declarations_of_indexes() {
    let store = Store::in_memory(options()).unwrap();
    let columns = || vec![Column::of::<u32>("n")];
    declare(&store, &[schema("a", columns())]);
    thread::scope(|scope| {
        for worker in 0..3_u32 {
            let store = store.clone();
            scope.spawn(move || {
                for number in 0..100 {
                    let value = [Value::Integer((worker * 1000 + number).into())];
                    loop {
                        let change = store.change(|change| change.insert_values("a", &value));
                        match change.wait() {
                            Ok(_) => break,
                            Err(error) => assert_eq!(error, Error::Conflict),
                        }
                    }
                }
            });
        }
        for round in 0..50 {
            let indexes = vec![index(&[0], true); round % 2];
            declare(&store, &[Schema { indexes, ..schema("a", columns()) }]);
        }
    });
    declare(&store, &[Schema { indexes: vec![index(&[0], true)], ..schema("a", columns()) }]);
    let now = store.read();
    let table = now.table_named("a").unwrap();
    assert_eq!(table.count(), 300);
    for row in table.rows(None, None) {
        assert_eq!(table.count_with(0, row.values(), 2), 1);
    }
}

/// The columns of a table after a number of declarations: each adds one.
fn grown(columns: usize) -> Vec<Schema> {
    const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    let column = |name: &&'static str| {
        let default = Some(Constant::from(*name));
        Column { default, ..text(name) }
    };
    let columns: Vec<Column> = NAMES[..columns].iter().map(column).collect();
    // The two tables of a call must not be found at different versions.
    vec![schema("left", columns.clone()), schema("right", columns)]
}

/// Declares and writes on a disk that fails, tears writes and fills up. After each end the tables
/// are at one version, at least the last that was acknowledged, and all acknowledged rows remain.
#[test]
fn declarations_survive_any_end_completely_or_not_at_all() {
    let mut later = 0;
    for seed in 1..=150 {
        let mut random = Random(seed);
        let disk = SimulatedFolder::new(seed, ROOM);
        let (mut version, mut acknowledged) = (0, [0_usize; 2]);
        let mut sent = [0_usize; 2];
        for _ in 0..3 {
            if random.below(2) == 0 {
                disk.fail(random.below(60), fault(&mut random));
            }
            if let Ok(store) =
                Store::in_folder(Arc::new(disk.process()), options().segment(400), &mut |_, _| {})
            {
                let mut declared = None;
                for _ in 0..random.below(20) {
                    if declared.is_none() || random.below(4) == 0 {
                        let wanted = (version + random.below(2) as usize).clamp(1, 6);
                        let done = store.declare(&grown(wanted)).map(bine_store::Pending::wait);
                        if let Ok(Ok(_)) = done {
                            (version, declared) = (wanted, Some(wanted));
                        }
                        continue;
                    }
                    let side = random.below(2) as usize;
                    let values = vec![Value::Text("v"); declared.unwrap_or(1)];
                    let name = ["left", "right"][side];
                    sent[side] += 1;
                    if store.change(|change| change.insert_values(name, &values)).wait().is_ok() {
                        acknowledged[side] += 1;
                    }
                }
                drop(store);
            }
            disk.lose_power();
            disk.heal();
            let found = check_version(&disk, version, acknowledged, sent);
            later += usize::from(found > version);
            version = found;
            disk.revive();
        }
    }
    assert!(later > 0, "no end found a version that was not acknowledged");
}

fn fault(random: &mut Random) -> Fault {
    match random.below(5) {
        0 => Fault::Broken,
        1 => Fault::Full,
        2 => Fault::Death,
        _ => Fault::Short,
    }
}

/// Finds the version of the tables, at least the last that was acknowledged, and checks their rows.
fn check_version(
    disk: &SimulatedFolder,
    least: usize,
    acknowledged: [usize; 2],
    sent: [usize; 2],
) -> usize {
    let mut lines = Vec::new();
    let archive = Archive::open(Arc::new(disk.process()), None, &mut |_, _| {}).unwrap();
    archive.dump(&[], &mut lines).unwrap();
    drop(archive);
    let lines = String::from_utf8(lines).unwrap();
    let has_tables = ["left", "right"].map(|name| lines.contains(&format!("\"{name}\"")));
    assert_eq!(has_tables[0], has_tables[1], "one table of a call: {lines}");
    let store = open(&disk.process());
    if !has_tables[0] {
        assert_eq!((least, acknowledged), (0, [0, 0]));
        return 0;
    }
    if least > 1 {
        assert!(store.declare(&grown(least - 1)).is_err(), "the version {least} is lost");
    }
    // Fewer columns than stored are rejected, so the first accepted version is the stored one.
    let accepted = (least.max(1)..=6).find(|version| {
        let both = store.declare(&grown(*version));
        let each = grown(*version).into_iter().map(|one| store.declare(&[one]).is_ok());
        assert!(each.into_iter().all(|is_accepted| is_accepted == both.is_ok()), "{version}");
        both.is_ok()
    });
    let version = accepted.expect("a version that was sent");
    declare(&store, &grown(version));
    for (side, name) in ["left", "right"].into_iter().enumerate() {
        let count = rows(&store, name).len();
        assert!((acknowledged[side]..=sent[side]).contains(&count), "{name}: {count} rows");
    }
    version
}
