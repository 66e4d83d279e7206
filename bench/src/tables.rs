//! Measures the store's tables in memory: reads, commits, starts, and bytes per row.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use bine_store::{
    Column, Field, Id, Index, IndexOf, Options, RowId, Schema, Snapshot, Store, Sync, Table, Value,
};
use rustix::time::{ClockId, clock_gettime};

use crate::arguments::Arguments;
use crate::figures::Spread;
use crate::machine;
use crate::random::Random;
use crate::tools::output;

/// The bytes of a row's data: its id of 16, a number of 8, a name of 16 and a text of 60.
const DATA: u64 = 100;
/// The number of rows in a set that fits in the processor's cache.
const HOT: usize = 1000;
/// The number of single rows read per snapshot, as by one page.
const LOOKS: usize = 100;
/// Reads, range scans and commits per sample.
const IN_A_SAMPLE: usize = 20_000;
/// The budgets of the project.
const BUDGETS: &str = "Budgets: row in a hot set 150 ns, at random 1000 ns, `newest(50)` 5000 ns, commit 10000 ns, notes \
    x 1.20, start 2 s, memory x 2.5.";

/// A row of [`DATA`] bytes. The first index is by number, the second by name; both have random
/// values.
struct Row<const INDEXES: usize> {
    id: Id<Self>,
    number: i64,
    name: String,
    text: String,
}

/// Measures times in this process, and starts and memory in child processes.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let rows = arguments.number("--rows", 1_000_000)?;
    if let Some([folder, indexes]) = arguments.names("--start").as_deref() {
        return start(Path::new(folder), indexes);
    }
    let rounds = arguments.number("--rounds", 9)?;
    let facts = machine::facts();
    let scratch = Scratch::new()?;
    println!(
        "{facts}\n\nRows of {DATA} bytes of data: an id of 16, a number of 8, a name of 16 and a text of 60. {BUDGETS}\n"
    );
    let only = arguments.names("--only");
    let wanted = |name: &str| only.as_ref().is_none_or(|only| only.contains(&name));
    let all = usize::try_from(rows)?;
    if wanted("looks") {
        println!(
            "| {rows} rows | CPU, ns: median (least-most of {rounds}) | wall, ns |\n|---|---|---|"
        );
        looks(all, rounds)?;
    }
    if wanted("commits") {
        println!(
            "\n| one row, no sync | inserted: CPU, ns | wall, ns | changed: CPU, ns | wall, ns |"
        );
        println!("|---|---|---|---|---|");
        commits::<0>(&scratch.0.join("0"), all, rounds)?;
        commits::<1>(&scratch.0.join("1"), all, rounds)?;
        commits::<2>(&scratch.0.join("2"), all, rounds)?;
    }
    if wanted("starts") {
        println!(
            "\n| {rows} rows | start, s | CPU, s | memory, x data | after single commits, x data |"
        );
        println!("|---|---|---|---|---|");
        starts::<0>(&scratch.0.join("0"), all, rounds.min(5))?;
        starts::<1>(&scratch.0.join("1"), all, rounds.min(5))?;
        starts::<2>(&scratch.0.join("2"), all, rounds.min(5))?;
    }
    Ok(())
}

/// The cost of finding rows, among a few and among all.
fn looks(all: usize, rounds: u64) -> Result<()> {
    let (store, ids) = filled(HOT)?;
    of_rows(&store, &ids, "a row of 1000", rounds)?;
    let (store, ids) = filled(all)?;
    of_rows(&store, &ids, "a row at random", rounds)?;
    walks(&store, rounds)
}

fn of_rows(store: &Store, ids: &[Id<Row<1>>], what: &str, rounds: u64) -> Result<()> {
    let mut random = Random(7);
    let look = |wanted: &[Id<Row<1>>], begin: &dyn Fn() -> Snapshot| {
        for some in wanted.chunks(LOOKS) {
            let snapshot = begin();
            for id in some {
                black_box(snapshot.get(black_box(*id)).is_some());
            }
        }
    };
    let (mut noted, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..=rounds {
        let mut choose = || ids[random.below(ids.len() as u64) as usize];
        let [first, second] =
            [(); 2].map(|()| (0..IN_A_SAMPLE).map(|_| choose()).collect::<Vec<_>>());
        noted.push(timed(IN_A_SAMPLE, || look(&first, &|| store.read())));
        plain.push(timed(IN_A_SAMPLE, || look(&second, &|| store.read().without_tracking())));
    }
    // The first sample is a warm-up.
    let (noted, plain) = (&noted[1..], &plain[1..]);
    print(what, noted)?;
    print(&format!("{what}, nothing noted"), plain)?;
    let ratio = noted.iter().zip(plain).map(|(noted, plain)| noted.cpu / plain.cpu);
    println!("| {what}, noted / not noted | x {} | |", Spread::of(ratio).context("no samples")?);
    Ok(())
}

fn walks(store: &Store, rounds: u64) -> Result<()> {
    let snapshots = IN_A_SAMPLE / LOOKS;
    let mut random = Random(7);
    let newest = || {
        for _ in 0..snapshots {
            black_box(store.read().newest::<Row<1>>(50).len());
        }
    };
    print("`newest(50)`", &samples(rounds, snapshots, newest))?;
    let by_number: IndexOf<Row<1>, (i64,)> = IndexOf::position(0);
    let mut range = || {
        for _ in 0..snapshots {
            let first = number(&mut random);
            black_box(store.read().range(by_number, first..).take(50).count());
        }
    };
    print("50 of an index, from a random one", &samples(rounds, snapshots, &mut range))
}

/// Commits of one row each, in a store with existing rows.
fn commits<const INDEXES: usize>(folder: &Path, count: usize, rounds: u64) -> Result<()> {
    let store = opened::<INDEXES>(folder)?;
    let mut ids = fill::<INDEXES>(&store, count)?;
    let mut random = Random(11);
    let mut failed = 0;
    let mut inserted = Vec::new();
    let mut changed = Vec::new();
    for _ in 0..=rounds {
        let rows: Vec<_> = (0..IN_A_SAMPLE).map(|_| row::<INDEXES>(&mut random)).collect();
        inserted.push(timed(IN_A_SAMPLE, || {
            for row in rows {
                match store.insert(row).wait() {
                    Ok(id) => ids.push(id),
                    Err(_) => failed += 1,
                }
            }
        }));
        changed.push(timed(IN_A_SAMPLE, || {
            for _ in 0..IN_A_SAMPLE {
                let id = ids[random.below(ids.len() as u64) as usize];
                let number = number(&mut random);
                let done = store.update(id, |row| row.number = number).wait();
                failed += u32::from(done.is_err());
            }
        }));
    }
    ensure!(failed == 0, "{failed} commits failed");
    let [inserted, changed] = [&inserted[1..], &changed[1..]].map(|samples| {
        let of = |time: fn(&Time) -> f64| Spread::of(samples.iter().map(time));
        Some((of(|time| time.cpu)?, of(|time| time.wall)?))
    });
    let (inserted, changed) = inserted.zip(changed).context("no samples")?;
    println!(
        "| {INDEXES} indexes | {} | {:.0} | {} | {:.0} |",
        inserted.0, inserted.1.median, changed.0, changed.1.median
    );
    store.close();
    Ok(fs::remove_dir_all(folder)?)
}

/// CPU nanoseconds of a commit of one row without indexes, in a store in memory.
pub(crate) fn insertions(rounds: u64) -> Result<Vec<f64>> {
    let store = in_memory::<0>()?;
    fill::<0>(&store, IN_A_SAMPLE)?;
    let mut random = Random(11);
    let mut sample = || -> Result<f64> {
        let rows: Vec<_> = (0..IN_A_SAMPLE).map(|_| row::<0>(&mut random)).collect();
        let mut failed = 0;
        let time = timed(IN_A_SAMPLE, || {
            failed = rows.into_iter().filter_map(|row| store.insert(row).wait().err()).count();
        });
        ensure!(failed == 0, "{failed} commits failed");
        Ok(time.cpu)
    };
    // The first sample is a warm-up.
    sample()?;
    (0..rounds).map(|_| sample()).collect()
}

/// Times starts with `count` rows in child processes, and single commits in one more.
fn starts<const INDEXES: usize>(folder: &Path, count: usize, rounds: u64) -> Result<()> {
    let store = opened::<INDEXES>(folder)?;
    fill::<INDEXES>(&store, count)?;
    store.close();
    let program = std::env::current_exe()?;
    let ask = |folder: &str| -> Result<[f64; 4]> {
        let mut command = Command::new(&program);
        let text = output(command.args(["tables", "--start", &format!("{folder},{INDEXES}")]))?;
        let figures: Result<Vec<f64>, _> = text.split_whitespace().map(str::parse).collect();
        figures?.try_into().map_err(|_| anyhow!("a start printed `{text}`"))
    };
    let mut found = Vec::new();
    for _ in 0..rounds {
        found.push(ask(folder.to_str().context("the folder's name is not UTF-8")?)?);
    }
    let of =
        |place: usize| Spread::of(found.iter().map(|start| start[place])).context("no samples");
    let rows = found[0][3];
    let committed = ask(&format!("{rows:.0}"))?;
    let times = |bytes: f64| bytes / rows / DATA as f64;
    println!(
        "| {INDEXES} indexes | {} | {} | {:.2} | {:.2} |",
        of(0)?,
        of(1)?,
        times(of(2)?.median),
        times(committed[2])
    );
    Ok(())
}

/// Runs in a child process: opens the store in a folder, or creates one in memory by single
/// commits. Prints seconds, CPU seconds, the growth of memory in bytes, rows.
fn start(folder: &Path, indexes: &str) -> Result<()> {
    fn of<const INDEXES: usize>(folder: &Path) -> Result<()> {
        let before = resident()?;
        let (begun, cpu) = (Instant::now(), cpu());
        let store = match folder.to_str().and_then(|count| count.parse().ok()) {
            Some(count) => committed::<INDEXES>(count)?,
            None => opened::<INDEXES>(folder)?,
        };
        let (taken, cpu) = (begun.elapsed().as_secs_f64(), self::cpu() - cpu);
        let rows = store.read().count::<Row<INDEXES>>();
        println!("{taken} {} {} {rows}", cpu / 1e9, resident()?.saturating_sub(before));
        Ok(())
    }
    match indexes {
        "0" => of::<0>(folder),
        "1" => of::<1>(folder),
        _ => of::<2>(folder),
    }
}

/// A store in memory, filled by single commits.
fn committed<const INDEXES: usize>(count: usize) -> Result<Store> {
    let store = in_memory::<INDEXES>()?;
    let mut random = Random(3);
    for _ in 0..count {
        store.insert(row::<INDEXES>(&mut random)).wait()?;
    }
    Ok(store)
}

/// A store in memory, with rows.
fn filled(count: usize) -> Result<(Store, Vec<Id<Row<1>>>)> {
    let store = in_memory::<1>()?;
    let ids = fill(&store, count)?;
    Ok((store, ids))
}

fn in_memory<const INDEXES: usize>() -> Result<Store> {
    let options = Options::new().table::<Row<INDEXES>>();
    Store::in_memory(options).map_err(|error| anyhow!("{error}"))
}

/// A store in a folder, which only the system syncs.
fn opened<const INDEXES: usize>(folder: &Path) -> Result<Store> {
    let options = Options::new().table::<Row<INDEXES>>().sync(Sync::None);
    Store::open(folder, options, &mut |_, _| {}).map_err(|error| anyhow!("{error}"))
}

/// Inserts rows, a thousand per commit.
fn fill<const INDEXES: usize>(store: &Store, count: usize) -> Result<Vec<Id<Row<INDEXES>>>> {
    let mut random = Random(3);
    let mut ids = Vec::with_capacity(count);
    while ids.len() < count {
        let mut transaction = store.begin();
        for _ in 0..(count - ids.len()).min(1000) {
            ids.push(transaction.insert(row::<INDEXES>(&mut random))?);
        }
        store.commit(transaction)?.wait()?;
    }
    Ok(ids)
}

fn row<const INDEXES: usize>(random: &mut Random) -> Row<INDEXES> {
    let mut text = |length| (0..length).map(|_| (b'a' + random.below(26) as u8) as char).collect();
    Row { name: text(16), text: text(60), number: number(random), id: Id::unassigned() }
}

fn number(random: &mut Random) -> i64 {
    random.below(1 << 40).cast_signed()
}

/// Nanoseconds per operation of a sample.
struct Time {
    cpu: f64,
    wall: f64,
}

fn samples(rounds: u64, count: usize, mut act: impl FnMut()) -> Vec<Time> {
    // The first sample is a warm-up.
    act();
    (0..rounds).map(|_| timed(count, &mut act)).collect()
}

fn timed(count: usize, act: impl FnOnce()) -> Time {
    let (begun, before) = (Instant::now(), cpu());
    act();
    let (cpu, wall) = (cpu() - before, begun.elapsed().as_secs_f64() * 1e9);
    Time { cpu: cpu / count as f64, wall: wall / count as f64 }
}

fn print(what: &str, samples: &[Time]) -> Result<()> {
    let of = |time: fn(&Time) -> f64| Spread::of(samples.iter().map(time)).context("no samples");
    println!("| {what} | {} | {:.0} |", of(|time| time.cpu)?, of(|time| time.wall)?.median);
    Ok(())
}

/// The CPU time of this thread, in nanoseconds.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// The anonymous resident bytes of this process.
fn resident() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.context("no RssAnon in /proc/self/status")?.parse::<u64>()? << 10)
}

/// A scratch folder next to this program.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let program = std::env::current_exe()?;
        let folder = program.parent().context("a program is in a folder")?;
        let path = folder.join(format!("tables-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl<const INDEXES: usize> Table for Row<INDEXES> {
    const NAME: &'static str = "row";

    fn schema() -> Schema {
        let columns = vec![
            Column::of::<i64>("number"),
            Column::of::<String>("name"),
            Column::of::<String>("text"),
        ];
        let by = |column| Index { columns: vec![column], is_unique: false };
        Schema { columns, indexes: (0..INDEXES).map(by).collect(), ..Schema::new(Self::NAME) }
    }

    fn id(&self) -> RowId {
        self.id.row()
    }

    fn set_id(&mut self, id: RowId) {
        self.id = Id::of(id);
    }

    fn values<'r>(&'r self, to: &mut Vec<Value<'r>>) {
        to.extend([self.number.value(), self.name.value(), self.text.value()]);
    }

    // As generated by `#[derive(Table)]`.
    fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self> {
        if values.len() != 3 {
            return None;
        }
        Some(Self {
            id: Id::of(id),
            number: Field::from_value(values[0])?,
            name: Field::from_value(values[1])?,
            text: Field::from_value(values[2])?,
        })
    }
}
