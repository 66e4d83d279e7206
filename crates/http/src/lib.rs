//! An HTTP/1.1 and WebSocket protocol implementation without I/O: bytes in, events out.
//!
//! Each connection owns one [`RequestParser`], which turns received bytes into [`Event`]s. A
//! [`Reply`] appends the response to a buffer. The crate uses no socket, no clock and no lock.
//!
//! Both sides are strict (RFC 9110, RFC 9112): the parser rejects any input that two servers could
//! read differently, as a [`PeerFault`], and never repairs it.
//!
//! ```
//! use bine_http::{Date, Event, Limits, Reply, RequestParser, Status};
//!
//! let mut parser = RequestParser::new();
//! let received = b"GET /hello?name=Ada HTTP/1.1\r\nHost: example.org\r\n\r\n";
//! let step = parser.receive(received, &Limits::default());
//! assert_eq!(step.consumed, received.len());
//! let Event::Head(head) = step.event else { panic!("expected a request head") };
//! assert_eq!((head.path().as_ref(), head.query()), ("/hello", Some("name=Ada")));
//!
//! let mut out = Vec::new();
//! Reply::begin(&mut out, head.exchange(), Status::OK, &Date::at(0)).whole(b"Hello");
//! assert!(out.ends_with(b"Content-Length: 5\r\n\r\nHello"));
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod body_framing;
mod byte_class;
mod chunked;
mod content_coding;
mod date;
mod fault;
mod fields;
mod head;
mod head_parser;
mod host;
mod known_field;
mod limits;
mod line;
mod method;
mod one_pass;
mod parser;
mod path;
mod proxy_header;
pub mod query;
mod reply;
mod response;
mod scan;
mod security;
mod status;
mod target;
pub mod websocket;

pub use body_framing::BodyFraming;
pub use content_coding::{Coding, negotiate};
pub use date::Date;
pub use fault::{Misuse, PeerFault};
pub use head::{Exchange, Framing, Head, HeadIndex, Version};
pub use known_field::KnownField;
pub use limits::Limits;
pub use method::Method;
pub use parser::{Event, Phase, RequestParser, Step};
pub use proxy_header::{MAX_PROXY_HEADER, ProxyFault, ProxyHeader, ProxyStep};
pub use reply::{Body, FieldLines, Finished, Reply, continue_100};
pub use response::{
    ResponseEvent, ResponseFault, ResponseFraming, ResponseHead, ResponseParser, ResponseStep,
};
pub use security::SecurityHeaders;
pub use status::Status;
