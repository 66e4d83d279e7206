//! Pages that are trees: the document around a tree that is none.

use bine_html::Tree;
use bine_html::tree::{Element, Node};

/// The tree as a whole document: as it is if it has an `<html>`, else in the document that pages of
/// markup get too.
pub(super) fn document(tree: Tree, title: &str) -> Tree {
    let is_html = |node: &Node| node.as_element().is_some_and(|root| root.name() == "html");
    if tree.roots().iter().any(is_html) {
        return tree;
    }
    let charset = element("meta", &[("charset", "utf-8")], []);
    let viewport = [("name", "viewport"), ("content", "width=device-width, initial-scale=1")];
    let viewport = element("meta", &viewport, []);
    let title = element("title", &[], [Node::from(title.to_owned())]);
    let head = element("head", &[], [charset, viewport, title]);
    let body = element("body", &[], tree.roots().iter().cloned());
    [Node::Doctype, element("html", &[("lang", "en")], [head, body])].into_iter().collect()
}

fn element(
    name: &'static str,
    attributes: &[(&'static str, &'static str)],
    children: impl IntoIterator<Item = Node>,
) -> Node {
    // The names and attributes above are those of HTML.
    let mut element = Element::new(name).expect("a name of HTML");
    for (name, value) in attributes {
        element.set_attribute(*name, *value).expect("an attribute of HTML");
    }
    element.children_mut().extend(children);
    element.into()
}
