//! Decides whether markup is what HTML knows: names, values, what may stand where (HTML 3.2.5 and chapter 4).
//!
//! A mistake is told on the token it is in, with the name that was perhaps meant and with what would be right there. What
//! a page's roots will stand in is not known here, so they may be anything. A name in quotes is not looked up, and
//! neither is one with a colon.

use std::fmt::Display;

use bine_vocabulary::{self as vocabulary, Categories, Content, Foreign, Kind, Words, nearest};

use crate::css;
use crate::fault::Fault;
use crate::place::{self, Hole, Place, categories_of, foreign_root};
use crate::token::Token;
use crate::tree::{Attribute, Branch, Element, Node, Value};

/// Notes what is wrong with `nodes`.
pub(crate) fn check(nodes: &[Node], faults: &mut Vec<Fault>) {
    let mut checker = Checker { faults, ids: Vec::new(), loops: 0 };
    checker.nodes(nodes, &Place::root(place::Kind::Whole), &mut Vec::new());
}

struct Checker<'f> {
    faults: &'f mut Vec<Fault>,
    /// Ids that the page has in any case.
    ids: Vec<String>,
    /// Loops around what is looked at.
    loops: usize,
}

impl Checker<'_> {
    /// `once` are the elements that were seen and may be there but once.
    fn nodes(&mut self, nodes: &[Node], place: &Place<'_>, once: &mut Vec<&'static str>) {
        for node in nodes {
            match node {
                Node::Doctype | Node::RawText(_) | Node::RawHole(_) => {}
                Node::Hole(expression) => self.hole(expression, place),
                Node::Text(text, origin) => self.text(text, *origin, place),
                Node::Element(element) => self.element(element, place, once),
                Node::For { body, .. } => {
                    self.loops += 1;
                    self.nodes(body, place, once);
                    self.loops -= 1;
                }
                Node::If { branches, otherwise } => {
                    self.branches(branches, place, once);
                    self.branch(otherwise, place, once);
                }
                Node::Match { arms, .. } => self.branches(arms, place, once),
            }
        }
    }

    fn branches(&mut self, branches: &[Branch], place: &Place<'_>, once: &[&'static str]) {
        for branch in branches {
            self.branch(&branch.body, place, once);
        }
    }

    /// One of several ways: what the others have does not count.
    fn branch(&mut self, body: &[Node], place: &Place<'_>, once: &[&'static str]) {
        let ids = self.ids.clone();
        self.nodes(body, place, &mut once.to_vec());
        self.ids = ids;
    }

    fn text(&mut self, text: &str, origin: usize, place: &Place<'_>) {
        if !place.content.text
            && place.foreign.is_none()
            && !text.trim().is_empty()
            && let Some(parent) = place.parent
        {
            let takes = takes(&place.content);
            self.fault(
                origin,
                format!("no text may stand in `<{}>`: it takes {takes}", parent.name),
            );
        }
    }

    /// What a hole takes is for the compiler to see, but for the place that takes nothing.
    fn hole(&mut self, expression: &[Token], place: &Place<'_>) {
        if let (Some(parent), Some(first), Hole::Nothing) =
            (place.parent, expression.first(), place.hole())
        {
            self.fault(first.origin, format!("nothing may stand in `<{}>`", parent.name));
        }
    }

    fn element(&mut self, element: &Element, place: &Place<'_>, once: &mut Vec<&'static str>) {
        if let Some(foreign) = place.foreign {
            return self.foreign(element, foreign, place);
        }
        let inside = place.inside(element);
        if let Some(foreign) = foreign_root(element) {
            self.attributes_of_foreign(element, foreign);
            if let Some(known) = vocabulary::element(&element.name) {
                self.placed(element, known, place, once);
            }
            return self.nodes(&element.children, &inside, &mut Vec::new());
        }
        let Some(known) = vocabulary::element(&element.name) else {
            self.unknown_element(element);
            return self.nodes(&element.children, &inside, &mut Vec::new());
        };
        if let Some(instead) = known.deprecated {
            self.fault(
                element.origin,
                format!("`<{}>` is no longer part of HTML: {instead}", known.name),
            );
        }
        for attribute in &element.attributes {
            self.attribute(attribute, known);
        }
        self.required(element, known);
        self.placed(element, known, place, once);
        self.nodes(&element.children, &inside, &mut Vec::new());
    }

    fn unknown_element(&mut self, element: &Element) {
        let name = &element.name;
        if vocabulary::is_custom(name) || name.contains(':') {
            return;
        }
        if let Some(known) = vocabulary::element(&name.to_ascii_lowercase()) {
            let message = format!("`<{name}>` is written in small letters: `<{}>`", known.name);
            return self.fault(element.origin, message);
        }
        let current = vocabulary::elements().iter().filter(|known| known.deprecated.is_none());
        let meant =
            did_you_mean(name, current.map(|known| known.name), |name| format!("`<{name}>`"));
        self.fault(
            element.origin,
            format!(
                "HTML has no element `<{name}>`{meant}; one of your own has a dash in its name"
            ),
        );
    }

    /// Whether the element may stand where it does.
    fn placed(
        &mut self,
        element: &Element,
        known: &'static vocabulary::Element,
        place: &Place<'_>,
        once: &mut Vec<&'static str>,
    ) {
        let name = known.name;
        let categories = categories_of(element, known);
        if let Some(parent) = place.parent {
            let stands = if known.parents.is_empty() {
                place.content.admits(known, categories)
            } else {
                known.parents.contains(parent.name)
            };
            if !stands {
                let why = if known.parents.is_empty() {
                    format!("it takes {}", takes(&place.content))
                } else {
                    format!("`<{name}>` stands in {}", tags(known.parents))
                };
                return self.fault(
                    element.origin,
                    format!("`<{name}>` may not stand in `<{}>`: {why}", parent.name),
                );
            }
            if place.content.once.contains(name) {
                if once.contains(&name) || self.loops > 0 {
                    self.fault(
                        element.origin,
                        format!("`<{name}>` stands in `<{}>` but once", parent.name),
                    );
                }
                once.push(name);
            }
        }
        let excluding = place.around().find(|outer| {
            outer.excluded.elements.contains(name) || outer.excluded.categories.meets(categories)
        });
        if let Some(outer) = excluding {
            let what = if outer.excluded.elements.contains(name) {
                String::new()
            } else {
                format!(
                    ", which takes nothing that is {}",
                    outer.excluded.categories.and(categories)
                )
            };
            return self.fault(
                element.origin,
                format!("`<{name}>` may not stand within `<{}>`{what}", outer.name),
            );
        }
        let is_within = place.around().any(|outer| known.within.contains(outer.name));
        if !known.within.is_empty() && !is_within && place.is_complete() {
            self.fault(element.origin, format!("`<{name}>` stands within {}", tags(known.within)));
        }
    }

    fn required(&mut self, element: &Element, known: &vocabulary::Element) {
        for wanted in known.required {
            let is_there = |name: &str| {
                element.attributes.iter().any(|attribute| attribute.name.eq_ignore_ascii_case(name))
            };
            if let Some((wanted, given)) = wanted.split_once('?') {
                match (is_there(wanted), is_there(given)) {
                    (false, true) => self.fault(
                        element.origin,
                        format!("`<{}>` with `{given}` needs `{wanted}`", known.name),
                    ),
                    (true, false) => self.fault(
                        element.origin,
                        format!("`<{}>` has `{wanted}` only beside `{given}`", known.name),
                    ),
                    _ => {}
                }
                continue;
            }
            if wanted.split('|').any(is_there) {
                continue;
            }
            let wanted = wanted.replace('|', "` or `");
            let hint = match (known.name, &*wanted) {
                ("img", "alt") => {
                    ", what the picture says to whoever cannot see it; `alt=\"\"` if it says nothing"
                }
                _ => "",
            };
            self.fault(element.origin, format!("`<{}>` needs `{wanted}`{hint}", known.name));
        }
    }

    fn attribute(&mut self, attribute: &Attribute, element: &vocabulary::Element) {
        let name = &attribute.name;
        if attribute.is_quoted || name.contains(':') {
            return;
        }
        let Some(known) = element.attribute(name) else {
            if let Some(known) = element.attribute(&name.to_ascii_lowercase()) {
                let message = format!("`{name}` is written in small letters: `{}`", known.name);
                return self.fault(attribute.origin, message);
            }
            let meant = did_you_mean(name, element.attribute_names(), |name| format!("`{name}`"));
            return self.fault(
                attribute.origin,
                format!(
                    "`<{}>` has no attribute `{name}`{meant}; one of your own is `data-{name}`, and one in quotes is not looked up",
                    element.name
                ),
            );
        };
        if let Some(instead) = known.deprecated {
            let message = format!("`{name}` is no longer part of HTML: {instead}");
            return self.fault(attribute.origin, message);
        }
        self.value(attribute, known.kind);
        match known.name {
            "id" => self.id(attribute),
            "style" => self.style(attribute),
            _ => {}
        }
    }

    fn value(&mut self, attribute: &Attribute, kind: Kind) {
        let name = &attribute.name;
        match &attribute.value {
            Value::Hole(_) => {}
            Value::Bare if kind.may_be_bare() || kind.accepts("") => {}
            Value::Bare => {
                self.fault(attribute.origin, format!("`{name}` needs a value: {kind}"));
            }
            Value::Text(_) if kind == Kind::Boolean => self.fault(
                attribute.value_origin,
                format!("`{name}` has no value: being there says it. Write `{name}`, or `{name}={{condition}}`"),
            ),
            Value::Text(text) if kind.accepts(text) => {}
            Value::Text(text) => {
                let among = if kind == Kind::Roles {
                    nearest(text, vocabulary::roles().iter().map(|role| role.name))
                } else {
                    nearest(text, kind.words())
                };
                let meant = among.map_or_else(String::new, |word| format!("; did you mean `{word}`?"));
                let message = format!("`{name}` takes {kind}, not `{text}`{meant}");
                self.fault(attribute.value_origin, message);
            }
        }
    }

    fn id(&mut self, attribute: &Attribute) {
        let Value::Text(id) = &attribute.value else { return };
        if self.loops > 0 {
            self.fault(
                attribute.value_origin,
                format!("each turn of the loop would have the id `{id}`"),
            );
        } else if self.ids.contains(id) {
            self.fault(
                attribute.value_origin,
                format!("the id `{id}` is on another element already"),
            );
        } else {
            self.ids.push(id.clone());
        }
    }

    fn style(&mut self, attribute: &Attribute) {
        if let Value::Text(style) = &attribute.value {
            css::attribute(style, attribute.value_origin, self.faults);
        }
    }

    /// An element of SVG or MathML: names alone are looked at.
    fn foreign(&mut self, element: &Element, foreign: &'static Foreign, place: &Place<'_>) {
        let name = &element.name;
        if !foreign.has_element(name) && !name.contains(':') {
            let names = foreign.elements.iter().copied();
            let meant = did_you_mean(name, names, |name| format!("`<{name}>`"));
            self.fault(
                element.origin,
                format!("`<{}>` has no element `<{name}>`{meant}", foreign.root),
            );
        }
        self.attributes_of_foreign(element, foreign);
        self.nodes(&element.children, &place.inside(element), &mut Vec::new());
    }

    fn attributes_of_foreign(&mut self, element: &Element, foreign: &'static Foreign) {
        for attribute in &element.attributes {
            let name = &attribute.name;
            if attribute.is_quoted || name.contains(':') || foreign.has_attribute(name) {
                continue;
            }
            let meant =
                did_you_mean(name, foreign.attributes.iter().copied(), |name| format!("`{name}`"));
            self.fault(
                attribute.origin,
                format!("no element of `<{}>` has the attribute `{name}`{meant}", foreign.root),
            );
        }
        for attribute in &element.attributes {
            match &*attribute.name {
                "id" => self.id(attribute),
                "style" => self.style(attribute),
                _ => {}
            }
        }
    }

    fn fault(&mut self, origin: usize, message: String) {
        self.faults.push(Fault::at(origin, message));
    }
}

fn did_you_mean(
    name: &str,
    among: impl Iterator<Item = &'static str>,
    shown: impl Fn(&str) -> String,
) -> String {
    nearest(name, among).map_or_else(String::new, |near| format!("; did you mean {}?", shown(near)))
}

/// What may stand in an element, for a message.
fn takes(content: &Content) -> String {
    let mut words = Vec::new();
    if content.categories != Categories::NONE {
        words.push(format!("{} content", content.categories));
    }
    if !content.elements.is_empty() {
        words.push(tags(content.elements).to_string());
    }
    if content.text && content.categories == Categories::NONE {
        words.push("text".to_owned());
    }
    if words.is_empty() { "nothing".to_owned() } else { words.join(" and ") }
}

fn tags(words: Words) -> impl Display {
    let tags: Vec<String> = words.iter().map(|word| format!("`<{word}>`")).collect();
    tags.join(", ")
}

#[cfg(test)]
mod tests;
