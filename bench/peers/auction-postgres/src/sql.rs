//! Values of columns in the binary format of `PostgreSQL`, and the text of statements.

use std::error::Error;
use std::fmt::Write as _;

use bine::store::{Index, Kind, RowId, Schema, Time, Value};
use postgres::types::private::BytesMut;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// A value as an argument of a statement.
#[derive(Debug)]
pub(crate) struct Argument<'v>(pub(crate) Value<'v>);

/// A value of a result, undecoded; `None` is null.
pub(crate) struct Raw<'r>(Option<&'r [u8]>);

impl ToSql for Argument<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self.0 {
            Value::Null => return Ok(IsNull::Yes),
            Value::Bool(value) => out.extend_from_slice(&[u8::from(value)]),
            Value::Integer(number) => out.extend_from_slice(&i64::try_from(number)?.to_be_bytes()),
            Value::Float(number) => out.extend_from_slice(&number.to_be_bytes()),
            Value::Text(text) => out.extend_from_slice(text.as_bytes()),
            Value::Bytes(bytes) => out.extend_from_slice(bytes),
            Value::Time(Time(moment)) => out.extend_from_slice(&moment.to_be_bytes()),
            Value::Enum(position) => out.extend_from_slice(&i64::from(position).to_be_bytes()),
            Value::Id(id) => out.extend_from_slice(&id.number().to_be_bytes()),
        }
        Ok(IsNull::No)
    }

    // The statement has columns of the types of `type_of`.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'r> FromSql<'r> for Raw<'r> {
    fn from_sql(_: &Type, raw: &'r [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Some(raw)))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl<'r> Raw<'r> {
    /// The value of a column of this type; `None` if the bytes have another type.
    pub(crate) fn value(&self, kind: &Kind) -> Option<Value<'r>> {
        let Some(raw) = self.0 else { return Some(Value::Null) };
        let number = || raw.try_into().ok().map(i64::from_be_bytes);
        Some(match kind {
            Kind::Bool => Value::Bool(raw.first()? != &0),
            Kind::Integer { .. } => Value::Integer(number()?.into()),
            Kind::Float => Value::Float(f64::from_be_bytes(raw.try_into().ok()?)),
            Kind::Text => Value::Text(std::str::from_utf8(raw).ok()?),
            Kind::Bytes => Value::Bytes(raw),
            Kind::Time => Value::Time(Time(number()?)),
            Kind::Enum(_) => Value::Enum(u16::try_from(number()?).ok()?),
            Kind::Reference(_) => Value::Id(self.id()?),
        })
    }

    /// The id of a row.
    pub(crate) fn id(&self) -> Option<RowId> {
        let number = u128::from_be_bytes(self.0?.try_into().ok()?);
        Some(RowId::from_number(number))
    }
}

fn type_of(kind: &Kind) -> &'static str {
    match kind {
        Kind::Bool => "boolean",
        Kind::Integer { .. } | Kind::Time | Kind::Enum(_) => "bigint",
        Kind::Float => "double precision",
        Kind::Text => "text",
        Kind::Bytes => "bytea",
        Kind::Reference(_) => "uuid",
    }
}

/// A name of a table or column, quoted, because some are words of SQL.
fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

/// `id` and the columns, in the order of the values of a row.
pub(crate) fn columns(schema: &Schema) -> String {
    schema.columns.iter().fold("id".to_owned(), |all, column| all + ", " + &quoted(&column.name))
}

/// The columns of an index.
pub(crate) fn columns_of(schema: &Schema, index: &Index) -> Vec<String> {
    index.columns.iter().map(|place| quoted(&schema.columns[*place].name)).collect()
}

/// `$1, $2` and so on, from the number `first`.
pub(crate) fn places(first: usize, count: usize) -> String {
    (first..first + count).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ")
}

/// The statements that create a table and its indexes.
pub(crate) fn create(schema: &Schema) -> String {
    let table = quoted(&schema.name);
    let columns = schema.columns.iter().fold(String::new(), |mut all, column| {
        let null = if column.is_optional { "" } else { " NOT NULL" };
        let (name, kind) = (quoted(&column.name), type_of(&column.kind));
        write!(all, ", {name} {kind}{null}").expect("writing to a string cannot fail");
        all
    });
    let mut text = format!("CREATE TABLE IF NOT EXISTS {table} (id uuid PRIMARY KEY{columns});\n");
    for (number, index) in schema.indexes.iter().enumerate() {
        let own = columns_of(schema, index).join(", ");
        let name = quoted(&format!("{}_{number}", schema.name));
        // Rows with equal values are in the order of their ids.
        let (unique, last) = if index.is_unique { ("UNIQUE ", "") } else { ("", ", id") };
        writeln!(text, "CREATE {unique}INDEX IF NOT EXISTS {name} ON {table} ({own}{last});")
            .expect("writing to a string cannot fail");
    }
    text
}
