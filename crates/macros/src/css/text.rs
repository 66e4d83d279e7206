//! The text of a style sheet, with the origin of each part.
//!
//! Rust lexes parts of CSS differently from a browser (`10px` is a number with a suffix, `#1e3` has
//! an exponent), and its tokens have no white space. Therefore the tokens are joined to text again,
//! which the CSS lexer reads in the same way as a string or a file.

use bine_markup::css::{in_lines, position};

use crate::fault::Fault;
use crate::literal;
use crate::token::{Delimiter, Gap, Kind, Token};

/// The text of a style sheet and its origins.
#[derive(Debug, Default)]
pub(crate) struct Text {
    pub(crate) text: String,
    /// In ascending order of `at`.
    parts: Vec<Part>,
}

/// A part of the text, up to the start of the next part.
#[derive(Debug)]
struct Part {
    at: usize,
    /// The token that errors point at.
    origin: usize,
    kind: PositionStyle,
}

/// The form of positions in error messages.
#[derive(Debug)]
enum PositionStyle {
    /// The token is sufficient.
    Token,
    /// The text is in a single-line literal.
    Quoted,
    /// The text is in a literal of several lines: messages contain line and column.
    Lines,
    /// The text is in the file of this name.
    File(String),
}

impl Text {
    /// The content of `css!`: tokens of CSS. A string at the start of a statement is replaced by
    /// its value.
    pub(crate) fn of_tokens(tokens: &[Token], faults: &mut Vec<Fault>) -> Self {
        let mut text = Self::default();
        Joiner { text: &mut text, begins: true, faults }.join(tokens);
        text
    }

    /// The content of the file that a literal names.
    pub(crate) fn of_file(name: &str, content: String, origin: usize) -> Self {
        let part = Part { at: 0, origin, kind: PositionStyle::File(name.to_owned()) };
        Self { text: content, parts: vec![part] }
    }

    /// The origin of a position in the text.
    pub(crate) fn origin(&self, at: usize) -> usize {
        self.part(at).map_or(Fault::WHOLE, |part| part.origin)
    }

    /// A fault at a position in the text.
    pub(crate) fn fault(&self, at: usize, message: &str) -> Fault {
        let Some(part) = self.part(at) else { return Fault::at(Fault::WHOLE, message) };
        let (line, column) = position(&self.text[part.at..], at - part.at);
        let message = match &part.kind {
            PositionStyle::File(name) => format!("{name}:{line}:{column}: {message}"),
            PositionStyle::Lines => in_lines((line, column), message),
            PositionStyle::Quoted | PositionStyle::Token => message.to_owned(),
        };
        Fault::at(part.origin, message)
    }

    fn part(&self, at: usize) -> Option<&Part> {
        let next = self.parts.partition_point(|part| part.at <= at);
        self.parts.get(next.saturating_sub(1))
    }

    fn add_literal(&mut self, value: &str, origin: usize) {
        self.add(
            value,
            origin,
            if value.contains('\n') { PositionStyle::Lines } else { PositionStyle::Quoted },
        );
    }

    fn add(&mut self, text: &str, origin: usize, kind: PositionStyle) {
        self.parts.push(Part { at: self.text.len(), origin, kind });
        self.text.push_str(text);
    }
}

/// Joins tokens to text.
struct Joiner<'t, 'f> {
    text: &'t mut Text,
    /// Whether the next token begins a statement.
    begins: bool,
    faults: &'f mut Vec<Fault>,
}

impl Joiner<'_, '_> {
    fn join(&mut self, tokens: &[Token]) {
        for token in tokens {
            // `2em` is not a token of Rust, which expects an exponent after `e`. Users write
            // `2 em`.
            let is_unit = token.gap == Gap::Space && (token.is("em") || token.is("ex"));
            if !(is_unit && ends_with_number(&self.text.text)) {
                self.gap(token.gap);
            }
            self.token(token);
        }
    }

    fn token(&mut self, token: &Token) {
        let begins = std::mem::replace(&mut self.begins, token.is(";"));
        match &token.kind {
            Kind::Word => self.add(token.text.trim_start_matches("r#"), token),
            Kind::Mark => self.add(&token.text, token),
            Kind::Literal => match literal::string(token) {
                Some(Ok(value)) if begins => {
                    self.text.add_literal(&value, token.origin);
                    self.begins = true;
                }
                Some(Ok(value)) => self.add(&quoted(&value), token),
                Some(Err(fault)) => self.faults.push(fault),
                None => self.add(&token.text, token),
            },
            Kind::Group(group) => {
                let (open, close) = match group.delimiter {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Invisible => ("", ""),
                };
                let is_block = group.delimiter == Delimiter::Brace;
                self.begins = is_block;
                self.add(open, token);
                self.join(&group.tokens);
                self.gap(group.last_gap);
                self.add(close, token);
                self.begins = is_block;
            }
        }
    }

    fn add(&mut self, text: &str, token: &Token) {
        self.text.add(text, token.origin, PositionStyle::Token);
    }

    fn gap(&mut self, gap: Gap) {
        self.text.text.push_str(match gap {
            Gap::None => "",
            Gap::Space => " ",
            Gap::Line => "\n",
        });
    }
}

/// Whether a text ends with a number without a unit. The end of a name as in `.column-2` does not
/// count.
fn ends_with_number(text: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    let last = text.rsplit(|letter| !is_part(letter)).next().unwrap_or_default();
    last.ends_with(|digit: char| digit.is_ascii_digit())
        && !last.contains(|letter: char| letter.is_alphabetic() || letter == '_')
}

/// Quotes a value as a CSS string (CSS Object Model, "serialize a string").
fn quoted(value: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in value.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            _ if letter.is_control() => {
                quoted.extend(["\\", &format!("{:x}", u32::from(letter)), " "]);
            }
            _ => quoted.push(letter),
        }
    }
    quoted + "\""
}
