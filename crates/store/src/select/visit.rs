//! Visits of the rows that a query finds in the order of an index, without a copy of each row.

use std::ops::ControlFlow;

use super::Select;
use crate::id::RowId;
use crate::table_read::TableRead;
use crate::value::Value;

impl<'s, T> Select<'s, T> {
    /// Passes the id and the values of each row to `visit`, in order, and records the same reads as
    /// [`rows`](Self::rows). Returns `None`, without a call of `visit`, if the rows must be sorted.
    pub(crate) fn visit_in_order(
        &self,
        visit: &mut dyn FnMut(RowId, &[Value<'s>]),
    ) -> Option<TableRead> {
        if self.limit == Some(0) {
            return Some(TableRead::new(self.snapshot, self.table, None));
        }
        let plan = self.plan();
        if !plan.is_ordered {
            return None;
        }
        let bounds = plan.bounds(&self.conditions);
        let mut count = 0;
        let (_, read) = self.scan_unrecorded(&plan, bounds, self.is_descending, &mut |candidate| {
            visit(candidate.id, candidate.values);
            count += 1;
            match self.limit {
                Some(limit) if count >= limit => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        self.snapshot.note(read.clone());
        Some(TableRead::new(self.snapshot, self.table, Some(read)))
    }
}
