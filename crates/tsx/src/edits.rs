//! Edits of the source that keep every line where it is, and the map of columns back.

use crate::source::Position;

/// Replacements of parts of a text.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    edits: Vec<Edit>,
}

#[derive(Debug)]
struct Edit {
    start: u32,
    end: u32,
    text: String,
}

/// Two edits of one place. It is a defect of the compiler, reported instead of a wrong program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overlap {
    pub(crate) at: u32,
}

impl Edits {
    /// Replaces a part by code without line breaks, and keeps the line breaks of the part after it.
    ///
    /// If the part contains line breaks, the code after it keeps its column as well.
    pub(crate) fn replace(&mut self, source: &str, (start, end): (u32, u32), code: &str) {
        let replaced = &source[start as usize..end as usize];
        let mut text = code.to_owned();
        if let Some(last) = replaced.rfind(is_line_end) {
            text.extend(replaced.chars().filter(|letter| is_line_end(*letter)));
            let length = replaced[last..].chars().count() - 1;
            text.extend(std::iter::repeat_n(' ', length));
        }
        self.edits.push(Edit { start, end, text });
    }

    /// Replaces a part by blanks of the same length. `first` replaces the first character.
    pub(crate) fn blank(&mut self, source: &str, (start, end): (u32, u32), first: &str) {
        let replaced = &source[start as usize..end as usize];
        let blank = |letter: char| if is_line_end(letter) { letter } else { ' ' };
        let skipped = if replaced.starts_with(is_line_end) { 0 } else { first.len() };
        let mut text = first.to_owned();
        text.extend(replaced.chars().skip(skipped).map(blank));
        self.edits.push(Edit { start, end, text });
    }

    /// The text of a part of the source, with the edits in it and further replacements. Those of the
    /// edits that overlap a replacement are types after a name, which the replacement keeps.
    pub(crate) fn text_in(
        &self,
        source: &str,
        (start, end): (u32, u32),
        replacements: &[((u32, u32), String)],
    ) -> String {
        let within = self.edits.iter().filter(|edit| start <= edit.start && edit.end <= end);
        let mut all: Vec<(u32, u32, &str)> =
            within.map(|edit| (edit.start, edit.end, edit.text.as_str())).collect();
        all.extend(replacements.iter().map(|((start, end), text)| (*start, *end, text.as_str())));
        all.sort_by_key(|(start, end, _)| (*start, *end));
        let (mut text, mut at) = (String::new(), start);
        for (start, end, replacement) in all {
            if start < at {
                continue;
            }
            text.push_str(&source[at as usize..start as usize]);
            text.push_str(replacement);
            at = end;
        }
        text.push_str(&source[at as usize..end as usize]);
        text
    }

    /// Removes the edits in a part of the source, which is replaced as a whole.
    pub(crate) fn remove_in(&mut self, (start, end): (u32, u32)) {
        self.edits.retain(|edit| edit.start < start || end < edit.end);
    }

    /// Applies the edits.
    pub(crate) fn apply(mut self, source: &str) -> Result<(String, ColumnMap), Overlap> {
        // A stable sort: insertions at one place keep their order.
        self.edits.sort_by_key(|edit| (edit.start, edit.end));
        let mut out = Output::new();
        let mut at = 0;
        for edit in &self.edits {
            if edit.start < at {
                return Err(Overlap { at: edit.start });
            }
            out.keep(&source[at as usize..edit.start as usize]);
            out.put(&source[edit.start as usize..edit.end as usize], &edit.text);
            at = edit.end;
        }
        out.keep(&source[at as usize..]);
        Ok((out.text, ColumnMap { lines: out.lines }))
    }
}

/// The characters that end a line in JavaScript.
pub(crate) const fn is_line_end(letter: char) -> bool {
    matches!(letter, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// Maps columns of the generated code to columns of the source. Lines are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnMap {
    /// The segments of each line, in order.
    lines: Vec<Vec<Segment>>,
}

/// A part of a line from this column on, in generated code and in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    generated: u32,
    source: u32,
    /// Whether the part is source text, so that columns advance alike.
    is_kept: bool,
}

impl ColumnMap {
    /// The position in the source, in characters, of a position in the generated code, in bytes of
    /// UTF-8, as QuickJS-ng counts. Generated code maps to the start of the source that it replaces.
    pub fn source_position(&self, Position { line, column }: Position) -> Position {
        let segments = self.lines.get(line.saturating_sub(1) as usize);
        let segments = segments.map(Vec::as_slice).unwrap_or_default();
        let next = segments.partition_point(|segment| segment.generated <= column);
        let Some(segment) = next.checked_sub(1).map(|index| segments[index]) else {
            return Position { line, column };
        };
        let advance = if segment.is_kept { column - segment.generated } else { 0 };
        Position { line, column: segment.source + advance }
    }

    /// Moves the rest of the first line, when generated code at its start changes its length.
    pub(crate) fn move_first_line(&mut self, old: u32, new: u32) {
        let Some((_, rest)) = self.lines.first_mut().and_then(|line| line.split_first_mut()) else {
            return;
        };
        for segment in rest {
            segment.generated = segment.generated + new - old;
        }
    }
}

/// The generated code, with the current columns from 0: bytes of generated code, characters of the
/// source.
struct Output {
    text: String,
    /// The lines so far; the last one is incomplete.
    lines: Vec<Vec<Segment>>,
    generated: u32,
    source: u32,
}

impl Output {
    fn new() -> Self {
        Self { text: String::new(), lines: vec![Vec::new()], generated: 0, source: 0 }
    }

    fn keep(&mut self, text: &str) {
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.next_line();
            }
            self.keep_in_line(line);
        }
        self.text.push_str(text);
    }

    /// Keeps a part of a line. Each run of ASCII is a segment, because its columns advance alike.
    fn keep_in_line(&mut self, text: &str) {
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let run = rest.find(|letter: char| !letter.is_ascii()).unwrap_or(rest.len());
            let length = if run > 0 { run } else { first.len_utf8() };
            self.segment(false, run > 0);
            self.generated += length as u32;
            self.source += if run > 0 { run as u32 } else { 1 };
            rest = &rest[length..];
        }
    }

    fn put(&mut self, replaced: &str, text: &str) {
        // Both have the same line breaks, so the last line of each ends the same line.
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.next_line();
            }
            self.segment(line.is_empty(), false);
            self.generated += line.len() as u32;
        }
        let last = replaced.rsplit('\n').next().unwrap_or_default();
        self.source += last.chars().count() as u32;
        self.text.push_str(text);
    }

    fn segment(&mut self, is_empty: bool, is_kept: bool) {
        if let (false, Some(line)) = (is_empty, self.lines.last_mut()) {
            line.push(Segment { generated: self.generated + 1, source: self.source + 1, is_kept });
        }
    }

    fn next_line(&mut self) {
        self.lines.push(Vec::new());
        (self.generated, self.source) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, edits: Edits, expected: &str, columns: &[[(u32, u32); 2]]) {
        let (code, map) = edits.apply(source).expect("edits without overlap");
        assert_eq!(code, expected);
        for &[from, to] in columns {
            let at = Position { line: from.0, column: from.1 };
            let found = map.source_position(at);
            assert_eq!((found.line, found.column), to, "{from:?}");
        }
    }

    #[test]
    fn maps_columns_after_longer_code() {
        let source = "a <b> c\nd";
        let mut edits = Edits::default();
        edits.replace(source, (2, 5), "$html()");
        check(
            source,
            edits,
            "a $html() c\nd",
            &[[(1, 1), (1, 1)], [(1, 5), (1, 3)], [(1, 11), (1, 7)], [(2, 1), (2, 1)]],
        );
    }

    #[test]
    fn keeps_lines_and_columns_after_a_line_break() {
        let source = "<p>\n   {a}\n</p> + b";
        let mut edits = Edits::default();
        edits.replace(source, (0, 8), "$html($0,");
        edits.replace(source, (9, 15), ")");
        check(source, edits, "$html($0,\n    a)\n     + b", &[[(2, 5), (2, 5)], [(3, 8), (3, 8)]]);
    }

    /// Symptom: columns of a module that begins with an empty line were those of the line before.
    /// Cause: an empty first line was not counted.
    #[test]
    fn maps_columns_after_an_empty_first_line() {
        let source = "\n\u{e9}\u{e9} a";
        let columns = [[(2, 1), (2, 1)], [(2, 5), (2, 3)], [(2, 6), (2, 4)]];
        check(source, Edits::default(), source, &columns);
    }

    #[test]
    fn reports_overlapping_edits() {
        let mut edits = Edits::default();
        edits.blank("abcd", (0, 3), "");
        edits.blank("abcd", (2, 4), "");
        assert_eq!(edits.apply("abcd").err(), Some(Overlap { at: 2 }));
    }
}
