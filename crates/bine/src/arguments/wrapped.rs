//! Arguments that are a single text: from the query, the path, a header field or a cookie.

use std::fmt;
use std::ops::Deref;

use bine_html::{Attribute, AttributeValue, Render, Writer};
use bine_http::query::{self, MAX_PAIRS};

use super::{FromRequest, FromText, Rejection, RequestParts};
use crate::trace::RequestDependency;
use crate::visitor_message::VisitorMessage;

/// An argument from the query: for `/hello?name=TLUG`, `name: Query<Text>` is `TLUG`.
///
/// The argument's name is the parameter's name. `Query<Option<T>>` may be missing; any other type
/// is required. If the parameter occurs more than once, the first one counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Query<T>(pub T);

/// An argument from the path: in a page at `/forum/{id}`, `id: Path<u32>` is that segment. A path
/// whose segment cannot be read as this type does not exist (404).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Path<T>(pub T);

/// An argument from a header field of the request: `user_agent: Header<Text>` is `User-Agent`.
///
/// `Header<Option<T>>` may be missing. If the field occurs more than once, the first one counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Header<T>(pub T);

/// An argument from the cookie of its name (RFC 6265). `Cookie<Option<T>>` may be missing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Cookie<T>(pub T);

/// Converts the argument's text, or its absence, to its value.
pub(super) fn value<T: FromText>(
    name: &'static str,
    text: Option<&str>,
    place: &str,
) -> Result<T, Rejection> {
    match text {
        Some(text) => T::from_text(text).map_err(|reason| Rejection::invalid(name, reason)),
        None => T::missing().ok_or_else(|| {
            Rejection::invalid(name, VisitorMessage::MissingFrom { place: place.to_owned() })
        }),
    }
}

/// The value of the first pair with this name in a form or a query; `place` names which.
pub(super) fn one_of_pairs<T: FromText>(
    text: &str,
    name: &'static str,
    place: &str,
) -> Result<T, Rejection> {
    let mut pairs = query::pairs(text);
    let found = pairs.find(|(key, _)| key.is(name)).map(|(_, value)| value);
    // It may follow the last pair that was parsed.
    if found.is_none() && pairs.is_truncated() {
        let reason = VisitorMessage::BeyondFields { most: MAX_PAIRS, place: place.to_owned() };
        return Err(Rejection::invalid(name, reason));
    }
    let text = found.map(|value| value.decode()).transpose();
    let text = text.map_err(|_| Rejection::invalid(name, VisitorMessage::NotEncoded {}))?;
    value(name, text.as_deref(), place)
}

/// All names and texts of a form or a query, in the order sent.
///
/// # Errors
///
/// Returns the reason, as a sentence.
pub(crate) fn texts(text: &str, place: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = query::pairs(text);
    let texts = pairs.by_ref().map(|(name, value)| {
        let pair =
            name.decode().and_then(|name| Ok((name.into_owned(), value.decode()?.into_owned())));
        pair.map_err(|_| format!("the {place} is not encoded UTF-8 text"))
    });
    let texts = texts.collect::<Result<_, _>>()?;
    if pairs.is_truncated() {
        return Err(format!("the {place} has more than {MAX_PAIRS} fields: send fewer, or JSON"));
    }
    Ok(texts)
}

impl<T: FromText> FromRequest for Query<T> {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let query = request.incoming.head.query().unwrap_or_default();
        one_of_pairs(query, name, "query").map(Self)
    }
}

impl<T: FromText> FromRequest for Path<T> {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let path = request.incoming.head.path();
        value(name, request.pattern.find(&path, name), "path").map(Self).map_err(|rejection| {
            match rejection {
                Rejection::Invalid { name, reason } => Rejection::InvalidPath { name, reason },
                other => other,
            }
        })
    }
}

impl<T: FromText> FromRequest for Header<T> {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let head = &request.incoming.head;
        let field =
            if name.contains('_') { head.field(&name.replace('_', "-")) } else { head.field(name) };
        RequestDependency::Header(name).note(|| seen(field));
        let text = field.map(str::from_utf8).transpose();
        let text = text.map_err(|_| Rejection::invalid(name, VisitorMessage::NotUtf8 {}))?;
        value(name, text, "fields").map(Self)
    }
}

impl<T: FromText> FromRequest for Cookie<T> {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let cookies = request.incoming.head.field_text("cookie").unwrap_or_default();
        let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
        let found = pairs.find(|(key, _)| *key == name).map(|(_, value)| value);
        RequestDependency::Cookie(name).note(|| seen(found.map(str::as_bytes)));
        let unquoted = found.map(|text| {
            text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
        });
        value(name, unquoted, "cookies").map(Self)
    }
}

/// An encoding of the value that distinguishes an empty value from a missing one.
fn seen(found: Option<&[u8]>) -> Vec<u8> {
    found.map(|value| [b"=", value].concat()).unwrap_or_default()
}

/// Makes a wrapper dereference, format and render as its value.
macro_rules! reads_like_its_value {
    ($($wrapper:ident),+) => {$(
        impl<T> Deref for $wrapper<T> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.0
            }
        }

        impl<T: fmt::Display> fmt::Display for $wrapper<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl<T: Render> Render for $wrapper<T> {
            #[inline]
            fn render(&self, writer: &mut Writer<'_>) {
                self.0.render(writer);
            }
        }

        impl<T: AttributeValue> AttributeValue for $wrapper<T> {
            fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
                self.0.write_attribute(attribute, writer);
            }
        }
    )+};
}

reads_like_its_value!(Query, Path, Header, Cookie);
pub(super) use reads_like_its_value;
