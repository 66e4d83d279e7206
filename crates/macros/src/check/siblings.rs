//! Decides what children must be to each other: their order, their number, and which may not be missing.

use bine_vocabulary::{self as vocabulary, Categories};

use super::Checker;
use crate::place::categories_of;
use crate::tree::{Element, Node};

/// What was seen among the children of an element so far.
#[derive(Clone, Default)]
pub(super) struct Siblings {
    names: Vec<&'static str>,
    /// How far in the parent's order they are.
    rank: usize,
    group: Group,
    /// Loops around them within the parent: each child may be there more than once.
    pub(super) loops: usize,
}

/// How far the groups of a `dl` are.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Group {
    #[default]
    Start,
    /// In `div`s.
    Divided,
    /// After a `dt`, and which token that is.
    Term(usize),
    /// After a `dd`.
    Description,
    /// After what only the running program knows.
    Unknown,
}

/// A `source` among children.
fn source(child: &Node) -> Option<&Element> {
    match child {
        Node::Element(element) if element.name == "source" => Some(element),
        _ => None,
    }
}

impl Siblings {
    /// Whether a child of that name was seen, or will be in the next turn of a loop.
    pub(super) fn has(&self, name: &str) -> bool {
        self.loops > 0 || self.names.contains(&name)
    }

    /// Says that what comes next is not known.
    pub(super) fn forget_group(&mut self) {
        self.group = Group::Unknown;
    }
}

impl Checker<'_> {
    /// Whether a child comes in its turn: an element of HTML, or what else `name` does not tell.
    pub(super) fn ordered(
        &mut self,
        name: Option<&'static str>,
        origin: usize,
        parent: &'static vocabulary::Element,
        siblings: &mut Siblings,
    ) {
        siblings.names.extend(name);
        self.grouped(name, origin, parent, siblings);
        let is_named = name.is_some_and(|name| parent.order.contains(name));
        let stands_for_it = |word: &str| if is_named { Some(word) == name } else { word == "*" };
        if !parent.order.iter().any(stands_for_it) {
            return;
        }
        let mut from_here = parent.order.iter().enumerate().skip(siblings.rank);
        if let Some((rank, _)) = from_here.find(|(_, word)| stands_for_it(word)) {
            siblings.rank = rank;
            return;
        }
        let what = name.map_or_else(|| "this".to_owned(), |name| format!("`<{name}>`"));
        let order: Vec<String> = parent
            .order
            .iter()
            .map(|word| if word == "*" { "the rest".to_owned() } else { format!("`<{word}>`") })
            .collect();
        self.fault(
            origin,
            format!(
                "{what} comes too late in `<{}>`: first {}",
                parent.name,
                order.join(", then ")
            ),
        );
    }

    /// Whether a list of terms has each with its description (HTML 4.4.9).
    fn grouped(
        &mut self,
        name: Option<&'static str>,
        origin: usize,
        parent: &'static vocabulary::Element,
        siblings: &mut Siblings,
    ) {
        let (before, list) = (siblings.group, parent.name);
        if !["dl", "div"].contains(&list) {
            return;
        }
        siblings.group = match name {
            Some("dt") => Group::Term(origin),
            Some("dd") => Group::Description,
            Some("div") if list == "dl" => Group::Divided,
            _ => return,
        };
        let is_divided = |group| group == Group::Divided;
        let wrong = match (before, siblings.group) {
            (Group::Start, Group::Description) => {
                "`<dd>` describes a `<dt>` before it, and there is none"
            }
            (Group::Unknown | Group::Start, _) => return,
            (before, now) if is_divided(before) != is_divided(now) => {
                "`<dl>` has its groups in `<div>`s, or has no `<div>`"
            }
            (Group::Description, Group::Term(_)) if list == "div" => {
                "a `<div>` in `<dl>` is one group: `<dt>`, then `<dd>`"
            }
            _ => return,
        };
        self.fault(origin, wrong.into());
    }

    /// Whether everything is there that has to be, and once, as far as that is known.
    pub(super) fn complete(
        &mut self,
        element: &Element,
        known: &'static vocabulary::Element,
        siblings: &Siblings,
    ) {
        if let Group::Term(origin) = siblings.group {
            self.fault(
                origin,
                "`<dt>` is described by a `<dd>` after it, and there is none".into(),
            );
        }
        // A file of its own leaves no choice among several (HTML 4.8.8, 4.8.9).
        if known.content.elements.contains("source") && element.attribute("src").is_some() {
            for child in element.children.iter().filter_map(source) {
                let name = known.name;
                self.fault(child.origin, format!("`<source>` is for a `<{name}>` without `src`"));
            }
        }
        let is_known = |node: &Node| matches!(node, Node::Element(_) | Node::Text(..));
        let is_all_known = element.children.iter().all(is_known);
        for wanted in known.needs {
            let is_wanted = |name: &&&str| wanted.split('|').any(|one| one == **name);
            let what = match siblings.names.iter().filter(is_wanted).count() {
                0 if is_all_known => "needs a",
                0 | 1 => continue,
                _ => "has but one",
            };
            let wanted = wanted.replace('|', ">` or `<");
            self.fault(element.origin, format!("`<{}>` {what} `<{wanted}>`", known.name));
        }
    }

    /// Whether the element is the only one of its sort in the page, or in the `label` around it.
    pub(super) fn single(&mut self, element: &Element, known: &'static vocabulary::Element) {
        if known.name == "main" && element.attribute("hidden").is_none() {
            if self.seen.main {
                let message = "a page has one `<main>`; any other is `hidden`";
                self.fault(element.origin, message.into());
            }
            self.seen.main = true;
        }
        let is_control = categories_of(element, known).intersects(Categories::LABELABLE);
        if let Some(controls) = &mut self.controls
            && is_control
        {
            *controls += 1;
            if *controls > 1 {
                let name = known.name;
                let message =
                    format!("a `<label>` is for one control, and this `<{name}>` is another");
                self.fault(element.origin, message);
            }
        }
    }
}
