//! Text outside quotes that Rust does not tokenize as it is meant.

use crate::fault::Fault;
use crate::literal;
use crate::token::{Delimiter, Gap, Kind, Token};

/// The longest text that a message repeats.
const LONGEST: usize = 60;

/// Reports a word of text that is followed directly by an apostrophe, `#` or a string: since Rust
/// 2021 such a word is a reserved prefix. The compiler reports it too, but suggests a space.
pub(super) fn check_word(tokens: &[Token], word: usize) -> Option<Fault> {
    let mark = tokens.get(word + 1).filter(|mark| mark.gap == Gap::None)?;
    if !tokens[word].is_word() {
        return None;
    }
    if let Some(string) = literal::string(mark) {
        let text = format!("{}{}", tokens[word].text, string.ok()?);
        let why = "a string cannot follow a word directly: put both in one string";
        return Some(Fault::new(mark, format!("{why}: {text:?}")));
    }
    let why = match mark.text.chars().next()? {
        '\'' => "an apostrophe starts a Rust lifetime here",
        '#' => "`#` directly after a word is reserved in Rust",
        _ => return None,
    };
    let text = around(tokens, word);
    Some(Fault::new(mark, format!("{why}: put the text in quotes: {text:?}")))
}

/// The index after the text that contains this word.
pub(super) fn end_of_text(tokens: &[Token], word: usize) -> usize {
    let after = tokens[word..].iter().position(|token| !is_text(token));
    after.map_or(tokens.len(), |after| word + after)
}

/// The text around a word, up to the next tag, hole or string.
fn around(tokens: &[Token], word: usize) -> String {
    let before = tokens[..word].iter().rev().take_while(|token| is_text(token) && !token.is(">"));
    let start = word - before.count();
    let mut text = String::new();
    for token in &tokens[start..end_of_text(tokens, word)] {
        if text.len() + token.text.len() > LONGEST {
            return text + " ..";
        }
        if !text.is_empty() && token.gap != Gap::None {
            text.push(' ');
        }
        text.push_str(&token.text);
    }
    text
}

fn is_text(token: &Token) -> bool {
    let is_literal = matches!(token.kind, Kind::Literal);
    token.group(Delimiter::Brace).is_none()
        && !token.is("<")
        && !(is_literal && literal::string(token).is_some())
}
