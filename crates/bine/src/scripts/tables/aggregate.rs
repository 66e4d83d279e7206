//! Figures about the rows of a query: sums, averages and extremes of a column, also by group.

use std::collections::BTreeMap;
use std::ops::Bound;

use bine_script::{HostCall, HostError, Value as ScriptValue};

use super::queries::{MAX_UNLIMITED, RowSelect, ScriptQuery};
use super::{ScriptTable, ScriptTables, values};
use crate::scripts::call_state::CallState;
use crate::store::{Kind, RowId, TableView, Time, Value};

/// An aggregate of the values of a column that are not null.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Function {
    Sum,
    Average,
    Min,
    Max,
}

/// A function with the column that it is applied to.
struct Measure<'s> {
    function: Function,
    column: usize,
    name: String,
    kind: &'s Kind,
}

/// The state of a function while rows are visited.
#[derive(Default)]
struct Fold<'s> {
    /// The rows, whatever their values are.
    rows: u64,
    /// The values that are not null.
    values: u64,
    integers: i128,
    floats: f64,
    extreme: Option<OrderedValue<'s>>,
}

/// A value that is ordered as the store orders those of one column, null first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum OrderedValue<'s> {
    Null,
    Bool(bool),
    Integer(i128),
    Float(OrderedFloat),
    Text(&'s str),
    Bytes(&'s [u8]),
    Time(Time),
    Enum(u16),
    Id(RowId),
}

/// The bits of a float.
#[derive(Clone, Copy, Debug)]
struct OrderedFloat(f64);

/// `aggregate(table, conditions, null, false, function, column)`: the result of a function over the
/// values of a column that are not null.
pub(super) fn aggregate(
    tables: &ScriptTables,
    call: &HostCall<'_, '_>,
) -> Result<ScriptValue, HostError> {
    let table = tables.table(call)?;
    let query = ScriptQuery::read(call)?;
    let (function, name) = (call.value(4)?, call.value(5)?);
    CallState::of(call)?.read(|snapshot| {
        let view = table.view(snapshot)?;
        let measure = Measure::read(&table, &view, &function, &name)?;
        let select = query.select(&table, &view)?;
        if let Function::Min | Function::Max = measure.function {
            return Ok(measure.extreme(select));
        }
        let mut fold = Fold::default();
        select.for_each(|row| fold.add(row.values()[measure.column], measure.function));
        measure.result(&table, &fold)
    })
}

/// `group(table, conditions, null, false, by, function, column)`: pairs of a value of the column
/// `by` and the result of the function for its rows, in the order of the values. Without a function
/// the result is the number of rows.
pub(super) fn group(
    tables: &ScriptTables,
    call: &HostCall<'_, '_>,
) -> Result<ScriptValue, HostError> {
    let table = tables.table(call)?;
    let query = ScriptQuery::read(call)?;
    let (by, function, name) = (call.value(4)?, call.value(5)?, call.value(6)?);
    CallState::of(call)?.read(|snapshot| {
        let view = table.view(snapshot)?;
        let ScriptValue::Text(by) = &by else {
            return Err(HostError::Type("groupBy takes the name of a column".to_owned()));
        };
        let by = table.column(&view, by)?;
        let measure = match function {
            ScriptValue::Null => None,
            function => Some(Measure::read(&table, &view, &function, &name)?),
        };
        let mut groups: BTreeMap<OrderedValue<'_>, Fold<'_>> = BTreeMap::new();
        let mut are_too_many = false;
        query.select(&table, &view)?.for_each(|row| {
            let group = OrderedValue::of(row.values()[by]);
            if groups.len() >= MAX_UNLIMITED && !groups.contains_key(&group) {
                are_too_many = true;
                return;
            }
            let fold = groups.entry(group).or_default();
            fold.rows += 1;
            if let Some(measure) = &measure {
                fold.add(row.values()[measure.column], measure.function);
            }
        });
        if are_too_many {
            return Err(HostError::Range(format!(
                "the rows of `{}` have more than {MAX_UNLIMITED} groups: add a condition, or count the rows of one value with by(..)",
                table.name
            )));
        }
        let kind = &view.schema().columns[by].kind;
        let pair = |(value, fold): (OrderedValue<'_>, Fold<'_>)| {
            let result = match &measure {
                None => ScriptValue::Number(fold.rows as f64),
                Some(measure) => measure.result(&table, &fold)?,
            };
            Ok(ScriptValue::Array(vec![values::of_store(kind, value.value()), result]))
        };
        groups.into_iter().map(pair).collect::<Result<_, _>>().map(ScriptValue::Array)
    })
}

impl<'s> Measure<'s> {
    fn read(
        table: &ScriptTable,
        view: &TableView<'s>,
        function: &ScriptValue,
        name: &ScriptValue,
    ) -> Result<Self, HostError> {
        let word = function.as_text().unwrap_or_default();
        let function = match word {
            "sum" => Function::Sum,
            "average" => Function::Average,
            "min" => Function::Min,
            "max" => Function::Max,
            _ => return Err(HostError::Type("there is no such function of columns".to_owned())),
        };
        let ScriptValue::Text(name) = name else {
            return Err(HostError::Type(format!("{word}(column) takes the name of a column")));
        };
        let column = table.column(view, name)?;
        let kind = &view.schema().columns[column].kind;
        let is_extreme = matches!(function, Function::Min | Function::Max);
        if matches!(kind, Kind::Integer { .. } | Kind::Float) || is_extreme && *kind == Kind::Time {
            return Ok(Self { function, column, name: name.clone(), kind });
        }
        Err(HostError::Type(format!("`{}.{name}` has no {word}: it is {kind}", table.name)))
    }

    /// The value of the first row in the order of the column, which an index may yield without a
    /// search.
    fn extreme(&self, select: RowSelect<'s>) -> ScriptValue {
        let given = (Bound::Excluded(Value::Null), Bound::Unbounded);
        // Null is a value of every column.
        let Ok(select) = select.within_values(self.column, given) else { return ScriptValue::Null };
        let first = select.order_by_column(self.column, self.function == Function::Max).first();
        first
            .map_or(ScriptValue::Null, |row| values::of_store(self.kind, row.values()[self.column]))
    }

    fn result(&self, table: &ScriptTable, fold: &Fold<'_>) -> Result<ScriptValue, HostError> {
        let sum = fold.integers as f64 + fold.floats;
        let number = match self.function {
            Function::Min | Function::Max => {
                let extreme = fold.extreme.map_or(Value::Null, OrderedValue::value);
                return Ok(values::of_store(self.kind, extreme));
            }
            Function::Average if fold.values == 0 => return Ok(ScriptValue::Null),
            Function::Average => sum / fold.values as f64,
            Function::Sum => sum,
        };
        if number.is_finite() {
            return Ok(ScriptValue::Number(number));
        }
        Err(HostError::Range(format!(
            "the sum of `{}.{}` is beyond the numbers of JavaScript",
            table.name, self.name
        )))
    }
}

impl<'s> Fold<'s> {
    fn add(&mut self, value: Value<'s>, function: Function) {
        if value == Value::Null {
            return;
        }
        self.values += 1;
        match (function, value) {
            // The sum of 2^63 integers of 64 bits fits into an `i128`.
            (Function::Sum | Function::Average, Value::Integer(number)) => self.integers += number,
            (Function::Sum | Function::Average, Value::Float(number)) => self.floats += number,
            (Function::Min | Function::Max, value) => {
                let value = OrderedValue::of(value);
                let is_further = |known| match function {
                    Function::Max => value > known,
                    _ => value < known,
                };
                if self.extreme.is_none_or(is_further) {
                    self.extreme = Some(value);
                }
            }
            _ => {}
        }
    }
}

impl<'s> OrderedValue<'s> {
    const fn of(value: Value<'s>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Integer(number) => Self::Integer(number),
            Value::Float(number) => Self::Float(OrderedFloat(number)),
            Value::Text(text) => Self::Text(text),
            Value::Bytes(bytes) => Self::Bytes(bytes),
            Value::Time(time) => Self::Time(time),
            Value::Enum(position) => Self::Enum(position),
            Value::Id(id) => Self::Id(id),
        }
    }

    const fn value(self) -> Value<'s> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Integer(number) => Value::Integer(number),
            Self::Float(OrderedFloat(number)) => Value::Float(number),
            Self::Text(text) => Value::Text(text),
            Self::Bytes(bytes) => Value::Bytes(bytes),
            Self::Time(time) => Value::Time(time),
            Self::Enum(position) => Value::Enum(position),
            Self::Id(id) => Value::Id(id),
        }
    }
}

impl Ord for OrderedFloat {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for OrderedFloat {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OrderedFloat {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OrderedFloat {}
