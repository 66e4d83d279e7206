//! The values that handlers in the browser capture: JSON in an attribute of their element.
//!
//! Plain data can travel: text, finite numbers, booleans, `null`, `undefined`, and arrays and plain
//! objects of these. Writing runs no code of the script: no getter, no `toJSON`.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};

use rquickjs::Value;

use crate::quickjs::{self, Kind, Property, Thrown};

/// The most bytes of the values of one element.
const MAX_CAPTURED: usize = 64 << 10;
/// An element whose values have more bytes is reported: each open page gets them, for each row of a list.
const LARGE: usize = 1 << 10;
/// Arrays and objects within each other.
const MAX_DEPTH: u32 = 16;

/// The limits of one instance for captured values.
#[derive(Clone, Copy)]
pub(crate) struct Captures<'c> {
    /// The class of plain objects.
    pub(crate) plain_class: u32,
    /// Keys that no captured object may have: the private columns of tables.
    pub(crate) private_keys: &'c RefCell<HashSet<String>>,
    pub(crate) large: &'c LargeCaptures,
}

/// The most handlers that one instance reports.
const MAX_REPORTS: usize = 100;

/// The handlers whose captured values are large: each value of the source is reported once.
#[derive(Debug, Default)]
pub(crate) struct LargeCaptures {
    /// The report by place and name, which two files may share; `None`: it was taken.
    reports: RefCell<BTreeMap<(String, String), Option<String>>>,
}

impl LargeCaptures {
    fn add(&self, place: &CapturedPlace, bytes: usize) {
        let mut reports = self.reports.borrow_mut();
        // The places are those of the source, but a script can pass any text.
        if reports.len() >= MAX_REPORTS {
            return;
        }
        let CapturedPlace { place, name } = place;
        reports.entry((place.clone(), name.clone())).or_insert_with(|| {
            Some(format!(
                "the handler at {place} passes {bytes} bytes of values to the browser with each of its elements, most of them for `{name}`: pass the parts that it uses, as in `row.id`"
            ))
        });
    }

    /// The reports since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        self.reports.borrow_mut().values_mut().filter_map(Option::take).collect()
    }
}

/// A captured value in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CapturedPlace {
    /// The line and the column of its first use.
    place: String,
    /// The expression as written.
    name: String,
}

/// Reads the places of captured values: one in each line, as `12:5 message.id`. An empty text has
/// none.
pub(crate) fn places(text: &str) -> Option<Vec<CapturedPlace>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let place = |line: &str| {
        let (place, name) = line.split_once(' ')?;
        Some(CapturedPlace { place: place.to_owned(), name: name.to_owned() })
    };
    text.split('\n').map(place).collect()
}

/// The JSON of captured values, or why one cannot travel.
pub(crate) fn captured_json(
    values: &Value<'_>,
    places: &[CapturedPlace],
    captures: Captures<'_>,
) -> Result<String, String> {
    let mut json = Vec::new();
    let elements = places.iter().enumerate().map(|(index, place)| {
        // An element has few handlers.
        let value = match quickjs::element(values, index as u32) {
            Ok(Property::Value(value)) => value,
            _ => Value::new_undefined(values.ctx().clone()),
        };
        (place, value)
    });
    let elements: Vec<_> = elements.collect();
    // JSON has no `undefined`: a missing key of an object is that.
    let has_gaps = elements.iter().any(|(_, value)| quickjs::kind(value) == Kind::Undefined);
    json.push(if has_gaps { b'{' } else { b'[' });
    let mut largest = (0, None);
    for (index, (CapturedPlace { place, name }, value)) in elements.iter().enumerate() {
        if quickjs::kind(value) == Kind::Undefined {
            continue;
        }
        separate(&mut json);
        let start = json.len();
        if has_gaps {
            json.extend_from_slice(format!("\"{index}\":").as_bytes());
        }
        let written = write_value(value, captures, &mut json, 0);
        written
            .map_err(|reason| format!("the handler at {place} uses `{name}`, which {reason}"))?;
        if json.len() - start > largest.0 {
            largest = (json.len() - start, Some(index));
        }
    }
    json.push(if has_gaps { b'}' } else { b']' });
    if let Some(place) = largest.1.and_then(|index| places.get(index))
        && json.len() > LARGE
    {
        captures.large.add(place, json.len());
    }
    // A value is UTF-8, and everything around it ASCII.
    String::from_utf8(json).map_err(|_| "captured values are no text".to_owned())
}

/// Ends the element before the next one.
fn separate(json: &mut Vec<u8>) {
    if !matches!(json.last(), Some(b'[' | b'{')) {
        json.push(b',');
    }
}

fn write_value(
    value: &Value<'_>,
    captures: Captures<'_>,
    json: &mut Vec<u8>,
    depth: u32,
) -> Result<(), String> {
    let refuse = |reason: &str| Err(reason.to_owned());
    match quickjs::kind(value) {
        Kind::Undefined | Kind::Null => json.extend_from_slice(b"null"),
        Kind::Bool if value.as_bool() == Some(true) => json.extend_from_slice(b"true"),
        Kind::Bool => json.extend_from_slice(b"false"),
        Kind::Number if value.as_number().is_some_and(f64::is_finite) => {
            // As `JSON.stringify` does.
            let text = value.get::<rquickjs::convert::Coerced<String>>();
            json.extend_from_slice(
                text.map_or_else(|_| "null".to_owned(), |text| text.0).as_bytes(),
            );
        }
        Kind::Number => return refuse("is no finite number: pass a text"),
        Kind::Text => {
            let written = quickjs::with_text(value, |text| write_text(text, json));
            written.ok_or("is a text too large to copy")?;
        }
        Kind::Array | Kind::Object if depth >= MAX_DEPTH => {
            return refuse("is nested too deeply: pass the parts that the function uses");
        }
        Kind::Array => write_array(value, captures, json, depth)?,
        Kind::Object if quickjs::class_id(value) == captures.plain_class => {
            write_object(value, captures, json, depth)?;
        }
        Kind::Function => {
            return refuse(
                "is a function of the server: declare it at the top of the module, or call a service",
            );
        }
        Kind::Promise => return refuse("is a promise: await it first"),
        Kind::Date => return refuse("is a Date: pass getTime() or toISOString()"),
        Kind::BigInt => return refuse("is a bigint: pass String() of it"),
        Kind::Symbol => return refuse("is a symbol"),
        _ => {
            return refuse(
                "is no plain data: pass texts, numbers, booleans, and arrays and plain objects of these",
            );
        }
    }
    if json.len() > MAX_CAPTURED {
        return Err(format!(
            "makes the values of one element longer than {MAX_CAPTURED} bytes: pass what the function uses"
        ));
    }
    Ok(())
}

fn write_array(
    array: &Value<'_>,
    captures: Captures<'_>,
    json: &mut Vec<u8>,
    depth: u32,
) -> Result<(), String> {
    json.push(b'[');
    let length = quickjs::length(array).unwrap_or_default();
    for index in 0..u32::try_from(length).unwrap_or(u32::MAX) {
        separate(json);
        match quickjs::element(array, index) {
            Ok(Property::Value(element)) => {
                write_value(&element, captures, json, depth + 1)
                    .map_err(|reason| within("an element", &reason, depth))?;
            }
            Ok(Property::Missing) => json.extend_from_slice(b"null"),
            Ok(Property::Accessor) => return Err("has a getter: pass its value".to_owned()),
            Err(Thrown) => return Err("exhausts the memory of the script".to_owned()),
        }
    }
    json.push(b']');
    Ok(())
}

/// Why an object cannot travel.
struct NotPlain(String);

impl From<Thrown> for NotPlain {
    fn from(_: Thrown) -> Self {
        Self("exhausts the memory of the script".to_owned())
    }
}

fn write_object(
    object: &Value<'_>,
    captures: Captures<'_>,
    json: &mut Vec<u8>,
    depth: u32,
) -> Result<(), String> {
    json.push(b'{');
    let visited = quickjs::properties(object, |_, name, found| {
        if captures.private_keys.borrow().contains(name) {
            return Err(NotPlain(format!(
                "has the private column `{name}`: use the columns that the function needs, as in `row.id`"
            )));
        }
        match found {
            Property::Missing => Ok(()),
            Property::Accessor => Err(NotPlain(format!("has the getter `{name}`: pass its value"))),
            Property::Value(value) if quickjs::kind(&value) == Kind::Undefined => Ok(()),
            Property::Value(value) => {
                separate(json);
                write_text(name, json);
                json.push(b':');
                write_value(&value, captures, json, depth + 1).map_err(|reason| {
                    NotPlain(within(&format!("a property `{name}`"), &reason, depth))
                })
            }
        }
    });
    visited.map_err(|NotPlain(reason)| {
        drop(object.ctx().catch());
        reason
    })?;
    json.push(b'}');
    Ok(())
}

/// A reason with the way to the value, which is short.
fn within(part: &str, reason: &str, depth: u32) -> String {
    if depth < 3 { format!("has {part} that {reason}") } else { reason.to_owned() }
}

/// Writes a JSON string (RFC 8259, section 7).
fn write_text(text: &str, json: &mut Vec<u8>) {
    json.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => json.extend_from_slice(&[b'\\', byte]),
            0..0x20 => json.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => json.push(byte),
        }
    }
    json.push(b'"');
}
