//! An embedded store: tables in memory, durability through a journal, and tracking of what each
//! read depends on.
//!
//! A [`Store`] holds tables of the program's own types. [Reading](Store::read) returns a snapshot
//! of all tables at one moment. A [change](Store::change) runs as a transaction on such a snapshot.
//! At commit the store checks the transaction's reads against all commits since it began
//! (serializable isolation) and appends its writes to the journal. Readers see them once they are
//! as durable as the configured [`Sync`] asks. Each read is recorded in a [`ReadSet`], so that the
//! store can decide whether a commit affects an earlier result.
//!
//! ```
//! use bine_store::{Column, Field, Id, Options, RowId, Schema, Store, Table, Value};
//!
//! /// `#[derive(Table)]` of the crate `bine` generates this `impl`.
//! struct Note {
//!     id: Id<Note>,
//!     text: String,
//! }
//!
//! impl Table for Note {
//!     const NAME: &'static str = "notes";
//!
//!     fn schema() -> Schema {
//!         Schema { columns: vec![Column::of::<String>("text")], ..Schema::new(Self::NAME) }
//!     }
//!
//!     fn id(&self) -> RowId {
//!         self.id.row()
//!     }
//!
//!     fn set_id(&mut self, id: RowId) {
//!         self.id = Id::of(id);
//!     }
//!
//!     fn values<'r>(&'r self, to: &mut Vec<Value<'r>>) {
//!         to.push(self.text.value());
//!     }
//!
//!     fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self> {
//!         let [text] = values else { return None };
//!         Some(Self { id: Id::of(id), text: Field::from_value(*text)? })
//!     }
//! }
//!
//! let store = Store::in_memory(Options::new().table::<Note>())?;
//! let id = store.insert(Note { id: Id::unassigned(), text: "hello".to_owned() }).wait()?;
//! assert_eq!(store.read().get(id).unwrap().text, "hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod archive;
mod bytes;
mod change;
mod checkpoint;
mod column;
mod commit;
mod contents;
mod declaration;
pub mod disk;
mod error;
mod extension;
mod id;
mod index_builder;
pub mod journal;
mod key;
mod load;
#[cfg(feature = "html")]
mod markup;
mod options;
mod query;
mod readers;
mod reads;
mod record;
mod recorder;
mod removal;
mod replica;
mod row;
mod schema;
mod select;
mod serialization;
mod snapshot;
mod state;
mod stats;
mod store;
mod stream;
mod table_read;
mod time;
mod transaction;
mod tree;
mod untyped;
mod value;

pub use archive::{Archive, CompactSummary, DumpError, LoadError, LoadSummary, MAX_LINE_LENGTH};
pub use change::Change;
pub use column::{ColumnOf, Measure, Number, Order};
pub use commit::{DeclareError, Delivered, Pending, Sync};
pub use contents::{ContentsSize, Difference, StoreContents};
pub use error::Error;
pub use extension::{Extension, SnapshotBlocks};
pub use id::{Id, ParseIdError, RowId};
pub use load::{Progress, Warning};
pub use options::Options;
pub use query::{IndexOf, KeyPart, KeyParts};
pub use readers::Readers;
pub use reads::{Changes, ReadSet};
pub use recorder::Recorder;
pub use replica::{Replica, ReplicaSnapshot};
pub use schema::{Column, Constant, Index, InvalidValue, OnRemove, Schema, Table, ValueFault};
pub use select::{
    Cursor, CursorError, Explanation, Groups, Joined, Reference, RowPage, Select, Turn,
};
pub use snapshot::{RowIter, Snapshot};
pub use stats::{Activity, Stats};
pub use store::Store;
pub use table_read::TableRead;
pub use time::{ParseTimeError, Time};
pub use transaction::Transaction;
pub use untyped::{ReferringColumn, RowView, TableOrder, TableView};
pub use value::{EnumNames, Field, Kind, Value};
