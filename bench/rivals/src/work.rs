//! Decides what every store has to do: rows of 100 bytes in one table, with one index.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail, ensure};

/// 16 bytes of id, 8 of an indexed key drawn by chance, and 76 of whatever it is.
pub(crate) struct Row {
    /// Rises from row to row, as a table's own ids do.
    pub(crate) id: u128,
    pub(crate) key: u64,
    pub(crate) body: Vec<u8>,
}

/// When a commit is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// When it outlives the machine.
    Commit,
    /// When it is written; it outlives the machine within [`INTERVAL`](crate::writers::INTERVAL).
    Interval,
    /// When it is written.
    None,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Commits of so many rows each.
    Write(Durability, usize),
    Read,
}

/// One of the stores that are compared, open.
pub(crate) trait Rival: Send + Sync {
    /// What one thread writes with.
    fn writer(&self) -> Result<Box<dyn Writer + '_>>;

    /// What one thread reads with.
    fn reader(&self) -> Result<Box<dyn Reader + '_>>;

    /// Makes durable what was acknowledged earlier.
    fn sync(&self) -> Result<()>;

    /// How many rows there are.
    fn count(&self) -> Result<u64>;
}

pub(crate) trait Writer: Send {
    /// Adds these rows, all or none, and returns when they are acknowledged.
    fn commit(&mut self, rows: Vec<Row>) -> Result<()>;
}

/// Each call sees the newest state, as a page does that is asked for.
pub(crate) trait Reader {
    fn row(&mut self, id: u128) -> Result<Option<Row>>;

    /// The youngest rows, the youngest first.
    fn newest(&mut self, count: usize) -> Result<Vec<Row>>;

    /// The first rows of the index from this key on.
    fn range(&mut self, key: u64, count: usize) -> Result<Vec<Row>>;
}

/// Opens the store of this name.
pub(crate) fn open(name: &str, folder: &Path, durability: Durability) -> Result<Box<dyn Rival>> {
    Ok(match name {
        "floor" => Box::new(crate::floor::Floor::open(folder, durability)?),
        "bine" => Box::new(crate::bine::Bine::open(folder, durability)?),
        "redb" => Box::new(crate::redb::Redb::open(folder, durability)?),
        "fjall" => Box::new(crate::fjall::Fjall::open(folder, durability)?),
        "sqlite" => Box::new(crate::sqlite::Sqlite::open(folder, durability)?),
        other => bail!("no store `{other}`"),
    })
}

impl Work {
    /// `commit-64`, `interval-1`, `none-1`, `read` and the like.
    pub(crate) fn named(name: &str) -> Result<Self> {
        if name == "read" {
            return Ok(Self::Read);
        }
        let (durability, rows) =
            name.split_once('-').with_context(|| format!("no work `{name}`"))?;
        let durability = match durability {
            "commit" => Durability::Commit,
            "interval" => Durability::Interval,
            "none" => Durability::None,
            other => bail!("no durability `{other}`"),
        };
        let rows = rows.parse().with_context(|| format!("rows of `{name}`"))?;
        ensure!(rows > 0, "a commit has rows");
        Ok(Self::Write(durability, rows))
    }
}

/// Makes rows by chance, the same for the same seed. Xorshift (Marsaglia 2003); the seed must not be zero.
pub(crate) struct Rows(pub(crate) u64);

impl Rows {
    /// A number drawn by chance.
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn next(&mut self, count: usize) -> Vec<Row> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let first = LAST.fetch_add(count as u64, Ordering::Relaxed);
        let made = (0..count as u64).map(|place| {
            let mut body = Vec::with_capacity(80);
            while body.len() < 76 {
                body.extend_from_slice(&self.draw().to_le_bytes());
            }
            body.truncate(76);
            let id = u128::from(first + place) << 64 | u128::from(self.draw());
            Row { id, key: self.draw(), body }
        });
        made.collect()
    }
}
