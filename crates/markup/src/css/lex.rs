//! Lexer of CSS (CSS Syntax 3, section 4).

/// A token of a style sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'t> {
    /// The kind of the token.
    pub kind: PieceKind,
    /// The source text.
    pub text: &'t str,
    /// The byte offset.
    pub at: usize,
    /// The white space before it.
    pub gap: Gap,
    /// Whether only a comment separates it from the previous token.
    pub comment: bool,
}

/// The white space before a token, the widest last. Comments count as white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    /// No white space.
    None,
    /// White space without a line break.
    Space,
    /// White space with a line break.
    Line,
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceKind {
    /// A name or a keyword.
    Word,
    /// A word and the opening parenthesis after it.
    Function,
    /// A word after `@`.
    At,
    /// A word after `#`.
    Hash,
    /// A string with its quotes.
    String,
    /// A string without a closing quote.
    OpenString,
    /// `url(..)` with an unquoted URL.
    Address,
    /// A number without a unit.
    Number,
    /// A number and `%`.
    Percentage,
    /// A number with a unit that begins at this byte.
    Dimension(usize),
    /// `(`, `[` or `{`.
    Open,
    /// `)`, `]` or `}`.
    Close,
    /// Any other sign.
    Mark,
}

impl<'t> Piece<'t> {
    /// Whether this is the given sign, bracket or word, without regard to case.
    pub fn is(&self, text: &str) -> bool {
        matches!(self.kind, PieceKind::Mark | PieceKind::Open | PieceKind::Close | PieceKind::Word)
            && self.text.eq_ignore_ascii_case(text)
    }

    /// Whether it is a word.
    pub fn is_word(&self) -> bool {
        self.kind == PieceKind::Word
    }

    /// Whether it opens a bracket.
    pub fn opens(&self) -> bool {
        matches!(self.kind, PieceKind::Open | PieceKind::Function)
    }

    /// The name of a function, an at-rule or a hash, without the sign that marks it.
    pub fn name(&self) -> &'t str {
        self.text.trim_start_matches(['@', '#']).trim_end_matches('(')
    }
}

/// Splits a text into tokens. Any text is accepted.
pub fn lex(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    loop {
        let space = space(&text[at..]);
        at += space.length;
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else { return pieces };
        let (kind, length) = piece(rest, first);
        let text = &rest[..length];
        pieces.push(Piece { kind, text, at, gap: space.gap, comment: space.is_comment });
        at += length;
    }
}

/// White space and comments between two tokens.
struct Space {
    length: usize,
    gap: Gap,
    /// Whether it consists of comments only.
    is_comment: bool,
}

/// The white space and comments at the start of `text`.
fn space(text: &str) -> Space {
    let mut rest = text;
    let mut has_space = false;
    let mut has_line = false;
    let mut has_comment = false;
    loop {
        if let Some(comment) = rest.strip_prefix("/*") {
            has_comment = true;
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
            continue;
        }
        match rest.chars().next() {
            Some('\n' | '\r' | '\x0c') => has_line = true,
            Some(' ' | '\t') => has_space = true,
            _ => break,
        }
        rest = &rest[1..];
    }
    let gap = match (has_line, has_space) {
        (true, _) => Gap::Line,
        (false, true) => Gap::Space,
        (false, false) => Gap::None,
    };
    Space { length: text.len() - rest.len(), gap, is_comment: has_comment && gap == Gap::None }
}

/// The kind and length of the first token.
fn piece(rest: &str, first: char) -> (PieceKind, usize) {
    if let Some(length) = number(rest) {
        return match &rest[length..] {
            unit if unit.starts_with('%') => (PieceKind::Percentage, length + 1),
            unit => match word(unit) {
                0 => (PieceKind::Number, length),
                unit => (PieceKind::Dimension(length), length + unit),
            },
        };
    }
    let length = word(rest);
    if length > 0 {
        return match &rest[length..] {
            inside if !inside.starts_with('(') => (PieceKind::Word, length),
            inside => match address(&inside[1..]) {
                Some(end) if rest[..length].eq_ignore_ascii_case("url") => {
                    (PieceKind::Address, length + 1 + end)
                }
                _ => (PieceKind::Function, length + 1),
            },
        };
    }
    match first {
        '"' | '\'' => string(rest, first),
        '@' if word(&rest[1..]) > 0 => (PieceKind::At, 1 + word(&rest[1..])),
        '#' if name(&rest[1..]) > 0 => (PieceKind::Hash, 1 + name(&rest[1..])),
        '(' | '[' | '{' => (PieceKind::Open, 1),
        ')' | ']' | '}' => (PieceKind::Close, 1),
        other => (PieceKind::Mark, other.len_utf8()),
    }
}

/// The length of the number at the start of `text`.
fn number(text: &str) -> Option<usize> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let sign = usize::from(text.starts_with(['+', '-']));
    let whole = digits(&text[sign..]);
    let mut length = sign + whole;
    if text[length..].starts_with('.') && digits(&text[length + 1..]) > 0 {
        length += 1 + digits(&text[length + 1..]);
    } else if whole == 0 {
        return None;
    }
    if text[length..].starts_with(['e', 'E']) {
        let sign = usize::from(text[length + 1..].starts_with(['+', '-']));
        let exponent = digits(&text[length + 1 + sign..]);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    Some(length)
}

/// The length of the word at the start of `text`.
fn word(text: &str) -> usize {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let mut letters = unsigned.chars();
    let begins = match letters.next() {
        Some('-') => text.starts_with('-'),
        Some('\\') => letters.next().is_some_and(|next| next != '\n'),
        Some(letter) => is_of_name(letter) && !letter.is_ascii_digit(),
        None => false,
    };
    if begins { name(text) } else { 0 }
}

/// The length of the name characters at the start of `text`.
fn name(text: &str) -> usize {
    let mut rest = text;
    loop {
        let mut letters = rest.chars();
        match letters.next() {
            Some(letter) if is_of_name(letter) => rest = letters.as_str(),
            Some('\\') if letters.next().is_some_and(|next| next != '\n') => {
                rest = after_escape(&rest[1..]);
            }
            _ => return text.len() - rest.len(),
        }
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-' || letter == '_' || !letter.is_ascii()
}

/// The text after an escape whose `\` is already removed: at most six digits and a blank.
fn after_escape(text: &str) -> &str {
    let digits = text.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
    if digits == 0 {
        let mut letters = text.chars();
        letters.next();
        return letters.as_str();
    }
    let rest = &text[digits..];
    rest.strip_prefix([' ', '\t', '\n']).unwrap_or(rest)
}

/// Lexes a string. One without a closing quote extends to the end of its line.
fn string(text: &str, quote: char) -> (PieceKind, usize) {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return (PieceKind::OpenString, at),
            _ if letter == quote => return (PieceKind::String, at + 1),
            _ => {}
        }
    }
    (PieceKind::OpenString, text.len())
}

/// The length of an unquoted URL with its closing parenthesis.
fn address(inside: &str) -> Option<usize> {
    let end = inside.find(')')?;
    let address = inside[..end].trim();
    let is_plain = !address.contains(|letter: char| {
        letter.is_ascii_whitespace() || letter.is_control() || "\"'(\\".contains(letter)
    });
    is_plain.then_some(end + 1)
}
