//! The workload on `SQLite`: one table clustered by its id, one index, and a write-ahead log.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::work::{Durability, Reader, Rival, Row, Writer};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS message (
        id BLOB PRIMARY KEY, key INTEGER NOT NULL, body BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS message_by_key ON message (key);";
const ONE: &str = "SELECT id, key, body FROM message WHERE id = ?1";
const NEWEST: &str = "SELECT id, key, body FROM message ORDER BY id DESC LIMIT ?1";
const RANGE: &str = "SELECT id, key, body FROM message WHERE key >= ?1 ORDER BY key LIMIT ?2";

/// The time that a connection waits for a writer.
const PATIENCE: Duration = Duration::from_mins(1);

/// One connection per thread.
pub(crate) struct Sqlite {
    path: PathBuf,
    /// FULL syncs the log at each commit; NORMAL only when it is copied into the table; OFF never.
    synchronous: &'static str,
    own: Mutex<Connection>,
}

impl Sqlite {
    pub(crate) fn open(folder: &Path, durability: Durability) -> Result<Self> {
        let path = folder.join("rows.sqlite");
        let synchronous = match durability {
            Durability::Commit => "FULL",
            Durability::Interval => "NORMAL",
            Durability::None => "OFF",
        };
        let own = connect(&path, synchronous)?;
        own.execute_batch(TABLE)?;
        Ok(Self { path, synchronous, own: Mutex::new(own) })
    }

    fn connection(&self) -> Result<Box<Own>> {
        Ok(Box::new(Own(connect(&self.path, self.synchronous)?)))
    }
}

fn connect(path: &Path, synchronous: &str) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", synchronous)?;
    Ok(connection)
}

impl Rival for Sqlite {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(self.connection()?)
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(self.connection()?)
    }

    fn sync(&self) -> Result<()> {
        let own = self.own.lock().ok().context("a thread panicked")?;
        // A checkpoint syncs the log first. `SQLite` has no other call for a sync.
        own.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        Ok(())
    }

    fn count(&self) -> Result<u64> {
        let own = self.own.lock().ok().context("a thread panicked")?;
        let count: i64 = own.query_row("SELECT count(*) FROM message", [], |row| row.get(0))?;
        Ok(count.cast_unsigned())
    }
}

struct Own(Connection);

impl Writer for Own {
    fn commit(&mut self, rows: Vec<Row>) -> Result<()> {
        // A deferred transaction could fail because of a write after its first read.
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let insert = "INSERT INTO message (id, key, body) VALUES (?1, ?2, ?3)";
            let mut insert = transaction.prepare_cached(insert)?;
            for row in rows {
                insert.execute(params![row.id.to_be_bytes(), number(row.key), row.body])?;
            }
        }
        Ok(transaction.commit()?)
    }
}

impl Reader for Own {
    fn row(&mut self, id: u128) -> Result<Option<Row>> {
        let mut query = self.0.prepare_cached(ONE)?;
        Ok(query.query_row([id.to_be_bytes()], row).optional()?)
    }

    fn newest(&mut self, count: usize) -> Result<Vec<Row>> {
        let mut query = self.0.prepare_cached(NEWEST)?;
        let found = query.query_map([i64::try_from(count)?], row)?;
        Ok(found.collect::<rusqlite::Result<_>>()?)
    }

    fn range(&mut self, key: u64, count: usize) -> Result<Vec<Row>> {
        let mut query = self.0.prepare_cached(RANGE)?;
        let found = query.query_map(params![number(key), i64::try_from(count)?], row)?;
        Ok(found.collect::<rusqlite::Result<_>>()?)
    }
}

fn row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let key: i64 = row.get(1)?;
    Ok(Row { id: u128::from_be_bytes(row.get(0)?), key: key.cast_unsigned(), body: row.get(2)? })
}

/// `SQLite` integers are signed; any order works, because the keys are random.
fn number(key: u64) -> i64 {
    key.cast_signed()
}
