//! Lists elements, attributes and text in order, so that an HTML and an XML parser can be compared.

use html5ever::tendril::TendrilSink;
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use roxmltree::{Document, Node, ParsingOptions};

/// Returns the nodes that an XML parser finds.
pub(crate) fn of_xml(text: &str) -> Vec<String> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options);
    let document = document.unwrap_or_else(|error| panic!("{error}: {text}"));
    let mut nodes = Nodes::default();
    nodes.xml(document.root_element());
    nodes.0
}

/// Returns the nodes that a browser finds.
pub(crate) fn of_html(text: &str) -> Vec<String> {
    let document = html5ever::parse_document(RcDom::default(), html5ever::ParseOpts::default())
        .one(text.to_owned());
    let errors = document.errors.borrow();
    assert!(errors.is_empty(), "{errors:?}: {text}");
    let mut nodes = Nodes::default();
    for child in document.document.children.borrow().iter() {
        nodes.html(child);
    }
    nodes.0
}

#[derive(Default)]
struct Nodes(Vec<String>);

impl Nodes {
    fn xml(&mut self, node: Node<'_, '_>) {
        if let (true, Some(text)) = (node.is_text(), node.text()) {
            return self.text(text);
        }
        if !node.is_element() {
            return;
        }
        let name = node.tag_name();
        let attributes =
            node.attributes().map(|one| (one.name().to_owned(), one.value().to_owned()));
        self.open(name.namespace().unwrap_or_default(), name.name(), attributes.collect());
        for child in node.children() {
            self.xml(child);
        }
        self.0.push("end".to_owned());
    }

    fn html(&mut self, node: &Handle) {
        match &node.data {
            NodeData::Text { contents } => self.text(&contents.borrow()),
            NodeData::Element { name, attrs, .. } => {
                let attributes = attrs.borrow();
                let attributes = attributes
                    .iter()
                    .map(|one| (one.name.local.to_string(), one.value.to_string()));
                self.open(&name.ns, &name.local, attributes.collect());
                for child in node.children.borrow().iter() {
                    self.html(child);
                }
                self.0.push("end".to_owned());
            }
            _ => {}
        }
    }

    fn open(&mut self, namespace: &str, name: &str, mut attributes: Vec<(String, String)>) {
        self.0.push(format!("<{name}> of {namespace}"));
        attributes.sort();
        self.0.extend(attributes.iter().map(|(name, value)| format!("@{name}={value}")));
    }

    /// Merges adjacent text.
    fn text(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(last) if last.starts_with("text ") => last.push_str(text),
            _ => self.0.push(format!("text {text}")),
        }
    }
}
