//! A lexer for tests, which cannot call the compiler's.

use crate::expansion::{Expansion, Placeholder, placeholder};
use crate::fault::Fault;
use crate::token::{Delimiter, Gap, Group, Kind, Token};

/// Source text with its tokens.
pub(crate) struct Sample {
    pub(crate) tokens: Vec<Token>,
    /// The source text of each token, by origin.
    sources: Vec<String>,
}

impl Sample {
    pub(crate) fn new(source: &str) -> Self {
        let mut lexer = Lexer { source, at: 0, sources: Vec::new() };
        let tokens = lexer.tokens();
        assert_eq!(lexer.at, source.len(), "a stray closing delimiter in the sample");
        Self { tokens, sources: lexer.sources }
    }

    /// The messages of the faults, each after its token.
    pub(crate) fn report(&self, faults: &[Fault]) -> String {
        let lines = faults
            .iter()
            .map(|fault| format!("{}: {}\n", self.sources[fault.origin], fault.message));
        lines.collect::<String>().trim_end().to_owned()
    }

    /// The code with the user's tokens inserted.
    pub(crate) fn spell(&self, expansion: &Expansion) -> String {
        let is_word = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
        let mut spelled = String::new();
        let mut rest = expansion.code.as_str();
        while let Some(start) = rest.find("__") {
            let (before, after) = rest.split_at(start);
            let end = after.find(|letter| !is_word(letter)).unwrap_or(after.len());
            spelled.push_str(before);
            match placeholder(&after[..end]) {
                Some(Placeholder::Run(run)) => {
                    let tokens = expansion.runs[run].iter();
                    let spell = |token: &Token| {
                        let space = if token.gap == Gap::None { "" } else { " " };
                        format!("{space}{}", self.sources[token.origin])
                    };
                    spelled.push_str(tokens.map(spell).collect::<String>().trim());
                }
                Some(Placeholder::Word { word, .. }) => spelled.push_str(word),
                Some(Placeholder::Owned(owned)) => spelled.push_str(&expansion.owned[owned].1),
                None => spelled.push_str(&after[..end]),
            }
            rest = &after[end..];
        }
        spelled + rest
    }
}

struct Lexer<'s> {
    source: &'s str,
    at: usize,
    sources: Vec<String>,
}

impl Lexer<'_> {
    /// Lexes to the end or to a closing delimiter, which is not consumed.
    fn tokens(&mut self) -> Vec<Token> {
        let mut tokens = Vec::new();
        loop {
            let gap = self.gap();
            let Some(first) = self.rest().chars().next().filter(|first| !")]}".contains(*first))
            else {
                return tokens;
            };
            let start = self.at;
            let line = 1 + self.source[..start].matches('\n').count();
            let origin = self.sources.len();
            self.sources.push(String::new());
            let delimiter = match first {
                '(' => Some(Delimiter::Parenthesis),
                '[' => Some(Delimiter::Bracket),
                '{' => Some(Delimiter::Brace),
                _ => None,
            };
            let kind = if let Some(delimiter) = delimiter {
                self.at += 1;
                let tokens = self.tokens();
                let last_gap = if self.source[..self.at].ends_with('\n') {
                    Gap::Line
                } else if self.source[..self.at].ends_with(' ') {
                    Gap::Space
                } else {
                    Gap::None
                };
                self.at += 1;
                Kind::Group(Group { delimiter, tokens, last_gap })
            } else {
                let (kind, length) = atom(self.rest(), first);
                self.at += length;
                kind
            };
            let source = self.source[start..self.at].to_owned();
            self.sources[origin].clone_from(&source);
            let text = if delimiter.is_some() { String::new() } else { source };
            tokens.push(Token { kind, text, gap, line, origin });
        }
    }

    fn gap(&mut self) -> Gap {
        let start = self.at;
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            let comment =
                if rest.starts_with("//") { rest.find('\n').unwrap_or(rest.len()) } else { 0 };
            if blank + comment == 0 {
                break;
            }
            self.at += blank.max(comment);
        }
        match &self.source[start..self.at] {
            "" => Gap::None,
            blank if blank.contains('\n') => Gap::Line,
            _ => Gap::Space,
        }
    }

    fn rest(&self) -> &str {
        &self.source[self.at..]
    }
}

/// The kind and length of the token at the start of `rest`, which is not a group.
fn atom(rest: &str, first: char) -> (Kind, usize) {
    let is_word = |letter: char| letter == '_' || letter.is_alphanumeric();
    let word = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
    if let Some(after) = rest.strip_prefix("r#\"") {
        return (Kind::Literal, 3 + after.find("\"#").expect("a closed raw string") + 2);
    }
    if let Some(after) = rest.strip_prefix("r#") {
        return (Kind::Word, 2 + after.find(|letter| !is_word(letter)).unwrap_or(after.len()));
    }
    let quote = usize::from(rest.starts_with("b\""));
    if rest[quote..].starts_with('"') {
        let mut escaped = false;
        let closing = rest[quote + 1..].find(|letter| {
            let closes = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            closes
        });
        let end = quote + 1 + closing.expect("a closed string") + 1;
        let suffix = rest[end..].find(|letter| !is_word(letter)).unwrap_or(rest.len() - end);
        return (Kind::Literal, end + suffix);
    }
    if first == '\'' && rest[1..].chars().nth(1) == Some('\'') {
        return (Kind::Literal, 3);
    }
    match first {
        '0'..='9' => (Kind::Literal, word),
        _ if is_word(first) => (Kind::Word, word),
        _ => (Kind::Mark, first.len_utf8()),
    }
}
