//! Conversion of a parsed document to a tree.

use bine_html::tree::{Element, Node, Tree};
use html5ever::tendril::TendrilSink as _;
use html5ever::{ParseOpts, parse_document};
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use roxmltree::{Document, NodeType, ParsingOptions};

const XHTML: &str = "http://www.w3.org/1999/xhtml";

/// Parses HTML as a browser does.
pub(crate) fn html(markup: &str) -> Tree {
    let dom = parse_document(RcDom::default(), ParseOpts::default()).one(markup);
    children_of_dom(&dom.document).into()
}

/// Parses an XML document.
pub(crate) fn xml(markup: &str) -> Tree {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(markup, options);
    let document = document.unwrap_or_else(|error| panic!("{error}: {markup:?}"));
    let mut nodes = children_of_xml(document.root());
    // The parser does not report the document type.
    nodes.insert(0, Node::Doctype);
    nodes.into()
}

fn children_of_dom(parent: &Handle) -> Vec<Node> {
    let mut nodes = Vec::new();
    for child in parent.children.borrow().iter() {
        nodes.push(match &child.data {
            NodeData::Doctype { .. } => Node::Doctype,
            NodeData::Text { contents } => Node::text(contents.borrow().to_string()),
            NodeData::Comment { contents } => Node::comment(contents.to_string()),
            NodeData::Element { name, attrs, .. } => {
                let mut element = Element::new(name.local.to_string()).unwrap();
                for attribute in attrs.borrow().iter() {
                    let name = attribute.name.local.to_string();
                    element.set_attribute(name, attribute.value.to_string()).unwrap();
                }
                *element.children_mut() = children_of_dom(child);
                element.into()
            }
            other => panic!("{other:?}"),
        });
    }
    nodes
}

fn children_of_xml(parent: roxmltree::Node<'_, '_>) -> Vec<Node> {
    let mut nodes = Vec::new();
    for child in parent.children() {
        nodes.push(match child.node_type() {
            NodeType::Text => Node::text(child.text().unwrap().to_owned()),
            NodeType::Comment => Node::comment(child.text().unwrap().to_owned()),
            NodeType::Element => {
                assert_eq!(child.tag_name().namespace(), Some(XHTML));
                let mut element = Element::new(child.tag_name().name().to_owned()).unwrap();
                for attribute in child.attributes() {
                    let name = attribute.name().to_owned();
                    element.set_attribute(name, attribute.value()).unwrap();
                }
                *element.children_mut() = children_of_xml(child);
                element.into()
            }
            other => panic!("{other:?}"),
        });
    }
    nodes
}
