//! Helpers for tests of live pages.

use std::sync::Arc;

use bine_http::{Event, Limits, RequestParser};
use bine_server::{Body, ClientAddress, Identity, Incoming, Retained};

use super::render::{Render, RenderRecord};

/// The expiry time that a render records, and whether it changed tables.
pub(crate) fn expiry_of(part: impl FnOnce()) -> (Option<u64>, bool) {
    let render = Arc::new(Render::new(Arc::default(), None));
    render.within(part);
    let RenderRecord { expires_at, has_written, .. } = render.take();
    (expires_at, has_written)
}

/// A request for the page at `/`.
pub(super) fn request() -> Retained {
    let bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let Event::Head(head) = RequestParser::new().receive(bytes, &Limits::default()).event else {
        panic!("it is a request");
    };
    let (peer, identity, exchange) =
        (ClientAddress::tcp(([127, 0, 0, 1], 1).into()), &Identity::Anonymous, head.exchange());
    let (body, has_begun) = (Body::None, false);
    Retained::of(&Incoming { head, body, peer, identity, arrival: 0, has_begun, exchange })
}
