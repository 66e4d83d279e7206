//! The arguments of a call: finds them by name in the body or the query, and rejects unknown names.

use std::collections::HashSet;
use std::slice;

use bine_http::Status;
use serde::de::DeserializeOwned;
use serde_json::Map;

use super::field::{Field, Missing, Reason};
use crate::arguments::{form_fields, is_json, texts};
use crate::error::Error;
use crate::nearest::nearest;
use crate::problem::ArgumentError;
use crate::text::shortened;
use crate::visitor_message::VisitorMessage;
use crate::wire::{self, Limits, Value};

/// The arguments of a call as the client sent them.
#[derive(Debug)]
pub struct CallArguments(Source);

#[derive(Debug)]
enum Source {
    Json(Map<String, Value>),
    /// From a form or a query. A name may occur several times.
    Texts(Vec<(String, String)>),
}

/// Why the arguments cannot be read.
#[derive(Debug)]
pub(super) enum ArgumentsError {
    /// The media type is not supported.
    Unsupported,
    /// The content is invalid, with this message.
    Bad(String),
}

impl ArgumentsError {
    /// The error for the client.
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Bad(reason) => {
                Error::told(Status::BAD_REQUEST, VisitorMessage::Malformed { reason })
            }
            Self::Unsupported => {
                Error::told(Status::UNSUPPORTED_MEDIA_TYPE, VisitorMessage::MediaType {})
            }
        }
    }
}

impl CallArguments {
    /// The captured values of an action, which this program has written.
    pub(super) fn captured(json: &[u8]) -> Result<Self, Error> {
        match wire::read(json, &Limits::default())? {
            Value::Object(named) => Ok(Self(Source::Json(named))),
            _ => Ok(Self(Source::Json(Map::new()))),
        }
    }

    /// The arguments in a query.
    pub(super) fn in_query(text: &str) -> Result<Self, ArgumentsError> {
        let texts = texts(text, "query").map_err(ArgumentsError::Bad)?;
        Ok(Self(Source::Texts(texts)))
    }

    /// Whether this media type is supported. An empty body needs no type.
    pub(super) fn is_readable(kind: &str) -> bool {
        kind.is_empty() || is_json(kind) || is_form(kind)
    }

    /// The arguments in a body of this media type.
    pub(super) fn in_content(kind: &str, bytes: &[u8]) -> Result<Self, ArgumentsError> {
        if bytes.is_empty() {
            return Ok(Self(Source::Json(Map::new())));
        }
        if is_form(kind) {
            let fields = form_fields(kind, bytes).map_err(ArgumentsError::Bad)?;
            return Ok(Self(Source::Texts(fields)));
        }
        // A browser sends plain text to other sites without a CORS preflight, but not JSON.
        if !is_json(kind) {
            return Err(ArgumentsError::Unsupported);
        }
        match wire::read(bytes, &Limits::default()) {
            Ok(Value::Object(named)) => Ok(Self(Source::Json(named))),
            Ok(_) => Err(ArgumentsError::Bad(
                "the arguments of a call are an object, with each under its name".to_owned(),
            )),
            Err(fault) => Err(ArgumentsError::Bad(format!("the arguments: {fault}"))),
        }
    }

    /// The names and texts of a form or a query.
    pub(super) fn texts(&self) -> Option<&[(String, String)]> {
        match &self.0 {
            Source::Json(_) => None,
            Source::Texts(texts) => Some(texts),
        }
    }

    /// The argument called `name`.
    fn argument<T: DeserializeOwned>(&self, name: &str) -> Result<T, Reason> {
        match &self.0 {
            Source::Json(named) => match named.get(name) {
                Some(value) => wire::from_value(value).map_err(serde::de::Error::custom),
                None => T::deserialize(Missing),
            },
            Source::Texts(texts) => {
                let own = texts.iter().filter(|(own, _)| own == name);
                let texts: Vec<&str> = own.map(|(_, text)| &**text).collect();
                T::deserialize(Field { texts: &texts })
            }
        }
    }

    /// The unknown names: the first few, each once, and the number of all further ones. The work
    /// and the response stay small even if a call contains thousands.
    fn unknown(&self, arguments: &[(&str, &str)]) -> Vec<ArgumentError> {
        let is_unknown = |name: &&str| !arguments.iter().any(|(known, _)| known == name);
        match &self.0 {
            // An object has each key once.
            Source::Json(named) => {
                list_unknown(named.keys().map(String::as_str).filter(is_unknown), arguments)
            }
            Source::Texts(texts) => {
                let mut seen = HashSet::new();
                let names = texts.iter().map(|(name, _)| &**name).filter(is_unknown);
                list_unknown(names.filter(|name| seen.insert(*name)), arguments)
            }
        }
    }
}

/// Unknown names that the error lists; it counts the rest.
pub(super) const MAX_LISTED: usize = 10;

fn list_unknown<'n>(
    mut names: impl Iterator<Item = &'n str>,
    arguments: &[(&str, &str)],
) -> Vec<ArgumentError> {
    let first = names.by_ref().take(MAX_LISTED).map(|name| {
        let near = nearest(arguments.iter().map(|(known, _)| *known), name);
        let detail = match near {
            Some(known) => VisitorMessage::UnknownArgumentNear { near: known.to_owned() },
            None => VisitorMessage::UnknownArgument {},
        };
        ArgumentError::new(shortened(name), detail)
    });
    let mut wrong: Vec<ArgumentError> = first.collect();
    let others = names.count();
    if let Some(last) = wrong.last_mut().filter(|_| others > 0) {
        last.detail = VisitorMessage::UnknownArguments { others }.into();
    }
    wrong
}

fn is_form(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    ["application/x-www-form-urlencoded", "multipart/form-data"]
        .iter()
        .any(|form| kind.eq_ignore_ascii_case(form))
}

/// An argument of a service: a type that `serde` can read from JSON and from a form.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an argument of a service",
    note = "an argument comes from JSON or from a form: derive `Deserialize` for its type"
)]
pub trait ServiceArgument: Sized {
    /// Reads the next argument. `None`: it is wrong, and the reader has the reason.
    #[doc(hidden)]
    fn take(reader: &mut ArgumentReader<'_>) -> Option<Self>;
}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned> ServiceArgument for T {
    fn take(reader: &mut ArgumentReader<'_>) -> Option<Self> {
        reader.next()
    }
}

/// Reads the arguments of one call in order, and collects the reasons why they are wrong.
#[derive(Debug)]
pub struct ArgumentReader<'c> {
    given: &'c CallArguments,
    /// The names and types of the arguments that were not read yet.
    rest: slice::Iter<'c, (&'c str, &'c str)>,
    wrong: Vec<ArgumentError>,
}

/// A function that reads all arguments of a service. `None`: one of them is wrong.
pub(super) type ReadArguments<A> = fn(&mut ArgumentReader<'_>) -> Option<A>;

impl<'c> ArgumentReader<'c> {
    /// Reads the arguments with these names from a call.
    pub(super) fn read<A>(
        given: &'c CallArguments,
        names: &'c [(&'c str, &'c str)],
        read: ReadArguments<A>,
    ) -> Result<A, Vec<ArgumentError>> {
        let mut reader = Self { given, rest: names.iter(), wrong: given.unknown(names) };
        match read(&mut reader) {
            Some(arguments) if reader.wrong.is_empty() => Ok(arguments),
            _ => Err(reader.wrong),
        }
    }

    fn next<T: DeserializeOwned>(&mut self) -> Option<T> {
        let (name, _) = self.rest.next()?;
        let taken = self.given.argument::<T>(name);
        let taken = taken.map_err(|Reason(reason)| ArgumentError::new(*name, reason));
        taken.map_err(|error| self.wrong.push(error)).ok()
    }
}

/// The arguments of an action, as a tuple.
#[diagnostic::on_unimplemented(
    message = "these cannot be the arguments of an action",
    note = "an action takes up to twelve arguments of types that `serde` can read: `#[derive(Serialize, Deserialize)]`"
)]
pub trait ServiceArguments: Sized {
    /// Reads the arguments in order. `None`: one of them is wrong.
    #[doc(hidden)]
    fn read(reader: &mut ArgumentReader<'_>) -> Option<Self>;

    /// Reads the arguments with these names from a call.
    #[doc(hidden)]
    fn take(given: &CallArguments, names: &[(&str, &str)]) -> Result<Self, Vec<ArgumentError>> {
        ArgumentReader::read(given, names, Self::read)
    }
}

macro_rules! taken {
    ($($argument:ident)*) => {
        #[allow(non_snake_case, unused_variables, reason = "one tuple has no argument, and names are types")]
        impl<$($argument: DeserializeOwned),*> ServiceArguments for ($($argument,)*) {
            fn read(reader: &mut ArgumentReader<'_>) -> Option<Self> {
                $(let $argument = reader.next::<$argument>();)*
                Some(($($argument?,)*))
            }
        }
    };
}

taken!();
taken!(A);
taken!(A B);
taken!(A B C);
taken!(A B C D);
taken!(A B C D E);
taken!(A B C D E F);
taken!(A B C D E F G);
taken!(A B C D E F G H);
taken!(A B C D E F G H I);
taken!(A B C D E F G H I J);
taken!(A B C D E F G H I J K);
taken!(A B C D E F G H I J K L);
