//! Parser of markup: tags, text and holes, and the nesting of elements.
//!
//! After an error the parser continues, so that one compiler run reports all errors. White space
//! follows JSX: any run between words is one space; next to a tag or a hole it counts only without
//! a line break.

use std::mem;

use bine_vocabulary::{is_raw_text, is_void};

use crate::fault::Fault;
use crate::literal;
use crate::token::{Delimiter, Gap, Kind, Token, flatten};
use crate::tree::{Attribute, Element, Node, Value};

mod control;
mod unquoted;

/// Parses markup. The nodes are well-formed even if there are faults.
pub(crate) fn parse(tokens: &[Token], faults: &mut Vec<Fault>) -> Vec<Node> {
    parse_body(tokens, false, faults)
}

/// Parses the content of a pair of braces or of the whole macro. `raw`: it is inside `<script>` or
/// `<style>`.
pub(crate) fn parse_body(tokens: &[Token], raw: bool, faults: &mut Vec<Fault>) -> Vec<Node> {
    let flat = flatten(tokens);
    let scope = Scope {
        tokens: &flat,
        at: 0,
        roots: Vec::new(),
        open: Vec::new(),
        abandoned: Vec::new(),
        previous: Previous::Start,
        skipped: Gap::None,
        quoted: 0,
        raw,
        faults,
    };
    scope.read()
}

/// The parser for one pair of braces: an element opened in it must be closed in it.
struct Scope<'t, 'f> {
    tokens: &'t [Token],
    at: usize,
    roots: Vec<Node>,
    /// The open elements, innermost last.
    open: Vec<Open>,
    /// Names of elements closed by error recovery. Their own closing tags are not reported again.
    abandoned: Vec<String>,
    previous: Previous,
    /// The white space before bindings and comments since the previous token.
    skipped: Gap,
    /// The end of the text that a fault has asked to quote.
    quoted: usize,
    /// Whether the scope itself is inside `<script>` or `<style>`.
    raw: bool,
    faults: &'f mut Vec<Fault>,
}

struct Open {
    element: Element,
    /// The token of the name, which errors point at.
    name: Token,
}

/// The kind of the previous token, which decides about white space.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Previous {
    Start,
    Word,
    /// A tag, a hole or a string literal.
    Other,
}

impl<'t> Scope<'t, '_> {
    fn read(mut self) -> Vec<Node> {
        while let Some(token) = self.peek(0) {
            if let Some(string) = literal::string(token) {
                self.at += 1;
                self.string(token, string);
            } else if token.is("<") {
                self.tag(token);
            } else if token.group(Delimiter::Brace).is_some() {
                self.at += 1;
                let raw = self.is_raw();
                let node = control::hole(token, raw, self.faults);
                if matches!(node, Some(Node::Let(_))) {
                    self.skip(token);
                } else {
                    self.space(token, Previous::Other);
                }
                if let Some(node) = node {
                    self.push(node);
                }
            } else {
                self.check_word();
                self.at += 1;
                self.space(token, Previous::Word);
                self.text(&token.text, token);
            }
        }
        while let Some(open) = self.open.pop() {
            self.fault(&open.name, format!("`<{}>` is never closed", open.element.name));
            self.push(Node::Element(open.element));
        }
        self.roots
    }

    fn string(&mut self, token: &Token, string: Result<String, Fault>) {
        self.space(token, Previous::Other);
        match string {
            Ok(value) => {
                let lower = value.to_ascii_lowercase();
                if self.is_raw()
                    && ["</script", "</style", "<!--"].iter().any(|end| lower.contains(end))
                {
                    self.fault(token, "this text would end or hide its element");
                }
                self.text(&value, token);
            }
            Err(fault) => self.faults.push(fault),
        }
    }

    /// Reports text that needs quotes, once up to the next tag or hole.
    fn check_word(&mut self) {
        if self.at >= self.quoted
            && let Some(fault) = unquoted::check_word(self.tokens, self.at)
        {
            self.faults.push(fault);
            self.quoted = unquoted::end_of_text(self.tokens, self.at);
        }
    }

    /// Parses a tag, from its `<` to its end.
    fn tag(&mut self, angle: &'t Token) {
        let next = self.peek(1).filter(|next| next.gap == Gap::None);
        match next {
            Some(next) if next.is("/") => self.closing_tag(angle),
            Some(next) if next.is("!") && self.is_at("<!--") && !self.is_raw() => {
                self.comment(angle);
            }
            Some(next) if next.is("!") => self.doctype(angle),
            Some(next) if next.is_word() && self.is_raw() => {
                self.at += 1;
                self.abandoned.push(next.text.clone());
                self.fault(next, "no element is allowed here: write the text as a string, \"..\"");
            }
            Some(next) if next.is_word() => self.opening_tag(angle),
            Some(next) if next.is(">") => {
                self.at += 2;
                self.fault(next, "several roots need no fragment: write them one after another");
            }
            _ => {
                self.at += 1;
                self.fault(angle, "`<` opens a tag; as text it is written \"<\"");
            }
        }
    }

    /// Skips a comment. It is not sent to the client.
    fn comment(&mut self, angle: &'t Token) {
        self.skip(angle);
        self.at += 4;
        while self.peek(0).is_some() {
            if self.is_at("-->") {
                self.at += 3;
                return;
            }
            self.at += 1;
        }
        self.fault(
            angle,
            "this comment has no `-->`, or a `//` hides it: write the comment as in Rust, `//` or `/* */`",
        );
    }

    fn doctype(&mut self, angle: &'t Token) {
        let words = [("doctype", 2), ("html", 3), (">", 4)];
        let matches = |(word, ahead): &(&str, usize)| {
            self.peek(*ahead).is_some_and(|token| token.text.eq_ignore_ascii_case(word))
        };
        let is_doctype = words.iter().all(matches);
        self.at += 2;
        if !is_doctype {
            let message = if self.is_raw() {
                "no comment of HTML is allowed here: write comments as in Rust, `//` and `/* */`"
            } else {
                "only `<!DOCTYPE html>` and comments, `<!-- .. -->`, start with `<!`"
            };
            self.fault(angle, message);
            self.skip_past_angle();
            return;
        }
        self.at += 3;
        if self.previous != Previous::Start {
            self.fault(angle, "`<!DOCTYPE html>` must come first");
        }
        self.previous = Previous::Other;
        self.push(Node::Doctype);
    }

    fn opening_tag(&mut self, angle: &'t Token) {
        self.space(angle, Previous::Other);
        self.at += 1;
        let (name_token, name) = self.name();
        let mut element = Element {
            name,
            origin: name_token.origin,
            has_more_attributes: false,
            attributes: Vec::new(),
            children: Vec::new(),
        };
        let closed = self.attributes(name_token, &mut element);
        if closed || is_void(&element.name) {
            self.push(Node::Element(element));
        } else {
            self.open.push(Open { element, name: name_token.clone() });
        }
    }

    /// Parses attributes to the end of the tag. Returns whether the tag closes itself.
    fn attributes(&mut self, name_token: &Token, element: &mut Element) -> bool {
        loop {
            let Some(token) = self.peek(0) else {
                self.fault(name_token, format!("the tag `<{}` has no `>`", element.name));
                return true;
            };
            if token.is(">") {
                self.at += 1;
                return false;
            }
            if token.is("/") && self.peek(1).is_some_and(|next| next.is(">")) {
                self.at += 2;
                return true;
            }
            if token.is_word() || matches!(token.kind, Kind::Literal) {
                let attribute = self.attribute(token);
                let known = |other: &Attribute| other.name.eq_ignore_ascii_case(&attribute.name);
                if element.attributes.iter().any(known) {
                    self.fault(token, format!("`{}` is set twice", attribute.name));
                } else {
                    element.attributes.push(attribute);
                }
                continue;
            }
            self.fault(
                token,
                format!(
                    "in the tag `<{}`, an attribute, `>` or `/>` is expected here",
                    element.name
                ),
            );
            if !token.is("<") {
                self.skip_past_angle();
            }
            return false;
        }
    }

    fn attribute(&mut self, token: &Token) -> Attribute {
        let quoted = literal::string(token);
        let is_quoted = quoted.is_some();
        let name = match quoted {
            None => self.name().1,
            Some(quoted) => {
                self.at += 1;
                self.quoted_name(token, quoted)
            }
        };
        let origin = token.origin;
        let given =
            |name, value, value_origin| Attribute { name, is_quoted, value, origin, value_origin };
        if !self.peek(0).is_some_and(|next| next.is("=")) {
            return given(name, Value::Bare, origin);
        }
        self.at += 1;
        let value = self.peek(0);
        let mistaken = value.unwrap_or(token);
        if let Some(hole) = value.and_then(|value| value.group(Delimiter::Brace)) {
            self.at += 1;
            if hole.is_empty() {
                self.fault(mistaken, "an empty hole: put an expression between the braces");
            }
            control::reject_suspension(hole, self.faults);
            return given(name, Value::Hole(hole.to_vec()), mistaken.origin);
        }
        let text = match value.and_then(literal::string) {
            Some(Ok(text)) => {
                self.at += 1;
                text
            }
            Some(Err(fault)) => {
                self.at += 1;
                self.faults.push(fault);
                String::new()
            }
            None => {
                self.fault(
                    mistaken,
                    format!("the value of `{name}` is a string, \"..\", or a hole, {{..}}"),
                );
                self.at += usize::from(matches!(mistaken.kind, Kind::Word | Kind::Literal));
                String::new()
            }
        };
        given(name, Value::Text(text), mistaken.origin)
    }

    /// Checks that a quoted name does not end the tag. It is not looked up in the standard.
    fn quoted_name(&mut self, token: &Token, quoted: Result<String, Fault>) -> String {
        match quoted {
            Ok(name) => {
                let ends_a_name = |letter: char| {
                    letter.is_whitespace() || letter.is_control() || "\"'<>/=&".contains(letter)
                };
                if name.is_empty() || name.contains(ends_a_name) {
                    self.fault(
                        token,
                        "an attribute's name has no space, quote, `<`, `>`, `/`, `=` or `&`",
                    );
                }
                name
            }
            Err(fault) => {
                self.faults.push(fault);
                String::new()
            }
        }
    }

    fn closing_tag(&mut self, angle: &'t Token) {
        self.space(angle, Previous::Other);
        self.at += 2;
        let Some(first) = self.peek(0).filter(|first| first.is_word()) else {
            self.fault(angle, "a closing tag names its element: `</name>`");
            self.skip_past_angle();
            return;
        };
        let (name_token, name) = self.name();
        if self.peek(0).is_some_and(|token| token.is(">")) {
            self.at += 1;
        } else {
            self.fault(first, format!("`</{name}` has no `>`"));
        }
        self.close(name_token, &name);
    }

    fn close(&mut self, token: &Token, name: &str) {
        if is_void(name) {
            self.fault(
                token,
                format!("`<{name}>` is void: it has neither children nor a closing tag"),
            );
            return;
        }
        let Some(index) = self.open.iter().rposition(|open| open.element.name == name) else {
            self.close_unopened(token, name);
            return;
        };
        if index + 1 < self.open.len()
            && let Some(inner) = self.open.last()
        {
            let message =
                format!("`</{name}>` closes `<{name}>` while {} is still open", inner.described());
            self.fault(token, message);
        }
        while self.open.len() > index + 1 {
            let name = self.close_innermost();
            self.abandoned.extend(name);
        }
        self.close_innermost();
    }

    fn close_unopened(&mut self, token: &Token, name: &str) {
        if let Some(index) = self.abandoned.iter().position(|abandoned| abandoned == name) {
            self.abandoned.swap_remove(index);
            return;
        }
        let Some(inner) = self.open.last() else {
            self.fault(token, format!("`</{name}>` closes nothing: no element is open here"));
            return;
        };
        let message = format!("`</{name}>` cannot close {}", inner.described());
        // A misspelled closing tag closes the innermost element, unless the correct one follows.
        let right_one_comes = self.closes_later(&inner.element.name);
        self.fault(token, message);
        if !right_one_comes {
            self.close_innermost();
        }
    }

    fn close_innermost(&mut self) -> Option<String> {
        let element = self.open.pop()?.element;
        let name = element.name.clone();
        self.push(Node::Element(element));
        Some(name)
    }

    fn closes_later(&self, name: &str) -> bool {
        // A name with dashes consists of several tokens; the first is enough for this guess.
        let first = name.split(['-', ':', '.']).next().unwrap_or(name);
        let rest = &self.tokens[self.at..];
        rest.windows(3).any(|next| next[0].is("<") && next[1].is("/") && next[2].is(first))
    }

    /// Parses a name: words joined without spaces by `-`, `:` or `.`. Keywords are words too.
    fn name(&mut self) -> (&'t Token, String) {
        let first = &self.tokens[self.at];
        let mut name = first.text.trim_start_matches("r#").to_owned();
        self.at += 1;
        while let Some(mark) = self.peek(0)
            && mark.gap == Gap::None
            && ["-", ":", "."].iter().any(|joint| mark.is(joint))
        {
            name.push_str(&mark.text);
            self.at += 1;
            if let Some(part) = self.peek(0)
                && part.gap == Gap::None
                && (part.is_word()
                    || matches!(part.kind, Kind::Literal) && literal::string(part).is_none())
            {
                name.push_str(&part.text);
                self.at += 1;
            }
        }
        (first, name)
    }

    /// Skips a token that is invisible in the page: the next token takes over its white space.
    fn skip(&mut self, token: &Token) {
        self.skipped = self.skipped.max(token.gap);
    }

    /// Adds the white space before a token, if it is significant.
    fn space(&mut self, token: &Token, kind: Previous) {
        let gap = mem::replace(&mut self.skipped, Gap::None).max(token.gap);
        let seen = match (self.previous, kind) {
            (Previous::Start, _) => false,
            (Previous::Word, Previous::Word) => gap != Gap::None,
            _ => gap == Gap::Space,
        };
        self.previous = kind;
        if seen {
            self.text(" ", token);
        }
    }

    fn text(&mut self, text: &str, token: &Token) {
        let raw = self.is_raw();
        match self.children().last_mut() {
            Some(Node::Text(before, _) | Node::RawText(before)) => before.push_str(text),
            _ if raw => self.push(Node::RawText(text.to_owned())),
            _ => self.push(Node::Text(text.to_owned(), token.origin)),
        }
    }

    fn push(&mut self, node: Node) {
        let node = match node {
            Node::Element(region) if region.name == "Live" => Node::Live(region),
            other => other,
        };
        self.children().push(node);
    }

    fn children(&mut self) -> &mut Vec<Node> {
        self.open.last_mut().map_or(&mut self.roots, |open| &mut open.element.children)
    }

    fn fault(&mut self, token: &Token, message: impl Into<String>) {
        self.faults.push(Fault::new(token, message));
    }

    fn skip_past_angle(&mut self) {
        while let Some(token) = self.peek(0) {
            self.at += 1;
            if token.is(">") {
                return;
            }
        }
    }

    /// Whether the next tokens are these marks, without white space between them.
    fn is_at(&self, marks: &str) -> bool {
        marks.chars().enumerate().all(|(ahead, mark)| {
            self.peek(ahead).is_some_and(|token| {
                token.is(mark.encode_utf8(&mut [0; 4])) && (ahead == 0 || token.gap == Gap::None)
            })
        })
    }

    fn peek(&self, ahead: usize) -> Option<&'t Token> {
        self.tokens.get(self.at + ahead)
    }

    fn is_raw(&self) -> bool {
        self.raw || self.open.last().is_some_and(|open| is_raw_text(&open.element.name))
    }
}

impl Open {
    fn described(&self) -> String {
        format!("`<{}>` from line {}", self.element.name, self.name.line)
    }
}

#[cfg(test)]
mod tests;
