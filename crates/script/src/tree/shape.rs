//! [`Shape`]: the steps that build a tree, with holes for the values of a script.
//!
//! The steps are those of the compiler's contract. Elements without holes are built when the shape is
//! registered, and all trees share them.

use std::borrow::Cow;

use bine_html::raw;
use bine_html::tree::{Element, Node, RawMarkup};
use bine_vocabulary as vocabulary;

use super::Trees;
use super::build::TreeBuilder;
use super::charge;
use super::object::TreeContent;
use crate::quickjs::Arguments;
use crate::template::{Hole, Refused};

/// The steps of a tree.
pub(crate) struct Shape {
    steps: Vec<ShapeStep>,
}

enum ShapeStep {
    /// A node without holes, and its size with that of its descendants.
    Constant(Node, usize),
    /// An element with the attributes before its first hole.
    Open(Element, usize),
    /// A constant attribute after a hole.
    Attribute(Cow<'static, str>, String),
    /// A hole, and the name of its attribute.
    Hole(Hole, Cow<'static, str>),
    Close,
}

/// An element that the parser has not closed.
struct UnclosedElement {
    element: Element,
    size: usize,
    /// The steps after the start tag.
    steps: Vec<ShapeStep>,
    is_constant: bool,
}

impl Shape {
    /// Parses the steps; `None` if they are not those of a compiler.
    pub(super) fn parse(steps: &[String]) -> Option<Self> {
        let mut open: Vec<UnclosedElement> = Vec::new();
        let mut roots = Vec::new();
        for step in steps {
            let (kind, rest) = step.split_at_checked(1)?;
            let node = match kind {
                "<" => {
                    let element = Element::new(element_name(rest)).ok()?;
                    let size = charge::ELEMENT;
                    open.push(UnclosedElement {
                        element,
                        size,
                        steps: Vec::new(),
                        is_constant: true,
                    });
                    continue;
                }
                "." => {
                    let (name, value) = rest.split_once(' ')?;
                    open.last_mut()?.attribute(name, value)?;
                    continue;
                }
                ">" => {
                    let closed = open.pop()?;
                    let parent = open.last_mut();
                    let is_constant = closed.is_constant;
                    let steps = match parent {
                        Some(parent) => {
                            parent.is_constant &= is_constant;
                            &mut parent.steps
                        }
                        None => &mut roots,
                    };
                    closed.close(steps);
                    continue;
                }
                "'" => Node::from(rest.to_owned()),
                "\"" => Node::Raw(RawMarkup::trusted(rest.to_owned())),
                "!" => Node::Doctype,
                _ => {
                    let hole = Hole::parse(step)
                        .filter(|hole| !matches!(hole, Hole::HeadEnd | Hole::Captured(_)))?;
                    let name = match &hole {
                        Hole::Attribute(one) | Hole::Action(one) => attribute_name(one.name()),
                        _ => Cow::Borrowed(""),
                    };
                    let steps = match open.last_mut() {
                        Some(element) => {
                            element.is_constant = false;
                            &mut element.steps
                        }
                        None => &mut roots,
                    };
                    steps.push(ShapeStep::Hole(hole, name));
                    continue;
                }
            };
            let size = charge::size_of_node(&node);
            let steps = open.last_mut().map_or(&mut roots, |element| &mut element.steps);
            steps.push(ShapeStep::Constant(node, size));
        }
        open.is_empty().then_some(Self { steps: roots })
    }

    /// The tree with these values: argument 0 is the shape itself.
    pub(super) fn fill(
        &self,
        trees: &Trees,
        arguments: &Arguments<'_, '_>,
    ) -> Result<TreeContent, Refused> {
        let mut builder = TreeBuilder::new(trees);
        let mut index = 0;
        for step in &self.steps {
            match step {
                ShapeStep::Constant(node, size) => builder.push(node.clone(), *size)?,
                ShapeStep::Open(element, size) => builder.open(element.clone(), *size)?,
                ShapeStep::Attribute(name, value) => builder.set(name.clone(), value.clone())?,
                ShapeStep::Close => builder.close(),
                ShapeStep::Hole(hole, name) => {
                    index += 1;
                    let value = arguments.at(index);
                    match hole {
                        Hole::Content => builder.content(&value)?,
                        Hole::Text => builder.plain(&value)?,
                        Hole::RawText => builder.code(&value)?,
                        Hole::Attribute(one) => builder.attribute(name.clone(), one, &value)?,
                        Hole::Action(one) => builder.action(name.clone(), one, &value)?,
                        Hole::Spread { element, written } => {
                            builder.spread(&value, element, written)?;
                        }
                        Hole::HeadEnd | Hole::Captured(_) => {}
                    }
                }
            }
        }
        builder.finish()
    }
}

impl UnclosedElement {
    fn attribute(&mut self, name: &str, value: &str) -> Option<()> {
        let name = attribute_name(name);
        self.size += charge::size_of_attribute(&name, value);
        if self.steps.is_empty() {
            self.element.set_code(name, raw(value)).ok()
        } else {
            self.steps.push(ShapeStep::Attribute(name, value.to_owned()));
            Some(())
        }
    }

    /// Adds the element to the steps of its parent.
    fn close(mut self, steps: &mut Vec<ShapeStep>) {
        if !self.is_constant {
            steps.push(ShapeStep::Open(self.element, self.size));
            steps.append(&mut self.steps);
            steps.push(ShapeStep::Close);
            return;
        }
        let mut size = self.size;
        for step in self.steps {
            if let ShapeStep::Constant(node, more) = step {
                self.element.push(node);
                size += more;
            }
        }
        steps.push(ShapeStep::Constant(self.element.into(), size));
    }
}

/// The name of an element. A name of the standard needs no memory.
pub(super) fn element_name(name: &str) -> Cow<'static, str> {
    match vocabulary::element(name) {
        Some(known) if known.name == name => Cow::Borrowed(known.name),
        _ => Cow::Owned(name.to_owned()),
    }
}

/// The name of an attribute. A frequent one needs no memory.
fn attribute_name(name: &str) -> Cow<'static, str> {
    const FREQUENT: [&str; 20] = [
        "action", "alt", "class", "content", "datetime", "disabled", "for", "height", "hidden",
        "href", "id", "lang", "method", "name", "rel", "src", "style", "title", "type", "value",
    ];
    match FREQUENT.iter().find(|known| **known == name) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(name.to_owned()),
    }
}
