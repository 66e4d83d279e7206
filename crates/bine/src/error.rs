//! The error type of handlers: messages for the client and causes for the log.

use std::any::Any;
use std::error::Error as StandardError;
use std::fmt;

use bine_http::Status;

use crate::problem::ArgumentError;

/// The reason why a handler failed. The `?` operator converts every Rust error into one.
///
/// The server answers an unexpected error with 500. The log records its message and its causes; the
/// page displays them only in development. An error that [`status`](Self::status) creates is for
/// the user: the page displays its message. A failed table transaction has a status of its own: 422
/// for an invalid value, 404 for a missing row, 409 for a conflict, 507 for a full disk.
///
/// ```
/// use bine::{Error, Page, Path, html};
///
/// async fn year(year: Path<String>) -> Result<impl Page, Error> {
///     let year: u16 = year.parse()?;
///     if year < 1900 {
///         return Err(Error::not_found("the archive begins in 1900"));
///     }
///     Ok(html!(<h1>{year}</h1>))
/// }
/// ```
pub struct Error {
    status: Status,
    /// The message for the user.
    message: Option<String>,
    source: Option<Box<dyn StandardError + Send + Sync>>,
    /// The invalid arguments, each with the reason.
    wrong: Vec<ArgumentError>,
}

impl Error {
    /// Creates an error whose message the user may read.
    pub fn status(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: Some(message.into()), source: None, wrong: Vec::new() }
    }

    /// Rejects an argument (422). `reason` completes a sentence that begins with the argument's
    /// name: `must not be empty`. A form displays it next to the field of this name.
    pub fn invalid_argument(argument: impl Into<String>, reason: impl Into<String>) -> Self {
        let wrong = vec![ArgumentError::new(argument, reason)];
        Self::of_arguments(Status::UNPROCESSABLE_CONTENT, wrong)
    }

    /// Rejects several arguments at once.
    pub(crate) fn of_arguments(status: Status, wrong: Vec<ArgumentError>) -> Self {
        Self { status, message: Some(ArgumentError::sentence(&wrong)), source: None, wrong }
    }

    /// Creates an error whose message only the log records.
    pub(crate) fn hidden(status: Status, words: String) -> Self {
        Self { status, message: None, source: Some(words.into()), wrong: Vec::new() }
    }

    /// The requested resource does not exist (404).
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::status(Status::NOT_FOUND, message)
    }

    /// The request is malformed (400).
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::status(Status::BAD_REQUEST, message)
    }

    /// The client has no permission (403).
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::status(Status::FORBIDDEN, message)
    }

    /// The status of the response.
    pub const fn code(&self) -> Status {
        self.status
    }

    /// The message for the user, if there is one.
    pub(crate) fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// The invalid arguments, each with the reason.
    pub(crate) fn arguments(&self) -> &[ArgumentError] {
        &self.wrong
    }

    /// The messages of the error and of its causes, outermost first. Empty if the error has only a
    /// message for the user.
    pub(crate) fn chain(&self) -> impl Iterator<Item = String> {
        let mut next: Option<&(dyn StandardError + 'static)> =
            self.source.as_deref().map(|source| source as _);
        std::iter::from_fn(move || {
            let error = next?;
            next = error.source();
            Some(error.to_string())
        })
    }
}

/// Maps a subsystem's errors to responses. Each subsystem submits one by `inventory::submit!`.
pub(crate) struct ErrorMapping(pub(crate) fn(&(dyn Any + Send + Sync)) -> Option<MappedError>);

inventory::collect!(ErrorMapping);

/// The status and messages of a mapped error.
pub(crate) struct MappedError {
    pub(crate) status: Status,
    /// The message for the user.
    pub(crate) message: Option<String>,
    /// The invalid arguments, each with the reason.
    pub(crate) wrong: Vec<ArgumentError>,
}

impl MappedError {
    pub(crate) const fn new(status: Status, message: Option<String>) -> Self {
        Self { status, message, wrong: Vec::new() }
    }
}

impl<E: StandardError + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        let mappings = inventory::iter::<ErrorMapping>;
        let mapped = mappings.into_iter().find_map(|mapping| (mapping.0)(&error));
        let unknown = || MappedError::new(Status::INTERNAL_SERVER_ERROR, None);
        let MappedError { status, message, wrong } = mapped.unwrap_or_else(unknown);
        Self { status, message, source: Some(Box::new(error)), wrong }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status.code(), self.message.as_deref().unwrap_or_default())?;
        self.chain().try_for_each(|cause| write!(f, ": {cause}"))
    }
}
