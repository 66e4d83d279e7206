//! Values of the engine as values of the host, and back.
//!
//! Reading a value runs no code of the script: no getter, no `toJSON`, no trap of a proxy.

use std::fmt::Write as _;
use std::sync::Arc;

use rquickjs::function::Args;
use rquickjs::{Array, Ctx, Object, Persistent};

use crate::limits::ValueLimits;
use crate::quickjs::{self, Kind, MarkupClass, Property, Thrown};
use crate::slots::Slots;
use crate::value::{Function, Released, Value};

/// The script's functions that the host holds.
pub(crate) struct Functions {
    held: Slots<Persistent<rquickjs::Function<'static>>>,
    released: Arc<Released>,
    limit: usize,
}

/// What a conversion needs of its instance.
pub(crate) struct Converter<'c> {
    pub(crate) limits: ValueLimits,
    pub(crate) markup: MarkupClass,
    /// The class of plain objects.
    pub(crate) plain_class: u32,
    pub(crate) functions: &'c std::cell::RefCell<Functions>,
}

/// Why a value cannot pass, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfit {
    path: String,
    reason: String,
}

/// The state of one conversion.
struct Walk {
    path: Vec<Step>,
    bytes: usize,
}

enum Step {
    Key(String),
    Index(usize),
}

impl Functions {
    pub(crate) fn new(limit: usize) -> Self {
        Self { held: Slots::default(), released: Arc::default(), limit }
    }

    fn hold<'js>(&mut self, ctx: &Ctx<'js>, function: rquickjs::Function<'js>) -> Option<Function> {
        self.free_released();
        if self.held.len() >= self.limit {
            return None;
        }
        let slot = self.held.insert(Persistent::save(ctx, function));
        Some(Function::new(slot, &self.released))
    }

    /// The function of a handle; `None` if it belongs to another instance.
    pub(crate) fn restore<'js>(
        &self,
        ctx: &Ctx<'js>,
        function: &Function,
    ) -> Option<rquickjs::Function<'js>> {
        let held = self.held.get(function.slot_in(&self.released)?)?;
        held.clone().restore(ctx).ok()
    }

    /// Forgets the functions that the host has released.
    pub(crate) fn free_released(&mut self) {
        for slot in self.released.take() {
            self.held.remove(slot);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.held.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }
}

impl Unfit {
    fn new(walk: &Walk, reason: impl Into<String>) -> Self {
        let mut path = String::new();
        for step in &walk.path {
            match step {
                Step::Key(key) if path.is_empty() => path.push_str(key),
                Step::Key(key) => path.extend([".", key]),
                // A `String` takes any text.
                Step::Index(index) => drop(write!(path, "[{index}]")),
            }
        }
        Self { path, reason: reason.into() }
    }

    /// The error in words, with the place in the value.
    pub(crate) fn message(&self, subject: &str) -> String {
        let Self { path, reason } = self;
        if path.is_empty() {
            format!("{subject} is {reason}")
        } else {
            format!("{subject} cannot pass: {path} is {reason}")
        }
    }
}

impl Converter<'_> {
    /// Reads a value of the script.
    pub(crate) fn read(&self, value: &rquickjs::Value<'_>) -> Result<Value, Unfit> {
        self.read_within(value, &mut Walk { path: Vec::new(), bytes: 0 })
    }

    fn read_within(&self, value: &rquickjs::Value<'_>, walk: &mut Walk) -> Result<Value, Unfit> {
        self.spend(walk, 16)?;
        let unfit = |walk: &Walk, reason: &str| Err(Unfit::new(walk, reason));
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
                unfit(walk, &format!("{name}, which is not allowed"))
            }
            Kind::Text => {
                let text = quickjs::with_text(value, str::to_owned);
                let Some(text) = text else { return unfit(walk, "a string too large to copy") };
                self.spend(walk, text.len())?;
                Ok(Value::Text(text))
            }
            Kind::Function => self.read_function(value, walk),
            Kind::Array => self.read_array(value, walk),
            Kind::Object => self.read_object(value, walk),
            Kind::Symbol => unfit(walk, "a symbol, which is not allowed"),
            Kind::BigInt => unfit(walk, "a bigint; convert it with Number() or String()"),
            Kind::Proxy => unfit(walk, "a proxy, which is not allowed"),
            Kind::Promise => unfit(walk, "a promise; await it first"),
            Kind::Date => unfit(walk, "a Date; pass getTime() or toISOString()"),
            Kind::Error => unfit(walk, "an Error; pass its message"),
            Kind::Internal => unfit(walk, "a value of the engine, which is not allowed"),
        }
    }

    fn read_function(&self, value: &rquickjs::Value<'_>, walk: &Walk) -> Result<Value, Unfit> {
        let function = value.clone().into_function();
        let held =
            function.and_then(|function| self.functions.borrow_mut().hold(value.ctx(), function));
        held.map(Value::Function)
            .ok_or_else(|| Unfit::new(walk, "a function, and the host holds too many functions"))
    }

    fn read_array(&self, value: &rquickjs::Value<'_>, walk: &mut Walk) -> Result<Value, Unfit> {
        self.check_depth(walk)?;
        let length = quickjs::length(value).map_err(|thrown| pending(value, walk, &thrown))?;
        self.check_entries(length, walk)?;
        let mut elements = Vec::new();
        for index in 0..length {
            walk.path.push(Step::Index(index));
            // `index` is below the limit of entries.
            let found = quickjs::element(value, index as u32);
            elements.push(match found.map_err(|thrown| pending(value, walk, &thrown))? {
                Property::Value(element) => match self.read_within(&element, walk)? {
                    Value::Undefined => {
                        return Err(Unfit::new(walk, "undefined; use null in an array"));
                    }
                    element => element,
                },
                Property::Accessor => return Err(getter(walk)),
                Property::Missing => return Err(Unfit::new(walk, "a hole; use null in an array")),
            });
            walk.path.pop();
        }
        Ok(Value::Array(elements))
    }

    fn read_object(&self, value: &rquickjs::Value<'_>, walk: &mut Walk) -> Result<Value, Unfit> {
        if let Some(markup) = self.markup.read(value) {
            self.spend(walk, markup.len())?;
            return Ok(Value::Html(markup.to_owned()));
        }
        if quickjs::class_id(value) != self.plain_class {
            let Some(bytes) = quickjs::bytes_of(value) else {
                let reason = "an object of a built-in class, which is not allowed; \
                              use a plain object, an array or a Uint8Array";
                return Err(Unfit::new(walk, reason));
            };
            self.spend(walk, bytes.len())?;
            return Ok(Value::Bytes(bytes));
        }
        self.check_depth(walk)?;
        let mut entries = Vec::new();
        quickjs::properties(value, |count, key, found| {
            self.check_entries(count, walk)?;
            walk.path.push(Step::Key(key.to_owned()));
            check_key(key, walk)?;
            self.spend(walk, key.len())?;
            match found {
                Property::Value(found) => match self.read_within(&found, walk)? {
                    Value::Undefined => {}
                    found => entries.push((key.to_owned(), found)),
                },
                Property::Accessor => return Err(Fail::Unfit(getter(walk))),
                Property::Missing => {}
            }
            walk.path.pop();
            Ok(())
        })
        .map_err(|fail| match fail {
            Fail::Unfit(unfit) => unfit,
            Fail::Thrown(thrown) => pending(value, walk, &thrown),
        })?;
        Ok(Value::Object(entries))
    }

    /// Makes a value of the script.
    pub(crate) fn write<'js>(
        &self,
        ctx: &Ctx<'js>,
        value: &Value,
    ) -> Result<rquickjs::Value<'js>, Unfit> {
        self.write_within(ctx, value, &mut Walk { path: Vec::new(), bytes: 0 })
    }

    fn write_within<'js>(
        &self,
        ctx: &Ctx<'js>,
        value: &Value,
        walk: &mut Walk,
    ) -> Result<rquickjs::Value<'js>, Unfit> {
        self.spend(walk, 16)?;
        let new = rquickjs::Value::new_number;
        Ok(match value {
            Value::Undefined => rquickjs::Value::new_undefined(ctx.clone()),
            Value::Null => rquickjs::Value::new_null(ctx.clone()),
            Value::Bool(truth) => rquickjs::Value::new_bool(ctx.clone(), *truth),
            Value::Number(number) if number.is_finite() => new(ctx.clone(), *number + 0.0),
            Value::Number(_) => {
                return Err(Unfit::new(walk, "a number that is not finite"));
            }
            Value::Text(text) => {
                self.spend(walk, text.len())?;
                rquickjs::String::from_str(ctx.clone(), text)
                    .map_err(|_| exhausted(ctx, walk))?
                    .into_value()
            }
            Value::Bytes(bytes) => {
                self.spend(walk, bytes.len())?;
                quickjs::new_bytes(ctx, bytes).map_err(|Thrown| exhausted(ctx, walk))?
            }
            Value::Html(markup) => {
                self.spend(walk, markup.len())?;
                self.markup.create(ctx, markup).map_err(|Thrown| exhausted(ctx, walk))?
            }
            Value::Array(elements) => {
                self.check_depth(walk)?;
                self.check_entries(elements.len(), walk)?;
                let array = Array::new(ctx.clone()).map_err(|_| exhausted(ctx, walk))?;
                for (index, element) in elements.iter().enumerate() {
                    walk.path.push(Step::Index(index));
                    let element = self.write_within(ctx, element, walk)?;
                    // `index` is below the limit of entries.
                    quickjs::append(array.as_value(), index as u32, &element)
                        .map_err(|Thrown| exhausted(ctx, walk))?;
                    walk.path.pop();
                }
                array.into_value()
            }
            Value::Object(entries) => {
                self.check_depth(walk)?;
                self.check_entries(entries.len(), walk)?;
                let object = Object::new(ctx.clone()).map_err(|_| exhausted(ctx, walk))?;
                for (key, element) in entries {
                    walk.path.push(Step::Key(key.clone()));
                    check_key(key, walk)?;
                    self.spend(walk, key.len())?;
                    let element = self.write_within(ctx, element, walk)?;
                    quickjs::define(object.as_value(), key, &element)
                        .map_err(|Thrown| exhausted(ctx, walk))?;
                    walk.path.pop();
                }
                object.into_value()
            }
            Value::Function(function) => {
                let restored = self.functions.borrow().restore(ctx, function);
                let restored =
                    restored.ok_or_else(|| Unfit::new(walk, "a function of another instance"))?;
                restored.into_value()
            }
        })
    }

    fn spend(&self, walk: &mut Walk, bytes: usize) -> Result<(), Unfit> {
        walk.bytes = walk.bytes.saturating_add(bytes);
        if walk.bytes <= self.limits.bytes {
            return Ok(());
        }
        let reason = format!("beyond the {} bytes that one value may have", self.limits.bytes);
        Err(Unfit::new(walk, reason))
    }

    fn check_depth(&self, walk: &Walk) -> Result<(), Unfit> {
        if walk.path.len() < self.limits.depth {
            return Ok(());
        }
        let limit = self.limits.depth;
        let reason = format!("nested more than {limit} levels deep, or contains itself");
        Err(Unfit::new(walk, reason))
    }

    fn check_entries(&self, count: usize, walk: &Walk) -> Result<(), Unfit> {
        if count <= self.limits.entries {
            return Ok(());
        }
        let limit = self.limits.entries;
        Err(Unfit::new(walk, format!("larger than the {limit} entries that are allowed")))
    }
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
fn check_key(key: &str, walk: &Walk) -> Result<(), Unfit> {
    if matches!(key, "__proto__" | "constructor") {
        return Err(Unfit::new(
            walk,
            "a key that is not allowed, because it may change prototypes",
        ));
    }
    Ok(())
}

fn getter(walk: &Walk) -> Unfit {
    Unfit::new(walk, "a getter; pass its value")
}

/// Memory is exhausted: clears the pending exception.
fn exhausted(ctx: &Ctx<'_>, walk: &Walk) -> Unfit {
    ctx.catch();
    Unfit::new(walk, "too large for the memory of the script")
}

fn pending(value: &rquickjs::Value<'_>, walk: &Walk, _thrown: &Thrown) -> Unfit {
    exhausted(value.ctx(), walk)
}

/// Arguments of a call in the engine.
pub(crate) fn args<'js>(ctx: &Ctx<'js>, values: Vec<rquickjs::Value<'js>>) -> Option<Args<'js>> {
    let mut passed = Args::new(ctx.clone(), values.len());
    passed.push_args(values).ok()?;
    Some(passed)
}
