//! Parses a page's markup into a tree, as a browser does.

use std::borrow::Cow;
use std::cell::RefCell;
use std::slice;

use bine_html::tree::{Element, Node, RawMarkup, Subtree, Tree, TreeError, TreeWriter};
use bine_html::{Writer, raw};
use html5ever::tendril::{StrTendril, TendrilSink as _};
use html5ever::tree_builder::{
    ElemName, ElementFlags, NodeOrText, QuirksMode, TreeBuilderOpts, TreeSink,
};
use html5ever::{Attribute, LocalName, Namespace, ParseOpts, QualName, parse_document};

/// Parses a whole page. With `runs_scripts` the content of `<noscript>` is ignored.
pub(super) fn read(markup: &str, runs_scripts: bool) -> Tree {
    let tree_builder =
        TreeBuilderOpts { scripting_enabled: runs_scripts, ..TreeBuilderOpts::default() };
    let options = ParseOpts { tree_builder, ..ParseOpts::default() };
    parse_document(Arena::default(), options).one(markup)
}

/// Returns the visible text of a tree: words with single spaces, without scripts.
pub(super) fn text(of: &Tree) -> String {
    let text = of.to_string_with(TextWriter);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the visible text of an element.
pub(super) fn text_of(element: &Element) -> String {
    text(&Tree::from(element.clone()))
}

/// Elements within a line of text.
const INLINE: [&str; 32] = [
    "a", "abbr", "b", "bdi", "bdo", "button", "cite", "code", "data", "del", "dfn", "em", "font",
    "i", "ins", "kbd", "label", "mark", "output", "q", "ruby", "s", "samp", "small", "span",
    "strong", "sub", "sup", "time", "u", "var", "wbr",
];

/// Writes visible text, with a space around each block element.
struct TextWriter;

impl TreeWriter for TextWriter {
    fn open(&mut self, element: &Element, to: &mut Writer<'_>) -> Subtree {
        if ["script", "style", "template"].contains(&element.name()) {
            return Subtree::Skip;
        }
        self.close(element, to);
        Subtree::Visit
    }

    fn close(&mut self, element: &Element, to: &mut Writer<'_>) {
        if !INLINE.contains(&element.name()) {
            to.constant(" ");
        }
    }

    fn text(&mut self, text: &str, to: &mut Writer<'_>) {
        // The output is text, so it is not escaped.
        to.fill_raw(&raw(text));
    }

    fn raw(&mut self, _markup: &RawMarkup, _to: &mut Writer<'_>) {}

    fn comment(&mut self, _text: &str, _to: &mut Writer<'_>) {}

    fn doctype(&mut self, _to: &mut Writer<'_>) {}
}

/// Returns all elements among the nodes and below, in document order.
pub(super) fn elements(nodes: &[Node]) -> Elements<'_> {
    Elements { levels: vec![nodes.iter()] }
}

/// Iterator that [`elements`] returns.
pub(super) struct Elements<'t> {
    levels: Vec<slice::Iter<'t, Node>>,
}

impl<'t> Iterator for Elements<'t> {
    type Item = &'t Element;

    fn next(&mut self) -> Option<&'t Element> {
        loop {
            match self.levels.last_mut()?.next() {
                None => _ = self.levels.pop(),
                Some(Node::Element(element)) => {
                    self.levels.push(element.children().iter());
                    return Some(element);
                }
                Some(_) => {}
            }
        }
    }
}

/// The nodes of a page while html5ever parses it. The parser moves nodes, so the tree is built at
/// the end.
struct Arena {
    nodes: RefCell<Vec<ArenaNode>>,
}

struct ArenaNode {
    kind: ElementKind,
    parent: Option<usize>,
    children: Vec<usize>,
}

enum ElementKind {
    Document,
    Element {
        name: QualName,
        attributes: Vec<Attribute>,
    },
    Text(String),
    Comment(String),
    Doctype,
    /// A node without visible content.
    Nothing,
}

/// Name of an element, for the parser.
#[derive(Debug)]
struct Name(QualName);

impl ElemName for Name {
    fn ns(&self) -> &Namespace {
        &self.0.ns
    }

    fn local_name(&self) -> &LocalName {
        &self.0.local
    }
}

impl Default for Arena {
    fn default() -> Self {
        let document =
            ArenaNode { kind: ElementKind::Document, parent: None, children: Vec::new() };
        Self { nodes: RefCell::new(vec![document]) }
    }
}

impl Arena {
    fn add(&self, kind: ElementKind) -> usize {
        let mut nodes = self.nodes.borrow_mut();
        nodes.push(ArenaNode { kind, parent: None, children: Vec::new() });
        nodes.len() - 1
    }

    /// Inserts a child at an index. Text is appended to a text node before it.
    fn insert(&self, parent: usize, place: usize, child: NodeOrText<usize>) {
        let child = match child {
            NodeOrText::AppendNode(node) => {
                self.remove_from_parent(&node);
                node
            }
            NodeOrText::AppendText(text) => {
                let nodes = &mut *self.nodes.borrow_mut();
                let before = place.checked_sub(1).map(|before| nodes[parent].children[before]);
                if let Some(before) = before
                    && let ElementKind::Text(own) = &mut nodes[before].kind
                {
                    own.push_str(&text);
                    return;
                }
                nodes.push(ArenaNode {
                    kind: ElementKind::Text(text.into()),
                    parent: None,
                    children: Vec::new(),
                });
                nodes.len() - 1
            }
        };
        let mut nodes = self.nodes.borrow_mut();
        // Removing the child from the same parent may have shifted the index.
        let place = place.min(nodes[parent].children.len());
        nodes[child].parent = Some(parent);
        nodes[parent].children.insert(place, child);
    }

    fn place(&self, node: usize) -> Option<(usize, usize)> {
        let nodes = self.nodes.borrow();
        let parent = nodes[node].parent?;
        let place = nodes[parent].children.iter().position(|own| *own == node)?;
        Some((parent, place))
    }
}

impl TreeSink for Arena {
    type Handle = usize;
    type Output = Tree;
    type ElemName<'a> = Name;

    fn finish(self) -> Tree {
        let mut nodes = self.nodes.into_inner();
        // The path of open elements; an explicit stack, because a page may nest deeper than the
        // call stack allows.
        let mut levels = vec![(Vec::new(), std::mem::take(&mut nodes[0].children).into_iter())];
        let mut open: Vec<Element> = Vec::new();
        loop {
            let Some((made, left)) = levels.last_mut() else { return Tree::new() };
            if let Some(index) = left.next() {
                match std::mem::replace(&mut nodes[index].kind, ElementKind::Nothing) {
                    ElementKind::Element { name, attributes } => {
                        open.push(element(&name, attributes));
                        let children = std::mem::take(&mut nodes[index].children);
                        levels.push((Vec::new(), children.into_iter()));
                    }
                    ElementKind::Text(text) => made.push(Node::text(text)),
                    ElementKind::Comment(text) => made.push(Node::comment(text)),
                    ElementKind::Doctype => made.push(Node::Doctype),
                    ElementKind::Document | ElementKind::Nothing => {}
                }
                continue;
            }
            let made = std::mem::take(made);
            levels.pop();
            let (Some(mut element), Some((outer, _))) = (open.pop(), levels.last_mut()) else {
                return Tree::from(made);
            };
            *element.children_mut() = made;
            outer.push(element.into());
        }
    }

    fn parse_error(&self, _message: Cow<'static, str>) {}

    fn get_document(&self) -> usize {
        0
    }

    fn elem_name<'a>(&'a self, target: &'a usize) -> Name {
        match &self.nodes.borrow()[*target].kind {
            ElementKind::Element { name, .. } => Name(name.clone()),
            _ => panic!("the parser asks only elements for their names"),
        }
    }

    fn create_element(
        &self,
        name: QualName,
        attributes: Vec<Attribute>,
        _flags: ElementFlags,
    ) -> usize {
        self.add(ElementKind::Element { name, attributes })
    }

    fn create_comment(&self, text: StrTendril) -> usize {
        self.add(ElementKind::Comment(text.into()))
    }

    fn create_pi(&self, _target: StrTendril, _data: StrTendril) -> usize {
        self.add(ElementKind::Nothing)
    }

    fn append(&self, parent: &usize, child: NodeOrText<usize>) {
        let end = self.nodes.borrow()[*parent].children.len();
        self.insert(*parent, end, child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &usize,
        before: &usize,
        child: NodeOrText<usize>,
    ) {
        let has_parent = self.nodes.borrow()[*element].parent.is_some();
        if has_parent {
            self.append_before_sibling(element, child);
        } else {
            self.append(before, child);
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {
        let doctype = self.add(ElementKind::Doctype);
        self.append(&0, NodeOrText::AppendNode(doctype));
    }

    /// Returns a separate document, which is not part of the page.
    fn get_template_contents(&self, _target: &usize) -> usize {
        self.add(ElementKind::Document)
    }

    fn same_node(&self, one: &usize, other: &usize) -> bool {
        one == other
    }

    fn set_quirks_mode(&self, _mode: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &usize, child: NodeOrText<usize>) {
        if let NodeOrText::AppendNode(node) = &child {
            // Remove the node before finding the sibling's index, which removal may shift.
            self.remove_from_parent(node);
        }
        if let Some((parent, place)) = self.place(*sibling) {
            self.insert(parent, place, child);
        }
    }

    fn add_attrs_if_missing(&self, target: &usize, more: Vec<Attribute>) {
        if let ElementKind::Element { attributes, .. } = &mut self.nodes.borrow_mut()[*target].kind
        {
            for attribute in more {
                if attributes.iter().all(|own| own.name != attribute.name) {
                    attributes.push(attribute);
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &usize) {
        if let Some((parent, place)) = self.place(*target) {
            let mut nodes = self.nodes.borrow_mut();
            nodes[parent].children.remove(place);
            nodes[*target].parent = None;
        }
    }

    fn reparent_children(&self, node: &usize, parent: &usize) {
        let nodes = &mut *self.nodes.borrow_mut();
        let children = std::mem::take(&mut nodes[*node].children);
        for child in &children {
            nodes[*child].parent = Some(*parent);
        }
        nodes[*parent].children.extend(children);
    }
}

/// Builds an element without the attributes whose names cannot be written.
fn element(name: &QualName, attributes: Vec<Attribute>) -> Element {
    let made = Element::new(name.local.to_string()).or_else(|_| Element::new("unknown"));
    let mut element = made.expect("`unknown` is a name");
    for attribute in attributes {
        let (name, value) = (attribute.name.local.to_string(), attribute.value.to_string());
        if let Err(TreeError::Code(_)) = element.set_attribute(name.clone(), &*value) {
            // The tree is only read.
            let _ = element.set_code(name, raw(value));
        }
    }
    element
}

#[cfg(test)]
mod tests {
    use markup5ever_rcdom::{Handle, NodeData, RcDom};
    use proptest::prelude::*;

    use super::*;

    /// Parses with markup5ever's tree as the reference.
    fn by_reference(markup: &str) -> Tree {
        let dom = parse_document(RcDom::default(), ParseOpts::default()).one(markup);
        children(&dom.document).into()
    }

    fn children(parent: &Handle) -> Vec<Node> {
        let node = |child: &Handle| match &child.data {
            NodeData::Doctype { .. } => Some(Node::Doctype),
            NodeData::Text { contents } => Some(Node::text(contents.borrow().to_string())),
            NodeData::Comment { contents } => Some(Node::comment(contents.to_string())),
            NodeData::Element { name, attrs, .. } => {
                let mut element = element(name, attrs.borrow().clone());
                *element.children_mut() = children(child);
                Some(element.into())
            }
            _ => None,
        };
        parent.children.borrow().iter().filter_map(node).collect()
    }

    /// Malformed markup: unclosed tags, and tables with wrong content.
    fn soup() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "<p>",
            "</p>",
            "<b>",
            "</b>",
            "<i class=x>",
            "</i>",
            "<a href='/'>",
            "</a>",
            "<table>",
            "</table>",
            "<tr>",
            "<td>",
            "text",
            " ",
            "<!--c-->",
            "<div>",
            "</div>",
            "<form>",
            "</form>",
            "<li>",
            "<ul>",
            "</ul>",
            "<select>",
            "<option>",
            "<template>",
            "</template>",
            "<svg>",
            "</svg>",
            "<html lang=en>",
            "<body id=b>",
            "<title>",
            "</title>",
            "<!doctype html>",
        ]);
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn parses_any_markup_as_reference_does(markup in soup()) {
            prop_assert_eq!(read(&markup, true), by_reference(&markup));
        }

        #[test]
        fn parses_any_text_as_a_page(markup: String) {
            prop_assert_eq!(read(&markup, true), by_reference(&markup));
        }
    }

    #[test]
    fn parses_pages_deeper_than_the_stack() {
        let deep = read(&"<span>".repeat(50_000), false);
        assert_eq!(elements(deep.roots()).count(), 50_003);
        assert_eq!(text(&deep), "");
    }

    #[test]
    fn reads_text_as_displayed() {
        let page = read(
            "<title>t</title><ul>\n <li>a<b>b</b> \n c<li>d</ul><p>e<br>f</p><script>g</script><noscript>h</noscript>",
            false,
        );
        assert_eq!(text(&page), "t ab c d e f h");
        let (with, without) =
            (read("<noscript><p>a</noscript>", true), read("<noscript><p>a</noscript>", false));
        assert_eq!((elements(with.roots()).count(), elements(without.roots()).count()), (4, 5));
    }
}
