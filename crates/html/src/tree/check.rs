//! Decides whether a tree is what HTML allows: which element may stand where (HTML 3.2.5), with the words that the
//! compiler has for it. Names and values of attributes are free, as those in quotes are in `tree!`.

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

/// So far up it is looked for what an element may not stand in: a parser gives up at 512 levels.
const FARTHEST: usize = 512;

/// What is wrong with an element of a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Where the program made the element: the `tree!`, or the call.
    pub made_at: &'static Location<'static>,
    /// What is wrong, in a sentence.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { made_at, what } = self;
        write!(to, "{}:{}: {what}", made_at.file(), made_at.line())
    }
}

/// Tells of all that is wrong with the nodes. What they will stand in is not known, so the outermost may be anything.
pub(super) fn check(nodes: &[Node], tell: &mut dyn FnMut(Finding)) {
    let content = Content::ANYTHING;
    let root = Level {
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
                let inside = judge(&mut levels, element, tell);
                levels.push(inside);
            }
            Node::Text(text) => judge_text(level, text, tell),
            _ => {}
        }
    }
}

struct Level<'t> {
    nodes: slice::Iter<'t, Node>,
    /// The element whose children they are.
    element: Option<&'t Element>,
    /// What HTML says of it; `None` for the roots, and in an element of one's own.
    known: Option<&'static vocabulary::Element>,
    content: Content,
    /// In SVG or MathML, of which nothing is looked at.
    is_foreign: bool,
    /// The children that were seen and may be there but once.
    once: Vec<&'static str>,
}

/// Judges an element where it is, and says what is to be known of its inside.
fn judge<'t>(
    levels: &mut [Level<'t>],
    element: &'t Element,
    tell: &mut dyn FnMut(Finding),
) -> Level<'t> {
    let inside = Level {
        nodes: element.children().iter(),
        element: Some(element),
        known: None,
        content: Content::ANYTHING,
        is_foreign: false,
        once: Vec::new(),
    };
    let name = element.name();
    let mut fault = |what| tell(Finding { made_at: element.made_at(), what });
    if levels.last().is_some_and(|place| place.is_foreign) {
        let comes_back = ["foreignObject", "annotation-xml", "desc", "title"].contains(&name);
        return Level { is_foreign: !comes_back, ..inside };
    }
    let is_foreign = [SVG.root, MATHML.root].contains(&name);
    let Some(known) = vocabulary::element(name) else {
        if !is_foreign && !vocabulary::is_custom(name) && !name.contains(':') {
            fault(unknown(name));
        }
        return Level { is_foreign, ..inside };
    };
    if let Some(instead) = known.deprecated {
        fault(format!("`<{name}>` is no longer part of HTML: {instead}"));
    }
    if known.void && !element.children().is_empty() {
        fault(format!("`<{name}>` is void: what is in it is not written"));
    }
    if is_raw_text(name) && element.children().iter().any(|node| !matches!(node, Node::Raw(_))) {
        fault(format!("only raw text is written in `<{name}>`"));
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
        // Of what is in them, all has been said.
        return Level { is_foreign: true, ..inside };
    }
    Level { known: Some(known), content: known.content.inherit_from(&outer.content), ..inside }
}

fn unknown(name: &str) -> String {
    let names = vocabulary::elements().iter().filter(|known| known.deprecated.is_none());
    let meant = nearest(name, names.map(|known| known.name));
    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean `<{meant}>`?"));
    format!("HTML has no element `<{name}>`{meant}")
}

/// Why an element may not stand where it does.
fn misplaced(
    levels: &[Level<'_>],
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
                "`<{name}>` may not stand in `<{parent_name}>`: it takes {takes}"
            ));
        }
        if !known.parents.is_empty() && !known.parents.contains(parent_name) {
            let parents = tags(known.parents);
            return Some(format!(
                "`<{name}>` may not stand in `<{parent_name}>`: `<{name}>` stands in {parents}"
            ));
        }
        if place.once.contains(&name) {
            return Some(format!("`<{name}>` stands in `<{parent_name}>` but once"));
        }
    }
    let around = || levels.iter().rev().take(FARTHEST).filter_map(|level| level.known);
    if let Some(outer) = around().find(|outer| outer.excluded.contains(known, categories)) {
        let kinds = outer.excluded.categories.and(categories);
        let why = if outer.excluded.elements.contains(name) {
            String::new()
        } else {
            format!(", which takes nothing that is {kinds}")
        };
        return Some(format!("`<{name}>` may not stand within `<{}>`{why}", outer.name));
    }
    let is_whole =
        levels.get(1).and_then(|level| level.known).is_some_and(|root| root.name == "html");
    let is_within =
        known.within.is_empty() || around().any(|outer| known.within.contains(outer.name));
    (is_whole && !is_within).then(|| format!("`<{name}>` stands within {}", tags(known.within)))
}

fn judge_text(place: &Level<'_>, text: &str, tell: &mut dyn FnMut(Finding)) {
    let (Some(element), Some(known)) = (place.element, place.known) else { return };
    if !place.content.text && !text.trim().is_empty() {
        let takes = takes(&place.content);
        let what = format!("no text may stand in `<{}>`: it takes {takes}", known.name);
        tell(Finding { made_at: element.made_at(), what });
    }
}

/// What may stand in an element, for a message.
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
        let told: Vec<&str> = found.iter().map(|finding| &*finding.what).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_right_is_not_complained_of() {
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
    fn what_may_not_stand_somewhere_is_told_in_the_words_of_the_compiler() {
        check(
            element("p", [element("div", [])]),
            &["`<div>` may not stand in `<p>`: it takes phrasing content"],
        );
        check(
            element("p", [element("a", [element("div", [])])]),
            &["`<div>` may not stand in `<a>`: it takes phrasing content"],
        );
        check(
            element("p", [element("li", [])]),
            &[
                "`<li>` may not stand in `<p>`: `<li>` stands in `<menu>`, `<ol>`, `<template>`, `<ul>`",
            ],
        );
        check(
            element("a", [element("b", [element("a", [])])]),
            &["`<a>` may not stand within `<a>`"],
        );
        check(
            element("ul", ["x".into()]),
            &["no text may stand in `<ul>`: it takes script-supporting content and `<li>`"],
        );
        let caption = || element("caption", []);
        check(
            element("table", [caption(), caption()]),
            &["`<caption>` stands in `<table>` but once"],
        );
        check(element("img", []), &["`<img>` needs `alt`", "`<img>` needs `src`"]);
        check(element("hr", ["x".into()]), &["`<hr>` is void: what is in it is not written"]);
        check(element("script", ["x".into()]), &["only raw text is written in `<script>`"]);
        check(element("dvi", []), &["HTML has no element `<dvi>`; did you mean `<div>`?"]);
    }

    #[test]
    fn a_finding_says_where_its_element_was_made() {
        let (wrong, line) = (Element::new("li").unwrap(), line!());
        let found = Tree::from(element("p", [wrong.into()])).findings();
        assert!(found[0].to_string().starts_with(&format!("{}:{line}: `<li>` may not", file!())));
    }
}
