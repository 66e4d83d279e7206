//! The tables of these tests: unique and non-unique indexes, over one and over several columns,
//! with optional columns and references.

use bine_store::{
    Column, ColumnOf, Field, Id, Index, IndexOf, Options, RowId, Schema, Table, Value,
};

macro_rules! table {
    (
        $(#[$doc:meta])* $row:ident, $name:literal, { $($column:ident: $kind:ty),+ },
        [$($columns:expr, $is_unique:literal);*]
    ) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Debug)]
        pub(crate) struct $row {
            pub(crate) id: Id<$row>,
            $(pub(crate) $column: $kind,)+
        }

        impl Table for $row {
            const NAME: &'static str = $name;

            fn schema() -> Schema {
                Schema {
                    columns: vec![$(Column::of::<$kind>(stringify!($column))),+],
                    indexes: vec![$(Index { columns: $columns.to_vec(), is_unique: $is_unique }),*],
                    ..Schema::new(Self::NAME)
                }
            }

            fn id(&self) -> RowId {
                self.id.row()
            }

            fn set_id(&mut self, id: RowId) {
                self.id = Id::of(id);
            }

            fn values<'r>(&'r self, to: &mut Vec<Value<'r>>) {
                to.extend([$(self.$column.value()),+]);
            }

            fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self> {
                let [$($column),+] = values else { return None };
                Some(Self { id: Id::of(id), $($column: Field::from_value(*$column)?),+ })
            }
        }
    };
}

table! {
    /// An author of messages, with a unique name.
    User, "user", { name: String, age: Option<u8> }, [[0], true; [1, 0], false]
}

table! {
    /// A message. Subject and score together are unique if a subject is given.
    Message, "message",
    { author: Id<User>, parent: Option<Id<Message>>, subject: Option<u8>, score: i64 },
    [[2, 3], true; [0, 3], false]
}

table! {
    /// Inserted once by each transaction and not changed later, so that it identifies the
    /// transaction's commit.
    Receipt, "receipt", { number: u64 }, []
}

impl User {
    pub(crate) const BY_NAME: IndexOf<Self, (String,)> = IndexOf::position(0);
    pub(crate) const BY_AGE_NAME: IndexOf<Self, (Option<u8>, String)> = IndexOf::position(1);

    pub(crate) fn new(name: &str, age: Option<u8>) -> Self {
        Self { id: Id::unassigned(), name: name.to_owned(), age }
    }
}

impl Message {
    pub(crate) const BY_SUBJECT_SCORE: IndexOf<Self, (Option<u8>, i64)> = IndexOf::position(0);
    pub(crate) const BY_AUTHOR_SCORE: IndexOf<Self, (Id<User>, i64)> = IndexOf::position(1);
    pub(crate) const COLUMN_AUTHOR: ColumnOf<Self, Id<User>> = ColumnOf::position(0);
    pub(crate) const COLUMN_PARENT: ColumnOf<Self, Option<Id<Self>>> = ColumnOf::position(1);
    pub(crate) const COLUMN_SUBJECT: ColumnOf<Self, Option<u8>> = ColumnOf::position(2);
    pub(crate) const COLUMN_SCORE: ColumnOf<Self, i64> = ColumnOf::position(3);
}

/// Options with all tables of this module.
pub(crate) fn options() -> Options {
    Options::new().table::<User>().table::<Message>().table::<Receipt>()
}
