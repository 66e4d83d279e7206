//! Decides what markup means: which tokens are tags, text and holes, and which element closes where.
//!
//! A mistake is noted and reading goes on, so that one run of the compiler shows all of them. White space is
//! JSX's: between words any run of it is one space; beside a tag or a hole it counts only if it stays on a line.

use bine_vocabulary::{is_raw_text, is_void};

use crate::control;
use crate::fault::Fault;
use crate::literal;
use crate::token::{Delimiter, Gap, Kind, Token, flatten};
use crate::tree::{Attribute, Element, Node, Value};

/// Reads markup. The nodes are sound even where there are faults.
pub(crate) fn parse(tokens: &[Token], faults: &mut Vec<Fault>) -> Vec<Node> {
    parse_body(tokens, false, faults)
}

/// Reads what stands in one pair of braces, or in the whole macro. `raw` says it is inside `<script>` or `<style>`.
pub(crate) fn parse_body(tokens: &[Token], raw: bool, faults: &mut Vec<Fault>) -> Vec<Node> {
    let flat = flatten(tokens);
    let scope = Scope {
        tokens: &flat,
        at: 0,
        roots: Vec::new(),
        open: Vec::new(),
        given_up: Vec::new(),
        previous: Previous::Start,
        raw,
        faults,
    };
    scope.read()
}

/// One pair of braces: what is opened in it is closed in it.
struct Scope<'t, 'f> {
    tokens: &'t [Token],
    at: usize,
    roots: Vec<Node>,
    /// Elements not yet closed, the innermost last.
    open: Vec<Open>,
    /// Names of elements closed by force, whose own closing tags will be no second mistake.
    given_up: Vec<String>,
    previous: Previous,
    /// Whether the scope itself stands in `<script>` or `<style>`.
    raw: bool,
    faults: &'f mut Vec<Fault>,
}

struct Open {
    element: Element,
    /// The token to blame: the name.
    name: Token,
}

/// What stood before a token, for the white space between.
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
                self.space(token, Previous::Other);
                let raw = self.is_raw();
                if let Some(node) = control::hole(token, raw, self.faults) {
                    self.push(node);
                }
            } else {
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
                    self.fault(token, "this text would end or hide the element it stands in");
                }
                self.text(&value, token);
            }
            Err(fault) => self.faults.push(fault),
        }
    }

    /// Reads from a `<` to the end of its tag.
    fn tag(&mut self, angle: &'t Token) {
        let next = self.peek(1).filter(|next| next.gap == Gap::None);
        match next {
            Some(next) if next.is("/") => self.closing_tag(angle),
            Some(next) if next.is("!") => self.doctype(angle),
            Some(next) if next.is_word() && self.is_raw() => {
                self.at += 1;
                self.given_up.push(next.text.clone());
                self.fault(next, "no element may stand here: write the text as a string, \"..\"");
            }
            Some(next) if next.is_word() => self.opening_tag(angle),
            Some(next) if next.is(">") => {
                self.at += 2;
                self.fault(next, "several roots need no fragment: write them in a row");
            }
            _ => {
                self.at += 1;
                self.fault(angle, "`<` opens a tag; as text it is written \"<\"");
            }
        }
    }

    fn doctype(&mut self, angle: &'t Token) {
        let words = [("doctype", 2), ("html", 3), (">", 4)];
        let says = |(word, ahead): &(&str, usize)| {
            self.peek(*ahead).is_some_and(|token| token.text.eq_ignore_ascii_case(word))
        };
        let is_doctype = words.iter().all(says);
        self.at += 2;
        if !is_doctype {
            self.fault(
                angle,
                "only `<!DOCTYPE html>` is written so; comments are Rust's, `//` and `/* */`",
            );
            self.skip_past_angle();
            return;
        }
        self.at += 3;
        if self.previous != Previous::Start {
            self.fault(angle, "`<!DOCTYPE html>` comes before everything else");
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

    /// Reads attributes to the end of the tag, and says whether the tag closes itself.
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
                    self.fault(token, format!("`{}` is given twice", attribute.name));
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
            control::refuse_suspension(hole, self.faults);
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

    /// A name in quotes is not looked up anywhere, but it must not end the tag either.
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
            self.given_up.extend(name);
        }
        self.close_innermost();
    }

    fn close_unopened(&mut self, token: &Token, name: &str) {
        if let Some(index) = self.given_up.iter().position(|given_up| given_up == name) {
            self.given_up.swap_remove(index);
            return;
        }
        let Some(inner) = self.open.last() else {
            self.fault(token, format!("`</{name}>` closes nothing: no element is open here"));
            return;
        };
        let message = format!("`</{name}>` cannot close {}", inner.described());
        // A wrong name closes what it stands for, unless the right one is still to come.
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
        // Names with dashes are several tokens; their first will do for a guess.
        let first = name.split(['-', ':', '.']).next().unwrap_or(name);
        let rest = &self.tokens[self.at..];
        rest.windows(3).any(|next| next[0].is("<") && next[1].is("/") && next[2].is(first))
    }

    /// Reads a name: words joined without space by `-`, `:` or `.`; keywords are words.
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

    /// Writes the space before a token, if there is one to be seen.
    fn space(&mut self, token: &Token, kind: Previous) {
        let seen = match (self.previous, kind) {
            (Previous::Start, _) => false,
            (Previous::Word, Previous::Word) => token.gap != Gap::None,
            _ => token.gap == Gap::Space,
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
