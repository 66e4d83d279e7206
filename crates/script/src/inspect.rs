//! Values in words, for the console and for messages, without running code of the script.

use std::fmt::Write as _;

use rquickjs::Value;

use crate::exception;
use crate::quickjs::{self, Kind, Property, Thrown};

/// Bytes of one description.
const MAX_BYTES: usize = 16 << 10;
/// Levels of arrays and objects.
const MAX_DEPTH: usize = 4;
/// Entries that are shown of an array or an object.
const MAX_ENTRIES: usize = 100;

/// A value in words: a string as it is, and others about as a program would write them.
pub(crate) fn inspect(value: &Value<'_>) -> String {
    if let Some(text) = quickjs::with_text(value, |text| shortened(text).to_owned()) {
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
        Kind::Text => drop(quickjs::with_text(value, |text| write!(out, "{:?}", shortened(text)))),
        Kind::Symbol => out.push_str("[symbol]"),
        Kind::BigInt => out.push_str("[bigint]"),
        Kind::Function => out.push_str("[function]"),
        Kind::Proxy => out.push_str("[proxy]"),
        Kind::Promise => out.push_str("[promise]"),
        Kind::Date => out.push_str("[date]"),
        Kind::Error if depth == 0 => drop(write!(out, "{}", exception::of_value(value))),
        Kind::Error => out.push_str(&exception::of_value(value).message),
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
        out.push_str(shortened(key));
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

fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_BYTES)]
}
