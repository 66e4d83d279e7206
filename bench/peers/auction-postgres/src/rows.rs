//! Rows of a query, which runs when the first one is needed.

use std::ops::RangeInclusive;
use std::vec::IntoIter;

use bine::prelude::*;
use bine::store::{IndexOf, RowId, Schema, Value};

use crate::database::Snapshot;
use crate::sql;

/// Arguments for the columns of an index.
pub(crate) trait Parts {
    fn values(&self) -> Vec<OwnedValue>;
}

/// An argument of a query, which may run later.
pub(crate) enum OwnedValue {
    Null,
    Text(String),
    Time(Time),
    Id(RowId),
}

/// The rows of a query. `rev`, `skip` and `take` change the query.
pub(crate) struct Rows<'s, T> {
    snapshot: &'s Snapshot,
    schema: Schema,
    /// The condition, and its arguments.
    condition: String,
    arguments: Vec<OwnedValue>,
    /// The columns of the order.
    order: Vec<String>,
    is_reversed: bool,
    offset: usize,
    limit: Option<usize>,
    /// The result.
    found: Option<IntoIter<T>>,
}

impl<'s, T: Table> Rows<'s, T> {
    /// All rows, in the order of their ids.
    pub(crate) fn all(snapshot: &'s Snapshot) -> Self {
        Self::of(snapshot, T::schema(), String::new(), Vec::new(), Vec::new())
    }

    /// The rows whose columns of an index have these values.
    pub(crate) fn equal<K>(snapshot: &'s Snapshot, by: IndexOf<T, K>, parts: &impl Parts) -> Self {
        let schema = T::schema();
        let columns = sql::columns_of(&schema, &schema.indexes[by.place()]);
        let arguments = parts.values();
        let equal = |(number, column): (usize, &String)| format!("{column} = ${}", number + 1);
        let condition: Vec<String> = columns.iter().enumerate().map(equal).collect();
        Self::of(snapshot, schema, condition.join(" AND "), arguments, Vec::new())
    }

    /// The rows whose columns of an index are within bounds, in the order of the index.
    pub(crate) fn within<K>(
        snapshot: &'s Snapshot,
        by: IndexOf<T, K>,
        range: &RangeInclusive<impl Parts>,
    ) -> Self {
        let schema = T::schema();
        let columns = sql::columns_of(&schema, &schema.indexes[by.place()]);
        let count = columns.len();
        let (names, from, until) =
            (columns.join(", "), sql::places(1, count), sql::places(count + 1, count));
        let condition = format!("({names}) >= ({from}) AND ({names}) <= ({until})");
        let mut arguments = range.start().values();
        arguments.extend(range.end().values());
        Self::of(snapshot, schema, condition, arguments, columns)
    }

    fn of(
        snapshot: &'s Snapshot,
        schema: Schema,
        condition: String,
        arguments: Vec<OwnedValue>,
        mut order: Vec<String>,
    ) -> Self {
        order.push("id".to_owned());
        let (is_reversed, offset, limit, found) = (false, 0, None, None);
        Self { snapshot, schema, condition, arguments, order, is_reversed, offset, limit, found }
    }

    pub(crate) fn rev(mut self) -> Self {
        self.is_reversed = !self.is_reversed;
        self
    }

    pub(crate) fn skip(mut self, count: usize) -> Self {
        self.offset = count;
        self
    }

    pub(crate) fn take(mut self, count: usize) -> Self {
        self.limit = Some(count);
        self
    }

    fn run(&self) -> Vec<T> {
        let direction = if self.is_reversed { " DESC" } else { "" };
        let order: Vec<String> =
            self.order.iter().map(|column| format!("{column}{direction}")).collect();
        let mut rest = String::new();
        if !self.condition.is_empty() {
            rest = format!(" WHERE {}", self.condition);
        }
        rest += &format!(" ORDER BY {}", order.join(", "));
        if let Some(limit) = self.limit {
            rest += &format!(" LIMIT {limit}");
        }
        if self.offset > 0 {
            rest += &format!(" OFFSET {}", self.offset);
        }
        let arguments: Vec<Value<'_>> = self.arguments.iter().map(OwnedValue::value).collect();
        self.snapshot.select(&self.schema, &rest, &arguments)
    }
}

impl<T: Table> Iterator for Rows<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if self.found.is_none() {
            self.found = Some(self.run().into_iter());
        }
        self.found.as_mut()?.next()
    }
}

impl OwnedValue {
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Text(text) => Value::Text(text),
            Self::Time(moment) => Value::Time(*moment),
            Self::Id(id) => Value::Id(*id),
        }
    }
}

impl Parts for &str {
    fn values(&self) -> Vec<OwnedValue> {
        vec![OwnedValue::Text((*self).to_owned())]
    }
}

impl<T> Parts for Id<T> {
    fn values(&self) -> Vec<OwnedValue> {
        vec![OwnedValue::Id(self.row())]
    }
}

impl<T> Parts for Option<Id<T>> {
    fn values(&self) -> Vec<OwnedValue> {
        vec![self.map_or(OwnedValue::Null, |id| OwnedValue::Id(id.row()))]
    }
}

impl<T> Parts for (Id<T>, Time) {
    fn values(&self) -> Vec<OwnedValue> {
        vec![OwnedValue::Id(self.0.row()), OwnedValue::Time(self.1)]
    }
}

impl<T, U> Parts for (Id<T>, Id<U>, Time) {
    fn values(&self) -> Vec<OwnedValue> {
        let (first, second) = (self.0.row(), self.1.row());
        vec![OwnedValue::Id(first), OwnedValue::Id(second), OwnedValue::Time(self.2)]
    }
}
