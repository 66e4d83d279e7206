//! Style sheets: `css!` and `css_file!`.
//!
//! `text` joins the input to one text, `bine_markup::css` reads and checks it, and `write` produces
//! the minified sheet.

mod sheet;
mod text;
mod write;

use bine_markup::css::Mistake;

use crate::fault::Fault;

pub(crate) use sheet::{Site, css, css_file};

use text::Text;

/// Converts mistakes to faults, in the order of the text.
fn add_faults(text: &Text, mut mistakes: Vec<Mistake>, faults: &mut Vec<Fault>) {
    mistakes.sort();
    mistakes.dedup();
    faults.extend(mistakes.iter().map(|(at, message)| text.fault(*at, message)));
}

#[cfg(test)]
mod tests;
