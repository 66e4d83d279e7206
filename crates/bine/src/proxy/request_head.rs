//! Writes the head of the request to an origin from the parsed values of the client's request.

use std::fmt::Write as _;
use std::net::IpAddr;

use bine_http::{Framing, KnownField, Method};
use bine_server::{Incoming, ProxyFields};

use super::encoding::append_path;
use super::request_fields::is_passed;
use super::rule::{HostField, ProxyRule};

/// What the head needs besides the request of the client.
#[derive(Clone, Copy)]
pub(super) struct HeadContext<'c> {
    pub(super) rule: &'c ProxyRule,
    /// The value of `Host` that names the origin.
    pub(super) authority: &'c str,
    /// The value of `X-Request-Id`.
    pub(super) id: &'c str,
    /// How the content is delimited.
    pub(super) framing: Framing,
}

/// The protocol that the client asks to switch to, if the proxy passes it on.
pub(super) fn upgrade<'r>(request: &Incoming<'r>) -> Option<&'r str> {
    let head = request.head;
    let is_usual = head.method() == Method::Get && head.framing() == Framing::None;
    let token = head.upgrade().filter(|_| is_usual)?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-./".contains(&byte);
    (!token.is_empty() && token.bytes().all(is_token)).then_some(token)
}

/// Appends the head with its empty line. `path` is the decoded path of the request.
pub(super) fn write_request(
    to: &mut Vec<u8>,
    request: &Incoming<'_>,
    path: &str,
    context: HeadContext<'_>,
) {
    let HeadContext { rule, authority, id, framing } = context;
    let head = request.head;
    to.extend_from_slice(head.method().as_str().as_bytes());
    to.push(b' ');
    let rest = if rule.strips_prefix && rule.path != "/" { &path[rule.path.len()..] } else { path };
    append_path(to, if rest.is_empty() { "/" } else { rest });
    if let Some(query) = head.query() {
        to.push(b'?');
        to.extend_from_slice(query.as_bytes());
    }
    to.extend_from_slice(b" HTTP/1.1\r\n");
    let asked = head.authority().unwrap_or(authority);
    let host = match &rule.host {
        HostField::Keep => asked,
        HostField::Origin => authority,
        HostField::Fixed(host) => host,
    };
    append_line(to, "Host", host.as_bytes());
    match framing {
        Framing::None if head.method().carries_content() => append_line(to, "Content-Length", b"0"),
        Framing::None => {}
        Framing::Length(length) => {
            append_line(to, "Content-Length", length.to_string().as_bytes());
        }
        Framing::Chunked => append_line(to, "Transfer-Encoding", b"chunked"),
    }
    if let Some(protocol) = upgrade(request) {
        append_line(to, "Connection", b"upgrade");
        append_line(to, "Upgrade", protocol.as_bytes());
    }
    append_line(to, "X-Request-Id", id.as_bytes());
    append_forwarded(to, request, rule.fields, asked);
    let listed: Vec<&[u8]> = if head.has(KnownField::Connection) {
        let is_connection = |name: &str| name.eq_ignore_ascii_case("connection");
        head.fields().filter(|(name, _)| is_connection(name)).map(|(_, value)| value).collect()
    } else {
        Vec::new()
    };
    for (name, value) in head.fields().filter(|(name, _)| is_passed(name, &listed)) {
        append_line(to, name, value);
    }
    to.extend_from_slice(b"\r\n");
}

/// Appends the fields that name the client, as this server knows it.
fn append_forwarded(to: &mut Vec<u8>, request: &Incoming<'_>, fields: ProxyFields, host: &str) {
    let scheme = if request.peer.is_secure() { "https" } else { "http" };
    match fields {
        ProxyFields::XForwarded => {
            if let Some(ip) = request.peer.ip() {
                append_line(to, "X-Forwarded-For", ip.to_string().as_bytes());
            }
            append_line(to, "X-Forwarded-Proto", scheme.as_bytes());
            append_line(to, "X-Forwarded-Host", host.as_bytes());
        }
        ProxyFields::Forwarded => {
            let node = match request.peer.ip() {
                Some(IpAddr::V4(ip)) => ip.to_string(),
                Some(IpAddr::V6(ip)) => format!("\"[{ip}]\""),
                None => "unknown".to_owned(),
            };
            let mut value = String::new();
            // Writing into a String cannot fail.
            let _ = write!(value, "for={node};proto={scheme};host=\"{host}\"");
            append_line(to, "Forwarded", value.as_bytes());
        }
    }
}

fn append_line(to: &mut Vec<u8>, name: &str, value: &[u8]) {
    to.extend_from_slice(name.as_bytes());
    to.extend_from_slice(b": ");
    to.extend_from_slice(value);
    to.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use bine_http::{Event, Limits, RequestParser};
    use bine_server::{Body, ClientAddress, Identity};

    use super::*;

    /// The head that a client at `peer` causes by the request with these lines.
    fn written(rule: &str, peer: &str, request: &str) -> String {
        let bytes = format!("{}\r\n\r\n", request.replace('\n', "\r\n"));
        let mut parser = RequestParser::new();
        let Event::Head(head) = parser.receive(bytes.as_bytes(), &Limits::default()).event else {
            panic!("it is no request: {bytes}");
        };
        let incoming = Incoming {
            head,
            body: Body::None,
            peer: ClientAddress::tcp(peer.parse().unwrap()),
            identity: &Identity::Anonymous,
            arrival: 0,
            has_begun: false,
            exchange: head.exchange(),
        };
        let rule = ProxyRule::parse(&format!("to=http://origin:81 {rule}")).unwrap();
        let (authority, id, framing) = ("origin:81", "7", head.framing());
        let mut to = Vec::new();
        let context = HeadContext { rule: &rule, authority, id, framing };
        write_request(&mut to, &incoming, &head.path(), context);
        String::from_utf8(to).unwrap().replace("\r\n", "\n")
    }

    const FORWARDED: &str =
        "X-Forwarded-For: 10.0.0.9\nX-Forwarded-Proto: http\nX-Forwarded-Host: a.example\n";

    #[test]
    fn writes_the_request_anew() {
        let request = "GET /a/../b%20c?q=%41 HTTP/1.1\nHost: a.example\nConnection: close, X-Secret\nX-Secret: 1\nX-Forwarded-For: 1.2.3.4\nX_Forwarded_For: 1.2.3.4\nForwarded: for=1.2.3.4\nX-Request-Id: 8\nProxy: x\nTE: trailers\nAccept:  */* \nCookie: a=b";
        let expected = format!(
            "GET /b%20c?q=%41 HTTP/1.1\nHost: a.example\nX-Request-Id: 7\n{FORWARDED}Accept: */*\nCookie: a=b\n\n"
        );
        assert_eq!(written("", "10.0.0.9:5", request), expected);
    }

    #[test]
    fn frames_content_by_one_field() {
        for (lines, expected) in [
            ("Content-Length: 5", "Content-Length: 5\n"),
            ("Content-Length: 0", "Content-Length: 0\n"),
            ("Accept: a", "Content-Length: 0\n"),
            ("Transfer-Encoding: Chunked", "Transfer-Encoding: chunked\n"),
        ] {
            let request = format!("POST / HTTP/1.1\nHost: a.example\n{lines}");
            let told = written("", "10.0.0.9:5", &request);
            let framing: Vec<_> = told
                .lines()
                .filter(|line| line.contains("Length") || line.contains("Encoding"))
                .collect();
            assert_eq!(framing.join("\n") + "\n", expected, "{lines}");
        }
    }

    #[test]
    fn names_host_and_client_as_the_rule_says() {
        let request = "GET /shop/cart HTTP/1.1\nHost: a.example";
        let rule = "path=/shop strip-prefix=on host=origin fields=forwarded";
        let told = written(rule, "[2001:db8::1]:5", request);
        assert_eq!(
            told,
            "GET /cart HTTP/1.1\nHost: origin:81\nX-Request-Id: 7\nForwarded: for=\"[2001:db8::1]\";proto=http;host=\"a.example\"\n\n"
        );
        let told = written(
            "path=/shop strip-prefix=on host=b:8",
            "10.0.0.9:5",
            "GET /shop HTTP/1.1\nHost: a.example",
        );
        assert!(told.starts_with("GET / HTTP/1.1\nHost: b:8\n"), "{told}");
    }

    #[test]
    fn passes_an_upgrade_on() {
        let request = "GET /ws HTTP/1.1\nHost: a.example\nConnection: keep-alive, Upgrade\nUpgrade: websocket\nSec-WebSocket-Key: k";
        let told = written("", "10.0.0.9:5", request);
        assert!(told.contains("\nConnection: upgrade\nUpgrade: websocket\n"), "{told}");
        assert!(told.contains("\nSec-WebSocket-Key: k\n"));
        let post = "POST / HTTP/1.1\nHost: a.example\nContent-Length: 1\nConnection: upgrade\nUpgrade: h2c";
        assert!(!written("", "10.0.0.9:5", post).to_lowercase().contains("upgrade"));
    }
}
