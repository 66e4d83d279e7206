//! Decides how a checked request head is read: views into its bytes, found once.

use alloc::borrow::Cow;
use core::ops::Range;
use core::str;

use crate::known_field::KnownField;
use crate::line;
use crate::method::Method;
use crate::path;
use crate::security::SecurityHeaders;

/// A whole, valid request head: the bytes of the request line and the fields, and where things are in them.
#[derive(Clone, Copy, Debug)]
pub struct Head<'b> {
    raw: &'b [u8],
    index: HeadIndex,
}

/// Where things are in the bytes of a [`Head`], without the bytes.
///
/// Copy the bytes elsewhere, keep this beside them, and [`Head::from_parts`] is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadIndex {
    /// Length of the content, if [`Flags::LENGTH`].
    pub(crate) content_length: u64,
    /// Set of [`KnownField`] bits.
    pub(crate) known: u32,
    /// End of the request target; it begins behind the method and its space.
    pub(crate) target_end: u32,
    /// The path as sent; empty if an absolute-form target has none.
    pub(crate) path: Span,
    /// The authority of an absolute-form target, else the value of Host; empty if there is none.
    pub(crate) authority: Span,
    pub(crate) method: Method,
    pub(crate) version: Version,
    pub(crate) flags: Flags,
}

/// A range of the head's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// What the parser noted for the readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

/// How the content behind a head is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no content; a Content-Length of 0 says so too.
    None,
    /// So many bytes, at least one.
    Length(u64),
    /// Chunks, each with its own length (RFC 9112 section 7.1).
    Chunked,
}

/// The version of HTTP a request was made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// All that a reply must know of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// HEAD gets no content.
    pub method: Method,
    /// HTTP/1.0 gets no chunks.
    pub version: Version,
    /// Whether the connection lives on.
    pub keep_alive: bool,
    /// Security headers of the reply.
    pub security: SecurityHeaders,
    /// For how many seconds the peer shall come in secret alone (RFC 6797); 0 says nothing of it.
    pub hsts: u32,
}

impl Exchange {
    /// For an answer to a request that was not understood: content may be sent, then the connection closes.
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

    /// The same range of something that begins so much earlier.
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
    /// Joins the bytes of a head with the index that was made for them.
    ///
    /// With an index made for other bytes the methods return nonsense or panic on a range.
    pub const fn from_parts(raw: &'b [u8], index: HeadIndex) -> Self {
        Self { raw, index }
    }

    /// All bytes of the head, the empty line at its end included.
    pub const fn raw(&self) -> &'b [u8] {
        self.raw
    }

    /// Where things are in [`raw`](Self::raw).
    pub const fn index(&self) -> HeadIndex {
        self.index
    }

    /// The method.
    pub const fn method(&self) -> Method {
        self.index.method
    }

    /// The version.
    pub const fn version(&self) -> Version {
        self.index.version
    }

    /// The request target as it was sent, for logs.
    pub fn target(&self) -> &'b str {
        self.text(Span { start: self.target_start(), end: self.index.target_end })
    }

    /// The path, decoded once and without dot segments: it begins with `/`, or is `*`.
    pub fn path(&self) -> Cow<'b, str> {
        match self.plain_path() {
            Some(path) => Cow::Borrowed(path),
            None => Cow::Owned(path::decode(self.text(self.index.path))),
        }
    }

    /// The path if it stands in the request as it is: nearly always.
    pub fn plain_path(&self) -> Option<&'b str> {
        if !self.index.flags.has(Flags::PLAIN_PATH) {
            return None;
        }
        let path = self.text(self.index.path);
        Some(match path {
            // RFC 9112 section 3.2.4: OPTIONS of an authority alone means the server as a whole.
            "" if self.index.method == Method::Options && self.query().is_none() => "*",
            "" => "/",
            path => path,
        })
    }

    /// What follows the `?`, as it was sent.
    pub fn query(&self) -> Option<&'b str> {
        let start = self.index.path.end + 1;
        (start <= self.index.target_end)
            .then(|| self.text(Span { start, end: self.index.target_end }))
    }

    /// The host and port the peer wants: an absolute target's, else the Host field's.
    pub fn authority(&self) -> Option<&'b str> {
        let span = self.index.authority;
        (span.start < span.end).then(|| self.text(span))
    }

    /// The value of the first field of this name, in any case.
    pub fn field(&self, name: &str) -> Option<&'b [u8]> {
        let name = name.as_bytes();
        if KnownField::from_name(name).is_some_and(|known| !self.has(known)) {
            return None;
        }
        // The colon is looked for only where this name would put it; most lines cost one compare.
        line::lines(self.fields_raw())
            .find(|line| {
                line.get(name.len()) == Some(&b':') && line[..name.len()].eq_ignore_ascii_case(name)
            })
            .map(|line| line::trim(&line[name.len() + 1..]))
    }

    /// The value of the first field of this name, if it is UTF-8.
    pub fn field_text(&self, name: &str) -> Option<&'b str> {
        str::from_utf8(self.field(name)?).ok()
    }

    /// All fields in the order sent, values without the white space around them.
    pub fn fields(&self) -> impl Iterator<Item = (&'b str, &'b [u8])> + use<'b> {
        line::lines(self.fields_raw()).filter_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            let name = str::from_utf8(&line[..colon]).ok()?;
            Some((name, line::trim(&line[colon + 1..])))
        })
    }

    /// Whether the field is there at all.
    pub const fn has(&self, known: KnownField) -> bool {
        self.index.known & known.bit() != 0
    }

    /// How the content is delimited.
    pub const fn framing(&self) -> Framing {
        if self.index.flags.has(Flags::CHUNKED) {
            Framing::Chunked
        } else if self.index.flags.has(Flags::LENGTH) {
            Framing::Length(self.index.content_length)
        } else {
            Framing::None
        }
    }

    /// Whether the peer wants the connection kept after the reply (RFC 9112 section 9.3).
    pub const fn keep_alive(&self) -> bool {
        self.index.flags.has(Flags::KEEP_ALIVE)
    }

    /// Whether the peer holds its content back until it reads `100 Continue`.
    pub const fn expects_continue(&self) -> bool {
        self.index.flags.has(Flags::EXPECTS_CONTINUE)
    }

    /// The protocols to change to, if this is HTTP/1.1 and Connection names the upgrade (RFC 9110 section 7.8).
    pub fn upgrade(&self) -> Option<&'b str> {
        if !self.index.flags.has(Flags::UPGRADE) {
            return None;
        }
        self.field_text("upgrade")
    }

    /// What the reply must know.
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

    /// The field lines, without the empty line behind them.
    fn fields_raw(&self) -> &'b [u8] {
        let start = self.index.target_end as usize + " HTTP/1.1\r\n".len();
        &self.raw[start..self.raw.len() - 2]
    }

    fn text(&self, span: Span) -> &'b str {
        // Every span holds bytes that were checked to be ASCII; without unsafe the check is done again,
        // which costs about a nanosecond on a path.
        str::from_utf8(&self.raw[span.start as usize..span.end as usize]).unwrap_or_default()
    }
}
