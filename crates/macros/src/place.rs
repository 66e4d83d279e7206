//! Decides where children stand, what a hole there takes, and what markup is by its outermost elements (HTML 3.2.5).

use bine_vocabulary::{self as vocabulary, Categories, Content, Foreign, MATHML, SVG};

use crate::tree::{Branch, Element, Node, Value};

/// Where children stand.
#[derive(Clone, Copy)]
pub(crate) struct Place<'p> {
    /// `None` for the roots of a page, and for what stands in an element of its own making.
    pub(crate) parent: Option<&'static vocabulary::Element>,
    pub(crate) content: Content,
    /// SVG or MathML, and whose child that is.
    pub(crate) foreign: Option<&'static Foreign>,
    outer: Option<&'p Place<'p>>,
    hole: Hole,
}

/// What a hole takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hole {
    Flow,
    Phrasing,
    Text,
    /// What is made for the place, and no text.
    Parts,
    /// The same where some of that is flow or phrasing content too: `<div>` in `<dl>`, `<img>` in `<picture>`.
    Pieces,
    Anything,
    Nothing,
}

impl Hole {
    /// The method that fills it.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Flow => "fill_flow",
            Self::Phrasing => "fill_phrasing",
            Self::Text => "fill_text",
            Self::Parts => "fill_parts",
            Self::Pieces => "fill_pieces",
            // Where nothing may stand, that has been told already.
            Self::Anything | Self::Nothing => "fill_anything",
        }
    }
}

impl<'p> Place<'p> {
    /// Where the roots of markup of that kind stand.
    pub(crate) const fn root(kind: Kind) -> Self {
        let hole = match kind {
            Kind::Flow => Hole::Flow,
            Kind::Phrasing => Hole::Phrasing,
            Kind::Parts => Hole::Parts,
            Kind::Anywhere | Kind::Whole | Kind::Document => Hole::Anything,
        };
        Place { parent: None, content: Content::ANYTHING, foreign: None, outer: None, hole }
    }

    /// Where the children of an element stand that itself stands here.
    pub(crate) fn inside(&'p self, element: &Element) -> Self {
        let unknown = self.astray();
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
            place.judged()
        };
        Place { hole, ..place }
    }

    /// Where the children of an element stand that should not be here itself.
    pub(crate) fn astray(&'p self) -> Self {
        Place {
            parent: None,
            content: Content::ANYTHING,
            foreign: None,
            outer: Some(self),
            hole: Hole::Anything,
        }
    }

    /// What may stand in an element that itself stands here. A `div` has parts of lists only where it is one of theirs.
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

    /// What a hole here takes.
    pub(crate) const fn hole(&self) -> Hole {
        self.hole
    }

    /// What a hole takes by the content that the parent has.
    fn judged(&self) -> Hole {
        let Content { categories, elements, text, .. } = self.content;
        let is_line = |categories: Categories| categories.intersects(FLOW_OR_PHRASING);
        if categories == Categories::ALL {
            Hole::Anything
        } else if is_line(categories) {
            let is_division = self.parent.is_some_and(|parent| parent.name == "div")
                && !self.around().nth(1).is_some_and(|outer| is_group(outer.name));
            match () {
                // Its own parts are for the groups of a list.
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

    /// Whether HTML stands here in an element of SVG or MathML.
    pub(crate) fn is_back_from_foreign(&self) -> bool {
        self.foreign.is_none() && self.outer.is_some_and(|outer| outer.foreign.is_some())
    }

    /// The elements around it, the nearest first.
    pub(crate) fn around(&self) -> impl Iterator<Item = &'static vocabulary::Element> {
        let places = std::iter::successors(Some(self), |place| place.outer);
        places.filter_map(|place| place.parent)
    }

    /// Whether everything around it is known: then a page's own root would be too.
    pub(crate) fn is_complete(&self) -> bool {
        let mut places = std::iter::successors(Some(self), |place| place.outer);
        places.any(|place| place.parent.is_some_and(|parent| parent.name == "html"))
    }
}

/// Whether a `div` in it holds parts of it.
fn is_group(name: &str) -> bool {
    ["dl", "select", "optgroup", "option"].contains(&name)
}

/// Whether a `div` in it holds parts of what is around that, which is not looked for.
fn is_nested(name: &str) -> bool {
    ["div", "template"].contains(&name)
}

const FLOW_OR_PHRASING: Categories = Categories::FLOW.or(Categories::PHRASING);
const METADATA_OR_PART: Categories =
    Categories::METADATA.or(Categories::PART).or(Categories::SCRIPT_SUPPORTING);

/// SVG or MathML, if the element is their root.
pub(crate) fn foreign_root(element: &Element) -> Option<&'static Foreign> {
    [&SVG, &MATHML].into_iter().find(|foreign| foreign.root == element.name)
}

/// What markup is to whoever it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Flow,
    Phrasing,
    Parts,
    /// What stands in text and among parts: `<script>`.
    Anywhere,
    /// A page by itself.
    Whole,
    /// The same with `<html>` around all of it.
    Document,
}

impl Kind {
    /// The kind of these roots.
    pub(crate) fn of(roots: &[Node]) -> Self {
        let mut fits = Fits { flow: true, phrasing: true, parts: true, elements: 0, holes: 0 };
        fits.narrow(roots);
        match fits {
            // What is in holes alone may be anything that stands in a body.
            Fits { flow: true, phrasing: true, elements: 0, holes: 1.., .. } => Self::Flow,
            Fits { phrasing: true, parts: true, holes: 0, .. } => Self::Anywhere,
            Fits { phrasing: true, .. } => Self::Phrasing,
            Fits { flow: true, .. } => Self::Flow,
            Fits { parts: true, .. } => Self::Parts,
            Fits { .. } if is_document(roots) => Self::Document,
            Fits { .. } => Self::Whole,
        }
    }

    /// The type that says so.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::Flow => "Flow",
            Self::Phrasing => "Phrasing",
            Self::Parts => "Parts",
            Self::Anywhere => "Anywhere",
            Self::Whole => "Whole",
            Self::Document => "Document",
        }
    }
}

fn is_document(roots: &[Node]) -> bool {
    let is_blank = |node: &&Node| matches!(node, Node::Text(text, _) if text.trim().is_empty());
    let roots: Vec<&Node> = roots.iter().filter(|node| !is_blank(node)).collect();
    let ([Node::Element(root)] | [Node::Doctype, Node::Element(root)]) = roots.as_slice() else {
        return false;
    };
    root.name == "html"
}

/// As what the roots that were seen so far may stand.
struct Fits {
    flow: bool,
    phrasing: bool,
    parts: bool,
    /// Elements and text.
    elements: usize,
    holes: usize,
}

impl Fits {
    fn narrow(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Doctype => self.keep(Categories::NONE),
                Node::Text(text, _) if text.trim().is_empty() => {}
                Node::Text(..) | Node::RawText(_) => self.keep(FLOW_OR_PHRASING),
                Node::Hole(_) | Node::RawHole(_) => self.holes += 1,
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

    fn branches(&mut self, branches: &[Branch]) {
        for branch in branches {
            self.narrow(&branch.body);
        }
    }

    fn element(&mut self, element: &Element) {
        let Some(known) = vocabulary::element(&element.name) else {
            // Of one's own, or foreign.
            return self.keep(FLOW_OR_PHRASING);
        };
        if known.name == "html" {
            return self.keep(Categories::NONE);
        }
        self.keep(categories_of(element, known));
        if known.content.transparent {
            self.narrow(&element.children);
        }
    }

    fn keep(&mut self, categories: Categories) {
        self.elements += 1;
        self.phrasing &= categories.intersects(Categories::PHRASING);
        self.flow &= categories.intersects(FLOW_OR_PHRASING);
        self.parts &= categories.intersects(METADATA_OR_PART);
    }
}

/// What an element counts to, with its attributes as far as they are known.
pub(crate) fn categories_of(element: &Element, known: &vocabulary::Element) -> Categories {
    match known.sometimes {
        Some(sometimes) if sometimes.holds(|name| value_of(element, name)) == Some(true) => {
            known.categories.or(sometimes.categories)
        }
        _ => known.categories,
    }
}

/// What is known of an attribute while the page is compiled.
pub(crate) fn value_of<'a>(element: &'a Element, name: &str) -> vocabulary::Value<'a> {
    match element.attribute(name).map(|attribute| &attribute.value) {
        None => vocabulary::Value::Absent,
        Some(Value::Bare) => vocabulary::Value::Is(""),
        Some(Value::Text(text)) => vocabulary::Value::Is(text),
        Some(Value::Hole(_)) => vocabulary::Value::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use crate::sample::Sample;

    #[track_caller]
    fn check(source: &str, expected: Kind) {
        assert_eq!(Kind::of(&parse(&Sample::new(source).tokens, &mut Vec::new())), expected);
    }

    #[test]
    fn markup_is_as_wide_as_its_widest_root() {
        check("text", Kind::Phrasing);
        check("<b>a</b> {x}", Kind::Phrasing);
        check("<b>a</b><p>b</p>", Kind::Flow);
        check("{if a { <b>a</b> } else { <p>b</p> }}", Kind::Flow);
        check("{match a { _ => { <b>a</b> } }}{for a in b { c }}", Kind::Phrasing);
        check("<my-map><p>a</p></my-map><svg></svg>", Kind::Phrasing);
    }

    #[test]
    fn what_is_transparent_is_what_it_holds() {
        check("<a href=\"/\">b</a>", Kind::Phrasing);
        check("<a href=\"/\"><h2>b</h2>{c}</a>", Kind::Flow);
        check("<ins><del><i>a</i></del></ins>", Kind::Phrasing);
    }

    #[test]
    fn holes_alone_are_flow() {
        check("{a} {b}", Kind::Flow);
        check("{for a in b { {a} }}", Kind::Flow);
        check("<a href=\"/\">{b}</a>", Kind::Phrasing);
    }

    #[test]
    fn what_only_certain_parents_take_is_parts() {
        check("<li>a</li>{b}", Kind::Parts);
        check("<title>a</title><meta charset=\"utf-8\"><script src=\"a\"></script>", Kind::Parts);
        check("{for a in b { <tr></tr> }}", Kind::Parts);
        check("<head></head><body></body>", Kind::Parts);
    }

    #[test]
    fn a_script_may_stand_anywhere() {
        check("<script src=\"a\"></script>", Kind::Anywhere);
        check("<link rel=\"stylesheet\" href=\"a\">", Kind::Anywhere);
        check("<script src=\"a\"></script>{b}", Kind::Phrasing);
        check("<link rel=\"icon\" href=\"a\">", Kind::Parts);
        check("", Kind::Anywhere);
    }

    #[test]
    fn a_document_has_html_around_all_of_it() {
        check("<html></html>", Kind::Document);
        check("<!DOCTYPE html>\n<html><body>{a}</body></html>", Kind::Document);
    }

    #[test]
    fn what_fits_nowhere_is_a_whole_page() {
        check("<!DOCTYPE html>{a}", Kind::Whole);
        check("<html></html><p>a</p>", Kind::Whole);
        check("<title>a</title><main>b</main>", Kind::Whole);
        check("<li>a</li> text", Kind::Whole);
    }
}
