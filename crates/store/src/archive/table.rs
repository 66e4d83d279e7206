//! Table definitions in lines of JSON: docs/formats/lines.md.

use std::borrow::Cow;
use std::collections::HashSet;

use super::json::{ParseError, Reader, Scalar, put_text};
use super::value;
use crate::schema::{Constant, StoredColumn, StoredTable};
use crate::value::Kind;

/// Appends the line of a table. `None` if a default does not match its column's type.
pub(super) fn put(to: &mut Vec<u8>, table: &StoredTable) -> Option<()> {
    to.extend_from_slice(b"{\"table\":");
    put_text(to, &table.name);
    to.extend_from_slice(b",\"columns\":[");
    for (position, column) in table.columns.iter().enumerate() {
        if position > 0 {
            to.push(b',');
        }
        put_column(to, column)?;
    }
    to.extend_from_slice(b"]}\n");
    Some(())
}

fn put_column(to: &mut Vec<u8>, column: &StoredColumn) -> Option<()> {
    let StoredColumn { name, kind, is_optional, default, is_dropped } = column;
    to.extend_from_slice(b"{\"name\":");
    put_text(to, name);
    to.extend_from_slice(b",\"kind\":");
    put_text(to, name_of(kind));
    match kind {
        Kind::Integer { min, max } => {
            to.extend_from_slice(b",\"least\":");
            value::put_whole(to, *min);
            to.extend_from_slice(b",\"most\":");
            value::put_whole(to, *max);
        }
        Kind::Enum(words) => {
            to.extend_from_slice(b",\"words\":[");
            for (position, word) in words.iter().enumerate() {
                if position > 0 {
                    to.push(b',');
                }
                put_text(to, word);
            }
            to.push(b']');
        }
        Kind::Reference(table) => {
            to.extend_from_slice(b",\"to\":");
            put_text(to, table);
        }
        Kind::Bool | Kind::Float | Kind::Text | Kind::Bytes | Kind::Time => {}
    }
    if *is_optional {
        to.extend_from_slice(b",\"optional\":true");
    }
    if *default != Constant::Null {
        to.extend_from_slice(b",\"default\":");
        value::put(to, default.value(), kind)?;
    }
    if *is_dropped {
        to.extend_from_slice(b",\"dropped\":true");
    }
    to.push(b'}');
    Some(())
}

fn name_of(kind: &Kind) -> &'static str {
    match kind {
        Kind::Bool => "bool",
        Kind::Integer { .. } => "whole",
        Kind::Float => "float",
        Kind::Text => "text",
        Kind::Bytes => "bytes",
        Kind::Time => "time",
        Kind::Enum(_) => "word",
        Kind::Reference(_) => "reference",
    }
}

/// Reads the columns of a table.
pub(super) fn read(from: &mut Reader<'_>, name: &str) -> Result<StoredTable, ParseError> {
    let (mut columns, mut live) = (Vec::new(), HashSet::new());
    from.array(|from| {
        let at = from.next_offset();
        let column = read_column(from)?;
        if !column.is_dropped && !live.insert(column.name.clone()) {
            return Err(parse_error(
                at,
                format!("`{}` is already a column of this table", column.name),
            ));
        }
        columns.push(column);
        Ok(())
    })?;
    Ok(StoredTable { name: name.to_owned().into(), columns })
}

/// The keys of a column, in any order.
#[derive(Default)]
struct ParsedColumn<'t> {
    name: Option<Cow<'t, str>>,
    kind: Option<(usize, Cow<'t, str>)>,
    min: Option<i128>,
    max: Option<i128>,
    words: Option<Vec<Cow<'static, str>>>,
    to: Option<Cow<'t, str>>,
    optional: Option<bool>,
    default: Option<Reader<'t>>,
    dropped: Option<bool>,
}

fn read_column(from: &mut Reader<'_>) -> Result<StoredColumn, ParseError> {
    let begin = from.next_offset();
    let mut parsed = ParsedColumn::default();
    from.object(|from, at, key| {
        let position = from.next_offset();
        match &*key {
            "name" => set_once(&mut parsed.name, from.text()?, at),
            "kind" => set_once(&mut parsed.kind, (position, from.text()?), at),
            "least" => set_once(&mut parsed.min, read_whole(from)?, at),
            "most" => set_once(&mut parsed.max, read_whole(from)?, at),
            "words" => set_once(&mut parsed.words, read_words(from)?, at),
            "to" => set_once(&mut parsed.to, from.text()?, at),
            "optional" => set_once(&mut parsed.optional, read_bool(from)?, at),
            "default" => {
                let default = *from;
                from.skip()?;
                set_once(&mut parsed.default, default, at)
            }
            "dropped" => set_once(&mut parsed.dropped, read_bool(from)?, at),
            _ => Err(parse_error(
                at,
                "a column has `name`, `kind`, `least`, `most`, `words`, `to`, `optional`, `default`, `dropped`",
            )),
        }
    })?;
    let name = parsed.name.ok_or_else(|| parse_error(begin, "the column has no `name`"))?;
    let kind = parsed.kind.ok_or_else(|| parse_error(begin, format!("`{name}` has no `kind`")))?;
    let lacks = |what: &str| parse_error(begin, format!("`{name}` has no `{what}`"));
    let kind = match &*kind.1 {
        "bool" => Kind::Bool,
        "whole" => Kind::Integer {
            min: parsed.min.take().ok_or_else(|| lacks("least"))?,
            max: parsed.max.take().ok_or_else(|| lacks("most"))?,
        },
        "float" => Kind::Float,
        "text" => Kind::Text,
        "bytes" => Kind::Bytes,
        "time" => Kind::Time,
        "word" => Kind::Enum(parsed.words.take().ok_or_else(|| lacks("words"))?.into()),
        "reference" => {
            let to = parsed.to.take().ok_or_else(|| lacks("to"))?;
            Kind::Reference(to.into_owned().into())
        }
        _ => {
            let kinds = "`bool`, `whole`, `float`, `text`, `bytes`, `time`, `word` or `reference`";
            return Err(parse_error(kind.0, format!("the kind of a column is {kinds}")));
        }
    };
    let left = [
        ("least", parsed.min.is_some()),
        ("most", parsed.max.is_some()),
        ("words", parsed.words.is_some()),
        ("to", parsed.to.is_some()),
    ];
    if let Some((what, _)) = left.iter().find(|(_, is_left)| *is_left) {
        let kind = name_of(&kind);
        return Err(parse_error(begin, format!("`{name}` is `{kind}`, which has no `{what}`")));
    }
    let mut default = Constant::Null;
    if let Some(mut from) = parsed.default {
        let at = from.next_offset();
        let given = value::read(&mut from, &kind, "default")?;
        let constant = given.into_constant();
        default =
            constant.ok_or_else(|| parse_error(at, format!("`{name}` can have no default")))?;
    }
    Ok(StoredColumn {
        name: name.into_owned().into(),
        kind,
        is_optional: parsed.optional.unwrap_or_default(),
        default,
        is_dropped: parsed.dropped.unwrap_or_default(),
    })
}

/// Stores the value of a key, and rejects a duplicate key.
pub(super) fn set_once<T>(slot: &mut Option<T>, value: T, at: usize) -> Result<(), ParseError> {
    if slot.replace(value).is_some() {
        return Err(parse_error(at, "this key is repeated"));
    }
    Ok(())
}

pub(super) fn parse_error(at: usize, what: impl Into<String>) -> ParseError {
    ParseError { at, what: what.into() }
}

pub(super) fn read_bool(from: &mut Reader<'_>) -> Result<bool, ParseError> {
    let at = from.next_offset();
    match from.scalar()? {
        Scalar::Bool(value) => Ok(value),
        _ => Err(parse_error(at, "must be true or false")),
    }
}

pub(super) fn read_whole(from: &mut Reader<'_>) -> Result<i128, ParseError> {
    let at = from.next_offset();
    let number = match from.scalar()? {
        Scalar::Number(digits) => value::number(digits),
        Scalar::Text(digits) => value::number(&digits),
        Scalar::Null | Scalar::Bool(_) => None,
    };
    number.ok_or_else(|| parse_error(at, "must be a whole number"))
}

fn read_words(from: &mut Reader<'_>) -> Result<Vec<Cow<'static, str>>, ParseError> {
    let mut words: Vec<Cow<'static, str>> = Vec::new();
    let mut known = HashSet::new();
    from.array(|from| {
        let at = from.next_offset();
        let word = from.text()?;
        // A row stores a word's position in sixteen bits.
        if words.len() > usize::from(u16::MAX) {
            return Err(parse_error(at, "a column has at most 65536 words"));
        }
        if !known.insert(word.clone()) {
            return Err(parse_error(at, format!("`{word}` is already one of the words")));
        }
        words.push(word.into_owned().into());
        Ok(())
    })?;
    Ok(words)
}
