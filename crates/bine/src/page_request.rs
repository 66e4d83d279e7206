//! The request for a page on behalf of a client that has sent a different request.

use bine_http::{Event, Exchange, Limits, Method, RequestParser};
use bine_server::{Body, Incoming, Retained};

/// The longest address of a page, in bytes.
const MAX_PAGE_ADDRESS: usize = 4096;

/// Fields that describe the content or the response of the original request, or a response that the
/// client has cached. The page is requested as by a browser without a cache.
const OTHER_FIELDS: [&str; 18] = [
    "accept",
    "accept-encoding",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-event-id",
    "origin",
    "range",
    "transfer-encoding",
    "upgrade",
];

/// The request for the page at `target`, a path with or without a query, by the client that has sent
/// `request`.
///
/// # Errors
///
/// Returns the reason why `target` is not valid.
pub(crate) fn page_request(request: &Incoming<'_>, target: &str) -> Result<Retained, &'static str> {
    let is_own = target.starts_with('/') && !target.starts_with("//");
    // Any other byte could start another line of the head.
    let is_plain = target.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_own || target.len() > MAX_PAGE_ADDRESS {
        return Err("`page` is no path of this site, or longer than 4096 bytes");
    }
    let not_encoded = "`page` is not encoded as an address is, once as a whole and once in itself";
    if !is_plain {
        return Err(not_encoded);
    }
    let mut bytes = format!("GET {target} HTTP/1.1\r\nAccept: text/html\r\n").into_bytes();
    for (name, value) in request.head.fields() {
        if !OTHER_FIELDS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
    }
    bytes.extend_from_slice(b"\r\n");
    // The head of the original request was within the program's limits.
    let limits = Limits { head: u32::MAX, target: u32::MAX, ..Limits::default() };
    let Event::Head(head) = RequestParser::new().receive(&bytes, &limits).event else {
        return Err(not_encoded);
    };
    if head.target() != target || head.raw().len() != bytes.len() {
        return Err(not_encoded);
    }
    // Checks the parsed path: the target may be written in several ways.
    if head.path().starts_with("/_bine/") {
        return Err("`page` is no page");
    }
    let exchange = Exchange { method: Method::Get, ..request.exchange };
    Ok(Retained::of(&Incoming { head, body: Body::None, exchange, ..*request }))
}
