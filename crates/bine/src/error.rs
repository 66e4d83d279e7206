//! The error type of handlers: messages for the client and causes for the log.

use std::any::Any;
use std::borrow::Cow;
use std::error::Error as StandardError;
use std::fmt;

use bine_http::Status;

use crate::languages::VisitorWords;
use crate::problem::ArgumentError;
use crate::visitor_message::{MessageText, VisitorMessage};

/// The reason why a handler failed. The `?` operator converts every Rust error into one.
///
/// The server answers an unexpected error with 500. The log records its message and its causes; the
/// page displays them only in development. An error that [`status`](Self::status) creates is for
/// the user: the page displays its message. A failed table transaction has its own status: 422 for
/// an invalid value, 404 for a missing row, 409 for a conflict, 507 for a full disk.
/// [`see_other`](Self::see_other) redirects the client instead of answering with a page.
///
/// ```
/// use bine::{Error, Page, Path, html};
///
/// async fn year(year: Path<u16>) -> Result<impl Page, Error> {
///     match year.0 {
///         0..1900 => Err(Error::not_found("the archive begins in 1900")),
///         2100.. => Err(Error::see_other("/years/2099")),
///         year => Ok(html!(<h1>{year}</h1>)),
///     }
/// }
/// ```
pub struct Error {
    status: Status,
    /// The message for the user.
    message: Option<MessageText>,
    source: Option<Box<dyn StandardError + Send + Sync>>,
    /// The invalid arguments, each with the reason.
    wrong: Vec<ArgumentError>,
    /// The address to which the client is redirected instead.
    location: Option<Cow<'static, str>>,
}

impl Error {
    /// Creates an error whose message the user may read.
    pub fn status(status: Status, message: impl Into<String>) -> Self {
        Self { message: Some(message.into().into()), ..Self::of_status(status) }
    }

    /// Creates an error with a message of the framework.
    pub(crate) fn told(status: Status, message: impl Into<MessageText>) -> Self {
        Self { message: Some(message.into()), ..Self::of_status(status) }
    }

    /// Redirects the client to `location`, to be requested by GET (303), instead of answering with
    /// the handler's page.
    pub fn see_other(location: impl Into<Cow<'static, str>>) -> Self {
        Self { location: Some(location.into()), ..Self::of_status(Status::SEE_OTHER) }
    }

    const fn of_status(status: Status) -> Self {
        Self { status, message: None, source: None, wrong: Vec::new(), location: None }
    }

    /// Rejects an argument (422). `reason` completes a sentence that begins with the argument's
    /// name: `must not be empty`. A form displays it next to the field of this name.
    pub fn invalid_argument(argument: impl Into<String>, reason: impl Into<String>) -> Self {
        let wrong = vec![ArgumentError::new(argument, reason.into())];
        Self::of_arguments(Status::UNPROCESSABLE_CONTENT, wrong)
    }

    /// Rejects several arguments at once (422), each with its reason. Returns `Ok` if all are
    /// valid, so that a handler can check all fields of a form before it reports the invalid ones.
    ///
    /// ```
    /// use bine::Error;
    ///
    /// fn check(name: &str, age: u8) -> Result<(), Error> {
    ///     let mut invalid = Vec::new();
    ///     if name.is_empty() {
    ///         invalid.push(("name", "must not be empty"));
    ///     }
    ///     if age < 18 {
    ///         invalid.push(("age", "must be at least 18"));
    ///     }
    ///     Error::invalid_arguments(invalid)
    /// }
    /// # assert!(check("Ann", 30).is_ok());
    /// # assert!(format!("{:?}", check("", 3)).contains("`name` must not be empty; `age` must be"));
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid` is not empty.
    pub fn invalid_arguments<A: Into<String>, R: Into<String>>(
        invalid: impl IntoIterator<Item = (A, R)>,
    ) -> Result<(), Self> {
        let invalid = invalid.into_iter();
        let wrong: Vec<_> =
            invalid.map(|(argument, reason)| ArgumentError::new(argument, reason.into())).collect();
        if wrong.is_empty() {
            return Ok(());
        }
        Err(Self::of_arguments(Status::UNPROCESSABLE_CONTENT, wrong))
    }

    /// Rejects several arguments at once.
    pub(crate) fn of_arguments(status: Status, wrong: Vec<ArgumentError>) -> Self {
        let message = ArgumentError::sentence(&wrong, &VisitorWords::ENGLISH);
        Self { wrong, ..Self::status(status, message) }
    }

    /// Creates an error whose message only the log records.
    pub(crate) fn hidden(status: Status, words: String) -> Self {
        Self { source: Some(words.into()), ..Self::of_status(status) }
    }

    /// The request is malformed (400).
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::status(Status::BAD_REQUEST, message)
    }

    /// The client has to log in first (401).
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::status(Status::UNAUTHORIZED, message)
    }

    /// The client has no permission (403).
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::status(Status::FORBIDDEN, message)
    }

    /// The requested resource does not exist (404).
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::status(Status::NOT_FOUND, message)
    }

    /// The request conflicts with the state of the resource, such as an edit by somebody else
    /// (409).
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::status(Status::CONFLICT, message)
    }

    /// The requested resource existed, and does not any more (410).
    pub fn gone(message: impl Into<String>) -> Self {
        Self::status(Status::GONE, message)
    }

    /// The content of the request is too large (413).
    pub fn content_too_large(message: impl Into<String>) -> Self {
        Self::status(Status::CONTENT_TOO_LARGE, message)
    }

    /// The content of the request is well-formed but invalid (422).
    /// [`invalid_argument`](Self::invalid_argument) names the field as well.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        Self::status(Status::UNPROCESSABLE_CONTENT, message)
    }

    /// The client has sent too many requests (429).
    pub fn too_many_requests(message: impl Into<String>) -> Self {
        Self::status(Status::TOO_MANY_REQUESTS, message)
    }

    /// The server has failed (500). The user reads `message`; for an error that only the log
    /// records, use `?`.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::status(Status::INTERNAL_SERVER_ERROR, message)
    }

    /// A server that the handler called has failed (502).
    pub fn bad_gateway(message: impl Into<String>) -> Self {
        Self::status(Status::BAD_GATEWAY, message)
    }

    /// The service is temporarily unavailable (503).
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::status(Status::SERVICE_UNAVAILABLE, message)
    }

    /// A server that the handler called has not answered in time (504).
    pub fn gateway_timeout(message: impl Into<String>) -> Self {
        Self::status(Status::GATEWAY_TIMEOUT, message)
    }

    /// The status of the response.
    pub const fn code(&self) -> Status {
        self.status
    }

    /// The English message for the user, if there is one.
    pub(crate) fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// The message for the user, if there is one.
    pub(crate) const fn message_text(&self) -> Option<&MessageText> {
        self.message.as_ref()
    }

    /// The message for the user in the words for a visitor.
    pub(crate) fn message_in(&self, words: &VisitorWords) -> Cow<'_, str> {
        match &self.message {
            Some(_) if words.are_own() && !self.wrong.is_empty() => {
                ArgumentError::sentence(&self.wrong, words).into()
            }
            Some(message) => words.text(message),
            None => words.say(&VisitorMessage::Failed {}).into(),
        }
    }

    /// The address to which the client is redirected, if it is.
    pub(crate) fn location(&self) -> Option<&str> {
        self.location.as_deref()
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
    pub(crate) message: Option<MessageText>,
    /// The invalid arguments, each with the reason.
    pub(crate) wrong: Vec<ArgumentError>,
}

impl MappedError {
    pub(crate) fn new(status: Status, message: Option<String>) -> Self {
        Self { status, message: message.map(Into::into), wrong: Vec::new() }
    }
}

impl<E: StandardError + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        let mappings = inventory::iter::<ErrorMapping>;
        let mapped = mappings.into_iter().find_map(|mapping| (mapping.0)(&error));
        let unknown = || MappedError::new(Status::INTERNAL_SERVER_ERROR, None);
        let MappedError { status, message, wrong } = mapped.unwrap_or_else(unknown);
        Self { status, message, source: Some(Box::new(error)), wrong, location: None }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = self.message.as_deref().or(self.location.as_deref());
        write!(f, "{} {}", self.status.code(), detail.unwrap_or_default())?;
        self.chain().try_for_each(|cause| write!(f, ": {cause}"))
    }
}
