//! Pages of rows, one after another, by the values at their edges (keyset pagination).

use super::cursor::{Cursor, CursorError, CursorOrder};
use super::{Found, Select};

/// Some rows of a query, and the places of the pages before and after them.
#[derive(Clone, PartialEq, Debug)]
pub struct RowPage<T> {
    /// The rows, in order.
    pub rows: Vec<T>,
    /// The place before which the previous page ends; `None` if no row precedes this page.
    pub previous: Option<Cursor>,
    /// The place after which the next page begins; `None` if no row follows this page.
    pub next: Option<Cursor>,
}

/// The page that a client asks for.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Turn {
    /// The first page.
    #[default]
    First,
    /// The page after a place.
    After(Cursor),
    /// The page before a place.
    Before(Cursor),
}

impl Turn {
    /// The turn of two optional arguments of a request, `after` and `before`. `after` counts if
    /// both are given.
    pub fn new(after: Option<Cursor>, before: Option<Cursor>) -> Self {
        match (after, before) {
            (Some(after), _) => Self::After(after),
            (None, Some(before)) => Self::Before(before),
            (None, None) => Self::First,
        }
    }
}

impl<T> Select<'_, T> {
    /// One page of the rows in the order of the query, at most `limit` (at least one) of them.
    ///
    /// A page begins where another one has ended, whatever was inserted or removed meanwhile: no
    /// row that stays in its place appears twice or is omitted. If no row follows a cursor, the
    /// page is the last one; if no row precedes it, the first one.
    ///
    /// # Errors
    ///
    /// The cursor belongs to a different order, or the value of a row is too long for one.
    pub fn page(&self, turn: &Turn, limit: usize) -> Result<RowPage<T>, CursorError> {
        let order = self.cursor_order();
        let (at, is_backward) = match turn {
            Turn::First => (None, false),
            Turn::After(cursor) => (Some(cursor.position(&order)?), false),
            Turn::Before(cursor) => (Some(cursor.position(&order)?), true),
        };
        let limit = limit.max(1);
        // One row more shows whether a page follows.
        let (found, _) = self.take(at, is_backward, Some(limit.saturating_add(1)));
        if found.is_empty() && at.is_some() {
            let (found, _) = self.take(None, !is_backward, Some(limit.saturating_add(1)));
            return self.finish(found, limit, !is_backward, false);
        }
        self.finish(found, limit, is_backward, at.is_some())
    }

    /// The page after a cursor: [`page`](Self::page) with [`Turn::After`].
    ///
    /// # Errors
    ///
    /// Those of [`page`](Self::page).
    pub fn page_after(&self, cursor: &Cursor, limit: usize) -> Result<RowPage<T>, CursorError> {
        self.page(&Turn::After(cursor.clone()), limit)
    }

    /// The page before a cursor: [`page`](Self::page) with [`Turn::Before`].
    ///
    /// # Errors
    ///
    /// Those of [`page`](Self::page).
    pub fn page_before(&self, cursor: &Cursor, limit: usize) -> Result<RowPage<T>, CursorError> {
        self.page(&Turn::Before(cursor.clone()), limit)
    }

    /// Makes a page of the rows that were found in one direction. `may_precede`: whether rows may
    /// exist on the side where the search has begun.
    fn finish(
        &self,
        mut found: Vec<Found<T>>,
        limit: usize,
        is_backward: bool,
        may_precede: bool,
    ) -> Result<RowPage<T>, CursorError> {
        let is_more_ahead = found.len() > limit;
        found.truncate(limit);
        let exists_behind = |found: &Found<T>| {
            may_precede && !self.take(Some(&found.position), !is_backward, Some(1)).0.is_empty()
        };
        let is_more_behind = found.first().is_some_and(exists_behind);
        let order = self.cursor_order();
        let cursor = |found: Option<&Found<T>>, exists: bool| {
            let found = found.filter(|_| exists);
            found.map(|found| Cursor::new(&order, &found.position)).transpose()
        };
        let behind = cursor(found.first(), is_more_behind)?;
        let ahead = cursor(found.last(), is_more_ahead)?;
        if is_backward {
            found.reverse();
        }
        let rows = found.into_iter().map(|found| found.row).collect();
        let [previous, next] = if is_backward { [ahead, behind] } else { [behind, ahead] };
        Ok(RowPage { rows, previous, next })
    }

    fn cursor_order(&self) -> CursorOrder<'_> {
        let columns = &self.definition().schema.columns;
        let column = self.order_column().map(|column| &columns[column]);
        CursorOrder {
            table: &self.definition().schema.name,
            column: column.map(|column| (&*column.name, &column.kind)),
            is_descending: self.is_descending,
        }
    }
}
