//! Decides what is kept: rows in memory, durable by a journal, and what each read depended on.
#![deny(unsafe_code)]

mod bytes;
mod id;
mod key;
pub mod journal;
mod row;
mod value;

pub use id::{Id, NoId, RowId};
pub use value::{Field, Kind, Time, Value, Words};
