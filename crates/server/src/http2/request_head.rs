//! Writes the request of a stream as the head of a request of HTTP/1.1.
//!
//! The fields have been parsed, so no byte of a client becomes the end of a line. What they mean is
//! still to be checked, by the parser of HTTP/1.1 as for every request.

use h2::ext::Protocol;
use http::header::{CONNECTION, CONTENT_LENGTH, COOKIE, HOST, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderName, Method, request};

/// How a request continues after its head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RequestBody {
    /// It has no content.
    Empty,
    /// Content whose length the head has.
    Sized,
    /// Content in chunks.
    Chunked,
    /// The bytes of another protocol (RFC 8441).
    Tunnel,
}

/// A request that cannot be written, with the status of the response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RefusedRequest(pub(super) u16);

/// Any nonce: RFC 8441 has no key, and the client checks no hash of it.
const WEBSOCKET_KEY: &[u8] = b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";

/// The head of `parts` in HTTP/1.1, and what follows it. `has_body`: the stream goes on after its
/// fields.
///
/// # Errors
///
/// The request has no meaning in HTTP/1.1, or names two hosts.
pub(super) fn request_head(
    parts: &request::Parts,
    has_body: bool,
) -> Result<(Vec<u8>, RequestBody), RefusedRequest> {
    let protocol = parts.extensions.get::<Protocol>();
    let is_tunnel = protocol.is_some_and(|protocol| protocol.as_str() == "websocket");
    if protocol.is_some() && !is_tunnel {
        // RFC 9220 section 3: an unknown protocol is answered by 501.
        return Err(RefusedRequest(501));
    }
    let mut head = Vec::with_capacity(512);
    let method = if is_tunnel { Method::GET.as_str() } else { parts.method.as_str() };
    head.extend_from_slice(method.as_bytes());
    head.push(b' ');
    if parts.method == Method::CONNECT && !is_tunnel {
        let authority = parts.uri.authority().ok_or(RefusedRequest(400))?;
        head.extend_from_slice(authority.as_str().as_bytes());
    } else {
        let target = parts.uri.path_and_query().ok_or(RefusedRequest(400))?;
        head.extend_from_slice(target.as_str().as_bytes());
    }
    head.extend_from_slice(b" HTTP/1.1\r\n");
    write_host(parts, &mut head)?;
    write_fields(parts, is_tunnel, &mut head);
    let body = if is_tunnel {
        head.extend_from_slice(b"connection: upgrade\r\nupgrade: websocket\r\n");
        head.extend_from_slice(WEBSOCKET_KEY);
        RequestBody::Tunnel
    } else if parts.headers.contains_key(CONTENT_LENGTH) {
        RequestBody::Sized
    } else if has_body {
        head.extend_from_slice(b"transfer-encoding: chunked\r\n");
        RequestBody::Chunked
    } else {
        RequestBody::Empty
    };
    head.extend_from_slice(b"\r\n");
    Ok((head, body))
}

/// The host is `:authority`; a field `Host` besides must be equal (RFC 9113, section 8.3.1).
fn write_host(parts: &request::Parts, head: &mut Vec<u8>) -> Result<(), RefusedRequest> {
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    let mut named = parts.headers.get_all(HOST).iter().map(http::HeaderValue::as_bytes);
    let field = named.next();
    let is_doubled = named.next().is_some();
    let differs =
        matches!((authority, field), (Some(one), Some(other)) if !one.eq_ignore_ascii_case(other));
    if is_doubled || differs {
        return Err(RefusedRequest(400));
    }
    if let Some(host) = authority.or(field) {
        write_field(HOST.as_str(), host, head);
    }
    Ok(())
}

fn write_fields(parts: &request::Parts, is_tunnel: bool, head: &mut Vec<u8>) {
    for (name, value) in &parts.headers {
        if *name != HOST && *name != COOKIE && !is_of_connection(name, is_tunnel) {
            write_field(name.as_str(), value.as_bytes(), head);
        }
    }
    // A client may split its cookies into several fields (RFC 9113, section 8.2.3).
    let mut cookies = parts.headers.get_all(COOKIE).iter();
    if let Some(first) = cookies.next() {
        head.extend_from_slice(b"cookie: ");
        head.extend_from_slice(first.as_bytes());
        for cookie in cookies {
            head.extend_from_slice(b"; ");
            head.extend_from_slice(cookie.as_bytes());
        }
        head.extend_from_slice(b"\r\n");
    }
}

/// Whether a field belongs to a connection of HTTP/1.1, and has no place in HTTP/2 (RFC 9113, section
/// 8.2.2). `h2` refuses them, too; here none can pass if it changes.
fn is_of_connection(name: &HeaderName, is_tunnel: bool) -> bool {
    let is_dropped_in_tunnel = || *name == "sec-websocket-key" || *name == CONTENT_LENGTH;
    [CONNECTION, TE, TRANSFER_ENCODING, UPGRADE].contains(name)
        || *name == "keep-alive"
        || *name == "proxy-connection"
        || *name == "http2-settings"
        || (is_tunnel && is_dropped_in_tunnel())
}

fn write_field(name: &str, value: &[u8], head: &mut Vec<u8>) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn parts(method: &str, uri: &str, fields: &[(&str, &str)]) -> request::Parts {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[track_caller]
    fn check(parts: &request::Parts, has_body: bool, head: &str, body: RequestBody) {
        let (written, kind) = request_head(parts, has_body).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), head.replace('\n', "\r\n"));
        assert_eq!(kind, body);
    }

    #[test]
    fn writes_method_target_host_and_fields() {
        check(
            &parts("GET", "https://example.com/a?b=c", &[("accept", "*/*")]),
            false,
            "GET /a?b=c HTTP/1.1\nhost: example.com\naccept: */*\n\n",
            RequestBody::Empty,
        );
        check(
            &parts("POST", "https://a/", &[("content-length", "3")]),
            true,
            "POST / HTTP/1.1\nhost: a\ncontent-length: 3\n\n",
            RequestBody::Sized,
        );
        check(
            &parts("POST", "https://a/", &[]),
            true,
            "POST / HTTP/1.1\nhost: a\ntransfer-encoding: chunked\n\n",
            RequestBody::Chunked,
        );
        check(
            &parts("GET", "/", &[("host", "b")]),
            false,
            "GET / HTTP/1.1\nhost: b\n\n",
            RequestBody::Empty,
        );
    }

    #[test]
    fn joins_cookies() {
        check(
            &parts("GET", "https://a/", &[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2")]),
            false,
            "GET / HTTP/1.1\nhost: a\nx: y\ncookie: a=1; b=2\n\n",
            RequestBody::Empty,
        );
    }

    #[test]
    fn drops_fields_of_a_connection() {
        let fields = [
            ("connection", "close"),
            ("keep-alive", "5"),
            ("proxy-connection", "close"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMAAABkAAQAAP__"),
        ];
        check(
            &parts("GET", "https://a/", &fields),
            false,
            "GET / HTTP/1.1\nhost: a\n\n",
            RequestBody::Empty,
        );
    }

    #[test]
    fn refuses_two_hosts() {
        let differ = parts("GET", "https://a/", &[("host", "b")]);
        assert_eq!(request_head(&differ, false), Err(RefusedRequest(400)));
        let two = parts("GET", "/", &[("host", "a"), ("host", "a")]);
        assert_eq!(request_head(&two, false), Err(RefusedRequest(400)));
        let equal = parts("GET", "https://a/", &[("host", "A")]);
        assert!(request_head(&equal, false).is_ok());
    }

    #[test]
    fn writes_a_tunnel_as_an_upgrade() {
        let mut connect = parts("CONNECT", "https://a/chat", &[("sec-websocket-version", "13")]);
        connect.extensions.insert(Protocol::from_static("websocket"));
        check(
            &connect,
            true,
            "GET /chat HTTP/1.1\nhost: a\nsec-websocket-version: 13\nconnection: upgrade\n\
             upgrade: websocket\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\n\n",
            RequestBody::Tunnel,
        );
        connect.extensions.insert(Protocol::from_static("connect-udp"));
        assert_eq!(request_head(&connect, true), Err(RefusedRequest(501)));
    }

    #[test]
    fn writes_connect_with_its_authority() {
        check(
            &parts("CONNECT", "a:443", &[]),
            false,
            "CONNECT a:443 HTTP/1.1\nhost: a:443\n\n",
            RequestBody::Empty,
        );
    }
}
