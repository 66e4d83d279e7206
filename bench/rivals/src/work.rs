//! The workload of every store: rows of 100 bytes in one table with one index.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail, ensure};

/// 16 bytes of id, 8 of a random indexed key, and 76 of content.
pub(crate) struct Row {
    /// Increases from row to row, like the ids of a table.
    pub(crate) id: u128,
    pub(crate) key: u64,
    pub(crate) body: Vec<u8>,
}

/// The time of a commit's acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// After the sync.
    Commit,
    /// After the write; a sync follows within [`INTERVAL`](crate::writers::INTERVAL).
    Interval,
    /// After the write.
    None,
}

/// The measured operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Commits with a number of rows each.
    Write(Durability, usize),
    Read,
}

/// An open store.
pub(crate) trait Rival: Send + Sync {
    /// The writer of one thread.
    fn writer(&self) -> Result<Box<dyn Writer + '_>>;

    /// The reader of one thread.
    fn reader(&self) -> Result<Box<dyn Reader + '_>>;

    /// Makes earlier acknowledged rows durable.
    fn sync(&self) -> Result<()>;

    /// The number of rows.
    fn count(&self) -> Result<u64>;
}

pub(crate) trait Writer: Send {
    /// Adds these rows atomically, and returns when they are acknowledged.
    fn commit(&mut self, rows: Vec<Row>) -> Result<()>;
}

/// Each call sees the newest state, as a page request does.
pub(crate) trait Reader {
    fn row(&mut self, id: u128) -> Result<Option<Row>>;

    /// The newest rows, newest first.
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
        other => bail!("unknown store `{other}`"),
    })
}

impl Work {
    /// Parses names such as `commit-64`, `interval-1`, `none-1` and `read`.
    pub(crate) fn named(name: &str) -> Result<Self> {
        if name == "read" {
            return Ok(Self::Read);
        }
        let (durability, rows) =
            name.split_once('-').with_context(|| format!("unknown work `{name}`"))?;
        let durability = match durability {
            "commit" => Durability::Commit,
            "interval" => Durability::Interval,
            "none" => Durability::None,
            other => bail!("unknown durability `{other}`"),
        };
        let rows = rows.parse().with_context(|| format!("rows of `{name}`"))?;
        ensure!(rows > 0, "a commit needs at least one row");
        Ok(Self::Write(durability, rows))
    }
}

/// Generates random rows, the same for the same seed. Xorshift (Marsaglia 2003); the seed must not
/// be zero.
pub(crate) struct Rows(pub(crate) u64);

impl Rows {
    /// A random number.
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
