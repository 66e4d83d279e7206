//! The database of the pages: the tables of Bine. The benchmarks have the same pages with a module for
//! `PostgreSQL` in its place.

pub(crate) use bine::store::{Error as DatabaseError, RowIter, Snapshot, Store, Transaction};
