//! Markup from pieces: constant parts with holes between them, escaped by their context.
//!
//! A compiler registers each constant part of a page once, when its module is loaded:
//! `$markup(pieces, kinds)`. A page is then `$html(template, ...values)`, which writes pieces and
//! values into one buffer and returns an object of the class of markup.
//!
//! The kind of a hole is a letter, and a name for some letters:
//!
//! | kind | context |
//! |---|---|
//! | `t` | content of an element |
//! | `u` | content of an element that holds text only |
//! | `x` | content of `<script>` or `<style>`: trusted text only |
//! | `aNAME`, `lNAME`, `iNAME`, `cNAME` | an attribute with text, a URL, the URL of an image, or code |
//! | `pNAME` | the target of a form: a URL, or an object with a `url`, which is posted to |
//! | `sELEMENT NAME..` | a spread: the element, and the attributes that take precedence |
//! | `h` | the end of the page's head; it takes no value |

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::rc::Rc;

use bine_html::Writer;
use bine_vocabulary::Context;
use rquickjs::{Ctx, Exception, Value};

use crate::host_function::{HostError, throw};
use crate::quickjs::{self, Arguments, Callback, Kind, MarkupClass, Property, Thrown};
use crate::state::State;

/// Templates of one instance.
const MAX_TEMPLATES: usize = 16_384;
/// Bytes of all pieces of one instance.
const MAX_BYTES: usize = 8 << 20;
/// Arrays within arrays in one hole.
const MAX_DEPTH: u32 = 16;
/// A larger buffer is not kept for the next page.
const KEPT_BUFFER: usize = 256 << 10;

/// The templates of one instance.
#[derive(Default)]
pub(crate) struct Templates {
    list: RefCell<Vec<Rc<Template>>>,
    bytes: Cell<usize>,
    /// An empty buffer for the next page.
    buffer: Cell<Vec<u8>>,
}

/// The constant parts of a page, with a hole between two of them.
struct Template {
    first: String,
    holes: Vec<(Hole, String)>,
}

/// The context of a hole, which decides how a value is written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hole {
    /// Content of an element.
    Content,
    /// Content of an element that holds text only.
    Text,
    /// Content of `<script>` or `<style>`.
    RawText,
    /// A whole attribute, which some values omit.
    Attribute(Attribute),
    /// The `action` of a form whose method is not written: a service adds the method.
    Action(Attribute),
    /// The attributes of an object. Those that are written take precedence.
    Spread { element: String, written: Vec<String> },
    /// The end of the page's `<head>`. It has no value.
    HeadEnd,
}

/// An attribute without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Attribute {
    /// Everything before the value, as in ` class="`.
    opening: String,
    context: Context,
}

/// The function `$markup(pieces, holes)` of scripts: a new template.
pub(crate) struct NewTemplate {
    pub(crate) state: Rc<State>,
}

/// The function `$html(template, ...values)` of scripts: markup from a template.
pub(crate) struct FillTemplate {
    pub(crate) state: Rc<State>,
}

/// The function `raw(text)` of scripts: trusted text as markup.
pub(crate) struct TrustedMarkup {
    pub(crate) state: Rc<State>,
}

/// `toString` of markup.
pub(crate) struct MarkupText {
    pub(crate) state: Rc<State>,
}

/// A value that a hole cannot show.
struct Refused(String);

impl Templates {
    pub(crate) fn clear(&self) {
        self.buffer.take();
        self.list.borrow_mut().clear();
    }
}

impl Attribute {
    fn new(name: &str, context: Context) -> Option<Self> {
        let is_name = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'<>/=&".contains(&byte));
        is_name.then(|| Self { opening: format!(" {name}=\""), context })
    }
}

impl Hole {
    /// Parses the kind of a hole: a letter, and the name of the attribute or element.
    fn parse(kind: &str) -> Option<Self> {
        let (letter, name) = kind.split_at_checked(1)?;
        let attribute = |context| Attribute::new(name, context);
        Some(match letter {
            "t" => Self::Content,
            "u" => Self::Text,
            "x" => Self::RawText,
            "h" => Self::HeadEnd,
            "a" => Self::Attribute(attribute(Context::Text)?),
            "l" => Self::Attribute(attribute(Context::Link)?),
            "i" => Self::Attribute(attribute(Context::Image)?),
            "c" => Self::Attribute(attribute(Context::Code)?),
            "p" => Self::Action(attribute(Context::Link)?),
            "s" => {
                let mut names = name.split(' ').map(str::to_owned);
                Self::Spread { element: names.next()?, written: names.collect() }
            }
            _ => return None,
        })
    }
}

impl Template {
    fn write(
        &self,
        state: &State,
        arguments: &Arguments<'_, '_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let markup = state.classes().markup;
        // The first argument is the template itself.
        let mut index = 0;
        out.extend_from_slice(self.first.as_bytes());
        for (hole, piece) in &self.holes {
            if *hole == Hole::HeadEnd {
                out.extend_from_slice(state.head.as_bytes());
            } else {
                index += 1;
                write_hole(hole, &arguments.at(index), markup, out)?;
            }
            out.extend_from_slice(piece.as_bytes());
            if out.len() > state.limits.memory {
                return Err(Refused("a page larger than the memory of the script".to_owned()));
            }
        }
        Ok(())
    }
}

impl Callback for FillTemplate {
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Thrown> {
        let ctx = arguments.ctx();
        let templates = &self.state.templates;
        let index = arguments.at(0).as_int().and_then(|index| usize::try_from(index).ok());
        let template = index.and_then(|index| templates.list.borrow().get(index).cloned());
        let Some(template) = template else {
            Exception::throw_type(ctx, "the first argument is no template");
            return Err(Thrown);
        };
        let mut out = templates.buffer.take();
        let written = template.write(&self.state, arguments, &mut out);
        let result = match written {
            // All parts of the buffer are whole texts.
            Ok(()) => match std::str::from_utf8(&out) {
                Ok(text) => self.state.classes().markup.create(ctx, text),
                Err(_) => Err(Thrown),
            },
            Err(Refused(reason)) => {
                Exception::throw_type(ctx, &reason);
                Err(Thrown)
            }
        };
        if out.capacity() <= KEPT_BUFFER {
            out.clear();
            templates.buffer.set(out);
        }
        result
    }
}

fn write_hole(
    hole: &Hole,
    value: &Value<'_>,
    markup: MarkupClass,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    match hole {
        Hole::Content => write_content(value, markup, out, 0),
        Hole::Text => write_plain(value, markup, out),
        Hole::RawText => match markup.read(value) {
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                Ok(())
            }
            None => Err(Refused("a script or style cannot show a value, except raw()".to_owned())),
        },
        Hole::Attribute(attribute) => write_attribute(value, attribute, markup, out),
        Hole::Action(attribute) => write_action(value, attribute, markup, out),
        Hole::Spread { element, written } => write_spread(value, element, written, markup, out),
        Hole::HeadEnd => Ok(()),
    }
}

/// Writes the target of a form. A service, which has a `url`, also decides the method.
fn write_action(
    value: &Value<'_>,
    attribute: &Attribute,
    markup: MarkupClass,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    if !matches!(quickjs::kind(value), Kind::Object | Kind::Function) {
        return write_attribute(value, attribute, markup, out);
    }
    let Ok(Property::Value(url)) = quickjs::property(value, "url") else {
        return Err(Refused("a form can send to a service or a URL only".to_owned()));
    };
    write_attribute(&url, attribute, markup, out)?;
    out.extend_from_slice(b" method=\"post\"");
    Ok(())
}

/// Writes the attributes of an object.
fn write_spread(
    value: &Value<'_>,
    element: &str,
    written: &[String],
    markup: MarkupClass,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    match quickjs::kind(value) {
        Kind::Undefined | Kind::Null | Kind::Bool => return Ok(()),
        Kind::Object if markup.read(value).is_none() => {}
        _ => return Err(Refused("a spread takes an object with attributes".to_owned())),
    }
    let visited = quickjs::properties(value, |_, name, found| {
        if name == "children" || written.iter().any(|other| other.eq_ignore_ascii_case(name)) {
            return Ok(());
        }
        let refuse = |reason: &str| Err(Refused(format!("the attribute `{name}` {reason}")));
        let Some(attribute) = Attribute::new(name, Context::of(element, name)) else {
            return refuse("has no valid name");
        };
        match found {
            Property::Value(value) => write_attribute(&value, &attribute, markup, out),
            Property::Accessor => refuse("is a getter; pass its value"),
            Property::Missing => Ok(()),
        }
    });
    visited.inspect_err(|_| drop(value.ctx().catch()))
}

impl From<Thrown> for Refused {
    fn from(_: Thrown) -> Self {
        Self("the memory of the script is exhausted".to_owned())
    }
}

/// Writes the content of an element. `null`, `undefined` and booleans are nothing.
fn write_content(
    value: &Value<'_>,
    markup: MarkupClass,
    out: &mut Vec<u8>,
    depth: u32,
) -> Result<(), Refused> {
    match quickjs::kind(value) {
        Kind::Text => write_text(value, out, escape),
        Kind::Object => match markup.read(value) {
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                Ok(())
            }
            None => Err(refused(value)),
        },
        Kind::Undefined | Kind::Null | Kind::Bool => Ok(()),
        Kind::Number => {
            write_number(value, out);
            Ok(())
        }
        Kind::Array if depth < MAX_DEPTH => {
            let length = quickjs::length(value).unwrap_or(0);
            for index in 0..u32::try_from(length).unwrap_or(u32::MAX) {
                match quickjs::element(value, index) {
                    Ok(Property::Value(element)) => {
                        write_content(&element, markup, out, depth + 1)?;
                    }
                    Ok(Property::Missing) => {}
                    Ok(Property::Accessor) | Err(Thrown) => return Err(refused(value)),
                }
            }
            Ok(())
        }
        _ => Err(refused(value)),
    }
}

/// Writes a whole attribute. `null`, `undefined` and `false` omit it; `true` writes it without a
/// value; the elements of an array are separated by spaces.
fn write_attribute(
    value: &Value<'_>,
    attribute: &Attribute,
    markup: MarkupClass,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    let kind = quickjs::kind(value);
    match kind {
        Kind::Undefined | Kind::Null => return Ok(()),
        Kind::Bool if !value.as_bool().unwrap_or_default() => return Ok(()),
        _ => {}
    }
    out.extend_from_slice(attribute.opening.as_bytes());
    match (attribute.context, kind) {
        (_, Kind::Bool) => {}
        (Context::Code, _) => match markup.read(value) {
            Some(text) => escape(text, out),
            None => {
                let reason = "an attribute that the browser runs or applies as style cannot show \
                              a value, except raw()";
                return Err(Refused(reason.to_owned()));
            }
        },
        (Context::Text, Kind::Text) => write_text(value, out, escape)?,
        (Context::Text, Kind::Array) => escape(&joined(value, markup)?, out),
        (Context::Link | Context::Image, Kind::Text | Kind::Array) => {
            let is_image = attribute.context == Context::Image;
            let write = |text: &str, out: &mut Vec<u8>| write_link(text, is_image, out);
            if kind == Kind::Text {
                write_text(value, out, write)?;
            } else {
                write(&joined(value, markup)?, out);
            }
        }
        _ => write_plain(value, markup, out)?,
    }
    out.push(b'"');
    Ok(())
}

/// Writes text or a number. Markup is refused.
fn write_plain(value: &Value<'_>, markup: MarkupClass, out: &mut Vec<u8>) -> Result<(), Refused> {
    match quickjs::kind(value) {
        Kind::Text => write_text(value, out, escape),
        Kind::Number => {
            write_number(value, out);
            Ok(())
        }
        Kind::Undefined | Kind::Null | Kind::Bool => Ok(()),
        Kind::Object if markup.read(value).is_some() => {
            Err(Refused("markup is not allowed here, only text".to_owned()))
        }
        _ => Err(refused(value)),
    }
}

/// The texts and numbers of an array, separated by spaces.
fn joined(array: &Value<'_>, markup: MarkupClass) -> Result<String, Refused> {
    let mut joined = String::new();
    let length = quickjs::length(array).unwrap_or(0);
    for index in 0..u32::try_from(length).unwrap_or(u32::MAX) {
        let Ok(Property::Value(element)) = quickjs::element(array, index) else {
            return Err(refused(array));
        };
        let start = joined.len();
        joined.push_str(if joined.is_empty() { "" } else { " " });
        match quickjs::kind(&element) {
            Kind::Undefined | Kind::Null | Kind::Bool => joined.truncate(start),
            Kind::Text => {
                let added = quickjs::with_text(&element, |text| joined.push_str(text));
                added.ok_or_else(|| refused(array))?;
            }
            _ => {
                let mut written = Vec::new();
                write_plain(&element, markup, &mut written)?;
                joined.push_str(&String::from_utf8_lossy(&written));
            }
        }
    }
    Ok(joined)
}

fn write_text(
    value: &Value<'_>,
    out: &mut Vec<u8>,
    write: impl Fn(&str, &mut Vec<u8>),
) -> Result<(), Refused> {
    quickjs::with_text(value, |text| write(text, out)).ok_or_else(|| refused(value))
}

/// Writes a number as JavaScript does.
fn write_number(value: &Value<'_>, out: &mut Vec<u8>) {
    if let Some(number) = value.as_int() {
        let mut text = String::new();
        // A `String` takes any text.
        let _ = write!(text, "{number}");
        out.extend_from_slice(text.as_bytes());
        return;
    }
    let text = value.get::<rquickjs::convert::Coerced<String>>();
    out.extend_from_slice(text.map_or_else(|_| "NaN".to_owned(), |text| text.0).as_bytes());
}

/// Writes text, escaped for content and attributes alike.
fn escape(text: &str, out: &mut Vec<u8>) {
    Writer::new(out).text(text);
}

/// Writes a URL, escaped. One that a browser would run is replaced by an invalid one.
fn write_link(text: &str, is_image: bool, out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    if is_image {
        writer.image("", text);
    } else {
        writer.link("", text);
    }
    drop(writer);
    // The writer ends the value with a quote, as the caller does.
    out.pop();
}

/// Why a hole cannot show a value.
fn refused(value: &Value<'_>) -> Refused {
    let found = match quickjs::kind(value) {
        Kind::Promise => "a promise; await it first",
        Kind::Function => "a function; call it",
        Kind::Symbol => "a symbol",
        Kind::BigInt => "a bigint; convert it with String()",
        Kind::Array => "an array that is nested too deeply or has getters",
        Kind::Date => "a Date; convert it to text first",
        _ => "an object; choose one of its properties",
    };
    Refused(format!("a page cannot show {found}"))
}

impl Callback for NewTemplate {
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Thrown> {
        let (ctx, state) = (arguments.ctx(), &self.state);
        let refuse = |message: &str| throw(state, ctx, &HostError::Type(message.to_owned()));
        let (Some(pieces), Some(kinds)) = (texts(&arguments.at(0)), texts(&arguments.at(1))) else {
            return Err(refuse("a template has an array of pieces and an array of holes"));
        };
        if pieces.len() != kinds.len() + 1 {
            return Err(refuse("a template has one more piece than holes"));
        }
        let holes: Option<Vec<_>> = kinds.iter().map(|kind| Hole::parse(kind)).collect();
        let Some(holes) = holes else {
            return Err(refuse("a hole of a template has an unknown kind"));
        };
        let bytes = pieces.iter().map(String::len).sum::<usize>() + 64 * pieces.len();
        let templates = &state.templates;
        let sum = templates.bytes.get().saturating_add(bytes);
        let mut list = templates.list.borrow_mut();
        if list.len() >= MAX_TEMPLATES || sum > MAX_BYTES {
            return Err(throw(state, ctx, &HostError::Range("too many templates".to_owned())));
        }
        let mut pieces = pieces.into_iter();
        let first = pieces.next().unwrap_or_default();
        list.push(Rc::new(Template { first, holes: holes.into_iter().zip(pieces).collect() }));
        templates.bytes.set(sum);
        Ok(Value::new_number(ctx.clone(), (list.len() - 1) as f64))
    }
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

impl Callback for TrustedMarkup {
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Thrown> {
        let ctx = arguments.ctx();
        let markup = self.state.classes().markup;
        let text = quickjs::with_text(&arguments.at(0), str::to_owned);
        let Some(text) = text else {
            let message = "raw() takes a string".to_owned();
            return Err(throw(&self.state, ctx, &HostError::Type(message)));
        };
        markup.create(ctx, &text)
    }
}

impl Callback for MarkupText {
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Thrown> {
        let ctx: &Ctx<'js> = arguments.ctx();
        let value = arguments.at(0);
        let text = self.state.classes().markup.read(&value).unwrap_or_default();
        let text = rquickjs::String::from_str(ctx.clone(), text).map_err(|_| Thrown)?;
        Ok(text.into_value())
    }
}
