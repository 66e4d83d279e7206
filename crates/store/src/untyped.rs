//! Tables without their row types: reading and changing rows by their columns, for tools such as a
//! data browser.

mod select;

use std::fmt;

use crate::column::OrderPosition;
use crate::error::Error;
use crate::id::RowId;
use crate::key::Key;
use crate::reads::Read;
use crate::schema::{Column, Constant, InvalidValue, OnRemove, Schema, ValueFault};
use crate::select::{Cursor, CursorError, CursorOrder, RowPage, Select, Turn};
use crate::snapshot::Snapshot;
use crate::state::{Definition, Edge, TableState, Values, id_of};
use crate::table_read::TableRead;
use crate::transaction::Transaction;
use crate::value::{Kind, Value};

/// A table of a [`Snapshot`], without its row type.
#[derive(Clone, Copy)]
pub struct TableView<'s> {
    snapshot: &'s Snapshot,
    position: usize,
}

/// A row without its type: its id, and its values in the order of the columns.
#[derive(Clone, PartialEq, Debug)]
pub struct RowView<'s> {
    /// The id of the row.
    pub id: RowId,
    values: Values<'s>,
}

/// An order of the rows of a [`TableView`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TableOrder {
    /// The position of an index in [`Schema::indexes`]; `None` is the order of ids, the oldest
    /// first.
    pub index: Option<usize>,
    /// Whether the order is reversed.
    pub is_descending: bool,
}

/// A column that refers to the rows of a table.
#[derive(Clone, Copy, Debug)]
pub struct ReferringColumn<'s> {
    /// The table that has the column.
    pub table: TableView<'s>,
    /// The position of the column in its schema.
    pub column: usize,
    /// The position of an index that begins with the column.
    pub index: usize,
    /// How the removal of a row affects the rows that refer to it.
    pub on_remove: OnRemove,
}

/// The rows that an estimate of memory examines at each end of the table.
const SAMPLE: usize = 128;
/// The bytes of an entry besides its key and value: its place in the leaf.
const ENTRY: usize = 4;
/// The bytes of an id.
const ID: usize = 16;

impl Snapshot {
    /// The tables, in the order in which the program declares them.
    pub fn tables(&self) -> impl Iterator<Item = TableView<'_>> {
        (0..self.definitions.len()).map(|position| TableView { snapshot: self, position })
    }

    /// The table with this name.
    pub fn table_named(&self, name: &str) -> Option<TableView<'_>> {
        self.tables().find(|table| table.schema().name == name)
    }
}

impl<'s> TableView<'s> {
    /// The schema, with the indexes that the store has added for references.
    pub fn schema(&self) -> &'s Schema {
        &self.definition().schema
    }

    /// The position of the column with this name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.definition().schema.position(name)
    }

    /// Begins a query over the rows. Without an order the oldest row is the first.
    ///
    /// The query finds its rows and records what it has read as one with a row type does.
    pub fn select(&self) -> Select<'s, RowView<'s>> {
        Select::of_rows(self.snapshot, self.position)
    }

    /// The number of rows.
    pub fn count(&self) -> usize {
        self.note_all();
        self.state().rows.len()
    }

    /// An estimate of the memory of the rows and indexes, in bytes, from the oldest and the newest
    /// rows.
    pub fn estimated_bytes(&self) -> usize {
        let state = self.state();
        let rows = &state.rows;
        let row_bytes = |(_, row): (RowId, &[u8])| row.len() + ID + ENTRY;
        let mut total =
            scaled(rows.iter().map(row_bytes), rows.iter().rev().map(row_bytes), rows.len());
        for index in &state.indexes {
            let entries = || index.range(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
            let entry_bytes = |(entry, _): (&[u8], &[u8])| entry.len() + ENTRY;
            total +=
                scaled(entries().map(entry_bytes), entries().rev().map(entry_bytes), rows.len());
        }
        total
    }

    /// The row with this id.
    pub fn row(&self, id: RowId) -> Option<RowView<'s>> {
        self.snapshot.note(Read::Row { table: self.position, id });
        self.snapshot.row(self.position, id).map(|row| self.view(id, row))
    }

    /// The rows whose ids are not below `from` and are below `until`, the oldest first.
    pub fn rows(
        &self,
        from: Option<RowId>,
        until: Option<RowId>,
    ) -> impl DoubleEndedIterator<Item = RowView<'s>> + use<'s> {
        let own = *self;
        self.snapshot.note(Read::Ids {
            table: self.position,
            from: from.unwrap_or_default(),
            until,
        });
        let rows = own.state().rows.slice(from, until);
        rows.map(move |(id, row)| own.view(id_of(id), row))
    }

    /// The columns of all tables that refer to rows of this one.
    pub fn referring_columns(&self) -> impl Iterator<Item = ReferringColumn<'s>> + use<'s> {
        let snapshot = self.snapshot;
        self.definition().referrers.iter().map(move |referrer| ReferringColumn {
            table: TableView { snapshot, position: referrer.table },
            column: referrer.column,
            index: referrer.index,
            on_remove: referrer.on_remove,
        })
    }

    /// The number of rows with these values in the first columns of an index, counted up to
    /// `most`.
    pub fn count_with(&self, index: usize, values: &[Value<'_>], most: usize) -> usize {
        self.note_all();
        let key = key_of(values);
        self.snapshot.ids(self.position, index, &key).take(most).count()
    }

    /// One page of rows in this order, at most `limit` (at least one) of them. `only` are values of
    /// the first columns of the index: only rows with these values. It is empty in the order of
    /// ids.
    ///
    /// As with [`Select::page`](crate::Select::page), a page begins where another one has ended,
    /// whatever was inserted or removed meanwhile.
    ///
    /// # Errors
    ///
    /// The cursor belongs to a different order, or the value of a row is too long for one.
    pub fn page(
        &self,
        order: TableOrder,
        only: &[Value<'_>],
        turn: &Turn,
        limit: usize,
    ) -> Result<RowPage<RowView<'s>>, CursorError> {
        self.note_all();
        let name = self.order_name(order);
        let cursor_order = CursorOrder {
            table: &self.schema().name,
            column: name.as_deref().map(|name| (name, &Kind::Bytes)),
            is_descending: order.is_descending,
        };
        let (at, is_backward) = match turn {
            Turn::First => (None, false),
            Turn::After(cursor) => (Some(cursor.place(&cursor_order)?), false),
            Turn::Before(cursor) => (Some(cursor.place(&cursor_order)?), true),
        };
        let take = |at: Option<&OrderPosition>, is_backward: bool, count: usize| {
            self.take(order.index, only, at, order.is_descending != is_backward, count)
        };
        let limit = limit.max(1);
        let mut is_backward = is_backward;
        let mut may_precede = at.is_some();
        // One row more shows whether a page follows.
        let mut found = take(at, is_backward, limit.saturating_add(1));
        if found.is_empty() && at.is_some() {
            (is_backward, may_precede) = (!is_backward, false);
            found = take(None, is_backward, limit.saturating_add(1));
        }
        let is_more_ahead = found.len() > limit;
        found.truncate(limit);
        let is_more_behind = may_precede
            && found.first().is_some_and(|first| !take(Some(first), !is_backward, 1).is_empty());
        let cursor = |place: Option<&OrderPosition>, exists: bool| {
            let place = place.filter(|_| exists);
            place.map(|place| Cursor::new(&cursor_order, place)).transpose()
        };
        let behind = cursor(found.first(), is_more_behind)?;
        let ahead = cursor(found.last(), is_more_ahead)?;
        if is_backward {
            found.reverse();
        }
        let row = |place: OrderPosition| {
            // An index entry always has its row.
            let row = self.snapshot.row(self.position, place.id)?;
            Some(self.view(place.id, row))
        };
        let rows = found.into_iter().filter_map(row).collect();
        let [previous, next] = if is_backward { [ahead, behind] } else { [behind, ahead] };
        Ok(RowPage { rows, previous, next })
    }

    /// The first rows after a place, at most `count`.
    fn take(
        &self,
        index: Option<usize>,
        only: &[Value<'_>],
        at: Option<&OrderPosition>,
        is_descending: bool,
        count: usize,
    ) -> Vec<OrderPosition> {
        let is_other = |place: &OrderPosition| Some(place) != at;
        let Some(index) = index else {
            let at = at.map(|at| at.id);
            let [from, until] = if is_descending { [None, at] } else { [at, None] };
            let rows = self.state().rows.slice(from, until);
            let places = rows.map(|(id, _)| OrderPosition { key: Key::default(), id: id_of(id) });
            return if is_descending {
                places.rev().take(count).collect()
            } else {
                places.filter(is_other).take(count).collect()
            };
        };
        let first = key_of(only);
        let end = first.end().filter(|_| !only.is_empty());
        let edge = |key: Key| Edge { key, id: None };
        let at = at.map(|at| Edge { key: at.key.clone(), id: Some(at.id) });
        let (from, until) = if is_descending {
            let at = at.filter(|at| end.as_ref().is_none_or(|end| at.key < *end));
            (Some(edge(first)), at.or_else(|| end.map(edge)))
        } else {
            let at = at.filter(|at| at.key >= first);
            (at.or_else(|| Some(edge(first))), end.map(edge))
        };
        let entries = self.state().indexes[index].slice(from.as_ref(), until.as_ref());
        let places = entries.map(|(entry, _)| {
            let key = entry.split_last_chunk::<ID>().map_or(&[][..], |(key, _)| key);
            OrderPosition { key: Key::from_bytes(key), id: id_of(entry) }
        });
        if is_descending {
            places.rev().take(count).collect()
        } else {
            places.filter(is_other).take(count).collect()
        }
    }

    /// The columns of an order, for the checksum of its cursors.
    fn order_name(&self, order: TableOrder) -> Option<String> {
        let schema = self.schema();
        let columns = &schema.indexes[order.index?].columns;
        let names = columns.iter().map(|column| &*schema.columns[*column].name);
        Some(names.collect::<Vec<_>>().join(","))
    }

    fn view(&self, id: RowId, row: &'s [u8]) -> RowView<'s> {
        let mut values = Values::new();
        let definition = self.definition();
        definition.read(row, &mut values).expect("each row is checked before it enters");
        RowView { id, values }
    }

    fn definition(&self) -> &'s Definition {
        &self.snapshot.definitions[self.position]
    }

    /// Whether an earlier query of the table, in another snapshot of the same store, would find the
    /// same rows with the same values now. If so, its read is recorded again.
    pub fn repeat(&self, earlier: &TableRead) -> bool {
        earlier.repeat(self.snapshot, self.position)
    }

    fn state(&self) -> &'s TableState {
        &self.snapshot.state.tables[self.position]
    }

    fn note_all(&self) {
        self.snapshot.note(Read::Table { table: self.position });
    }
}

impl<'s> Select<'s, RowView<'s>> {
    /// Passes the id and the values of each row to `visit`, in order: the rows that
    /// [`rows`](Self::rows) returns, with the same record of what was read. If an index has the rows in
    /// the order of the query, no row is copied.
    ///
    /// Returns what was read, for [`TableView::repeat`], or `None` if the rows had to be sorted.
    pub fn visit(&self, mut visit: impl FnMut(RowId, &[Value<'s>])) -> Option<TableRead> {
        let read = self.visit_in_order(&mut visit);
        if read.is_none() {
            for row in self.rows() {
                visit(row.id, row.values());
            }
        }
        read
    }
}

impl<'s> RowView<'s> {
    pub(crate) const fn new(id: RowId, values: Values<'s>) -> Self {
        Self { id, values }
    }

    /// The values, in the order of the columns.
    pub fn values(&self) -> &[Value<'s>] {
        &self.values
    }
}

/// Changes of rows without their types. All checks of a table apply, as for its row type.
impl Transaction {
    /// Inserts a row with these values, in the order of the columns, and returns its id.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::insert`]; [`Error::NoSuchRow`] without such a table;
    /// [`ValueFault::Unreadable`] if the row type does not accept the values.
    ///
    /// # Panics
    ///
    /// The number of values is not the number of columns.
    pub fn insert_values(&mut self, table: &str, values: &[Value<'_>]) -> Result<RowId, Error> {
        let id = self.new_id();
        let position = self.position_of(table, id)?;
        self.check_type(position, id, values, None)?;
        self.put_values(position, id, values)?;
        Ok(id)
    }

    /// Inserts a row with these values by the names of their columns, and returns its id. All other
    /// columns have their defaults, or are null.
    ///
    /// # Errors
    ///
    /// Those of [`insert_values`](Self::insert_values); [`ValueFault::UnknownColumn`].
    pub fn insert_named(
        &mut self,
        table: &str,
        named: &[(&str, Value<'_>)],
    ) -> Result<RowId, Error> {
        let position = self.position_of(table, RowId::default())?;
        let given = self.positions_of(position, named)?;
        let columns = &self.definitions[position].schema.columns;
        let initial: Vec<_> = columns.iter().map(Column::initial).collect();
        let mut values: Vec<_> = initial.iter().map(Constant::value).collect();
        for (column, value) in given {
            values[column] = value;
        }
        self.insert_values(table, &values)
    }

    /// Replaces the values of these columns, by their names.
    ///
    /// # Errors
    ///
    /// Those of [`update_values`](Self::update_values); [`ValueFault::UnknownColumn`].
    pub fn update_named(
        &mut self,
        table: &str,
        id: RowId,
        named: &[(&str, Value<'_>)],
    ) -> Result<(), Error> {
        let changes = self.positions_of(self.position_of(table, id)?, named)?;
        self.update_values(table, id, &changes)
    }

    /// The columns of named values, by position.
    fn positions_of<'v>(
        &self,
        table: usize,
        named: &[(&str, Value<'v>)],
    ) -> Result<Vec<(usize, Value<'v>)>, Error> {
        let schema = &self.definitions[table].schema;
        let (mut found, mut invalid) = (Vec::with_capacity(named.len()), Vec::new());
        for (name, value) in named {
            match schema.position(name) {
                Some(column) => found.push((column, *value)),
                None => invalid.push(InvalidValue {
                    column: (*name).to_owned().into(),
                    label: None,
                    fault: ValueFault::UnknownColumn,
                }),
            }
        }
        if invalid.is_empty() { Ok(found) } else { Err(Error::InvalidValues(invalid)) }
    }

    /// Replaces the values of these columns, by their positions in the schema.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::update`]; [`Error::NoSuchRow`] without such a table;
    /// [`ValueFault::Unreadable`] if the row type does not accept a value.
    pub fn update_values(
        &mut self,
        table: &str,
        id: RowId,
        changes: &[(usize, Value<'_>)],
    ) -> Result<(), Error> {
        let position = self.position_of(table, id)?;
        self.note(Read::Row { table: position, id });
        let no_such_row = || Error::NoSuchRow { table: table.to_owned().into(), id };
        let row: Box<[u8]> = self.row(position, id).ok_or_else(no_such_row)?.into();
        let definitions = std::sync::Arc::clone(&self.definitions);
        let mut values = Values::new();
        definitions[position]
            .read(&row, &mut values)
            .expect("each row is checked before it enters");
        let before = values.clone();
        for (column, value) in changes {
            values[*column] = *value;
        }
        self.check_type(position, id, &values, Some(&before))?;
        self.put_values(position, id, &values)
    }

    /// Removes a row as [`Transaction::remove`] does.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::remove`]; [`Error::NoSuchRow`] without such a table.
    pub fn remove_row(&mut self, table: &str, id: RowId) -> Result<bool, Error> {
        let position = self.position_of(table, id)?;
        self.remove_at(position, id)
    }

    /// The rows that this transaction has written and removed so far, by table; one row may count
    /// several times.
    pub fn written_rows(&self) -> Vec<(&str, [usize; 2])> {
        let mut counts: Vec<(&str, [usize; 2])> = Vec::new();
        for write in &self.writes {
            let name = &*self.definitions[write.table].schema.name;
            let place = counts.iter().position(|(own, _)| *own == name).unwrap_or_else(|| {
                counts.push((name, [0, 0]));
                counts.len() - 1
            });
            counts[place].1[usize::from(write.row.is_none())] += 1;
        }
        counts
    }

    fn position_of(&self, table: &str, id: RowId) -> Result<usize, Error> {
        let position = self.definitions.iter().position(|own| own.schema.name == table);
        position.ok_or_else(|| Error::NoSuchRow { table: table.to_owned().into(), id })
    }

    /// Checks that the row type accepts values that the schema accepts: a type of the program's own
    /// may accept fewer. `before` are the values of the row so far.
    fn check_type(
        &self,
        table: usize,
        id: RowId,
        values: &[Value<'_>],
        before: Option<&[Value<'_>]>,
    ) -> Result<(), Error> {
        let definition = &self.definitions[table];
        // The schema names its invalid columns better.
        if !definition.schema.check(values).is_empty() || (definition.accepts)(id, values) {
            return Ok(());
        }
        let columns = definition.schema.columns.iter().enumerate();
        let is_refused = |place: usize| {
            let Some(before) = before else { return true };
            let mut one = before.to_vec();
            one[place] = values[place];
            before[place] != values[place] && !(definition.accepts)(id, &one)
        };
        let unreadable = columns.filter(|(place, _)| is_refused(*place));
        let mut invalid: Vec<_> =
            unreadable.map(|(_, column)| column.invalid(ValueFault::Unreadable)).collect();
        if invalid.is_empty() {
            invalid.extend(
                definition
                    .schema
                    .columns
                    .first()
                    .map(|first| first.invalid(ValueFault::Unreadable)),
            );
        }
        Err(Error::InvalidValues(invalid))
    }
}

fn key_of(values: &[Value<'_>]) -> Key {
    let mut key = Key::default();
    for value in values {
        key.push(*value);
    }
    key
}

/// The sum of all sizes, from the first and the last ones.
fn scaled(
    first: impl Iterator<Item = usize>,
    last: impl Iterator<Item = usize>,
    count: usize,
) -> usize {
    let (mut sum, mut sampled) = (0, 0);
    for bytes in first.take(SAMPLE).chain(last.take(SAMPLE)) {
        (sum, sampled) = (sum + bytes, sampled + 1);
    }
    (sum * count).checked_div(sampled).unwrap_or(0)
}

impl fmt::Debug for TableView<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("TableView").field(&self.schema().name).finish()
    }
}

#[cfg(test)]
mod tests;
