//! An index of read sets: finds the readers that a commit may affect without comparing the commit
//! with each reader.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use smallvec::SmallVec;

use crate::id::RowId;
use crate::key::Key;
use crate::reads::{Changes, Read, ReadSet};
use crate::state::Edge;

/// Readers, each identified by a `K`, indexed by the data that their read sets depend on.
///
/// [`touched`](Self::touched) finds each reader whose read set [is touched](ReadSet::is_touched_by)
/// by a commit, and a few false positives: a key range is indexed by its common prefix only, and a
/// reader with very many places in a table by the whole table.
#[derive(Debug)]
pub struct Readers<K> {
    tables: HashMap<usize, TableReaders<K>>,
}

#[derive(Debug)]
struct TableReaders<K> {
    /// Readers of the whole table.
    all_rows: BTreeSet<K>,
    rows: HashMap<RowId, BTreeSet<K>>,
    /// Readers of all rows from an id on.
    since: BTreeMap<RowId, BTreeSet<K>>,
    /// Prefixes by index.
    prefixes: HashMap<usize, Prefixes<K>>,
}

/// Readers by key prefix, grouped by the prefix's length.
type Prefixes<K> = BTreeMap<usize, HashMap<PrefixBytes, BTreeSet<K>>>;

type PrefixBytes = SmallVec<[u8; 16]>;

/// One entry of a read set in this index.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Dependency {
    Table,
    Row(RowId),
    Since(RowId),
    Prefix(usize, PrefixBytes),
}

/// A reader with more places than this in one table is indexed by the whole table.
const MAX_DEPENDENCIES: usize = 256;

impl<K: Copy + Ord> Readers<K> {
    /// Adds a reader with its read set.
    pub fn insert(&mut self, reader: K, reads: &ReadSet) {
        for (table, dependencies) in dependencies(reads) {
            let own = self.tables.entry(table).or_default();
            for dependency in dependencies {
                own.insert(reader, dependency);
            }
        }
    }

    /// Removes a reader. `reads` must equal the read set that it was added with.
    pub fn remove(&mut self, reader: K, reads: &ReadSet) {
        for (table, dependencies) in dependencies(reads) {
            let Some(own) = self.tables.get_mut(&table) else { continue };
            for dependency in &dependencies {
                own.remove(reader, dependency);
            }
            if own.is_empty() {
                self.tables.remove(&table);
            }
        }
    }

    /// Calls `visit` for each reader that a commit may affect; it may pass a reader more than once.
    pub fn touched(&self, changes: &Changes, mut visit: impl FnMut(K)) {
        for changed in changes.tables() {
            let Some(own) = self.tables.get(&changed.table()) else { continue };
            let mut visit_all = |readers: &BTreeSet<K>| readers.iter().for_each(|own| visit(*own));
            match changed.rows_and_keys() {
                None => own.each(visit_all),
                Some((rows, keys)) => {
                    visit_all(&own.all_rows);
                    rows.iter().filter_map(|id| own.rows.get(id)).for_each(&mut visit_all);
                    if let Some(last) = rows.last() {
                        own.since.range(..=*last).for_each(|(_, readers)| visit_all(readers));
                    }
                    for (index, keys) in keys.iter().enumerate() {
                        let Some(prefixes) = own.prefixes.get(&index) else { continue };
                        visit_prefixes(prefixes, keys, &mut visit_all);
                    }
                }
            }
        }
    }

    /// Whether the index holds no reader with a dependency.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }
}

impl<K: Copy + Ord> TableReaders<K> {
    fn insert(&mut self, reader: K, dependency: Dependency) {
        let readers = match dependency {
            Dependency::Table => &mut self.all_rows,
            Dependency::Row(id) => self.rows.entry(id).or_default(),
            Dependency::Since(id) => self.since.entry(id).or_default(),
            Dependency::Prefix(index, bytes) => {
                let prefixes = self.prefixes.entry(index).or_default();
                prefixes.entry(bytes.len()).or_default().entry(bytes).or_default()
            }
        };
        readers.insert(reader);
    }

    fn remove(&mut self, reader: K, dependency: &Dependency) {
        match dependency {
            Dependency::Table => {
                self.all_rows.remove(&reader);
            }
            Dependency::Row(id) => {
                if let Some(readers) = self.rows.get_mut(id) {
                    readers.remove(&reader);
                    if readers.is_empty() {
                        self.rows.remove(id);
                    }
                }
            }
            Dependency::Since(id) => {
                if let Some(readers) = self.since.get_mut(id) {
                    readers.remove(&reader);
                    if readers.is_empty() {
                        self.since.remove(id);
                    }
                }
            }
            Dependency::Prefix(index, bytes) => self.remove_prefix(reader, *index, bytes),
        }
    }

    fn remove_prefix(&mut self, reader: K, index: usize, bytes: &PrefixBytes) {
        let Some(prefixes) = self.prefixes.get_mut(&index) else { return };
        let Some(of_length) = prefixes.get_mut(&bytes.len()) else { return };
        if let Some(readers) = of_length.get_mut(bytes) {
            readers.remove(&reader);
            if readers.is_empty() {
                of_length.remove(bytes);
            }
        }
        if of_length.is_empty() {
            prefixes.remove(&bytes.len());
        }
        if prefixes.is_empty() {
            self.prefixes.remove(&index);
        }
    }

    fn each(&self, mut visit: impl FnMut(&BTreeSet<K>)) {
        visit(&self.all_rows);
        self.rows.values().for_each(&mut visit);
        self.since.values().for_each(&mut visit);
        let of_length = self.prefixes.values().flat_map(BTreeMap::values);
        of_length.flat_map(HashMap::values).for_each(&mut visit);
    }

    fn is_empty(&self) -> bool {
        self.all_rows.is_empty()
            && self.rows.is_empty()
            && self.since.is_empty()
            && self.prefixes.is_empty()
    }
}

impl<K> Default for Readers<K> {
    fn default() -> Self {
        Self { tables: HashMap::new() }
    }
}

impl<K> Default for TableReaders<K> {
    fn default() -> Self {
        Self {
            all_rows: BTreeSet::new(),
            rows: HashMap::new(),
            since: BTreeMap::new(),
            prefixes: HashMap::new(),
        }
    }
}

fn visit_prefixes<K>(prefixes: &Prefixes<K>, keys: &[Key], mut visit: impl FnMut(&BTreeSet<K>)) {
    for key in keys {
        let key = key.bytes();
        for (length, readers) in prefixes.range(..=key.len()) {
            readers.get(&key[..*length]).into_iter().for_each(&mut visit);
        }
    }
}

/// The places of a read set, by table. Equal read sets have equal places.
fn dependencies(reads: &ReadSet) -> BTreeMap<usize, BTreeSet<Dependency>> {
    let mut tables = BTreeMap::<usize, BTreeSet<Dependency>>::new();
    for read in reads.reads() {
        let dependencies = tables.entry(read.table()).or_default();
        if dependencies.contains(&Dependency::Table) {
            continue;
        }
        let dependency = dependency(read);
        if dependency == Dependency::Table || dependencies.len() >= MAX_DEPENDENCIES {
            *dependencies = BTreeSet::from([Dependency::Table]);
        } else {
            dependencies.insert(dependency);
        }
    }
    tables
}

fn dependency(read: &Read) -> Dependency {
    match read {
        Read::Row { id, .. } => Dependency::Row(*id),
        Read::Since { id, .. } => Dependency::Since(*id),
        Read::Prefix { index, key, .. } => Dependency::Prefix(*index, key.bytes().into()),
        Read::Range { index, from, until, .. } => {
            let common = match (from, until) {
                (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(until)) => {
                    common_below(from, Some(until))
                }
                (Bound::Included(from) | Bound::Excluded(from), Bound::Included(until)) => {
                    common(from, Some(until))
                }
                _ => &[],
            };
            Dependency::Prefix(*index, common.into())
        }
        Read::Slice { index, from, until, .. } => {
            let until_key = until.as_ref().map(|until| &until.key);
            let common = match (from, until) {
                (Some(from), Some(Edge { id: Some(_), .. })) => common(&from.key, until_key),
                (Some(from), _) => common_below(&from.key, until_key),
                _ => &[],
            };
            Dependency::Prefix(*index, common.into())
        }
        Read::Ids { from, .. } => Dependency::Since(*from),
        Read::Table { .. } => Dependency::Table,
    }
}

/// The prefix that all keys from one key to another one share.
fn common<'k>(from: &'k Key, until: Option<&Key>) -> &'k [u8] {
    let from = from.bytes();
    let until = until.map_or(&[][..], Key::bytes);
    let length = from.iter().zip(until).take_while(|(from, until)| from == until).count();
    &from[..length]
}

/// The prefix that all keys from one key to another one share, without the other one.
fn common_below<'k>(from: &'k Key, until: Option<&Key>) -> &'k [u8] {
    let common = common(from, until);
    let until = until.map_or(&[][..], Key::bytes);
    match (from.bytes().get(common.len()), &until[common.len()..]) {
        // The end of all keys with this prefix.
        (Some(last), [end]) if last.checked_add(1) == Some(*end) => &from.bytes()[..=common.len()],
        _ => common,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::value::Value;

    const TABLES: usize = 2;

    #[test]
    fn is_empty_without_readers() {
        let mut readers = Readers::default();
        assert!(readers.is_empty());
        let kinds = [
            Read::Table { table: 0 },
            Read::Row { table: 0, id: id(1) },
            Read::Since { table: 0, id: id(1) },
            Read::Prefix { table: 0, index: 0, key: key(&[1]) },
        ];
        for read in kinds {
            let [mut own, mut both] = [(); 2].map(|()| ReadSet::default());
            own.note(read.clone());
            both.note(read);
            both.note(Read::Row { table: 0, id: id(2) });
            readers.insert(1, &own);
            readers.insert(2, &both);
            // A reader is found until its own removal.
            readers.remove(2, &both);
            assert!(!readers.is_empty());
            readers.remove(1, &own);
            assert!(readers.is_empty());
        }
    }

    fn id(number: u8) -> RowId {
        RowId::from_number(u128::from(number))
    }

    fn key(numbers: &[u8]) -> Key {
        Key::of(numbers.iter().map(|number| Value::Integer(i128::from(*number))))
    }

    fn some_key() -> impl Strategy<Value = Key> {
        vec(0..6_u8, 0..3).prop_map(|numbers| key(&numbers))
    }

    fn bound() -> impl Strategy<Value = Bound<Key>> {
        prop_oneof![
            Just(Bound::Unbounded),
            some_key().prop_map(Bound::Included),
            some_key().prop_map(Bound::Excluded),
        ]
    }

    fn edge() -> impl Strategy<Value = Option<Edge>> {
        let edge = (some_key(), proptest::option::of(0..20_u8));
        proptest::option::of(edge.prop_map(|(key, row)| Edge { key, id: row.map(id) }))
    }

    fn read() -> impl Strategy<Value = Read> {
        let table = 0..TABLES;
        prop_oneof![
            3 => (table.clone(), 0..20_u8).prop_map(|(table, row)| Read::Row { table, id: id(row) }),
            1 => (table.clone(), 0..20_u8).prop_map(|(table, row)| Read::Since { table, id: id(row) }),
            3 => (table.clone(), 0..2_usize, some_key())
                .prop_map(|(table, index, key)| Read::Prefix { table, index, key }),
            3 => (table.clone(), 0..2_usize, bound(), bound())
                .prop_map(|(table, index, from, until)| Read::Range { table, index, from, until }),
            3 => (table.clone(), 0..2_usize, edge(), edge())
                .prop_map(|(table, index, from, until)| Read::Slice { table, index, from, until }),
            1 => (table.clone(), 0..20_u8, proptest::option::of(0..20_u8)).prop_map(
                |(table, from, until)| Read::Ids { table, from: id(from), until: until.map(id) }
            ),
            1 => table.prop_map(|table| Read::Table { table }),
        ]
    }

    fn read_set(reads: Vec<Read>) -> ReadSet {
        let mut set = ReadSet::default();
        for read in reads {
            set.note(read);
        }
        set
    }

    proptest! {
        /// The index finds each reader that a linear search finds, and is empty after all readers
        /// are removed.
        #[test]
        fn finds_every_reader_that_a_commit_touches(
            sets in vec(vec(read(), 0..6), 0..12),
            rows in vec((0..TABLES, 0..20_u8, some_key(), some_key()), 0..5),
            of_all in proptest::option::weighted(0.1, 0..TABLES),
        ) {
            let sets: Vec<ReadSet> = sets.into_iter().map(read_set).collect();
            let mut readers = Readers::default();
            sets.iter().enumerate().for_each(|(reader, set)| readers.insert(reader, set));
            let rows = rows.into_iter().map(|(table, row, one, two)| (table, id(row), [one, two]));
            let changes = Changes::for_test(rows, of_all);
            let mut found = BTreeSet::new();
            readers.touched(&changes, |reader| {
                found.insert(reader);
            });
            for (reader, set) in sets.iter().enumerate() {
                if set.is_touched_by(&changes) {
                    prop_assert!(found.contains(&reader), "{set:?} is missed");
                }
            }
            sets.iter().enumerate().for_each(|(reader, set)| readers.remove(reader, set));
            prop_assert!(readers.is_empty());
        }
    }

    #[test]
    fn checks_only_readers_of_the_changed_rows() {
        let mut readers = Readers::default();
        for number in 0..200 {
            let row = Read::Row { table: 0, id: id(number) };
            let index = Read::Prefix { table: 0, index: 0, key: key(&[number]) };
            let (from, until) =
                (Bound::Included(key(&[number, 1])), Bound::Excluded(key(&[number, 9])));
            let range = Read::Range { table: 0, index: 0, from, until };
            readers.insert(number, &read_set(vec![row, index, range]));
        }
        let changes = Changes::for_test([(0, id(7), [key(&[9, 5]), key(&[])])], None);
        let mut seen = Vec::new();
        readers.touched(&changes, |reader| seen.push(reader));
        seen.sort_unstable();
        assert_eq!(seen, [7, 9, 9]);
    }

    #[test]
    fn checks_only_readers_of_ranges_around_the_changed_key() {
        let (table, index) = (0, 0);
        let changes = Changes::for_test([(0, id(7), [key(&[9, 5]), key(&[])])], None);
        let bounds = |number: u8| (key(&[number, 1]), key(&[number, 9]));
        let edge = |key: Key, row: Option<u8>| Some(Edge { key, id: row.map(id) });
        let seen = |read: &dyn Fn(u8) -> Read| {
            let mut readers = Readers::default();
            (0..200).for_each(|number| readers.insert(number, &read_set(vec![read(number)])));
            let mut seen = Vec::new();
            readers.touched(&changes, |reader| seen.push(reader));
            seen
        };
        let kinds: [fn(Key) -> Bound<Key>; 2] = [Bound::Included, Bound::Excluded];
        for (first, last) in kinds.iter().flat_map(|first| kinds.map(|last| (first, last))) {
            let read = |number| {
                let (from, until) = bounds(number);
                Read::Range { table, index, from: first(from), until: last(until) }
            };
            assert_eq!(seen(&read), [9]);
        }
        for row in [None, Some(3)] {
            let read = |number| {
                let (from, until) = bounds(number);
                Read::Slice { table, index, from: edge(from, None), until: edge(until, row) }
            };
            assert_eq!(seen(&read), [9], "{row:?}");
        }
        // All keys with a prefix, up to their end.
        let read = |number| {
            let (from, until) = (key(&[number]), key(&[number]).end().unwrap());
            Read::Range { table, index, from: Bound::Included(from), until: Bound::Excluded(until) }
        };
        assert_eq!(seen(&read), [9]);
        let read = |number| Read::Slice {
            table,
            index,
            from: edge(key(&[number]), None),
            until: edge(key(&[number]).end().unwrap(), None),
        };
        assert_eq!(seen(&read), [9]);
        // Without both ends, the whole index.
        let read = |number| Read::Range {
            table,
            index,
            from: Bound::Included(key(&[number])),
            until: Bound::Unbounded,
        };
        assert_eq!(seen(&read).len(), 200);
    }

    /// Entries with the key at the end of a slice are in it if their rows precede its last place.
    #[test]
    fn finds_readers_of_a_slice_that_ends_within_a_key() {
        let read = |until| Read::Slice {
            table: 0,
            index: 0,
            from: Some(Edge { key: key(&[5]), id: None }),
            until: Some(Edge { key: key(&[5]).end().unwrap(), id: until }),
        };
        let mut readers = Readers::default();
        readers.insert(1, &read_set(vec![read(Some(id(9)))]));
        readers.insert(2, &read_set(vec![read(None)]));
        let seen = |key: Key| {
            let mut seen = Vec::new();
            let changes = Changes::for_test([(0, id(7), [key, Key::default()])], None);
            readers.touched(&changes, |reader| seen.push(reader));
            seen.sort_unstable();
            seen
        };
        assert_eq!(seen(key(&[5, 5])), [1, 2]);
        assert_eq!(seen(key(&[5]).end().unwrap()), [1]);
    }

    #[test]
    fn indexes_a_reader_of_many_rows_by_the_table() {
        let rows = (0..=255).map(|number| Read::Row { table: 0, id: id(number) });
        let most = dependencies(&read_set(rows.clone().collect()));
        assert_eq!(most[&0].len(), MAX_DEPENDENCIES);
        let more = Read::Row { table: 0, id: RowId::from_number(1000) };
        let set = read_set(rows.chain([more]).collect());
        let dependencies = dependencies(&set);
        assert_eq!(dependencies[&0], BTreeSet::from([Dependency::Table]));
    }
}
