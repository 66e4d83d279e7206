//! Rules among siblings: order, number, and required children.

use bine_vocabulary::{self as vocabulary, Categories};

use super::Checker;
use crate::place::categories_of;
use crate::tree::{Element, Node};

/// The children of an element seen so far.
#[derive(Clone, Default)]
pub(super) struct Siblings {
    names: Vec<&'static str>,
    /// The position reached in the parent's order.
    rank: usize,
    group: SiblingGroup,
    /// The number of loops between the parent and the children. A child in a loop may repeat.
    pub(super) loops: usize,
}

/// The state of the groups in a `dl`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum SiblingGroup {
    #[default]
    Start,
    /// The groups are in `div`s.
    Divided,
    /// After the `dt` of this token.
    Term(usize),
    /// After a `dd`.
    Description,
    /// After content that is known only at run time.
    Unknown,
}

/// The child as a `source` element.
fn source<C>(child: &Node<C>) -> Option<&Element<C>> {
    match child {
        Node::Element(element) if element.name == "source" => Some(element),
        _ => None,
    }
}

impl Siblings {
    /// Whether a child of that name was seen, or repeats in a loop.
    pub(super) fn has(&self, name: &str) -> bool {
        self.loops > 0 || self.names.contains(&name)
    }

    /// Marks the state of the groups as unknown.
    pub(super) fn forget_group(&mut self) {
        self.group = SiblingGroup::Unknown;
    }
}

impl Checker<'_> {
    /// Checks the order of a child: an HTML element, or other content without a `name`.
    pub(super) fn check_order(
        &mut self,
        name: Option<&'static str>,
        origin: usize,
        parent: &'static vocabulary::Element,
        siblings: &mut Siblings,
    ) {
        siblings.names.extend(name);
        self.check_groups(name, origin, parent, siblings);
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
                "{what} is out of order in `<{}>`: the order is {}",
                parent.name,
                order.join(", then ")
            ),
        );
    }

    /// Checks that each term in a list has a description (HTML 4.4.9).
    fn check_groups(
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
            Some("dt") => SiblingGroup::Term(origin),
            Some("dd") => SiblingGroup::Description,
            Some("div") if list == "dl" => SiblingGroup::Divided,
            _ => return,
        };
        let is_divided = |group| group == SiblingGroup::Divided;
        let wrong = match (before, siblings.group) {
            (SiblingGroup::Start, SiblingGroup::Description) => "`<dd>` needs a `<dt>` before it",
            (SiblingGroup::Unknown | SiblingGroup::Start, _) => return,
            (before, now) if is_divided(before) != is_divided(now) => {
                "in `<dl>`, put either every group in a `<div>` or no group"
            }
            (SiblingGroup::Description, SiblingGroup::Term(_)) if list == "div" => {
                "a `<div>` in `<dl>` is one group: `<dt>`, then `<dd>`"
            }
            _ => return,
        };
        self.fault(origin, wrong.into());
    }

    /// Checks that all required children are present, and only once, as far as known.
    pub(super) fn check_required<C>(
        &mut self,
        element: &Element<C>,
        known: &'static vocabulary::Element,
        siblings: &Siblings,
    ) {
        if let SiblingGroup::Term(origin) = siblings.group {
            self.fault(origin, "`<dt>` needs a `<dd>` after it".into());
        }
        // An element with its own file cannot choose among sources (HTML 4.8.8, 4.8.9).
        if known.content.elements.contains("source") && element.attribute("src").is_some() {
            for child in element.children.iter().filter_map(source) {
                let name = known.name;
                self.fault(child.origin, format!("`<source>` is for a `<{name}>` without `src`"));
            }
        }
        let is_known =
            |node: &Node<C>| matches!(node, Node::Element(_) | Node::Text(..) | Node::Let(_));
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

    /// Checks that the element is unique in the page, or in the enclosing `label`.
    pub(super) fn check_uniqueness<C>(
        &mut self,
        element: &Element<C>,
        known: &'static vocabulary::Element,
    ) {
        if known.name == "main" && element.attribute("hidden").is_none() {
            if self.seen.main {
                let message = "a page has one `<main>`; others must be `hidden`";
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
                    format!("a `<label>` labels only one control, and this `<{name}>` is another");
                self.fault(element.origin, message);
            }
        }
    }
}
