//! Parses a request head that may arrive in several reads.
//!
//! A complete head takes the fast path of [`one_pass`](crate::one_pass). An incomplete or malformed
//! one is checked line by line.

use crate::byte_class;
use crate::fault::PeerFault;
use crate::head::Head;
use crate::limits::Limits;
use crate::line;
use crate::method::Method;
use crate::one_pass;
use crate::scan;
use crate::target;

/// The progress through an incomplete head, so that no byte is examined twice.
#[derive(Debug, Default)]
pub(crate) struct HeadParser {
    /// The start of the incomplete line. 0 is the request line.
    line_start: u32,
    /// The end of the bytes that were scanned. The incomplete line has no line feed before it.
    scanned: u32,
    fields: u16,
}

impl HeadParser {
    pub(crate) const fn new() -> Self {
        Self { line_start: 0, scanned: 0, fields: 0 }
    }

    /// Returns the head at the front of the bytes, or `None` while it is incomplete.
    #[inline]
    pub(crate) fn receive<'b>(
        &mut self,
        bytes: &'b [u8],
        limits: &Limits,
    ) -> Result<Option<Head<'b>>, PeerFault> {
        // A reload may lower the limit. Bytes that were scanned under a higher limit stay valid.
        let limit = limits.head.max(self.scanned) as usize;
        let within = &bytes[..bytes.len().min(limit)];
        let has_started = self.scanned > 0;
        if has_started && !self.check_lines(within, limits)? {
            return self.incomplete(within.len() < limit);
        }
        // Most heads arrive complete in one read.
        if let Some(head) = one_pass::read(within, limits) {
            return head.map(Some);
        }
        if !has_started {
            // A TLS ClientHello may contain no line feed. Its client receives the error at once
            // instead of a timeout.
            if !within.first().is_some_and(|first| byte_class::is_token(&[*first])) {
                return Err(PeerFault::MethodSyntax);
            }
            if !self.check_lines(within, limits)? {
                return self.incomplete(within.len() < limit);
            }
        }
        // Every line is well-formed, so this is unreachable unless the two parsers disagree.
        // Rejecting is safe.
        Err(PeerFault::Malformed)
    }

    /// Checks each complete line. Returns whether the empty line that ends the head was found.
    #[cold]
    fn check_lines(&mut self, bytes: &[u8], limits: &Limits) -> Result<bool, PeerFault> {
        while let Some(length) = scan::find_line_feed(&bytes[self.scanned as usize..]) {
            let end = self.scanned as usize + length + 1;
            let line = line::end(&bytes[self.line_start as usize..end])?;
            if self.line_start == 0 {
                request_line(line, limits)?;
            } else if line.is_empty() {
                return Ok(true);
            } else if self.fields >= limits.fields {
                return Err(PeerFault::TooManyFields);
            } else {
                self.fields += 1;
                line::field(line)?;
            }
            self.line_start = end as u32;
            self.scanned = end as u32;
        }
        self.scanned = bytes.len() as u32;
        Ok(false)
    }

    /// Decides about a head without an end: wait for more bytes if the limit allows them, otherwise
    /// reject it.
    fn incomplete<T>(&self, has_room: bool) -> Result<Option<T>, PeerFault> {
        match self.line_start {
            _ if has_room => Ok(None),
            0 => Err(PeerFault::TargetTooLong),
            _ => Err(PeerFault::HeadTooLarge),
        }
    }
}

/// Rejects a malformed request line (RFC 9112 section 3). The most general fault has precedence.
fn request_line(line: &[u8], limits: &Limits) -> Result<(), PeerFault> {
    if line.contains(&b'\r') {
        return Err(PeerFault::BareCarriageReturn);
    }
    let mut parts = line.splitn(2, |&byte| byte == b' ');
    let token = parts.next().filter(|token| byte_class::is_token(token));
    let token = token.ok_or(PeerFault::MethodSyntax)?;
    let rest = parts.next().ok_or(PeerFault::MissingVersion)?;
    let space = rest.iter().rposition(|&byte| byte == b' ');
    let (target, version) = rest.split_at(space.ok_or(PeerFault::MissingVersion)?);
    match &version[1..] {
        b"HTTP/1.1" | b"HTTP/1.0" => {}
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => {
            return Err(PeerFault::UnsupportedVersion);
        }
        _ => return Err(PeerFault::VersionSyntax),
    }
    let method = match Method::from_bytes(token) {
        Some(Method::Connect) => return Err(PeerFault::Connect),
        Some(method) => method,
        None => return Err(PeerFault::UnknownMethod),
    };
    if target.len() > limits.target as usize {
        return Err(PeerFault::TargetTooLong);
    }
    target::read(target, method).map(|_| ())
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::collection::vec;
    use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};
    use proptest::sample::{Index, select};

    use super::HeadParser;
    use crate::limits::Limits;
    use crate::one_pass;

    /// Heads of every kind. A change of a few bytes makes each of them malformed, incomplete or
    /// ambiguous.
    const HEADS: &[&str] = &[
        "GET /hello?name=TLUG HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n",
        "POST /a%20b/../c HTTP/1.1\r\nhost:[::1]:80\r\nContent-Length:\t12 \r\n\r\n",
        "OPTIONS * HTTP/1.0\r\nA:\r\nB: \t \r\nC: d\te\r\n\r\n",
        "QUERY http://a.example/b?c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nExpect: else\r\nConnection: close\r\n\r\n",
        "GET /a.b/.c HTTP/1.1\r\nHost: a\r\nUser-Agent: sixteen and more; \u{e4}/1.0\r\n\r\n",
    ];

    /// A list of edits: at this position, replace this number of bytes with these bytes.
    fn changes() -> impl Strategy<Value = Vec<(Index, usize, Vec<u8>)>> {
        let telling = b"\r\n\t :,/?.%#\0\x1f\x7f\x80\xffaZ0-_(".to_vec();
        let byte = prop_oneof![5 => select(telling), 1 => any::<u8>()];
        let put =
            prop_oneof![vec(byte, 0..3), select(vec![b"\r\n".to_vec(), b"\r\nA: b".to_vec()])];
        vec((any::<Index>(), 0..3usize, put), 0..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        /// A head must produce the same result however its bytes are split over reads, so the fast
        /// path and the check of single lines must agree about every line.
        #[test]
        fn one_pass_accepts_exactly_the_heads_with_well_formed_lines(
            head in select(HEADS),
            changes in changes(),
            narrow in any::<bool>(),
        ) {
            let mut bytes = head.as_bytes().to_vec();
            for (place, removed, put) in changes {
                let start = place.index(bytes.len() + 1);
                let end = bytes.len().min(start + removed);
                bytes.splice(start..end, put);
            }
            let usual = Limits::default();
            let limits = if narrow { Limits { fields: 3, target: 12, ..usual } } else { usual };
            let mut parser = HeadParser::new();
            let ended = parser.check_lines(&bytes, &limits) == Ok(true);
            let read = one_pass::read(&bytes, &limits);
            assert_eq!(read.is_some(), ended, "{}", bytes.escape_ascii());
            if let Some(Ok(head)) = read {
                assert_eq!(head.raw().len(), parser.scanned as usize + 2);
                assert_eq!(head.fields().count(), usize::from(parser.fields));
            }
        }
    }
}
