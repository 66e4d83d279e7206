//! Decides what somebody is told who may not (RFC 6750 section 3).

use bine_http::{Date, Exchange, Reply, Status};
use bine_push::WaitersFull;
use bine_server::Answer;

use super::party::{Crowded, RETRY};
use crate::channels::text_reply::tell;

/// Why somebody may not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Denied {
    pub(super) status: Status,
    pub(super) field: Option<(&'static str, String)>,
    pub(super) reason: String,
}

impl Denied {
    /// Writes it as a reply.
    pub(crate) fn write(&self, out: &mut Vec<u8>, exchange: Exchange, date: &Date) {
        let mut reply = Reply::begin(out, exchange, self.status, date);
        if let Some((name, value)) = &self.field {
            // Of what is not ours, only letters that a field may have were put into it.
            let _ = reply.field(name, value);
        }
        tell(reply, &self.reason);
    }

    /// The same as an answer.
    pub(crate) fn answer(&self, out: &mut Vec<u8>, exchange: Exchange, date: &Date) -> Answer {
        self.write(out, exchange, date);
        Answer::Written { close: false }
    }

    /// For who is spoken to otherwise.
    pub(crate) fn reason(self) -> String {
        self.reason
    }

    /// Who must show something, or something else, and why.
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

impl From<Crowded> for Denied {
    fn from(crowded: Crowded) -> Self {
        Self {
            status: Status::TOO_MANY_REQUESTS,
            field: Some(("Retry-After", crowded.retry.to_string())),
            reason: crowded.to_string(),
        }
    }
}

impl From<WaitersFull> for Denied {
    fn from(full: WaitersFull) -> Self {
        Self {
            status: Status::TOO_MANY_REQUESTS,
            field: Some(("Retry-After", RETRY.to_string())),
            reason: full.to_string(),
        }
    }
}

/// A challenge (RFC 6750 section 3), with the fault of the token that was shown.
pub(super) fn unauthorized(fault: Option<&str>, reason: &str) -> Denied {
    let error = fault.map(|fault| {
        // Quotes and whatever is no ASCII may not stand in it (section 3).
        let is_right = |letter: char| matches!(letter, ' '..='~') && !matches!(letter, '"' | '\\');
        let fault = fault.replace(|letter| !is_right(letter), "'");
        format!(", error=\"invalid_token\", error_description=\"{fault}\"")
    });
    let challenge = format!("Bearer realm=\"channels\"{}", error.unwrap_or_default());
    let field = Some(("WWW-Authenticate", challenge));
    Denied { status: Status::UNAUTHORIZED, field, reason: reason.to_owned() }
}
