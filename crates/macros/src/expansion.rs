//! Generated code with placeholders for the user's tokens.

use crate::fault::Fault;
use crate::token::Token;

/// Rust code in which each `__run7` is a placeholder for run 7 of the user's tokens.
///
/// Code as text keeps the emitters readable and testable. Runs keep the spans of the user's tokens.
/// The text never contains the user's identifiers, so no identifier can be mistaken for a
/// placeholder.
#[derive(Debug, Default)]
pub(crate) struct Expansion {
    pub(crate) code: String,
    pub(crate) runs: Vec<Vec<Token>>,
    /// Code that takes the span of a user's token, such as a class in a style sheet, with its
    /// origin.
    pub(crate) owned: Vec<(usize, String)>,
    pub(crate) faults: Vec<Fault>,
}

/// The meaning of a placeholder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placeholder<'a> {
    /// The tokens of a run.
    Run(usize),
    /// A generated identifier that takes the span of a run's first token.
    Word { run: usize, word: &'a str },
    /// An entry of [`Expansion::owned`].
    Owned(usize),
}

const RUN: &str = "__run";
const OWNED: &str = "__owned";
const WORD: &str = "__at";

impl Expansion {
    /// Appends generated code.
    pub(crate) fn code(&mut self, code: &str) {
        self.code.push_str(code);
    }

    /// Appends tokens of the user and returns the number of the run.
    pub(crate) fn run(&mut self, tokens: &[Token]) -> usize {
        let run = self.runs.len();
        self.runs.push(tokens.to_vec());
        self.code(&format!(" {RUN}{run} "));
        run
    }

    /// Appends a generated identifier with the span of a run. The run may be the next one to be
    /// added.
    pub(crate) fn word_at(&mut self, run: usize, word: &str) {
        self.code(&format!("{WORD}{run}_{word}"));
    }

    /// Appends code with the span of a user's token, so that warnings appear there.
    pub(crate) fn owned(&mut self, origin: usize, code: impl Into<String>) {
        self.code(&format!(" {OWNED}{} ", self.owned.len()));
        self.owned.push((origin, code.into()));
    }

    /// Appends a string literal.
    pub(crate) fn string(&mut self, value: &str) {
        self.code(&format!("{value:?}"));
    }
}

/// Parses an identifier of the code as a placeholder.
pub(crate) fn placeholder(identifier: &str) -> Option<Placeholder<'_>> {
    if let Some(run) = identifier.strip_prefix(RUN) {
        return Some(Placeholder::Run(run.parse().ok()?));
    }
    if let Some(owned) = identifier.strip_prefix(OWNED) {
        return Some(Placeholder::Owned(owned.parse().ok()?));
    }
    let (run, word) = identifier.strip_prefix(WORD)?.split_once('_')?;
    Some(Placeholder::Word { run: run.parse().ok()?, word })
}
