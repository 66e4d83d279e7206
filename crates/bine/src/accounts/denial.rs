//! The reasons why an operation on accounts is not carried out, for pages and for services.

use bine_http::Status;

use super::hash_pool::Busy;
use super::throttle::Wait;
use crate::error::Error;
use crate::problem::ArgumentError;
use crate::respond::Response;
use crate::store;
use crate::visitor_message::{AccountMessage, MessageText};

/// The reason why an operation is not carried out.
#[derive(Debug)]
pub(super) enum Denial {
    /// Fields are invalid, each with the end of a sentence that begins with its name.
    Invalid(Vec<(&'static str, MessageText)>),
    /// The name or the password is wrong; the text does not reveal which.
    Wrong,
    /// The password of the logged-in user is wrong.
    WrongPassword,
    Blocked,
    /// Too many tries: the seconds until the next one.
    Wait(u64),
    /// Too many hashes wait.
    Busy,
    /// The link has expired or was used.
    DeadLink,
    /// The operation is not permitted here.
    Forbidden(AccountMessage),
    /// No user has logged in.
    NeedsUser,
    Failed(Error),
}

impl Denial {
    /// Rejects one field.
    pub(super) fn of_field(field: &'static str, reason: impl Into<MessageText>) -> Self {
        Self::Invalid(vec![(field, reason.into())])
    }

    pub(super) fn status(&self) -> Status {
        match self {
            Self::Invalid(_) => Status::UNPROCESSABLE_CONTENT,
            Self::Wrong | Self::WrongPassword | Self::Blocked | Self::Forbidden(_) => {
                Status::FORBIDDEN
            }
            Self::Wait(_) => Status::TOO_MANY_REQUESTS,
            Self::Busy => Status::SERVICE_UNAVAILABLE,
            Self::DeadLink => Status::GONE,
            Self::NeedsUser => Status::UNAUTHORIZED,
            Self::Failed(error) => error.code(),
        }
    }

    /// The message for the user.
    pub(super) fn message(&self) -> MessageText {
        let message = match self {
            Self::Invalid(_) => AccountMessage::CorrectFields {},
            Self::Wrong => AccountMessage::Wrong {},
            Self::WrongPassword => AccountMessage::WrongPassword {},
            Self::Blocked => AccountMessage::Blocked {},
            Self::Wait(seconds) => {
                AccountMessage::Wait { seconds: *seconds, time: duration(*seconds) }
            }
            Self::Busy => AccountMessage::Busy {},
            Self::DeadLink => AccountMessage::DeadLink {},
            Self::Forbidden(reason) => reason.clone(),
            Self::NeedsUser => AccountMessage::NeedsUser {},
            Self::Failed(error) => match error.message_text() {
                Some(message) => return message.clone(),
                None => AccountMessage::Failed {},
            },
        };
        message.into()
    }

    /// The seconds for `Retry-After`.
    pub(super) const fn retry_after(&self) -> Option<u64> {
        match self {
            Self::Wait(seconds) => Some(*seconds),
            Self::Busy => Some(BUSY_RETRY),
            _ => None,
        }
    }

    /// The response of a service.
    pub(super) fn into_response(self) -> Result<Response, Error> {
        if let Some(seconds) = self.retry_after() {
            let response = Response::told(self.status(), self.message());
            return Ok(response.with_header("Retry-After", seconds.to_string()));
        }
        Err(self.into_error())
    }

    /// The error for a handler of the program.
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Invalid(fields) => {
                let wrong = fields.into_iter().map(|(name, why)| ArgumentError::new(name, why));
                Error::of_arguments(Status::UNPROCESSABLE_CONTENT, wrong.collect())
            }
            Self::Failed(error) => error,
            other => Error::told(other.status(), other.message()),
        }
    }
}

/// Seconds after which a client may try again when too many hashes wait.
const BUSY_RETRY: u64 = 5;

/// A time in words.
fn duration(seconds: u64) -> String {
    let (count, unit) =
        if seconds < 120 { (seconds, "second") } else { (seconds.div_ceil(60), "minute") };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

impl From<Busy> for Denial {
    fn from(_: Busy) -> Self {
        Self::Busy
    }
}

impl From<Wait> for Denial {
    fn from(wait: Wait) -> Self {
        Self::Wait(wait.seconds)
    }
}

impl From<store::Error> for Denial {
    fn from(error: store::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Error> for Denial {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
