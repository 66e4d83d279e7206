//! Responses for clients without access or over a quota (RFC 6750 section 3).

use bine_http::{Date, Exchange, Reply, Status};
use bine_push::WaitersFull;
use bine_server::Answer;

use super::quota::{CapExceeded, RETRY_SECONDS};
use crate::channels::text_reply::finish_with_reason;

/// The reason why a request is denied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Denied {
    pub(super) status: Status,
    pub(super) field: Option<(&'static str, String)>,
    pub(super) reason: String,
}

impl Denied {
    pub(in crate::channels) const fn new(status: Status, reason: String) -> Self {
        Self { status, field: None, reason }
    }

    /// Writes the response.
    pub(crate) fn write(&self, out: &mut Vec<u8>, exchange: Exchange, date: &Date) {
        let mut reply = Reply::begin(out, exchange, self.status, date);
        if let Some((name, value)) = &self.field {
            // Only characters that are valid in a field were inserted.
            let _ = reply.field(name, value);
        }
        finish_with_reason(reply, &self.reason);
    }

    /// Writes the response and returns it as an answer.
    pub(crate) fn answer(&self, out: &mut Vec<u8>, exchange: Exchange, date: &Date) -> Answer {
        self.write(out, exchange, date);
        Answer::Written { close: false }
    }

    /// Returns the reason, for clients without an HTTP response.
    pub(crate) fn reason(self) -> String {
        self.reason
    }

    /// The denial for a grant with this end; 0: it was revoked.
    pub(crate) fn of_end(ends: u64) -> Self {
        if ends == 0 {
            unauthorized(Some("it was revoked"), "what was granted was revoked")
        } else {
            unauthorized(Some("it has ended"), "what was granted has ended")
        }
    }

    pub(crate) const fn status(&self) -> Status {
        self.status
    }
}

impl From<CapExceeded> for Denied {
    fn from(exceeded: CapExceeded) -> Self {
        Self {
            status: Status::TOO_MANY_REQUESTS,
            field: Some(("Retry-After", exceeded.retry_seconds.to_string())),
            reason: exceeded.to_string(),
        }
    }
}

impl From<WaitersFull> for Denied {
    fn from(full: WaitersFull) -> Self {
        Self {
            status: Status::TOO_MANY_REQUESTS,
            field: Some(("Retry-After", RETRY_SECONDS.to_string())),
            reason: full.to_string(),
        }
    }
}

/// Builds a challenge (RFC 6750 section 3) with the error of the rejected token, if any.
pub(super) fn unauthorized(fault: Option<&str>, reason: &str) -> Denied {
    let error = fault.map(|fault| {
        // A description may contain neither quotes nor characters outside ASCII (section 3).
        let is_right = |letter: char| matches!(letter, ' '..='~') && !matches!(letter, '"' | '\\');
        let fault = fault.replace(|letter| !is_right(letter), "'");
        format!(", error=\"invalid_token\", error_description=\"{fault}\"")
    });
    let challenge = format!("Bearer realm=\"channels\"{}", error.unwrap_or_default());
    let field = Some(("WWW-Authenticate", challenge));
    Denied { status: Status::UNAUTHORIZED, field, reason: reason.to_owned() }
}
