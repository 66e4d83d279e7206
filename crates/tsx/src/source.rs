//! The text of a module, with its lines.

/// The text of a module.
pub(crate) struct Source<'s> {
    pub(crate) text: &'s str,
    /// The byte offset of each line.
    lines: Vec<u32>,
}

/// A place in a text, from line 1 and column 1. Columns count characters, unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl<'s> Source<'s> {
    pub(crate) fn new(text: &'s str) -> Self {
        let starts = text.bytes().zip(1..).filter(|(byte, _)| *byte == b'\n').map(|(_, at)| at);
        Self { text, lines: std::iter::once(0).chain(starts).collect() }
    }

    /// The text between two byte offsets; offsets outside the text or inside a character count as
    /// the nearest before.
    pub(crate) fn slice(&self, start: u32, end: u32) -> &'s str {
        let (start, end) = (self.floor(start), self.floor(end));
        self.text.get(start..end.max(start)).unwrap_or_default()
    }

    /// The place of a byte offset.
    pub(crate) fn place(&self, at: u32) -> Position {
        let at = self.floor(at) as u32;
        let line = self.lines.partition_point(|start| *start <= at).max(1);
        let start = self.lines[line - 1];
        let column = self.slice(start, at).chars().count() as u32 + 1;
        Position { line: line as u32, column }
    }

    /// The byte offset of a place.
    pub(crate) fn offset(&self, place: Position) -> u32 {
        let text = self.line_text(place.line);
        let before = text.chars().take(place.column.saturating_sub(1) as usize);
        let start = self.lines.get(place.line.saturating_sub(1) as usize).copied();
        start.unwrap_or_default() + before.map(char::len_utf8).sum::<usize>() as u32
    }

    /// The text of a line, from 1, without its end.
    pub(crate) fn line_text(&self, line: u32) -> &'s str {
        let index = line.saturating_sub(1) as usize;
        let start = self.lines.get(index).copied().unwrap_or_default();
        let end = self.lines.get(index + 1).copied().unwrap_or(self.text.len() as u32);
        self.slice(start, end).trim_end_matches(['\n', '\r'])
    }

    fn floor(&self, at: u32) -> usize {
        let mut at = (at as usize).min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}
