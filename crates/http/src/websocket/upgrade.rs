//! The handshake that changes a connection to WebSocket.

use alloc::vec::Vec;
use core::{fmt, str};

use super::accept::{accept_key, is_key};
use crate::byte_class;
use crate::date::Date;
use crate::fields::elements;
use crate::head::{Exchange, Framing, Head};
use crate::method::Method;
use crate::reply::Reply;
use crate::status::Status;

/// A validated request to change to WebSocket (RFC 6455 section 4.2.1).
///
/// Validation grants no permission. A browser lets every page open a WebSocket to every host and
/// sends the visitor's cookies with the request. A service that authenticates by cookie must check
/// the origin of the page (RFC 6455 section 10.2).
#[derive(Clone, Copy, Debug)]
pub struct Upgrade<'b> {
    head: Head<'b>,
    key: &'b [u8],
}

/// The reason why a request cannot open a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpgradeError {
    /// The request does not ask for a WebSocket. A resource with other representations can still
    /// answer it.
    NotRequested,
    /// The version is not 13, the only version of the protocol.
    Version,
    /// The method is not GET.
    Method,
    /// The request has content, whose bytes would be read as frames.
    Content,
    /// The key is missing, repeated, or not sixteen bytes in base64.
    Key,
    /// A subprotocol is not a token.
    Protocol,
}

impl<'b> Upgrade<'b> {
    /// Validates a request.
    pub fn parse(head: &Head<'b>) -> Result<Self, UpgradeError> {
        let asks =
            |value: &[u8]| elements(value).any(|name| name.eq_ignore_ascii_case(b"websocket"));
        // `Head::upgrade` requires Connection: upgrade and version 1.1.
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
        if !values(head, PROTOCOL).flat_map(elements).all(byte_class::is_token) {
            return Err(UpgradeError::Protocol);
        }
        Ok(Self { head: *head, key })
    }

    /// Returns the subprotocols that the client offers, in order of its preference.
    pub fn protocols(&self) -> impl Iterator<Item = &'b str> + use<'b> {
        // Tokens are ASCII.
        values(&self.head, PROTOCOL).flat_map(elements).filter_map(|name| str::from_utf8(name).ok())
    }

    /// Returns the subprotocol that [`accept`](Self::accept) selects: the first of the client's
    /// that the server supports.
    ///
    /// If there is none, a browser that offered subprotocols closes the connection.
    pub fn select_protocol(&self, supported: &[&str]) -> Option<&'b str> {
        self.protocols().find(|name| supported.contains(name))
    }

    /// Begins the 101 response. Add fields if needed, then end it with [`Reply::empty`]. Frames
    /// follow in both directions.
    pub fn accept<'o>(&self, out: &'o mut Vec<u8>, date: &Date, supported: &[&str]) -> Reply<'o> {
        let mut reply = Reply::begin(out, self.head.exchange(), Status::SWITCHING_PROTOCOLS, date);
        reply.static_lines("Upgrade: websocket\r\nConnection: Upgrade\r\n");
        let accepted = accept_key(self.key);
        let accepted = str::from_utf8(&accepted).unwrap_or_default();
        reply.field("Sec-WebSocket-Accept", accepted).expect("base64 has no control bytes");
        if let Some(protocol) = self.select_protocol(supported) {
            reply.field("Sec-WebSocket-Protocol", protocol).expect("a token has no control bytes");
        }
        reply
    }
}

const PROTOCOL: &str = "sec-websocket-protocol";

impl UpgradeError {
    /// Returns the status of the error response.
    pub const fn status(self) -> Status {
        match self {
            Self::NotRequested | Self::Version => Status::UPGRADE_REQUIRED,
            _ => Status::BAD_REQUEST,
        }
    }

    /// Returns the short text for the client.
    pub const fn client_message(self) -> &'static str {
        match self {
            Self::NotRequested => "This URL accepts only WebSocket connections.\n",
            Self::Version => "This URL accepts only version 13 of WebSocket.\n",
            Self::Method => "Open the WebSocket with GET.\n",
            Self::Content => "Open the WebSocket with a request without content.\n",
            Self::Key => "Send exactly one Sec-WebSocket-Key: 16 bytes in base64.\n",
            Self::Protocol => "Sec-WebSocket-Protocol must be a list of tokens.\n",
        }
    }

    /// Appends the complete error response. A 426 names the protocol to change to (RFC 9110 section
    /// 15.5.22).
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
            Self::NotRequested => "request does not ask for a WebSocket",
            Self::Version => "WebSocket version other than 13",
            Self::Method => "WebSocket request with a method other than GET",
            Self::Content => "WebSocket request with content",
            Self::Key => "malformed Sec-WebSocket-Key",
            Self::Protocol => "malformed Sec-WebSocket-Protocol",
        })
    }
}

impl core::error::Error for UpgradeError {}

/// Returns the values of all fields with this name.
fn values<'b>(head: &Head<'b>, name: &'static str) -> impl Iterator<Item = &'b [u8]> + use<'b> {
    head.fields().filter(move |(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Returns the value of the field with this name, if there is exactly one.
fn only<'b>(head: &Head<'b>, name: &'static str) -> Option<&'b [u8]> {
    let mut values = values(head, name);
    values.next().filter(|_| values.next().is_none())
}
