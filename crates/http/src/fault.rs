//! Faults of clients and of callers, each with a message for the client and one for the log.

use core::fmt;

use crate::status::Status;

/// Defines each fault once: its variant, its status, and its log message, which is also its
/// documentation.
macro_rules! peer_faults {
    ($($name:ident: $status:ident, $logged:literal;)+) => {
        /// A protocol violation by the client. The server answers it once, then closes the
        /// connection.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum PeerFault {
            $(
                #[doc = concat!("Answered ", stringify!($status), ": ", $logged, ".")]
                $name,
            )+
        }

        impl PeerFault {
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the status of the error response.
            pub const fn status(self) -> Status {
                match self {
                    $(Self::$name => Status::$status,)+
                }
            }

            /// Returns the message for the log.
            const fn logged(self) -> &'static str {
                match self {
                    $(Self::$name => $logged,)+
                }
            }
        }
    };
}

peer_faults! {
    // Line ends.
    BlankLines: BAD_REQUEST, "too many blank lines before the request";
    BareLineFeed: BAD_REQUEST, "line feed without carriage return";
    BareCarriageReturn: BAD_REQUEST, "carriage return without line feed";
    Malformed: BAD_REQUEST, "malformed head";
    // Request line.
    MethodSyntax: BAD_REQUEST, "method is not a token";
    MissingVersion: BAD_REQUEST, "request line without version";
    VersionSyntax: BAD_REQUEST, "malformed version";
    UnsupportedVersion: HTTP_VERSION_NOT_SUPPORTED, "version other than 1.0 and 1.1";
    UnknownMethod: NOT_IMPLEMENTED, "unknown method";
    Connect: NOT_IMPLEMENTED, "CONNECT";
    TargetTooLong: URI_TOO_LONG, "request target over its limit";
    TargetForm: BAD_REQUEST, "request target of no allowed form";
    TargetByte: BAD_REQUEST, "forbidden byte in request target";
    PathPercent: BAD_REQUEST, "malformed percent-encoding in path";
    PathControl: BAD_REQUEST, "encoded control character in path";
    PathSeparator: BAD_REQUEST, "encoded slash or backslash in path";
    PathText: BAD_REQUEST, "path is not UTF-8";
    PathAboveRoot: BAD_REQUEST, "path climbs above the root";
    // Fields.
    HeadTooLarge: REQUEST_HEADER_FIELDS_TOO_LARGE, "head over its limit";
    TooManyFields: REQUEST_HEADER_FIELDS_TOO_LARGE, "too many fields";
    FoldedLine: BAD_REQUEST, "field line begins with white space";
    MissingColon: BAD_REQUEST, "field line without colon";
    EmptyName: BAD_REQUEST, "empty field name";
    SpaceBeforeColon: BAD_REQUEST, "space before colon";
    NameByte: BAD_REQUEST, "forbidden byte in field name";
    ValueByte: BAD_REQUEST, "control byte in field value";
    // Host.
    MissingHost: BAD_REQUEST, "no Host";
    RepeatedHost: BAD_REQUEST, "more than one Host";
    BadHost: BAD_REQUEST, "invalid host";
    // Framing.
    LengthAndCoding: BAD_REQUEST, "both Content-Length and Transfer-Encoding";
    CodingInOldVersion: BAD_REQUEST, "Transfer-Encoding in HTTP/1.0";
    CodingSyntax: BAD_REQUEST, "malformed Transfer-Encoding";
    ChunkedNotLast: BAD_REQUEST, "chunked is not the last coding";
    ChunkedTwice: BAD_REQUEST, "chunked more than once";
    UnknownCoding: NOT_IMPLEMENTED, "transfer coding other than chunked";
    RepeatedLength: BAD_REQUEST, "more than one Content-Length";
    LengthSyntax: BAD_REQUEST, "malformed Content-Length";
    LengthRequired: LENGTH_REQUIRED, "HTTP/1.0 content without length";
    ContentTooLarge: CONTENT_TOO_LARGE, "content over its limit";
    Expectation: EXPECTATION_FAILED, "expectation other than 100-continue";
    // Chunks.
    ChunkSize: BAD_REQUEST, "malformed chunk size";
    ChunkExtensionByte: BAD_REQUEST, "control byte in chunk extension";
    ChunkExtensionTooLong: BAD_REQUEST, "chunk extensions over their limit";
    ChunkEnd: BAD_REQUEST, "chunk data not followed by CRLF";
    TrailerField: BAD_REQUEST, "field that may not be a trailer";
    // Raised by the caller, which owns the clock.
    TimedOut: REQUEST_TIMEOUT, "request took too long";
}

impl PeerFault {
    /// Returns the short text for the client: how to correct the request, without the position of
    /// the parser.
    pub const fn client_message(self) -> &'static str {
        match self.status().code() {
            408 => "The request did not arrive in time.\n",
            411 => "The request needs a Content-Length.\n",
            413 => "The content is too large.\n",
            414 => "The address is too long.\n",
            417 => "The expectation cannot be met.\n",
            431 => "The request head is too large.\n",
            501 => "The server does not implement this method or transfer coding.\n",
            505 => "The server supports HTTP/1.1 and HTTP/1.0.\n",
            _ => "The request is malformed.\n",
        }
    }
}

impl fmt::Display for PeerFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.logged())
    }
}

impl core::error::Error for PeerFault {}

/// An error of the program that writes a response. The response is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// The name of the field is not a token.
    Name,
    /// The value of the field contains a control byte, so it could split the response.
    Value,
    /// [`Reply`](crate::Reply) writes this field itself: framing, connection or date.
    Reserved,
}

impl fmt::Display for Misuse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Name => "field name is not a token",
            Self::Value => "control byte in field value",
            Self::Reserved => "field is written by the reply itself",
        })
    }
}

impl core::error::Error for Misuse {}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::{Misuse, PeerFault};

    #[test]
    fn explains_each_status_to_the_client() {
        let texts: BTreeMap<u16, &str> =
            PeerFault::ALL.iter().map(|it| (it.status().code(), it.client_message())).collect();
        let expected = [
            (400, "The request is malformed.\n"),
            (408, "The request did not arrive in time.\n"),
            (411, "The request needs a Content-Length.\n"),
            (413, "The content is too large.\n"),
            (414, "The address is too long.\n"),
            (417, "The expectation cannot be met.\n"),
            (431, "The request head is too large.\n"),
            (501, "The server does not implement this method or transfer coding.\n"),
            (505, "The server supports HTTP/1.1 and HTTP/1.0.\n"),
        ];
        assert_eq!(texts, BTreeMap::from(expected));
    }

    #[test]
    fn misuse_names_the_broken_rule() {
        let messages =
            [Misuse::Name, Misuse::Value, Misuse::Reserved].map(|it| alloc::format!("{it}"));
        assert!(messages[0].contains("not a token") && messages[1].contains("control byte"));
        assert!(messages[2].contains("by the reply itself"));
    }

    #[test]
    fn each_fault_has_an_error_status_and_its_own_log_message() {
        for fault in PeerFault::ALL {
            assert!((400..600).contains(&fault.status().code()));
            assert_ne!(alloc::format!("{fault}"), fault.client_message().trim_end());
        }
    }
}
