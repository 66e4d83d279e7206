//! Decides how generated code carries the user's own tokens: as text with numbered places for them.

use crate::fault::Fault;
use crate::token::Token;

/// Rust code in which every `__run7` stands for the seventh run of the user's tokens.
///
/// Text keeps the emitters readable and testable; the runs keep every token of the user where it was written.
/// No word of the user is ever spelled in the text, so a place cannot be mistaken.
#[derive(Debug, Default)]
pub(crate) struct Expansion {
    pub(crate) code: String,
    pub(crate) runs: Vec<Vec<Token>>,
    /// Code for what stands in a token of the user's, as a class in a style sheet, with the token's origin.
    pub(crate) owned: Vec<(usize, String)>,
    pub(crate) faults: Vec<Fault>,
}

/// What the identifier of a place in the code asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// The tokens of a run.
    Run(usize),
    /// A word of ours, to be blamed on the first token of a run.
    Word { run: usize, word: &'a str },
    /// A piece of the code that is the user's own.
    Owned(usize),
}

const RUN: &str = "__run";
const OWNED: &str = "__owned";
const WORD: &str = "__at";

impl Expansion {
    /// Adds code of ours.
    pub(crate) fn code(&mut self, code: &str) {
        self.code.push_str(code);
    }

    /// Adds tokens of the user, and says under which number.
    pub(crate) fn run(&mut self, tokens: &[Token]) -> usize {
        let run = self.runs.len();
        self.runs.push(tokens.to_vec());
        self.code(&format!(" {RUN}{run} "));
        run
    }

    /// Adds a word of ours that an error message is to place at that run, which may be the next.
    pub(crate) fn word_at(&mut self, run: usize, word: &str) {
        self.code(&format!("{WORD}{run}_{word}"));
    }

    /// Adds code that stands for a token of the user's: it is seen where that is, and warned of as if written there.
    pub(crate) fn owned(&mut self, origin: usize, code: impl Into<String>) {
        self.code(&format!(" {OWNED}{} ", self.owned.len()));
        self.owned.push((origin, code.into()));
    }

    /// Adds a string literal.
    pub(crate) fn string(&mut self, value: &str) {
        self.code(&format!("{value:?}"));
    }
}

/// What an identifier of the code stands for, unless it stands for itself.
pub(crate) fn place(identifier: &str) -> Option<Place<'_>> {
    if let Some(run) = identifier.strip_prefix(RUN) {
        return Some(Place::Run(run.parse().ok()?));
    }
    if let Some(owned) = identifier.strip_prefix(OWNED) {
        return Some(Place::Owned(owned.parse().ok()?));
    }
    let (run, word) = identifier.strip_prefix(WORD)?.split_once('_')?;
    Some(Place::Word { run: run.parse().ok()?, word })
}
