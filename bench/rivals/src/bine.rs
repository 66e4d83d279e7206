//! The workload on Bine's store.

use std::path::Path;

use anyhow::{Result, anyhow};
use bine_macros::Table;
use bine_store::{Id, Options, RowId, Store, Sync, Table as _};

use crate::work::{Durability, Reader, Rival, Row, Writer};
use crate::writers::INTERVAL;

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

#[derive(Table)]
#[table(crate = crate::bine::front)]
struct Message {
    id: Id<Message>,
    #[table(index)]
    key: u64,
    body: Vec<u8>,
}

/// Commits of many threads share a sync without further code.
pub(crate) struct Bine(Store);

impl Bine {
    pub(crate) fn open(folder: &Path, durability: Durability) -> Result<Self> {
        let sync = match durability {
            Durability::Commit => Sync::Commit,
            Durability::Interval => Sync::Interval(INTERVAL),
            Durability::None => Sync::None,
        };
        let options = Options::new().table::<Message>().sync(sync);
        let opened = Store::open(folder, options, &mut |_, _| {});
        Ok(Self(opened.map_err(|error| anyhow!(error))?))
    }
}

impl Rival for Bine {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(Own(&self.0)))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(Own(&self.0)))
    }

    fn sync(&self) -> Result<()> {
        // The store syncs by itself at the interval, and when it is closed.
        Ok(())
    }

    fn count(&self) -> Result<u64> {
        Ok(self.0.read().count::<Message>() as u64)
    }
}

struct Own<'s>(&'s Store);

impl Writer for Own<'_> {
    fn commit(&mut self, rows: Vec<Row>) -> Result<()> {
        let changed = self.0.change_once(move |change| {
            for Row { key, body, .. } in rows {
                change.insert(Message { id: Id::unassigned(), key, body })?;
            }
            Ok::<_, bine_store::Error>(())
        });
        changed.wait().map_err(|error| anyhow!("{error}"))
    }
}

impl Reader for Own<'_> {
    fn row(&mut self, id: u128) -> Result<Option<Row>> {
        Ok(self.0.read().get(Id::of(RowId::from_number(id))).map(row))
    }

    fn newest(&mut self, count: usize) -> Result<Vec<Row>> {
        Ok(self.0.read().newest(count).into_iter().map(row).collect())
    }

    fn range(&mut self, key: u64, count: usize) -> Result<Vec<Row>> {
        Ok(self.0.read().range(Message::BY_KEY, key..).take(count).map(row).collect())
    }
}

fn row(message: Message) -> Row {
    Row { id: message.id().number(), key: message.key, body: message.body }
}
