//! Queries over a table without its row type: conditions and orders name columns by position.

use std::ops::{Bound, RangeBounds};

use super::RowView;
use crate::column::Condition;
use crate::schema::InvalidValue;
use crate::select::{ReadRow, Select};
use crate::snapshot::Snapshot;
use crate::value::Value;

impl<'s> Select<'s, RowView<'s>> {
    /// Begins a query over the table at this position.
    pub(crate) fn of_rows(snapshot: &'s Snapshot, table: usize) -> Self {
        let read: ReadRow<'s, RowView<'s>> = |id, values| RowView::new(id, values.into());
        Self::new(snapshot, table, read)
    }

    /// Only rows with this value in the column.
    ///
    /// # Errors
    ///
    /// The value is not of the column's type.
    ///
    /// # Panics
    ///
    /// The table has no column at this position.
    pub fn equals_value(mut self, column: usize, value: Value<'_>) -> Result<Self, InvalidValue> {
        self.check_type(column, value)?;
        self.conditions.push(Condition::equality::<Value<'_>>(column, &value));
        Ok(self)
    }

    /// Only rows whose value in the column is within this range. Null is below all values.
    ///
    /// # Errors
    ///
    /// A bound is not of the column's type.
    ///
    /// # Panics
    ///
    /// The table has no column at this position.
    pub fn within_values<'v>(
        mut self,
        column: usize,
        range: impl RangeBounds<Value<'v>>,
    ) -> Result<Self, InvalidValue> {
        for bound in [range.start_bound(), range.end_bound()] {
            if let Bound::Included(value) | Bound::Excluded(value) = bound {
                self.check_type(column, *value)?;
            }
        }
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        self.conditions.push(Condition::range::<Value<'_>, Value<'_>>(column, &bounds));
        Ok(self)
    }

    /// Orders the rows by the column at this position, and by the id where its values are equal.
    ///
    /// # Panics
    ///
    /// The table has no column at this position.
    pub fn order_by_column(mut self, column: usize, is_descending: bool) -> Self {
        assert!(column < self.definition().schema.columns.len(), "there is no column {column}");
        self.order = Some(column);
        self.is_descending = is_descending;
        self
    }

    /// Checks that a value is of the column's type: one of another type is never equal, and has no
    /// place in the order. Null is, in each column.
    fn check_type(&self, column: usize, value: Value<'_>) -> Result<(), InvalidValue> {
        self.definition().schema.columns[column].check_type(value)
    }
}
