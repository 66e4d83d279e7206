//! Tokens as the macros see them: text, position in the source, and the white space before.

/// A token or a group, with the index of the compiler's token.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// The source text; empty for a group.
    pub(crate) text: String,
    pub(crate) gap: Gap,
    pub(crate) line: usize,
    /// The index of the compiler's token.
    pub(crate) origin: usize,
}

/// The kind of a token.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// An identifier or keyword.
    Word,
    /// One character of punctuation.
    Mark,
    Literal,
    Group(Group),
}

/// Tokens between two delimiters.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) delimiter: Delimiter,
    pub(crate) tokens: Vec<Token>,
    /// The white space before the closing delimiter.
    pub(crate) last_gap: Gap,
}

/// The delimiters of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delimiter {
    Parenthesis,
    Bracket,
    Brace,
    /// No visible delimiter: the expansion of a `macro_rules` variable.
    Invisible,
}

/// The white space before a token, the widest last. Comments count as white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Gap {
    None,
    Space,
    Line,
}

impl Token {
    /// Whether this is the given word or punctuation.
    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Mark) && self.text == text
    }

    pub(crate) fn is_word(&self) -> bool {
        matches!(self.kind, Kind::Word)
    }

    /// The tokens of this group, if it has the delimiter.
    pub(crate) fn group(&self, delimiter: Delimiter) -> Option<&[Token]> {
        match &self.kind {
            Kind::Group(group) if group.delimiter == delimiter => Some(&group.tokens),
            _ => None,
        }
    }
}

/// Flattens groups as markup requires: parentheses and brackets are text, only braces are groups.
pub(crate) fn flatten(tokens: &[Token]) -> Vec<Token> {
    let mut flat = Vec::with_capacity(tokens.len());
    flatten_into(&mut flat, tokens);
    flat
}

/// All tokens that are no groups, in order, with those in groups.
pub(crate) fn leaves(tokens: &[Token]) -> Vec<&Token> {
    let mut all = Vec::with_capacity(tokens.len());
    for token in tokens {
        match &token.kind {
            Kind::Group(group) => all.extend(leaves(&group.tokens)),
            _ => all.push(token),
        }
    }
    all
}

fn flatten_into(flat: &mut Vec<Token>, tokens: &[Token]) {
    for token in tokens {
        let Kind::Group(group) = &token.kind else {
            flat.push(token.clone());
            continue;
        };
        let (open, close) = match group.delimiter {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::Brace => {
                flat.push(token.clone());
                continue;
            }
            Delimiter::Invisible => {
                let first = flat.len();
                flatten_into(flat, &group.tokens);
                if let Some(token_inside) = flat.get_mut(first) {
                    token_inside.gap = token.gap;
                }
                continue;
            }
        };
        let mark = |text: &str, gap| Token { kind: Kind::Mark, text: text.into(), gap, ..*token };
        flat.push(mark(open, token.gap));
        flatten_into(flat, &group.tokens);
        flat.push(mark(close, group.last_gap));
    }
}
