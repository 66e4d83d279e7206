//! Decides what `css!`, `css_file!` and the attribute `style` may hold, and what becomes of it.
//!
//! `text` makes one text of what was given, `lex` and `parse` read it as CSS says, `check` and what it asks (`value`,
//! `selector`, `prelude`) look up its names.

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

use lex::{Kind, Piece, lex};
use parse::{Mistake, parse};
use text::Text;

/// Notes what is wrong with the value of a `style` attribute, which is a literal.
pub(crate) fn attribute(value: &str, origin: usize, faults: &mut Vec<Fault>) {
    let text = Text::of_literal(value, origin);
    let pieces = lex(&text.text);
    let mut mistakes = Vec::new();
    let items = parse(&pieces, &mut mistakes);
    check::attribute(&items, &mut mistakes);
    tell(&text, mistakes, faults);
}

/// Turns mistakes into faults, in the order of the text.
fn tell(text: &Text, mut mistakes: Vec<Mistake>, faults: &mut Vec<Fault>) {
    mistakes.sort();
    mistakes.dedup();
    faults.extend(mistakes.iter().map(|(at, message)| text.fault(*at, message)));
}

/// What was perhaps meant, for a message; `before` is what stands before such a name.
fn did_you_mean<'a>(before: &str, name: &str, among: impl IntoIterator<Item = &'a str>) -> String {
    let near = nearest(name, among);
    near.map_or_else(String::new, |near| format!("; did you mean `{before}{near}`?"))
}

/// The parts between a sign that stands in no bracket.
fn split_at_depth<'p>(
    pieces: &'p [Piece<'p>],
    sign: &'static str,
) -> impl Iterator<Item = &'p [Piece<'p>]> {
    let mut depth = 0_usize;
    pieces.split(move |piece| {
        if piece.opens() {
            depth += 1;
        } else if piece.kind == Kind::Close {
            depth = depth.saturating_sub(1);
        }
        depth == 0 && piece.is(sign)
    })
}

#[cfg(test)]
mod tests;
