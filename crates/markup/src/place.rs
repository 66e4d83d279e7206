//! Places of nodes: the allowed content, the type of holes, and the kind of markup (HTML 3.2.5).

use bine_vocabulary::{self as vocabulary, Categories, Content, Foreign, MATHML, SVG};

use crate::tree::{Branch, Element, Node, Value};

/// The place of an element's children.
#[derive(Clone, Copy)]
pub struct Place<'p> {
    /// `None` for the roots of a page and in custom elements.
    pub parent: Option<&'static vocabulary::Element>,
    /// The content that the parent allows.
    pub content: Content,
    /// The enclosing SVG or MathML language.
    pub foreign: Option<&'static Foreign>,
    outer: Option<&'p Place<'p>>,
    hole: Hole,
}

/// The content that a hole accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hole {
    /// Flow content.
    Flow,
    /// Phrasing content.
    Phrasing,
    /// Text without elements.
    Text,
    /// Elements that only this parent allows, and no text.
    Parts,
    /// The same if some of them are flow or phrasing content: `<div>` in `<dl>`, `<img>` in
    /// `<picture>`.
    Pieces,
    /// Any content.
    Anything,
    /// No content.
    Nothing,
}

impl Hole {
    /// The method that fills the hole.
    pub fn method(self) -> &'static str {
        match self {
            Self::Flow => "fill_flow",
            Self::Phrasing => "fill_phrasing",
            Self::Text => "fill_text",
            Self::Parts => "fill_parts",
            Self::Pieces => "fill_pieces",
            // `Nothing` has been reported before.
            Self::Anything | Self::Nothing => "fill_anything",
        }
    }
}

impl<'p> Place<'p> {
    /// The place of the roots of markup of a kind.
    pub const fn root(kind: ContentKind) -> Self {
        let hole = match kind {
            ContentKind::Flow => Hole::Flow,
            ContentKind::Phrasing => Hole::Phrasing,
            ContentKind::Parts => Hole::Parts,
            ContentKind::ScriptSupporting | ContentKind::Whole | ContentKind::Document => {
                Hole::Anything
            }
        };
        Place { parent: None, content: Content::ANYTHING, foreign: None, outer: None, hole }
    }

    /// The place of the children of `element`, which is itself in this place.
    #[must_use]
    pub fn inside<C>(&'p self, element: &Element<C>) -> Self {
        let unknown = self.misplaced();
        if let Some(foreign) = self.foreign {
            const BACK: [&str; 4] = ["foreignObject", "annotation-xml", "desc", "title"];
            let comes_back = BACK.contains(&&*element.name);
            return Place { foreign: (!comes_back).then_some(foreign), ..unknown };
        }
        if let Some(foreign) = foreign_root(element) {
            return Place { foreign: Some(foreign), ..unknown };
        }
        let Some(known) = vocabulary::element(&element.name) else { return unknown };
        let content = self.content_of(known);
        let place = Place { parent: Some(known), content, ..unknown };
        let hole = if known.content.transparent && known.content.elements.is_empty() {
            self.hole
        } else {
            place.hole_for_content()
        };
        Place { hole, ..place }
    }

    /// The place of the children of an element that is misplaced itself. It allows any content.
    #[must_use]
    pub fn misplaced(&'p self) -> Self {
        Place {
            parent: None,
            content: Content::ANYTHING,
            foreign: None,
            outer: Some(self),
            hole: Hole::Anything,
        }
    }

    /// The content that an element in this place allows. A `div` allows parts of a list only
    /// directly in that list.
    fn content_of(&self, known: &'static vocabulary::Element) -> Content {
        let content = known.content.inherit_from(&self.content);
        match self.parent {
            Some(list) if known.name == "div" && list.name == "dl" => Content::GROUP,
            Some(other)
                if known.name == "div" && !is_group(other.name) && !is_nested(other.name) =>
            {
                Content { elements: Content::NOTHING.elements, ..content }
            }
            _ => content,
        }
    }

    /// The content that a hole in this place accepts.
    pub const fn hole(&self) -> Hole {
        self.hole
    }

    /// Derives it from the content that the parent allows.
    fn hole_for_content(&self) -> Hole {
        let Content { categories, elements, text, .. } = self.content;
        let is_line = |categories: Categories| categories.intersects(FLOW_OR_PHRASING);
        if categories == Categories::ALL {
            Hole::Anything
        } else if is_line(categories) {
            let is_division = self.parent.is_some_and(|parent| parent.name == "div")
                && !self.ancestors().nth(1).is_some_and(|outer| is_group(outer.name));
            match () {
                // A place for flow content and certain elements accepts both.
                () if !elements.is_empty() && !is_division => Hole::Anything,
                () if categories.intersects(Categories::FLOW) => Hole::Flow,
                () => Hole::Phrasing,
            }
        } else if text {
            Hole::Text
        } else if elements.is_empty() && categories.is_empty() {
            Hole::Nothing
        } else {
            let mut elements = elements.iter().filter_map(vocabulary::element);
            let is_mixed = categories.intersects(Categories::HEADING)
                || elements.any(|element| is_line(element.categories));
            if is_mixed { Hole::Pieces } else { Hole::Parts }
        }
    }

    /// Whether the place is HTML inside an element of SVG or MathML.
    pub fn is_html_in_foreign(&self) -> bool {
        self.foreign.is_none() && self.outer.is_some_and(|outer| outer.foreign.is_some())
    }

    /// The ancestors, innermost first.
    pub fn ancestors(&self) -> impl Iterator<Item = &'static vocabulary::Element> {
        let places = std::iter::successors(Some(self), |place| place.outer);
        places.filter_map(|place| place.parent)
    }

    /// Whether all ancestors up to the `html` element are known.
    pub fn is_complete(&self) -> bool {
        let mut places = std::iter::successors(Some(self), |place| place.outer);
        places.any(|place| place.parent.is_some_and(|parent| parent.name == "html"))
    }
}

/// Whether a `div` in the element contains parts of it.
fn is_group(name: &str) -> bool {
    ["dl", "select", "optgroup", "option"].contains(&name)
}

/// Whether a `div` in the element may contain parts of an outer element. That is not checked.
fn is_nested(name: &str) -> bool {
    ["div", "template"].contains(&name)
}

const FLOW_OR_PHRASING: Categories = Categories::FLOW.or(Categories::PHRASING);
const METADATA_OR_PART: Categories =
    Categories::METADATA.or(Categories::PART).or(Categories::SCRIPT_SUPPORTING);

/// The language whose root the element is, if it is SVG or MathML.
pub fn foreign_root<C>(element: &Element<C>) -> Option<&'static Foreign> {
    [&SVG, &MATHML].into_iter().find(|foreign| foreign.root == element.name)
}

/// The content kind of markup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentKind {
    /// Flow content.
    Flow,
    /// Phrasing content.
    Phrasing,
    /// Elements that only certain parents allow.
    Parts,
    /// Content that is allowed both in text and among parts: `<script>`.
    ScriptSupporting,
    /// A whole page without `<html>`.
    Whole,
    /// A whole page inside `<html>`.
    Document,
}

impl ContentKind {
    /// The kind of markup with these roots.
    pub fn of<C>(roots: &[Node<C>]) -> Self {
        let mut fits = Fits { flow: true, phrasing: true, parts: true, elements: 0, holes: 0 };
        fits.narrow(roots);
        match fits {
            // Holes without elements may contain any content of a body.
            Fits { flow: true, phrasing: true, elements: 0, holes: 1.., .. } => Self::Flow,
            Fits { phrasing: true, parts: true, holes: 0, .. } => Self::ScriptSupporting,
            Fits { phrasing: true, .. } => Self::Phrasing,
            Fits { flow: true, .. } => Self::Flow,
            Fits { parts: true, .. } => Self::Parts,
            Fits { .. } if is_document(roots) => Self::Document,
            Fits { .. } => Self::Whole,
        }
    }

    /// The name of the type for this kind in `bine_html`.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Flow => "Flow",
            Self::Phrasing => "Phrasing",
            Self::Parts => "Parts",
            Self::ScriptSupporting => "ScriptSupporting",
            Self::Whole => "Whole",
            Self::Document => "Document",
        }
    }
}

fn is_document<C>(roots: &[Node<C>]) -> bool {
    let is_invisible = |node: &&Node<C>| match node {
        Node::Text(text, _) => text.trim().is_empty(),
        Node::Let(_) => true,
        _ => false,
    };
    let roots: Vec<&Node<C>> = roots.iter().filter(|node| !is_invisible(node)).collect();
    let ([Node::Element(root)] | [Node::Doctype, Node::Element(root)]) = roots.as_slice() else {
        return false;
    };
    root.name == "html"
}

/// The kinds that fit all roots seen so far.
struct Fits {
    flow: bool,
    phrasing: bool,
    parts: bool,
    /// The number of elements and texts.
    elements: usize,
    holes: usize,
}

impl Fits {
    fn narrow<C>(&mut self, nodes: &[Node<C>]) {
        for node in nodes {
            match node {
                Node::Doctype => self.restrict(Categories::NONE),
                Node::Text(text, _) if text.trim().is_empty() => {}
                Node::Let(_) => {}
                Node::Text(..) | Node::RawText(_) => self.restrict(FLOW_OR_PHRASING),
                Node::Hole(..) | Node::RawHole(_) => self.holes += 1,
                Node::Element(element) => self.element(element),
                Node::Live(region) => self.narrow(&region.children),
                Node::For { body, .. } => self.narrow(body),
                Node::If { branches, otherwise } => {
                    self.branches(branches);
                    self.narrow(otherwise);
                }
                Node::Match { arms, .. } => self.branches(arms),
            }
        }
    }

    fn branches<C>(&mut self, branches: &[Branch<C>]) {
        for branch in branches {
            self.narrow(&branch.body);
        }
    }

    fn element<C>(&mut self, element: &Element<C>) {
        let Some(known) = vocabulary::element(&element.name) else {
            // A custom or foreign element.
            return self.restrict(FLOW_OR_PHRASING);
        };
        if known.name == "html" {
            return self.restrict(Categories::NONE);
        }
        self.restrict(categories_of(element, known));
        if known.content.transparent {
            self.narrow(&element.children);
        }
    }

    fn restrict(&mut self, categories: Categories) {
        self.elements += 1;
        self.phrasing &= categories.intersects(Categories::PHRASING);
        self.flow &= categories.intersects(FLOW_OR_PHRASING);
        self.parts &= categories.intersects(METADATA_OR_PART);
    }
}

/// The categories of an element, including those that its known attributes add.
pub(crate) fn categories_of<C>(element: &Element<C>, known: &vocabulary::Element) -> Categories {
    match known.sometimes {
        Some(sometimes) if sometimes.holds(|name| value_of(element, name)) == Some(true) => {
            known.categories.or(sometimes.categories)
        }
        _ => known.categories,
    }
}

/// The value of an attribute as known at compile time.
pub(crate) fn value_of<'a, C>(element: &'a Element<C>, name: &str) -> vocabulary::Value<'a> {
    match element.attribute(name).map(|attribute| &attribute.value) {
        None if element.has_more_attributes => vocabulary::Value::Unknown,
        None => vocabulary::Value::Absent,
        Some(Value::Bare) => vocabulary::Value::Is(""),
        Some(Value::Text(text)) => vocabulary::Value::Is(text),
        Some(Value::Hole(_)) => vocabulary::Value::Unknown,
    }
}
