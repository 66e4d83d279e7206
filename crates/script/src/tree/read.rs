//! Reading trees: search by selector, the nodes in order, text and attributes.

use std::cell::RefCell;

use bine_html::Tree;
use bine_html::tree::{Element, Node};
use rquickjs::{Object, Value};

use super::Trees;
use super::arguments::{Failure, new_text, text_argument, tree_argument};
use super::object::TreeObject;
use crate::quickjs::{self, Arguments};

/// `find(tree, selector)`.
pub(super) fn find<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let (tree, selector) = (arguments.at(0), selector(arguments, "find")?);
    let object = tree_argument(trees, &tree)?;
    let found = object.content().tree.find(&*selector).map_err(Failure::of)?.cloned();
    match found {
        Some(element) => Ok(object.found(trees, arguments.ctx(), element.into())?),
        None => Ok(Value::new_null(arguments.ctx().clone())),
    }
}

/// `findAll(tree, selector)`.
pub(super) fn find_all<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let (tree, selector) = (arguments.at(0), selector(arguments, "findAll")?);
    let object = tree_argument(trees, &tree)?;
    let shared = object.share().tree;
    let mut found = Vec::new();
    for element in shared.find_all(&*selector).map_err(Failure::of)? {
        found.push(object.found(trees, arguments.ctx(), element.clone().into())?);
    }
    Ok(quickjs::new_array(arguments.ctx(), found)?)
}

/// The selector of a method, which is its first argument.
pub(super) fn selector(arguments: &Arguments<'_, '_>, method: &str) -> Result<String, Failure> {
    text_argument(&arguments.at(1), || {
        format!("`{method}` takes a selector, as in tree.{method}(\"main > h2\")")
    })
}

/// `children(element)`.
pub(super) fn children<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let tree = arguments.at(0);
    let object = tree_argument(trees, &tree)?;
    let element = element_of(object)?;
    let mut nodes = Vec::new();
    for node in element.children() {
        nodes.push(object.found(trees, arguments.ctx(), node.clone())?);
    }
    Ok(quickjs::new_array(arguments.ctx(), nodes)?)
}

/// The only element of a tree.
pub(super) fn element_of(object: &TreeObject) -> Result<Element, Failure> {
    let content = object.content();
    content.element().cloned().ok_or_else(|| {
        let count = content.tree.roots().len();
        let has = match content.tree.roots() {
            [node] => format!("is {}", kind_of(node).1),
            _ => format!("has {count} nodes"),
        };
        Failure::misuse(format!("this needs one element, as `find` returns it, but the tree {has}"))
    })
}

/// The kind of a node, as `kind` returns it and in words.
const fn kind_of(node: &Node) -> (&'static str, &'static str) {
    match node {
        Node::Element(_) => ("element", "an element"),
        Node::Text(_) => ("text", "text"),
        Node::Raw(_) => ("markup", "markup that was written elsewhere"),
        Node::Comment(_) => ("comment", "a comment"),
        Node::Doctype => ("doctype", "a doctype"),
        Node::Custom(_) => ("node", "a node of its own"),
    }
}

/// `kind(tree)`: the kind of its only node, or `list`.
pub(super) fn kind<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let tree = arguments.at(0);
    let content = tree_argument(trees, &tree)?.content();
    let kind = match content.tree.roots() {
        [node] => kind_of(node).0,
        _ => "list",
    };
    new_text(arguments.ctx(), kind)
}

/// `name(element)`.
pub(super) fn name<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let tree = arguments.at(0);
    let content = tree_argument(trees, &tree)?.content();
    match content.element() {
        Some(element) => new_text(arguments.ctx(), element.name()),
        None => Ok(Value::new_null(arguments.ctx().clone())),
    }
}

/// `attribute(element, name)`.
pub(super) fn attribute<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let tree = arguments.at(0);
    let element = element_of(tree_argument(trees, &tree)?)?;
    let name = attribute_argument(arguments, "attribute")?;
    match element.attribute(&name) {
        Some(value) => new_text(arguments.ctx(), value),
        None => Ok(Value::new_null(arguments.ctx().clone())),
    }
}

/// The name of an attribute, which is the second argument of a method.
pub(super) fn attribute_argument(
    arguments: &Arguments<'_, '_>,
    method: &str,
) -> Result<String, Failure> {
    text_argument(&arguments.at(1), || {
        format!("`{method}` takes the name of an attribute, as in element.{method}(\"href\")")
    })
}

/// `attributes(element)`: an object.
pub(super) fn attributes<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let (tree, ctx) = (arguments.at(0), arguments.ctx());
    let element = element_of(tree_argument(trees, &tree)?)?;
    let found = Object::new(ctx.clone()).map_err(|_| Failure::Thrown)?;
    for (name, value) in element.attributes() {
        quickjs::define(found.as_value(), name, &new_text(ctx, value)?)?;
    }
    Ok(found.into_value())
}

/// `text(tree)`.
pub(super) fn text<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let tree = arguments.at(0);
    let text = tree_argument(trees, &tree)?.content().tree.text();
    new_text(arguments.ctx(), &text)
}

/// `findings(tree)`: an array of messages.
pub(super) fn findings<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let (tree, ctx) = (arguments.at(0), arguments.ctx());
    let findings = tree_argument(trees, &tree)?.content().tree.findings();
    let messages: Result<Vec<_>, _> =
        findings.iter().map(|finding| new_text(ctx, &finding.message)).collect();
    Ok(quickjs::new_array(ctx, messages?)?)
}

/// `isDocument(tree)`: whether it is a whole page.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all natives")]
pub(super) fn is_document<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let tree = arguments.at(0);
    let is_html = |node: &Node| node.as_element().is_some_and(|root| root.name() == "html");
    let object = trees.classes().tree.read(&tree);
    let is_document =
        object.is_some_and(|object| object.content().tree.roots().iter().any(is_html));
    Ok(Value::new_bool(arguments.ctx().clone(), is_document))
}

/// `isTree(value)`.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all natives")]
pub(super) fn is_tree<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let is_tree = trees.classes().tree.read(&arguments.at(0)).is_some();
    Ok(Value::new_bool(arguments.ctx().clone(), is_tree))
}

/// The place of a walk through a tree.
pub(crate) struct Cursor(RefCell<CursorState>);

struct CursorState {
    tree: Tree,
    /// The ancestors of the next node, with the numbers of visited children.
    open: Vec<(Element, usize)>,
    /// The roots that were visited.
    roots: usize,
}

impl CursorState {
    fn next(&mut self) -> Option<Node> {
        let node = loop {
            match self.open.last_mut() {
                Some((element, visited)) => match element.children().get(*visited) {
                    Some(node) => {
                        *visited += 1;
                        break node.clone();
                    }
                    None => drop(self.open.pop()),
                },
                None => {
                    self.roots += 1;
                    break self.tree.roots().get(self.roots - 1)?.clone();
                }
            }
        };
        if let Node::Element(element) = &node {
            self.open.push((element.clone(), 0));
        }
        Some(node)
    }
}

/// `beginWalk(tree)`: a cursor.
pub(super) fn begin_walk<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let value = arguments.at(0);
    let tree = tree_argument(trees, &value)?.share().tree;
    let state = CursorState { tree, open: Vec::new(), roots: 0 };
    Ok(trees.classes().cursor.create(arguments.ctx(), Cursor(RefCell::new(state)))?)
}

/// `step(cursor, tree)`: the next node, or undefined.
pub(super) fn step<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let (cursor, tree) = (arguments.at(0), arguments.at(1));
    let cursor = trees.classes().cursor.read(&cursor);
    let cursor = cursor.ok_or_else(|| Failure::misuse("this is no walk".to_owned()))?;
    let node = cursor.0.borrow_mut().next();
    match node {
        Some(node) => {
            let object = tree_argument(trees, &tree)?;
            Ok(object.found(trees, arguments.ctx(), node)?)
        }
        None => Ok(Value::new_undefined(arguments.ctx().clone())),
    }
}
