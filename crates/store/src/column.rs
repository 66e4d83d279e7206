//! Typed columns: the names by which queries refer to the columns of a table.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use crate::id::RowId;
use crate::key::Key;
use crate::query::{self, KeyPart};
use crate::time::Time;
use crate::value::{Field, Value};

/// A column of the type `K` in the table `T`. `#[derive(Table)]` generates one for each column.
#[derive(Debug)]
pub struct ColumnOf<T, K> {
    pub(crate) position: usize,
    types: PhantomData<fn() -> (T, K)>,
}

/// An order of rows: by a column, and by the id where its values are equal.
///
/// A column by itself is its ascending order. The descending order is the exact reverse, so rows
/// with equal values follow with the newest first. Rows without a value sort first.
#[derive(Debug)]
pub struct Order<T> {
    pub(crate) column: usize,
    pub(crate) is_descending: bool,
    table: PhantomData<fn() -> T>,
}

/// A column whose values have a least and a greatest one: a number, or a [`Time`].
///
/// Values that are `None` count as absent.
#[diagnostic::on_unimplemented(
    message = "a column of the type `{Self}` has no least or greatest value",
    label = "this is no column of numbers or moments",
    note = "the row with the least value of any column is the `first` one `order_by` it"
)]
pub trait Measure: Field {
    /// The type of a value that exists.
    type Plain: Field;
}

/// A column of numbers.
///
/// Values that are `None` count as absent.
#[diagnostic::on_unimplemented(
    message = "a column of the type `{Self}` has no sum",
    label = "this is no column of numbers"
)]
pub trait Number: Measure {
    /// The type of a sum: `i128` for integers, which holds the sum of any number of rows, and `f64`
    /// for floats.
    type Sum: Copy + Default;

    /// Adds a stored value.
    #[doc(hidden)]
    fn add(sum: Self::Sum, value: Value<'_>) -> Self::Sum;

    /// The sum as a float, for an average.
    #[doc(hidden)]
    fn as_float(sum: Self::Sum) -> f64;
}

/// A condition on one column: the key of its value is not below `from` and is below `until`.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) column: usize,
    pub(crate) from: Option<Key>,
    pub(crate) until: Option<Key>,
    /// Whether `from` is the key of the only value that satisfies the condition.
    pub(crate) is_equality: bool,
}

/// The place of a row in an order: the key of its value, which is empty in the order of ids, and
/// its id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct OrderPosition {
    pub(crate) key: Key,
    pub(crate) id: RowId,
}

impl<T, K> ColumnOf<T, K> {
    /// The column at this position in the table's schema.
    pub const fn position(position: usize) -> Self {
        Self { position, types: PhantomData }
    }

    /// The order by this column, the least value first.
    pub const fn ascending(self) -> Order<T> {
        Order { column: self.position, is_descending: false, table: PhantomData }
    }

    /// The order by this column, the greatest value first.
    pub const fn descending(self) -> Order<T> {
        Order { is_descending: true, ..self.ascending() }
    }
}

impl Condition {
    pub(crate) fn equality<K>(column: usize, value: &impl KeyPart<K>) -> Self {
        let mut key = Key::default();
        key.push(value.part());
        Self { column, until: key.end(), from: Some(key), is_equality: true }
    }

    pub(crate) fn range<K, P: KeyPart<K>>(column: usize, range: &impl RangeBounds<P>) -> Self {
        // No key is below the empty one, so that an empty range admits no value.
        let empty = [Bound::Unbounded, Bound::Excluded(Key::default())];
        let bounds = query::bounds::<(K,), P>(range).unwrap_or(empty);
        let [from, until] = bounds.map(|bound| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
            Bound::Unbounded => None,
        });
        Self { column, from, until, is_equality: false }
    }

    /// The condition that a column has a value.
    pub(crate) fn is_given(column: usize) -> Self {
        Self { column, from: Some(Key::above_null()), until: None, is_equality: false }
    }

    /// Whether a value satisfies the condition. `key` is a buffer for the value's key.
    pub(crate) fn admits(&self, value: Value<'_>, key: &mut Key) -> bool {
        key.clear();
        key.push(value);
        if self.is_equality {
            return self.from.as_ref() == Some(key);
        }
        self.from.as_ref().is_none_or(|from| *key >= *from)
            && self.until.as_ref().is_none_or(|until| *key < *until)
    }
}

// Derived implementations would require the same of `T` and `K`.
impl<T, K> Clone for ColumnOf<T, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, K> Copy for ColumnOf<T, K> {}

impl<T> Clone for Order<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Order<T> {}

impl<T, K> From<ColumnOf<T, K>> for Order<T> {
    fn from(column: ColumnOf<T, K>) -> Self {
        column.ascending()
    }
}

macro_rules! numbers {
    ($($number:ty)*, $sum:ty, $value:ident) => {$(
        impl Measure for $number {
            type Plain = Self;
        }

        impl Number for $number {
            type Sum = $sum;

            fn add(sum: $sum, value: Value<'_>) -> $sum {
                match value {
                    Value::$value(number) => sum + number,
                    _ => sum,
                }
            }

            fn as_float(sum: $sum) -> f64 {
                sum as f64
            }
        }
    )*};
}

// A sum of 2^63 numbers of 64 bits fits into an `i128`, and no table has so many rows.
numbers!(i8 i16 i32 i64 u8 u16 u32 u64, i128, Integer);
numbers!(f32 f64, f64, Float);

impl Measure for Time {
    type Plain = Self;
}

impl<M: Measure<Plain = M>> Measure for Option<M> {
    type Plain = M;
}

impl<N: Number<Plain = N>> Number for Option<N> {
    type Sum = N::Sum;

    fn add(sum: Self::Sum, value: Value<'_>) -> Self::Sum {
        N::add(sum, value)
    }

    fn as_float(sum: Self::Sum) -> f64 {
        N::as_float(sum)
    }
}
