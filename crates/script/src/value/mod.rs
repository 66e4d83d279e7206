//! Values that pass between scripts and the host.

mod records;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bine_html::Tree;

use crate::markup::Markup;

pub(crate) use records::{CellValue, Cells};
pub use records::{RecordKeys, Records};

/// A value without behavior, as JSON has them, and kinds that JSON lacks: `undefined`, bytes, markup,
/// functions of the script, and rows of the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// No value. Only a whole value or argument can be undefined; a property whose value is
    /// undefined is omitted.
    #[default]
    Undefined,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A finite number. -0 passes as 0.
    Number(f64),
    /// Text. A half of a surrogate pair passes as U+FFFD.
    Text(String),
    /// The bytes of a `Uint8Array`.
    Bytes(Vec<u8>),
    /// Markup that the script has built. Escaped text and markup never mix: a plain string is
    /// [`Text`](Self::Text).
    Html(Markup),
    /// A tree of markup, whose own nodes are written.
    Tree(Tree),
    /// A list.
    Array(Vec<Value>),
    /// The keys and values of a plain object, in its order.
    Object(Vec<(String, Value)>),
    /// Rows with the same columns: for a script, an array of objects. A script's own rows arrive as
    /// [`Array`](Self::Array) and [`Object`](Self::Object).
    Records(Box<Records>),
    /// The first row, as an object; `null` without rows.
    Record(Box<Records>),
    /// A function of the script, which the host can call.
    Function(Function),
}

/// A function of a script. It belongs to one instance, and keeps the function alive there.
#[derive(Clone)]
pub struct Function {
    key: Arc<FunctionKey>,
}

/// The place of a function in its instance. Dropping it releases the function.
struct FunctionKey {
    slot: usize,
    released: Arc<Released>,
}

/// The functions of one instance that the host has released. Any thread may add to it.
#[derive(Default)]
pub(crate) struct Released {
    slots: Mutex<Vec<usize>>,
}

impl Value {
    /// The value of a key, if this is an object that has it.
    pub fn property(&self, key: &str) -> Option<&Value> {
        let Self::Object(entries) = self else { return None };
        entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The text, if this is text.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The kind of the value in words.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Undefined => "undefined",
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Bytes(_) => "bytes",
            Self::Html(_) => "markup",
            Self::Tree(_) => "a tree",
            Self::Array(_) | Self::Records(_) => "an array",
            Self::Object(_) | Self::Record(_) => "an object",
            Self::Function(_) => "a function",
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Records> for Value {
    fn from(records: Records) -> Self {
        Self::Records(Box::new(records))
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl Function {
    pub(crate) fn new(slot: usize, released: &Arc<Released>) -> Self {
        Self { key: Arc::new(FunctionKey { slot, released: Arc::clone(released) }) }
    }

    /// The slot in the instance to which `released` belongs; `None` in any other instance.
    pub(crate) fn slot_in(&self, released: &Arc<Released>) -> Option<usize> {
        Arc::ptr_eq(&self.key.released, released).then_some(self.key.slot)
    }
}

/// Two handles are equal if they are clones of one handle.
impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.key, &other.key)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Function({})", self.key.slot)
    }
}

impl Drop for FunctionKey {
    fn drop(&mut self) {
        let mut slots = self.released.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.push(self.slot);
    }
}

impl Released {
    /// Takes the slots that were released since the last call.
    pub(crate) fn take(&self) -> Vec<usize> {
        std::mem::take(&mut *self.slots.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
