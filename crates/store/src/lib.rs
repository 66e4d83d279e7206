//! Decides what is kept: rows in memory, durable by a journal, and what each read depended on.
//!
//! A [`Store`] has tables of the program's own types. Whoever [reads](Store::read) has all of them as they are at one
//! moment; whoever [changes](Store::change) them works on that moment alone and commits: its reads are checked against
//! all commits since, its writes become a record of the journal, and only when that is as durable as was wished can
//! anybody see them. Each look at a table is noted, so that what was read can be told from what a commit changed.
#![deny(unsafe_code)]

mod archive;
mod bytes;
mod change;
mod commit;
mod counts;
pub mod disk;
mod error;
mod guest;
mod id;
mod image;
pub mod journal;
mod key;
mod load;
mod query;
mod readers;
mod reads;
mod record;
mod recorder;
mod row;
mod schema;
mod snapshot;
mod state;
mod store;
mod time;
mod transaction;
mod tree;
mod value;
mod wire;

pub use archive::{Archive, Compacted, DumpError, LONGEST_LINE, LoadError, Loaded};
pub use change::Change;
pub use commit::{Pending, Sync};
pub use counts::Figures;
pub use error::Error;
pub use guest::{Blocks, Guest};
pub use id::{Id, NoId, RowId};
pub use load::Warning;
pub use query::{By, KeyPart, KeyParts};
pub use readers::Readers;
pub use reads::{Changes, ReadSet};
pub use recorder::Recorder;
pub use schema::{Column, Constant, Index, Schema, Table, Wrong};
pub use snapshot::{Found, Snapshot};
pub use store::{Options, Progress, Store};
pub use time::{NoTime, Time};
pub use transaction::Transaction;
pub use value::{Field, Kind, Value, Words};
