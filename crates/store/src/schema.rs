//! Table schemas, and reading rows that were written under an older schema.
//!
//! The store keeps a table's columns in the order in which they were added, and never removes one.
//! Each row starts with the number of columns at the time of its write. So an added column reads as
//! its default in older rows, a renamed one is the same column, a dropped one is skipped, and an
//! integer type may become wider, all without rewriting a row.

mod layout;

use std::borrow::Cow;
use std::fmt;

use crate::bytes::{ByteReader, put_bytes, put_number, put_signed};
use crate::id::{Id, RowId};
use crate::time::Time;
use crate::value::{Field, Kind, Value};
pub(crate) use layout::Layout;

/// A table as the program declares it.
#[derive(Clone, PartialEq, Debug)]
pub struct Schema {
    /// The table's name.
    pub name: Cow<'static, str>,
    /// The columns, without the id.
    pub columns: Vec<Column>,
    /// The indexes, other than the id.
    pub indexes: Vec<Index>,
    /// Columns that were removed from the program, whose values may be dropped.
    pub dropped: Vec<Cow<'static, str>>,
}

/// A column as the program declares it.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// The column's name.
    pub name: Cow<'static, str>,
    /// The column's type.
    pub kind: Kind,
    /// Whether the column accepts null.
    pub is_optional: bool,
    /// The value in rows that were written before the column was added.
    pub default: Option<Constant>,
    /// Whether queries for whole rows omit the column.
    pub is_private: bool,
    /// The length limits, from and to: characters of a text, or bytes.
    pub length: Option<(usize, usize)>,
    /// The limits of a number, from and to.
    pub range: Option<(f64, f64)>,
    /// The column's former name.
    pub former_name: Option<Cow<'static, str>>,
    /// The column's name for people, in messages about invalid values.
    pub label: Option<Cow<'static, str>>,
    /// How the removal of a row affects the rows that refer to it by this column.
    pub on_remove: OnRemove,
}

/// How the removal of a row affects a row that refers to it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum OnRemove {
    /// The removal is rejected, unless it removes the other row too.
    #[default]
    Reject,
    /// The other row is removed too.
    Cascade,
    /// The column of the other row, which is optional, becomes null.
    SetNone,
}

/// An index over columns, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Index {
    /// The positions of the columns in [`Schema::columns`].
    pub columns: Vec<usize>,
    /// Whether no two rows may have the same values.
    pub is_unique: bool,
}

/// A constant value in a program's source, such as a default.
#[derive(Clone, PartialEq, Debug)]
pub enum Constant {
    /// Null.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer.
    Integer(i128),
    /// A floating-point number.
    Float(f64),
    /// Text.
    Text(Cow<'static, str>),
    /// A point in time.
    Time(Time),
    /// The time at which the value is used: of the insert, or, in rows that are older than their
    /// column, of the column's declaration.
    Now,
    /// A word of an enum, by its position.
    Enum(u16),
}

/// A value that a column does not accept.
#[derive(Clone, PartialEq, Debug)]
pub struct InvalidValue {
    /// The column's name.
    pub column: Cow<'static, str>,
    /// The column's name for people, if it has one.
    pub label: Option<Cow<'static, str>>,
    /// The reason.
    pub fault: ValueFault,
}

/// Why a column does not accept a value. [`Display`](fmt::Display) writes the end of an English
/// sentence that begins with the column: `must be ..`.
#[derive(Clone, PartialEq, Debug)]
pub enum ValueFault {
    /// The column requires a value.
    Missing,
    /// The value is not of the column's type.
    Type(Kind),
    /// The number of characters of a text is outside the limits.
    TextLength {
        /// The shortest allowed length.
        least: usize,
        /// The longest allowed length.
        most: usize,
        /// The length of the value.
        actual: usize,
    },
    /// The number of bytes is outside the limits.
    BytesLength {
        /// The shortest allowed length.
        least: usize,
        /// The longest allowed length.
        most: usize,
        /// The length of the value.
        actual: usize,
    },
    /// A number is outside the limits.
    Range {
        /// The smallest allowed number.
        least: f64,
        /// The largest allowed number.
        most: f64,
        /// The value.
        actual: f64,
    },
    /// The program's type of the row cannot hold the value.
    Unreadable,
    /// The table has no column with this name.
    UnknownColumn,
    /// Another row has the same values in the columns of a unique index, of which the column is the
    /// first.
    Duplicate {
        /// The further columns of the index.
        with: Vec<Cow<'static, str>>,
    },
}

impl ValueFault {
    /// Whether the value itself is valid, and only equals that of another row.
    pub const fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate { .. })
    }
}

/// A table's columns as the store keeps them, dropped ones included.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct StoredTable {
    pub(crate) name: Cow<'static, str>,
    pub(crate) columns: Vec<StoredColumn>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct StoredColumn {
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: Kind,
    pub(crate) is_optional: bool,
    pub(crate) default: Constant,
    pub(crate) is_dropped: bool,
}

/// What a program does with stored columns that it does not know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UnknownColumns {
    /// It does not start: the columns may belong to a newer version of it.
    Reject,
    /// It keeps their values: a newer version of it runs on another node.
    Keep,
}

impl Column {
    /// A required column without limits.
    pub fn new(name: impl Into<Cow<'static, str>>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
            is_optional: false,
            default: None,
            is_private: false,
            length: None,
            range: None,
            former_name: None,
            label: None,
            on_remove: OnRemove::Reject,
        }
    }

    /// A column of a Rust type, without limits.
    pub fn of<F: Field>(name: impl Into<Cow<'static, str>>) -> Self {
        Self { is_optional: F::IS_OPTIONAL, ..Self::new(name, F::kind()) }
    }

    fn check(&self, value: Value<'_>) -> Result<(), ValueFault> {
        if value == Value::Null {
            return if self.is_optional { Ok(()) } else { Err(ValueFault::Missing) };
        }
        if !self.kind.admits(value) {
            return Err(ValueFault::Type(self.kind.clone()));
        }
        if let Some((least, most)) = self.length {
            let is_outside = |actual: &usize| !(least..=most).contains(actual);
            match value {
                Value::Text(text) => {
                    if let Some(actual) = Some(text.chars().count()).filter(is_outside) {
                        return Err(ValueFault::TextLength { least, most, actual });
                    }
                }
                Value::Bytes(bytes) => {
                    if let Some(actual) = Some(bytes.len()).filter(is_outside) {
                        return Err(ValueFault::BytesLength { least, most, actual });
                    }
                }
                _ => {}
            }
        }
        let number = match value {
            Value::Integer(number) => Some(number as f64),
            Value::Float(number) => Some(number),
            _ => None,
        };
        if let (Some((least, most)), Some(actual)) = (self.range, number)
            // NaN is outside of every range.
            && !(least..=most).contains(&actual)
        {
            return Err(ValueFault::Range { least, most, actual });
        }
        Ok(())
    }

    /// Checks that a value is null or of the column's type, whatever its limits.
    pub(crate) fn check_type(&self, value: Value<'_>) -> Result<(), InvalidValue> {
        if value == Value::Null || self.kind.admits(value) {
            return Ok(());
        }
        Err(self.invalid(ValueFault::Type(self.kind.clone())))
    }

    /// The value of a new row that does not give one: the default, or null.
    pub(crate) fn initial(&self) -> Constant {
        match &self.default {
            Some(Constant::Now) => Constant::Time(Time::now()),
            Some(default) => default.clone().convert_to(&self.kind),
            None => Constant::Null,
        }
    }

    /// An invalid value of this column.
    pub(crate) fn invalid(&self, fault: ValueFault) -> InvalidValue {
        InvalidValue { column: self.name.clone(), label: self.label.clone(), fault }
    }
}

impl Schema {
    /// A table without columns.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), columns: Vec::new(), indexes: Vec::new(), dropped: Vec::new() }
    }

    /// The position of the column with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Checks the values of a row against the columns' types and limits. Returns all invalid ones.
    pub(crate) fn check(&self, values: &[Value<'_>]) -> Vec<InvalidValue> {
        debug_assert_eq!(values.len(), self.columns.len());
        let columns = self.columns.iter().zip(values);
        columns
            .filter_map(|(column, value)| Some(column.invalid(column.check(*value).err()?)))
            .collect()
    }

    /// Merges the program's declaration with the stored table. Returns the table to store, and the
    /// layout of its rows.
    ///
    /// # Errors
    ///
    /// The merge would lose data. The message names the fix.
    pub(crate) fn merge(
        &self,
        stored: Option<&StoredTable>,
        unknown: UnknownColumns,
    ) -> Result<(StoredTable, Layout), String> {
        let table = &self.name;
        let mut columns = stored.map(|stored| stored.columns.clone()).unwrap_or_default();
        let is_new = stored.is_none();
        let mut positions = vec![None; columns.len()];
        let find = |name: &str| {
            columns.iter().position(|stored| !stored.is_dropped && stored.name == name)
        };
        // Renames first, because a new column may take the old name.
        let was = |column: &Column| column.former_name.as_ref().and_then(|was| find(was));
        let renamed = |column: &Column| find(&column.name).map_or_else(|| was(column), |_| None);
        let renamed: Vec<Option<usize>> = self.columns.iter().map(renamed).collect();
        let own = |column: &Column| find(&column.name).filter(|own| !renamed.contains(&Some(*own)));
        let known = self.columns.iter().zip(&renamed);
        let known: Vec<_> =
            known.map(|(column, renamed)| renamed.or_else(|| own(column))).collect();
        for (position, (column, known)) in self.columns.iter().zip(known).enumerate() {
            let Some(known) = known else {
                columns.push(StoredColumn::new(column, table, is_new)?);
                positions.push(Some(position));
                continue;
            };
            if let Some(other) = positions[known] {
                let (one, other) = (&self.columns[other].name, &column.name);
                let was = &stored.map_or(&[][..], |stored| &stored.columns)[known].name;
                return Err(format!(
                    "`{table}.{one}` and `{table}.{other}` cannot both be `{was}`"
                ));
            }
            columns[known].update(column, table)?;
            positions[known] = Some(position);
        }
        for (stored, position) in columns.iter_mut().zip(&positions) {
            if position.is_some() || stored.is_dropped {
                continue;
            }
            let name = &stored.name;
            if unknown == UnknownColumns::Keep && !self.dropped.contains(name) {
                if !stored.is_optional && stored.default == Constant::Null {
                    return Err(format!(
                        "the column `{table}.{name}`, which this program does not know, has no default for its rows"
                    ));
                }
                continue;
            }
            if !self.dropped.contains(name) {
                return Err(format!(
                    "the table `{table}` has a column `{name}` that the program does not know: write `was = \"{name}\"` at the \
                     column that replaces it, or `dropped = \"{name}\"` at the table to drop its values"
                ));
            }
            stored.is_dropped = true;
        }
        let stored = StoredTable { name: self.name.clone(), columns: columns.clone() };
        Ok((stored, Layout::new(columns, positions)))
    }
}

impl StoredColumn {
    fn new(column: &Column, table: &str, is_new: bool) -> Result<Self, String> {
        let Column { name, kind, is_optional, default, .. } = column;
        let default = match default {
            Some(constant) => {
                let constant = constant.clone().convert_to(kind);
                column
                    .check(constant.value())
                    .map_err(|reason| format!("the default of `{table}.{name}` {reason}"))?;
                constant
            }
            // A new table has no rows, and an optional column reads as null.
            None if *is_optional || is_new => Constant::Null,
            None => {
                return Err(format!(
                    "the column `{table}.{name}` is new and has no value in older rows: give it a \
                     `default`, or make it optional"
                ));
            }
        };
        let (name, kind) = (name.clone(), kind.clone());
        Ok(Self { name, kind, is_optional: *is_optional, default, is_dropped: false })
    }

    /// Takes over the program's declaration of the column.
    fn update(&mut self, column: &Column, table: &str) -> Result<(), String> {
        let Column { name, kind, is_optional, .. } = column;
        if !kind.widens(&self.kind) {
            return Err(format!(
                "the column `{table}.{name}` is {kind} in the program and {} in the store: add a new column with a \
                 `default`, and drop the old one after its values are copied",
                self.kind
            ));
        }
        if self.is_optional && !is_optional {
            return Err(format!(
                "the column `{table}.{name}` is optional in the store but required in the program: make it optional"
            ));
        }
        self.name.clone_from(name);
        self.kind.clone_from(kind);
        self.is_optional = *is_optional;
        Ok(())
    }
}

impl Constant {
    /// Converts to the column's type: a word becomes its position, an integer may become a float.
    fn convert_to(self, kind: &Kind) -> Self {
        match (&self, kind) {
            (Self::Text(text), Kind::Enum(words)) => {
                let position = words.iter().position(|word| word == text);
                position.map_or(self, |position| Self::Enum(position as u16))
            }
            (Self::Integer(number), Kind::Float) => Self::Float(*number as f64),
            (Self::Now, _) => Self::Time(Time::now()),
            _ => self,
        }
    }

    /// The constant as a borrowed value.
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Integer(number) => Value::Integer(*number),
            Self::Float(number) => Value::Float(*number),
            Self::Text(text) => Value::Text(text),
            Self::Time(moment) => Value::Time(*moment),
            Self::Now => Value::Time(Time::now()),
            Self::Enum(position) => Value::Enum(*position),
        }
    }
}

macro_rules! constants {
    ($($type:ty: $own:ident => $constant:expr;)*) => {$(
        impl From<$type> for Constant {
            fn from($own: $type) -> Self {
                $constant
            }
        }
    )*};
}

constants! {
    bool: own => Self::Bool(own);
    i8: own => Self::Integer(own.into());
    i16: own => Self::Integer(own.into());
    i32: own => Self::Integer(own.into());
    u8: own => Self::Integer(own.into());
    u16: own => Self::Integer(own.into());
    u32: own => Self::Integer(own.into());
    i64: own => Self::Integer(own.into());
    u64: own => Self::Integer(own.into());
    f32: own => Self::Float(own.into());
    f64: own => Self::Float(own);
    &'static str: own => Self::Text(own.into());
    Time: own => Self::Time(own);
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.label {
            Some(label) => write!(to, "{label} {}", self.fault),
            None => write!(to, "`{}` {}", self.column, self.fault),
        }
    }
}

impl fmt::Display for ValueFault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => to.write_str("must be given"),
            Self::Type(kind) => write!(to, "must be {kind}"),
            Self::TextLength { least, most, actual } => {
                write!(to, "must have from {least} to {most} letters, not {actual}")
            }
            Self::BytesLength { least, most, actual } => {
                write!(to, "must have from {least} to {most} bytes, not {actual}")
            }
            Self::Range { least, most, actual } => {
                write!(to, "must be from {least} to {most}, not {actual}")
            }
            Self::Unreadable => to.write_str("has a value that the program's type does not accept"),
            Self::UnknownColumn => to.write_str("is not a column of the table"),
            Self::Duplicate { with } if with.is_empty() => to.write_str("is taken already"),
            Self::Duplicate { with } => {
                write!(to, "is taken already, with the same `{}`", with.join("`, `"))
            }
        }
    }
}

const DROPPED: u8 = 1;
const OPTIONAL: u8 = 2;

impl StoredTable {
    /// The columns that are not dropped.
    pub(crate) fn live_columns(&self) -> impl Iterator<Item = &StoredColumn> {
        self.columns.iter().filter(|column| !column.is_dropped)
    }

    /// The layout of rows with the columns of [`StoredTable::live_columns`], for tools without the
    /// program.
    pub(crate) fn layout(&self) -> Layout {
        let mut live = 0..;
        let position = |column: &StoredColumn| if column.is_dropped { None } else { live.next() };
        let positions = self.columns.iter().map(position).collect();
        Layout::new(self.columns.clone(), positions)
    }

    /// Encodes the table as docs/formats/rows.md describes.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        put_bytes(to, self.name.as_bytes());
        put_number(to, self.columns.len() as u128);
        for column in &self.columns {
            put_bytes(to, column.name.as_bytes());
            let dropped = if column.is_dropped { DROPPED } else { 0 };
            to.push(dropped | if column.is_optional { OPTIONAL } else { 0 });
            write_kind(&column.kind, to);
            write_constant(&column.default, to);
        }
    }

    /// Decodes a table; `None` if the bytes are invalid.
    pub(crate) fn read(from: &mut ByteReader<'_>) -> Option<Self> {
        let name = from.text()?.to_owned().into();
        let count = from.count()?;
        let mut columns = Vec::new();
        for _ in 0..count {
            let name = from.text()?.to_owned().into();
            let flags = from.byte()?;
            let kind = read_kind(from)?;
            let default = read_constant(from)?;
            let (is_dropped, is_optional) = (flags & DROPPED != 0, flags & OPTIONAL != 0);
            columns.push(StoredColumn { name, kind, is_optional, default, is_dropped });
        }
        Some(Self { name, columns })
    }
}

fn write_kind(kind: &Kind, to: &mut Vec<u8>) {
    match kind {
        Kind::Bool => to.push(0),
        Kind::Integer { min, max } => {
            to.push(1);
            put_signed(to, *min);
            put_signed(to, *max);
        }
        Kind::Float => to.push(2),
        Kind::Text => to.push(3),
        Kind::Bytes => to.push(4),
        Kind::Time => to.push(5),
        Kind::Enum(words) => {
            to.push(6);
            put_number(to, words.len() as u128);
            words.iter().for_each(|word| put_bytes(to, word.as_bytes()));
        }
        Kind::Reference(table) => {
            to.push(7);
            put_bytes(to, table.as_bytes());
        }
    }
}

fn read_kind(from: &mut ByteReader<'_>) -> Option<Kind> {
    Some(match from.byte()? {
        0 => Kind::Bool,
        1 => Kind::Integer { min: from.signed()?, max: from.signed()? },
        2 => Kind::Float,
        3 => Kind::Text,
        4 => Kind::Bytes,
        5 => Kind::Time,
        6 => {
            let count = from.count()?;
            let mut words = Vec::new();
            for _ in 0..count {
                words.push(Cow::Owned(from.text()?.to_owned()));
            }
            Kind::Enum(words.into())
        }
        7 => Kind::Reference(from.text()?.to_owned().into()),
        _ => return None,
    })
}

fn write_constant(constant: &Constant, to: &mut Vec<u8>) {
    match constant {
        Constant::Null => to.push(0),
        // A stored default is a fixed time: `convert_to` has read the clock.
        Constant::Now => write_constant(&Constant::Time(Time::now()), to),
        Constant::Bool(value) => to.extend_from_slice(&[1, u8::from(*value)]),
        Constant::Integer(number) => {
            to.push(2);
            put_signed(to, *number);
        }
        Constant::Float(number) => {
            to.push(3);
            to.extend_from_slice(&number.to_le_bytes());
        }
        Constant::Text(text) => {
            to.push(4);
            put_bytes(to, text.as_bytes());
        }
        Constant::Time(Time(moment)) => {
            to.push(5);
            to.extend_from_slice(&moment.to_le_bytes());
        }
        Constant::Enum(position) => {
            to.push(6);
            put_number(to, u128::from(*position));
        }
    }
}

fn read_constant(from: &mut ByteReader<'_>) -> Option<Constant> {
    Some(match from.byte()? {
        0 => Constant::Null,
        1 => Constant::Bool(from.byte()? != 0),
        2 => Constant::Integer(from.signed()?),
        3 => Constant::Float(f64::from_le_bytes(from.array()?)),
        4 => Constant::Text(from.text()?.to_owned().into()),
        5 => Constant::Time(Time(i64::from_le_bytes(from.array()?))),
        6 => Constant::Enum(u16::try_from(from.number()?).ok()?),
        _ => return None,
    })
}

/// A row type. `#[derive(Table)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no table",
    label = "rows of a table are wanted here",
    note = "write `#[derive(Table)]` above the struct, and `id: Id<{Self}>` as its first field"
)]
pub trait Table: Sized + 'static {
    /// The table's name.
    const NAME: &'static str;

    /// The table's schema.
    fn schema() -> Schema;

    /// The row's id.
    fn id(&self) -> RowId;

    /// Sets the row's id.
    fn set_id(&mut self, id: RowId);

    /// Appends the row's values, in the order of the columns.
    fn values<'r>(&'r self, to: &mut Vec<Value<'r>>);

    /// Creates a row from its values. `None` if they do not match the columns of [`Table::values`].
    fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self>;
}

impl<T: Table> Field for Id<T> {
    fn kind() -> Kind {
        Kind::Reference(Cow::Borrowed(T::NAME))
    }

    #[inline]
    fn value(&self) -> Value<'_> {
        Value::Id(self.row())
    }

    #[inline]
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Id(id) => Some(Self::of(id)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(name: &'static str) -> Column {
        Column::new(name, String::kind())
    }

    fn of(columns: &[Column]) -> Schema {
        Schema { columns: columns.to_vec(), ..Schema::new("t") }
    }

    #[track_caller]
    fn refused(after: &Schema, before: &Schema, expected: &str) {
        let (stored, _) = before.merge(None, UnknownColumns::Reject).unwrap();
        let error = after.merge(Some(&stored), UnknownColumns::Reject).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }

    /// The values that a program with the schema `after` reads from a row that `before` wrote.
    fn read(before: &Schema, values: &[Value<'_>], after: &Schema) -> Vec<String> {
        let (stored, layout) = before.merge(None, UnknownColumns::Reject).unwrap();
        let row = layout.write(values);
        // Encodes and decodes the schema, as a restart does.
        let mut bytes = Vec::new();
        stored.write(&mut bytes);
        let stored = StoredTable::read(&mut ByteReader(&bytes)).unwrap();
        let (_, layout) = after.merge(Some(&stored), UnknownColumns::Reject).unwrap();
        let mut values = vec![Value::Null; after.columns.len()];
        layout.read(&row, &mut values).unwrap();
        values.iter().map(|value| format!("{value:?}")).collect()
    }

    #[test]
    fn reports_why_a_column_rejects_a_value() {
        let mut name = text("name");
        name.length = Some((1, 3));
        let mut stars = Column::new("stars", u8::kind());
        stars.range = Some((1.0, 5.0));
        let schema = of(&[name, stars]);
        let result_of = |values: [Value<'_>; 2]| match &schema.check(&values)[..] {
            [] => Ok(()),
            wrong => Err(wrong.iter().map(InvalidValue::to_string).collect::<Vec<_>>().join("; ")),
        };
        let one = Value::Integer(1);
        assert_eq!(result_of([Value::Text("\u{e4}\u{f6}\u{fc}"), one]), Ok(()));
        assert_eq!(
            result_of([Value::Text("abcd"), one]),
            Err("`name` must have from 1 to 3 letters, not 4".to_owned())
        );
        assert_eq!(result_of([Value::Null, one]), Err("`name` must be given".to_owned()));
        assert_eq!(result_of([one, one]), Err("`name` must be text".to_owned()));
        assert_eq!(
            result_of([Value::Text("a"), Value::Integer(6)]),
            Err("`stars` must be from 1 to 5, not 6".to_owned())
        );
        assert_eq!(
            result_of([Value::Text(""), Value::Integer(6)]),
            Err("`name` must have from 1 to 3 letters, not 0; `stars` must be from 1 to 5, not 6"
                .to_owned())
        );
        assert_eq!(
            result_of([Value::Text("a"), Value::Integer(256)]),
            Err("`stars` must be a whole number from 0 to 255".to_owned())
        );
    }

    #[test]
    fn limits_floats_and_the_length_of_bytes() {
        let mut share = Column::new("share", f64::kind());
        share.range = Some((0.0, 1.0));
        let mut key = Column::new("key", Vec::<u8>::kind());
        key.length = Some((2, 3));
        let schema = of(&[share, key]);
        let result_of = |share, key: &[u8]| {
            let wrong = schema.check(&[Value::Float(share), Value::Bytes(key)]);
            wrong.iter().map(InvalidValue::to_string).collect::<Vec<_>>().join("; ")
        };
        for (share, key) in [(0.0, &b"ab"[..]), (1.0, b"abc"), (0.5, "\u{e4}".as_bytes())] {
            assert_eq!(result_of(share, key), "");
        }
        assert_eq!(result_of(1.5, b"ab"), "`share` must be from 0 to 1, not 1.5");
        assert_eq!(result_of(-0.5, b"ab"), "`share` must be from 0 to 1, not -0.5");
        assert_eq!(result_of(f64::NAN, b"ab"), "`share` must be from 0 to 1, not NaN");
        assert_eq!(result_of(0.5, b"a"), "`key` must have from 2 to 3 bytes, not 1");
        assert_eq!(result_of(0.5, b"abcd"), "`key` must have from 2 to 3 bytes, not 4");
    }

    #[test]
    fn names_the_columns_of_a_duplicate() {
        let text = |with: &[&'static str]| {
            let with = with.iter().map(|name| (*name).into()).collect();
            ValueFault::Duplicate { with }.to_string()
        };
        assert_eq!(text(&[]), "is taken already");
        assert_eq!(text(&["a", "b"]), "is taken already, with the same `a`, `b`");
        assert!(ValueFault::Duplicate { with: Vec::new() }.is_duplicate());
        assert!(!ValueFault::Missing.is_duplicate());
    }

    #[test]
    fn reads_rows_of_an_older_schema() {
        let before = of(&[text("a"), Column::new("b", u8::kind()), text("c")]);
        let values = [Value::Text("x"), Value::Integer(7), Value::Text("z")];
        let mut added = text("d");
        added.default = Some(Constant::Text("new".into()));
        let mut wider = Column::new("b", Option::<i32>::kind());
        wider.is_optional = true;
        let renamed = Column { former_name: Some("c".into()), ..text("e") };
        let after = Schema { dropped: vec!["a".into()], ..of(&[added, renamed, wider]) };
        assert_eq!(read(&before, &values, &after), ["Text(\"new\")", "Text(\"z\")", "Integer(7)"]);
    }

    /// Symptom: the values of a new column were lost. Cause: both columns matched the stored one.
    #[test]
    fn reuses_the_old_name_of_a_renamed_column() {
        let before = of(&[text("a")]);
        let renamed = |name| Column { former_name: Some("a".into()), ..text(name) };
        let mut new = text("a");
        new.default = Some(Constant::Text("new".into()));
        let after = of(&[new.clone(), renamed("b")]);
        let read = read(&before, &[Value::Text("x")], &after);
        assert_eq!(read, ["Text(\"new\")", "Text(\"x\")"]);
        refused(&of(&[renamed("b"), renamed("c")]), &before, "`t.b` and `t.c` cannot both be `a`");
        refused(&of(&[text("a"), text("a")]), &before, "`t.a` and `t.a` cannot both be `a`");
    }

    #[test]
    fn rejects_lossy_schema_changes_and_names_the_fix() {
        let before = of(&[text("a"), Column::new("b", u32::kind())]);
        refused(&of(&[text("a")]), &before, "write `was = \"b\"` at the column that replaces it");
        let both = [text("a"), Column::new("b", u32::kind())];
        refused(&of(&[both.clone(), [text("c"), text("d")]].concat()), &before, "`t.c` is new");
        let narrow = of(&[text("a"), Column::new("b", u16::kind())]);
        refused(&narrow, &before, "a whole number from 0 to 65535 in the program");
        let mut optional = of(&both);
        optional.columns[0].is_optional = true;
        refused(&before, &optional, "is optional in the store");
    }

    #[test]
    fn reuses_the_name_of_a_dropped_column() {
        let (stored, _) = of(&[text("a")]).merge(None, UnknownColumns::Reject).unwrap();
        let mut number = Column::new("b", u8::kind());
        number.default = Some(Constant::Integer(1));
        let without = Schema { dropped: vec!["a".into()], ..of(&[number.clone()]) };
        let (stored, _) = without.merge(Some(&stored), UnknownColumns::Reject).unwrap();
        let mut again = Column::new("a", u8::kind());
        again.default = Some(Constant::Integer(9));
        let (stored, layout) =
            of(&[number, again]).merge(Some(&stored), UnknownColumns::Reject).unwrap();
        assert_eq!(stored.columns.len(), 3);
        let row = layout.write(&[Value::Integer(1), Value::Integer(2)]);
        let mut values = [Value::Null; 2];
        layout.read(&row, &mut values).unwrap();
        assert_eq!(values, [Value::Integer(1), Value::Integer(2)]);
    }

    proptest! {
        #[test]
        fn decodes_any_bytes_as_a_table_without_panic(bytes: Vec<u8>) {
            let _ = StoredTable::read(&mut ByteReader(&bytes));
        }
    }
}
