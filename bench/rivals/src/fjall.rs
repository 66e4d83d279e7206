//! The workload on fjall: two keyspaces, for rows and keys, written by one batch.

use std::path::Path;

use anyhow::{Context, Result};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::work::{Durability, Reader, Rival, Row, Writer};

/// fjall with its default settings.
pub(crate) struct Fjall {
    database: Database,
    /// By id.
    rows: Keyspace,
    /// By key and id, without a value.
    keys: Keyspace,
    mode: PersistMode,
}

impl Fjall {
    pub(crate) fn open(folder: &Path, durability: Durability) -> Result<Self> {
        let database = Database::builder(folder).open()?;
        let rows = database.keyspace("rows", KeyspaceCreateOptions::default)?;
        let keys = database.keyspace("keys", KeyspaceCreateOptions::default)?;
        let mode = match durability {
            Durability::Commit => PersistMode::SyncAll,
            Durability::Interval | Durability::None => PersistMode::Buffer,
        };
        Ok(Self { database, rows, keys, mode })
    }
}

impl Rival for Fjall {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(Own(self)))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(Own(self)))
    }

    fn sync(&self) -> Result<()> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }

    fn count(&self) -> Result<u64> {
        Ok(self.rows.len()? as u64)
    }
}

struct Own<'f>(&'f Fjall);

impl Writer for Own<'_> {
    fn commit(&mut self, rows: Vec<Row>) -> Result<()> {
        let Fjall { database, rows: by_id, keys, mode } = self.0;
        let mut batch = database.batch().durability(Some(*mode));
        for row in rows {
            let mut value = row.key.to_be_bytes().to_vec();
            value.extend_from_slice(&row.body);
            let mut key = [0; 24];
            key[..8].copy_from_slice(&row.key.to_be_bytes());
            key[8..].copy_from_slice(&row.id.to_be_bytes());
            batch.insert(by_id, row.id.to_be_bytes(), value);
            batch.insert(keys, key, []);
        }
        Ok(batch.commit()?)
    }
}

impl Reader for Own<'_> {
    fn row(&mut self, id: u128) -> Result<Option<Row>> {
        let found = self.0.rows.get(id.to_be_bytes())?;
        found.map(|value| row(&id.to_be_bytes(), &value)).transpose()
    }

    fn newest(&mut self, count: usize) -> Result<Vec<Row>> {
        let mut newest = Vec::with_capacity(count);
        for found in self.0.rows.iter().rev().take(count) {
            let (id, value) = found.into_inner()?;
            newest.push(row(&id, &value)?);
        }
        Ok(newest)
    }

    fn range(&mut self, key: u64, count: usize) -> Result<Vec<Row>> {
        let mut range = Vec::with_capacity(count);
        for found in self.0.keys.range(key.to_be_bytes()..).take(count) {
            let key = found.key()?;
            let id = key.get(8..).context("a key is short")?;
            let value = self.0.rows.get(id)?.context("a key names no row")?;
            range.push(row(id, &value)?);
        }
        Ok(range)
    }
}

fn row(id: &[u8], value: &[u8]) -> Result<Row> {
    let (key, body) = value.split_first_chunk().context("a row is short")?;
    let id = u128::from_be_bytes(id.try_into()?);
    Ok(Row { id, key: u64::from_be_bytes(*key), body: body.to_vec() })
}
