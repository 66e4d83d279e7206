//! The choice of an index for a query.

use std::fmt;

use crate::column::{Condition, OrderPosition};
use crate::id::RowId;
use crate::key::Key;
use crate::state::{Definition, Edge};

/// How a query finds its rows.
#[derive(Debug)]
pub(super) struct QueryPlan {
    /// The index that is scanned; `None` for all rows of the table.
    pub(super) index: Option<IndexPlan>,
    /// Whether the scan yields the rows in the order of the query.
    pub(super) is_ordered: bool,
    /// The conditions that the scan does not imply, by their positions.
    pub(super) residual: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct IndexPlan {
    pub(super) position: usize,
    /// The key of the columns with an equality, at the start of the index.
    prefix: Key,
    /// The keys of the columns with an equality after the ordered column.
    suffix: Key,
    /// The position of the range condition on the column after the prefix.
    range: Option<usize>,
}

/// The part of a table that a scan reads.
#[derive(Clone, Debug)]
pub(super) enum Bounds {
    Rows { from: Option<RowId>, until: Option<RowId> },
    Index { position: usize, from: Option<Edge>, until: Option<Edge> },
}

/// How a query is answered: the index, whether rows are sorted, and the number of rows examined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// The table.
    pub table: String,
    /// The columns of the index that is used; `None` if the whole table is read in the order of
    /// ids.
    pub index: Option<Vec<String>>,
    /// Whether the rows are sorted, because they are not found in the order of the query.
    pub is_sorted: bool,
    /// The number of rows that the query has examined.
    pub examined: usize,
    /// The number of rows that the query has returned.
    pub returned: usize,
}

impl QueryPlan {
    /// Chooses the index that narrows the rows most: by the most equalities, then by a range, then
    /// the one that yields the order. Of equal ones, the first.
    pub(super) fn new(
        definition: &Definition,
        conditions: &[Condition],
        order: Option<usize>,
    ) -> Self {
        let equality = |column: usize| {
            conditions.iter().position(|own| own.is_equality && own.column == column)
        };
        // Rows with the same value are in the order of their ids.
        let order = order.filter(|column| equality(*column).is_none());
        let all = || (0..conditions.len()).collect::<Vec<_>>();
        let mut best = Self { index: None, is_ordered: order.is_none(), residual: all() };
        let mut best_rank = (0, false, best.is_ordered);
        for (position, index) in definition.schema.indexes.iter().enumerate() {
            let (mut prefix, mut suffix, mut residual) = (Key::default(), Key::default(), all());
            let equal = index.columns.iter().map_while(|column| equality(*column));
            let equal: Vec<usize> = equal.collect();
            for condition in &equal {
                prefix.append(conditions[*condition].from.as_ref().expect("it has a value"));
                residual.retain(|residual| residual != condition);
            }
            let mut rest = index.columns[equal.len()..].iter().copied();
            let next = rest.next();
            let is_range = |own: &Condition| !own.is_equality && Some(own.column) == next;
            let range = conditions.iter().position(is_range);
            residual.retain(|residual| Some(*residual) != range);
            // The remaining columns must be constant, because ties are ordered by id.
            let constant = |column| conditions[equality(column)?].from.clone();
            let is_ordered = next == order
                && rest.all(|column| constant(column).map(|key| suffix.append(&key)).is_some());
            let rank = (equal.len(), range.is_some(), is_ordered);
            if rank > best_rank {
                let index = Some(IndexPlan { position, prefix, suffix, range });
                (best, best_rank) = (Self { index, is_ordered, residual }, rank);
            }
        }
        best
    }

    /// The bounds of all rows that the plan may find.
    pub(super) fn bounds(&self, conditions: &[Condition]) -> Bounds {
        let Some(index) = &self.index else { return Bounds::Rows { from: None, until: None } };
        let IndexPlan { position, prefix, range, .. } = index;
        let range = range.map(|range| &conditions[range]);
        let start = |key: &Key| {
            let mut start = prefix.clone();
            start.append(key);
            start
        };
        let from = match range.and_then(|range| range.from.as_ref()) {
            Some(from) => Some(start(from)),
            None => (!prefix.bytes().is_empty()).then(|| prefix.clone()),
        };
        let until = match range.and_then(|range| range.until.as_ref()) {
            Some(until) => Some(start(until)),
            None => prefix.end(),
        };
        let edge = |key| Edge { key, id: None };
        Bounds::Index { position: *position, from: from.map(edge), until: until.map(edge) }
    }

    /// The key of a position's row in the index of an ordered plan.
    fn key_at(index: &IndexPlan, position: &OrderPosition) -> Key {
        let mut key = index.prefix.clone();
        key.append(&position.key);
        key.append(&index.suffix);
        key
    }

    /// Narrows the bounds of an ordered plan to the rows after a position, or before it.
    pub(super) fn narrow(
        &self,
        bounds: Bounds,
        position: &OrderPosition,
        is_backward: bool,
    ) -> Bounds {
        let Some(index) = &self.index else { return narrow_rows(bounds, position.id, is_backward) };
        let Bounds::Index { position: number, from, until } = bounds else { return bounds };
        let key = Self::key_at(index, position);
        if is_backward {
            let end = Edge { key, id: Some(position.id) };
            let is_within = until.as_ref().is_none_or(|until| is_below(&end, until));
            let until = if is_within { Some(end) } else { until };
            return Bounds::Index { position: number, from, until };
        }
        let start = after(key, position.id);
        let is_within = from.as_ref().is_none_or(|from| !is_below(&start, from));
        let from = if is_within { Some(start) } else { from };
        Bounds::Index { position: number, from, until }
    }
}

impl Bounds {
    /// The bounds of a scan that has ended at the row with this key and id.
    pub(super) fn cut(self, key: Key, id: RowId, is_backward: bool) -> Self {
        match self {
            Self::Rows { until, .. } if is_backward => Self::Rows { from: Some(id), until },
            Self::Rows { from, until } => Self::Rows { from, until: next(id).or(until) },
            Self::Index { position, until, .. } if is_backward => {
                Self::Index { position, from: Some(Edge { key, id: Some(id) }), until }
            }
            Self::Index { position, from, .. } => {
                Self::Index { position, from, until: Some(after(key, id)) }
            }
        }
    }
}

fn narrow_rows(bounds: Bounds, id: RowId, is_backward: bool) -> Bounds {
    match bounds {
        Bounds::Rows { from, until } if is_backward => {
            Bounds::Rows { from, until: Some(until.map_or(id, |until| until.min(id))) }
        }
        Bounds::Rows { until, .. } => match next(id) {
            Some(from) => Bounds::Rows { from: Some(from), until },
            None => Bounds::Rows { from: Some(id), until: Some(id) },
        },
        bounds @ Bounds::Index { .. } => bounds,
    }
}

/// The place after a row's entry.
fn after(key: Key, id: RowId) -> Edge {
    match (next(id), key.end()) {
        (None, Some(key)) => Edge { key, id: None },
        (next, _) => Edge { key, id: next.or(Some(id)) },
    }
}

/// The next number after an id.
fn next(id: RowId) -> Option<RowId> {
    id.number().checked_add(1).map(RowId::from_number)
}

/// Whether a place is before another one.
fn is_below(edge: &Edge, other: &Edge) -> bool {
    (&edge.key, edge.id) < (&other.key, other.id)
}

impl fmt::Display for Explanation {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, index, is_sorted, examined, returned } = self;
        match index {
            Some(columns) => write!(to, "`{table}` by the index of `{}`", columns.join("`, `"))?,
            None => write!(to, "all of `{table}`")?,
        }
        let sorted = if *is_sorted { ", sorted" } else { "" };
        write!(to, "{sorted}: {examined} examined, {returned} returned")
    }
}
