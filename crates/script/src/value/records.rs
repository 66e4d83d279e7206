//! Rows with the same columns, in a compact form.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Value;

/// The names of the columns of [`Records`].
///
/// Make them once and share them: each instance keeps what it needs to make objects with these names
/// quickly.
pub struct RecordKeys {
    names: Box<[String]>,
    /// The bytes of all names.
    bytes: usize,
    /// Differs from that of all other keys of the process.
    id: u64,
}

/// Rows with the same columns. For a script, [`Value::Records`] is an array of objects, and
/// [`Value::Record`] is one of them.
///
/// The cells of all rows are in one list, and their texts in one string, so that a row costs no
/// allocation. A script's rows reach the host as [`Value::Object`].
#[derive(Clone, PartialEq)]
pub struct Records {
    keys: Arc<RecordKeys>,
    /// Row after row.
    cells: Vec<Cell>,
    /// The texts of all cells, in order.
    texts: String,
}

/// A value in a row.
#[derive(Clone, Debug, PartialEq)]
enum Cell {
    Null,
    Bool(bool),
    Number(f64),
    /// A part of `texts`, of this length.
    Text(usize),
    Other(Box<Value>),
}

/// A value in a row, as a conversion reads it.
pub(crate) enum CellValue<'r> {
    Null,
    Bool(bool),
    Number(f64),
    Text(&'r str),
    Other(&'r Value),
}

/// The cells of records, in order.
pub(crate) struct Cells<'r> {
    cells: std::slice::Iter<'r, Cell>,
    /// The texts of the remaining cells.
    texts: &'r str,
}

impl RecordKeys {
    /// The keys of a row's columns, in order.
    pub fn new(names: impl IntoIterator<Item = impl Into<String>>) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let names: Box<[String]> = names.into_iter().map(Into::into).collect();
        let bytes = names.iter().map(String::len).sum();
        Arc::new(Self { names, bytes, id: NEXT.fetch_add(1, Ordering::Relaxed) })
    }

    /// The names of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) const fn id(&self) -> u64 {
        self.id
    }
}

impl Records {
    /// Records without rows. Push the cells of a row in the order of its columns, then those of the
    /// next row.
    pub fn new(keys: &Arc<RecordKeys>) -> Self {
        Self { keys: Arc::clone(keys), cells: Vec::new(), texts: String::new() }
    }

    /// The same, with space for some rows with short texts; at most for 65 536 cells.
    pub fn with_capacity(keys: &Arc<RecordKeys>, rows: usize) -> Self {
        let cells = rows.saturating_mul(keys.names.len()).min(1 << 16);
        let texts = String::with_capacity(8 * cells);
        Self { keys: Arc::clone(keys), cells: Vec::with_capacity(cells), texts }
    }

    /// Adds a cell. [`Value::Undefined`] becomes `null`.
    pub fn push(&mut self, value: Value) {
        let cell = match value {
            Value::Undefined | Value::Null => Cell::Null,
            Value::Bool(truth) => Cell::Bool(truth),
            Value::Number(number) => Cell::Number(number),
            Value::Text(text) => return self.push_text(&text),
            other => Cell::Other(Box::new(other)),
        };
        self.cells.push(cell);
    }

    /// Adds a cell with text.
    #[inline]
    pub fn push_text(&mut self, text: &str) {
        self.texts.push_str(text);
        self.cells.push(Cell::Text(text.len()));
    }

    /// Adds a cell with a number.
    #[inline]
    pub fn push_number(&mut self, number: f64) {
        self.cells.push(Cell::Number(number));
    }

    /// The keys.
    pub const fn keys(&self) -> &Arc<RecordKeys> {
        &self.keys
    }

    /// The number of whole rows. The cells of an unfinished row are ignored.
    pub fn len(&self) -> usize {
        self.cells.len().checked_div(self.keys.names.len()).unwrap_or(0)
    }

    /// Whether there is no whole row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cells, row after row.
    pub(crate) fn cells(&self) -> Cells<'_> {
        Cells { cells: self.cells.iter(), texts: &self.texts }
    }
}

impl<'r> Iterator for Cells<'r> {
    type Item = CellValue<'r>;

    #[inline]
    fn next(&mut self) -> Option<CellValue<'r>> {
        Some(match self.cells.next()? {
            Cell::Null => CellValue::Null,
            Cell::Bool(truth) => CellValue::Bool(*truth),
            Cell::Number(number) => CellValue::Number(*number),
            Cell::Text(length) => {
                let (text, rest) = self.texts.split_at(*length);
                self.texts = rest;
                CellValue::Text(text)
            }
            Cell::Other(value) => CellValue::Other(value),
        })
    }
}

/// Two keys are equal if they have the same names.
impl PartialEq for RecordKeys {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names
    }
}

impl fmt::Debug for RecordKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(&self.names).finish()
    }
}

impl fmt::Debug for CellValue<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Bool(truth) => truth.fmt(out),
            Self::Number(number) => number.fmt(out),
            Self::Text(text) => text.fmt(out),
            Self::Other(value) => value.fmt(out),
        }
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells: Vec<_> = self.cells().collect();
        out.debug_tuple("Records").field(&self.keys).field(&cells).finish()
    }
}
