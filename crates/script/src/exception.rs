//! Exceptions as [`ScriptError`]s and values in words, without running code of the script.

use std::fmt::Write as _;

use rquickjs::{Ctx, Value};

use crate::error::{Frame, Position, ScriptError};
use crate::quickjs::{self, Kind, Property, Thrown};

/// Frames that are kept of a stack trace, and causes of an error.
const MAX_FRAMES: usize = 20;
const MAX_CAUSES: usize = 8;
/// Prototypes that are searched for a name.
const MAX_PROTOTYPES: usize = 8;
/// Bytes of one description.
const MAX_BYTES: usize = 16 << 10;
/// Levels of arrays and objects.
const MAX_DEPTH: usize = 4;
/// Entries that are shown of an array or an object.
const MAX_ENTRIES: usize = 100;
/// Bytes that are kept of a message.
const MAX_MESSAGE: usize = 4096;

/// Takes the pending exception.
pub(crate) fn take(ctx: &Ctx<'_>) -> ScriptError {
    of_value(&ctx.catch())
}

/// The error that a thrown value describes.
pub(crate) fn of_value(thrown: &Value<'_>) -> ScriptError {
    of_value_within(thrown, MAX_CAUSES)
}

fn of_value_within(thrown: &Value<'_>, causes: usize) -> ScriptError {
    if quickjs::kind(thrown) != Kind::Error {
        let message = inspect(thrown);
        return ScriptError { message: shortened(message), ..ScriptError::default() };
    }
    let stack = match quickjs::property(thrown, "stack") {
        Ok(Property::Value(stack)) => quickjs::with_text(&stack, str::to_owned),
        _ => quickjs::stack_of(thrown),
    };
    let stack = stack.unwrap_or_default();
    let cause = match quickjs::property(thrown, "cause") {
        Ok(Property::Value(cause)) if causes > 0 => {
            Some(Box::new(of_value_within(&cause, causes - 1)))
        }
        _ => None,
    };
    ScriptError {
        name: text_property(thrown, "name").unwrap_or_else(|| "Error".to_owned()),
        message: shortened(text_property(thrown, "message").unwrap_or_default()),
        frames: stack.lines().filter_map(frame).take(MAX_FRAMES).collect(),
        cause,
        ..ScriptError::default()
    }
}

/// A text property of an object or of its prototypes. Getters do not run.
fn text_property(object: &Value<'_>, name: &str) -> Option<String> {
    let mut object = object.clone();
    for _ in 0..MAX_PROTOTYPES {
        if quickjs::kind(&object) == Kind::Proxy {
            return None;
        }
        match quickjs::property(&object, name) {
            Ok(Property::Value(value)) => return quickjs::with_text(&value, str::to_owned),
            Ok(Property::Accessor) => return None,
            Ok(Property::Missing) => object = object.as_object()?.get_prototype()?.into_value(),
            Err(Thrown) => {
                object.ctx().catch();
                return None;
            }
        }
    }
    None
}

/// A line of the engine's stack trace: `    at name (file:line:column)`.
fn frame(line: &str) -> Option<Frame> {
    let text = line.trim().strip_prefix("at ")?;
    let (function, place) = match text.strip_suffix(')').and_then(|text| text.rsplit_once(" (")) {
        Some((function, place)) => (function, place),
        None => ("", text),
    };
    let function = if function == "<anonymous>" { "" } else { function };
    Some(Frame { function: function.to_owned(), position: position(place) })
}

fn position(place: &str) -> Option<Position> {
    let (rest, column) = place.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    let (line, column) = (line.parse().ok()?, column.parse().ok()?);
    Some(Position { file: file.to_owned(), line, column })
}

fn shortened(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(MAX_MESSAGE));
    message
}

/// A value in words: a string as it is, and others about as a program would write them.
pub(crate) fn inspect(value: &Value<'_>) -> String {
    if let Some(text) = quickjs::with_text(value, |text| beginning(text).to_owned()) {
        return text;
    }
    let mut out = String::new();
    write(&mut out, value, 0);
    out
}

fn write(out: &mut String, value: &Value<'_>, depth: usize) {
    // A `String` takes any text, so the results of `write!` are `Ok`.
    match quickjs::kind(value) {
        Kind::Undefined => out.push_str("undefined"),
        Kind::Null => out.push_str("null"),
        Kind::Bool => drop(write!(out, "{}", value.as_bool().unwrap_or_default())),
        Kind::Number => drop(write!(out, "{}", value.as_number().unwrap_or(f64::NAN))),
        Kind::Text => drop(quickjs::with_text(value, |text| write!(out, "{:?}", beginning(text)))),
        Kind::Symbol => out.push_str("[symbol]"),
        Kind::BigInt => out.push_str("[bigint]"),
        Kind::Function => out.push_str("[function]"),
        Kind::Proxy => out.push_str("[proxy]"),
        Kind::Promise => out.push_str("[promise]"),
        Kind::Date => out.push_str("[date]"),
        Kind::Error if depth == 0 => drop(write!(out, "{}", of_value(value))),
        Kind::Error => out.push_str(&of_value(value).message),
        Kind::Internal => out.push_str("[internal]"),
        Kind::Array if depth == MAX_DEPTH => out.push_str("[...]"),
        Kind::Array => write_array(out, value, depth),
        Kind::Object if depth == MAX_DEPTH => out.push_str("{...}"),
        Kind::Object => write_object(out, value, depth),
    }
}

fn write_array(out: &mut String, array: &Value<'_>, depth: usize) {
    let length = quickjs::length(array).unwrap_or(0);
    out.push('[');
    for index in 0..length.min(MAX_ENTRIES) {
        out.push_str(if index == 0 { "" } else { ", " });
        if out.len() > MAX_BYTES {
            break;
        }
        // `index` is at most `MAX_ENTRIES`.
        match quickjs::element(array, index as u32) {
            Ok(found) => write_property(out, &found, depth),
            Err(Thrown) => drop(array.ctx().catch()),
        }
    }
    out.push_str(if length > MAX_ENTRIES || out.len() > MAX_BYTES { ", ...]" } else { "]" });
}

fn write_object(out: &mut String, object: &Value<'_>, depth: usize) {
    out.push('{');
    let visited = quickjs::properties(object, |_, key, found| {
        if out.len() > MAX_BYTES {
            return Err(Thrown);
        }
        out.push_str(if out.ends_with('{') { " " } else { ", " });
        out.push_str(beginning(key));
        out.push_str(": ");
        write_property(out, &found, depth);
        Ok(())
    });
    if visited.is_err() {
        object.ctx().catch();
        out.push_str(", ...");
    }
    out.push_str(" }");
}

fn write_property(out: &mut String, found: &Property<'_>, depth: usize) {
    match found {
        Property::Value(value) => write(out, value, depth + 1),
        Property::Accessor => out.push_str("[getter]"),
        Property::Missing => out.push_str("[hole]"),
    }
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_BYTES)]
}
