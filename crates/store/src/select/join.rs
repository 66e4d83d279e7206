//! Joins along references: rows together with the rows that they refer to.

use std::collections::BTreeSet;
use std::fmt;

use super::Select;
use crate::id::{Id, RowId};
use crate::schema::Table;
use crate::snapshot::Snapshot;

/// A reference from one row to another one: an `Id`, or an `Option` of it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not refer to a row",
    label = "this is neither an `Id` nor an `Option` of one"
)]
pub trait Reference {
    /// The table of the other row.
    type Table: Table;

    /// The other row: optional if the reference is.
    type Row;

    #[doc(hidden)]
    fn id(&self) -> Option<Id<Self::Table>>;

    /// The result for the row that was found. `None` omits the pair.
    #[doc(hidden)]
    fn joined(row: Option<Self::Table>) -> Option<Self::Row>;
}

/// A query for rows together with the rows that they refer to. [`Select::with`] begins it.
#[must_use = "a query is run by `rows` or `first`"]
pub struct Joined<'s, T, F> {
    select: Select<'s, T>,
    reference: F,
}

impl<'s, T: Table> Select<'s, T> {
    /// Together with each row, the row that it refers to: `with(|message| message.author)`.
    ///
    /// The result is optional if the reference is. The store checks references, so a row can lack
    /// its other row only after a load by hand; it is omitted then.
    pub fn with<R: Reference, F: Fn(&T) -> R>(self, reference: F) -> Joined<'s, T, F> {
        Joined { select: self, reference }
    }
}

impl<T: Table, R: Reference, F: Fn(&T) -> R> Joined<'_, T, F> {
    /// The pairs of rows, in the order of the query.
    pub fn rows(&self) -> Vec<(T, R::Row)> {
        self.join(self.select.rows())
    }

    /// The first pair.
    pub fn first(&self) -> Option<(T, R::Row)> {
        self.join(self.select.first().into_iter().collect()).pop()
    }

    fn join(&self, rows: Vec<T>) -> Vec<(T, R::Row)> {
        let mut lookups = Lookups { snapshot: self.select.snapshot, noted: BTreeSet::new() };
        let joined = rows.into_iter().filter_map(|row| {
            let id = (self.reference)(&row).id();
            let other = R::joined(id.and_then(|id| lookups.get(id)))?;
            Some((row, other))
        });
        joined.collect()
    }
}

/// Lookups that record each row once: the references of many rows are to few rows, and a read set
/// with too many reads is coarsened to the whole table.
struct Lookups<'s> {
    snapshot: &'s Snapshot,
    noted: BTreeSet<RowId>,
}

impl Lookups<'_> {
    fn get<T: Table>(&mut self, id: Id<T>) -> Option<T> {
        self.snapshot.look_up(id, self.noted.insert(id.row()))
    }
}

impl<T: Table> Reference for Id<T> {
    type Table = T;
    type Row = T;

    fn id(&self) -> Option<Self> {
        Some(*self)
    }

    fn joined(row: Option<T>) -> Option<T> {
        row
    }
}

impl<T: Table> Reference for Option<Id<T>> {
    type Table = T;
    type Row = Option<T>;

    fn id(&self) -> Self {
        *self
    }

    fn joined(row: Option<T>) -> Option<Option<T>> {
        Some(row)
    }
}

impl<T, F> fmt::Debug for Joined<'_, T, F> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Joined").field("select", &self.select).finish_non_exhaustive()
    }
}
