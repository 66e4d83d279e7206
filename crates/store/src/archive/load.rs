//! Loading a dump: all lines take effect, or no line does.
//!
//! The load reads and validates all lines before it writes the first byte. Then it stages the rows
//! in as many records as they need, and one last record makes them all effective. If the program
//! ends before that record, the folder is as before.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::{self, BufRead, Read};

use super::json::{ParseError, Reader};
use super::table::{self, parse_error, read_bool, read_whole, set_once};
use super::value::{self, ParsedValue};
use super::{Archive, VERSION};
use crate::checkpoint::MAX_ROW_LENGTH;
use crate::id::RowId;
use crate::journal::{self, Journal};
use crate::record;
use crate::row::Row;
use crate::schema::{Constant, Layout, StoredColumn, StoredTable};
use crate::state::Write;
use crate::value::{Kind, Value};

/// The longest line in bytes: enough for the longest row in any spelling.
pub const MAX_LINE_LENGTH: usize = 64 << 20;
/// The rows of one record in bytes.
const BLOCK: usize = 256 << 10;
/// The records of one write in bytes.
const GROUP: usize = 1 << 20;

/// The result of a load.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LoadSummary {
    /// Tables described by the lines.
    pub tables: usize,
    /// Rows inserted or replaced.
    pub rows: usize,
    /// Rows removed.
    pub removed: usize,
    /// Rows of the whole folder that refer to a missing row.
    pub dangling: usize,
}

/// The reason why a load failed. A failed load has no effect.
#[derive(Debug)]
pub enum LoadError {
    /// A line is invalid.
    Line {
        /// The line number, from 1.
        line: u64,
        /// The character in the line, from 1.
        column: usize,
        /// The problem.
        what: String,
    },
    /// The lines could not be read.
    Read(io::Error),
    /// The rows could not be written.
    Journal(journal::Error),
}

impl Archive {
    /// Loads the output of [`Archive::dump`]: creates missing tables, inserts new rows, replaces
    /// rows with a known id, and removes each row whose value is `null`.
    ///
    /// # Errors
    ///
    /// A line is invalid; then no row is written. The disk fails: the next start finds either all
    /// rows or no row of the load.
    pub fn load(&mut self, from: &mut dyn BufRead) -> Result<LoadSummary, LoadError> {
        let mut incoming = Incoming::into(self);
        let mut lines = Lines { from, line: 0, bytes: Vec::new() };
        while let Some((line, text)) = lines.next()? {
            incoming.line(text).map_err(|parse_error| LoadError::at(line, text, &parse_error))?;
        }
        if !incoming.is_over {
            let what = if incoming.is_begun {
                "it ends early: the last line must be {\"end\":true}"
            } else {
                MISSING_HEADER
            };
            return Err(LoadError::at(lines.line + 1, "", &parse_error(0, what)));
        }
        let Incoming { stored, targets, rows: new, .. } = incoming;
        if record::tables(&stored).len() > MAX_ROW_LENGTH {
            let what = "the definitions of all tables exceed 8 MB";
            return Err(LoadError::at(lines.line, "", &parse_error(0, what)));
        }
        self.write(&stored, &new).map_err(LoadError::Journal)?;
        let mut loaded = LoadSummary { tables: targets.len(), ..LoadSummary::default() };
        self.stored = stored;
        self.rows.resize_with(self.stored.len(), Default::default);
        for (position, rows) in new {
            for (id, row) in rows {
                match row {
                    Some(row) => {
                        self.rows[position].insert(id, &row);
                        loaded.rows += 1;
                    }
                    None => {
                        self.rows[position].remove(id);
                        loaded.removed += 1;
                    }
                }
            }
        }
        loaded.dangling = self.dangling();
        Ok(loaded)
    }

    fn write(&mut self, stored: &[StoredTable], new: &NewRows) -> Result<(), journal::Error> {
        let (mut first, mut length) = (None, 0);
        for (position, rows) in new {
            let mut rows = rows.iter().peekable();
            while rows.peek().is_some() {
                let (mut writes, mut bytes) = (Vec::new(), 0);
                while bytes < BLOCK
                    && let Some((id, row)) = rows.next()
                {
                    bytes += row.as_ref().map_or(0, |row| row.len()) + 24;
                    writes.push(Write { table: 0, id: *id, row: row.clone() });
                }
                let record = record::staged(&writes, &[*position]);
                let sequence = self.journal.append(&record)?;
                first.get_or_insert(sequence);
                length += record.len();
                if length >= GROUP {
                    self.journal.write(false)?;
                    length = 0;
                }
            }
        }
        let last =
            first.map_or_else(|| record::tables(stored), |first| record::taken(first, stored));
        self.journal.append(&last)?;
        self.last = self.journal.write(true)?;
        Ok(())
    }

    /// The number of rows that refer to a missing row.
    fn dangling(&self) -> usize {
        let position = |name: &str| self.stored.iter().position(|table| table.name == name);
        let mut count = 0;
        for (table, rows) in self.stored.iter().zip(&self.rows) {
            let named = table.live_columns().map(|column| match &column.kind {
                Kind::Reference(name) => Some(position(name)),
                _ => None,
            });
            let named: Vec<_> = named.collect();
            if named.iter().all(Option::is_none) {
                continue;
            }
            let layout = table.layout();
            let mut values = vec![Value::Null; named.len()];
            for (_, row) in rows.iter() {
                let is_read = layout.read(row, &mut values).is_some();
                let dangles =
                    |(named, value): (&Option<Option<usize>>, &Value<'_>)| match (named, value) {
                        (Some(Some(table)), Value::Id(id)) => self.rows[*table].get(*id).is_none(),
                        (Some(None), Value::Id(_)) => true,
                        _ => false,
                    };
                count += usize::from(is_read && named.iter().zip(&values).any(dangles));
            }
        }
        count
    }
}

/// New rows by the position of their table; `None` removes the row.
type NewRows = BTreeMap<usize, BTreeMap<RowId, Option<Row>>>;

const MISSING_HEADER: &str = "the first line must be {\"bine\":\"tables\",\"version\":1}";

/// The lines read so far.
struct Incoming<'a> {
    archive: &'a Archive,
    is_begun: bool,
    is_over: bool,
    stored: Vec<StoredTable>,
    /// The described tables by name.
    targets: HashMap<String, TargetTable>,
    rows: NewRows,
}

/// A table that receives rows.
struct TargetTable {
    position: usize,
    columns: Vec<StoredColumn>,
    layout: Layout,
    /// The position of each column by name.
    names: HashMap<String, usize>,
}

/// The keys of a line, in any order.
#[derive(Default)]
struct ParsedLine<'t> {
    keys: usize,
    bine: Option<Cow<'t, str>>,
    version: Option<(usize, i128)>,
    table: Option<(usize, Cow<'t, str>)>,
    columns: Option<Reader<'t>>,
    id: Option<(usize, Cow<'t, str>)>,
    row: Option<Reader<'t>>,
    end: Option<bool>,
}

impl<'a> Incoming<'a> {
    fn into(archive: &'a Archive) -> Self {
        let (stored, rows) = (archive.stored.clone(), NewRows::new());
        Self { archive, is_begun: false, is_over: false, stored, targets: HashMap::new(), rows }
    }

    fn line(&mut self, text: &str) -> Result<(), ParseError> {
        let mut from = Reader::new(text);
        let begin = from.next_offset();
        let parsed = ParsedLine::read(&mut from)?;
        from.end()?;
        if self.is_over {
            return Err(parse_error(begin, "no line may follow {\"end\":true}"));
        }
        match parsed {
            ParsedLine { keys: 2, bine: Some(what), version: Some((at, version)), .. }
                if what == "tables" =>
            {
                if version != VERSION {
                    let what =
                        format!("version {version} is not known; this program reads {VERSION}");
                    return Err(parse_error(at, what));
                }
                if self.is_begun {
                    return Err(parse_error(begin, "the first line is repeated"));
                }
                self.is_begun = true;
                Ok(())
            }
            _ if !self.is_begun => Err(parse_error(begin, MISSING_HEADER)),
            ParsedLine { keys: 2, table: Some((at, name)), columns: Some(mut columns), .. } => {
                self.table(at, &name, &mut columns)
            }
            ParsedLine {
                keys: 3, table: Some((at, name)), id: Some(id), row: Some(row), ..
            } => self.row(at, &name, id, row),
            ParsedLine { keys: 1, end: Some(true), .. } => {
                self.is_over = true;
                Ok(())
            }
            _ => Err(parse_error(
                begin,
                "a line has `table` and `columns`, or `table`, `id` and `row`, or `end`",
            )),
        }
    }

    fn table(&mut self, at: usize, name: &str, columns: &mut Reader<'_>) -> Result<(), ParseError> {
        if self.targets.contains_key(name) {
            return Err(parse_error(at, format!("the table `{name}` is described twice")));
        }
        let begin = columns.next_offset();
        let given = table::read(columns, name)?;
        let known = self.stored.iter().position(|table| table.name == name);
        let position = known.unwrap_or(self.stored.len());
        match known {
            // A table without rows takes the definition of the lines.
            Some(known) if self.archive.rows[known].len() == 0 => self.stored[known] = given,
            Some(known) => {
                check_columns(&given, &self.stored[known])
                    .map_err(|what| parse_error(begin, what))?;
            }
            None => self.stored.push(given),
        }
        let table = &self.stored[position];
        let columns: Vec<StoredColumn> = table.live_columns().cloned().collect();
        let names = columns.iter().enumerate().map(|(at, column)| (column.name.to_string(), at));
        let (layout, names) = (table.layout(), names.collect());
        self.targets.insert(name.to_owned(), TargetTable { position, columns, layout, names });
        Ok(())
    }

    fn row(
        &mut self,
        at: usize,
        name: &str,
        id: (usize, Cow<'_, str>),
        mut from: Reader<'_>,
    ) -> Result<(), ParseError> {
        let target = self.targets.get(name);
        let target = target.ok_or_else(|| {
            parse_error(at, format!("the columns of `{name}` must be in a line before its rows"))
        })?;
        let (at, id) = id;
        let id: RowId = id.parse().map_err(|error| parse_error(at, format!("{error}")))?;
        if id.is_unassigned() {
            return Err(parse_error(at, "an id is not zero"));
        }
        let begin = from.next_offset();
        let row = if from.is_null() {
            let there = self.archive.rows.get(target.position);
            if there.is_none_or(|rows| rows.get(id).is_none()) {
                return Err(parse_error(begin, "the row to remove does not exist"));
            }
            None
        } else {
            Some(target.row(&mut from)?)
        };
        match self.rows.entry(target.position).or_default().insert(id, row) {
            None => Ok(()),
            Some(_) => {
                Err(parse_error(at, format!("the row {id} of `{name}` is in an earlier line")))
            }
        }
    }
}

impl TargetTable {
    /// Reads a row with its columns by name.
    fn row(&self, from: &mut Reader<'_>) -> Result<Row, ParseError> {
        let begin = from.next_offset();
        let mut given: Vec<Option<ParsedValue<'_>>> = vec![None; self.columns.len()];
        from.object(|from, at, name| {
            let position = self.names.get(&*name);
            let position =
                *position.ok_or_else(|| parse_error(at, format!("there is no column `{name}`")))?;
            let column = &self.columns[position];
            let value = if column.is_optional && from.is_null() {
                from.scalar()?;
                ParsedValue::Plain(Value::Null)
            } else {
                value::read(from, &column.kind, &column.name)?
            };
            set_once(&mut given[position], value, at)
        })?;
        let mut values = Vec::with_capacity(given.len());
        for (column, given) in self.columns.iter().zip(&given) {
            values.push(match given {
                Some(given) => given.value(),
                None if column.default == Constant::Null && !column.is_optional => {
                    return Err(parse_error(begin, format!("`{}` is missing", column.name)));
                }
                None => column.default.value(),
            });
        }
        let row = self.layout.write(&values);
        if row.len() > MAX_ROW_LENGTH {
            return Err(parse_error(begin, "a row has at most 8 MB"));
        }
        Ok(row)
    }
}

/// Checks that rows of a table as `given` by the lines fit into the existing table.
fn check_columns(given: &StoredTable, has: &StoredTable) -> Result<(), String> {
    let table = &has.name;
    for own in has.live_columns() {
        let Some(column) = given.live_columns().find(|column| column.name == own.name) else {
            if own.default == Constant::Null && !own.is_optional {
                return Err(format!(
                    "`{table}` has a column `{}` here, without a default",
                    own.name
                ));
            }
            continue;
        };
        if !own.kind.widens(&column.kind) {
            let name = &own.name;
            let (own, given) = (&own.kind, &column.kind);
            return Err(format!("the column `{table}.{name}` is {own} here, and not {given}"));
        }
        if column.is_optional && !own.is_optional {
            return Err(format!("the column `{table}.{}` is not optional here", own.name));
        }
    }
    match given.live_columns().find(|column| has.live_columns().all(|own| own.name != column.name))
    {
        Some(column) => Err(format!("`{table}` has no column `{}` here", column.name)),
        None => Ok(()),
    }
}

impl<'t> ParsedLine<'t> {
    fn read(from: &mut Reader<'t>) -> Result<Self, ParseError> {
        let mut parsed = Self::default();
        from.object(|from, at, key| {
            parsed.keys += 1;
            let position = from.next_offset();
            let mut defer = |slot: &mut Option<Reader<'t>>| {
                let value = *from;
                from.skip()?;
                set_once(slot, value, at)
            };
            match &*key {
                "columns" => defer(&mut parsed.columns),
                "row" => defer(&mut parsed.row),
                "table" => set_once(&mut parsed.table, (position, from.text()?), at),
                "id" => set_once(&mut parsed.id, (position, from.text()?), at),
                "bine" => set_once(&mut parsed.bine, from.text()?, at),
                "version" => set_once(&mut parsed.version, (position, read_whole(from)?), at),
                "end" => set_once(&mut parsed.end, read_bool(from)?, at),
                _ => Err(parse_error(at, format!("`{key}` is not a key of a line"))),
            }
        })?;
        Ok(parsed)
    }
}

/// Reads lines of at most [`MAX_LINE_LENGTH`] bytes.
struct Lines<'f> {
    from: &'f mut dyn BufRead,
    line: u64,
    bytes: Vec<u8>,
}

impl Lines<'_> {
    /// The next line that is not empty, with its number.
    fn next(&mut self) -> Result<Option<(u64, &str)>, LoadError> {
        loop {
            self.bytes.clear();
            let mut part = (&mut self.from).take(MAX_LINE_LENGTH as u64 + 1);
            let read = part.read_until(b'\n', &mut self.bytes).map_err(LoadError::Read)?;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            if read > MAX_LINE_LENGTH {
                let what = "a line has at most 64 MB";
                return Err(LoadError::at(self.line, "", &parse_error(0, what)));
            }
            if !self.bytes.trim_ascii().is_empty() {
                break;
            }
        }
        let text = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        match std::str::from_utf8(text) {
            Ok(text) => Ok(Some((self.line, text))),
            Err(error) => {
                let valid = String::from_utf8_lossy(&text[..error.valid_up_to()]);
                let parse_error = parse_error(valid.len(), "this is not UTF-8");
                Err(LoadError::at(self.line, &valid, &parse_error))
            }
        }
    }
}

impl LoadError {
    fn at(line: u64, text: &str, parse_error: &ParseError) -> Self {
        let before = text.get(..parse_error.at).unwrap_or(text);
        Self::Line { line, column: before.chars().count() + 1, what: parse_error.what.clone() }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { line, column, what } => write!(to, "line {line}, column {column}: {what}"),
            Self::Read(error) => write!(to, "cannot read: {error}"),
            Self::Journal(error) => error.fmt(to),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Line { .. } => None,
            Self::Read(error) => Some(error),
            Self::Journal(error) => Some(error),
        }
    }
}
