//! Decides how markup becomes Rust: calls on a writer, with all that is constant merged between two holes.

use crate::check::check;
use crate::context::Context;
use crate::expansion::Expansion;
use crate::fault::Fault;
use crate::parse::parse;
use crate::token::{Delimiter, Token};
use crate::tree::{Attribute, Branch, Element, Node, Value, is_void};

/// Expands `html!`. The first token is a bracket with the path of the `bine` crate, the rest is markup.
pub(crate) fn html(tokens: &[Token]) -> Expansion {
    let (krate, markup) = match tokens.split_first() {
        Some((first, rest)) => (first.group(Delimiter::Bracket).unwrap_or_default(), rest),
        None => (tokens, tokens),
    };
    let mut faults = Vec::new();
    let nodes = parse(markup, &mut faults);
    check(&nodes, &mut faults);
    if faults.is_empty() { page(krate, &nodes) } else { faulty_page(krate, faults) }
}

/// A page in the place of one that has faults, so that they are all the compiler complains about.
fn faulty_page(krate: &[Token], faults: Vec<Fault>) -> Expansion {
    let mut expansion = Expansion { faults, ..Expansion::default() };
    expansion.code("{");
    expansion.run(krate);
    expansion.code("::__private::html::page(|_| {}) }");
    expansion
}

fn page(krate: &[Token], nodes: &[Node]) -> Expansion {
    let mut emitter = Emitter { expansion: Expansion::default(), constant: String::new() };
    emitter.expansion.run(krate);
    let is_document = matches!(nodes.first(), Some(Node::Doctype));
    emitter.code(if is_document {
        "::__private::html::document("
    } else {
        "::__private::html::page("
    });
    emitter.code("move |writer: &mut __run0 ::__private::html::Writer<'_>| {");
    // A page may have holes of one kind alone, or none.
    emitter.code(
        "#[allow(unused_imports)] use __run0 ::__private::html::{FillPage as _, FillText as _};",
    );
    emitter.nodes(nodes);
    emitter.flush();
    emitter.code("})");
    emitter.expansion
}

struct Emitter {
    expansion: Expansion,
    /// Markup not yet written, because more may join it.
    constant: String,
}

impl Emitter {
    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            self.node(node);
        }
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Doctype => self.constant.push_str("<!DOCTYPE html>"),
            Node::Text(text, _) => escape_into(&mut self.constant, text),
            Node::RawText(text) => self.constant.push_str(text),
            Node::Element(element) => self.element(element),
            Node::Hole(expression) => {
                self.flush();
                self.code("(");
                let run = self.expansion.run(expression);
                self.code(").");
                self.expansion.word_at(run, "fill_hole");
                self.code("(writer);");
            }
            Node::RawHole(expression) => {
                self.flush();
                self.call_with("fill_raw", "", expression);
            }
            Node::For { pattern, iterator, body } => {
                self.flush();
                self.code("for");
                self.expansion.run(pattern);
                self.code("in");
                self.expansion.run(iterator);
                self.body(body);
            }
            Node::If { branches, otherwise } => self.conditional(branches, otherwise),
            Node::Match { value, arms } => {
                self.flush();
                self.code("match");
                self.expansion.run(value);
                self.code("{");
                for arm in arms {
                    self.expansion.run(&arm.head);
                    self.code("=>");
                    self.body(&arm.body);
                }
                self.code("}");
            }
        }
    }

    /// Void elements are closed as XML wants it and everything else as HTML wants it: each reads both.
    fn element(&mut self, element: &Element) {
        self.constant.push('<');
        self.constant.push_str(&element.name);
        for attribute in &element.attributes {
            self.attribute(&element.name, attribute);
        }
        if is_void(&element.name) {
            self.constant.push_str(" />");
            return;
        }
        self.constant.push('>');
        self.nodes(&element.children);
        if element.name == "head" {
            self.flush();
            self.code("writer.end_head();");
        }
        self.constant.push_str("</");
        self.constant.push_str(&element.name);
        self.constant.push('>');
    }

    fn attribute(&mut self, element: &str, attribute: &Attribute) {
        let opening = format!(" {}=\"", attribute.name);
        match &attribute.value {
            Value::Bare => self.constant.push_str(&opening),
            Value::Text(text) => {
                self.constant.push_str(&opening);
                escape_into(&mut self.constant, text);
            }
            Value::Hole(expression) => {
                self.flush();
                let method = Context::of(element, &attribute.name).method();
                self.call_with(method, &format!("{opening:?}, "), expression);
                return;
            }
        }
        self.constant.push('"');
    }

    /// Calls a method of the writer with the value of a hole. Method and value are both blamed on the hole.
    fn call_with(&mut self, method: &str, before: &str, expression: &[Token]) {
        self.code("writer.");
        self.expansion.word_at(self.expansion.runs.len(), method);
        self.code("(");
        self.code(before);
        self.code("(&(");
        self.expansion.run(expression);
        self.code(")));");
    }

    fn conditional(&mut self, branches: &[Branch], otherwise: &[Node]) {
        self.flush();
        for (index, branch) in branches.iter().enumerate() {
            self.code(if index == 0 { "if" } else { "else if" });
            self.expansion.run(&branch.head);
            self.body(&branch.body);
        }
        if !otherwise.is_empty() {
            self.code("else ");
            self.body(otherwise);
        }
    }

    fn body(&mut self, nodes: &[Node]) {
        self.code("{");
        self.nodes(nodes);
        self.flush();
        self.code("}");
    }

    fn flush(&mut self) {
        if !self.constant.is_empty() {
            self.code("writer.constant(");
            self.expansion.string(&self.constant);
            self.code(");");
            self.constant.clear();
        }
    }

    fn code(&mut self, code: &str) {
        self.expansion.code(code);
    }
}

/// Escapes constants while compiling, exactly as a writer does at run time.
fn escape_into(markup: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '&' => markup.push_str("&amp;"),
            '<' => markup.push_str("&lt;"),
            '>' => markup.push_str("&gt;"),
            '"' => markup.push_str("&quot;"),
            '\'' => markup.push_str("&#39;"),
            plain => markup.push(plain),
        }
    }
}

#[cfg(test)]
mod tests;
