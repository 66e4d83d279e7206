//! Errors of a module: a place in the source, an excerpt with a marker, and the fix.

use std::fmt;

use crate::source::Source;

/// The maximum number of errors that one module reports.
pub(crate) const MAX_DIAGNOSTICS: usize = 50;

/// The maximum number of characters of a source line in an excerpt.
const MAX_EXCERPT: usize = 160;

/// One error in a module. [`Display`](fmt::Display) writes it with its excerpt:
///
/// ```text
/// board/index.tsx:7:6: HTML has no element `<buton>`; did you mean `<button>`?
///   7 |     <buton>Post</buton>
///     |      ^^^^^
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The name of the module, as given to [`compile`](crate::compile).
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The error and its fix.
    pub message: String,
    /// The source line, at most 160 characters of it.
    pub excerpt: String,
    /// The column of the error in the excerpt, from 0, and its length there.
    pub marked: (u32, u32),
}

/// A fault before its place is known as a line: byte offsets and a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(span: oxc_span::Span, message: impl Into<String>) -> Self {
        Self { start: span.start, end: span.end, message: message.into() }
    }
}

impl Diagnostic {
    pub(crate) fn new(file: &str, source: &Source<'_>, fault: &Fault) -> Self {
        let place = source.place(fault.start);
        let text = source.line_text(place.line);
        let before = place.column.saturating_sub(1) as usize;
        // A long line is cut around the error.
        let skipped = before.saturating_sub(MAX_EXCERPT / 2);
        let excerpt: String = text.chars().skip(skipped).take(MAX_EXCERPT).collect();
        let at = before - skipped;
        let marked = source.slice(fault.start, fault.end);
        let length = marked.split(['\n', '\r']).next().unwrap_or_default().chars().count();
        let room = excerpt.chars().count().saturating_sub(at);
        let length = length.min(room).max(1);
        Self {
            file: file.to_owned(),
            line: place.line,
            column: place.column,
            message: fault.message.clone(),
            excerpt: excerpt.replace('\t', " "),
            marked: (at as u32, length as u32),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message, excerpt, marked: (at, length) } = self;
        let number = line.to_string();
        let (at, length) = (*at as usize, *length as usize);
        writeln!(to, "{file}:{line}:{column}: {message}")?;
        writeln!(to, "  {number} | {excerpt}")?;
        write!(to, "  {:width$} | {:at$}{}", "", "", "^".repeat(length), width = number.len())
    }
}

impl std::error::Error for Diagnostic {}
