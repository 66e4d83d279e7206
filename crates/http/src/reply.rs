//! Writes responses: the head in one pass, and the length of the content afterwards.

use alloc::vec::Vec;

use crate::body_framing::BodyFraming;
use crate::byte_class;
use crate::date::Date;
use crate::fault::{Misuse, PeerFault};
use crate::head::{Exchange, Version};
use crate::known_field::KnownField;
use crate::method::Method;
use crate::security::SecurityHeaders;
use crate::status::Status;

/// The framing line of a head whose content is still being written: a Content-Length with ten
/// columns, filled from the right, so that no byte moves once the length is known.
const SLOT: &[u8; 26] = b"Content-Length:           ";
/// Replaces [`SLOT`] once the server must send content before its length is known.
const SLOT_CHUNKED: &[u8; 26] = b"Transfer-Encoding: chunked";
/// Replaces [`SLOT`] for HTTP/1.0, which has no chunks: the end of the connection ends the content.
const SLOT_CLOSE: &[u8; 26] = b"Connection: close         ";
/// The greatest content length that fits into [`SLOT`].
const SLOT_MAX: u64 = 9_999_999_999;

/// The line for a persistent HTTP/1.0 connection.
const KEEP_ALIVE: &[u8; 24] = b"Connection: keep-alive\r\n";
/// Replaces [`KEEP_ALIVE`]. Has the same length.
const CLOSE_IN_PLACE: &[u8; 24] = b"Connection: close     \r\n";

/// Reserves space for the size line of a chunk whose size is not yet known.
const CHUNK_SIZE_LINE: &[u8; 10] = b"00000000\r\n";

/// Returns the interim response for a client that [expects](crate::Head::expects_continue) it.
pub const fn continue_100() -> &'static [u8] {
    b"HTTP/1.1 100 Continue\r\n\r\n"
}

/// Writes the head of a response into a buffer. Complete it with one of the methods that take
/// `self`.
#[derive(Debug)]
#[must_use = "end the head with a method that takes `self`"]
pub struct Reply<'o> {
    out: &'o mut Vec<u8>,
    exchange: Exchange,
    status: Status,
    /// The position of [`KEEP_ALIVE`] in the buffer, if it was written.
    keep_alive_at: Option<usize>,
}

/// Field lines that many responses share, validated and formatted once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FieldLines(Vec<u8>);

impl FieldLines {
    /// Creates an empty block.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a field under the rules of [`Reply::field`].
    ///
    /// # Errors
    ///
    /// Returns the broken rule. The block is unchanged.
    pub fn add(&mut self, name: &str, value: &str) -> Result<(), Misuse> {
        append_field(&mut self.0, name, value.as_bytes())
    }

    /// Adds all fields of `other`.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// Returns the size of the lines in bytes.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the block is empty.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn append_field(out: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), Misuse> {
    if !byte_class::is_token(name.as_bytes()) {
        return Err(Misuse::Name);
    }
    let reserved = matches!(
        KnownField::from_name(name.as_bytes()),
        Some(KnownField::ContentLength | KnownField::TransferEncoding | KnownField::Connection)
    );
    if reserved || name.eq_ignore_ascii_case("date") {
        return Err(Misuse::Reserved);
    }
    if value.iter().any(|&byte| byte_class::is_control(byte) && byte != b'\t') {
        return Err(Misuse::Value);
    }
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Writes the content of a response after its head.
///
/// Append the content to the buffer that the [`Reply`] used. This type does not borrow the buffer,
/// so a page writer can own it. When the buffer is large enough to send, call
/// [`flush`](Self::flush). At the end, call [`finish`](Self::finish). For HEAD, and for a status
/// that forbids content, the same calls remove the appended content again.
#[derive(Debug)]
#[must_use = "call `finish` to write the length of the content"]
pub struct Body {
    delimiter: Delimiter,
    close: bool,
    /// The start of the current piece of content in `out`.
    piece_start: usize,
}

/// A response that is complete in its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Whether the connection must close after the response.
    pub close: bool,
}

/// How the client finds the end of the content.
#[derive(Clone, Copy, Debug)]
enum Delimiter {
    /// The length, written into the slot at `at`, unless content is sent before the length is
    /// known.
    Slot { at: usize, exchange: Exchange, keep_alive_at: Option<usize> },
    /// Chunked transfer coding.
    Chunks,
    /// The end of the connection.
    Close,
    /// The end of the head: there is no content.
    Head,
}

impl<'o> Reply<'o> {
    /// Appends the status line, the date, and the fields that the [`Exchange`] asks for.
    pub fn begin(out: &'o mut Vec<u8>, exchange: Exchange, status: Status, date: &Date) -> Self {
        if status == Status::OK {
            out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        } else {
            out.extend_from_slice(b"HTTP/1.1 ");
            out.extend_from_slice(Decimal::of(u64::from(status.code())).digits());
            out.push(b' ');
            out.extend_from_slice(status.reason().as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(date.as_bytes());
        let mut keep_alive_at = None;
        match (exchange.keep_alive, exchange.version) {
            // An interim response and a 101 do not decide whether the connection closes.
            _ if status < Status::OK => {}
            (true, Version::Http11) => {}
            (true, Version::Http10) => {
                keep_alive_at = Some(out.len());
                out.extend_from_slice(KEEP_ALIVE);
            }
            (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
        }
        // An interim response and a 101 have no content for a browser to protect.
        if status >= Status::OK {
            out.extend_from_slice(exchange.security.lines().as_bytes());
        }
        if exchange.hsts > 0 {
            out.extend_from_slice(b"Strict-Transport-Security: max-age=");
            out.extend_from_slice(Decimal::of(u64::from(exchange.hsts)).digits());
            out.extend_from_slice(b"\r\n");
        }
        Self { out, exchange, status, keep_alive_at }
    }

    /// Appends constant lines, each with its CRLF.
    pub fn static_lines(&mut self, block: &'static str) -> &mut Self {
        debug_assert!(block.is_empty() || block.ends_with("\r\n"), "{block:?}");
        self.out.extend_from_slice(block.as_bytes());
        self
    }

    /// Appends a field. Returns an error if the field could split the response or contradict a line
    /// that `Reply` writes itself.
    pub fn field(&mut self, name: &str, value: &str) -> Result<(), Misuse> {
        append_field(self.out, name, value.as_bytes())
    }

    /// Like [`field`](Self::field), for a value that need not be UTF-8, such as one of another
    /// server.
    pub fn field_bytes(&mut self, name: &str, value: &[u8]) -> Result<(), Misuse> {
        append_field(self.out, name, value)
    }

    /// Appends `X-Content-Type-Options: nosniff`, if the [`Exchange`] has not asked for it already.
    pub fn nosniff(&mut self) -> &mut Self {
        if !self.exchange.security.has(SecurityHeaders::NOSNIFF) {
            self.out.extend_from_slice(SecurityHeaders::NOSNIFF.lines().as_bytes());
        }
        self
    }

    /// Appends field lines that were validated earlier.
    #[inline]
    pub fn field_lines(&mut self, lines: &FieldLines) -> &mut Self {
        self.out.extend_from_slice(&lines.0);
        self
    }

    /// Ends the head for content of this length that the caller sends separately, such as a file.
    pub fn content_length(mut self, content_length: u64) {
        self.end_head(content_length);
    }

    /// Ends the head of a response without content.
    pub fn empty(mut self) {
        self.end_head(0);
    }

    /// Ends the head of a response to HEAD without a Content-Length, because the length that GET
    /// would have is unknown (RFC 9110 section 8.6).
    pub fn unknown_length(self) {
        debug_assert_eq!(self.exchange.method, Method::Head);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Ends the head and appends the complete content.
    pub fn whole(mut self, content: &[u8]) {
        self.end_head(content.len() as u64);
        if self.exchange.method != Method::Head && !self.status.forbids_content() {
            self.out.extend_from_slice(content);
        }
    }

    /// Ends the head for content that is written into the same buffer.
    pub fn body(self) -> Body {
        let delimiter = if self.status.forbids_content() {
            Delimiter::Head
        } else {
            let at = self.out.len();
            self.out.extend_from_slice(SLOT);
            self.out.extend_from_slice(b"\r\n");
            Delimiter::Slot { at, exchange: self.exchange, keep_alive_at: self.keep_alive_at }
        };
        self.out.extend_from_slice(b"\r\n");
        Body { piece_start: self.out.len(), delimiter, close: !self.exchange.keep_alive }
    }

    /// Ends the head for streamed content. Any thread may frame its pieces with the returned value.
    pub fn stream(self) -> BodyFraming {
        let Self { out, exchange, status, keep_alive_at } = self;
        let pieces = match exchange.version {
            _ if status.forbids_content() => BodyFraming::Empty,
            Version::Http11 => {
                out.extend_from_slice(SLOT_CHUNKED);
                out.extend_from_slice(b"\r\n");
                BodyFraming::Chunked
            }
            Version::Http10 => {
                if let Some(at) = keep_alive_at {
                    out[at..at + KEEP_ALIVE.len()].copy_from_slice(CLOSE_IN_PLACE);
                }
                BodyFraming::CloseDelimited
            }
        };
        out.extend_from_slice(b"\r\n");
        if exchange.method == Method::Head { BodyFraming::Empty } else { pieces }
    }

    fn end_head(&mut self, content_length: u64) {
        // RFC 9110 section 8.6 forbids the field for 1xx and 204. For 304 it would be the length of
        // the 200.
        if !self.status.forbids_content() {
            self.out.extend_from_slice(b"Content-Length: ");
            self.out.extend_from_slice(Decimal::of(content_length).digits());
            self.out.extend_from_slice(b"\r\n");
        }
        self.out.extend_from_slice(b"\r\n");
    }
}

impl PeerFault {
    /// Appends the complete error response. It announces that the connection closes if `exchange`
    /// is [`Exchange::closing`].
    pub fn reply(self, out: &mut Vec<u8>, exchange: Exchange, date: &Date) {
        let mut reply = Reply::begin(out, exchange, self.status(), date);
        reply.static_lines("Content-Type: text/plain; charset=utf-8\r\n");
        reply.whole(self.client_message().as_bytes());
    }
}

impl Body {
    /// Frames the content in `out`, then calls `drain` to send it.
    ///
    /// If `drain` leaves bytes in the buffer to send later, they must be the last ones.
    pub fn flush(&mut self, out: &mut Vec<u8>, drain: impl FnOnce(&mut Vec<u8>)) {
        self.end_piece(out);
        drain(out);
        self.begin_piece(out);
    }

    /// Ends the content.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Finished {
        let length = (out.len() - self.piece_start) as u64;
        match self.delimiter {
            Delimiter::Slot { at, exchange, .. } if length <= SLOT_MAX => {
                let length = Decimal::of(length);
                let end = at + SLOT.len();
                out[end - length.digits().len()..end].copy_from_slice(length.digits());
                if exchange.method == Method::Head {
                    out.truncate(self.piece_start);
                }
            }
            _ => {
                self.end_piece(out);
                if matches!(self.delimiter, Delimiter::Chunks) {
                    out.extend_from_slice(b"0\r\n\r\n");
                }
            }
        }
        Finished { close: self.close }
    }

    fn end_piece(&mut self, out: &mut Vec<u8>) {
        match self.delimiter {
            Delimiter::Slot { at, exchange, keep_alive_at } => {
                self.abandon_slot(out, at, exchange, keep_alive_at);
                if matches!(self.delimiter, Delimiter::Chunks) {
                    self.end_chunk(out, 0);
                }
            }
            Delimiter::Chunks => self.end_chunk(out, CHUNK_SIZE_LINE.len()),
            Delimiter::Close | Delimiter::Head => {}
        }
        if matches!(self.delimiter, Delimiter::Head) {
            out.truncate(self.piece_start);
        }
    }

    fn begin_piece(&mut self, out: &mut Vec<u8>) {
        if matches!(self.delimiter, Delimiter::Chunks) {
            out.extend_from_slice(CHUNK_SIZE_LINE);
        }
        self.piece_start = out.len();
    }

    /// Replaces the slot, because the head is sent before the length is known.
    fn abandon_slot(
        &mut self,
        out: &mut [u8],
        slot: usize,
        exchange: Exchange,
        keep_alive_at: Option<usize>,
    ) {
        let replacement = match exchange.version {
            Version::Http11 => SLOT_CHUNKED,
            Version::Http10 => SLOT_CLOSE,
        };
        out[slot..slot + SLOT.len()].copy_from_slice(replacement);
        self.delimiter = match (exchange.method, exchange.version) {
            (Method::Head, _) => Delimiter::Head,
            (_, Version::Http11) => Delimiter::Chunks,
            (_, Version::Http10) => Delimiter::Close,
        };
        if exchange.version == Version::Http10 {
            self.close = true;
            if let Some(at) = keep_alive_at {
                out[at..at + KEEP_ALIVE.len()].copy_from_slice(CLOSE_IN_PLACE);
            }
        }
    }

    /// Frames the current piece as a chunk and writes its size into the `room` bytes before it. The
    /// first chunk has no room, so its data moves.
    fn end_chunk(&self, out: &mut Vec<u8>, room: usize) {
        let length = out.len() - self.piece_start;
        let line = self.piece_start - room..self.piece_start;
        if length == 0 {
            // A chunk of size 0 would end the content.
            out.truncate(line.start);
            return;
        }
        // Eight digits hold sizes below 4 GiB. A larger piece gets sixteen digits and moves.
        let digits = if length >> 32 == 0 { 8 } else { 16 };
        let size = (0..digits).rev().map(|digit| b"0123456789abcdef"[length >> (digit * 4) & 15]);
        out.splice(line, size.chain(*b"\r\n"));
        out.extend_from_slice(b"\r\n");
    }
}

/// A number formatted as decimal digits.
struct Decimal {
    digits: [u8; 20],
    start: usize,
}

impl Decimal {
    fn of(mut number: u64) -> Self {
        let mut digits = [b'0'; 20];
        let mut start = digits.len() - 1;
        loop {
            digits[start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return Self { digits, start };
            }
            start -= 1;
        }
    }

    fn digits(&self) -> &[u8] {
        &self.digits[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use crate::date::Date;
    use crate::fault::PeerFault;
    use crate::head::Exchange;

    #[test]
    fn fault_response_is_complete_and_closes() {
        let mut out = Vec::new();
        PeerFault::TargetTooLong.reply(&mut out, Exchange::closing(), &Date::at(0));
        assert_eq!(
            String::from_utf8_lossy(&out),
            "HTTP/1.1 414 URI Too Long\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nConnection: close\r\n\
             Content-Type: text/plain; charset=utf-8\r\nContent-Length: 25\r\n\r\nThe address is too long.\n"
        );
    }
}
