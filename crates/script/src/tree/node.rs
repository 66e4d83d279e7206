//! Nodes of a script: a function that writes them when their tree is written.

use std::any::Any;
use std::cell::Cell;

use bine_html::Tree;
use bine_html::tree::{Expand, Node};
use rquickjs::{Ctx, Value};

use super::Trees;
use crate::quickjs::{self, Kind};
use crate::template::Refused;
use crate::value::Function;

/// The maximum number of nodes in one instance. More nodes end the instance like the limit of memory,
/// since their cause is a leak: the engine cannot free a node whose function refers to the tree that
/// contains the node.
pub(crate) const MAX_NODES: usize = 65_536;

/// Nodes that are written within each other, as in trees of Rust.
const MAX_DEPTH: u32 = 32;

/// A node of a script. Its function takes the format and returns the content of the node; without an
/// argument, it returns the kind and the data of the node.
#[derive(Debug)]
pub(super) struct ScriptNode {
    pub(super) function: Function,
}

impl Expand for ScriptNode {
    /// An empty tree: only the instance can call the function, and it expands each tree that it passes
    /// to the host.
    fn expand(&self) -> Tree {
        Tree::new()
    }
}

impl ScriptNode {
    /// The node of a script in a custom node, if it is one.
    pub(super) fn of(node: &dyn Expand) -> Option<&Self> {
        (node as &dyn Any).downcast_ref()
    }

    /// The content of the node.
    pub(super) fn shown<'js>(
        &self,
        trees: &Trees,
        ctx: &Ctx<'js>,
        format: &str,
    ) -> Result<Value<'js>, Refused> {
        let format =
            rquickjs::String::from_str(ctx.clone(), format).map_err(|_| Refused::PENDING)?;
        let shown = self.call(trees, ctx, (format,))?;
        if quickjs::kind(&shown) == Kind::Promise {
            let reason = "the function of a node must not be async: await before the tree is made";
            return Err(Refused(reason.to_owned()));
        }
        Ok(shown)
    }

    /// The kind of the node and its data, in an array.
    pub(super) fn content<'js>(
        &self,
        trees: &Trees,
        ctx: &Ctx<'js>,
    ) -> Result<Value<'js>, Refused> {
        self.call(trees, ctx, ())
    }

    fn call<'js>(
        &self,
        trees: &Trees,
        ctx: &Ctx<'js>,
        arguments: impl rquickjs::function::IntoArgs<'js>,
    ) -> Result<Value<'js>, Refused> {
        let restored = trees.nodes.borrow().restore(ctx, &self.function);
        let foreign = || Refused("a page cannot show a node of another instance".to_owned());
        restored.ok_or_else(foreign)?.call(arguments).map_err(|_| Refused::PENDING)
    }
}

/// One more level of nodes within each other, until it is dropped.
pub(super) struct NodeLevel<'s>(&'s Cell<u32>);

impl<'s> NodeLevel<'s> {
    pub(super) fn enter(trees: &'s Trees) -> Result<Self, Refused> {
        let depth = &trees.depth;
        if depth.get() >= MAX_DEPTH {
            return Err(Refused(format!(
                "nodes are written within each other more than {MAX_DEPTH} levels deep: does one write itself?"
            )));
        }
        depth.set(depth.get() + 1);
        Ok(Self(depth))
    }
}

impl Drop for NodeLevel<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Whether a tree has custom nodes.
pub(super) fn has_custom(tree: &Tree) -> bool {
    tree.walk().any(|node| matches!(node, Node::Custom(_)))
}
