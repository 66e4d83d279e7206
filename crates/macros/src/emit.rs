//! `html!`: markup becomes calls of a writer, with constant markup merged between holes.

use std::mem::take;

use bine_vocabulary::{drops_line_feed, is_void};

use crate::check::check;
use crate::context::method;
use crate::expansion::Expansion;
use crate::fault::Fault;
use crate::parse::parse;
use crate::place::{ContentKind, Place};
use crate::polyglot::{is_xml_attribute, namespaces};
use crate::token::{Delimiter, Token};
use crate::tree::{Attribute, Branch, Element, Node, Value, has_bindings};

mod form_fields;

use form_fields::ServiceForm;

/// Expands `html!`. The first token is a bracket with the path of the `bine` crate, the rest is
/// markup.
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

/// An empty page in place of a faulty one, so that the compiler reports only the faults.
fn faulty_page(krate: &[Token], faults: Vec<Fault>) -> Expansion {
    let mut expansion = Expansion { faults, ..Expansion::default() };
    expansion.code("{");
    expansion.run(krate);
    expansion.code("::__private::html::page::<");
    expansion.run(krate);
    expansion.code("::__private::html::ScriptSupporting, _>(|_| {}) }");
    expansion
}

fn page(krate: &[Token], nodes: &[Node]) -> Expansion {
    let kind = ContentKind::of(nodes);
    let mut emitter = PageEmitter::default();
    emitter.expansion.run(krate);
    emitter.code(&format!(
        "::__private::html::page::<__run0 ::__private::html::{}, _>(\
         move |writer: &mut __run0 ::__private::html::Writer<'_>| {{",
        kind.type_name()
    ));
    // A page may have holes of only one kind, or no holes.
    emitter.code(
        "#[allow(unused_imports)] use __run0 ::__private::html::{FillPage as _, FillValue as _};",
    );
    emitter.nodes(nodes, &Place::root(kind));
    emitter.flush();
    emitter.code("})");
    emitter.expansion
}

#[derive(Default)]
struct PageEmitter {
    expansion: Expansion,
    /// Constant markup that is not yet emitted, because more may follow.
    constant: String,
    /// The same markup in XML syntax.
    constant_in_xml: String,
    /// The form around the current element, if it may name a service.
    form: Option<ServiceForm>,
}

impl PageEmitter {
    fn nodes(&mut self, nodes: &[Node], place: &Place<'_>) {
        for node in nodes {
            self.node(node, place);
        }
    }

    fn node(&mut self, node: &Node, place: &Place<'_>) {
        match node {
            Node::Doctype => self.constant("<!DOCTYPE html>"),
            Node::Text(text, _) => self.constant(&escaped(text)),
            Node::RawText(text) => self.raw_text(text),
            Node::Element(element) => self.element(element, place),
            Node::Live(region) => self.region(&region.children, place),
            Node::Hole(expression, _) => {
                self.flush();
                self.code("(");
                let run = self.expansion.run(expression);
                self.code(").");
                self.expansion.word_at(run, place.hole().method());
                self.code("(writer);");
            }
            Node::RawHole(expression) => {
                self.flush();
                self.call_with("fill_raw", "", expression);
            }
            Node::Let(statements) => {
                self.flush();
                self.expansion.run(statements);
            }
            Node::For { pattern, iterator, body } => {
                self.flush();
                self.code("for");
                self.expansion.run(pattern);
                self.code("in");
                self.expansion.run(iterator);
                self.body(body, place);
            }
            Node::If { branches, otherwise } => self.conditional(branches, otherwise, place),
            Node::Match { value, arms } => {
                self.flush();
                self.code("match");
                self.expansion.run(value);
                self.code("{");
                for arm in arms {
                    self.expansion.run(&arm.head);
                    self.code("=>");
                    self.body(&arm.body, place);
                }
                self.code("}");
            }
        }
    }

    /// Void elements are closed as XML requires and others as HTML requires; both parsers accept
    /// this. The writer selects at run time where the two syntaxes differ.
    fn element(&mut self, element: &Element, place: &Place<'_>) {
        self.constant("<");
        self.name(&element.name);
        self.either("", &namespaces(element, place));
        for attribute in &element.attributes {
            self.attribute(&element.name, attribute);
        }
        if element.name == "form" {
            self.form = ServiceForm::of(element);
        } else {
            self.limits(element);
        }
        if is_void(&element.name) {
            self.constant(" />");
            return;
        }
        self.constant(">");
        if drops_line_feed(&element.name) && may_begin_with_line_feed(&element.children) {
            self.either("\n", "");
        }
        let inside = place.inside(element);
        if has_bindings(&element.children) {
            self.flush();
            self.body(&element.children, &inside);
        } else {
            self.nodes(&element.children, &inside);
        }
        if element.name == "form" {
            self.form = None;
        }
        if element.name == "head" {
            self.flush();
            self.code("writer.end_head();");
        }
        self.constant("</");
        self.name(&element.name);
        self.constant(">");
    }

    /// XML accepts no undeclared prefix.
    fn name(&mut self, name: &str) {
        self.either(name, &name.replace(':', "_"));
    }

    fn attribute(&mut self, element: &str, attribute: &Attribute) {
        let is_of_xml = is_xml_attribute(&attribute.name);
        let opening = format!(" {}=\"", attribute.name);
        let value = match &attribute.value {
            Value::Bare => String::new(),
            Value::Text(text) => escaped(text),
            Value::Hole(expression) => {
                self.flush();
                if ["action", "formaction"].contains(&&*attribute.name) {
                    self.reference(expression);
                }
                if !is_of_xml {
                    self.code("if !writer.is_in_xml() {");
                }
                let method = method(element, &attribute.name);
                self.call_with(method, &format!("{opening:?}, "), expression);
                if !is_of_xml {
                    self.code("}");
                }
                return;
            }
        };
        let html = format!("{opening}{value}\"");
        // XML normalizes other white space in a value to spaces (XML 1.0, section 3.3.3).
        let value = value.replace('\t', "&#9;").replace('\n', "&#10;").replace('\r', "&#13;");
        let xml = if is_of_xml { format!("{opening}{value}\"") } else { String::new() };
        self.either(&html, &xml);
    }

    /// A script or a style: XML decodes character references in it, HTML does not.
    fn raw_text(&mut self, text: &str) {
        let is_alike = !text.contains(['<', '&']) && !text.contains("]]>");
        if is_alike { self.constant(text) } else { self.either(text, &escaped(text)) }
    }

    /// Adds markup that HTML and XML spell differently.
    fn either(&mut self, html: &str, xml: &str) {
        self.constant.push_str(html);
        self.constant_in_xml.push_str(xml);
    }

    fn constant(&mut self, markup: &str) {
        self.either(markup, markup);
    }

    /// Calls a method of the writer with a hole's value. Compile errors point at the hole.
    fn call_with(&mut self, method: &str, before: &str, expression: &[Token]) {
        self.code("writer.");
        self.expansion.word_at(self.expansion.runs.len(), method);
        self.code("(");
        self.code(before);
        self.code("(&(");
        self.expansion.run(expression);
        self.code(")));");
    }

    /// Registers the value of a form's address with the linker if it may be the name of a service:
    /// the program compares it with its services when it starts.
    fn reference(&mut self, expression: &[Token]) {
        let Some(path) = service_path(expression) else { return };
        self.code("{");
        // A single name may be that of a local variable, which an item cannot use and which this
        // macro cannot see. The value is therefore looked up in the module: the import takes
        // precedence over the function before it, which is there for names that the module lacks.
        let is_single = expression.len() == 1;
        let run = self.expansion.runs.len();
        if is_single {
            self.code("#[allow(dead_code, unused_imports)] mod __reference { fn ");
            self.expansion.word_at(run, &path);
            self.code("() {} pub(super)");
        }
        self.code(
            "fn __find() -> ::core::option::Option<&'static __run0 ::__private::Signature> {",
        );
        if is_single {
            self.code("use super::*;");
        }
        self.code("#[allow(unused_imports)] use __run0 ::__private::NoService as _;");
        self.code("__run0 ::__private::ServiceProbe(&");
        if is_single {
            self.expansion.word_at(run, &path);
        } else {
            self.expansion.run(expression);
        }
        self.code(").signature() }");
        self.code(if is_single { "} use __reference::__find;" } else { "" });
        self.code("__run0 ::__private::submit! { __run0 ::__private::ServiceReference {");
        self.code("place: || ::core::any::type_name_of_val(&__find), file: ::core::file!(),");
        self.code(&format!("line: {}, find: __find, text:", expression[0].line));
        self.expansion.string(&path);
        self.code("} } }");
    }

    /// Emits the limits of the argument that a field of a service's form names.
    fn limits(&mut self, element: &Element) {
        let Some(limits) = self.form.as_ref().and_then(|form| form.limits(element)) else { return };
        self.flush();
        self.code("{ #[allow(unused_imports)] use __run0 ::__private::NoService as _;");
        self.code("__run0 ::__private::write_limits(writer, __run0 ::__private::ServiceProbe(&(");
        self.expansion.run(&limits.service);
        self.code(")).signature(), ");
        self.expansion.string(&limits.name);
        self.code(&format!(", {}); }}", limits.flags));
    }

    fn conditional(&mut self, branches: &[Branch], otherwise: &[Node], place: &Place<'_>) {
        self.flush();
        for (index, branch) in branches.iter().enumerate() {
            self.code(if index == 0 { "if" } else { "else if" });
            self.expansion.run(&branch.head);
            self.body(&branch.body, place);
        }
        if !otherwise.is_empty() {
            self.code("else ");
            self.body(otherwise, place);
        }
    }

    /// Emits a region. `submit!` registers with the linker that the program has regions.
    fn region(&mut self, children: &[Node], place: &Place<'_>) {
        self.flush();
        self.code("{ __run0 ::__private::submit! { __run0 ::__private::LinkedFeature::Region }");
        self.code("writer.region(|writer| ");
        self.body(children, place);
        self.code(", |region| __run0 ::__private::seen(region)); }");
    }

    fn body(&mut self, nodes: &[Node], place: &Place<'_>) {
        self.code("{");
        self.nodes(nodes, place);
        self.flush();
        self.code("}");
    }

    fn flush(&mut self) {
        let (html, xml) = (take(&mut self.constant), take(&mut self.constant_in_xml));
        if html != xml {
            self.code("writer.either(");
            self.expansion.string(&html);
            self.code(", ");
            self.expansion.string(&xml);
            self.code(");");
        } else if !html.is_empty() {
            self.code("writer.constant(");
            self.expansion.string(&html);
            self.code(");");
        }
    }

    fn code(&mut self, code: &str) {
        self.expansion.code(code);
    }
}

/// The text of a path that may name a service: `add` or `services::add`, in lower case. The names of
/// types and constants, which may depend on the enclosing function, begin in upper case.
fn service_path(expression: &[Token]) -> Option<String> {
    let is_name = |token: &Token| {
        token.is_word()
            && token
                .text
                .bytes()
                .all(|byte| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let relative = match expression {
        [one, other, rest @ ..] if one.is(":") && other.is(":") => rest,
        _ => expression,
    };
    let (last, before) = relative.split_last()?;
    let is_path = before.chunks(3).all(|part| match part {
        [name, one, other] => is_name(name) && one.is(":") && other.is(":"),
        _ => false,
    });
    let is_keyword =
        ["self", "super", "crate", "true", "false", "_"].iter().any(|word| last.is(word));
    if !is_path || !is_name(last) || is_keyword {
        return None;
    }
    Some(expression.iter().map(|token| &*token.text).collect())
}

/// Whether the content may begin with a line feed.
fn may_begin_with_line_feed(children: &[Node]) -> bool {
    match children.iter().find(|child| !matches!(child, Node::Let(_))) {
        None | Some(Node::Element(_)) => false,
        Some(Node::Text(text, _)) => text.starts_with('\n'),
        Some(_) => true,
    }
}

/// Escapes constants at compile time, exactly as a writer does at run time.
fn escaped(text: &str) -> String {
    let mut markup = String::with_capacity(text.len());
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
    markup
}

#[cfg(test)]
mod tests;
