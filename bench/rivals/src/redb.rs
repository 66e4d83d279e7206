//! The workload on redb: two tables, for rows and keys, written by one transaction.

use std::path::Path;

use anyhow::Result;
use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition};

use crate::work::{Durability, Reader, Rival, Row, Writer};

const ROWS: TableDefinition<'_, u128, (u64, &[u8])> = TableDefinition::new("rows");
const KEYS: TableDefinition<'_, (u64, u128), ()> = TableDefinition::new("keys");

/// redb does not even write commits without durability before a later durable commit.
pub(crate) struct Redb {
    database: Database,
    durability: redb::Durability,
}

impl Redb {
    pub(crate) fn open(folder: &Path, durability: Durability) -> Result<Self> {
        let database = Database::create(folder.join("rows.redb"))?;
        let durability = match durability {
            Durability::Commit => redb::Durability::Immediate,
            Durability::Interval | Durability::None => redb::Durability::None,
        };
        let own = Self { database, durability };
        // Creates the tables for the first reader.
        own.write(Vec::new(), redb::Durability::Immediate)?;
        Ok(own)
    }

    fn write(&self, added: Vec<Row>, durability: redb::Durability) -> Result<()> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(durability)?;
        {
            let mut rows = transaction.open_table(ROWS)?;
            let mut keys = transaction.open_table(KEYS)?;
            for row in added {
                rows.insert(row.id, (row.key, &row.body[..]))?;
                keys.insert((row.key, row.id), ())?;
            }
        }
        Ok(transaction.commit()?)
    }
}

impl Rival for Redb {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(Own(self)))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(Own(self)))
    }

    fn sync(&self) -> Result<()> {
        self.write(Vec::new(), redb::Durability::Immediate)
    }

    fn count(&self) -> Result<u64> {
        Ok(self.database.begin_read()?.open_table(ROWS)?.len()?)
    }
}

struct Own<'r>(&'r Redb);

impl Writer for Own<'_> {
    fn commit(&mut self, rows: Vec<Row>) -> Result<()> {
        self.0.write(rows, self.0.durability)
    }
}

impl Reader for Own<'_> {
    fn row(&mut self, id: u128) -> Result<Option<Row>> {
        let rows = self.0.database.begin_read()?.open_table(ROWS)?;
        Ok(rows.get(id)?.map(|found| row(id, found.value())))
    }

    fn newest(&mut self, count: usize) -> Result<Vec<Row>> {
        let rows = self.0.database.begin_read()?.open_table(ROWS)?;
        let mut newest = Vec::with_capacity(count);
        for found in rows.iter()?.rev().take(count) {
            let (id, found) = found?;
            newest.push(row(id.value(), found.value()));
        }
        Ok(newest)
    }

    fn range(&mut self, key: u64, count: usize) -> Result<Vec<Row>> {
        let transaction = self.0.database.begin_read()?;
        let (rows, keys) = (transaction.open_table(ROWS)?, transaction.open_table(KEYS)?);
        let mut range = Vec::with_capacity(count);
        for found in keys.range((key, 0)..)?.take(count) {
            let (_, id) = found?.0.value();
            range.extend(rows.get(id)?.map(|found| row(id, found.value())));
        }
        Ok(range)
    }
}

fn row(id: u128, (key, body): (u64, &[u8])) -> Row {
    Row { id, key, body: body.to_vec() }
}
