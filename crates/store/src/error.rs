//! Decides what a program is told of a change that was not made.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::id::RowId;
use crate::schema::Wrong;

/// Why a change was not made. Nothing of it was.
#[derive(Clone, PartialEq, Debug)]
pub enum Error {
    /// A column does not take its value.
    Wrong(Wrong),
    /// Another row has that already, and no two may.
    Taken {
        /// The table.
        table: Cow<'static, str>,
        /// The columns that would be the same.
        columns: Vec<Cow<'static, str>>,
    },
    /// A column names a row that is not there.
    NoSuchRow {
        /// The table of the row that is not there.
        table: Cow<'static, str>,
        /// Its id.
        id: RowId,
    },
    /// Other rows name the one that was to be removed.
    StillNamed {
        /// A table that has such rows.
        by: Cow<'static, str>,
    },
    /// What was looked at was changed by another, as often as it was tried.
    Conflict,
    /// Too many changes wait for the disk.
    Busy,
    /// A row, or all of a commit, is too much.
    TooLarge,
    /// The disk has no room. Reading goes on, and writing too as soon as there is room.
    Full,
    /// The disk has failed. Nothing more is written until the program starts anew.
    Broken(Arc<str>),
    /// The store is closed.
    Closed,
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(wrong) => wrong.fmt(to),
            Self::Taken { table, columns } => {
                write!(to, "another row of `{table}` has the same `{}`", columns.join("`, `"))
            }
            Self::NoSuchRow { table, id } => write!(to, "there is no row {id} in `{table}`"),
            Self::StillNamed { by } => write!(to, "rows of `{by}` name this row still"),
            Self::Conflict => to.write_str("others changed the same at the same time; try again"),
            Self::Busy => to.write_str("too many changes wait for the disk; try again"),
            Self::TooLarge => to.write_str("a row has at most 8 MB, and a commit 64"),
            Self::Full => to.write_str("the disk is full: nothing was written"),
            Self::Broken(reason) => {
                write!(to, "the disk failed ({reason}): nothing is written until a restart")
            }
            Self::Closed => to.write_str("the store is closed"),
        }
    }
}

impl std::error::Error for Error {}

impl From<Wrong> for Error {
    fn from(wrong: Wrong) -> Self {
        Self::Wrong(wrong)
    }
}
