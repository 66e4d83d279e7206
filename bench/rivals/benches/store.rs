//! Measures reads, range scans and commits of Bine's store in memory with criterion.
//!
//! The workload is that of `bine-bench tables`, whose rounds show the spread of samples on a shared
//! machine.

use std::hint::black_box;
use std::path::{Path, PathBuf};

use bine_macros::Table;
use bine_store::{Id, Options, Store, Sync};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

/// The module that the derive macro expects in the crate `bine`.
mod front {
    pub(crate) use bine_store as store;

    pub(crate) mod __private {
        /// Does not register the table: only programs of `bine` compare their tables with the
        /// derived ones.
        macro_rules! submit {
            ($($table:tt)*) => {};
        }
        pub(crate) use submit;
    }
}

/// 100 bytes of data: its id of 16 and these fields.
#[derive(Clone, Table)]
#[table(crate = crate::front)]
struct Row {
    id: Id<Row>,
    number: i64,
    name: String,
    text: String,
}

/// The same row with an index.
#[derive(Clone, Table)]
#[table(crate = crate::front)]
struct Indexed {
    id: Id<Indexed>,
    #[table(index)]
    number: i64,
    name: String,
    text: String,
}

/// The number of rows in a set that fits in the processor's cache, and in one that does not.
const HOT: usize = 1_000;
const ALL: usize = 1_000_000;
/// The number of rows that a page reads with one snapshot.
const LOOKS: usize = 100;

fn looks(criterion: &mut Criterion) {
    for (name, count) in [("hot", HOT), ("random", ALL)] {
        let (store, ids) = filled(count);
        let mut random = Random(7);
        criterion.bench_function(&format!("100 rows, {name}"), |bencher| {
            bencher.iter_batched_ref(
                || (0..LOOKS).map(|_| ids[random.below(ids.len())]).collect::<Vec<_>>(),
                |wanted| {
                    let snapshot = store.read();
                    for id in wanted {
                        black_box(snapshot.get(black_box(*id)).is_some());
                    }
                },
                BatchSize::SmallInput,
            );
        });
        if count == ALL {
            criterion.bench_function("newest(50)", |bencher| {
                bencher.iter(|| black_box(store.read().newest::<Row>(50).len()));
            });
        }
    }
}

fn commits(criterion: &mut Criterion) {
    let folder = Scratch::new();
    let options = Options::new().table::<Row>().table::<Indexed>().sync(Sync::None);
    let store = Store::open(&folder.0, options, &mut |_, _| {}).expect("the folder is new");
    let mut random = Random(11);
    for _ in 0..ALL / 1000 {
        let mut transaction = store.begin();
        for _ in 0..1000 {
            transaction.insert(row(&mut random)).expect("it is new");
            transaction.insert(indexed(&mut random)).expect("it is new");
        }
        store.commit(transaction).and_then(|pending| pending.wait()).expect("the disk works");
    }
    criterion.bench_function("commit, no index", |bencher| {
        let row = || row(&mut random);
        bencher.iter_batched(row, |row| store.insert(row).wait(), BatchSize::SmallInput);
    });
    criterion.bench_function("commit, one index", |bencher| {
        let row = || indexed(&mut random);
        bencher.iter_batched(row, |row| store.insert(row).wait(), BatchSize::SmallInput);
    });
    store.close();
}

fn filled(count: usize) -> (Store, Vec<Id<Row>>) {
    let store = Store::in_memory(Options::new().table::<Row>()).expect("one table");
    let (mut random, mut ids) = (Random(3), Vec::with_capacity(count));
    while ids.len() < count {
        let mut transaction = store.begin();
        for _ in 0..(count - ids.len()).min(1000) {
            ids.push(transaction.insert(row(&mut random)).expect("it is new"));
        }
        store.commit(transaction).and_then(|pending| pending.wait()).expect("it is in memory");
    }
    (store, ids)
}

fn row(random: &mut Random) -> Row {
    Row { id: Id::unassigned(), number: random.number(), name: random.text(16), text: random.text(60) }
}

fn indexed(random: &mut Random) -> Indexed {
    Indexed { id: Id::unassigned(), number: random.number(), name: random.text(16), text: random.text(60) }
}

/// A random number generator (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit
    }

    fn number(&mut self) -> i64 {
        (self.next() >> 24) as i64
    }

    fn text(&mut self, length: usize) -> String {
        (0..length).map(|_| (b'a' + self.below(26) as u8) as char).collect()
    }
}

/// A folder for this run.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let name = format!("store-bench-{}", std::process::id());
        Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

criterion_group!(benches, looks, commits);
criterion_main!(benches);
