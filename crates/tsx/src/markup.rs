//! JSX becomes calls of the run-time with constant pieces and holes.
//!
//! The expressions in holes stay where they are in the source; only the text between them is
//! replaced. Each root of markup is also built as a tree and checked against the standards. Markup
//! in the branches of a hole (`a && <b />`, `a ? <b /> : <c />`, `list.map(a => <li />)`) belongs to
//! the tree around it, so its place is checked as well.

mod nodes;
mod rows;
mod template;

use std::collections::HashSet;

use bine_markup::{Dialect, Element, Hole, Node, Place, Value, check};
use bine_vocabulary::{Context, drops_line_feed, is_raw_text, is_void};
use oxc_ast::ast::{
    CallExpression, Expression, JSXAttributeItem, JSXAttributeValue, JSXChild, JSXElement,
    JSXElementName, JSXExpression, JSXExpressionContainer, JSXFragment, Program,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::Scoping;
use oxc_span::{GetSpan, Span};

use crate::browser::{Captured, Extract, Extracted};
use crate::diagnostic::Fault;
use crate::edits::Edits;
use crate::facts::Region;
use crate::scan::{Imports, awaits, hash};
use crate::source::Source;
use crate::text::{child, decoded, literal};

use nodes::{Attribute, attribute_name, attributes, element_name};
use rows::{CallPlace, RowTemplate};
use template::{Form, Template};

/// The markup of a module.
#[derive(Debug, Default)]
pub(crate) struct Markup {
    /// The declarations that generated code needs, on one line.
    pub(crate) prelude: String,
    /// Whether the module has no markup.
    pub(crate) is_empty: bool,
    pub(crate) regions: Vec<Region>,
}

/// The known facts about the names of a program.
#[derive(Clone, Copy)]
pub(crate) struct Known<'k> {
    pub(crate) imports: &'k Imports,
    pub(crate) scoping: &'k Scoping,
}

/// The generated names of a module.
pub(crate) struct Names {
    /// The prefix, which occurs in no name of the source in this way.
    prefix: String,
}

/// Replaces the JSX of a program by calls and reports the errors in it.
pub(crate) fn generate(
    source: &Source<'_>,
    program: &Program<'_>,
    Known { imports, scoping }: Known<'_>,
    names: Names,
    handlers: &mut dyn Extract,
    edits: &mut Edits,
    faults: &mut Vec<Fault>,
) -> Markup {
    let mut generator = Generator {
        source,
        imports,
        scoping,
        edits,
        faults,
        names,
        handlers,
        templates: Vec::new(),
        rows: Vec::new(),
        row_calls: HashSet::new(),
        form: Form::Text,
        regions: Vec::new(),
        checked: HashSet::new(),
        has_handler_values: false,
        has_browser_calls: false,
    };
    generator.visit_program(program);
    Markup {
        prelude: generator.prelude(),
        is_empty: generator.templates.is_empty(),
        regions: generator.regions,
    }
}

/// The generated names, without the prefix.
const NAMES: [&str; 11] = [
    "html",
    "live",
    "markup",
    "m",
    "r",
    "shape",
    "tree",
    "captured",
    "browser-url",
    "handler",
    "url",
];

impl Names {
    /// Names that the source does not contain.
    pub(crate) fn unused_in(source: &str) -> Self {
        let mut prefix = String::from("$");
        while NAMES.iter().any(|name| source.contains(&(prefix.clone() + name))) {
            prefix.push('$');
        }
        Self { prefix }
    }

    /// The parameter of the browser's functions with the captured values.
    pub(crate) fn captured(&self) -> String {
        format!("{}captured", self.prefix)
    }

    /// The placeholder for the URL of the browser's module.
    pub(crate) fn browser_url(&self) -> String {
        format!("{}browser-url", self.prefix)
    }
}

struct Generator<'g> {
    source: &'g Source<'g>,
    imports: &'g Imports,
    scoping: &'g Scoping,
    edits: &'g mut Edits,
    faults: &'g mut Vec<Fault>,
    names: Names,
    handlers: &'g mut dyn Extract,
    templates: Vec<Template>,
    rows: Vec<RowTemplate>,
    /// The calls that a row template writes.
    row_calls: HashSet<CallPlace>,
    /// The form of the markup that is generated: that of a tree in the call `tree(..)`.
    form: Form,
    regions: Vec<Region>,
    /// The starts of roots that were checked as part of the markup around them.
    checked: HashSet<u32>,
    /// Whether an element has a handler that is known when the page is rendered.
    has_handler_values: bool,
    /// Whether there is a call `browser(..)`.
    has_browser_calls: bool,
}

impl<'a> Visit<'a> for Generator<'_> {
    fn visit_jsx_element(&mut self, it: &JSXElement<'a>) {
        self.generate_root(Root::Element(it), it.span);
    }

    fn visit_jsx_fragment(&mut self, it: &JSXFragment<'a>) {
        self.generate_root(Root::Fragment(it), it.span);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        if self.row_calls.contains(&rows::place(it.span)) {
            return rows::emit(self, it);
        }
        let outer = self.form;
        match self.imports.called_word(&it.callee) {
            Some("browser") => return self.browser_call(it),
            Some("tree") => self.form = Form::Tree,
            _ => {}
        }
        walk::walk_call_expression(self, it);
        self.form = outer;
    }
}

impl Generator<'_> {
    fn generate_root(&mut self, root: Root<'_, '_>, span: Span) {
        if !self.checked.contains(&span.start) {
            self.check_root(root);
        }
        let mut emitter = Emitter::new(span);
        emitter.root(self, root);
        emitter.finish(self);
    }

    fn check_root(&mut self, root: Root<'_, '_>) {
        let mut builder = nodes::Builder::new(self.source, self.imports, &mut self.checked);
        let nodes = match root {
            Root::Element(element) => builder.element(element),
            Root::Fragment(fragment) => builder.children(&fragment.children, false),
        };
        self.check(&nodes);
    }

    fn check(&mut self, nodes: &[Node<()>]) {
        let mut found = Vec::new();
        check(nodes, Dialect::TSX, &mut found);
        for fault in found {
            let start = fault.origin as u32;
            self.faults.push(Fault { start, end: self.end_of_word(start), message: fault.message });
        }
    }

    /// The end of the name or the string that begins at an offset.
    fn end_of_word(&self, start: u32) -> u32 {
        let rest = self.source.slice(start, self.source.text.len() as u32);
        let mut letters = rest.char_indices();
        let quote = letters.next().map(|(_, first)| first).filter(|first| "\"'`".contains(*first));
        let length = match quote {
            Some(quote) => letters.find(|(_, letter)| *letter == quote).map(|(at, _)| at + 1),
            None => rest.find(|letter: char| !letter.is_alphanumeric() && !"-_:.".contains(letter)),
        };
        start + length.unwrap_or(rest.len()) as u32
    }

    fn refuse(&mut self, span: Span, message: impl Into<String>) {
        self.faults.push(Fault::new(span, message));
    }

    /// Replaces the function in `browser(..)` by its place in the module of the browser and the values
    /// that it captures.
    fn browser_call(&mut self, call: &CallExpression<'_>) {
        let function = match call.arguments.as_slice() {
            [one] => one.as_expression().map(Expression::get_inner_expression),
            _ => None,
        };
        let Some(function) = function else { return self.refuse(call.span, BROWSER_CALL) };
        let mut captured = Vec::new();
        let Self { handlers, edits, faults, .. } = self;
        match handlers.extract(function, &mut captured, edits, faults) {
            Extracted::Handler(handler) => {
                let values: Vec<&str> = captured.iter().map(|one| one.code.as_str()).collect();
                let code = format!(
                    "{}url,{},{},[{}],{}",
                    self.names.prefix,
                    handler.index,
                    u8::from(handler.acts_at_once),
                    values.join(","),
                    literal(&places(&captured))
                );
                let text = self.source.text;
                let span = call.arguments[0].span();
                self.edits.remove_in((span.start, span.end));
                self.edits.replace(text, (span.start, span.end), &code);
                self.has_browser_calls = true;
            }
            Extracted::Value => self.refuse(function.span(), BROWSER_CALL),
            Extracted::Refused => {}
        }
    }

    /// The declarations of the constants, for the start of the first line.
    fn prelude(&self) -> String {
        let Names { prefix } = &self.names;
        let url = || format!("{prefix}url=\"{}\"", self.names.browser_url());
        let url = self.has_browser_calls.then(url);
        if self.templates.is_empty() {
            return url.map_or_else(String::new, |url| format!("const {url};"));
        }
        let has = |is_tree| self.templates.iter().any(|one| one.is_tree() == is_tree);
        let words = [
            ("html", has(false)),
            ("markup", has(false)),
            ("live", !self.regions.is_empty()),
            ("shape", has(true)),
            ("tree", has(true)),
            ("row", !self.rows.is_empty()),
            ("rows", !self.rows.is_empty()),
            ("handler", self.has_handler_values),
        ];
        let words = words.iter().filter(|(_, is_used)| *is_used);
        let words = words.map(|(word, _)| format!("${word} as {prefix}{word}"));
        let constants = self.templates.iter().enumerate();
        let constants = constants
            .map(|(index, template)| format!("{prefix}m{index}={}", template.registration(prefix)));
        let rows = self.rows.iter().enumerate();
        let rows = rows.map(|(index, row)| format!("{prefix}r{index}={}", row.declaration(prefix)));
        format!(
            "import{{{}}}from\"bine:runtime\";const {};",
            words.collect::<Vec<_>>().join(","),
            constants.chain(rows).chain(url).collect::<Vec<_>>().join(",")
        )
    }
}

/// A root of markup.
#[derive(Clone, Copy)]
enum Root<'n, 'a> {
    Element(&'n JSXElement<'a>),
    Fragment(&'n JSXFragment<'a>),
}

/// Writes the code of one root: generated text between expressions of the source, in their order.
struct Emitter {
    /// The end of the source that was used.
    at: u32,
    end: u32,
    pending: String,
}

impl Emitter {
    fn new(span: Span) -> Self {
        Self { at: span.start, end: span.end, pending: String::new() }
    }

    fn put(&mut self, code: &str) {
        self.pending.push_str(code);
    }

    /// Keeps a part of the source after the pending code.
    fn keep(&mut self, generator: &mut Generator<'_>, span: Span) {
        let text = generator.source.text;
        generator.edits.replace(text, (self.at, span.start), &self.pending);
        self.pending.clear();
        self.at = span.end;
    }

    /// Writes the pending code, so that the code after it is on the line of this offset.
    fn advance(&mut self, generator: &mut Generator<'_>, to: u32) {
        let end = self.end;
        self.keep(generator, Span::new(to.min(end), to.min(end)));
    }

    fn finish(self, generator: &mut Generator<'_>) {
        let text = generator.source.text;
        generator.edits.replace(text, (self.at, self.end), &self.pending);
    }

    fn expression(&mut self, generator: &mut Generator<'_>, expression: &Expression<'_>) {
        // A comma would end the argument.
        let is_list = matches!(expression, Expression::SequenceExpression(_));
        self.put(if is_list { "(" } else { "" });
        self.keep(generator, expression.span());
        generator.visit_expression(expression);
        self.put(if is_list { ")" } else { "" });
    }

    /// Writes a root as an expression.
    fn root(&mut self, generator: &mut Generator<'_>, root: Root<'_, '_>) {
        if let Root::Element(element) = root
            && is_component(element, generator.imports)
        {
            return self.component(generator, element);
        }
        let place = Place::root(bine_markup::ContentKind::Flow);
        if let Root::Element(element) = root
            && is_region(element, generator.imports)
        {
            return self.region(generator, element, &place);
        }
        self.template(generator, |this, generator, template| match root {
            Root::Element(element) => this.element(generator, template, element, &place),
            Root::Fragment(fragment) => {
                this.children(generator, template, &fragment.children, &place);
            }
        });
    }

    /// Writes a call with the constants and holes that `fill` adds.
    fn template(
        &mut self,
        generator: &mut Generator<'_>,
        fill: impl FnOnce(&mut Self, &mut Generator<'_>, usize),
    ) {
        let index = generator.templates.len();
        let template = Template::new(generator.form);
        let word = if template.is_tree() { "tree" } else { "html" };
        generator.templates.push(template);
        let prefix = generator.names.prefix.clone();
        self.put(&format!("{prefix}{word}({prefix}m{index}"));
        fill(self, generator, index);
        self.put(")");
    }

    /// Adds a hole to a template. The code of its value follows.
    fn hole(&mut self, generator: &mut Generator<'_>, template: usize, kind: &str) {
        generator.templates[template].hole(kind);
        self.put(",");
    }

    fn element(
        &mut self,
        generator: &mut Generator<'_>,
        template: usize,
        element: &JSXElement<'_>,
        place: &Place<'_>,
    ) {
        let name = element_name(&element.opening_element.name);
        let constants = &mut generator.templates[template];
        if name == "html" && place.parent.is_none() {
            constants.doctype();
        }
        constants.open(&name);
        self.attributes(generator, template, &name, element);
        generator.templates[template].begin_content(&name);
        if is_void(&name) {
            if let Some(closing) = &element.closing_element {
                let message =
                    format!("`<{name}>` is void: it has neither children nor a closing tag");
                generator.refuse(closing.name.span(), message);
            }
            return;
        }
        if drops_line_feed(&name) && may_begin_with_line_feed(&element.children) {
            generator.templates[template].dropped_line_feed();
        }
        let shape: Element<()> = Element {
            name: name.clone(),
            origin: 0,
            has_more_attributes: false,
            attributes: Vec::new(),
            children: Vec::new(),
        };
        let inside = place.inside(&shape);
        if is_raw_text(&name) {
            self.raw_children(generator, template, &name, &element.children);
        } else {
            self.children(generator, template, &element.children, &inside);
        }
        generator.templates[template].close(&name);
    }

    fn attributes(
        &mut self,
        generator: &mut Generator<'_>,
        template: usize,
        element: &str,
        markup: &JSXElement<'_>,
    ) {
        let mut spreads = 0;
        let mut names: Vec<String> = Vec::new();
        let mut handlers = ElementHandlers::default();
        for item in &markup.opening_element.attributes {
            let attribute = match item {
                JSXAttributeItem::Attribute(attribute) => attribute,
                JSXAttributeItem::SpreadAttribute(spread) => {
                    spreads += 1;
                    if spreads > 1 {
                        let message =
                            "an element takes one spread: merge them, `{...{ ...a, ...b }}`";
                        generator.refuse(spread.span, message);
                    }
                    let kind = spread_kind(element, markup);
                    self.hole(generator, template, &kind);
                    self.expression(generator, &spread.argument);
                    continue;
                }
            };
            let name = attribute_name(&attribute.name);
            if names.iter().any(|other| other.eq_ignore_ascii_case(&name)) {
                generator.refuse(attribute.name.span(), format!("`{name}` is set twice"));
            }
            names.push(name.clone());
            match nodes::constant(attribute.value.as_ref()) {
                Value::Bare => generator.templates[template].attribute(&name, ""),
                Value::Text(text) => generator.templates[template].attribute(&name, &text),
                Value::Hole(()) if is_handler(&name) => {
                    self.handler(generator, template, attribute, &mut handlers);
                }
                Value::Hole(()) => {
                    self.attribute_hole(generator, template, element, &name, attribute, markup);
                }
            }
        }
        if let Some(first) = handlers.first {
            if names.iter().any(|name| name.eq_ignore_ascii_case("data-on")) {
                let message = "an element has either handlers or `data-on`: put its commands into the functions";
                generator.refuse(first, message);
            }
            let ElementHandlers { rules, captured, .. } = handlers;
            generator.templates[template].attribute("data-on", &rules.join("; "));
            if !captured.is_empty() {
                self.hole(generator, template, &format!("v{}", places(&captured)));
                let values: Vec<&str> = captured.iter().map(|one| one.code.as_str()).collect();
                self.put(&format!("[{}]", values.join(",")));
            }
        }
    }

    /// Adds a handler of an element. A function becomes a rule; the value of another expression has
    /// its own attribute.
    fn handler(
        &mut self,
        generator: &mut Generator<'_>,
        template: usize,
        attribute: &Attribute<'_>,
        all: &mut ElementHandlers,
    ) {
        let name = attribute_name(&attribute.name);
        if generator.form == Form::Tree && all.first.is_none() {
            generator.refuse(attribute.name.span(), HANDLER_IN_TREE);
        }
        all.first.get_or_insert(attribute.name.span());
        let events = || bine_vocabulary::event_handlers().iter().map(|handler| handler.name);
        if !OWN_EVENTS.contains(&name.as_str()) && events().all(|event| event != name) {
            let similar = bine_vocabulary::nearest(&name, events().chain(OWN_EVENTS));
            let similar = similar.map(|one| format!("; did you mean `{one}`?"));
            let message = format!("HTML has no event `{name}`{}", similar.unwrap_or_default());
            generator.refuse(attribute.name.span(), message);
        }
        let function = match &attribute.value {
            Some(JSXAttributeValue::ExpressionContainer(container)) => {
                container.expression.as_expression()
            }
            _ => None,
        };
        let Some(function) = function else { return };
        let url = generator.names.browser_url();
        let Generator { handlers, edits, faults, .. } = generator;
        let event = &name[2..];
        match handlers.extract(function.get_inner_expression(), &mut all.captured, edits, faults) {
            Extracted::Handler(found) => {
                let now = if found.acts_at_once { " now" } else { "" };
                all.rules.push(format!("{event}: run {url} {}{now}", found.index));
            }
            Extracted::Value => {
                all.rules.push(format!("{event}: run"));
                self.hole(generator, template, &format!("adata-on-{event}"));
                self.put(&format!("{}handler(", generator.names.prefix));
                self.expression(generator, function);
                self.put(")");
                generator.has_handler_values = true;
            }
            Extracted::Refused => {}
        }
    }

    fn attribute_hole(
        &mut self,
        generator: &mut Generator<'_>,
        template: usize,
        element: &str,
        name: &str,
        attribute: &Attribute<'_>,
        markup: &JSXElement<'_>,
    ) {
        let context = Context::of(element, name);
        let is_post = name == "action"
            && element == "form"
            && !attributes(markup).any(|other| attribute_name(&other.name) == "method");
        let letter = match context {
            _ if is_post => 'p',
            Context::Text => 'a',
            Context::Link => 'l',
            Context::Image => 'i',
            Context::Code => 'c',
        };
        self.hole(generator, template, &format!("{letter}{name}"));
        self.attribute_value(generator, attribute);
    }

    /// Writes the value of an attribute or a property.
    fn attribute_value(&mut self, generator: &mut Generator<'_>, attribute: &Attribute<'_>) {
        match &attribute.value {
            None => self.put("true"),
            Some(JSXAttributeValue::StringLiteral(text)) => {
                self.put(&literal(&decoded(&text.value)));
            }
            Some(JSXAttributeValue::ExpressionContainer(container)) => {
                self.container(generator, container);
            }
            Some(JSXAttributeValue::Element(element)) => {
                generator.check_root(Root::Element(element));
                self.root(generator, Root::Element(element));
            }
            Some(JSXAttributeValue::Fragment(fragment)) => {
                generator.check_root(Root::Fragment(fragment));
                self.root(generator, Root::Fragment(fragment));
            }
        }
    }

    fn container(&mut self, generator: &mut Generator<'_>, container: &JSXExpressionContainer<'_>) {
        match container.expression.as_expression() {
            Some(expression) => self.expression(generator, expression),
            // The parser rejects it in an attribute, and children without it are not written.
            None => self.put("null"),
        }
    }

    fn children(
        &mut self,
        generator: &mut Generator<'_>,
        template: usize,
        children: &[JSXChild<'_>],
        place: &Place<'_>,
    ) {
        let kind = if place.hole() == Hole::Text { "u" } else { "t" };
        for one in children {
            match one {
                JSXChild::Text(text) => {
                    let text = child(raw_text(generator.source, text.span));
                    generator.templates[template].text(&text);
                }
                JSXChild::Fragment(fragment) => {
                    self.children(generator, template, &fragment.children, place);
                }
                JSXChild::Element(element) if is_region(element, generator.imports) => {
                    self.hole(generator, template, kind);
                    self.region(generator, element, place);
                }
                JSXChild::Element(element) if is_component(element, generator.imports) => {
                    self.hole(generator, template, kind);
                    self.component(generator, element);
                }
                JSXChild::Element(element) => self.element(generator, template, element, place),
                JSXChild::ExpressionContainer(container) => {
                    let JSXExpressionContainer { expression, .. } = &**container;
                    match nodes::constant_text(expression) {
                        Some(text) => generator.templates[template].text(&text),
                        None if matches!(expression, JSXExpression::EmptyExpression(_)) => {}
                        None => {
                            self.hole(generator, template, kind);
                            if let Some(value) = expression.as_expression()
                                && kind == "t"
                                && generator.form == Form::Text
                            {
                                rows::mark(generator, value);
                            }
                            self.container(generator, container);
                        }
                    }
                }
                JSXChild::Spread(spread) => {
                    generator.refuse(spread.span, SPREAD_CHILD);
                }
            }
        }
    }

    /// Writes the content of `<script>` or `<style>`, as it is in the source.
    fn raw_children(
        &mut self,
        generator: &mut Generator<'_>,
        template: usize,
        name: &str,
        children: &[JSXChild<'_>],
    ) {
        for child in children {
            let text = match child {
                JSXChild::Text(text) => raw_text(generator.source, text.span).to_owned(),
                JSXChild::ExpressionContainer(container) => {
                    let JSXExpressionContainer { expression, .. } = &**container;
                    match nodes::constant_text(expression) {
                        Some(text) => text,
                        None if matches!(expression, JSXExpression::EmptyExpression(_)) => continue,
                        None => {
                            self.hole(generator, template, "x");
                            self.container(generator, container);
                            continue;
                        }
                    }
                }
                other => {
                    let message = format!(
                        "no element is allowed in `<{name}>`: write the text as a string, {{\"..\"}}"
                    );
                    generator.refuse(other.span(), message);
                    continue;
                }
            };
            let lower = text.to_ascii_lowercase();
            if ["</script", "</style", "<!--"].iter().any(|end| lower.contains(end)) {
                generator.refuse(child.span(), "this text would end or hide its element");
            }
            generator.templates[template].code(&text);
        }
    }

    /// Writes a region: its content is a function, so that the reads in it are recorded apart and it
    /// can be rendered alone.
    fn region(
        &mut self,
        generator: &mut Generator<'_>,
        element: &JSXElement<'_>,
        place: &Place<'_>,
    ) {
        if generator.form == Form::Tree {
            generator.refuse(element.opening_element.name.span(), REGION_IN_TREE);
        }
        self.advance(generator, element.span.start);
        let text = generator.source.slice(element.span.start, element.span.end);
        let same = generator.regions.iter().filter(|region| region.source_hash == hash(text, 0));
        let hash_of_region = hash(text, same.count() as u64);
        let position = generator.source.place(element.span.start);
        generator.regions.push(Region {
            hash: hash_of_region.clone(),
            source_hash: hash(text, 0),
            position,
        });
        let waits = awaits(&element.children);
        let prefix = generator.names.prefix.clone();
        let (before, function) = if waits { ("await ", "async()=>") } else { ("", "()=>") };
        self.put(&format!("{before}{prefix}live(\"{hash_of_region}\",{function}"));
        self.template(generator, |this, generator, template| {
            this.children(generator, template, &element.children, place);
        });
        self.put(")");
    }

    /// Writes a component: a call with one object of properties.
    fn component(&mut self, generator: &mut Generator<'_>, element: &JSXElement<'_>) {
        let opening = &element.opening_element;
        let mut builder =
            nodes::Builder::new(generator.source, generator.imports, &mut generator.checked);
        let nodes = builder.children(&element.children, false);
        generator.check(&nodes);
        self.keep(generator, opening.name.span());
        self.put("({");
        for item in &opening.attributes {
            match item {
                JSXAttributeItem::Attribute(attribute) => {
                    let name = attribute_name(&attribute.name);
                    // The plain form would set the prototype of the object.
                    let key =
                        if name == "__proto__" { "[\"__proto__\"]".into() } else { literal(&name) };
                    self.put(&format!("{key}:"));
                    self.attribute_value(generator, attribute);
                }
                JSXAttributeItem::SpreadAttribute(spread) => {
                    self.put("...");
                    self.expression(generator, &spread.argument);
                }
            }
            self.put(",");
        }
        self.component_children(generator, &element.children);
        self.put("})");
    }

    /// Writes the children of a component: the value of a single hole, or markup.
    fn component_children(&mut self, generator: &mut Generator<'_>, children: &[JSXChild<'_>]) {
        let is_seen = |one: &&JSXChild<'_>| match one {
            JSXChild::Text(text) => !child(raw_text(generator.source, text.span)).is_empty(),
            JSXChild::ExpressionContainer(container) => {
                !matches!(container.expression, JSXExpression::EmptyExpression(_))
            }
            _ => true,
        };
        let seen: Vec<&JSXChild<'_>> = children.iter().filter(is_seen).collect();
        match seen.as_slice() {
            [] => {}
            [JSXChild::ExpressionContainer(container)] => {
                self.put("children:");
                self.container(generator, container);
            }
            [JSXChild::Element(element)] => {
                self.put("children:");
                self.root(generator, Root::Element(element));
            }
            _ => {
                self.put("children:");
                let place = Place::root(bine_markup::ContentKind::Flow);
                self.template(generator, |this, generator, template| {
                    this.children(generator, template, children, &place);
                });
            }
        }
    }
}

/// The events of the script of pages: a service has taken a form; an element was added to the page.
const OWN_EVENTS: [&str; 2] = ["ondone", "onappear"];

const BROWSER_CALL: &str =
    "`browser` takes one function, in this place: `browser((event) => save({ id }))`";

const HANDLER_IN_TREE: &str = "a tree has no handlers: write the element outside of `tree(..)`";

const REGION_IN_TREE: &str = "a tree has no live regions, because it is built once: put the tree into the region, \
                              `<Live>{menu}</Live>`";

pub(crate) const SPREAD_CHILD: &str = "children have no spread: an array is a hole, `{list}`";

/// The kind of a spread: the element, and the attributes that are written and so take precedence.
fn spread_kind(element: &str, markup: &JSXElement<'_>) -> String {
    let written = attributes(markup).map(|one| format!(" {}", attribute_name(&one.name)));
    format!("s{element}{}", written.collect::<String>())
}

/// The text of a child as written. The parser's value has its references decoded.
fn raw_text<'s>(source: &Source<'s>, span: Span) -> &'s str {
    source.slice(span.start, span.end)
}

/// The handlers of an element.
#[derive(Default)]
struct ElementHandlers {
    /// The place of the name of the first one.
    first: Option<Span>,
    /// The rules in `data-on`.
    rules: Vec<String>,
    captured: Vec<Captured>,
}

/// The places of captured values, a line for each.
fn places(captured: &[Captured]) -> String {
    let place =
        |one: &Captured| format!("{}:{} {}", one.position.line, one.position.column, one.name);
    captured.iter().map(place).collect::<Vec<_>>().join("\n")
}

/// Whether an attribute is an event handler: `on` and the event in one word.
pub(crate) fn is_handler(name: &str) -> bool {
    Context::of("", name) == Context::Code
        && name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("on"))
}

/// Whether the name of an element is a value of the module: `<Card>`, `<parts.Card>`.
pub(crate) fn is_component(element: &JSXElement<'_>, imports: &Imports) -> bool {
    let is_name_of_value = !matches!(
        element.opening_element.name,
        JSXElementName::Identifier(_) | JSXElementName::NamespacedName(_)
    );
    is_name_of_value && !is_region(element, imports)
}

/// Whether an element is `<Live>` of `bine`.
pub(crate) fn is_region(element: &JSXElement<'_>, imports: &Imports) -> bool {
    match &element.opening_element.name {
        JSXElementName::IdentifierReference(name) => imports.is_live(&name.name),
        _ => false,
    }
}

/// Whether the content may begin with a line feed.
fn may_begin_with_line_feed(children: &[JSXChild<'_>]) -> bool {
    let first = children.iter().find(|one| match one {
        JSXChild::Text(text) => !child(&text.value).is_empty(),
        JSXChild::ExpressionContainer(container) => {
            !matches!(container.expression, JSXExpression::EmptyExpression(_))
        }
        _ => true,
    });
    // Text of JSX never begins with a line feed.
    match first {
        None | Some(JSXChild::Text(_)) => false,
        Some(JSXChild::Element(element)) => matches!(
            element.opening_element.name,
            JSXElementName::IdentifierReference(_) | JSXElementName::MemberExpression(_)
        ),
        Some(JSXChild::ExpressionContainer(container)) => {
            nodes::constant_text(&container.expression).is_none_or(|text| text.starts_with('\n'))
        }
        Some(_) => true,
    }
}
