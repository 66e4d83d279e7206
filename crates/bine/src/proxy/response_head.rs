//! Writes the head of the response to the client from the parsed head of the origin's response.

use bine_http::{
    BodyFraming, Date, Exchange, Reply, ResponseFraming, ResponseHead, SecurityHeaders, Status,
};

/// Fields of one connection, and those that this server writes itself.
const NEVER: [&str; 11] = [
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-request-id",
];

/// What the head needs besides the response of the origin.
#[derive(Clone, Copy)]
pub(super) struct ReplyContext<'c> {
    /// The properties of the request, with the security headers that this server sends.
    pub(super) exchange: Exchange,
    pub(super) date: &'c Date,
    pub(super) id: &'c str,
    /// The value of a cookie to set.
    pub(super) cookie: Option<&'c str>,
    /// The protocol that the client has asked to switch to.
    pub(super) upgrade: Option<&'c str>,
}

/// How the response continues after the head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Continuation {
    /// Content with this framing.
    Content(BodyFraming),
    /// The connection belongs to another protocol.
    Upgraded,
    /// The origin switches to a protocol that nobody asked for.
    Unasked,
}

/// Appends the head with its empty line.
pub(super) fn write_reply(
    to: &mut Vec<u8>,
    head: &ResponseHead<'_>,
    context: ReplyContext<'_>,
) -> Continuation {
    let ReplyContext { exchange, date, id, cookie, upgrade } = context;
    let status = head.status();
    let is_upgrade = status == Status::SWITCHING_PROTOCOLS;
    if is_upgrade {
        let is_asked = |own: &str| {
            let given = head.field("upgrade").unwrap_or_default();
            given.eq_ignore_ascii_case(own.as_bytes())
        };
        let Some(protocol) = upgrade.filter(|own| is_asked(own)) else {
            return Continuation::Unasked;
        };
        let mut reply = Reply::begin(to, exchange, status, date);
        reply.static_lines("Connection: upgrade\r\n");
        // The parser has checked that it is a value of a field.
        let _ = reply.field("Upgrade", protocol);
        append_fields(&mut reply, head, exchange);
        reply.empty();
        return Continuation::Upgraded;
    }
    let mut reply = Reply::begin(to, exchange, status, date);
    append_fields(&mut reply, head, exchange);
    // Both values consist of letters that a field may have.
    let _ = reply.field("X-Request-Id", id);
    if let Some(cookie) = cookie {
        let _ = reply.field("Set-Cookie", cookie);
    }
    match (head.framing(), head.content_length()) {
        (ResponseFraming::Length(length), _) => {
            reply.content_length(length);
            Continuation::Content(BodyFraming::Preframed)
        }
        // The response to HEAD has the length that GET would have.
        (ResponseFraming::None, Some(length)) => {
            reply.content_length(length);
            Continuation::Content(BodyFraming::Empty)
        }
        (ResponseFraming::None, None) if status.forbids_content() => {
            reply.empty();
            Continuation::Content(BodyFraming::Empty)
        }
        (ResponseFraming::None, None) => {
            reply.unknown_length();
            Continuation::Content(BodyFraming::Empty)
        }
        (ResponseFraming::Chunked | ResponseFraming::UntilClose, _) => {
            Continuation::Content(reply.stream())
        }
    }
}

/// Appends the fields of the origin that concern the client.
fn append_fields(reply: &mut Reply<'_>, head: &ResponseHead<'_>, exchange: Exchange) {
    let is = |name: &str, other: &str| name.eq_ignore_ascii_case(other);
    let listed: Vec<&[u8]> =
        head.fields().filter(|(name, _)| is(name, "connection")).map(|(_, value)| value).collect();
    let is_replaced = |name: &str| {
        let security = exchange.security;
        security.has(SecurityHeaders::NOSNIFF) && is(name, "x-content-type-options")
            || is_framed(security) && is(name, "x-frame-options")
            || exchange.hsts > 0 && is(name, "strict-transport-security")
    };
    let is_listed = |name: &str| {
        listed.iter().any(|value| {
            let mut options = value.split(|byte| *byte == b',');
            options.any(|option| option.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
        })
    };
    for (name, value) in head.fields() {
        let is_dropped = NEVER.iter().any(|never| is(name, never));
        if !is_dropped && !is_replaced(name) && !is_listed(name) {
            // The parser has checked the field by the same rules.
            let _ = reply.field_bytes(name, value);
        }
    }
}

/// Whether this server decides which pages may embed its responses.
fn is_framed(security: SecurityHeaders) -> bool {
    security.has(SecurityHeaders::SAME_ORIGIN_FRAMES) || security.has(SecurityHeaders::NO_FRAMES)
}

#[cfg(test)]
mod tests {
    use bine_http::{Limits, Method, ResponseEvent, ResponseParser, Version};

    use super::*;

    fn written(
        security: SecurityHeaders,
        response: &str,
        upgrade: Option<&str>,
    ) -> (String, Continuation) {
        let exchange = Exchange {
            method: Method::Get,
            version: Version::Http11,
            keep_alive: true,
            security,
            hsts: 0,
        };
        let bytes = format!("{}\r\n\r\n", response.replace('\n', "\r\n"));
        let mut parser = ResponseParser::new(false);
        let event = parser.receive(bytes.as_bytes(), &Limits::default()).event;
        let ResponseEvent::Head(head) = event else { panic!("{event:?}") };
        let (mut to, date) = (Vec::new(), Date::at(0));
        let context = ReplyContext { exchange, date: &date, id: "7", cookie: None, upgrade };
        let continuation = write_reply(&mut to, &head, context);
        let text = String::from_utf8(to).unwrap().replace("\r\n", "\n");
        (text.replace("Date: Thu, 01 Jan 1970 00:00:00 GMT\n", ""), continuation)
    }

    #[test]
    fn passes_end_to_end_fields_and_frames_anew() {
        let response = "HTTP/1.1 200 Fine\nServer: x\nDate: y\nConnection: X-Hop\nX-Hop: 1\nKeep-Alive: 5\nX-Request-Id: 9\nTransfer-Encoding: chunked\nSet-Cookie: a=b\nSet-Cookie: c=d";
        let (text, continuation) = written(SecurityHeaders::NONE, response, None);
        assert_eq!(
            text,
            "HTTP/1.1 200 OK\nServer: x\nSet-Cookie: a=b\nSet-Cookie: c=d\nX-Request-Id: 7\nTransfer-Encoding: chunked\n\n"
        );
        assert_eq!(continuation, Continuation::Content(BodyFraming::Chunked));
        let (text, continuation) =
            written(SecurityHeaders::NONE, "HTTP/1.0 404 No\nContent-Length: 3", None);
        assert_eq!(text, "HTTP/1.1 404 Not Found\nX-Request-Id: 7\nContent-Length: 3\n\n");
        assert_eq!(continuation, Continuation::Content(BodyFraming::Preframed));
    }

    #[test]
    fn replaces_the_security_headers_of_the_origin() {
        let response = "HTTP/1.1 200 OK\nX-Content-Type-Options: none\nX-Frame-Options: ALLOW\nContent-Length: 0";
        let (text, _) = written(SecurityHeaders::NOSNIFF, response, None);
        assert!(text.contains("X-Content-Type-Options: nosniff\n"), "{text}");
        assert!(!text.contains("none") && text.contains("ALLOW"), "{text}");
        let (text, _) = written(SecurityHeaders::NONE, response, None);
        assert!(text.contains("X-Content-Type-Options: none\n"), "{text}");
    }

    #[test]
    fn switches_only_to_the_protocol_that_was_asked_for() {
        let response =
            "HTTP/1.1 101 Go\nConnection: upgrade\nUpgrade: WebSocket\nSec-WebSocket-Accept: x";
        let (text, continuation) = written(SecurityHeaders::NONE, response, Some("websocket"));
        assert_eq!(continuation, Continuation::Upgraded);
        assert_eq!(
            text,
            "HTTP/1.1 101 Switching Protocols\nConnection: upgrade\nUpgrade: websocket\nSec-WebSocket-Accept: x\n\n"
        );
        let unasked = written(SecurityHeaders::NONE, response, None);
        assert_eq!(unasked, (String::new(), Continuation::Unasked));
        assert_eq!(written(SecurityHeaders::NONE, response, Some("h2c")).1, Continuation::Unasked);
    }
}
