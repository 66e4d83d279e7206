//! Trees of markup in scripts: objects of the engine that own a tree of the crate `html`.
//!
//! Compiled markup registers a [shape](shape::Shape) once and fills its holes for each tree. All
//! nodes are in the memory of the host; their bytes count against the limit of the instance
//! ([`charge`]). A node of a script ([`node`]) is a function that runs when its tree is written.

mod arguments;
mod build;
mod change;
mod charge;
mod functions;
mod node;
mod object;
mod read;
mod shape;
mod write;

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use bine_html::Tree;
use rquickjs::{Ctx, Object, Value};

use crate::functions::Functions;
use crate::quickjs::{MarkupClass, Memory, ObjectClass, Thrown};
use crate::template::{Holes, Refused, TreeHoles};

pub(crate) use arguments::Native;
pub(crate) use functions::FUNCTIONS;
use object::{TreeContent, TreeObject};
use read::Cursor;
use shape::Shape;

/// The trees of one instance.
pub(crate) struct Trees {
    memory: Rc<Memory>,
    /// The limit of memory.
    limit: usize,
    classes: OnceCell<TreeClasses>,
    shapes: RefCell<Vec<Rc<Shape>>>,
    /// Bytes of all shapes.
    shape_bytes: Cell<usize>,
    /// The functions of nodes.
    nodes: RefCell<Functions>,
    /// Nodes that are being written within each other.
    depth: Cell<u32>,
    /// Whether the script runs for a call that has a context.
    is_in_call: Cell<bool>,
}

/// The classes of one engine.
#[derive(Clone, Copy)]
struct TreeClasses {
    markup: MarkupClass,
    tree: ObjectClass<TreeObject>,
    cursor: ObjectClass<Cursor>,
}

impl Trees {
    pub(crate) fn new(memory: &Rc<Memory>, limit: usize) -> Self {
        Self {
            memory: Rc::clone(memory),
            limit,
            classes: OnceCell::new(),
            shapes: RefCell::default(),
            shape_bytes: Cell::default(),
            nodes: RefCell::new(Functions::new(node::MAX_NODES)),
            depth: Cell::default(),
            is_in_call: Cell::default(),
        }
    }

    /// Registers the classes in a new engine.
    pub(crate) fn register(&self, ctx: &Ctx<'_>, markup: MarkupClass) -> Result<(), Thrown> {
        let prototype = Object::new(ctx.clone()).map_err(|_| Thrown)?;
        let tree = ObjectClass::register(ctx, c"Tree", Some(&prototype))?;
        let cursor = ObjectClass::register(ctx, c"TreeWalk", None)?;
        // The instance is new, so the cell is empty.
        let _ = self.classes.set(TreeClasses { markup, tree, cursor });
        Ok(())
    }

    /// Whether the script runs for a call that has a context, so that a tree belongs to one request.
    pub(crate) fn set_in_call(&self, is_in_call: bool) {
        self.is_in_call.set(is_in_call);
    }

    /// The tree of a value; `None` if it is no tree.
    ///
    /// # Errors
    ///
    /// It has nodes of the script, which only the script can write.
    pub(crate) fn read(&self, value: &Value<'_>) -> Option<Result<Tree, &'static str>> {
        let object = self.classes().tree.read(value)?;
        let content = object.content();
        if content.has_custom && node::has_custom(&content.tree) {
            return Some(Err("a tree with nodes of its own, which only the script can write"));
        }
        Some(Ok(content.tree.clone()))
    }

    /// A tree of the host as an object of the script.
    pub(crate) fn create<'js>(&self, ctx: &Ctx<'js>, tree: Tree) -> Result<Value<'js>, Refused> {
        TreeObject::create(self, ctx, TreeContent::measured(self, tree)?)
    }

    /// Drops every reference to functions of the script.
    pub(crate) fn clear(&self) {
        self.nodes.borrow_mut().clear();
        self.shapes.borrow_mut().clear();
    }

    /// Forgets the functions of nodes that no tree has any more.
    pub(crate) fn free_released(&self) {
        self.nodes.borrow_mut().free_released();
    }

    fn classes(&self) -> TreeClasses {
        // Invariant: the classes are registered before any script or conversion runs.
        *self.classes.get().expect("the classes are registered at the start")
    }

    fn holes(&self) -> Holes<'_> {
        let markup = self.classes().markup;
        Holes { markup, trees: self, captures: None, limit: self.limit }
    }
}

impl TreeHoles for Trees {
    fn is_tree(&self, value: &Value<'_>) -> bool {
        self.classes().tree.read(value).is_some()
    }

    fn write(&self, tree: &Value<'_>, out: &mut Vec<u8>) -> Result<(), Refused> {
        match self.classes().tree.read(tree) {
            Some(object) => write::in_place(self, tree.ctx(), object, out),
            None => Ok(()),
        }
    }
}
