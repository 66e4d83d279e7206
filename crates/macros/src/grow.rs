//! `tree!`: markup becomes calls of a builder, and constant subtrees are built once.

use crate::check::check;
use crate::context::method;
use crate::expansion::Expansion;
use crate::fault::Fault;
use crate::parse::parse;
use crate::place::{ContentKind, Place};
use crate::token::{Delimiter, Token};
use crate::tree::{Attribute, Branch, Element, Node, Value, has_bindings};

/// Expands `tree!`. The first token is a bracket with the path of the `bine` crate, the rest is
/// markup.
pub(crate) fn tree(tokens: &[Token]) -> Expansion {
    let (krate, markup) = match tokens.split_first() {
        Some((first, rest)) => (first.group(Delimiter::Bracket).unwrap_or_default(), rest),
        None => (tokens, tokens),
    };
    let mut faults = Vec::new();
    let nodes = parse(markup, &mut faults);
    check(&nodes, &mut faults);
    reject_regions(&nodes, &mut faults);
    let mut emitter = TreeEmitter { expansion: Expansion::default(), caches_constants: true };
    if faults.is_empty() {
        emitter.tree(krate, &nodes);
    } else {
        emitter.faulty_tree(krate, faults);
    }
    emitter.expansion
}

struct TreeEmitter {
    expansion: Expansion,
    /// Whether constant elements are cached; false inside a cached element.
    caches_constants: bool,
}

impl TreeEmitter {
    fn tree(&mut self, krate: &[Token], nodes: &[Node]) {
        // The first run is the path, so the code below refers to it by its number.
        self.code("{ #[allow(unused_imports)] use");
        self.expansion.run(krate);
        // A tree may have holes of only one kind, or no holes.
        self.code("::__private::html::{FillPage as _, FillValue as _};");
        self.code(
            "#[allow(unused_mut)] let mut builder = __run0 ::__private::html::tree::Builder::new();",
        );
        self.nodes(nodes, &Place::root(ContentKind::of(nodes)));
        self.code("builder.finish() }");
    }

    /// An empty tree in place of a faulty one, so that the compiler reports only the faults.
    fn faulty_tree(&mut self, krate: &[Token], faults: Vec<Fault>) {
        self.expansion.faults = faults;
        self.code("{");
        self.expansion.run(krate);
        self.code("::__private::html::Tree::new() }");
    }

    fn nodes(&mut self, nodes: &[Node], place: &Place<'_>) {
        for node in nodes {
            self.node(node, place);
        }
    }

    fn node(&mut self, node: &Node, place: &Place<'_>) {
        match node {
            Node::Doctype => {
                self.code("builder.push(__run0 ::__private::html::tree::Node::Doctype);");
            }
            Node::Text(text, _) => self.call("text", &[text]),
            Node::RawText(text) => self.call("code_text", &[text]),
            Node::Element(element) if self.caches_constants && is_worth_keeping(element) => {
                self.cached(element, place);
            }

            Node::Element(element) => self.element(element, place),
            // Rejected before.
            Node::Live(_) => {}
            Node::Hole(expression, _) => {
                self.code("(");
                let run = self.expansion.run(expression);
                self.code(").");
                self.expansion.word_at(run, place.hole().method());
                self.code("(&mut builder);");
            }
            Node::RawHole(expression) => self.call_with("fill_raw", "", expression),
            Node::Let(statements) => drop(self.expansion.run(statements)),
            Node::For { pattern, iterator, body } => {
                self.code("for");
                self.expansion.run(pattern);
                self.code("in");
                self.expansion.run(iterator);
                self.body(body, place);
            }
            Node::If { branches, otherwise } => self.conditional(branches, otherwise, place),
            Node::Match { value, arms } => {
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

    /// Emits a constant element: the first tree builds it, and all trees share it.
    fn cached(&mut self, element: &Element, place: &Place<'_>) {
        self.code(
            "{ static KEPT: __run0 ::__private::Once<__run0 ::__private::html::Tree> = \
             __run0 ::__private::Once::new(|| { \
             let mut builder = __run0 ::__private::html::tree::Builder::new();",
        );
        self.caches_constants = false;
        self.element(element, place);
        self.caches_constants = true;
        self.code("builder.finish() }); builder.push_tree(&KEPT); }");
    }

    fn element(&mut self, element: &Element, place: &Place<'_>) {
        self.call("open", &[&element.name]);
        for attribute in &element.attributes {
            self.attribute(&element.name, attribute);
        }
        let inside = place.inside(element);
        if has_bindings(&element.children) {
            self.body(&element.children, &inside);
        } else {
            self.nodes(&element.children, &inside);
        }
        self.code("builder.close();");
    }

    fn attribute(&mut self, element: &str, attribute: &Attribute) {
        let name = &attribute.name;
        match &attribute.value {
            Value::Bare => self.call("constant", &[name, ""]),
            Value::Text(text) => self.call("constant", &[name, text]),
            Value::Hole(expression) => {
                self.call_with(method(element, name), &format!("{name:?}, "), expression);
            }
        }
    }

    fn call(&mut self, method: &str, texts: &[&str]) {
        self.code(&format!("builder.{method}("));
        for text in texts {
            self.expansion.string(text);
            self.code(",");
        }
        self.code(");");
    }

    /// Calls a method of the builder with a hole's value. Compile errors point at the hole.
    fn call_with(&mut self, method: &str, before: &str, expression: &[Token]) {
        self.code("builder.");
        self.expansion.word_at(self.expansion.runs.len(), method);
        self.code("(");
        self.code(before);
        self.code("(&(");
        self.expansion.run(expression);
        self.code(")));");
    }

    fn conditional(&mut self, branches: &[Branch], otherwise: &[Node], place: &Place<'_>) {
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

    fn body(&mut self, nodes: &[Node], place: &Place<'_>) {
        self.code("{");
        self.nodes(nodes, place);
        self.code("}");
    }

    fn code(&mut self, code: &str) {
        self.expansion.code(code);
    }
}

/// Rejects regions: a tree may be kept and written later, when its data has changed unnoticed.
fn reject_regions(nodes: &[Node], faults: &mut Vec<Fault>) {
    for node in nodes {
        match node {
            Node::Live(region) => faults.push(Fault::at(
                region.origin,
                "`<Live>` belongs in `html!`, where a hole accepts a tree: `<Live>{tree}</Live>`",
            )),
            Node::Element(element) => reject_regions(&element.children, faults),
            Node::For { body, .. } => reject_regions(body, faults),
            Node::If { branches, otherwise } => {
                for branch in branches {
                    reject_regions(&branch.body, faults);
                }
                reject_regions(otherwise, faults);
            }
            Node::Match { arms, .. } => {
                for arm in arms {
                    reject_regions(&arm.body, faults);
                }
            }
            Node::Doctype
            | Node::Text(..)
            | Node::RawText(_)
            | Node::Hole(..)
            | Node::RawHole(_)
            | Node::Let(_) => {}
        }
    }
}

/// Whether an element is constant and worth caching. It must contain another element: a single
/// element is built as fast as it is looked up.
fn is_worth_keeping(element: &Element) -> bool {
    let is_element = |node: &Node| matches!(node, Node::Element(_));
    is_constant(element) && element.children.iter().any(is_element)
}

fn is_constant(element: &Element) -> bool {
    let is_hole = |attribute: &Attribute| matches!(attribute.value, Value::Hole(_));
    !element.attributes.iter().any(is_hole)
        && element.children.iter().all(|node| match node {
            Node::Doctype | Node::Text(..) | Node::RawText(_) => true,
            Node::Element(element) => is_constant(element),
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    /// Checks the calls of the builder.
    #[track_caller]
    fn check(source: &str, expected: &str) {
        let sample = Sample::new(&format!("[bine]{source}"));
        let expansion = tree(&sample.tokens);
        assert_eq!(sample.report(&expansion.faults), "");
        let spelled = sample.spell(&expansion);
        let body = spelled
            .split_once("Builder::new();")
            .and_then(|(_, body)| body.strip_suffix("builder.finish() }"));
        assert_eq!(body, Some(expected));
    }

    #[test]
    fn expands_each_tag_and_hole_to_a_call() {
        check(
            "<p class=\"a\" title={t} hidden>\"b \"{c}</p>",
            "builder.open(\"p\",);builder.constant(\"class\",\"a\",);builder.attribute(\"title\", (&( t )));\
             builder.constant(\"hidden\",\"\",);builder.text(\"b \",);( c ).fill_phrasing(&mut builder);builder.close();",
        );
        check(
            "<a href={h} onclick={c}><img src={s} alt=\"\"></a>",
            "builder.open(\"a\",);builder.link(\"href\", (&( h )));builder.code(\"onclick\", (&( c )));\
             builder.open(\"img\",);builder.image(\"src\", (&( s )));builder.constant(\"alt\",\"\",);builder.close();\
             builder.close();",
        );
        check(
            "{for x in list { {x} }}{if a { b } else { c }}",
            "for x in list {( x ).fill_phrasing(&mut builder);}if a {builder.text(\"b\",);}else {builder.text(\"c\",);}",
        );
        check(
            "<p>{let x = y;}<b>{x}</b></p>{let x = z;}",
            "builder.open(\"p\",);{ let x = y; builder.open(\"b\",);( x ).fill_phrasing(&mut builder);builder.close();}\
             builder.close(); let x = z; ",
        );
    }

    #[test]
    fn rejects_regions_in_trees() {
        let sample = Sample::new("[bine]<ul>{for a in b { <Live><li>{a}</li></Live> }}</ul>");
        assert_eq!(
            sample.report(&tree(&sample.tokens).faults),
            "Live: `<Live>` belongs in `html!`, where a hole accepts a tree: `<Live>{tree}</Live>`"
        );
    }

    #[test]
    fn builds_constant_elements_once() {
        let sample = Sample::new("[bine]<ul><li>one</li></ul><p>{two}</p>");
        let spelled = sample.spell(&tree(&sample.tokens));
        assert_eq!(spelled.matches("static KEPT").count(), 1);
        assert!(spelled.contains("builder.open(\"ul\",);builder.open(\"li\",)"));
        let sample = Sample::new("[bine]<p>one</p><ul><li>{two}</li></ul>");
        assert!(!sample.spell(&tree(&sample.tokens)).contains("KEPT"));
        let sample = Sample::new("[bine]<ul>{let one = 1;}<li>one</li></ul>");
        assert!(!sample.spell(&tree(&sample.tokens)).contains("KEPT"));
    }

    #[test]
    fn replaces_a_faulty_tree_by_an_empty_tree() {
        let sample = Sample::new("[bine]<p>");
        assert_eq!(sample.spell(&tree(&sample.tokens)), "{ bine ::__private::html::Tree::new() }");
    }
}
