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
//! | `vPLACES` | the values that handlers capture, an array: JSON in an attribute; see `captured` |
//! | `h` | the end of the page's head: a mark for the host; it takes no value |
//!
//! Markup in a hole of kind `t` keeps its marks. Every other hole writes its text only.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bine_html::Writer;
use bine_vocabulary::Context;
use rquickjs::{Ctx, Exception, Value};

use crate::captured::{CapturedPlace, Captures, captured_json, places};
use crate::markup::{code_of, mark_head_end, text_of};
use crate::quickjs::{self, Arguments, Kind, MarkupClass, Property, Thrown};

/// Why an element that holds text only cannot show a tree.
pub(crate) const TREE_IN_TEXT: &str = "a tree is not allowed here, only text: use its text()";
/// Why `<script>` and `<style>` cannot show a value.
pub(crate) const VALUE_IN_CODE: &str = "a script or style cannot show a value, except raw()";
/// Templates of one instance.
pub(crate) const MAX_TEMPLATES: usize = 16_384;
/// Bytes of all pieces of one instance.
pub(crate) const MAX_BYTES: usize = 8 << 20;
/// Arrays within arrays in one hole.
pub(crate) const MAX_DEPTH: u32 = 16;
/// A larger buffer is not kept for the next page.
pub(crate) const KEPT_BUFFER: usize = 256 << 10;

/// The templates of one instance.
#[derive(Default)]
pub(crate) struct Templates {
    pub(crate) list: RefCell<Vec<Rc<Template>>>,
    pub(crate) bytes: Cell<usize>,
    /// An empty buffer for the next page.
    pub(crate) buffer: Cell<Vec<u8>>,
}

/// The constant parts of a page, with a hole between two of them.
pub(crate) struct Template {
    pub(crate) first: String,
    pub(crate) holes: Vec<(Hole, String)>,
}

/// The context of a hole, which decides how a value is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hole {
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
    /// The values that the handlers of an element capture.
    Captured(Vec<CapturedPlace>),
    /// The end of the page's `<head>`. It has no value.
    HeadEnd,
}

/// An attribute without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    /// Everything before the value, as in ` class="`.
    pub(crate) opening: String,
    pub(crate) context: Context,
}

/// The values of one page.
pub(crate) struct Values<'a, 'js> {
    /// The template, and a value for each hole that takes one.
    pub(crate) arguments: &'a Arguments<'a, 'js>,
    pub(crate) holes: Holes<'a>,
}

/// The data that holes need from their instance.
#[derive(Clone, Copy)]
pub(crate) struct Holes<'a> {
    pub(crate) markup: MarkupClass,
    pub(crate) trees: &'a dyn TreeHoles,
    /// The values that handlers may capture; `None` where no handler is allowed.
    pub(crate) captures: Option<Captures<'a>>,
    /// The most bytes of a page.
    pub(crate) limit: usize,
}

/// Trees in holes.
pub(crate) trait TreeHoles {
    /// Whether a value is a tree.
    fn is_tree(&self, value: &Value<'_>) -> bool;

    /// Writes the markup of a tree. Its own nodes run functions of the script.
    fn write(&self, tree: &Value<'_>, out: &mut Vec<u8>) -> Result<(), Refused>;
}

/// A value that a hole cannot show, or [`Refused::PENDING`].
pub(crate) struct Refused(pub(crate) String);

impl Refused {
    /// The script has thrown an exception, which is pending.
    pub(crate) const PENDING: Self = Self(String::new());

    /// Throws the reason as a `TypeError`.
    pub(crate) fn throw(self, ctx: &Ctx<'_>) -> Thrown {
        if !self.0.is_empty() {
            Exception::throw_type(ctx, &self.0);
        }
        Thrown
    }
}

impl Templates {
    pub(crate) fn clear(&self) {
        self.buffer.take();
        self.list.borrow_mut().clear();
    }
}

impl Attribute {
    pub(crate) fn new(name: &str, context: Context) -> Option<Self> {
        let is_name = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'<>/=&".contains(&byte));
        is_name.then(|| Self { opening: format!(" {name}=\""), context })
    }

    /// The name.
    pub(crate) fn name(&self) -> &str {
        // The opening is a space, the name, and `="`.
        &self.opening[1..self.opening.len() - 2]
    }

    /// What [`write_attribute`] has written between the quotes.
    pub(crate) fn value_in<'w>(&self, written: &'w [u8]) -> &'w [u8] {
        &written[self.opening.len()..written.len() - 1]
    }
}

impl Hole {
    /// Parses the kind of a hole: a letter, and the name of the attribute or element.
    pub(crate) fn parse(kind: &str) -> Option<Self> {
        let (letter, name) = kind.split_at_checked(1)?;
        let attribute = |context| Attribute::new(name, context);
        Some(match letter {
            "t" => Self::Content,
            "u" => Self::Text,
            "x" => Self::RawText,
            "h" => Self::HeadEnd,
            "v" => Self::Captured(places(name)?),
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
    pub(crate) fn write(&self, values: &Values<'_, '_>, out: &mut Vec<u8>) -> Result<(), Refused> {
        // The first argument is the template itself.
        let mut index = 0;
        out.extend_from_slice(self.first.as_bytes());
        for (hole, piece) in &self.holes {
            if *hole == Hole::HeadEnd {
                mark_head_end(out);
            } else {
                index += 1;
                write_hole(hole, &values.arguments.at(index), values.holes, out)?;
            }
            out.extend_from_slice(piece.as_bytes());
            check_length(values.holes, out)?;
        }
        Ok(())
    }
}

/// Rejects a page that is too long.
pub(crate) fn check_length(holes: Holes<'_>, out: &[u8]) -> Result<(), Refused> {
    if out.len() <= holes.limit {
        return Ok(());
    }
    Err(Refused("a page larger than the memory of the script".to_owned()))
}

/// Writes a value into a hole.
pub(crate) fn write_hole(
    hole: &Hole,
    value: &Value<'_>,
    holes: Holes<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    let markup = holes.markup;
    match hole {
        Hole::Content => write_content(value, holes, out, 0),
        Hole::Text if holes.trees.is_tree(value) => Err(Refused(TREE_IN_TEXT.to_owned())),
        Hole::Text => write_plain(value, markup, out),
        Hole::RawText => match markup.read(value) {
            Some(markup) => {
                out.extend_from_slice(text_of(&code_of(markup)).as_bytes());
                Ok(())
            }
            None => Err(Refused(VALUE_IN_CODE.to_owned())),
        },
        Hole::Attribute(attribute) => write_attribute(value, attribute, markup, out),
        Hole::Action(attribute) => write_action(value, attribute, markup, out),
        Hole::Spread { element, written } => write_spread(value, element, written, markup, out),
        Hole::Captured(places) => match holes.captures {
            Some(captures) => {
                let json = captured_json(value, places, captures).map_err(Refused)?;
                // JSON has many double quotes.
                out.extend_from_slice(b" data-with='");
                for byte in json.bytes() {
                    match byte {
                        b'&' => out.extend_from_slice(b"&amp;"),
                        b'<' => out.extend_from_slice(b"&lt;"),
                        b'\'' => out.extend_from_slice(b"&#39;"),
                        _ => out.push(byte),
                    }
                }
                out.push(b'\'');
                Ok(())
            }
            None => Err(Refused("a tree has no handlers".to_owned())),
        },
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
    let Some(url) = url_of_service(value)? else {
        return write_attribute(value, attribute, markup, out);
    };
    write_attribute(&url, attribute, markup, out)?;
    out.extend_from_slice(b" method=\"post\"");
    Ok(())
}

/// The URL of a service; `None` for a value that has to be a URL itself.
pub(crate) fn url_of_service<'js>(value: &Value<'js>) -> Result<Option<Value<'js>>, Refused> {
    if !matches!(quickjs::kind(value), Kind::Object | Kind::Function) {
        return Ok(None);
    }
    match quickjs::property(value, "url") {
        Ok(Property::Value(url)) => Ok(Some(url)),
        _ => Err(Refused("a form can send to a service or a URL only".to_owned())),
    }
}

/// Writes the attributes of an object.
fn write_spread(
    value: &Value<'_>,
    element: &str,
    written: &[String],
    markup: MarkupClass,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    visit_spread(value, element, written, markup, |_, attribute, value| {
        write_attribute(value, attribute, markup, out)
    })
}

/// Passes the attributes of an object to `visit`: name, context and value.
pub(crate) fn visit_spread<'js>(
    value: &Value<'js>,
    element: &str,
    written: &[String],
    markup: MarkupClass,
    mut visit: impl FnMut(&str, &Attribute, &Value<'js>) -> Result<(), Refused>,
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
            Property::Value(value) => visit(name, &attribute, &value),
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
pub(crate) fn write_content(
    value: &Value<'_>,
    holes: Holes<'_>,
    out: &mut Vec<u8>,
    depth: u32,
) -> Result<(), Refused> {
    // The kind of an object takes several steps, so the frequent classes are first.
    if quickjs::is_object(value) {
        if let Some(markup) = holes.markup.read(value) {
            out.extend_from_slice(markup);
            return Ok(());
        }
        if holes.trees.is_tree(value) {
            return holes.trees.write(value, out);
        }
    }
    match quickjs::kind(value) {
        Kind::Text => write_text(value, out, escape),
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
                        write_content(&element, holes, out, depth + 1)?;
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
pub(crate) fn write_attribute(
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
            Some(markup) => escape(&text_of(&code_of(markup)), out),
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
pub(crate) fn write_plain(
    value: &Value<'_>,
    markup: MarkupClass,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
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
pub(crate) fn write_number(value: &Value<'_>, out: &mut Vec<u8>) {
    if let Some(number) = value.as_int() {
        return write_integer(number.into(), out);
    }
    let text = value.get::<rquickjs::convert::Coerced<String>>();
    out.extend_from_slice(text.map_or_else(|_| "NaN".to_owned(), |text| text.0).as_bytes());
}

/// Writes an integer without the cost of a formatter: pages often have a number in each row.
pub(crate) fn write_integer(number: i64, out: &mut Vec<u8>) {
    // The digits of 2^63, and a sign.
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        start -= 1;
        // A digit fits into a byte.
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        start -= 1;
        digits[start] = b'-';
    }
    out.extend_from_slice(&digits[start..]);
}

/// Writes text, escaped for content and attributes alike.
pub(crate) fn escape(text: &str, out: &mut Vec<u8>) {
    // Most texts need no escape, and a writer costs more than the look at a short one.
    if text.len() <= 64 && !text.bytes().any(|byte| b"&<>\"'".contains(&byte)) {
        return out.extend_from_slice(text.as_bytes());
    }
    Writer::new(out).text(text);
}

/// Writes a URL, escaped. One that a browser would run is replaced by an invalid one.
pub(crate) fn write_link(text: &str, is_image: bool, out: &mut Vec<u8>) {
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
pub(crate) fn refused(value: &Value<'_>) -> Refused {
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
