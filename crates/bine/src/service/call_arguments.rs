//! The arguments of a call: finds them by name in the body or the query, and rejects unknown names.

use std::collections::HashSet;

use bine_http::Status;
use serde::de::DeserializeOwned;
use serde_json::Map;

use super::field::{Field, Missing, Reason};
use crate::arguments::{form_fields, is_json, texts};
use crate::error::Error;
use crate::nearest::nearest;
use crate::problem::ArgumentError;
use crate::text::shortened;
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
            Self::Bad(message) => Error::bad_request(message),
            Self::Unsupported => {
                let message = "Send the arguments as `application/json`, or from a form.";
                Error::status(Status::UNSUPPORTED_MEDIA_TYPE, message)
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
        let hint = near.map_or(String::new(), |known| format!("; did you mean `{known}`?"));
        ArgumentError::new(shortened(name), format!("is no argument of this service{hint}"))
    });
    let mut wrong: Vec<ArgumentError> = first.collect();
    let others = names.count();
    if let Some(last) = wrong.last_mut().filter(|_| others > 0) {
        last.detail = format!("is no argument of this service, and {others} others are none");
    }
    wrong
}

fn is_form(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    ["application/x-www-form-urlencoded", "multipart/form-data"]
        .iter()
        .any(|form| kind.eq_ignore_ascii_case(form))
}

/// The arguments of a service, as a tuple.
#[diagnostic::on_unimplemented(
    message = "these cannot be the arguments of a service",
    note = "a service takes up to twelve arguments of types that `serde` can read: `#[derive(Serialize, Deserialize)]`"
)]
pub trait ServiceArguments: Sized {
    /// Reads the arguments with these names, in order.
    #[doc(hidden)]
    fn take(given: &CallArguments, names: &[(&str, &str)]) -> Result<Self, Vec<ArgumentError>>;
}

macro_rules! taken {
    ($($argument:ident)*) => {
        #[allow(non_snake_case, unused_mut, unused_variables, reason = "one tuple has no argument, and names are types")]
        impl<$($argument: DeserializeOwned),*> ServiceArguments for ($($argument,)*) {
            fn take(
                given: &CallArguments,
                names: &[(&str, &str)],
            ) -> Result<Self, Vec<ArgumentError>> {
                let mut wrong = given.unknown(names);
                let mut own = names.iter();
                $(let $argument = own.next().and_then(|(name, _)| {
                    let taken = given.argument::<$argument>(name);
                    let taken = taken.map_err(|Reason(reason)| ArgumentError::new(*name, reason));
                    taken.map_err(|error| wrong.push(error)).ok()
                });)*
                match ($($argument,)*) {
                    ($(Some($argument),)*) if wrong.is_empty() => Ok(($($argument,)*)),
                    _ => Err(wrong),
                }
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
