//! A request of any kind to any server, as scripts send it with `fetch`.

use std::fmt::Write as _;
use std::time::Duration;

use super::address::{Address, is_path};
use super::call::RemoteRequest;
use super::error::Error;

/// A request. It follows no redirect, and shares its connections with the calls of services.
#[derive(Clone, Debug)]
pub(crate) struct HttpRequest {
    /// The server: `https://name`, with a port if it is not the default.
    pub(crate) origin: String,
    /// The method, such as `GET`.
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// The fields, except for those that describe the connection and the length.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
    /// The time until the whole response is there.
    pub(crate) timeout: Duration,
    /// Bytes of the response's body.
    pub(crate) max_response: usize,
}

/// A response, whatever its status is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    /// All fields, as they were sent.
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

/// Time for the connection and the TLS handshake, within the time for the response.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Fields of a request.
const MAX_FIELDS: usize = 100;
/// Bytes of a request's head.
const MAX_HEAD: usize = 64 << 10;
/// Fields that this client writes itself: a different value would change where the request ends.
const OWN_FIELDS: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Methods that change the meaning of the connection or return the request to a script.
const REFUSED_METHODS: [&str; 3] = ["CONNECT", "TRACE", "TRACK"];
/// Methods that may be sent again after a lost connection (RFC 9110 section 9.2.1).
const SAFE_METHODS: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

impl HttpRequest {
    /// Sends the request and waits for the whole response.
    ///
    /// # Errors
    ///
    /// [`Error::Misused`] if a part of the request is invalid, so that it was not sent.
    pub(crate) async fn send(self) -> Result<HttpResponse, Error> {
        let request = self.prepare().map_err(Error::Misused)?;
        let (head, body) = request.response().await?;
        // Without TLS, the crash of a server looks like the end of such a body. Browsers accept it.
        Ok(HttpResponse { status: head.status, fields: head.fields, body })
    }

    fn prepare(self) -> Result<RemoteRequest, String> {
        let address = Address::parse(&self.origin)?;
        let head = self.head(&address)?;
        Ok(RemoteRequest {
            address,
            roots: None,
            head,
            is_head: self.method == "HEAD",
            is_safe: SAFE_METHODS.contains(&&*self.method),
            body: self.body.unwrap_or_default(),
            connect_timeout: CONNECT_TIMEOUT.min(self.timeout),
            timeout: self.timeout,
            max_answer: self.max_response,
        })
    }

    /// The head of the request with its empty line.
    fn head(&self, address: &Address) -> Result<String, String> {
        let Self { method, target, fields, body, .. } = self;
        if !is_token(method) || REFUSED_METHODS.contains(&&*method.to_ascii_uppercase()) {
            return Err(format!("`{}` is no method that can be sent", method.escape_debug()));
        }
        if !address.base.is_empty() || !target.starts_with('/') || !is_path(target) {
            return Err(format!("`{}` is no path", target.escape_debug()));
        }
        if fields.len() > MAX_FIELDS {
            return Err(format!("more than {MAX_FIELDS} headers"));
        }
        let host = address.authority();
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n");
        let has = |name: &str| fields.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        for (name, value) in [
            ("Accept", "*/*"),
            // The client does not decompress.
            ("Accept-Encoding", "identity"),
            ("User-Agent", concat!("bine/", env!("CARGO_PKG_VERSION"))),
        ] {
            if !has(name) {
                // A `String` takes any text.
                let _ = write!(head, "{name}: {value}\r\n");
            }
        }
        let length = body.as_ref().map(Vec::len);
        let has_meaning = ["POST", "PUT", "PATCH"].contains(&&**method);
        if let Some(length) = length.or(has_meaning.then_some(0)) {
            let _ = write!(head, "Content-Length: {length}\r\n");
        }
        for (name, value) in fields {
            check_field(name, value)?;
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        if head.len() > MAX_HEAD {
            return Err(format!("the URL and the headers have more than {MAX_HEAD} bytes"));
        }
        Ok(head)
    }
}

fn check_field(name: &str, value: &str) -> Result<(), String> {
    let shown = name.escape_debug();
    if !is_token(name) {
        return Err(format!("`{shown}` is no name of a header"));
    }
    if OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err(format!("the header `{shown}` is written by the server itself: leave it out"));
    }
    if !value.bytes().all(|byte| byte == b'\t' || byte == b' ' || byte.is_ascii_graphic()) {
        return Err(format!(
            "the header `{shown}` has a line break or a character beyond ASCII: encode it"
        ));
    }
    Ok(())
}

/// Whether it is a name of a method or a field (RFC 9110 section 5.6.2).
fn is_token(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_sign)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn request(method: &str, target: &str, fields: &[(&str, &str)]) -> HttpRequest {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        HttpRequest {
            origin: "http://other:8080".to_owned(),
            method: method.to_owned(),
            target: target.to_owned(),
            fields: fields.iter().map(own).collect(),
            body: None,
            timeout: Duration::from_secs(1),
            max_response: 1 << 20,
        }
    }

    fn head(request: HttpRequest) -> Result<String, String> {
        request.prepare().map(|prepared| prepared.head)
    }

    #[test]
    fn writes_defaults_that_the_request_does_not_have() {
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            head(request("GET", "/a?b", &[("accept", "text/plain"), ("x-one", "1 \t2")])).unwrap(),
            format!(
                "GET /a?b HTTP/1.1\r\nHost: other:8080\r\nAccept-Encoding: identity\r\n\
                 User-Agent: bine/{version}\r\naccept: text/plain\r\nx-one: 1 \t2\r\n\r\n"
            )
        );
        let post = HttpRequest { body: Some(b"abc".to_vec()), ..request("DELETE", "/", &[]) };
        assert!(head(post).unwrap().contains("\r\nContent-Length: 3\r\n"));
        assert!(head(request("POST", "/", &[])).unwrap().contains("\r\nContent-Length: 0\r\n"));
        assert!(!head(request("GET", "/", &[])).unwrap().contains("Content-Length"));
    }

    #[test]
    fn rejects_parts_that_would_change_the_framing() {
        let check = |request: HttpRequest, part: &str| {
            let told = head(request).unwrap_err();
            assert!(told.contains(part), "{told}");
        };
        check(request("G T", "/", &[]), "no method");
        check(request("trace", "/", &[]), "no method");
        check(request("GET", "/a b", &[]), "no path");
        check(request("GET", "a", &[]), "no path");
        check(request("GET", "/\r\n", &[]), "no path");
        check(request("GET", "/", &[("a b", "")]), "no name of a header");
        check(request("GET", "/", &[("", "")]), "no name of a header");
        check(request("GET", "/", &[("a", "1\r\nb: 2")]), "line break");
        check(request("GET", "/", &[("a", "\u{e9}")]), "beyond ASCII");
        for name in ["Host", "Content-Length", "transfer-encoding", "Connection"] {
            check(request("GET", "/", &[(name, "1")]), "written by the server itself");
        }
        check(request("GET", "/", &[("a", "1"); 101]), "more than 100 headers");
        check(request("GET", &"/a".repeat(40_000), &[]), "more than 65536 bytes");
        let other = HttpRequest { origin: "ftp://other".to_owned(), ..request("GET", "/", &[]) };
        check(other, "https:// or http://");
    }

    proptest! {
        /// Any server reads the head as the same fields.
        #[test]
        fn writes_one_line_for_each_field(
            method in "[A-Z ]{1,5}|GET", target in "/[a-z%?#\r\n ]{0,5}",
            fields in vec(("[a-zA-Z:\r\n -]{0,8}", "[ -~\t\r\n\u{0}\u{ff}]{0,8}"), 0..4),
        ) {
            let fields: Vec<_> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
            if let Ok(head) = head(request(&method, &target, &fields)) {
                let mut parsed = [httparse::EMPTY_HEADER; 20];
                let mut parsed = httparse::Request::new(&mut parsed);
                let end = parsed.parse(head.as_bytes()).unwrap().unwrap();
                prop_assert_eq!(end, head.len());
                prop_assert_eq!(parsed.method, Some(&*method));
                prop_assert_eq!(parsed.path, Some(&*target));
                for (name, value) in fields {
                    let is_same = |own: &httparse::Header<'_>| {
                        own.name == name && own.value == value.trim_matches([' ', '\t']).as_bytes()
                    };
                    prop_assert!(parsed.headers.iter().any(is_same), "{name}: {value}");
                }
            }
        }
    }
}
