//! Validation of markup against the HTML standard: names, values and nesting (HTML 3.2.5 and
//! chapter 4).
//!
//! An error points at the wrong token and suggests a similar name or the allowed content. The
//! parent of a page's roots is unknown here, so any root is allowed. Quoted names and names with a
//! colon are not checked.

use std::fmt::Display;

use bine_vocabulary::{self as vocabulary, Categories, Content, Foreign, Kind, Words, nearest};

use crate::css;
use crate::fault::Fault;
use crate::place::{self, Hole, Place, categories_of, foreign_root};
use crate::tree::{Attribute, Branch, Element, Node, Value};

mod attributes;
mod siblings;

use siblings::Siblings;

/// The words of a message that depend on the language around the markup.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// Names the form of an attribute that is not looked up in the standard.
    pub unchecked_attribute: &'static str,
}

impl Dialect {
    /// The macros of Rust.
    pub const RUST: Self = Self { unchecked_attribute: "a quoted name" };
    /// Modules of TSX.
    pub const TSX: Self = Self { unchecked_attribute: "a name in a spread, `{...}`," };
}

/// Reports the errors in `nodes`.
pub fn check<C>(nodes: &[Node<C>], dialect: Dialect, faults: &mut Vec<Fault>) {
    let mut checker =
        Checker { dialect, faults, seen: UniqueItems::default(), loops: 0, controls: None };
    checker.nodes(nodes, &Place::root(place::ContentKind::Whole), &mut Siblings::default());
}

struct Checker<'f> {
    dialect: Dialect,
    faults: &'f mut Vec<Fault>,
    seen: UniqueItems,
    /// The number of enclosing loops.
    loops: usize,
    /// The number of controls so far in the enclosing `label`, if there is one.
    controls: Option<usize>,
}

/// Items that must be unique in a page and that every rendering contains.
#[derive(Clone, Default)]
struct UniqueItems {
    ids: Vec<String>,
    main: bool,
}

impl Checker<'_> {
    fn nodes<C>(&mut self, nodes: &[Node<C>], place: &Place<'_>, siblings: &mut Siblings) {
        for node in nodes {
            match node {
                Node::Doctype | Node::RawText(_) | Node::RawHole(_) | Node::Let(_) => {}
                Node::Hole(_, origin) => {
                    self.hole(*origin, place);
                    siblings.forget_group();
                }
                Node::Text(text, origin) => self.text(text, *origin, place, siblings),
                Node::Element(element) => self.element(element, place, siblings),
                Node::Live(region) => self.region(region, place, siblings),
                Node::For { body, .. } => {
                    siblings.forget_group();
                    self.loop_body(body, place, siblings);
                    siblings.forget_group();
                }
                Node::If { branches, otherwise } => {
                    siblings.forget_group();
                    self.branches(branches, place, siblings);
                    self.branch(otherwise, place, siblings);
                }
                Node::Match { arms, .. } => {
                    siblings.forget_group();
                    self.branches(arms, place, siblings);
                }
            }
        }
    }

    /// Checks the body of a loop.
    fn loop_body<C>(&mut self, body: &[Node<C>], place: &Place<'_>, siblings: &mut Siblings) {
        self.loops += 1;
        siblings.loops += 1;
        self.nodes(body, place, siblings);
        siblings.loops -= 1;
        self.loops -= 1;
    }

    fn branches<C>(&mut self, branches: &[Branch<C>], place: &Place<'_>, siblings: &Siblings) {
        for branch in branches {
            self.branch(&branch.body, place, siblings);
        }
    }

    /// Checks one branch. The other branches do not affect it.
    fn branch<C>(&mut self, body: &[Node<C>], place: &Place<'_>, siblings: &Siblings) {
        let (seen, controls) = (self.seen.clone(), self.controls);
        self.nodes(body, place, &mut siblings.clone());
        (self.seen, self.controls) = (seen, controls);
    }

    fn text(&mut self, text: &str, origin: usize, place: &Place<'_>, siblings: &mut Siblings) {
        if place.foreign.is_some() || text.trim().is_empty() {
            return;
        }
        let Some(parent) = place.parent else { return };
        if place.content.text {
            self.check_order(None, origin, parent, siblings);
        } else {
            let takes = takes(&place.content);
            self.fault(
                origin,
                format!("no text is allowed in `<{}>`: it takes {takes}", parent.name),
            );
        }
    }

    /// Reports a hole where no content is allowed. Otherwise the compiler checks the hole's type.
    fn hole(&mut self, origin: usize, place: &Place<'_>) {
        if let (Some(parent), Hole::Nothing) = (place.parent, place.hole()) {
            self.fault(origin, format!("nothing is allowed in `<{}>`", parent.name));
        }
    }

    fn element<C>(&mut self, element: &Element<C>, place: &Place<'_>, siblings: &mut Siblings) {
        if let Some(foreign) = place.foreign {
            return self.foreign(element, foreign, place);
        }
        let inside = place.inside(element);
        let Some(known) = vocabulary::element(&element.name) else {
            self.unknown_element(element, place, siblings);
            return self.nodes(&element.children, &inside, &mut Siblings::default());
        };
        if let Some(foreign) = foreign_root(element) {
            self.attributes_of_foreign(element, foreign);
            self.check_place(element, known, place, siblings);
            return self.nodes(&element.children, &inside, &mut Siblings::default());
        }
        if let Some(instead) = known.deprecated {
            self.fault(
                element.origin,
                format!("`<{}>` is no longer part of HTML: {instead}", known.name),
            );
        }
        for attribute in &element.attributes {
            self.attribute(attribute, known);
        }
        self.check_type_specific(element, known);
        self.check_rules(element, known, place);
        self.check_uniqueness(element, known);
        if self.check_place(element, known, place, siblings) || !known.content.transparent {
            self.children(element, known, &inside);
        } else {
            // The element's own place was reported; its content must not be reported for the same
            // reason.
            self.children(element, known, &place.misplaced());
        }
    }

    /// Checks a region. It has no element, so its content is nested directly in its parent.
    fn region<C>(&mut self, region: &Element<C>, place: &Place<'_>, siblings: &mut Siblings) {
        if let Some(attribute) = region.attributes.first() {
            let message = "`<Live>` is not an element and has no attributes: put them on an element inside or around it";
            self.fault(attribute.origin, message.into());
        }
        if let (Some(parent), Hole::Text | Hole::Nothing) = (place.parent, place.hole()) {
            let message = format!(
                "`<Live>` is not allowed in `<{}>`, which cannot contain marks: put it around that element",
                parent.name
            );
            self.fault(region.origin, message);
        }
        let is_whole = |node: &Node<C>| match node {
            Node::Doctype => true,
            Node::Element(element) => ["html", "head", "body"].contains(&&*element.name),
            _ => false,
        };
        if region.children.iter().any(is_whole) {
            let message = "`<Live>` belongs inside `<body>` or `<head>`: a browser cannot replace these elements";
            self.fault(region.origin, message.into());
        }
        siblings.forget_group();
        self.nodes(&region.children, place, siblings);
        siblings.forget_group();
    }

    /// Checks the children of an element, including required children.
    fn children<C>(
        &mut self,
        element: &Element<C>,
        known: &'static vocabulary::Element,
        inside: &Place<'_>,
    ) {
        let controls = self.controls;
        if known.name == "label" {
            self.controls = Some(0);
        }
        let mut siblings = Siblings::default();
        self.nodes(&element.children, inside, &mut siblings);
        self.controls = controls;
        self.check_required(element, known, &siblings);
    }

    fn unknown_element<C>(
        &mut self,
        element: &Element<C>,
        place: &Place<'_>,
        siblings: &mut Siblings,
    ) {
        let name = &element.name;
        let is_custom = vocabulary::is_custom(name);
        if let Some(parent) = place.parent {
            if is_custom && !place.content.categories.intersects(CUSTOM) {
                let takes = takes(&place.content);
                return self.fault(
                    element.origin,
                    format!("`<{name}>` is not allowed in `<{}>`: it takes {takes}", parent.name),
                );
            }
            self.check_order(None, element.origin, parent, siblings);
        }
        if is_custom || name.contains(':') {
            return;
        }
        if let Some(known) = vocabulary::element(&name.to_ascii_lowercase()) {
            let message = format!("`<{name}>` must be lowercase: `<{}>`", known.name);
            return self.fault(element.origin, message);
        }
        let current = vocabulary::elements().iter().filter(|known| known.deprecated.is_none());
        let meant =
            did_you_mean(name, current.map(|known| known.name), |name| format!("`<{name}>`"));
        self.fault(
            element.origin,
            format!(
                "HTML has no element `<{name}>`{meant}; a custom element has a dash in its name"
            ),
        );
    }

    /// Whether the element's parent allows it. Reports an element in the wrong place.
    fn check_place<C>(
        &mut self,
        element: &Element<C>,
        known: &'static vocabulary::Element,
        place: &Place<'_>,
        siblings: &mut Siblings,
    ) -> bool {
        let name = known.name;
        let categories = categories_of(element, known);
        if let Some(parent) = place.parent {
            let stands = if known.parents.is_empty() {
                place.content.allows(known, categories)
            } else {
                known.parents.contains(parent.name) && place.content.allows(known, categories)
            };
            if !stands {
                let is_somewhere_else = known.parents.contains(parent.name);
                let (this, why) = if known.parents.is_empty() || is_somewhere_else {
                    let this = if is_somewhere_else { "this " } else { "" };
                    (this, format!("it takes {}", takes(&place.content)))
                } else {
                    ("", format!("`<{name}>` belongs in {}", tags(known.parents)))
                };
                self.fault(
                    element.origin,
                    format!("`<{name}>` is not allowed in {this}`<{}>`: {why}", parent.name),
                );
                return false;
            }
            if place.content.once.contains(name) && siblings.has(name) {
                self.fault(
                    element.origin,
                    format!("`<{name}>` belongs in `<{}>` only once", parent.name),
                );
                return true;
            }
            self.check_order(Some(name), element.origin, parent, siblings);
        }
        self.within(element, known, categories, place);
        true
    }

    /// Checks the element against all its ancestors.
    fn within<C>(
        &mut self,
        element: &Element<C>,
        known: &'static vocabulary::Element,
        categories: Categories,
        place: &Place<'_>,
    ) {
        let name = known.name;
        if let Some(outer) = place.ancestors().find(|outer| !known.allows_ancestor(outer.name)) {
            return self.fault(
                element.origin,
                format!(
                    "`<{name}>` is not allowed inside `<{}>`: its ancestors may only be {}",
                    outer.name,
                    tags(known.around)
                ),
            );
        }
        // Elements in the tab order count as interactive (HTML 4.5.1, 4.10.6).
        let (acts, by) = match element.attribute("tabindex") {
            Some(_) if !categories.intersects(Categories::INTERACTIVE) => {
                (categories.or(Categories::INTERACTIVE), " with `tabindex`")
            }
            _ => (categories, ""),
        };
        let excluding = place.ancestors().find(|outer| outer.excluded.contains(known, acts));
        if let Some(outer) = excluding {
            let (by, what) = if outer.excluded.elements.contains(name) {
                ("", String::new())
            } else {
                let excluded = outer.excluded.categories.and(acts);
                (by, format!(", which allows no content that is {excluded}"))
            };
            return self.fault(
                element.origin,
                format!("`<{name}>`{by} is not allowed inside `<{}>`{what}", outer.name),
            );
        }
        let is_within = place.ancestors().any(|outer| known.within.contains(outer.name));
        if !known.within.is_empty() && !is_within && place.is_complete() {
            self.fault(element.origin, format!("`<{name}>` belongs inside {}", tags(known.within)));
        }
    }

    fn attribute<C>(&mut self, attribute: &Attribute<C>, element: &vocabulary::Element) {
        let name = &attribute.name;
        if attribute.is_quoted || name.contains(':') {
            return;
        }
        let Some(known) = element.attribute(name) else {
            if let Some(known) = element.attribute(&name.to_ascii_lowercase()) {
                let message = format!("`{name}` must be lowercase: `{}`", known.name);
                return self.fault(attribute.origin, message);
            }
            let meant = did_you_mean(name, element.attribute_names(), |name| format!("`{name}`"));
            return self.fault(
                attribute.origin,
                format!(
                    "`<{}>` has no attribute `{name}`{meant}; a custom attribute is `data-{name}`, and {} is not checked",
                    element.name, self.dialect.unchecked_attribute
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

    fn value<C>(&mut self, attribute: &Attribute<C>, kind: Kind) {
        let name = &attribute.name;
        match &attribute.value {
            Value::Hole(_) => {}
            Value::Bare if kind.allows_no_value() || kind.accepts("") => {}
            Value::Bare => {
                self.fault(attribute.origin, format!("`{name}` needs a value: {kind}"));
            }
            Value::Text(_) if kind == Kind::Boolean => self.fault(
                attribute.value_origin,
                format!("`{name}` takes no value: write `{name}`, or `{name}={{condition}}`"),
            ),
            Value::Text(text) if kind.accepts(text) => {}
            Value::Text(text) => {
                let among = if kind == Kind::Roles {
                    nearest(text, vocabulary::roles().iter().map(|role| role.name))
                } else {
                    nearest(text, kind.words())
                };
                let meant =
                    among.map_or_else(String::new, |word| format!("; did you mean `{word}`?"));
                let message = format!("`{name}` takes {kind}, not `{text}`{meant}");
                self.fault(attribute.value_origin, message);
            }
        }
    }

    fn id<C>(&mut self, attribute: &Attribute<C>) {
        let Value::Text(id) = &attribute.value else { return };
        if self.loops > 0 {
            self.fault(
                attribute.value_origin,
                format!("each iteration of the loop would have the id `{id}`"),
            );
        } else if self.seen.ids.contains(id) {
            self.fault(
                attribute.value_origin,
                format!("the id `{id}` is already used by another element"),
            );
        } else {
            self.seen.ids.push(id.clone());
        }
    }

    fn style<C>(&mut self, attribute: &Attribute<C>) {
        if let Value::Text(style) = &attribute.value {
            css::attribute(style, attribute.value_origin, self.faults);
        }
    }

    /// Checks an element of SVG or MathML: only the names.
    fn foreign<C>(&mut self, element: &Element<C>, foreign: &'static Foreign, place: &Place<'_>) {
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
        self.nodes(&element.children, &place.inside(element), &mut Siblings::default());
    }

    fn attributes_of_foreign<C>(&mut self, element: &Element<C>, foreign: &'static Foreign) {
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
        self.faults.push(Fault { origin, message });
    }
}

/// The categories of custom elements (HTML 4.13.3).
const CUSTOM: Categories = Categories::FLOW.or(Categories::PHRASING);

fn did_you_mean(
    name: &str,
    among: impl Iterator<Item = &'static str>,
    shown: impl Fn(&str) -> String,
) -> String {
    nearest(name, among).map_or_else(String::new, |near| format!("; did you mean {}?", shown(near)))
}

/// The content that an element allows, for a message.
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
