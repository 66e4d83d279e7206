//! Values of the engine as values of the host, and back.
//!
//! Reading a value runs no code of the script: no getter, no `toJSON`, no trap of a proxy.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;

use rquickjs::function::Args;
use rquickjs::{Ctx, Object};

use crate::functions::Functions;
use crate::host_error::HostError;
use crate::limits::ValueLimits;
use crate::markup::Markup;
use crate::quickjs::{self, Kind, MarkupClass, Property, RecordLayout, RecordWriter, Thrown};
use crate::tree::Trees;
use crate::value::{CellValue, Cells, RecordKeys, Records, Value};

/// The layouts of records in one instance, by the id of their keys.
pub(crate) type Layouts = HashMap<u64, Rc<RecordLayout>>;

/// Layouts of one instance. When there are more, all are made again at their next use.
const MAX_LAYOUTS: usize = 1024;

/// The parts of an instance that a conversion needs.
pub(crate) struct Converter<'c> {
    pub(crate) limits: ValueLimits,
    pub(crate) markup: MarkupClass,
    /// The class of plain objects.
    pub(crate) plain_class: u32,
    pub(crate) functions: &'c RefCell<Functions>,
    pub(crate) layouts: &'c RefCell<Layouts>,
    pub(crate) trees: &'c Trees,
}

/// Why a value cannot pass, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfit {
    /// The way to the value, innermost step first.
    path: Vec<Step>,
    reason: String,
    /// Whether the whole value is a promise.
    is_promise: bool,
}

/// The state of one conversion.
#[derive(Default)]
struct Walk {
    /// The arrays and objects around the current value.
    depth: usize,
    bytes: usize,
}

/// The rows that are not written yet.
struct Rows<'r> {
    keys: &'r RecordKeys,
    layout: Rc<RecordLayout>,
    cells: Cells<'r>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

impl Unfit {
    fn new(reason: impl Into<String>) -> Self {
        Self { path: Vec::new(), reason: reason.into(), is_promise: false }
    }

    /// The same error, of the array that has the value.
    fn at_index(mut self, index: usize) -> Self {
        self.path.push(Step::Index(index));
        self
    }

    /// The same error, of the object that has the value.
    fn at_key(mut self, key: &str) -> Self {
        self.path.push(Step::Key(key.to_owned()));
        self
    }

    /// The error in words, with the place in the value.
    pub(crate) fn message(&self, subject: &str) -> String {
        let mut path = String::new();
        for step in self.path.iter().rev() {
            match step {
                Step::Key(key) if path.is_empty() => path.push_str(key),
                Step::Key(key) => path.extend([".", key]),
                // A `String` takes any text.
                Step::Index(index) => drop(write!(path, "[{index}]")),
            }
        }
        let reason = &self.reason;
        if path.is_empty() {
            format!("{subject} is {reason}")
        } else {
            format!("{subject} cannot pass: {path} is {reason}")
        }
    }

    /// The error that a script gets.
    pub(crate) fn error(&self, subject: &str) -> HostError {
        let message = self.message(subject);
        if self.is_promise { HostError::Promise(message) } else { HostError::Type(message) }
    }
}

impl Converter<'_> {
    /// Reads a value of the script.
    pub(crate) fn read(&self, value: &rquickjs::Value<'_>) -> Result<Value, Unfit> {
        self.read_within(value, &mut Walk::default())
    }

    fn read_within(&self, value: &rquickjs::Value<'_>, walk: &mut Walk) -> Result<Value, Unfit> {
        self.spend(walk, 16)?;
        let unfit = |reason: &str| Err(Unfit::new(reason));
        match quickjs::kind(value) {
            Kind::Undefined => Ok(Value::Undefined),
            Kind::Null => Ok(Value::Null),
            Kind::Bool => Ok(Value::Bool(value.as_bool().unwrap_or_default())),
            Kind::Number => {
                let number = value.as_number().unwrap_or(f64::NAN);
                if number.is_finite() {
                    // -0 + 0 is 0.
                    return Ok(Value::Number(number + 0.0));
                }
                let name = if number.is_nan() { "NaN" } else { "an infinite number" };
                unfit(&format!("{name}, which is not allowed"))
            }
            Kind::Text => {
                let text = quickjs::with_text(value, str::to_owned);
                let Some(text) = text else { return unfit("a string too large to copy") };
                self.spend(walk, text.len())?;
                Ok(Value::Text(text))
            }
            Kind::Function => self.read_function(value),
            Kind::Array => self.read_array(value, walk),
            Kind::Object => self.read_object(value, walk),
            Kind::Symbol => unfit("a symbol, which is not allowed"),
            Kind::BigInt => unfit("a bigint; convert it with Number() or String()"),
            Kind::Proxy => unfit("a proxy, which is not allowed"),
            Kind::Promise => {
                let is_promise = walk.depth == 0;
                Err(Unfit { is_promise, ..Unfit::new("a promise; await it first") })
            }
            Kind::Date => unfit("a Date; pass getTime() or toISOString()"),
            Kind::Error => unfit("an Error; pass its message"),
            Kind::Internal => unfit("a value of the engine, which is not allowed"),
        }
    }

    fn read_function(&self, value: &rquickjs::Value<'_>) -> Result<Value, Unfit> {
        let function = value.clone().into_function();
        let held =
            function.and_then(|function| self.functions.borrow_mut().hold(value.ctx(), function));
        held.map(Value::Function)
            .ok_or_else(|| Unfit::new("a function, and the host holds too many functions"))
    }

    fn read_array(&self, value: &rquickjs::Value<'_>, walk: &mut Walk) -> Result<Value, Unfit> {
        self.enter(walk)?;
        let length = quickjs::length(value).map_err(|Thrown| exhausted(value.ctx()))?;
        self.check_entries(length)?;
        let mut elements = Vec::new();
        for index in 0..length {
            let element = self.read_element(value, index, walk);
            elements.push(element.map_err(|unfit| unfit.at_index(index))?);
        }
        walk.depth -= 1;
        Ok(Value::Array(elements))
    }

    fn read_element(
        &self,
        array: &rquickjs::Value<'_>,
        index: usize,
        walk: &mut Walk,
    ) -> Result<Value, Unfit> {
        // `index` is below the limit of entries.
        let found = quickjs::element(array, index as u32);
        match found.map_err(|Thrown| exhausted(array.ctx()))? {
            Property::Value(element) => match self.read_within(&element, walk)? {
                Value::Undefined => Err(Unfit::new("undefined; use null in an array")),
                element => Ok(element),
            },
            Property::Accessor => Err(getter()),
            Property::Missing => Err(Unfit::new("a hole; use null in an array")),
        }
    }

    fn read_object(&self, value: &rquickjs::Value<'_>, walk: &mut Walk) -> Result<Value, Unfit> {
        if let Some(markup) = self.markup.read(value) {
            self.spend(walk, markup.len())?;
            return Ok(Value::Html(Markup::from_bytes(markup)));
        }
        if let Some(read) = self.trees.read(value) {
            return read.map(Value::Tree).map_err(Unfit::new);
        }
        if quickjs::class_id(value) != self.plain_class {
            let Some(bytes) = quickjs::bytes_of(value) else {
                let reason = "an object of a built-in class, which is not allowed; \
                              use a plain object, an array or a Uint8Array";
                return Err(Unfit::new(reason));
            };
            self.spend(walk, bytes.len())?;
            return Ok(Value::Bytes(bytes));
        }
        self.enter(walk)?;
        let mut entries = Vec::new();
        quickjs::properties(value, |count, key, found| {
            self.check_entries(count)?;
            let read = self.read_property(key, &found, walk);
            match read.map_err(|unfit| unfit.at_key(key))? {
                Value::Undefined => {}
                found => entries.push((key.to_owned(), found)),
            }
            Ok(())
        })
        .map_err(|fail| match fail {
            Fail::Unfit(unfit) => unfit,
            Fail::Thrown(Thrown) => exhausted(value.ctx()),
        })?;
        walk.depth -= 1;
        Ok(Value::Object(entries))
    }

    fn read_property(
        &self,
        key: &str,
        found: &Property<'_>,
        walk: &mut Walk,
    ) -> Result<Value, Unfit> {
        check_key(key)?;
        self.spend(walk, key.len())?;
        match found {
            Property::Value(found) => self.read_within(found, walk),
            Property::Accessor => Err(getter()),
            Property::Missing => Ok(Value::Undefined),
        }
    }

    /// Makes a value of the script.
    pub(crate) fn write<'js>(
        &self,
        ctx: &Ctx<'js>,
        value: &Value,
    ) -> Result<rquickjs::Value<'js>, Unfit> {
        self.write_within(ctx, value, &mut Walk::default())
    }

    fn write_within<'js>(
        &self,
        ctx: &Ctx<'js>,
        value: &Value,
        walk: &mut Walk,
    ) -> Result<rquickjs::Value<'js>, Unfit> {
        self.spend(walk, 16)?;
        Ok(match value {
            Value::Undefined => rquickjs::Value::new_undefined(ctx.clone()),
            Value::Null => rquickjs::Value::new_null(ctx.clone()),
            Value::Bool(truth) => rquickjs::Value::new_bool(ctx.clone(), *truth),
            Value::Number(number) => rquickjs::Value::new_number(ctx.clone(), finite(*number)?),
            Value::Text(text) => {
                self.spend(walk, text.len())?;
                rquickjs::String::from_str(ctx.clone(), text)
                    .map_err(|_| exhausted(ctx))?
                    .into_value()
            }
            Value::Bytes(bytes) => {
                self.spend(walk, bytes.len())?;
                quickjs::new_bytes(ctx, bytes).map_err(|Thrown| exhausted(ctx))?
            }
            Value::Html(markup) => {
                self.spend(walk, markup.len())?;
                let created = self.markup.create(ctx, markup.as_bytes());
                created.map_err(|Thrown| exhausted(ctx))?
            }
            Value::Tree(tree) => {
                let created = self.trees.create(ctx, tree.clone());
                created.map_err(|_| exhausted(ctx))?
            }
            Value::Array(elements) => {
                self.enter(walk)?;
                self.check_entries(elements.len())?;
                let mut written = Vec::with_capacity(elements.len());
                for (index, element) in elements.iter().enumerate() {
                    let element = self.write_within(ctx, element, walk);
                    written.push(element.map_err(|unfit| unfit.at_index(index))?);
                }
                walk.depth -= 1;
                quickjs::new_array(ctx, written).map_err(|Thrown| exhausted(ctx))?
            }
            Value::Object(entries) => {
                self.enter(walk)?;
                self.check_entries(entries.len())?;
                let object = Object::new(ctx.clone()).map_err(|_| exhausted(ctx))?;
                for (key, element) in entries {
                    let written = self.write_property(ctx, &object, key, element, walk);
                    written.map_err(|unfit| unfit.at_key(key))?;
                }
                walk.depth -= 1;
                object.into_value()
            }
            Value::Records(records) => {
                self.enter(walk)?;
                self.check_entries(records.len())?;
                let mut written = Vec::with_capacity(records.len());
                if !records.is_empty() {
                    let mut rows = self.rows(ctx, records)?;
                    for index in 0..records.len() {
                        let row = self.write_row(ctx, &mut rows, walk);
                        written.push(row.map_err(|unfit| unfit.at_index(index))?);
                    }
                }
                walk.depth -= 1;
                quickjs::new_array(ctx, written).map_err(|Thrown| exhausted(ctx))?
            }
            Value::Record(records) if records.is_empty() => rquickjs::Value::new_null(ctx.clone()),
            Value::Record(records) => self.write_row(ctx, &mut self.rows(ctx, records)?, walk)?,
            Value::Function(function) => {
                let restored = self.functions.borrow().restore(ctx, function);
                let restored = restored.ok_or_else(|| Unfit::new("a function of another instance"));
                restored?.into_value()
            }
        })
    }

    fn write_property<'js>(
        &self,
        ctx: &Ctx<'js>,
        object: &Object<'js>,
        key: &str,
        value: &Value,
        walk: &mut Walk,
    ) -> Result<(), Unfit> {
        check_key(key)?;
        self.spend(walk, key.len())?;
        let value = self.write_within(ctx, value, walk)?;
        quickjs::define(object.as_value(), key, &value).map_err(|Thrown| exhausted(ctx))
    }

    fn rows<'r>(&self, ctx: &Ctx<'_>, records: &'r Records) -> Result<Rows<'r>, Unfit> {
        let keys = records.keys();
        self.check_entries(keys.names().len())?;
        Ok(Rows { keys, layout: self.layout(ctx, keys)?, cells: records.cells() })
    }

    /// Makes an object of the next row.
    fn write_row<'js>(
        &self,
        ctx: &Ctx<'js>,
        rows: &mut Rows<'_>,
        walk: &mut Walk,
    ) -> Result<rquickjs::Value<'js>, Unfit> {
        let names = rows.keys.names();
        self.enter(walk)?;
        self.spend(walk, 16 + rows.keys.bytes() + 16 * names.len())?;
        let record = RecordWriter::new(ctx, &rows.layout);
        let mut record = record.map_err(|Thrown| exhausted(ctx))?;
        for (name, cell) in names.iter().zip(&mut rows.cells) {
            let written = match cell {
                CellValue::Null => record.null(),
                CellValue::Bool(truth) => record.bool(truth),
                CellValue::Number(number) => {
                    finite(number).map(|number| record.number(number)).map_err(at(name))?
                }
                CellValue::Text(text) => {
                    self.spend(walk, text.len()).map_err(at(name))?;
                    record.text(text)
                }
                CellValue::Other(value) => {
                    let value = self.write_within(ctx, value, walk).map_err(at(name))?;
                    record.value(value)
                }
            };
            written.map_err(|Thrown| exhausted(ctx))?;
        }
        walk.depth -= 1;
        Ok(record.finish())
    }

    fn layout(&self, ctx: &Ctx<'_>, keys: &RecordKeys) -> Result<Rc<RecordLayout>, Unfit> {
        if let Some(layout) = self.layouts.borrow().get(&keys.id()) {
            return Ok(Rc::clone(layout));
        }
        for key in keys.names() {
            check_key(key).map_err(|unfit| unfit.at_key(key))?;
        }
        let layout = RecordLayout::new(ctx, keys.names()).map_err(|Thrown| exhausted(ctx))?;
        let layout = Rc::new(layout);
        let mut layouts = self.layouts.borrow_mut();
        if layouts.len() >= MAX_LAYOUTS {
            layouts.clear();
        }
        layouts.insert(keys.id(), Rc::clone(&layout));
        Ok(layout)
    }

    fn spend(&self, walk: &mut Walk, bytes: usize) -> Result<(), Unfit> {
        walk.bytes = walk.bytes.saturating_add(bytes);
        if walk.bytes <= self.limits.bytes {
            return Ok(());
        }
        let limit = self.limits.bytes;
        Err(Unfit::new(format!("beyond the {limit} bytes that one value may have")))
    }

    /// Enters an array or object. The caller leaves it by `walk.depth -= 1`; after an error the walk
    /// has ended.
    fn enter(&self, walk: &mut Walk) -> Result<(), Unfit> {
        if walk.depth < self.limits.depth {
            walk.depth += 1;
            return Ok(());
        }
        let limit = self.limits.depth;
        Err(Unfit::new(format!("nested more than {limit} levels deep, or contains itself")))
    }

    fn check_entries(&self, count: usize) -> Result<(), Unfit> {
        if count <= self.limits.entries {
            return Ok(());
        }
        let limit = self.limits.entries;
        Err(Unfit::new(format!("larger than the {limit} entries that are allowed")))
    }
}

/// A number that may pass. -0 becomes 0.
fn finite(number: f64) -> Result<f64, Unfit> {
    // -0 + 0 is 0.
    if number.is_finite() {
        Ok(number + 0.0)
    } else {
        Err(Unfit::new("a number that is not finite"))
    }
}

/// Adds a key to the place of an error.
fn at(key: &str) -> impl FnOnce(Unfit) -> Unfit {
    |unfit| unfit.at_key(key)
}

/// Why the visit of a property ended.
enum Fail {
    Unfit(Unfit),
    Thrown(Thrown),
}

impl From<Unfit> for Fail {
    fn from(unfit: Unfit) -> Self {
        Self::Unfit(unfit)
    }
}

impl From<Thrown> for Fail {
    fn from(thrown: Thrown) -> Self {
        Self::Thrown(thrown)
    }
}

/// Rejects the keys by which a program that copies properties would change prototypes.
fn check_key(key: &str) -> Result<(), Unfit> {
    if matches!(key, "__proto__" | "constructor") {
        return Err(Unfit::new("a key that is not allowed, because it may change prototypes"));
    }
    Ok(())
}

fn getter() -> Unfit {
    Unfit::new("a getter; pass its value")
}

/// Memory is exhausted: clears the pending exception.
fn exhausted(ctx: &Ctx<'_>) -> Unfit {
    ctx.catch();
    Unfit::new("too large for the memory of the script")
}

/// Arguments of a call in the engine.
pub(crate) fn args<'js>(ctx: &Ctx<'js>, values: Vec<rquickjs::Value<'js>>) -> Option<Args<'js>> {
    let mut passed = Args::new(ctx.clone(), values.len());
    passed.push_args(values).ok()?;
    Some(passed)
}
