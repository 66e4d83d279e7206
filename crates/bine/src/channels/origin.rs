//! Decides which pages of other sites may reach channels, and what their browsers are told (the CORS protocol of
//! <https://fetch.spec.whatwg.org/>).

use std::sync::Arc;

use bine_http::{Exchange, Head, Method, Reply, Status};
use bine_server::{Answer, Clock, Finished, Outgoing};

/// Fields that a page of another site may send, beyond those that any may.
const SENT: &str = "Access-Control-Allow-Methods: GET, HEAD, QUERY, POST, PUT, PATCH, DELETE\r\n\
    Access-Control-Allow-Headers: Authorization, Content-Type, If-None-Match, Last-Event-ID, Prefer, Producer-Id, \
    Producer-Epoch, Producer-Seq, Stream-Closed, Stream-Durability, Stream-Expires-At, Stream-Fork-Offset, \
    Stream-Fork-Sub-Offset, Stream-Forked-From, Stream-Retention, Stream-Seq, Stream-TTL, Stream-TTL-Of\r\n\
    Access-Control-Max-Age: 7200\r\n";
/// Fields of ours that it may read.
const READ: &str = "Access-Control-Allow-Credentials: true\r\n\
    Access-Control-Expose-Headers: Cursor, Cursor-Lost, ETag, Location, Producer-Epoch, Producer-Expected-Seq, \
    Producer-Received-Seq, Producer-Seq, Retry-After, Session, Stream-Closed, Stream-Cursor, Stream-Expires-At, \
    Stream-Next-Offset, Stream-TTL, Stream-Up-To-Date, WWW-Authenticate\r\n";
/// A head that varies by more says so itself.
const VARY: &str = "Vary: Origin\r\n";

/// An origin as browsers write it (RFC 6454 section 6.2): scheme, host, and the port if it is not the usual one.
///
/// # Errors
///
/// It is none, and how it should look.
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

/// The one of these origins that a request comes from.
pub(super) fn among(origins: &[Arc<str>], head: &Head<'_>) -> Option<Arc<str>> {
    let own = head.field_text("Origin").filter(|_| !origins.is_empty())?;
    origins.iter().find(|origin| ***origin == *own).cloned()
}

/// Answers a browser that asks whether a page of this origin may send what it wants to.
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
    tell(out, begin, origin);
    Some(Answer::Written { close: false })
}

/// Puts into the head that was written at `begin` that a page of this origin may read the reply.
pub(super) fn tell(out: &mut Vec<u8>, begin: usize, origin: &str) {
    let Some(line) = out[begin..].windows(2).position(|two| two == b"\r\n") else { return };
    let place = begin + line + 2;
    let head = &out[begin..];
    let end = head.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(head.len());
    let varies = head[..end].windows(8).any(|eight| eight == b"\r\nVary: ");
    let vary = if varies { "" } else { VARY };
    let fields = format!("Access-Control-Allow-Origin: {origin}\r\n{READ}{vary}");
    out.splice(place..place, fields.bytes());
}

/// The same for an answer, whose head may be still to come; that of one that is held is told by its
/// [watch](super::watch::Watch).
pub(super) fn told(
    answer: Answer,
    out: &mut Outgoing<'_>,
    begin: usize,
    origin: Arc<str>,
) -> Answer {
    match answer {
        Answer::Written { close } => {
            tell(out.buffer, begin, &origin);
            Answer::Written { close }
        }
        Answer::Later(later) => Answer::Later(Box::pin(async move {
            let Finished { mut bytes, follow, close } = later.await;
            tell(&mut bytes, 0, &origin);
            Finished { bytes, follow, close }
        })),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_perhaps_a_port() {
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
    fn what_a_reply_varies_by_is_said_once() {
        for (head, varies) in [
            ("Vary: Origin, Cookie\r\n\r\n", "Vary: Origin, Cookie\r\n"),
            ("\r\n\r\nVary: x", "Vary: Origin\r\n"),
        ] {
            let mut out = format!("HTTP/1.1 200 OK\r\n{head}").into_bytes();
            tell(&mut out, 0, "https://a");
            let out = String::from_utf8(out).unwrap();
            let (head, _) = out.split_once("\r\n\r\n").unwrap();
            assert!(head.matches("Vary").count() == 1 && out.contains(varies), "{out}");
        }
    }

    #[test]
    fn fields_come_behind_the_first_line_of_the_head_they_are_for() {
        let mut out = b"before\r\nHTTP/1.1 204 No Content\r\nCursor: 1\r\n\r\n".to_vec();
        tell(&mut out, 8, "https://a");
        let out = String::from_utf8(out).unwrap();
        let begin =
            "before\r\nHTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: https://a\r\n";
        assert!(
            out.starts_with(begin) && out.ends_with("Vary: Origin\r\nCursor: 1\r\n\r\n"),
            "{out}"
        );
    }
}
