//! Decides what a failed page tells its user, and what it tells the log.

use std::any::Any;
use std::error::Error as StandardError;
use std::fmt;

use bine_http::Status;

use crate::problem::Wrong;

/// Why a page could not be made. Every error of Rust becomes one by `?`.
///
/// An error of the program is answered 500; its words and its causes go to the log, and to the page only in
/// development. An error that [`status`](Self::status) makes is for the user: its words are shown. A change of tables
/// that was not made is told with a status of its own: 422 for a wrong value, 404 for a row that is not there, 409 where
/// another was first, 507 for a full disk.
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
    /// For the user.
    message: Option<String>,
    source: Option<Box<dyn StandardError + Send + Sync>>,
    /// What is wrong with which argument.
    wrong: Vec<Wrong>,
}

impl Error {
    /// An error whose words are for the user.
    pub fn status(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: Some(message.into()), source: None, wrong: Vec::new() }
    }

    /// An argument cannot be taken (422). `reason` is the end of a sentence that begins with its name: `must not be
    /// empty`. A form shows it at the field of this name.
    pub fn wrong(argument: impl Into<String>, reason: impl Into<String>) -> Self {
        let wrong = vec![Wrong::new(argument, reason)];
        Self::of_arguments(Status::UNPROCESSABLE_CONTENT, wrong)
    }

    /// Several arguments are wrong.
    pub(crate) fn of_arguments(status: Status, wrong: Vec<Wrong>) -> Self {
        Self { status, message: Some(Wrong::sentence(&wrong)), source: None, wrong }
    }

    /// An error whose words are for the log.
    pub(crate) fn hidden(status: Status, words: String) -> Self {
        Self { status, message: None, source: Some(words.into()), wrong: Vec::new() }
    }

    /// There is no such thing (404).
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::status(Status::NOT_FOUND, message)
    }

    /// The request makes no sense (400).
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::status(Status::BAD_REQUEST, message)
    }

    /// Whoever asks may not (403).
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::status(Status::FORBIDDEN, message)
    }

    /// The status of the answer.
    pub const fn code(&self) -> Status {
        self.status
    }

    /// What is for the user.
    pub(crate) fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// What is wrong with which argument.
    pub(crate) fn arguments(&self) -> &[Wrong] {
        &self.wrong
    }

    /// The error and its causes, the nearest first. Empty if all there is to say is for the user.
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

/// How the errors of a subsystem are answered. Each subsystem submits one by `inventory::submit!`.
pub(crate) struct ErrorMapping(pub(crate) fn(&(dyn Any + Send + Sync)) -> Option<MappedError>);

inventory::collect!(ErrorMapping);

/// The answer to an error.
pub(crate) struct MappedError {
    pub(crate) status: Status,
    /// For the user.
    pub(crate) message: Option<String>,
    /// What is wrong with which argument.
    pub(crate) wrong: Vec<Wrong>,
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
