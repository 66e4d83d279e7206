//! Style sheets: `css!`, `css_file!` and the attribute `style`.
//!
//! `text` joins the input to one text, `lex` and `parse` read it by the rules of CSS, `check` and
//! its helpers (`value`, `selector`, `prelude`) look up names, and `write` produces the minified
//! sheet.

mod check;
mod lex;
mod parse;
mod prelude;
mod selector;
mod sheet;
mod text;
mod tree;
mod value;
mod write;

use bine_vocabulary::nearest;

use crate::fault::Fault;

pub(crate) use sheet::{Site, css, css_file};

use lex::{Piece, PieceKind, lex};
use parse::{Mistake, parse};
use text::Text;

/// Reports the errors in the literal value of a `style` attribute.
pub(crate) fn attribute(value: &str, origin: usize, faults: &mut Vec<Fault>) {
    let text = Text::of_literal(value, origin);
    let pieces = lex(&text.text);
    let mut mistakes = Vec::new();
    let items = parse(&pieces, &mut mistakes);
    check::attribute(&items, &mut mistakes);
    add_faults(&text, mistakes, faults);
}

/// Converts mistakes to faults, in the order of the text.
fn add_faults(text: &Text, mut mistakes: Vec<Mistake>, faults: &mut Vec<Fault>) {
    mistakes.sort();
    mistakes.dedup();
    faults.extend(mistakes.iter().map(|(at, message)| text.fault(*at, message)));
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

#[cfg(test)]
mod tests;
