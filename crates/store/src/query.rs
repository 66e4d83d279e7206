//! Typed index queries: the arguments of a lookup must match the types of the index's columns.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use crate::key::Key;
use crate::value::{Field, Value};

/// An index of the table `T` over columns of the types `K`. `#[derive(Table)]` generates one for
/// each index.
#[derive(Debug)]
pub struct IndexOf<T, K> {
    pub(crate) position: usize,
    types: PhantomData<fn() -> (T, K)>,
}

impl<T, K> IndexOf<T, K> {
    /// The index at this position in the table's schema.
    pub const fn position(position: usize) -> Self {
        Self { position, types: PhantomData }
    }

    /// The position of the index in [`Schema::indexes`](crate::Schema::indexes).
    pub const fn place(self) -> usize {
        self.position
    }
}

// A derived `Clone` or `Copy` would require the same of `T` and `K`.
impl<T, K> Clone for IndexOf<T, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, K> Copy for IndexOf<T, K> {}

/// An argument for an index column of the type `K`: a value of that type, or `&str` for text.
#[diagnostic::on_unimplemented(
    message = "a column of the type `{K}` is not compared with `{Self}`",
    label = "this is not of the column's type",
    note = "a value is of the very type of the column, `Some(value)` where it may hold nothing; text may be a `&str`"
)]
pub trait KeyPart<K> {
    /// The argument as a value of the column.
    fn part(&self) -> Value<'_>;
}

impl<K: Field> KeyPart<K> for K {
    fn part(&self) -> Value<'_> {
        self.value()
    }
}

impl<K: Field> KeyPart<K> for &K {
    fn part(&self) -> Value<'_> {
        (*self).value()
    }
}

/// A value without its type, which the caller has checked.
impl<'v> KeyPart<Value<'v>> for Value<'v> {
    fn part(&self) -> Value<'_> {
        *self
    }
}

impl KeyPart<String> for &str {
    fn part(&self) -> Value<'_> {
        Value::Text(self)
    }
}

/// Arguments for an index over the columns `K`: one for each column, or for the first ones.
#[diagnostic::on_unimplemented(
    message = "an index of `{K}` is not asked with `{Self}`",
    label = "these are not the index's columns",
    note = "of one column it is asked with `value`, of several with `(first,)`, `(first, second)` and so on, each of its column's type: `Some(value)` where that may hold nothing"
)]
pub trait KeyParts<K> {
    /// Appends the arguments to a key.
    #[doc(hidden)]
    fn put(&self, key: &mut KeyBuilder);
}

/// A key under construction.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct KeyBuilder(Key);

impl<A, P: KeyPart<A>> KeyParts<(A,)> for P {
    fn put(&self, key: &mut KeyBuilder) {
        key.0.push(self.part());
    }
}

macro_rules! parts {
    ($([$($column:ident)+] $($given:ident: $of:ident $place:tt)+;)*) => {$(
        impl<$($column,)+ $($given: KeyPart<$of>),+> KeyParts<($($column,)+)> for ($($given,)+) {
            fn put(&self, key: &mut KeyBuilder) {
                $(key.0.push(self.$place.part());)+
            }
        }
    )*};
}

parts! {
    [A B] P: A 0;
    [A B] P: A 0 Q: B 1;
    [A B C] P: A 0;
    [A B C] P: A 0 Q: B 1;
    [A B C] P: A 0 Q: B 1 R: C 2;
    [A B C D] P: A 0;
    [A B C D] P: A 0 Q: B 1;
    [A B C D] P: A 0 Q: B 1 R: C 2;
    [A B C D] P: A 0 Q: B 1 R: C 2 S: D 3;
}

/// Encodes the arguments as a key.
pub(crate) fn key<K>(parts: &impl KeyParts<K>) -> Key {
    let mut key = KeyBuilder::default();
    parts.put(&mut key);
    key.0
}

/// The bounds of a range query. An argument for the first columns covers all keys with that prefix.
/// `None` if the range is empty.
pub(crate) fn bounds<K, P: KeyParts<K>>(range: &impl RangeBounds<P>) -> Option<[Bound<Key>; 2]> {
    let from = match range.start_bound() {
        Bound::Included(parts) => Bound::Included(key(parts)),
        Bound::Excluded(parts) => Bound::Included(key(parts).end()?),
        Bound::Unbounded => Bound::Unbounded,
    };
    let until = match range.end_bound() {
        Bound::Included(parts) => key(parts).end().map_or(Bound::Unbounded, Bound::Excluded),
        Bound::Excluded(parts) => Bound::Excluded(key(parts)),
        Bound::Unbounded => Bound::Unbounded,
    };
    Some([from, until])
}
