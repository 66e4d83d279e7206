//! Writes trees: as HTML in a page, by the functions of a writer, and without nodes of the script.
//!
//! The traversal needs no recursion, however deep the tree is. A node of the script runs its function,
//! which may return further trees; [`NodeLevel`] bounds these.

use std::slice;

use bine_html::tree::{Element, Expand, Node, Polyglot, Subtree, TreeWriter as _};
use bine_html::{Page as _, Tree, Writer};
use rquickjs::{Ctx, Function, Value};

use super::Trees;
use super::build::TreeBuilder;
use super::node::{NodeLevel, ScriptNode};
use super::object::{TreeContent, TreeObject};
use crate::markup::mark_head_end;
use crate::quickjs::{self, Kind, Thrown};
use crate::template::{self, Refused};

/// The page format that the functions of nodes receive.
pub(super) const HTML: &str = "html";

/// The functions of a writer. A missing function and the result `undefined` keep the default markup.
#[derive(Default)]
pub(super) struct Overrides<'js> {
    /// The number of the function for each element in document order, from 1; 0: no function.
    pub(super) matched: Vec<u16>,
    pub(super) elements: Vec<Function<'js>>,
    pub(super) text: Option<Function<'js>>,
    pub(super) comment: Option<Function<'js>>,
    pub(super) node: Option<Function<'js>>,
}

/// Writes a tree where a page shows it.
pub(super) fn in_place(
    trees: &Trees,
    ctx: &Ctx<'_>,
    object: &TreeObject,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    if let Some(markup) = object.kept() {
        out.extend_from_slice(&markup);
        return Ok(());
    }
    // A function of a node may change the object.
    let content = object.share();
    let start = out.len();
    if !content.has_custom && !content.tree.is_whole() {
        // Without a head and functions of the script, the writer of trees is faster.
        content.tree.write_with(Polyglot, &mut Writer::new(out));
        template::check_length(trees.holes(), out)?;
        object.keep(trees, &out[start..]);
        return Ok(());
    }
    write(trees, ctx, object, &content.tree, &Overrides::default(), out)?;
    if !content.has_custom {
        object.keep(trees, &out[start..]);
    }
    Ok(())
}

/// An element whose content is being written.
struct WrittenElement<'t> {
    element: &'t Element,
    /// The siblings after it.
    siblings: slice::Iter<'t, Node>,
    /// Where its markup begins.
    start: usize,
    /// The number of its function, from 1; 0: no function.
    function: u16,
}

/// Writes a tree as HTML. `object` is the tree around the elements that functions get.
pub(super) fn write<'js>(
    trees: &Trees,
    ctx: &Ctx<'js>,
    object: &TreeObject,
    tree: &Tree,
    overrides: &Overrides<'js>,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    let mut open: Vec<WrittenElement<'_>> = Vec::new();
    let mut siblings = tree.roots().iter();
    let mut visited = 0;
    loop {
        let Some(node) = siblings.next() else {
            let Some(closed) = open.pop() else { return Ok(()) };
            match closed.function {
                0 => close(closed.element, out),
                _ => replace_element(trees, ctx, object, overrides, &closed, out)?,
            }
            siblings = closed.siblings;
            continue;
        };
        match node {
            Node::Element(element) => {
                let function = overrides.matched.get(visited).copied().unwrap_or(0);
                visited += 1;
                let start = out.len();
                if function == 0 && Polyglot.open(element, &mut Writer::new(out)) == Subtree::Skip {
                    visited += skipped_elements(element, overrides);
                    continue;
                }
                let inside = element.children().iter();
                let siblings_after = std::mem::replace(&mut siblings, inside);
                open.push(WrittenElement { element, siblings: siblings_after, start, function });
            }
            Node::Text(text) => {
                if !is_replaced(trees, ctx, overrides.text.as_ref(), text, out)? {
                    template::escape(text, out);
                }
            }
            Node::Raw(markup) => out.extend_from_slice(markup.as_str().as_bytes()),
            Node::Comment(text) => {
                if !is_replaced(trees, ctx, overrides.comment.as_ref(), text, out)? {
                    Polyglot.comment(text, &mut Writer::new(out));
                }
            }
            Node::Doctype => Polyglot.doctype(&mut Writer::new(out)),
            Node::Custom(node) => write_custom(trees, ctx, &**node, overrides, out)?,
        }
        template::check_length(trees.holes(), out)?;
    }
}

fn close(element: &Element, out: &mut Vec<u8>) {
    if element.name() == "head" {
        mark_head_end(out);
    }
    Polyglot.close(element, &mut Writer::new(out));
}

/// The elements in an element whose content was not visited.
fn skipped_elements(element: &Element, overrides: &Overrides<'_>) -> usize {
    if overrides.matched.is_empty() || element.children().is_empty() {
        return 0;
    }
    Tree::from(element.clone()).walk().filter(|node| node.as_element().is_some()).count() - 1
}

/// Writes an element, whose content is written already, by the function of a writer.
fn replace_element<'js>(
    trees: &Trees,
    ctx: &Ctx<'js>,
    object: &TreeObject,
    overrides: &Overrides<'js>,
    closed: &WrittenElement<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    let content = out.split_off(closed.start);
    let Some(function) = overrides.elements.get(usize::from(closed.function) - 1) else {
        return Ok(());
    };
    let element = object.found(trees, ctx, closed.element.clone().into())?;
    let markup = trees.classes().markup.create(ctx, &content);
    let markup = markup.map_err(|Thrown| Refused::PENDING)?;
    let result = call(function, (element, markup))?;
    if quickjs::kind(&result) != Kind::Undefined {
        return write_result(trees, &result, out);
    }
    if Polyglot.open(closed.element, &mut Writer::new(out)) == Subtree::Visit {
        out.extend_from_slice(&content);
        close(closed.element, out);
    }
    Ok(())
}

/// Writes text by the function of a writer. Returns whether it has done so.
fn is_replaced<'js>(
    trees: &Trees,
    ctx: &Ctx<'js>,
    function: Option<&Function<'js>>,
    text: &str,
    out: &mut Vec<u8>,
) -> Result<bool, Refused> {
    let Some(function) = function else { return Ok(false) };
    let text = rquickjs::String::from_str(ctx.clone(), text).map_err(|_| Refused::PENDING)?;
    let result = call(function, (text,))?;
    if quickjs::kind(&result) == Kind::Undefined {
        return Ok(false);
    }
    write_result(trees, &result, out)?;
    Ok(true)
}

/// Writes a node of the script or of the host.
fn write_custom<'js>(
    trees: &Trees,
    ctx: &Ctx<'js>,
    node: &dyn Expand,
    overrides: &Overrides<'js>,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    let Some(node) = ScriptNode::of(node) else {
        out.extend_from_slice(node.expand().to_string().as_bytes());
        return Ok(());
    };
    let _level = NodeLevel::enter(trees)?;
    if let Some(function) = &overrides.node {
        let content = node.content(trees, ctx)?;
        let part = |index| match quickjs::element(&content, index) {
            Ok(quickjs::Property::Value(part)) => Ok(part),
            _ => Err(Refused::PENDING),
        };
        let result = call(function, (part(0)?, part(1)?))?;
        if quickjs::kind(&result) != Kind::Undefined {
            return write_result(trees, &result, out);
        }
    }
    let shown = node.shown(trees, ctx, HTML)?;
    template::write_content(&shown, trees.holes(), out, 0)
}

fn call<'js>(
    function: &Function<'js>,
    arguments: impl rquickjs::function::IntoArgs<'js>,
) -> Result<Value<'js>, Refused> {
    function.call(arguments).map_err(|_| Refused::PENDING)
}

/// Writes the result of a function of a writer.
fn write_result(trees: &Trees, result: &Value<'_>, out: &mut Vec<u8>) -> Result<(), Refused> {
    if quickjs::kind(result) == Kind::Promise {
        return Err(Refused("the functions of a writer must not be async".to_owned()));
    }
    template::write_content(result, trees.holes(), out, 0)
}

/// The tree of an object with its custom nodes expanded.
pub(super) fn expanded(
    trees: &Trees,
    ctx: &Ctx<'_>,
    object: &TreeObject,
    format: &str,
) -> Result<TreeContent, Refused> {
    let content = object.share();
    if !content.has_custom {
        return Ok(content);
    }
    TreeContent::measured(trees, expand(trees, ctx, &content.tree, format)?)
}

/// An element whose children are visited.
struct VisitedElement<'t> {
    element: &'t Element,
    siblings: slice::Iter<'t, Node>,
    /// The siblings up to the element, if one of them has changed.
    changed: Option<Vec<Node>>,
    /// The number of siblings before the element.
    index: usize,
}

/// Replaces the nodes of the script. Elements without one are shared.
fn expand(trees: &Trees, ctx: &Ctx<'_>, tree: &Tree, format: &str) -> Result<Tree, Refused> {
    let mut open: Vec<VisitedElement<'_>> = Vec::new();
    let mut all = tree.roots();
    let (mut siblings, mut index) = (all.iter(), 0);
    let mut changed: Option<Vec<Node>> = None;
    loop {
        let Some(node) = siblings.next() else {
            let Some(outer) = open.pop() else {
                return Ok(changed.map_or_else(|| tree.clone(), Tree::from));
            };
            let inner = changed.take();
            all = open.last().map_or(tree.roots(), |parent| parent.element.children());
            (siblings, changed, index) = (outer.siblings, outer.changed, outer.index);
            let element = match inner {
                Some(children) => {
                    changed.get_or_insert_with(|| all[..index].to_vec());
                    let mut element = outer.element.clone();
                    *element.children_mut() = children;
                    element
                }
                None => outer.element.clone(),
            };
            if let Some(nodes) = &mut changed {
                nodes.push(element.into());
            }
            index += 1;
            continue;
        };
        match node {
            Node::Element(element) if !element.children().is_empty() => {
                let inside = element.children();
                let siblings_after = std::mem::replace(&mut siblings, inside.iter());
                let changed = changed.take();
                open.push(VisitedElement { element, siblings: siblings_after, changed, index });
                (all, index) = (inside, 0);
                continue;
            }
            Node::Custom(custom) => {
                let nodes = changed.get_or_insert_with(|| all[..index].to_vec());
                nodes.extend(shown_nodes(trees, ctx, &**custom, format)?.roots().iter().cloned());
            }
            other => {
                if let Some(nodes) = &mut changed {
                    nodes.push(other.clone());
                }
            }
        }
        index += 1;
    }
}

/// The nodes that a custom node shows.
fn shown_nodes(
    trees: &Trees,
    ctx: &Ctx<'_>,
    custom: &dyn Expand,
    format: &str,
) -> Result<Tree, Refused> {
    let Some(node) = ScriptNode::of(custom) else { return Ok(custom.expand()) };
    let _level = NodeLevel::enter(trees)?;
    let shown = node.shown(trees, ctx, format)?;
    let mut builder = TreeBuilder::new(trees);
    builder.content(&shown)?;
    let content = builder.finish()?;
    if content.has_custom {
        return expand(trees, ctx, &content.tree, format);
    }
    Ok(content.tree)
}
