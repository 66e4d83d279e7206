//! Visits of the rows that a query finds in the order of an index, without a copy of each row.

use std::ops::ControlFlow;

use super::Select;
use crate::id::RowId;
use crate::value::Value;

impl<'s, T> Select<'s, T> {
    /// Passes the id and the values of each row to `visit`, in order, and records the same reads as
    /// [`rows`](Self::rows). Returns false, and has visited none, if the rows must be sorted.
    pub(crate) fn visit_in_order(&self, visit: &mut dyn FnMut(RowId, &[Value<'s>])) -> bool {
        if self.limit == Some(0) {
            return true;
        }
        let plan = self.plan();
        if !plan.is_ordered {
            return false;
        }
        let bounds = plan.bounds(&self.conditions);
        let mut count = 0;
        self.scan(&plan, bounds, self.is_descending, &mut |candidate| {
            visit(candidate.id, candidate.values);
            count += 1;
            match self.limit {
                Some(limit) if count >= limit => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        true
    }
}
