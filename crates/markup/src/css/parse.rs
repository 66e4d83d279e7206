//! Parser of CSS statements (CSS Syntax 3 section 5, and CSS Nesting 1).
//!
//! The parser continues after errors. A block may mix declarations and rules: a declaration ends
//! with a semicolon, and a rule continues with an opening brace.

use super::lex::{Gap, Piece, PieceKind};
use super::tree::{AtRule, Declaration, Item, Rule};

/// An error message and the byte offset that it refers to.
pub type Mistake = (usize, String);

/// The maximum nesting of brackets, which bounds the recursion of parser and checks.
const MAX_DEPTH: usize = 64;

/// Parses a style sheet, or the declarations of an attribute. The result is well-formed even if
/// there are mistakes.
pub fn parse<'p>(pieces: &'p [Piece<'p>], mistakes: &mut Vec<Mistake>) -> Vec<Item<'p>> {
    if let Some(piece) = too_deep(pieces) {
        mistakes.push((piece.at, format!("brackets are nested more than {MAX_DEPTH} deep")));
        return Vec::new();
    }
    let mut parser = Parser { pieces, at: 0, depth: 0, mistakes };
    parser.items()
}

/// The first bracket that exceeds the maximum nesting.
fn too_deep<'p>(pieces: &'p [Piece<'p>]) -> Option<&'p Piece<'p>> {
    let mut depth = 0_usize;
    pieces.iter().find(|piece| {
        if piece.opens() {
            depth += 1;
        } else if piece.kind == PieceKind::Close {
            depth = depth.saturating_sub(1);
        }
        depth > MAX_DEPTH
    })
}

struct Parser<'p, 'm> {
    pieces: &'p [Piece<'p>],
    at: usize,
    depth: usize,
    mistakes: &'m mut Vec<Mistake>,
}

impl<'p> Parser<'p, '_> {
    /// Parses to the end of the block or the sheet.
    fn items(&mut self) -> Vec<Item<'p>> {
        let mut items = Vec::new();
        while let Some(piece) = self.peek() {
            if piece.is(";") {
                self.at += 1;
            } else if piece.is("}") {
                if self.depth > 0 {
                    break;
                }
                self.at += 1;
                self.mistake(piece, "`}` closes nothing: no block is open here");
            } else if piece.kind == PieceKind::At {
                items.push(Item::At(self.at_rule(piece)));
            } else {
                self.statement(&mut items);
            }
        }
        items
    }

    fn at_rule(&mut self, name: &'p Piece<'p>) -> AtRule<'p> {
        self.at += 1;
        let end = self.end(self.at, false);
        let prelude = self.take(end);
        let opens = self.peek().is_some_and(|piece| piece.is("{"));
        let block = opens.then(|| self.block());
        AtRule { name: *name, prelude, block }
    }

    /// Parses a declaration or a rule, or both if the separator is missing.
    fn statement(&mut self, items: &mut Vec<Item<'p>>) {
        let first = &self.pieces[self.at];
        let colon = self.pieces.get(self.at + 1).filter(|next| next.is(":"));
        if first.is_word() && first.text.starts_with("--") && colon.is_some() {
            let end = self.end(self.at, true);
            let statement = self.take(end);
            let name = statement[0];
            return items.push(Item::Declaration(Declaration { name, value: &statement[2..] }));
        }
        let end = self.end(self.at, false);
        let start = self.at;
        let statement = self.take(end);
        let Some(opening) = self.peek().filter(|piece| piece.is("{")) else {
            return self.declaration(statement, items);
        };
        // A pseudo-class has no blank after its colon: `color: red .next {` lacks a semicolon.
        if first.is_word()
            && colon.is_some()
            && statement.get(2).is_some_and(|value| value.gap != Gap::None)
        {
            let next = statement.iter().skip(3).rposition(|piece| piece.gap == Gap::Line);
            match next {
                Some(next) => {
                    let (declaration, _) = statement.split_at(next + 3);
                    self.missing_semicolon(&statement[next + 3]);
                    self.declaration(declaration, items);
                    self.at = start + next + 3;
                    return;
                }
                None => self.mistake(
                    opening,
                    "this block has no selector: a declaration ends with `;`, and a rule begins with a selector",
                ),
            }
            self.block();
            return;
        }
        if statement.is_empty() {
            self.mistake(opening, "a rule begins with a selector: this block has none");
        }
        let at = opening.at;
        let block = self.block();
        items.push(Item::Rule(Rule { prelude: statement, block, at }));
    }

    /// Parses `name: value`, and the next declaration if the semicolon is missing.
    fn declaration(&mut self, statement: &'p [Piece<'p>], items: &mut Vec<Item<'p>>) {
        let [name, rest @ ..] = statement else { return };
        if !name.is_word() {
            let message =
                "a declaration, `name: value;`, or a rule, `selector { .. }`, is expected here";
            return self.mistake(name, message);
        }
        let value = match rest {
            [colon, value @ ..] if colon.is(":") => value,
            [next, ..] => {
                let message = format!("a `:` is missing after `{}`", name.text);
                return self.mistake(next, message);
            }
            [] => {
                let message =
                    format!("a declaration is `name: value;`: give a value to `{}`", name.text);
                return self.mistake(name, message);
            }
        };
        let next = next_declaration(value);
        let (value, rest) = value.split_at(next.unwrap_or(value.len()));
        if value.is_empty() {
            self.mistake(name, format!("`{}` has no value", name.text));
        }
        items.push(Item::Declaration(Declaration { name: *name, value }));
        if let Some(next) = rest.first() {
            self.missing_semicolon(next);
            self.declaration(rest, items);
        }
    }

    /// Parses a block, starting at its opening brace.
    fn block(&mut self) -> Vec<Item<'p>> {
        let opening = &self.pieces[self.at];
        self.at += 1;
        self.depth += 1;
        let items = self.items();
        self.depth -= 1;
        match self.peek() {
            Some(_) => self.at += 1,
            // Only the innermost block is reported: its missing brace keeps the outer blocks open
            // too.
            None if !self.mistakes.iter().any(|(_, message)| message == UNCLOSED) => {
                self.mistake(opening, UNCLOSED);
            }
            None => {}
        }
        items
    }

    /// The end of a statement: its `;`, the `{` of its block, or the `}` of the enclosing block.
    /// Brackets are skipped, and braces too if `braces_enclose`.
    fn end(&mut self, start: usize, braces_enclose: bool) -> usize {
        let mut open: Vec<&str> = Vec::new();
        for (at, piece) in self.pieces.iter().enumerate().skip(start) {
            let is_brace = piece.is("{") && !braces_enclose;
            if open.is_empty() && (piece.is(";") || is_brace || piece.is("}")) {
                return at;
            }
            match piece.kind {
                PieceKind::Open | PieceKind::Function => open.push(match piece.text {
                    "[" => "]",
                    "{" => "}",
                    _ => ")",
                }),
                PieceKind::Close if open.last() == Some(&piece.text) => {
                    open.pop();
                }
                PieceKind::Close => {
                    let message = match open.last() {
                        Some(missing) => format!("`{missing}` is missing before this"),
                        None => format!("`{}` closes nothing", piece.text),
                    };
                    self.mistake(piece, message);
                    if piece.is("}") {
                        return at;
                    }
                }
                PieceKind::OpenString => {
                    self.mistake(piece, "this string has no closing quote on its line");
                }
                _ => {}
            }
        }
        if let (Some(missing), Some(last)) = (open.last(), self.pieces.last()) {
            self.mistake(last, format!("`{missing}` is missing after this"));
        }
        self.pieces.len()
    }

    fn take(&mut self, end: usize) -> &'p [Piece<'p>] {
        let taken = &self.pieces[self.at..end];
        self.at = end;
        taken
    }

    fn peek(&self) -> Option<&'p Piece<'p>> {
        self.pieces.get(self.at)
    }

    fn missing_semicolon(&mut self, next: &Piece<'_>) {
        self.mistake(next, format!("a `;` is missing before `{}`", next.text));
    }

    fn mistake(&mut self, piece: &Piece<'_>, message: impl Into<String>) {
        self.mistakes.push((piece.at, message.into()));
    }
}

const UNCLOSED: &str = "this block has no `}`";

/// The start of the next declaration in a value that lacks a semicolon: a word before a colon.
fn next_declaration(value: &[Piece<'_>]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, piece) in value.iter().enumerate() {
        if piece.opens() {
            depth += 1;
        } else if piece.kind == PieceKind::Close {
            depth = depth.saturating_sub(1);
        } else if depth == 0
            && piece.is_word()
            && piece.gap != Gap::None
            && value.get(at + 1).is_some_and(|next| next.is(":"))
        {
            return Some(at);
        }
    }
    None
}
