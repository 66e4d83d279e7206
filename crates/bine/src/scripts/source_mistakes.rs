//! The mistakes of applications that are found without running them, for the command line.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// The result of a check.
#[derive(Default, Debug)]
pub(super) struct SourceCheck {
    /// The number of files that were read.
    pub(super) files: usize,
    pub(super) mistakes: Vec<SourceMistake>,
    /// A sentence for people: the further checks, or why they did not run.
    pub(super) note: String,
}

/// A mistake at a place of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SourceMistake {
    /// The path of the file, below the folder of the site.
    pub(super) file: String,
    /// The line and the column, in characters from 1; `None`: the file as a whole.
    pub(super) line: Option<u32>,
    pub(super) column: Option<u32>,
    pub(super) message: String,
    /// The lines of the file around it, if they are known.
    pub(super) excerpt: String,
    /// The tool that has found it: `bine` or `typescript`.
    pub(super) source: &'static str,
}

impl SourceMistake {
    /// Reads a mistake as it is printed: `FILE:LINE:COLUMN: MESSAGE`, and the lines after it.
    /// `folder` precedes the name of the file.
    pub(super) fn of_text(folder: &str, text: &str) -> Self {
        let (first, excerpt) = text.split_once('\n').unwrap_or((text, ""));
        let (place, message) = first.split_once(": ").unwrap_or((folder, first));
        let mut parts = place.rsplitn(3, ':');
        let mut number = || parts.next().and_then(|part| part.parse().ok());
        let numbers = number().zip(number());
        let rest = parts.next().filter(|_| numbers.is_some());
        let (file, line, column) = match (numbers, rest) {
            (Some((column, line)), Some(file)) => (file, Some(line), Some(column)),
            _ => (place, None, None),
        };
        let file = if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") };
        let (message, excerpt) = (message.to_owned(), excerpt.to_owned());
        Self { file, line, column, message, excerpt, source: "bine" }
    }

    fn json(&self) -> Value {
        let Self { file, line, column, message, excerpt, source } = self;
        json!({
            "file": file,
            "line": line,
            "column": column,
            "message": message,
            "excerpt": excerpt,
            "source": source,
        })
    }
}

impl SourceCheck {
    /// The text for people: each mistake with its place, and the number of all.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for one in &self.mistakes {
            let place = one.line.zip(one.column);
            let place =
                place.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"));
            let excerpt =
                if one.excerpt.is_empty() { String::new() } else { format!("\n{}", one.excerpt) };
            // A `String` takes any text.
            let _ = writeln!(text, "{}{place}: {}{excerpt}\n", one.file, one.message);
        }
        let plural = |count: usize, one: &str| {
            let end = if count == 1 { "" } else { "s" };
            format!("{count} {one}{end}")
        };
        let mistakes = match self.mistakes.len() {
            0 => "no mistake".to_owned(),
            count => plural(count, "mistake"),
        };
        let _ = writeln!(text, "{} in {}; {}", mistakes, plural(self.files, "file"), self.note);
        text
    }

    /// The JSON for programs.
    pub(super) fn json(&self) -> String {
        let Self { files, mistakes, note } = self;
        let mistakes: Vec<Value> = mistakes.iter().map(SourceMistake::json).collect();
        format!("{:#}\n", json!({ "files": files, "mistakes": mistakes, "note": note }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_place_of_a_mistake() {
        let place = |text: &str| {
            let one = SourceMistake::of_text("board", text);
            (one.file, one.line.zip(one.column), one.message, one.excerpt)
        };
        let expected = |file: &str, place, message: &str, excerpt: &str| {
            (file.to_owned(), place, message.to_owned(), excerpt.to_owned())
        };
        assert_eq!(
            place("rooms/index.tsx:3:14: `a` is b: c\n  3 | a\n    | ^"),
            expected("board/rooms/index.tsx", Some((3, 14)), "`a` is b: c", "  3 | a\n    | ^")
        );
        assert_eq!(
            place("index.tsx: there is no such file: a"),
            expected("board/index.tsx", None, "there is no such file: a", "")
        );
        assert_eq!(place("a:b.tsx:1:2: x"), expected("board/a:b.tsx", Some((1, 2)), "x", ""));
        assert_eq!(place("text"), expected("board/board", None, "text", ""));
    }

    #[test]
    fn counts_mistakes_for_people() {
        let mut check = SourceCheck { files: 1, note: "n".to_owned(), ..SourceCheck::default() };
        assert_eq!(check.text(), "no mistake in 1 file; n\n");
        check.files = 2;
        check.mistakes.push(SourceMistake::of_text("", "a.ts:1:2: b\n  1 | a"));
        assert_eq!(check.text(), "a.ts:1:2: b\n  1 | a\n\n1 mistake in 2 files; n\n");
        let json: serde_json::Value = serde_json::from_str(&check.json()).unwrap();
        assert_eq!(json["mistakes"][0]["line"], 1);
    }
}
