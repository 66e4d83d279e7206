//! Declarations of tables: what `table(name, columns, options)` passes, as a schema of the store.

use std::cell::Cell;

use bine_script::Value;

use super::rows::RowKeys;
use super::values::{self, MAX_INTEGER};
use super::{ScriptTable, shortened, suggestion};
use crate::store::{Column, Constant, Index, Kind, OnRemove, Schema};

/// The longest name of a table or a column, in bytes.
const MAX_NAME: usize = 64;
/// The most columns of an index.
const MAX_INDEX_COLUMNS: usize = 4;
/// The greatest length of a text or of bytes, which no row exceeds.
const MAX_LENGTH: usize = 8 << 20;
/// The options of a table.
const OPTIONS: [&str; 3] = ["indexes", "unique", "dropped"];
/// The words of `ref`, as an example in messages.
const BUILDERS: &str =
    "text(), number(), integer(), boolean(), time(), now(), bytes(), choice(..) or ref(..)";

/// The declaration of one column without its name: an object that the words build.
struct Spec<'v>(&'v Value);

/// Reads a declaration: the name, pairs of a column's name and its specification, and the options.
///
/// # Errors
///
/// The reason why it is wrong, which names table, column and fix.
pub(super) fn read(
    prefix: &str,
    [name, columns, options]: &[Value; 3],
) -> Result<ScriptTable, String> {
    let Value::Text(name) = name else {
        return Err(format!("the name of a table is a string, not {}", name.kind()));
    };
    if !is_name(name, true) {
        return Err(format!(
            "a table cannot have the name `{}`: use up to {MAX_NAME} letters, digits, `_` and `-`, and begin with a letter",
            shortened(name)
        ));
    }
    let mut schema = Schema::new(format!("{prefix}{name}"));
    let Value::Array(columns) = columns else {
        return Err(format!("the table `{name}` has no columns: pass an object with them"));
    };
    for column in columns {
        let Value::Array(pair) = column else { continue };
        let [Value::Text(column), spec] = &pair[..] else { continue };
        add_column(&mut schema, prefix, column, spec)
            .map_err(|reason| format!("`{name}.{}` {reason}", shortened(column)))?;
    }
    add_options(&mut schema, options).map_err(|reason| format!("the table `{name}` {reason}"))?;
    Ok(ScriptTable {
        name: name.clone(),
        schema,
        position: Cell::default(),
        keys: RowKeys::default(),
    })
}

fn add_column(schema: &mut Schema, prefix: &str, name: &str, spec: &Value) -> Result<(), String> {
    if name == "id" {
        return Err("is there without a declaration: each row has an `id`".to_owned());
    }
    // The engine rejects this key, because a program that copies it may change prototypes.
    if !is_name(name, false) || name == "constructor" {
        return Err(format!(
            "cannot be the name of a column: use up to {MAX_NAME} letters, digits and `_`, and begin with a letter"
        ));
    }
    if !matches!(spec, Value::Object(_)) {
        return Err(format!("is no column: write {BUILDERS}"));
    }
    let spec = Spec(spec);
    let column = read_column(prefix, name, &spec)?;
    let is_unique = spec.is_set("unique");
    if is_unique || spec.is_set("index") {
        schema.indexes.push(Index { columns: vec![schema.columns.len()], is_unique });
    }
    schema.columns.push(column);
    Ok(())
}

fn read_column(prefix: &str, name: &str, spec: &Spec<'_>) -> Result<Column, String> {
    let kind = match spec.text("kind")? {
        Some("text") => Kind::Text,
        Some("number") => Kind::Float,
        // A limit does not change the type, so that it can be raised later.
        Some("integer") => Kind::Integer { min: -(MAX_INTEGER as i128), max: MAX_INTEGER as i128 },
        Some("boolean") => Kind::Bool,
        Some("bytes") => Kind::Bytes,
        Some("time" | "now") => Kind::Time,
        Some("choice") => Kind::Enum(read_words(spec)?.into()),
        Some("reference") => Kind::Reference(read_target(prefix, spec)?.into()),
        _ => return Err(format!("is no column: write {BUILDERS}")),
    };
    let mut column = Column::new(name.to_owned(), kind);
    column.is_optional = spec.is_set("optional");
    column.is_private = spec.is_set("private");
    column.label = spec.text("label")?.map(|label| label.to_owned().into());
    column.former_name = spec.text("was")?.map(|was| was.to_owned().into());
    read_limits(&mut column, spec)?;
    column.on_remove = read_effect(&column, spec)?;
    column.default = match spec.get("default") {
        Some(value) => Some(read_default(&column, value)?),
        None if spec.text("kind")? == Some("now") => Some(Constant::Now),
        None => None,
    };
    Ok(column)
}

fn read_words(spec: &Spec<'_>) -> Result<Vec<std::borrow::Cow<'static, str>>, String> {
    let wrong = || "needs its words: choice(\"open\", \"closed\")".to_owned();
    let Some(Value::Array(words)) = spec.get("words") else { return Err(wrong()) };
    let mut read: Vec<std::borrow::Cow<'static, str>> = Vec::with_capacity(words.len());
    for word in words {
        let word = word.as_text().ok_or_else(wrong)?;
        if read.iter().any(|known| known == word) {
            return Err(format!("has the word `{}` twice: remove one", shortened(word)));
        }
        read.push(word.to_owned().into());
    }
    if read.is_empty() { Err(wrong()) } else { Ok(read) }
}

/// The name in the store of the table that a column refers to.
fn read_target(prefix: &str, spec: &Spec<'_>) -> Result<String, String> {
    match spec.get("to") {
        Some(Value::Text(target)) if is_name(target, true) => Ok(format!("{prefix}{target}")),
        _ => Err("refers to no table: write ref(users) with a table that is declared before, or ref(\"users\") with the name of any table of the application".to_owned()),
    }
}

/// Reads `min` and `max`.
fn read_limits(column: &mut Column, spec: &Spec<'_>) -> Result<(), String> {
    let (least, most) = (spec.number("min")?, spec.number("max")?);
    if least.is_none() && most.is_none() {
        return Ok(());
    }
    match column.kind {
        Kind::Text | Kind::Bytes => {
            let length = |given: Option<f64>, otherwise: usize| {
                let Some(given) = given else { return Ok(otherwise) };
                let length = values::to_count(given).filter(|length| *length <= MAX_LENGTH);
                length.ok_or_else(|| {
                    format!(
                        "has a limit of {given}: the limit of a length is a whole number from 0 to {MAX_LENGTH}"
                    )
                })
            };
            column.length = Some((length(least, 0)?, length(most, MAX_LENGTH)?));
        }
        Kind::Integer { .. } => {
            let limits = (least.unwrap_or(-MAX_INTEGER), most.unwrap_or(MAX_INTEGER));
            if !values::is_integer(limits.0) || !values::is_integer(limits.1) {
                return Err("needs whole numbers within 2^53 as limits".to_owned());
            }
            column.range = Some(limits);
        }
        Kind::Float => {
            column.range =
                Some((least.unwrap_or(f64::NEG_INFINITY), most.unwrap_or(f64::INFINITY)));
        }
        _ => {
            return Err(
                "has min or max, which only text, bytes and numbers have: remove it".to_owned()
            );
        }
    }
    let is_empty = column.length.is_some_and(|(least, most)| least > most)
        || column.range.is_some_and(|(least, most)| least > most);
    if is_empty {
        return Err("has a min above its max: no value would be valid".to_owned());
    }
    Ok(())
}

/// Reads `onRemove`.
fn read_effect(column: &Column, spec: &Spec<'_>) -> Result<OnRemove, String> {
    let Some(effect) = spec.get("onRemove") else { return Ok(OnRemove::Reject) };
    if !matches!(column.kind, Kind::Reference(_)) {
        return Err(
            "refers to no row, so it has no onRemove: remove it, or write ref(..)".to_owned()
        );
    }
    match effect.as_text() {
        Some("reject") => Ok(OnRemove::Reject),
        Some("remove") => Ok(OnRemove::Cascade),
        Some("null") if column.is_optional => Ok(OnRemove::SetNone),
        Some("null") => {
            Err("cannot become null when its row is removed: add .optional()".to_owned())
        }
        _ => Err("has an unknown onRemove: it is \"reject\", \"remove\" or \"null\"".to_owned()),
    }
}

fn read_default(column: &Column, value: &Value) -> Result<Constant, String> {
    let constant = match (&column.kind, value) {
        (_, Value::Null) => {
            return Err(
                "has no value as its default: remove .default(..), and add .optional()".to_owned()
            );
        }
        (Kind::Bytes | Kind::Reference(_), _) => {
            return Err("is of a kind without defaults: remove .default(..)".to_owned());
        }
        (Kind::Bool, Value::Bool(value)) => Constant::Bool(*value),
        (Kind::Integer { .. }, Value::Number(number)) if values::is_integer(*number) => {
            Constant::Integer(*number as i128)
        }
        (Kind::Float, Value::Number(number)) => Constant::Float(*number),
        (Kind::Text, Value::Text(text)) => Constant::Text(text.clone().into()),
        (Kind::Enum(words), Value::Text(word)) => match values::position(words, word) {
            Some(position) => Constant::Enum(position),
            None => {
                return Err(format!("has a default that is not one of {}", words.join(", ")));
            }
        },
        (Kind::Time, value) => match values::to_time(value) {
            Some(time) => Constant::Time(time),
            None => {
                return Err("has a default that is no time: write a Date, or a text like 2026-11-21T09:30:00Z".to_owned());
            }
        },
        (kind, other) => {
            return Err(format!("has a default that must be {kind}, not {}", other.kind()));
        }
    };
    let is_outside = match &constant {
        Constant::Text(text) => column
            .length
            .is_some_and(|(least, most)| !(least..=most).contains(&text.chars().count())),
        Constant::Integer(number) => is_out_of_range(column, *number as f64),
        Constant::Float(number) => is_out_of_range(column, *number),
        _ => false,
    };
    if is_outside {
        Err("has a default outside of its min and max".to_owned())
    } else {
        Ok(constant)
    }
}

fn is_out_of_range(column: &Column, number: f64) -> bool {
    column.range.is_some_and(|(least, most)| !(least..=most).contains(&number))
}

/// Reads the third argument of `table`: indexes of several columns, and dropped columns.
fn add_options(schema: &mut Schema, options: &Value) -> Result<(), String> {
    let entries = match options {
        Value::Null | Value::Undefined => return Ok(()),
        Value::Object(entries) => entries,
        other => return Err(format!("has options that are no object, but {}", other.kind())),
    };
    for (option, value) in entries {
        match option.as_str() {
            "indexes" => add_indexes(schema, "indexes", value, false)?,
            "unique" => add_indexes(schema, "unique", value, true)?,
            "dropped" => {
                let wrong = || "needs names of columns in `dropped`: [\"old\"]".to_owned();
                let Value::Array(names) = value else { return Err(wrong()) };
                for name in names {
                    let name = name.as_text().ok_or_else(wrong)?;
                    schema.dropped.push(name.to_owned().into());
                }
            }
            other => {
                let near = suggestion(OPTIONS.into_iter(), other);
                return Err(format!("has an unknown option `{}`{near}", shortened(other)));
            }
        }
    }
    Ok(())
}

fn add_indexes(
    schema: &mut Schema,
    option: &str,
    value: &Value,
    is_unique: bool,
) -> Result<(), String> {
    let wrong = || {
        format!(
            "needs lists of up to {MAX_INDEX_COLUMNS} columns in `{option}`: [[\"forum\", \"at\"]]"
        )
    };
    let Value::Array(indexes) = value else { return Err(wrong()) };
    for index in indexes {
        let Value::Array(names) = index else { return Err(wrong()) };
        if !(1..=MAX_INDEX_COLUMNS).contains(&names.len()) {
            return Err(wrong());
        }
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let name = name.as_text().ok_or_else(wrong)?;
            let Some(position) = schema.position(name) else {
                let known = schema.columns.iter().map(|column| &*column.name);
                let near = suggestion(known, name);
                return Err(format!("has no column `{}` for `{option}`{near}", shortened(name)));
            };
            if columns.contains(&position) {
                return Err(format!("has `{name}` twice in one index of `{option}`: remove one"));
            }
            columns.push(position);
        }
        schema.indexes.push(Index { columns, is_unique });
    }
    Ok(())
}

impl<'v> Spec<'v> {
    fn get(&self, key: &str) -> Option<&'v Value> {
        self.0.property(key)
    }

    fn is_set(&self, key: &str) -> bool {
        matches!(self.get(key), Some(Value::Bool(true)))
    }

    fn text(&self, key: &str) -> Result<Option<&'v str>, String> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(other) => Err(format!("has a {key} that is {}, not a string", other.kind())),
        }
    }

    fn number(&self, key: &str) -> Result<Option<f64>, String> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(*number)),
            Some(other) => Err(format!("has a {key} that is {}, not a number", other.kind())),
        }
    }
}

/// Whether a text may be the name of a table or a column.
fn is_name(name: &str, allows_hyphen: bool) -> bool {
    let is_rest =
        |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || allows_hyphen && byte == b'-';
    name.len() <= MAX_NAME
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(is_rest)
}
