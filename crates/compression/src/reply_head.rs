//! Heads of responses: what decides whether the content may be compressed, and the head afterwards.

use crate::media_types::MediaTypes;
use bine_http::Coding;

/// The head of a response that the server has written, as far as compression depends on it.
#[derive(Clone, Copy, Debug)]
pub struct ReplyHead<'b> {
    status: u16,
    /// The status line, with its CRLF.
    status_line: &'b [u8],
    /// The field lines, each with its CRLF.
    fields: &'b [u8],
    content_type: &'b [u8],
    content_length: Option<u64>,
    etag: Option<&'b [u8]>,
    is_encoded: bool,
    is_chunked: bool,
    /// Whether `Cache-Control: no-transform` or a digest of the content forbids a change of it.
    is_fixed: bool,
    is_personal: bool,
    /// Whether Vary names Accept-Encoding, or `*`.
    varies: bool,
}

/// A change of the head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeadChange {
    /// The encoded content has this length in bytes.
    Whole(Coding, u64),
    /// The content is encoded while it is sent, in chunks, whatever its framing was.
    Chunked(Coding),
    /// The content is encoded while it is sent, in the framing that the head announces.
    Streamed(Coding),
    /// The response to HEAD, whose GET would have encoded content of a length that is not known.
    WithoutContent(Coding),
    /// The content stays as it is, and other clients get it encoded.
    Vary,
    /// A 304 for a client that has the encoded content (`true`) or that without coding.
    NotModified(bool),
}

impl<'b> ReplyHead<'b> {
    /// Parses the head at the start of `bytes`. Returns `None` if it is incomplete.
    pub fn parse(bytes: &'b [u8]) -> Option<Self> {
        let first = bytes.iter().position(|&byte| byte == b'\n')? + 1;
        let (status_line, rest) = bytes.split_at(first);
        // HTTP/1.1 200 OK
        let digits = status_line.get(9..12)?;
        let mut head = Self {
            status: str::from_utf8(digits).ok()?.parse().ok()?,
            status_line,
            fields: &[],
            content_type: b"",
            content_length: None,
            etag: None,
            is_encoded: false,
            is_chunked: false,
            is_fixed: false,
            is_personal: false,
            varies: false,
        };
        let mut at = 0;
        loop {
            let end = at + rest[at..].iter().position(|&byte| byte == b'\n')? + 1;
            let line = &rest[at..end];
            if line == b"\r\n" {
                head.fields = &rest[..at];
                return Some(head);
            }
            head.note(line);
            at = end;
        }
    }

    fn note(&mut self, line: &'b [u8]) {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { return };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let is = |own: &str| own.as_bytes().eq_ignore_ascii_case(name);
        let mut words = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        match name.first().map(u8::to_ascii_lowercase) {
            Some(b'c') if is("content-type") => self.content_type = value,
            Some(b'c') if is("content-length") => {
                self.content_length = str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            }
            Some(b'c') if is("content-encoding") => self.is_encoded = true,
            Some(b'c') if is("content-range") || is("content-md5") || is("content-digest") => {
                self.is_fixed = true;
            }
            Some(b'c') if is("cache-control") => {
                for word in words {
                    let says = |own: &[u8]| {
                        let start = word.get(..own.len());
                        start.is_some_and(|start| start.eq_ignore_ascii_case(own))
                    };
                    self.is_fixed |= says(b"no-transform");
                    self.is_personal |= says(b"private") || says(b"no-store");
                }
            }
            Some(b'd') if is("digest") => self.is_fixed = true,
            Some(b'r') if is("repr-digest") => self.is_fixed = true,
            Some(b'e') if is("etag") => self.etag = Some(value),
            Some(b's') if is("set-cookie") => self.is_personal = true,
            Some(b't') if is("transfer-encoding") => self.is_chunked = true,
            Some(b'v') if is("vary") => {
                let names = |word: &[u8], own: &str| word.eq_ignore_ascii_case(own.as_bytes());
                for word in words.by_ref() {
                    let is_any = word == b"*";
                    self.varies |= is_any || names(word, "accept-encoding");
                    self.is_personal |=
                        is_any || names(word, "cookie") || names(word, "authorization");
                }
            }
            _ => {}
        }
    }

    /// The status code.
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// The length of the head in bytes, with the empty line at its end.
    pub const fn length(&self) -> usize {
        self.status_line.len() + self.fields.len() + 2
    }

    /// The length of the content in bytes, if the head announces it.
    pub const fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    /// Whether the content is sent in chunks.
    pub const fn is_chunked(&self) -> bool {
        self.is_chunked
    }

    /// The entity tag, if it is strong.
    pub fn strong_tag(&self) -> Option<&'b [u8]> {
        self.etag.filter(|tag| tag.starts_with(b"\""))
    }

    /// Whether the content depends on who the client is: the response sets a cookie, must not be
    /// shared among clients, or varies by cookies or credentials.
    pub const fn is_personal(&self) -> bool {
        self.is_personal
    }

    /// Whether content of this type and length is compressed: at least `least` bytes, or of a length
    /// that is not known.
    ///
    /// The status must be one that has whole content, and neither a coding nor `no-transform` may
    /// already decide the form of the content.
    pub fn is_compressible(&self, types: &MediaTypes, least: u64) -> bool {
        !matches!(self.status, 0..=199 | 204 | 205 | 206 | 304)
            && !self.is_encoded
            && !self.is_fixed
            && self.content_length.is_none_or(|length| length >= least)
            && types.has(self.content_type)
    }

    /// Returns the changed head, with the empty line at its end.
    ///
    /// An entity tag becomes weak, because a strong one belongs to one sequence of bytes (RFC 9110
    /// section 8.8.3.3). A weak one still answers `If-None-Match`, and never `If-Range`.
    pub fn changed(&self, change: HeadChange) -> Vec<u8> {
        let mut head = Vec::with_capacity(self.length() + 96);
        head.extend_from_slice(self.status_line);
        for line in self.fields.split_inclusive(|&byte| byte == b'\n') {
            let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
            let is = |own: &str| own.as_bytes().eq_ignore_ascii_case(&line[..colon]);
            let is_weakened = match change {
                HeadChange::Vary => false,
                HeadChange::NotModified(is_encoded) => is_encoded,
                _ => true,
            };
            if is_weakened && is("etag") && self.strong_tag().is_some() {
                head.extend_from_slice(b"ETag: W/");
                head.extend_from_slice(line[colon + 1..].trim_ascii());
                head.extend_from_slice(b"\r\n");
                continue;
            }
            let is_dropped = match change {
                HeadChange::Vary | HeadChange::NotModified(_) => false,
                HeadChange::Streamed(_) => is("accept-ranges"),
                HeadChange::Whole(..) | HeadChange::Chunked(_) | HeadChange::WithoutContent(_) => {
                    is("content-length") || is("transfer-encoding") || is("accept-ranges")
                }
            };
            if !is_dropped {
                head.extend_from_slice(line);
            }
        }
        let coding = match change {
            HeadChange::Whole(coding, _)
            | HeadChange::Chunked(coding)
            | HeadChange::Streamed(coding)
            | HeadChange::WithoutContent(coding) => Some(coding),
            HeadChange::Vary | HeadChange::NotModified(_) => None,
        };
        if let Some(coding) = coding {
            head.extend_from_slice(format!("Content-Encoding: {}\r\n", coding.name()).as_bytes());
        }
        if !self.varies {
            head.extend_from_slice(b"Vary: Accept-Encoding\r\n");
        }
        match change {
            HeadChange::Whole(_, length) => {
                head.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
            }
            HeadChange::Chunked(_) => {
                head.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
            }
            _ => {}
        }
        head.extend_from_slice(b"\r\n");
        head
    }

    /// Whether an If-None-Match value shows that the client has the encoded content: it names the tag
    /// of this head in its weak form.
    pub fn is_held_encoded(&self, if_none_match: &[u8]) -> bool {
        let Some(tag) = self.strong_tag() else { return false };
        let mut members = if_none_match.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        members.any(|member| member.strip_prefix(b"W/") == Some(tag))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(lines: &str) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\n{lines}\r\nbody\r\n").into_bytes()
    }

    #[track_caller]
    fn check_compressible(lines: &str, expected: bool) {
        let bytes = head(lines);
        let head = ReplyHead::parse(&bytes).unwrap();
        assert_eq!(head.is_compressible(&MediaTypes::default(), 1024), expected, "{lines}");
    }

    #[test]
    fn compresses_whole_content_of_the_right_type_and_length() {
        check_compressible("Content-Type: text/html\r\nContent-Length: 1024\r\n", true);
        check_compressible("content-type: text/html\r\nContent-Length:       1024\r\n", true);
        check_compressible("Content-Type: text/html\r\nTransfer-Encoding: chunked\r\n", true);
        check_compressible("Content-Type: text/html\r\nContent-Length: 1023\r\n", false);
        check_compressible("Content-Type: image/png\r\nContent-Length: 2000\r\n", false);
        check_compressible("Content-Length: 2000\r\n", false);
        for line in [
            "Content-Encoding: br",
            "Cache-Control: public, No-Transform",
            "Content-Range: bytes 0-9/100",
            "Content-Digest: sha-256=:a:",
            "Repr-Digest: sha-256=:a:",
            "Digest: a",
        ] {
            check_compressible(&format!("Content-Type: text/html\r\n{line}\r\n"), false);
        }
    }

    #[test]
    fn leaves_statuses_without_whole_content() {
        for (status, expected) in [
            (200, true),
            (404, true),
            (500, true),
            (101, false),
            (204, false),
            (206, false),
            (304, false),
        ] {
            let bytes = format!("HTTP/1.1 {status} A\r\nContent-Type: text/html\r\n\r\n");
            let head = ReplyHead::parse(bytes.as_bytes()).unwrap();
            assert_eq!(head.status(), status);
            assert_eq!(head.is_compressible(&MediaTypes::default(), 1024), expected, "{status}");
        }
    }

    #[test]
    fn notices_personal_content() {
        for (line, expected) in [
            ("Set-Cookie: a=b", true),
            ("Cache-Control: private, no-cache", true),
            ("cache-control: max-age=0, NO-STORE", true),
            ("Vary: Accept, Cookie", true),
            ("Vary: Authorization", true),
            ("Vary: *", true),
            ("Cache-Control: public, max-age=60", false),
            ("Vary: Accept", false),
            ("X-Note: private", false),
        ] {
            let bytes = head(&format!("{line}\r\n"));
            assert_eq!(ReplyHead::parse(&bytes).unwrap().is_personal(), expected, "{line}");
        }
    }

    #[track_caller]
    fn check_change(lines: &str, change: HeadChange, expected: &str) {
        let bytes = head(lines);
        let parsed = ReplyHead::parse(&bytes).unwrap();
        assert_eq!(&bytes[parsed.length()..], b"body\r\n");
        let changed = String::from_utf8(parsed.changed(change)).unwrap();
        assert_eq!(changed, format!("HTTP/1.1 200 OK\r\n{expected}\r\n"));
    }

    #[test]
    fn announces_the_coding() {
        let file = "ETag: \"a-1\"\r\nAccept-Ranges: bytes\r\nContent-Length: 99\r\n";
        let gzip = "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n";
        check_change(
            file,
            HeadChange::Whole(Coding::Gzip, 7),
            &format!("ETag: W/\"a-1\"\r\n{gzip}Content-Length: 7\r\n"),
        );
        check_change(
            file,
            HeadChange::Chunked(Coding::Gzip),
            &format!("ETag: W/\"a-1\"\r\n{gzip}Transfer-Encoding: chunked\r\n"),
        );
        check_change(
            file,
            HeadChange::WithoutContent(Coding::Gzip),
            &format!("ETag: W/\"a-1\"\r\n{gzip}"),
        );
        check_change(
            "Transfer-Encoding: chunked\r\nA: b\r\n",
            HeadChange::Streamed(Coding::Brotli),
            "Transfer-Encoding: chunked\r\nA: b\r\nContent-Encoding: br\r\nVary: Accept-Encoding\r\n",
        );
        check_change(
            "Vary: Accept\r\nVary: accept-encoding\r\nETag: W/\"a\"\r\n",
            HeadChange::Whole(Coding::Zstandard, 1),
            "Vary: Accept\r\nVary: accept-encoding\r\nETag: W/\"a\"\r\nContent-Encoding: zstd\r\nContent-Length: 1\r\n",
        );
        check_change(file, HeadChange::Vary, &format!("{file}Vary: Accept-Encoding\r\n"));
    }

    #[test]
    fn names_the_tag_that_the_client_has_in_a_304() {
        let bytes = b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n";
        let head = ReplyHead::parse(bytes).unwrap();
        assert!(head.is_held_encoded(b"\"b\", W/\"a\""));
        assert!(!head.is_held_encoded(b"\"a\", W/\"b\""));
        let changed = |is_encoded| {
            let changed = head.changed(HeadChange::NotModified(is_encoded));
            String::from_utf8(changed).unwrap().lines().nth(1).unwrap().to_owned()
        };
        assert_eq!(changed(true), "ETag: W/\"a\"");
        assert_eq!(changed(false), "ETag: \"a\"");
    }

    proptest! {
        /// A head that is cut anywhere is incomplete.
        #[test]
        fn waits_for_the_end_of_the_head(cut in 0_usize..60) {
            let bytes = head("Content-Type: text/html\r\nETag: \"a\"\r\n");
            let length = ReplyHead::parse(&bytes).unwrap().length();
            prop_assume!(cut < length);
            prop_assert!(ReplyHead::parse(&bytes[..cut]).is_none());
        }

        #[test]
        fn accepts_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(head) = ReplyHead::parse(&bytes) {
                prop_assert!(head.length() <= bytes.len());
            }
        }
    }
}
