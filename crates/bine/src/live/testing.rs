//! Helpers for tests of live pages.

use std::sync::Arc;

use bine_http::{Event, Limits, RequestParser};
use bine_server::{Body, Incoming, Peer, Retained, Who};

use super::run::{Notes, Run};

/// The expiry time that a render records, and whether it changed tables.
pub(crate) fn ends_of(part: impl FnOnce()) -> (Option<u64>, bool) {
    let run = Arc::new(Run::new(Arc::default(), None));
    run.within(part);
    let Notes { ends, has_written, .. } = run.take();
    (ends, has_written)
}

/// A request for the page at `/`.
pub(super) fn request() -> Retained {
    let bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let Event::Head(head) = RequestParser::new().receive(bytes, &Limits::default()).event else {
        panic!("it is a request");
    };
    let (peer, who, exchange) =
        (Peer::tcp(([127, 0, 0, 1], 1).into()), &Who::Anonymous, head.exchange());
    let (body, has_begun) = (Body::None, false);
    Retained::of(&Incoming { head, body, peer, who, arrival: 0, has_begun, exchange })
}
