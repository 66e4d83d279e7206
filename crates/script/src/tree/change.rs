//! Changing trees: at the elements that match a selector, and the attributes of one element.

use bine_html::tree::{Element, Place, TreeError};
use bine_html::{Tree, raw};
use bine_vocabulary::Context;
use rquickjs::{Function, Value};

use super::Trees;
use super::arguments::{Failure, function_argument, text_argument, tree_argument};
use super::build::{TreeBuilder, attribute_text};
use super::charge;
use super::object::{Access, TreeContent, TreeObject, check_size};
use super::read::{attribute_argument, element_of, selector};
use crate::quickjs::{self, Arguments, Kind};
use crate::template::Attribute;

/// What `insert`, `replace` and `append` take.
const NODES: &str =
    "a tree, text or a list of these: write markup as tree(<p>..</p>), so that selectors find it";

/// `insert(tree, selector, place, nodes)`: the number of matches.
pub(super) fn insert<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let usage = || {
        "`insert` takes a place, \"before\", \"first\", \"last\" or \"after\", as in \
         tree.insert(\"main\", \"first\", tree(<p>..</p>))"
            .to_owned()
    };
    let selector = selector(arguments, "insert")?;
    let place = match &*text_argument(&arguments.at(2), usage)? {
        "before" => Place::Before,
        "first" => Place::First,
        "last" => Place::Last,
        "after" => Place::After,
        _ => return Err(Failure::misuse(usage())),
    };
    let nodes = nodes_argument(trees, "insert", &arguments.at(3))?;
    edit(trees, arguments, &selector, Some(nodes), |tree, nodes| {
        tree.insert(&*selector, place, nodes)
    })
}

/// `replace(tree, selector, nodes)`: the number of matches.
pub(super) fn replace<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let selector = selector(arguments, "replace")?;
    let nodes = nodes_argument(trees, "replace", &arguments.at(2))?;
    edit(trees, arguments, &selector, Some(nodes), |tree, nodes| tree.replace(&*selector, nodes))
}

/// `remove(tree, selector)`: the number of matches.
pub(super) fn remove<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let selector = selector(arguments, "remove")?;
    edit(trees, arguments, &selector, None, |tree, _| tree.remove(&*selector))
}

/// Changes a tree in place at the matches of a selector.
fn edit<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
    selector: &str,
    nodes: Option<TreeContent>,
    change: impl FnOnce(&mut Tree, Tree) -> Result<usize, bine_html::tree::SelectorError>,
) -> Result<Value<'js>, Failure> {
    let tree = arguments.at(0);
    let object = tree_argument(trees, &tree)?;
    object.check_access(trees)?;
    let mut nodes = nodes.unwrap_or_else(TreeContent::empty);
    let matches = object.content().tree.find_all(selector).map_err(Failure::of)?.count();
    // Each match shares the inserted nodes, but a traversal visits them at each.
    let size = matches.saturating_mul(nodes.size()).saturating_add(object.share().size());
    let has_custom = nodes.has_custom;
    let count = object.change(trees, size, has_custom, |tree| change(tree, nodes.tree))?;
    Ok(number(arguments, count.map_err(Failure::of)?))
}

fn number<'js>(arguments: &Arguments<'_, 'js>, count: usize) -> Value<'js> {
    Value::new_number(arguments.ctx().clone(), count as f64)
}

/// The nodes that a method inserts.
fn nodes_argument(trees: &Trees, method: &str, value: &Value<'_>) -> Result<TreeContent, Failure> {
    let is_markup = trees.classes().markup.read(value).is_some();
    let is_absent = matches!(quickjs::kind(value), Kind::Undefined | Kind::Null | Kind::Bool);
    if is_markup || is_absent {
        return Err(Failure::misuse(format!("`{method}` takes {NODES}")));
    }
    let mut builder = TreeBuilder::new(trees);
    builder.content(value)?;
    Ok(builder.finish()?)
}

/// `change(tree, selector, function)`: the number of matches. If the function throws, the tree is
/// unchanged.
pub(super) fn change<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let selector = selector(arguments, "change")?;
    let function = function_argument(&arguments.at(2), || {
        "`change` takes a function, as in \
         tree.change(\"a\", (link) => { link.setAttribute(\"rel\", \"noopener\"); })"
            .to_owned()
    })?;
    let value = arguments.at(0);
    let object = tree_argument(trees, &value)?;
    object.check_access(trees)?;
    let mut tree = object.share().tree;
    let placeholder = Element::new("br").map_err(Failure::of)?;
    let mut failure = None;
    let changed = object.while_changing(|| {
        tree.change(&*selector, |element| {
            let taken = std::mem::replace(element, placeholder.clone());
            match changed_by(trees, object, &function, taken) {
                Ok(changed) => {
                    *element = changed;
                    Ok(())
                }
                Err(reason) => {
                    failure = Some(reason);
                    // Any error: it only ends the search.
                    Err(TreeError::Code("".into()))
                }
            }
        })
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    let count = changed.map_err(Failure::of)?;
    object.replace(trees, tree)?;
    Ok(number(arguments, count))
}

/// The element that a function has changed.
fn changed_by(
    trees: &Trees,
    object: &TreeObject,
    function: &Function<'_>,
    element: Element,
) -> Result<Element, Failure> {
    let part = object.part(element.into());
    let passed = TreeObject::create_with(trees, function.ctx(), part, Access::Own)?;
    let result = function.call::<_, Value<'_>>((passed.clone(),)).map_err(|_| Failure::Thrown)?;
    if quickjs::kind(&result) == Kind::Promise {
        let message = "the function of `change` must not be async: await before it";
        return Err(Failure::misuse(message.to_owned()));
    }
    let own = tree_argument(trees, &passed)?;
    own.end_access();
    let content = own.take();
    content.element().cloned().ok_or_else(|| {
        Failure::misuse(
            "the function of `change` must leave one element: use `replace`, `insert` or `remove` for others"
                .to_owned(),
        )
    })
}

/// `setAttribute(element, name, value)`.
pub(super) fn set_attribute<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let value = arguments.at(0);
    let object = tree_argument(trees, &value)?;
    object.check_access(trees)?;
    let name = attribute_argument(arguments, "setAttribute")?;
    let element = element_of(object)?;
    let Some(attribute) = Attribute::new(&name, Context::of(element.name(), &name)) else {
        return Err(Failure::of(TreeError::AttributeName(name.into())));
    };
    let text = attribute_text(trees, &attribute, &arguments.at(2))?;
    drop(element);
    let more = text.as_ref().map_or(0, |text| charge::size_of_attribute(&name, text));
    let changed = object.change_element(trees, more, false, |element| match text {
        Some(text) => element.set_code(name, raw(text)),
        None => {
            element.remove_attribute(&name);
            Ok(())
        }
    })?;
    changed.transpose().map_err(Failure::of)?;
    Ok(value.clone())
}

/// `removeAttribute(element, name)`: whether it was there.
pub(super) fn remove_attribute<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let value = arguments.at(0);
    let object = tree_argument(trees, &value)?;
    object.check_access(trees)?;
    let name = attribute_argument(arguments, "removeAttribute")?;
    element_of(object)?;
    let removed =
        object.change_element(trees, 0, false, |element| element.remove_attribute(&name))?;
    Ok(Value::new_bool(arguments.ctx().clone(), removed == Some(true)))
}

/// `append(element, nodes)`.
pub(super) fn append<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let value = arguments.at(0);
    let object = tree_argument(trees, &value)?;
    object.check_access(trees)?;
    let mut nodes = nodes_argument(trees, "append", &arguments.at(1))?;
    element_of(object)?;
    let (more, has_custom) = (nodes.size(), nodes.has_custom);
    object.change_element(trees, more, has_custom, |element| {
        element.children_mut().extend(nodes.tree.roots().iter().cloned());
    })?;
    Ok(value.clone())
}

/// `clone(tree)`.
pub(super) fn clone<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let value = arguments.at(0);
    let mut content = tree_argument(trees, &value)?.share();
    check_size(trees, content.size())?;
    Ok(TreeObject::create(trees, arguments.ctx(), content)?)
}
