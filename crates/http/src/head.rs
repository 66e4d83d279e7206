//! Access to a valid request head: views into its bytes, located once by the parser.

use alloc::borrow::Cow;
use core::ops::Range;
use core::str;

use crate::host;
use crate::known_field::KnownField;
use crate::line;
use crate::method::Method;
use crate::path;
use crate::security::SecurityHeaders;

/// A complete, valid request head: the bytes of the request line and the fields, and their index.
#[derive(Clone, Copy, Debug)]
pub struct Head<'b> {
    raw: &'b [u8],
    index: HeadIndex,
}

/// The positions of the parts of a [`Head`], without its bytes.
///
/// Copy the bytes elsewhere and keep this index with them: [`Head::from_parts`] then costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadIndex {
    /// The length of the content, if [`Flags::LENGTH`] is set.
    pub(crate) content_length: u64,
    /// The set of [`KnownField`] bits.
    pub(crate) known: u32,
    /// The end of the request target, which begins after the method and one space.
    pub(crate) target_end: u32,
    /// The path as sent. Empty if an absolute-form target has no path.
    pub(crate) path: Span,
    /// The authority of an absolute-form target, otherwise the value of Host. Empty if neither
    /// exists.
    pub(crate) authority: Span,
    pub(crate) method: Method,
    pub(crate) version: Version,
    pub(crate) flags: Flags,
}

/// A range of the bytes of a head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// Boolean properties of a head, set by the parser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

/// How the content after a head is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no content. Includes a Content-Length of 0.
    None,
    /// Content with this Content-Length, at least 1.
    Length(u64),
    /// Chunked transfer coding (RFC 9112 section 7.1).
    Chunked,
}

/// The HTTP version of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// The properties of a request that its response depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The request method. A response to HEAD has no content.
    pub method: Method,
    /// The HTTP version of the request. HTTP/1.0 has no chunked transfer coding.
    pub version: Version,
    /// Whether the connection stays open after the response.
    pub keep_alive: bool,
    /// The security headers that the response carries.
    pub security: SecurityHeaders,
    /// The `max-age` of Strict-Transport-Security in seconds (RFC 6797). 0 omits the header.
    pub hsts: u32,
}

impl Exchange {
    /// The exchange for a response to a request that could not be parsed: the response may have
    /// content, and the connection closes after it.
    pub const fn closing() -> Self {
        Self {
            method: Method::Get,
            version: Version::Http11,
            keep_alive: false,
            security: SecurityHeaders::NONE,
            hsts: 0,
        }
    }
}

impl Span {
    pub(crate) const fn from_range(range: Range<usize>) -> Self {
        Self { start: range.start as u32, end: range.end as u32 }
    }

    /// Returns the range shifted towards the end by `by` bytes.
    pub(crate) const fn shifted(self, by: usize) -> Self {
        Self { start: self.start + by as u32, end: self.end + by as u32 }
    }
}

impl Flags {
    pub(crate) const KEEP_ALIVE: u8 = 1;
    pub(crate) const EXPECTS_CONTINUE: u8 = 2;
    pub(crate) const UPGRADE: u8 = 4;
    pub(crate) const CHUNKED: u8 = 8;
    pub(crate) const LENGTH: u8 = 16;
    /// The path needs no decoding and has no dot segments.
    pub(crate) const PLAIN_PATH: u8 = 32;
    /// The request was translated from one of HTTP/2.
    pub(crate) const HTTP2: u8 = 64;

    pub(crate) const fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    pub(crate) fn set(&mut self, flag: u8, on: bool) {
        if on {
            self.0 |= flag;
        }
    }
}

impl<'b> Head<'b> {
    /// Joins the bytes of a head with their index.
    ///
    /// With the index of other bytes, the methods return wrong values or panic on a range.
    pub const fn from_parts(raw: &'b [u8], index: HeadIndex) -> Self {
        Self { raw, index }
    }

    /// Returns all bytes of the head, including the empty line at its end.
    pub const fn raw(&self) -> &'b [u8] {
        self.raw
    }

    /// Returns the index of [`raw`](Self::raw).
    pub const fn index(&self) -> HeadIndex {
        self.index
    }

    /// Returns the request method.
    pub const fn method(&self) -> Method {
        self.index.method
    }

    /// Returns the HTTP version.
    pub const fn version(&self) -> Version {
        self.index.version
    }

    /// Returns the request target as sent, for logs.
    pub fn target(&self) -> &'b str {
        self.text(Span { start: self.target_start(), end: self.index.target_end })
    }

    /// Returns the path, decoded once and without dot segments. It begins with `/`, or is `*`.
    pub fn path(&self) -> Cow<'b, str> {
        match self.plain_path() {
            Some(path) => Cow::Borrowed(path),
            None => Cow::Owned(path::decode(self.text(self.index.path))),
        }
    }

    /// Returns the path if it needs no decoding, which is the usual case.
    pub fn plain_path(&self) -> Option<&'b str> {
        if !self.index.flags.has(Flags::PLAIN_PATH) {
            return None;
        }
        let path = self.text(self.index.path);
        Some(match path {
            // RFC 9112 section 3.2.4: OPTIONS with an authority and no path addresses the whole
            // server.
            "" if self.index.method == Method::Options && self.query().is_none() => "*",
            "" => "/",
            path => path,
        })
    }

    /// Returns the query as sent: the part of the target after `?`.
    pub fn query(&self) -> Option<&'b str> {
        let start = self.index.path.end + 1;
        (start <= self.index.target_end)
            .then(|| self.text(Span { start, end: self.index.target_end }))
    }

    /// Returns the host and port that the client addresses: from an absolute-form target, otherwise
    /// from the Host field.
    pub fn authority(&self) -> Option<&'b str> {
        self.authority_bytes().and_then(|bytes| str::from_utf8(bytes).ok())
    }

    /// Returns [`authority`](Self::authority) as bytes, which are ASCII.
    pub fn authority_bytes(&self) -> Option<&'b [u8]> {
        let Span { start, end } = self.index.authority;
        (start < end).then(|| &self.raw[start as usize..end as usize])
    }

    /// The same head for another host: `host` is the value of one of its fields, or a part of one,
    /// such as `X-Forwarded-Host`. Returns `None` if this is no host with an optional port.
    pub fn with_authority(mut self, host: &[u8]) -> Option<Self> {
        let start = host.as_ptr().addr().checked_sub(self.raw.as_ptr().addr())?;
        let end = start.checked_add(host.len())?;
        let is_part = self.raw.get(start..end).is_some_and(|part| core::ptr::eq(part, host));
        (is_part && host::is_valid(host)).then(|| {
            self.index.authority = Span::from_range(start..end);
            self
        })
    }

    /// The same head, as the translation of a request of HTTP/2.
    #[must_use]
    pub fn of_http2(mut self) -> Self {
        self.index.flags.set(Flags::HTTP2, true);
        self
    }

    /// Returns whether the client has sent the request over HTTP/2. [`version`](Self::version) is
    /// then that of the translation.
    pub const fn is_http2(&self) -> bool {
        self.index.flags.has(Flags::HTTP2)
    }

    /// Returns the value of the first field with this name. The name is case-insensitive.
    pub fn field(&self, name: &str) -> Option<&'b [u8]> {
        let name = name.as_bytes();
        if KnownField::from_name(name).is_some_and(|known| !self.has(known)) {
            return None;
        }
        // The search compares a line only if its colon is at the position that this name requires.
        // Most lines cost one comparison.
        line::lines(self.fields_raw())
            .find(|line| {
                line.get(name.len()) == Some(&b':') && line[..name.len()].eq_ignore_ascii_case(name)
            })
            .map(|line| line::trim(&line[name.len() + 1..]))
    }

    /// Returns the value of the first field with this name, if it is UTF-8.
    pub fn field_text(&self, name: &str) -> Option<&'b str> {
        str::from_utf8(self.field(name)?).ok()
    }

    /// Returns all fields in the order sent. Values are trimmed of surrounding white space.
    pub fn fields(&self) -> impl Iterator<Item = (&'b str, &'b [u8])> + use<'b> {
        line::lines(self.fields_raw()).filter_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            let name = str::from_utf8(&line[..colon]).ok()?;
            Some((name, line::trim(&line[colon + 1..])))
        })
    }

    /// Returns whether the request has this field.
    pub const fn has(&self, known: KnownField) -> bool {
        self.index.known & known.bit() != 0
    }

    /// Returns how the content is delimited.
    pub const fn framing(&self) -> Framing {
        if self.index.flags.has(Flags::CHUNKED) {
            Framing::Chunked
        } else if self.index.flags.has(Flags::LENGTH) {
            Framing::Length(self.index.content_length)
        } else {
            Framing::None
        }
    }

    /// Returns whether the client keeps the connection open after the response (RFC 9112 section
    /// 9.3).
    pub const fn keep_alive(&self) -> bool {
        self.index.flags.has(Flags::KEEP_ALIVE)
    }

    /// Returns whether the client sends its content only after it has read `100 Continue`.
    pub const fn expects_continue(&self) -> bool {
        self.index.flags.has(Flags::EXPECTS_CONTINUE)
    }

    /// Returns the value of Upgrade, if the version is HTTP/1.1 and Connection lists `upgrade` (RFC
    /// 9110 section 7.8).
    pub fn upgrade(&self) -> Option<&'b str> {
        if !self.index.flags.has(Flags::UPGRADE) {
            return None;
        }
        self.field_text("upgrade")
    }

    /// Returns the properties that the response depends on.
    pub const fn exchange(&self) -> Exchange {
        Exchange {
            method: self.index.method,
            version: self.index.version,
            keep_alive: self.keep_alive(),
            security: SecurityHeaders::NONE,
            hsts: 0,
        }
    }

    const fn target_start(&self) -> u32 {
        self.index.method.as_str().len() as u32 + 1
    }

    /// Returns the field lines, without the empty line after them.
    fn fields_raw(&self) -> &'b [u8] {
        let start = self.index.target_end as usize + " HTTP/1.1\r\n".len();
        &self.raw[start..self.raw.len() - 2]
    }

    fn text(&self, span: Span) -> &'b str {
        // The parser has checked that every span is ASCII. Without unsafe code the check runs
        // again, which costs about a nanosecond for a path.
        str::from_utf8(&self.raw[span.start as usize..span.end as usize]).unwrap_or_default()
    }
}
