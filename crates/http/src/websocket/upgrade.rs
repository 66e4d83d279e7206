//! Decides whether a request may change its connection into a WebSocket, and how it is answered.

use alloc::vec::Vec;
use core::{fmt, str};

use super::accept::{accept_key, is_key};
use crate::date::Date;
use crate::fields::elements;
use crate::head::{Exchange, Framing, Head};
use crate::line;
use crate::method::Method;
use crate::reply::Reply;
use crate::status::Status;

/// A request to change to WebSocket, checked (RFC 6455 section 4.2.1).
///
/// Nothing of this says that the peer may. A browser lets every page open a WebSocket to every host and sends the
/// visitor's cookies along, so who may do something by cookie must ask where the page is from (RFC 6455 section 10.2).
#[derive(Clone, Copy, Debug)]
pub struct Upgrade<'b> {
    head: Head<'b>,
    key: &'b [u8],
}

/// Why a request cannot become a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpgradeError {
    /// It does not ask for it: a resource with other views may still answer it.
    NotRequested,
    /// Another version than 13, the only one there is.
    Version,
    /// Another method than GET.
    Method,
    /// Content, which would lie where the frames begin.
    Content,
    /// The key is not sixteen bytes in base64, or there is not one.
    Key,
    /// A subprotocol that is not a token.
    Protocol,
}

impl<'b> Upgrade<'b> {
    /// Checks what the request says.
    pub fn parse(head: &Head<'b>) -> Result<Self, UpgradeError> {
        let asks =
            |value: &[u8]| elements(value).any(|name| name.eq_ignore_ascii_case(b"websocket"));
        // The head has one only if Connection names it and the version is 1.1.
        if head.upgrade().is_none() || !values(head, "upgrade").any(asks) {
            return Err(UpgradeError::NotRequested);
        }
        if head.method() != Method::Get {
            return Err(UpgradeError::Method);
        }
        if head.framing() != Framing::None {
            return Err(UpgradeError::Content);
        }
        if only(head, "sec-websocket-version") != Some(b"13") {
            return Err(UpgradeError::Version);
        }
        let key =
            only(head, "sec-websocket-key").filter(|key| is_key(key)).ok_or(UpgradeError::Key)?;
        if !values(head, PROTOCOL).flat_map(elements).all(line::is_token) {
            return Err(UpgradeError::Protocol);
        }
        Ok(Self { head: *head, key })
    }

    /// The subprotocols that the peer speaks, the one it likes best first.
    pub fn protocols(&self) -> impl Iterator<Item = &'b str> + use<'b> {
        // Tokens are ASCII.
        values(&self.head, PROTOCOL).flat_map(elements).filter_map(|name| str::from_utf8(name).ok())
    }

    /// The subprotocol that [`accept`](Self::accept) would agree on: the first of the peer's that is spoken here.
    ///
    /// Where none is, a browser that asked for one closes.
    pub fn select_protocol(&self, spoken: &[&str]) -> Option<&'b str> {
        self.protocols().find(|name| spoken.contains(name))
    }

    /// Begins the answer, to which fields may be added; end it with [`Reply::empty`]. Frames follow in both directions.
    pub fn accept<'o>(&self, out: &'o mut Vec<u8>, date: &Date, spoken: &[&str]) -> Reply<'o> {
        let mut reply = Reply::begin(out, self.head.exchange(), Status::SWITCHING_PROTOCOLS, date);
        reply.static_lines("Upgrade: websocket\r\nConnection: Upgrade\r\n");
        let accepted = accept_key(self.key);
        let accepted = str::from_utf8(&accepted).unwrap_or_default();
        reply.field("Sec-WebSocket-Accept", accepted).expect("base64 has no control bytes");
        if let Some(protocol) = self.select_protocol(spoken) {
            reply.field("Sec-WebSocket-Protocol", protocol).expect("a token has no control bytes");
        }
        reply
    }
}

const PROTOCOL: &str = "sec-websocket-protocol";

impl UpgradeError {
    /// The status of the answer.
    pub const fn status(self) -> Status {
        match self {
            Self::NotRequested | Self::Version => Status::UPGRADE_REQUIRED,
            _ => Status::BAD_REQUEST,
        }
    }

    /// The short text the peer gets.
    pub const fn client_message(self) -> &'static str {
        match self {
            Self::NotRequested => "This address speaks WebSocket.\n",
            Self::Version => "This address speaks WebSocket of version 13.\n",
            Self::Method => "A WebSocket is opened with GET.\n",
            Self::Content => "A request for a WebSocket has no content.\n",
            Self::Key => "Sec-WebSocket-Key must be there once, 16 bytes in base64.\n",
            Self::Protocol => "Sec-WebSocket-Protocol must be a list of tokens.\n",
        }
    }

    /// Appends the whole answer; one of 426 says what to change to (RFC 9110 section 15.5.22).
    pub fn reply(self, out: &mut Vec<u8>, exchange: Exchange, date: &Date) {
        let mut reply = Reply::begin(out, exchange, self.status(), date);
        if self.status() == Status::UPGRADE_REQUIRED {
            reply.static_lines(
                "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
            );
        }
        reply.static_lines("Content-Type: text/plain; charset=utf-8\r\n");
        reply.whole(self.client_message().as_bytes());
    }
}

impl fmt::Display for UpgradeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotRequested => "no WebSocket asked for",
            Self::Version => "WebSocket of another version than 13",
            Self::Method => "WebSocket with another method than GET",
            Self::Content => "WebSocket with content",
            Self::Key => "malformed Sec-WebSocket-Key",
            Self::Protocol => "malformed Sec-WebSocket-Protocol",
        })
    }
}

impl core::error::Error for UpgradeError {}

/// The values of all fields of this name.
fn values<'b>(head: &Head<'b>, name: &'static str) -> impl Iterator<Item = &'b [u8]> + use<'b> {
    head.fields().filter(move |(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// The value of the field of this name, if there is one and no other.
fn only<'b>(head: &Head<'b>, name: &'static str) -> Option<&'b [u8]> {
    let mut values = values(head, name);
    values.next().filter(|_| values.next().is_none())
}
