//! Validation of a tree against HTML's content model (HTML 3.2.5), with the wording of the compile
//! errors of `html!`. Names and values of attributes are not checked, like quoted names in `tree!`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::panic::Location;
use core::slice;

use bine_vocabulary::{
    self as vocabulary, Categories, Content, MATHML, SVG, Value, Words, is_raw_text, nearest,
};

use super::{Element, Node};

/// The maximum number of ancestors searched for an exclusion: HTML parsers limit the depth to 512.
const MAX_DEPTH: usize = 512;

/// A violation of HTML's rules by an element of a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The source location of the `tree!` or the call that created the element.
    pub source_location: &'static Location<'static>,
    /// A description of the problem, in a sentence.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source_location, message } = self;
        write!(to, "{}:{}: {message}", source_location.file(), source_location.line())
    }
}

/// Reports all violations in the nodes. Their future parent is unknown, so any root is allowed.
pub(super) fn check(nodes: &[Node], report: &mut dyn FnMut(Finding)) {
    let content = Content::ANYTHING;
    let root = CheckLevel {
        nodes: nodes.iter(),
        element: None,
        known: None,
        content,
        is_foreign: false,
        once: Vec::new(),
    };
    let mut levels = Vec::from([root]);
    while let Some(level) = levels.last_mut() {
        let Some(node) = level.nodes.next() else {
            levels.pop();
            continue;
        };
        match node {
            Node::Element(element) => {
                let inside = check_element(&mut levels, element, report);
                levels.push(inside);
            }
            Node::Text(text) => check_text(level, text, report),
            _ => {}
        }
    }
}

struct CheckLevel<'t> {
    nodes: slice::Iter<'t, Node>,
    /// The parent element.
    element: Option<&'t Element>,
    /// HTML's rules for the parent; `None` for the roots and in custom elements.
    known: Option<&'static vocabulary::Element>,
    content: Content,
    /// Whether the nodes are SVG or MathML, which is not checked.
    is_foreign: bool,
    /// The children seen so far that may occur only once.
    once: Vec<&'static str>,
}

/// Checks an element in its place and returns the level of its children.
fn check_element<'t>(
    levels: &mut [CheckLevel<'t>],
    element: &'t Element,
    report: &mut dyn FnMut(Finding),
) -> CheckLevel<'t> {
    let inside = CheckLevel {
        nodes: element.children().iter(),
        element: Some(element),
        known: None,
        content: Content::ANYTHING,
        is_foreign: false,
        once: Vec::new(),
    };
    let name = element.name();
    let mut fault =
        |what| report(Finding { source_location: element.source_location(), message: what });
    if levels.last().is_some_and(|place| place.is_foreign) {
        let comes_back = ["foreignObject", "annotation-xml", "desc", "title"].contains(&name);
        return CheckLevel { is_foreign: !comes_back, ..inside };
    }
    let is_foreign = [SVG.root, MATHML.root].contains(&name);
    let Some(known) = vocabulary::element(name) else {
        if !is_foreign && !vocabulary::is_custom(name) && !name.contains(':') {
            fault(unknown(name));
        }
        return CheckLevel { is_foreign, ..inside };
    };
    if let Some(instead) = known.deprecated {
        fault(format!("`<{name}>` is no longer part of HTML: {instead}"));
    }
    if known.void && !element.children().is_empty() {
        fault(format!("`<{name}>` is void: its children are not written"));
    }
    if is_raw_text(name) && element.children().iter().any(|node| !matches!(node, Node::Raw(_))) {
        fault(format!("`<{name}>` accepts only raw text"));
    }
    let value_of = |name: &str| element.attribute(name).map_or(Value::Absent, Value::Is);
    let parent = levels.last().and_then(|level| level.known).map(|parent| parent.name);
    let rules = known.rules.iter().chain(vocabulary::global_rules());
    for rule in rules.filter(|rule| rule.is_violated(value_of, parent)) {
        fault(format!("`<{name}>` {rule}"));
    }
    if let Some(what) = misplaced(levels, element, known) {
        fault(what);
    }
    let Some(outer) = levels.last_mut() else { return inside };
    if outer.content.once.contains(name) {
        outer.once.push(known.name);
    }
    if is_foreign || known.void || is_raw_text(name) {
        // Their content has been checked above.
        return CheckLevel { is_foreign: true, ..inside };
    }
    CheckLevel { known: Some(known), content: known.content.inherit_from(&outer.content), ..inside }
}

fn unknown(name: &str) -> String {
    let names = vocabulary::elements().iter().filter(|known| known.deprecated.is_none());
    let meant = nearest(name, names.map(|known| known.name));
    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean `<{meant}>`?"));
    format!("HTML has no element `<{name}>`{meant}")
}

/// The reason why an element is not allowed in its place.
fn misplaced(
    levels: &[CheckLevel<'_>],
    element: &Element,
    known: &'static vocabulary::Element,
) -> Option<String> {
    let name = known.name;
    let mut categories = known.categories;
    let value_of = |name: &str| element.attribute(name).map_or(Value::Absent, Value::Is);
    if let Some(sometimes) = known.sometimes
        && sometimes.holds(value_of) == Some(true)
    {
        categories = categories.or(sometimes.categories);
    }
    let place = levels.last()?;
    if let Some(parent) = place.known {
        let parent_name = parent.name;
        if known.parents.is_empty() && !place.content.allows(known, categories) {
            let takes = takes(&place.content);
            return Some(format!(
                "`<{name}>` is not allowed in `<{parent_name}>`: it takes {takes}"
            ));
        }
        if !known.parents.is_empty() && !known.parents.contains(parent_name) {
            let parents = tags(known.parents);
            return Some(format!(
                "`<{name}>` is not allowed in `<{parent_name}>`: `<{name}>` belongs in {parents}"
            ));
        }
        if place.once.contains(&name) {
            return Some(format!("`<{name}>` belongs in `<{parent_name}>` only once"));
        }
    }
    let ancestors = || levels.iter().rev().take(MAX_DEPTH).filter_map(|level| level.known);
    if let Some(outer) = ancestors().find(|outer| outer.excluded.contains(known, categories)) {
        let kinds = outer.excluded.categories.and(categories);
        let why = if outer.excluded.elements.contains(name) {
            String::new()
        } else {
            format!(", which allows no content that is {kinds}")
        };
        return Some(format!("`<{name}>` is not allowed inside `<{}>`{why}", outer.name));
    }
    let is_whole =
        levels.get(1).and_then(|level| level.known).is_some_and(|root| root.name == "html");
    let is_within =
        known.within.is_empty() || ancestors().any(|outer| known.within.contains(outer.name));
    (is_whole && !is_within).then(|| format!("`<{name}>` belongs inside {}", tags(known.within)))
}

fn check_text(place: &CheckLevel<'_>, text: &str, report: &mut dyn FnMut(Finding)) {
    let (Some(element), Some(known)) = (place.element, place.known) else { return };
    if !place.content.text && !text.trim().is_empty() {
        let takes = takes(&place.content);
        let what = format!("no text is allowed in `<{}>`: it takes {takes}", known.name);
        report(Finding { source_location: element.source_location(), message: what });
    }
}

/// The content that an element allows, for a message.
fn takes(content: &Content) -> String {
    let mut words = Vec::new();
    if content.categories != Categories::NONE {
        words.push(format!("{} content", content.categories));
    }
    if !content.elements.is_empty() {
        words.push(tags(content.elements));
    }
    if content.text && content.categories == Categories::NONE {
        words.push("text".into());
    }
    if words.is_empty() { "nothing".into() } else { words.join(" and ") }
}

fn tags(words: Words) -> String {
    let tags: Vec<String> = words.iter().map(|word| format!("`<{word}>`")).collect();
    tags.join(", ")
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::super::Tree;
    use super::*;
    use crate::raw;

    fn element(name: &'static str, children: impl IntoIterator<Item = Node>) -> Node {
        let mut element = Element::new(name).unwrap();
        element.children_mut().extend(children);
        element.into()
    }

    #[track_caller]
    fn check(node: Node, expected: &[&str]) {
        let found = Tree::from(node).findings();
        let messages: Vec<&str> = found.iter().map(|finding| &*finding.message).collect();
        assert_eq!(messages, expected);
    }

    #[test]
    fn accepts_valid_trees() {
        let item = element("li", ["a".into(), element("p", [])]);
        let drawing =
            element("svg", [element("path", []), element("foreignObject", [element("p", [])])]);
        check(element("ul", [" \n".into(), item]), &[]);
        check(element("div", [drawing, element("my-map", [element("li", [])])]), &[]);
        check(element("a", [element("div", ["x".into()])]), &[]);
        check(element("li", []), &[]);
        check(element("script", [raw("x").into()]), &[]);
    }

    #[test]
    fn reports_misplaced_elements_like_the_compiler() {
        check(
            element("p", [element("div", [])]),
            &["`<div>` is not allowed in `<p>`: it takes phrasing content"],
        );
        check(
            element("p", [element("a", [element("div", [])])]),
            &["`<div>` is not allowed in `<a>`: it takes phrasing content"],
        );
        check(
            element("p", [element("li", [])]),
            &[
                "`<li>` is not allowed in `<p>`: `<li>` belongs in `<menu>`, `<ol>`, `<template>`, `<ul>`",
            ],
        );
        check(
            element("a", [element("b", [element("a", [])])]),
            &["`<a>` is not allowed inside `<a>`"],
        );
        check(
            element("ul", ["x".into()]),
            &["no text is allowed in `<ul>`: it takes script-supporting content and `<li>`"],
        );
        let caption = || element("caption", []);
        check(
            element("table", [caption(), caption()]),
            &["`<caption>` belongs in `<table>` only once"],
        );
        check(element("img", []), &["`<img>` needs `alt`", "`<img>` needs `src`"]);
        check(element("hr", ["x".into()]), &["`<hr>` is void: its children are not written"]);
        check(element("script", ["x".into()]), &["`<script>` accepts only raw text"]);
        check(element("dvi", []), &["HTML has no element `<dvi>`; did you mean `<div>`?"]);
    }

    #[test]
    fn finding_has_the_source_location_of_its_element() {
        let (wrong, line) = (Element::new("li").unwrap(), line!());
        let found = Tree::from(element("p", [wrong.into()])).findings();
        assert!(found[0].to_string().starts_with(&format!("{}:{line}: `<li>` is not", file!())));
    }
}
