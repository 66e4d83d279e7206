//! The functions of trees: those that make and write them here, with the names of all.

use bine_html::Tree;
use bine_html::tree::{Element, Node, PlainText, RawMarkup, TableOfContents, Xhtml};
use rquickjs::{Function, Value};

use super::arguments::{
    Failure, Native, function_argument, new_text, text_argument, tree_argument,
};
use super::build::TreeBuilder;
use super::node::ScriptNode;
use super::object::TreeObject;
use super::shape::{Shape, element_name};
use super::write::{self, HTML, Overrides};
use super::{Trees, change, charge, read};
use crate::markup::text_of;
use crate::quickjs::{self, Arguments, Kind, Property};
use crate::template::{MAX_BYTES, MAX_TEMPLATES};

/// The functions by name.
pub(crate) const FUNCTIONS: [(&str, Native); 33] = [
    ("shape", shape),
    ("fill", fill),
    ("tree", tree),
    ("element", element),
    ("node", node),
    ("prototype", prototype),
    ("isTree", read::is_tree),
    ("isDocument", read::is_document),
    ("find", read::find),
    ("findAll", read::find_all),
    ("children", read::children),
    ("kind", read::kind),
    ("name", read::name),
    ("attribute", read::attribute),
    ("attributes", read::attributes),
    ("text", read::text),
    ("findings", read::findings),
    ("beginWalk", read::begin_walk),
    ("step", read::step),
    ("insert", change::insert),
    ("replace", change::replace),
    ("remove", change::remove),
    ("change", change::change),
    ("setAttribute", change::set_attribute),
    ("removeAttribute", change::remove_attribute),
    ("append", change::append),
    ("clone", change::clone),
    ("expand", expand),
    ("html", html),
    ("xhtml", xhtml),
    ("plainText", plain_text),
    ("tableOfContents", table_of_contents),
    ("write", write),
];

/// `shape(steps)`: the number of a new shape.
fn shape<'js>(trees: &Trees, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Failure> {
    let malformed = || Failure::misuse("a shape is an array of the compiler's steps".to_owned());
    let steps = texts(&arguments.at(0)).ok_or_else(malformed)?;
    let bytes = steps.iter().map(|step| step.len() + charge::ELEMENT).sum::<usize>();
    let shape = Shape::parse(&steps).ok_or_else(malformed)?;
    let sum = trees.shape_bytes.get().saturating_add(bytes);
    let mut shapes = trees.shapes.borrow_mut();
    if shapes.len() >= MAX_TEMPLATES || sum > MAX_BYTES {
        return Err(Failure::misuse("too many trees in the source of the application".to_owned()));
    }
    shapes.push(shape.into());
    trees.shape_bytes.set(sum);
    Ok(Value::new_number(arguments.ctx().clone(), (shapes.len() - 1) as f64))
}

/// `fill(shape, ...values)`: a tree.
fn fill<'js>(trees: &Trees, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Failure> {
    let index = arguments.at(0).as_int().and_then(|index| usize::try_from(index).ok());
    let shape = index.and_then(|index| trees.shapes.borrow().get(index).cloned());
    let shape =
        shape.ok_or_else(|| Failure::misuse("the first argument is no shape".to_owned()))?;
    let content = shape.fill(trees, arguments)?;
    Ok(TreeObject::create(trees, arguments.ctx(), content)?)
}

/// `tree(content)`: the same tree, or a tree of other content.
fn tree<'js>(trees: &Trees, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Failure> {
    let value = arguments.at(0);
    if trees.classes().tree.read(&value).is_some() {
        return Ok(value.clone());
    }
    let mut builder = TreeBuilder::new(trees);
    builder.content(&value)?;
    Ok(TreeObject::create(trees, arguments.ctx(), builder.finish()?)?)
}

/// `element(name, attributes, content)`: a tree of one element, whose names are checked here.
fn element<'js>(trees: &Trees, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Failure> {
    let name = text_argument(&arguments.at(0), || {
        "`element` takes a name, attributes and content, as in element(\"h2\", { id: \"a\" }, \"Text\")"
            .to_owned()
    })?;
    let mut builder = TreeBuilder::new(trees);
    builder.open(Element::new(element_name(&name)).map_err(Failure::of)?, charge::ELEMENT)?;
    builder.spread(&arguments.at(1), &name, &[])?;
    builder.content(&arguments.at(2))?;
    Ok(TreeObject::create(trees, arguments.ctx(), builder.finish()?)?)
}

/// `node(function)`: a tree of one node that the function writes.
fn node<'js>(trees: &Trees, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Failure> {
    let ctx = arguments.ctx();
    let function = function_argument(&arguments.at(0), || "a node is a function".to_owned())?;
    let Some(function) = trees.nodes.borrow_mut().hold(ctx, function) else {
        trees.memory.exceed();
        return Err(Failure::misuse(format!("more than {} nodes", super::node::MAX_NODES)));
    };
    let mut builder = TreeBuilder::new(trees);
    builder.push_custom(Node::custom(ScriptNode { function }))?;
    Ok(TreeObject::create(trees, ctx, builder.finish()?)?)
}

/// `prototype()`: the prototype of trees.
fn prototype<'js>(trees: &Trees, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Failure> {
    Ok(trees.classes().tree.prototype(arguments.ctx())?)
}

/// `expand(tree)`: the tree with its custom nodes expanded, for the host.
fn expand<'js>(trees: &Trees, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Failure> {
    let value = arguments.at(0);
    let content = write::expanded(trees, arguments.ctx(), tree_argument(trees, &value)?, HTML)?;
    Ok(TreeObject::create(trees, arguments.ctx(), content)?)
}

/// `html(tree)`: text.
fn html<'js>(trees: &Trees, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Failure> {
    let value = arguments.at(0);
    let mut out = Vec::new();
    write::in_place(trees, arguments.ctx(), tree_argument(trees, &value)?, &mut out)?;
    new_text(arguments.ctx(), &text_of(&out))
}

/// `xhtml(tree)`: text.
fn xhtml<'js>(trees: &Trees, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Failure> {
    let tree = without_nodes(trees, arguments, "xhtml")?;
    new_text(arguments.ctx(), &tree.to_string_with(Xhtml::default()))
}

/// `plainText(tree)`: text.
fn plain_text<'js>(trees: &Trees, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Failure> {
    let tree = without_nodes(trees, arguments, "text")?;
    new_text(arguments.ctx(), &tree.to_string_with(PlainText::default()))
}

/// `tableOfContents(tree)`: a tree of the markup.
fn table_of_contents<'js>(
    trees: &Trees,
    arguments: &Arguments<'_, 'js>,
) -> Result<Value<'js>, Failure> {
    let list = without_nodes(trees, arguments, HTML)?.to_string_with(TableOfContents::default());
    let mut tree = Tree::new();
    if !list.is_empty() {
        tree.push(Node::Raw(RawMarkup::trusted(list)));
    }
    Ok(trees.create(arguments.ctx(), tree)?)
}

fn without_nodes(
    trees: &Trees,
    arguments: &Arguments<'_, '_>,
    format: &str,
) -> Result<Tree, Failure> {
    let value = arguments.at(0);
    let object = tree_argument(trees, &value)?;
    Ok(write::expanded(trees, arguments.ctx(), object, format)?.tree)
}

/// `write(tree, selectors, functions, text, comment, node)`: markup.
fn write<'js>(trees: &Trees, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Failure> {
    let (value, ctx) = (arguments.at(0), arguments.ctx());
    let object = tree_argument(trees, &value)?;
    let tree = object.share().tree;
    let selectors = texts(&arguments.at(1)).unwrap_or_default();
    let optional = |index| match quickjs::kind(&arguments.at(index)) {
        Kind::Function => arguments.at(index).clone().into_function(),
        _ => None,
    };
    let mut overrides = Overrides {
        elements: functions(&arguments.at(2)),
        text: optional(3),
        comment: optional(4),
        node: optional(5),
        matched: Vec::new(),
    };
    for (selector, number) in selectors.iter().zip(1..) {
        let mut matches = tree.find_all(&**selector).map_err(Failure::of)?;
        while matches.next().is_some() {
            let place = matches.visited();
            if overrides.matched.len() < place {
                overrides.matched.resize(place, 0);
            }
            let matched = &mut overrides.matched[place - 1];
            // The first selector of the writer decides.
            if *matched == 0 {
                *matched = number;
            }
        }
    }
    let mut out = Vec::new();
    write::write(trees, ctx, object, &tree, &overrides, &mut out)?;
    Ok(trees.classes().markup.create(ctx, &out)?)
}

/// The functions of an array.
fn functions<'js>(array: &Value<'js>) -> Vec<Function<'js>> {
    let length = quickjs::length(array).unwrap_or(0);
    let function = |index| match quickjs::element(array, index) {
        Ok(Property::Value(value)) => value.into_function(),
        _ => None,
    };
    (0..u32::try_from(length).unwrap_or(0)).filter_map(function).collect()
}

/// The elements of an array of texts.
fn texts(array: &Value<'_>) -> Option<Vec<String>> {
    if quickjs::kind(array) != Kind::Array {
        return None;
    }
    let length = u32::try_from(quickjs::length(array).ok()?).ok()?;
    let element = |index| match quickjs::element(array, index) {
        Ok(Property::Value(element)) => quickjs::with_text(&element, str::to_owned),
        _ => None,
    };
    (0..length).map(element).collect()
}
