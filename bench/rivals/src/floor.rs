//! The floor: the minimum of work for durable rows, an append of their bytes and fdatasync.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Result, bail};

use crate::work::{Durability, Reader, Rival, Row, Writer};

/// A file that is written and never read.
pub(crate) struct Floor {
    file: File,
    durability: Durability,
}

impl Floor {
    pub(crate) fn open(folder: &Path, durability: Durability) -> Result<Self> {
        let file = File::options().append(true).create(true).open(folder.join("rows"))?;
        Ok(Self { file, durability })
    }
}

impl Rival for Floor {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(Own { floor: self, bytes: Vec::new() }))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        bail!("the floor cannot read")
    }

    fn sync(&self) -> Result<()> {
        Ok(self.file.sync_data()?)
    }

    fn count(&self) -> Result<u64> {
        Ok(self.file.metadata()?.len() / 100)
    }
}

struct Own<'f> {
    floor: &'f Floor,
    bytes: Vec<u8>,
}

impl Writer for Own<'_> {
    fn commit(&mut self, rows: Vec<Row>) -> Result<()> {
        self.bytes.clear();
        for row in &rows {
            self.bytes.extend_from_slice(&row.id.to_be_bytes());
            self.bytes.extend_from_slice(&row.key.to_be_bytes());
            self.bytes.extend_from_slice(&row.body);
        }
        (&self.floor.file).write_all(&self.bytes)?;
        if self.floor.durability == Durability::Commit {
            self.floor.sync()?;
        }
        Ok(())
    }
}
