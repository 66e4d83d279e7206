//! The syntax and the names of CSS.
//!
//! `lex` and `parse` read a text by the rules of CSS, `check` and its helpers (`value`, `selector`,
//! `prelude`) look up names.

mod check;
mod lex;
mod parse;
mod prelude;
mod selector;
mod tree;
mod value;

use bine_vocabulary::nearest;

use crate::fault::Fault;

pub use check::sheet;
pub use lex::{Gap, Piece, PieceKind, lex};
pub use parse::{Mistake, parse};
pub use selector::inside;
pub use tree::{AtRule, Declaration, Item, Rule};

/// Reports the errors in the literal value of a `style` attribute, in the order of the text.
pub fn attribute(value: &str, origin: usize, faults: &mut Vec<Fault>) {
    let pieces = lex(value);
    let mut mistakes = Vec::new();
    let items = parse(&pieces, &mut mistakes);
    check::attribute(&items, &mut mistakes);
    mistakes.sort();
    mistakes.dedup();
    faults.extend(mistakes.into_iter().map(|(at, message)| {
        let message =
            if value.contains('\n') { in_lines(position(value, at), &message) } else { message };
        Fault { origin, message }
    }));
}

/// The line and the column of a byte offset, both from 1.
pub fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

/// A message about a position in a literal of several lines.
pub fn in_lines((line, column): (usize, usize), message: &str) -> String {
    format!("in line {line} of this text, column {column}: {message}")
}

/// A suggestion for a message. `before` is a prefix of the suggested name.
fn did_you_mean<'a>(before: &str, name: &str, among: impl IntoIterator<Item = &'a str>) -> String {
    let near = nearest(name, among);
    near.map_or_else(String::new, |near| format!("; did you mean `{before}{near}`?"))
}

/// Splits at a sign outside of brackets.
fn split_at_depth<'p>(
    pieces: &'p [Piece<'p>],
    sign: &'static str,
) -> impl Iterator<Item = &'p [Piece<'p>]> {
    let mut depth = 0_usize;
    pieces.split(move |piece| {
        if piece.opens() {
            depth += 1;
        } else if piece.kind == PieceKind::Close {
            depth = depth.saturating_sub(1);
        }
        depth == 0 && piece.is(sign)
    })
}
