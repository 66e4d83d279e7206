//! Figures about the rows of a query: their number, and sums and extremes of a column.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use super::Select;
use super::plan::QueryPlan;
use crate::column::{ColumnOf, Condition, Measure, Number};
use crate::key::Key;
use crate::schema::Table;
use crate::value::{Field, Value};

/// A query whose rows are grouped by the value of a column. [`Select::group_by`] begins it.
///
/// Each method returns the groups in the order of their values, null first. A group has at least
/// one row.
#[must_use = "a query is run by `count`, `sum` and the like"]
pub struct Groups<'s, T, K> {
    select: Select<'s, T>,
    column: usize,
    of: PhantomData<fn() -> K>,
}

/// The sum of the values that exist, and their number.
struct Total<N: Number> {
    sum: N::Sum,
    count: u64,
}

/// The least or greatest value so far.
struct Extreme<P> {
    key: Key,
    value: Option<P>,
}

impl<T> Select<'_, T> {
    /// The number of rows.
    pub fn count(&self) -> usize {
        if self.limit.is_some() {
            return self.take(None, false, self.limit).0.len();
        }
        let plan = self.unordered_plan();
        let bounds = plan.bounds(&self.conditions);
        if self.filters.is_empty() && plan.residual.is_empty() {
            return self.count_entries(bounds);
        }
        let mut count = 0;
        self.scan(&plan, bounds, false, &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        count
    }

    /// Calls `visit` with each row, in any order unless a limit selects the first rows. The rows are
    /// not kept, so their number needs no memory.
    pub fn for_each(&self, mut visit: impl FnMut(T)) {
        if self.limit.is_some() {
            self.rows().into_iter().for_each(visit);
            return;
        }
        let plan = self.unordered_plan();
        self.scan(&plan, plan.bounds(&self.conditions), false, &mut |candidate| {
            visit(candidate.into_row());
            ControlFlow::Continue(())
        });
    }

    /// The plan that narrows the rows most, whatever their order.
    fn unordered_plan(&self) -> QueryPlan {
        QueryPlan::new(self.definition(), &self.conditions, None)
    }
}

impl<'s, T: Table> Select<'s, T> {
    /// The sum of a column: 0 without rows. Integers have an `i128` as their sum, which cannot
    /// overflow; floats are added in the order in which the rows are found.
    pub fn sum<N: Number>(&self, column: ColumnOf<T, N>) -> N::Sum {
        self.total(column).sum
    }

    /// The average of the existing values; `None` without values.
    pub fn average<N: Number>(&self, column: ColumnOf<T, N>) -> Option<f64> {
        self.total(column).average()
    }

    /// The least value of a column; `None` without values.
    ///
    /// With an index that has the rows in the order of the column, the query examines and records
    /// only the rows up to the first one.
    pub fn min<M: Measure>(&self, column: ColumnOf<T, M>) -> Option<M::Plain> {
        self.extreme(column, false)
    }

    /// The greatest value of a column; `None` without values. See [`min`](Self::min).
    pub fn max<M: Measure>(&self, column: ColumnOf<T, M>) -> Option<M::Plain> {
        self.extreme(column, true)
    }

    /// Groups the rows by the value of a column.
    pub fn group_by<K: Field>(self, column: ColumnOf<T, K>) -> Groups<'s, T, K> {
        Groups { select: self, column: column.position, of: PhantomData }
    }

    fn total<N: Number>(&self, column: ColumnOf<T, N>) -> Total<N> {
        let mut total = Total::default();
        self.each(&mut |values| total.add(values[column.position]));
        total
    }

    fn extreme<M: Measure>(&self, column: ColumnOf<T, M>, is_greatest: bool) -> Option<M::Plain> {
        let column = column.position;
        if self.limit.is_some() {
            let mut extreme = Extreme::default();
            self.each(&mut |values| extreme.add(values[column], is_greatest));
            return extreme.value;
        }
        // It is the value of the first row in the order, which an index may yield without a search.
        let mut conditions = self.conditions.clone();
        if self.definition().schema.columns[column].is_optional {
            conditions.push(Condition::is_given(column));
        }
        let by_column = Self {
            conditions,
            filters: self.filters.clone(),
            order: Some(column),
            is_descending: is_greatest,
            ..Self::new(self.snapshot, self.table, self.read)
        };
        let first = by_column.first()?;
        let mut values = Vec::new();
        first.values(&mut values);
        M::Plain::from_value(values[column])
    }

    /// Calls `visit` with the values of each row of the query, in any order unless a limit selects
    /// the first rows.
    fn each(&self, visit: &mut dyn FnMut(&[Value<'_>])) {
        if self.limit.is_some() {
            let (found, _) = self.take(None, false, self.limit);
            for found in found {
                let mut values = Vec::new();
                found.row.values(&mut values);
                visit(&values);
            }
            return;
        }
        let plan = self.unordered_plan();
        self.scan(&plan, plan.bounds(&self.conditions), false, &mut |candidate| {
            visit(candidate.values);
            ControlFlow::Continue(())
        });
    }
}

impl<T: Table, K: Field> Groups<'_, T, K> {
    /// The number of rows in each group.
    pub fn count(&self) -> Vec<(K, usize)> {
        self.fold(|count: &mut usize, _| *count += 1)
    }

    /// The sum of a column in each group. See [`Select::sum`].
    pub fn sum<N: Number>(&self, column: ColumnOf<T, N>) -> Vec<(K, N::Sum)> {
        let totals = self.totals(column).into_iter();
        totals.map(|(value, total)| (value, total.sum)).collect()
    }

    /// The average of a column in each group; `None` if no row of the group has a value.
    pub fn average<N: Number>(&self, column: ColumnOf<T, N>) -> Vec<(K, Option<f64>)> {
        let totals = self.totals(column).into_iter();
        totals.map(|(value, total)| (value, total.average())).collect()
    }

    /// The least value of a column in each group; `None` if no row of the group has a value.
    pub fn min<M: Measure>(&self, column: ColumnOf<T, M>) -> Vec<(K, Option<M::Plain>)> {
        self.extremes(column, false)
    }

    /// The greatest value of a column in each group; `None` if no row of the group has a value.
    pub fn max<M: Measure>(&self, column: ColumnOf<T, M>) -> Vec<(K, Option<M::Plain>)> {
        self.extremes(column, true)
    }

    fn totals<N: Number>(&self, column: ColumnOf<T, N>) -> Vec<(K, Total<N>)> {
        self.fold(|total: &mut Total<N>, values| total.add(values[column.position]))
    }

    fn extremes<M: Measure>(
        &self,
        column: ColumnOf<T, M>,
        is_greatest: bool,
    ) -> Vec<(K, Option<M::Plain>)> {
        let extremes = self.fold(|extreme: &mut Extreme<M::Plain>, values| {
            extreme.add(values[column.position], is_greatest);
        });
        extremes.into_iter().map(|(value, extreme)| (value, extreme.value)).collect()
    }

    /// Combines the values of each group's rows.
    fn fold<A: Default>(&self, mut add: impl FnMut(&mut A, &[Value<'_>])) -> Vec<(K, A)> {
        let mut groups: BTreeMap<Key, (K, A)> = BTreeMap::new();
        let mut key = Key::default();
        self.select.each(&mut |values| {
            let value = values[self.column];
            key.clear();
            key.push(value);
            if let Some((_, own)) = groups.get_mut(&key) {
                return add(own, values);
            }
            let value = K::from_value(value).expect("each row is checked before it enters");
            let mut own = A::default();
            add(&mut own, values);
            groups.insert(key.clone(), (value, own));
        });
        groups.into_values().collect()
    }
}

impl<N: Number> Total<N> {
    fn add(&mut self, value: Value<'_>) {
        if value != Value::Null {
            self.sum = N::add(self.sum, value);
            self.count += 1;
        }
    }

    fn average(&self) -> Option<f64> {
        (self.count > 0).then(|| N::as_float(self.sum) / self.count as f64)
    }
}

impl<P: Field> Extreme<P> {
    fn add(&mut self, value: Value<'_>, is_greatest: bool) {
        if value == Value::Null {
            return;
        }
        let mut key = Key::default();
        key.push(value);
        let is_further = if is_greatest { key > self.key } else { key < self.key };
        if self.value.is_none() || is_further {
            *self = Self { key, value: P::from_value(value) };
        }
    }
}

// Derived implementations would require the same of the type parameters.
impl<N: Number> Default for Total<N> {
    fn default() -> Self {
        Self { sum: N::Sum::default(), count: 0 }
    }
}

impl<P> Default for Extreme<P> {
    fn default() -> Self {
        Self { key: Key::default(), value: None }
    }
}

impl<T, K> fmt::Debug for Groups<'_, T, K> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Groups").field("column", &self.column).finish_non_exhaustive()
    }
}
