//! Queries over one table: conditions, an order, a limit, and the rows or figures that result.

mod aggregate;
mod cursor;
mod join;
mod page;
mod plan;
mod scan;
mod visit;

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;
use std::ops::{ControlFlow, RangeBounds};
use std::rc::Rc;

pub use aggregate::Groups;
pub(crate) use cursor::CursorOrder;
pub use cursor::{Cursor, CursorError};
pub use join::{Joined, Reference};
pub use page::{RowPage, Turn};
pub use plan::Explanation;

use crate::column::{ColumnOf, Condition, Order, OrderPosition};
use crate::id::RowId;
use crate::key::Key;
use crate::query::KeyPart;
use crate::schema::Table;
use crate::snapshot::Snapshot;
use crate::state::Definition;
use crate::value::Value;
use plan::QueryPlan;
use scan::Candidate;

/// A query over the rows of one table. [`Snapshot::select`] begins it.
///
/// A query uses the index that narrows its rows most; without one it examines all rows. If no index
/// has the rows in the wanted order, it sorts them; with a limit it then keeps only as many rows.
/// [`explain`](Self::explain) shows the choice.
///
/// The query records what it has read: with an index for the conditions and the order, the part of
/// the index up to the last row that it returns; otherwise all rows that it has examined.
#[must_use = "a query is run by `rows`, `first`, `count` and the like"]
pub struct Select<'s, T> {
    snapshot: &'s Snapshot,
    table: usize,
    read: ReadRow<'s, T>,
    pub(crate) conditions: Vec<Condition>,
    filters: Vec<Filter<'s, T>>,
    pub(crate) order: Option<usize>,
    pub(crate) is_descending: bool,
    limit: Option<usize>,
}

/// Makes a row of its values.
pub(crate) type ReadRow<'s, T> = fn(RowId, &[Value<'s>]) -> T;

type Filter<'s, T> = Rc<dyn Fn(&T) -> bool + 's>;

/// A row with its place in the order of the query.
struct Found<T> {
    position: OrderPosition,
    row: T,
}

/// A row in a heap whose greatest element is the row that is last in the order of the query.
struct Ranked<T> {
    found: Found<T>,
    is_descending: bool,
}

impl Snapshot {
    /// Begins a query over the rows of one table. Without an order the oldest row is the first.
    ///
    /// ```
    /// # use bine_store::{Column, ColumnOf, Field, Id, Options, RowId, Schema, Store, Table, Value};
    /// # struct Note { id: Id<Note>, stars: u8 }
    /// # impl Note { const COLUMN_STARS: ColumnOf<Self, u8> = ColumnOf::position(0); }
    /// # impl Table for Note {
    /// #     const NAME: &'static str = "note";
    /// #     fn schema() -> Schema {
    /// #         Schema { columns: vec![Column::of::<u8>("stars")], ..Schema::new(Self::NAME) }
    /// #     }
    /// #     fn id(&self) -> RowId { self.id.row() }
    /// #     fn set_id(&mut self, id: RowId) { self.id = Id::of(id); }
    /// #     fn values<'r>(&'r self, to: &mut Vec<Value<'r>>) { to.push(self.stars.value()); }
    /// #     fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self> {
    /// #         Some(Self { id: Id::of(id), stars: Field::from_value(*values.first()?)? })
    /// #     }
    /// # }
    /// let store = Store::in_memory(Options::new().table::<Note>())?;
    /// for stars in [3, 1, 2] {
    ///     store.insert(Note { id: Id::unassigned(), stars }).wait()?;
    /// }
    /// let now = store.read();
    /// let best = now.select::<Note>().order_by(Note::COLUMN_STARS.descending()).limit(2).rows();
    /// assert_eq!(best.iter().map(|note| note.stars).collect::<Vec<_>>(), [3, 2]);
    /// assert_eq!(now.select::<Note>().within(Note::COLUMN_STARS, 2..).count(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn select<T: Table>(&self) -> Select<'_, T> {
        Select::new(self, self.table::<T>(), |id, values| {
            T::from_values(id, values).expect("each row is checked before it enters")
        })
    }
}

impl<'s, T> Select<'s, T> {
    pub(crate) fn new(snapshot: &'s Snapshot, table: usize, read: ReadRow<'s, T>) -> Self {
        Select {
            snapshot,
            table,
            read,
            conditions: Vec::new(),
            filters: Vec::new(),
            order: None,
            is_descending: false,
            limit: None,
        }
    }
}

impl<T: Table> Select<'_, T> {
    /// Only rows with this value in the column.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "values are small, and written where they are used"
    )]
    pub fn equals<K>(mut self, column: ColumnOf<T, K>, value: impl KeyPart<K>) -> Self {
        self.conditions.push(Condition::equality(column.position, &value));
        self
    }

    /// Only rows whose value in the column is within this range. Null is below all values.
    pub fn within<K, P: KeyPart<K>>(
        mut self,
        column: ColumnOf<T, K>,
        range: impl RangeBounds<P>,
    ) -> Self {
        self.conditions.push(Condition::range(column.position, &range));
        self
    }

    /// Orders the rows by a column, and by the id where its values are equal:
    /// `order_by(Note::COLUMN_STARS)` or `order_by(Note::COLUMN_STARS.descending())`.
    pub fn order_by(self, order: impl Into<Order<T>>) -> Self {
        let Order { column, is_descending, .. } = order.into();
        Self { order: Some(column), is_descending, ..self }
    }
}

impl<'s, T> Select<'s, T> {
    /// Only rows for which `admits` returns true. No index helps with such a condition: the query
    /// examines all rows that satisfy the other ones, until it reaches its limit.
    pub fn filter(mut self, admits: impl Fn(&T) -> bool + 's) -> Self {
        self.filters.push(Rc::new(admits));
        self
    }

    /// Reverses the order. Without an order the newest row is then the first.
    pub fn rev(self) -> Self {
        Self { is_descending: !self.is_descending, ..self }
    }

    /// Only the first rows in the order, at most `count`.
    pub fn limit(self, count: usize) -> Self {
        Self { limit: Some(count), ..self }
    }

    /// The rows, in order.
    pub fn rows(&self) -> Vec<T> {
        let (found, _) = self.take(None, false, self.limit);
        found.into_iter().map(|found| found.row).collect()
    }

    /// The first row in the order.
    pub fn first(&self) -> Option<T> {
        let count = self.limit.map_or(1, |limit| limit.min(1));
        self.take(None, false, Some(count)).0.pop().map(|found| found.row)
    }

    /// Runs the query, and reports how it has found its rows.
    pub fn explain(&self) -> Explanation {
        let plan = self.plan();
        let (found, examined) = self.take(None, false, self.limit);
        let definition = self.definition();
        let name = |column: &usize| definition.schema.columns[*column].name.to_string();
        let columns = |index: &plan::IndexPlan| {
            definition.schema.indexes[index.position].columns.iter().map(name).collect()
        };
        Explanation {
            table: definition.schema.name.to_string(),
            index: plan.index.as_ref().map(columns),
            is_sorted: !plan.is_ordered,
            examined,
            returned: found.len(),
        }
    }

    pub(crate) fn definition(&self) -> &'s Definition {
        &self.snapshot.definitions[self.table]
    }

    fn plan(&self) -> QueryPlan {
        QueryPlan::new(self.definition(), &self.conditions, self.order_column())
    }

    /// The column of the order. `None` is the order of ids, also if a condition allows only one
    /// value of the column.
    fn order_column(&self) -> Option<usize> {
        let is_constant = |column: &usize| {
            self.conditions.iter().any(|own| own.is_equality && own.column == *column)
        };
        self.order.filter(|column| !is_constant(column))
    }

    /// The first rows after a position, at most `count`, and the number of rows examined.
    /// `is_backward` reverses the order.
    fn take(
        &self,
        after: Option<&OrderPosition>,
        is_backward: bool,
        count: Option<usize>,
    ) -> (Vec<Found<T>>, usize) {
        if count == Some(0) {
            return (Vec::new(), 0);
        }
        let (plan, order) = (self.plan(), self.order_column());
        let is_descending = self.is_descending != is_backward;
        let bounds = plan.bounds(&self.conditions);
        let find = |candidate: Candidate<'_, '_, T>, key| {
            let position = OrderPosition { key, id: candidate.id };
            Found { position, row: candidate.into_row() }
        };
        let mut key = Key::default();
        if plan.is_ordered {
            let bounds = match after {
                Some(after) => plan.narrow(bounds, after, is_descending),
                None => bounds,
            };
            let mut all = Vec::new();
            let examined = self.scan(&plan, bounds, is_descending, &mut |candidate| {
                candidate.key(order, &mut key);
                all.push(find(candidate, key.clone()));
                match count {
                    Some(count) if all.len() >= count => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                }
            });
            return (all, examined);
        }
        let mut first = BinaryHeap::new();
        let examined = self.scan(&plan, bounds, false, &mut |candidate| {
            candidate.key(order, &mut key);
            let own = (&key, candidate.id);
            let is_after = |other: &OrderPosition| {
                own.cmp(&(&other.key, other.id)) == towards_end(is_descending)
            };
            let is_full = count.is_some_and(|count| first.len() >= count);
            let is_late =
                || first.peek().is_some_and(|last: &Ranked<T>| is_after(&last.found.position));
            if after.is_some_and(|after| !is_after(after)) || is_full && is_late() {
                return ControlFlow::Continue(());
            }
            if is_full {
                first.pop();
            }
            first.push(Ranked { found: find(candidate, key.clone()), is_descending });
            ControlFlow::Continue(())
        });
        let sorted = first.into_sorted_vec();
        (sorted.into_iter().map(|ranked| ranked.found).collect(), examined)
    }
}

/// How a later row compares with an earlier one.
const fn towards_end(is_descending: bool) -> Ordering {
    if is_descending { Ordering::Less } else { Ordering::Greater }
}

impl<T> Ord for Ranked<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.found.position.cmp(&other.found.position);
        if self.is_descending { order.reverse() } else { order }
    }
}

impl<T> PartialOrd for Ranked<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Ranked<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Ranked<T> {}

impl<T> fmt::Debug for Select<'_, T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Select")
            .field("conditions", &self.conditions)
            .field("filters", &self.filters.len())
            .field("order", &self.order)
            .field("is_descending", &self.is_descending)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
