//! [`TreeObject`]: the tree that an object of a script owns.

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;

use bine_html::Tree;
use bine_html::tree::{Element, Node};
use rquickjs::{Ctx, Value};

use super::charge::{self, Charge, Charges};
use super::{Trees, node};
use crate::host_error::HostError;
use crate::quickjs::Thrown;
use crate::template::Refused;

/// Bytes of an object in the engine and of its tree, without nodes.
const OBJECT: usize = 256;

/// Changes of one element after which its tree is measured.
const MAX_CHANGES: usize = 64;

/// Bytes of one tree as if it shared no node, however much memory the script has: a function of a tree
/// visits each node and is not interrupted.
const MAX_SIZE: usize = 64 << 20;

/// A tree of a script. Clones share its nodes until a change.
pub(crate) struct TreeObject {
    content: RefCell<TreeContent>,
    access: Cell<Access>,
    /// Whether a function of the script changes an element of the tree.
    is_changing: Cell<bool>,
    _charge: Charge,
}

/// A tree with what is known about it.
#[derive(Clone)]
pub(super) struct TreeContent {
    pub(super) tree: Tree,
    /// The bytes of the tree as if it shared no node; `None` if they are not known yet.
    size: Option<usize>,
    /// Whether it may have custom nodes.
    pub(super) has_custom: bool,
    pub(super) charges: Charges,
    written: Written,
}

/// The markup of a tree that is written again and again.
#[derive(Clone)]
enum Written {
    Never,
    Once,
    Kept(Rc<[u8]>, #[expect(dead_code, reason = "counts until it is dropped")] Rc<Charge>),
}

/// The code that may change a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Code of the call that has made it, or any code of a module that is being loaded.
    Own,
    /// Read-only once the module is loaded: all requests share it.
    OfModule,
    /// Read-only: the script has found it in a tree.
    Found,
    /// Read-only: the function of `change` that got it has returned.
    Ended,
}

impl TreeContent {
    pub(super) fn new(tree: Tree, size: usize, charges: Charges, has_custom: bool) -> Self {
        Self { tree, size: Some(size), has_custom, charges, written: Written::Never }
    }

    /// A tree of the host or of nodes whose bytes are not counted yet.
    pub(super) fn measured(trees: &Trees, tree: Tree) -> Result<Self, Refused> {
        let size = charge::size_of_tree(&tree);
        check_size(trees, size)?;
        let charges = vec![Rc::new(reserve(trees, size)?)];
        let has_custom = node::has_custom(&tree);
        Ok(Self::new(tree, size, charges, has_custom))
    }

    /// The bytes of the tree as if it shared no node.
    pub(super) fn size(&mut self) -> usize {
        *self.size.get_or_insert_with(|| charge::size_of_tree(&self.tree))
    }

    /// A tree without nodes.
    pub(super) fn empty() -> Self {
        Self::new(Tree::new(), 0, Vec::new(), false)
    }

    /// A part of this tree as a separate tree.
    fn part(&self, node: Node) -> Self {
        let (tree, charges) = (Tree::from(node), self.charges.clone());
        let has_custom = self.has_custom;
        Self { tree, size: None, has_custom, charges, written: Written::Never }
    }

    /// The only node, if it is an element.
    pub(super) fn element(&self) -> Option<&Element> {
        match self.tree.roots() {
            [node] => node.as_element(),
            _ => None,
        }
    }
}

/// Reserves memory for nodes.
pub(super) fn reserve(trees: &Trees, bytes: usize) -> Result<Charge, Refused> {
    let charge = Charge::new(&trees.memory, bytes);
    charge.ok_or_else(|| Refused("a tree larger than the memory of the script".to_owned()))
}

/// Rejects a tree that would take longer to traverse than the memory of the script allows.
pub(super) fn check_size(trees: &Trees, size: usize) -> Result<(), Refused> {
    if size <= trees.limit.min(MAX_SIZE) {
        return Ok(());
    }
    Err(Refused("a tree larger than the memory of the script".to_owned()))
}

impl TreeObject {
    /// An object of the script with this tree.
    pub(super) fn create<'js>(
        trees: &Trees,
        ctx: &Ctx<'js>,
        content: TreeContent,
    ) -> Result<Value<'js>, Refused> {
        let is_loading = !trees.is_in_call.get();
        let access = if is_loading { Access::OfModule } else { Access::Own };
        Self::create_with(trees, ctx, content, access)
    }

    pub(super) fn create_with<'js>(
        trees: &Trees,
        ctx: &Ctx<'js>,
        content: TreeContent,
        access: Access,
    ) -> Result<Value<'js>, Refused> {
        let object = Self {
            content: RefCell::new(content),
            access: Cell::new(access),
            is_changing: Cell::new(false),
            _charge: reserve(trees, OBJECT)?,
        };
        trees.classes().tree.create(ctx, object).map_err(|Thrown| Refused::PENDING)
    }

    /// A node of this tree as an object that cannot be changed.
    pub(super) fn found<'js>(
        &self,
        trees: &Trees,
        ctx: &Ctx<'js>,
        node: Node,
    ) -> Result<Value<'js>, Refused> {
        Self::create_with(trees, ctx, self.part(node), Access::Found)
    }

    /// A node of this tree as a separate tree.
    pub(super) fn part(&self, node: Node) -> TreeContent {
        self.content.borrow().part(node)
    }

    /// The tree. No function that runs code of the script may hold it.
    pub(super) fn content(&self) -> Ref<'_, TreeContent> {
        self.content.borrow()
    }

    /// A clone of the tree, which shares its nodes.
    pub(super) fn share(&self) -> TreeContent {
        // The bytes are counted once for all clones.
        self.content.borrow_mut().size();
        TreeContent { written: Written::Never, ..self.content.borrow().clone() }
    }

    /// Why the tree cannot be changed.
    pub(super) fn check_access(&self, trees: &Trees) -> Result<(), HostError> {
        let reason = match self.access.get() {
            _ if self.is_changing.get() => {
                "the tree is being changed: change the element that the function of `change` gets"
            }
            Access::OfModule if trees.is_in_call.get() => {
                "this tree was made while the module was loaded, and all requests share it: change a \
                 `clone()` of it"
            }
            Access::Found => {
                "an element that was found is for reading: change it by \
                 `tree.change(selector, (element) => ..)`, or change a `clone()` of it"
            }
            Access::Ended => {
                "the `change` that has passed this element has ended: change it within the function"
            }
            Access::Own | Access::OfModule => return Ok(()),
        };
        Err(HostError::Type(reason.to_owned()))
    }

    /// Ends the access of the function to which the element was passed.
    pub(super) fn end_access(&self) {
        self.access.set(Access::Ended);
    }

    /// Takes the tree out of an object that is not used any more.
    pub(super) fn take(&self) -> TreeContent {
        self.content.replace(TreeContent::empty())
    }

    /// Changes the tree in place. `size` is at least the size of the result.
    pub(super) fn change<T>(
        &self,
        trees: &Trees,
        size: usize,
        has_custom: bool,
        change: impl FnOnce(&mut Tree) -> T,
    ) -> Result<T, Refused> {
        check_size(trees, size)?;
        let mut content = self.content.borrow_mut();
        // Shared nodes are copied.
        let is_shared = content.charges.iter().any(|charge| Rc::strong_count(charge) > 1);
        let counted = if is_shared { 0 } else { content.size() };
        let charge = reserve(trees, size.saturating_sub(counted))?;
        content.written = Written::Never;
        let result = change(&mut content.tree);
        // Removed nodes and repeated changes would let an estimate grow without end.
        let size = charge::size_of_tree(&content.tree);
        content.size = Some(size);
        content.has_custom |= has_custom;
        drop(charge);
        content.charges.clear();
        content.charges.push(Rc::new(reserve(trees, size)?));
        Ok(result)
    }

    /// Changes the only element of the tree in place, without its content. `more`: the bytes that are
    /// added. The tree is not measured, since the functions of a `change` may get each element of a
    /// deep tree.
    pub(super) fn change_element<T>(
        &self,
        trees: &Trees,
        more: usize,
        has_custom: bool,
        change: impl FnOnce(&mut Element) -> T,
    ) -> Result<Option<T>, Refused> {
        let charge = reserve(trees, more)?;
        let mut content = self.content.borrow_mut();
        let size = content.size.map(|size| size.saturating_add(more));
        check_size(trees, size.unwrap_or(more))?;
        content.written = Written::Never;
        content.size = size;
        content.has_custom |= has_custom;
        content.charges.push(Rc::new(charge));
        let root = content.tree.roots_mut().first_mut();
        let result = root.and_then(|node| node.as_element_mut()).map(change);
        if content.charges.len() > MAX_CHANGES {
            let size = charge::size_of_tree(&content.tree);
            content.size = Some(size);
            content.charges.clear();
            content.charges.push(Rc::new(reserve(trees, size)?));
        }
        Ok(result)
    }

    /// Replaces the tree by a changed clone of it.
    pub(super) fn replace(&self, trees: &Trees, tree: Tree) -> Result<(), Refused> {
        check_size(trees, charge::size_of_tree(&tree))?;
        // Both trees share most nodes, which count once.
        drop(self.take());
        self.content.replace(TreeContent::measured(trees, tree)?);
        Ok(())
    }

    /// Marks the tree as being changed by a function of the script while `run` runs.
    pub(super) fn while_changing<T>(&self, run: impl FnOnce() -> T) -> T {
        self.is_changing.set(true);
        let result = run();
        self.is_changing.set(false);
        result
    }

    /// The markup, if it is kept.
    pub(super) fn kept(&self) -> Option<Rc<[u8]>> {
        match &self.content.borrow().written {
            Written::Kept(markup, _) => Some(Rc::clone(markup)),
            _ => None,
        }
    }

    /// Keeps the markup of a tree that is written for the second time: a tree that is built for one
    /// page is written once, and one of a module is written in each request.
    pub(super) fn keep(&self, trees: &Trees, markup: &[u8]) {
        let mut content = self.content.borrow_mut();
        if matches!(content.written, Written::Never) {
            content.written = Written::Once;
            return;
        }
        // The kept markup must not end a script that needs its memory.
        let is_free = trees.memory.used() + 16 * markup.len() < trees.limit;
        if is_free && let Some(charge) = Charge::new(&trees.memory, markup.len()) {
            content.written = Written::Kept(markup.into(), Rc::new(charge));
        }
    }
}
