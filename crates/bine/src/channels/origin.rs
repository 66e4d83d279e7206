//! Cross-origin access: the sites whose pages may use channels (the CORS protocol of
//! <https://fetch.spec.whatwg.org/>).

use std::sync::Arc;

use bine_http::{Exchange, Head, Method, Reply, Status};
use bine_server::{Answer, Clock, Finished, Outgoing};

/// Methods and fields that a page of an allowed origin may send beyond the safelisted ones.
const SENT: &str = "Access-Control-Allow-Methods: GET, HEAD, QUERY, POST, PUT, PATCH, DELETE\r\n\
    Access-Control-Allow-Headers: Authorization, Content-Type, If-None-Match, Last-Event-ID, Prefer, Producer-Id, \
    Producer-Epoch, Producer-Seq, Stream-Closed, Stream-Durability, Stream-Expires-At, Stream-Fork-Offset, \
    Stream-Fork-Sub-Offset, Stream-Forked-From, Stream-Retention, Stream-Seq, Stream-TTL, Stream-TTL-Of\r\n\
    Access-Control-Max-Age: 7200\r\n";
/// Response fields that a page of an allowed origin may read.
const READ: &str = "Access-Control-Allow-Credentials: true\r\n\
    Access-Control-Expose-Headers: Cursor, Cursor-Lost, ETag, Location, Producer-Epoch, Producer-Expected-Seq, \
    Producer-Received-Seq, Producer-Seq, Retry-After, Session, Stream-Closed, Stream-Cursor, Stream-Expires-At, \
    Stream-Next-Offset, Stream-TTL, Stream-Up-To-Date, WWW-Authenticate\r\n";
/// Added unless the head already has a `Vary` field.
const VARY: &str = "Vary: Origin\r\n";

/// Parses an origin as browsers write it (RFC 6454 section 6.2): a scheme, a host, and the port
/// unless it is the default one.
///
/// # Errors
///
/// The text is not an origin; the error shows the expected form.
pub(crate) fn origin(text: &str) -> Result<Arc<str>, String> {
    let is_right = |(scheme, host): (&str, &str)| {
        let is_named = !host.is_empty() && !host.starts_with(':');
        let has = |wrong: char| "/?#@ *".contains(wrong) || wrong.is_control();
        matches!(scheme, "http" | "https") && is_named && !host.contains(has)
    };
    let lower = text.to_ascii_lowercase();
    let usual = lower.strip_suffix(if lower.starts_with("https:") { ":443" } else { ":80" });
    let own = usual.unwrap_or(&lower);
    if own.is_ascii() && own.split_once("://").is_some_and(is_right) {
        return Ok(own.into());
    }
    Err(format!("`{text}` is no origin: write it like https://example.org, without a path"))
}

/// Returns the allowed origin that a request has in its `Origin` field.
pub(super) fn among(origins: &[Arc<str>], head: &Head<'_>) -> Option<Arc<str>> {
    let own = head.field_text("Origin").filter(|_| !origins.is_empty())?;
    origins.iter().find(|origin| ***origin == *own).cloned()
}

/// Answers a preflight request.
pub(super) fn preflight(
    head: &Head<'_>,
    origin: &str,
    exchange: Exchange,
    clock: &Clock,
    out: &mut Vec<u8>,
) -> Option<Answer> {
    if head.method() != Method::Options || head.field("Access-Control-Request-Method").is_none() {
        return None;
    }
    let begin = out.len();
    let mut reply = Reply::begin(out, exchange, Status::NO_CONTENT, &clock.date());
    reply.static_lines(SENT);
    reply.empty();
    put_fields(out, begin, origin);
    Some(Answer::Written { close: false })
}

/// Adds the CORS fields to the head that starts at `begin`.
pub(super) fn put_fields(out: &mut Vec<u8>, begin: usize, origin: &str) {
    let Some(line) = out[begin..].windows(2).position(|two| two == b"\r\n") else { return };
    let place = begin + line + 2;
    let head = &out[begin..];
    let end = head.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(head.len());
    let varies = head[..end].windows(8).any(|eight| eight == b"\r\nVary: ");
    let vary = if varies { "" } else { VARY };
    let fields = format!("Access-Control-Allow-Origin: {origin}\r\n{READ}{vary}");
    out.splice(place..place, fields.bytes());
}

/// Adds the CORS fields to an answer whose head may not be written yet. A held response gets
/// them from its [subscription](super::subscription::SubscriptionSpec).
pub(super) fn with_fields(
    answer: Answer,
    out: &mut Outgoing<'_>,
    begin: usize,
    origin: Arc<str>,
) -> Answer {
    match answer {
        Answer::Written { close } => {
            put_fields(out.buffer, begin, &origin);
            Answer::Written { close }
        }
        Answer::Later(later) => Answer::Later(Box::pin(async move {
            let Finished { mut bytes, follow, close } = later.await;
            put_fields(&mut bytes, 0, &origin);
            Finished { bytes, follow, close }
        })),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_scheme_host_and_optional_port() {
        for (text, own) in [
            ("https://example.org", "https://example.org"),
            ("HTTPS://Example.org:443", "https://example.org"),
            ("http://example.org:80", "http://example.org"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://[::1]:3000", "http://[::1]:3000"),
        ] {
            assert_eq!(origin(text).as_deref(), Ok(own));
        }
        for wrong in [
            "*",
            "null",
            "",
            "example.org",
            "https://",
            "https://a/",
            "https://a?b",
            "ftp://a",
            "https://a b",
            "https://*.a",
            "https://u@a",
            "https://:80",
        ] {
            let told = origin(wrong).unwrap_err();
            assert!(told.starts_with(&format!("`{wrong}` is no origin")), "{told}");
        }
    }

    #[test]
    fn writes_one_vary_field() {
        for (head, varies) in [
            ("Vary: Origin, Cookie\r\n\r\n", "Vary: Origin, Cookie\r\n"),
            ("\r\n\r\nVary: x", "Vary: Origin\r\n"),
        ] {
            let mut out = format!("HTTP/1.1 200 OK\r\n{head}").into_bytes();
            put_fields(&mut out, 0, "https://a");
            let out = String::from_utf8(out).unwrap();
            let (head, _) = out.split_once("\r\n\r\n").unwrap();
            assert!(head.matches("Vary").count() == 1 && out.contains(varies), "{out}");
        }
    }

    #[test]
    fn inserts_fields_after_the_status_line() {
        let mut out = b"before\r\nHTTP/1.1 204 No Content\r\nCursor: 1\r\n\r\n".to_vec();
        put_fields(&mut out, 8, "https://a");
        let out = String::from_utf8(out).unwrap();
        let begin =
            "before\r\nHTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: https://a\r\n";
        assert!(
            out.starts_with(begin) && out.ends_with("Vary: Origin\r\nCursor: 1\r\n\r\n"),
            "{out}"
        );
    }
}
