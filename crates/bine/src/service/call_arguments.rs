//! The arguments of a call: finds them by name in the body or the query, and rejects unknown names.

use std::collections::HashSet;
use std::marker::PhantomData;
use std::slice;

use bine_http::Status;
use serde::de::{DeserializeOwned, DeserializeSeed};
use serde_json::Map;

use super::field::{Field, Missing, Reason};
use super::type_shape::ArgumentShape;
#[cfg(feature = "script")]
use crate::arguments::form_with_files;
use crate::arguments::{Upload, form_fields, is_json, texts};
use crate::error::Error;
use crate::nearest::nearest;
use crate::problem::ArgumentError;
use crate::text::shortened;
use crate::visitor_message::VisitorMessage;
use crate::wire::{self, Limits, Value};

/// The arguments of a call as the client sent them.
#[derive(Debug)]
pub struct CallArguments {
    source: Source,
    /// The files of a form, by the names of their fields. Only a service that takes files gets some.
    files: Vec<(String, Upload)>,
}

#[derive(Debug)]
enum Source {
    Json(Map<String, Value>),
    /// From a form or a query. A name may occur several times.
    Texts(Vec<(String, String)>),
}

/// Why the arguments cannot be read.
#[derive(Debug)]
pub(crate) enum ArgumentsError {
    /// The media type is not supported.
    Unsupported,
    /// The content is invalid, with this message.
    Bad(String),
}

impl ArgumentsError {
    /// The error for the client.
    pub(crate) fn into_error(self) -> Error {
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
            Value::Object(named) => Ok(Self::of(named)),
            _ => Ok(Self::of(Map::new())),
        }
    }

    /// The arguments of a call within the program.
    pub(super) const fn of(named: Map<String, Value>) -> Self {
        Self { source: Source::Json(named), files: Vec::new() }
    }

    /// The arguments in a form or a query.
    const fn of_texts(texts: Vec<(String, String)>) -> Self {
        Self { source: Source::Texts(texts), files: Vec::new() }
    }

    /// The arguments in a query.
    pub(crate) fn in_query(text: &str) -> Result<Self, ArgumentsError> {
        let texts = texts(text, "query").map_err(ArgumentsError::Bad)?;
        Ok(Self::of_texts(texts))
    }

    /// The arguments in a form that may have files. `None`: the media type is not that of such a form.
    #[cfg(feature = "script")]
    pub(crate) fn in_form_with_files(
        kind: &str,
        body: &[u8],
    ) -> Option<Result<Self, ArgumentsError>> {
        let fields = form_with_files(kind, body)?;
        let own = fields.map(|(texts, files)| Self { files, ..Self::of_texts(texts) });
        Some(own.map_err(ArgumentsError::Bad))
    }

    /// Whether this media type is supported. An empty body needs no type.
    pub(crate) fn is_readable(kind: &str) -> bool {
        kind.is_empty() || is_json(kind) || is_form(kind)
    }

    /// The arguments in a body of this media type.
    pub(crate) fn in_content(kind: &str, bytes: &[u8]) -> Result<Self, ArgumentsError> {
        if bytes.is_empty() {
            // An unchecked checkbox is absent from a form, and a form may have no other field.
            let is_form = is_form(kind);
            return Ok(if is_form { Self::of_texts(Vec::new()) } else { Self::of(Map::new()) });
        }
        if is_form(kind) {
            let fields = form_fields(kind, bytes).map_err(ArgumentsError::Bad)?;
            return Ok(Self::of_texts(fields));
        }
        // A browser sends plain text to other sites without a CORS preflight, but not JSON.
        if !is_json(kind) {
            return Err(ArgumentsError::Unsupported);
        }
        match wire::read(bytes, &Limits::default()) {
            Ok(Value::Object(named)) => Ok(Self::of(named)),
            Ok(_) => Err(ArgumentsError::Bad(
                "the arguments of a call are an object, with each under its name".to_owned(),
            )),
            Err(fault) => Err(ArgumentsError::Bad(format!("the arguments: {fault}"))),
        }
    }

    /// The names and texts of a form or a query.
    pub(crate) fn texts(&self) -> Option<&[(String, String)]> {
        match &self.source {
            Source::Json(_) => None,
            Source::Texts(texts) => Some(texts),
        }
    }

    /// Whether there is a value of this name, in JSON.
    #[cfg(feature = "script")]
    pub(crate) fn has(&self, name: &str) -> bool {
        matches!(&self.source, Source::Json(named) if named.contains_key(name))
    }

    /// The files of a form, by the names of their fields.
    #[cfg(feature = "script")]
    pub(crate) fn files(&self) -> &[(String, Upload)] {
        &self.files
    }

    /// The argument called `name`, which `seed` reads.
    pub(crate) fn argument<'de, S: DeserializeSeed<'de>>(
        &self,
        name: &str,
        seed: S,
    ) -> Result<S::Value, ArgumentError> {
        let read = match &self.source {
            Source::Json(named) => match named.get(name) {
                Some(value) => wire::read_value(value, seed).map_err(serde::de::Error::custom),
                None => seed.deserialize(Missing),
            },
            Source::Texts(texts) => {
                let own = texts.iter().filter(|(own, _)| own == name);
                let texts: Vec<&str> = own.map(|(_, text)| &**text).collect();
                seed.deserialize(Field { texts: &texts })
            }
        };
        read.map_err(|Reason(reason)| ArgumentError::new(name, reason))
    }

    /// The names that are not `known`: the first few, each once, and the number of all further
    /// ones. The work and the response stay small even if a call contains thousands.
    pub(crate) fn unknown<'k>(
        &self,
        known: &(impl Iterator<Item = &'k str> + Clone),
    ) -> Vec<ArgumentError> {
        let is_unknown = |name: &&str| !known.clone().any(|known| known == *name);
        match &self.source {
            // An object has each key once.
            Source::Json(named) => {
                list_unknown(named.keys().map(String::as_str).filter(is_unknown), known)
            }
            Source::Texts(texts) => {
                let mut seen = HashSet::new();
                let files = self.files.iter().map(|(name, _)| &**name);
                let names = texts.iter().map(|(name, _)| &**name).chain(files).filter(is_unknown);
                list_unknown(names.filter(|name| seen.insert(*name)), known)
            }
        }
    }
}

/// Unknown names that the error lists; it counts the rest.
pub(super) const MAX_LISTED: usize = 10;

fn list_unknown<'n, 'k>(
    mut names: impl Iterator<Item = &'n str>,
    known: &(impl Iterator<Item = &'k str> + Clone),
) -> Vec<ArgumentError> {
    let first = names.by_ref().take(MAX_LISTED).map(|name| {
        let near = nearest(known.clone(), name);
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
    /// The shapes of the arguments, in place of their values.
    shapes: Option<Vec<ArgumentShape>>,
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
        let wrong = given.unknown(&names.iter().map(|(name, _)| *name));
        let mut reader = Self { given, rest: names.iter(), wrong, shapes: None };
        match read(&mut reader) {
            Some(arguments) if reader.wrong.is_empty() => Ok(arguments),
            _ => Err(reader.wrong),
        }
    }

    /// The shapes of the arguments of a service. It reads all of them before it ends with the first
    /// one that has no value.
    pub(super) fn shapes<A>(count: usize, read: ReadArguments<A>) -> Vec<ArgumentShape> {
        let given = CallArguments::of(Map::new());
        let names = vec![("", ""); count];
        let (rest, wrong) = (names.iter(), Vec::new());
        let mut reader = ArgumentReader { given: &given, rest, wrong, shapes: Some(Vec::new()) };
        // It has no value.
        drop(read(&mut reader));
        reader.shapes.unwrap_or_default()
    }

    fn next<T: DeserializeOwned>(&mut self) -> Option<T> {
        if let Some(shapes) = &mut self.shapes {
            shapes.push(ArgumentShape::of::<T>());
            return None;
        }
        let (name, _) = self.rest.next()?;
        let taken = self.given.argument(name, PhantomData::<T>);
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
