//! The request that a connection answers, as the log names it when a stop takes too long.

use std::fmt;
use std::time::Duration;

use crate::time::Tick;

/// The maximum length of a stored method and path, in bytes.
const MAX_LENGTH: usize = 128;

/// Method and path of a request whose response takes more than one turn. The buffer is kept for the
/// next request.
#[derive(Default)]
pub(crate) struct AnsweredRequest {
    line: Vec<u8>,
    began: Tick,
}

impl AnsweredRequest {
    /// Stores method and path of the request with this head, without its query.
    pub(crate) fn note(&mut self, head: &[u8], now: Tick) {
        self.line.clear();
        self.line.extend_from_slice(method_and_path(head));
        self.began = now;
    }

    pub(crate) fn clear(&mut self) {
        self.line.clear();
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// How long the server has worked on the response.
    pub(crate) fn elapsed(&self, now: Tick) -> Duration {
        if self.is_empty() { Duration::ZERO } else { now.elapsed_since(self.began) }
    }
}

impl fmt::Display for AnsweredRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("a request");
        }
        write!(f, "{}", self.line.escape_ascii())?;
        f.write_str(if self.line.len() == MAX_LENGTH { ".." } else { "" })
    }
}

/// Method and path at the start of a request head, cut to [`MAX_LENGTH`] bytes.
fn method_and_path(head: &[u8]) -> &[u8] {
    let head = &head[..head.len().min(MAX_LENGTH)];
    let target = head.iter().position(|byte| *byte == b' ').map_or(head.len(), |end| end + 1);
    let is_end = |byte: &u8| matches!(byte, b' ' | b'?' | b'\r' | b'\n');
    let length = head[target..].iter().position(is_end).unwrap_or(head.len() - target);
    &head[..target + length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &str, expected: &str) {
        let mut request = AnsweredRequest::default();
        request.note(b"POST /earlier HTTP/1.1\r\n", Tick::at(1));
        request.note(head.as_bytes(), Tick::at(1000));
        assert_eq!(request.to_string(), expected);
        assert_eq!(request.elapsed(Tick::at(3500)), Duration::from_millis(2500));
    }

    #[test]
    fn names_method_and_path_without_query() {
        check("GET /a/b?token=secret HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a/b");
        check("DELETE / HTTP/1.0\r\n", "DELETE /");
        check("GET /\u{1b}[2J HTTP/1.1\r\n", "GET /\\x1b[2J");
        let long = "x".repeat(200);
        check(&format!("GET /{long} HTTP/1.1\r\n"), &format!("GET /{}..", &long[..123]));
    }

    #[test]
    fn has_no_name_without_a_request() {
        let mut request = AnsweredRequest::default();
        request.note(b"GET / HTTP/1.1\r\n", Tick::at(1));
        request.clear();
        assert_eq!(request.to_string(), "a request");
        assert_eq!(request.elapsed(Tick::at(9)), Duration::ZERO);
    }
}
