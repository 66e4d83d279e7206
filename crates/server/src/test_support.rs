//! Helpers of the unit tests: requests, servers and sockets without a running server.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;

use bine_http::{Event, Head, Limits, Reply, RequestParser, Status};

use crate::address::ClientAddress;
use crate::connection::{Connection, ThreadContext};
use crate::handler::{
    Answer, Body, Handler, HandlerContext, Identity, Incoming, Outgoing, Responder, Retained,
};
use crate::server::Server;
use crate::settings::{Listen, Settings};
use crate::time::Clock;
use crate::transport::Blocking;

/// A program without content.
pub(crate) struct NoContent;

impl Handler for NoContent {
    fn local(&self, context: HandlerContext) -> Box<dyn Responder> {
        Box::new(NoContentHere(context.clock))
    }
}

struct NoContentHere(Rc<Clock>);

impl Responder for NoContentHere {
    fn identify(&mut self, _head: &Head<'_>, _peer: ClientAddress) -> Identity {
        Identity::Anonymous
    }

    fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let (status, date) = (Status::NO_CONTENT, self.0.date());
        Reply::begin(out.buffer, request.exchange, status, &date).empty();
        Answer::Written { close: false }
    }

    fn last(&self) -> &'static str {
        "no content"
    }
}

/// A server at a free port of this machine. It does not run.
pub(crate) fn server(settings: Settings) -> Arc<Server> {
    let listeners = vec![Listen::on("127.0.0.1:0".parse().unwrap())];
    let settings = Settings { listeners, ..settings };
    Arc::new(Server::open(settings, Arc::new(NoContent), None).unwrap())
}

/// The context of a thread of `server`, with a clock that only the test moves.
pub(crate) fn context(server: &Server) -> ThreadContext {
    server.view().context_with_clock(Rc::new(Clock::told(1_795_208_400)))
}

/// A new connection of `context`, and the client's socket.
pub(crate) fn connection(context: &mut ThreadContext) -> (Connection<Blocking>, UnixStream) {
    let (socket, client) = sockets();
    let transport = |session| Blocking::new(socket, session);
    (Connection::new(transport, ClientAddress::UNIX, context), client)
}

/// Passes the request with this head to `use_it`.
pub(crate) fn with_request<R>(
    head: &str,
    body: Body<'_>,
    use_it: impl FnOnce(&Incoming<'_>) -> R,
) -> R {
    let mut parser = RequestParser::new();
    let Event::Head(head) = parser.receive(head.as_bytes(), &Limits::default()).event else {
        panic!("no head was parsed");
    };
    let exchange = head.exchange();
    use_it(&Incoming {
        head,
        body,
        peer: ClientAddress::UNIX,
        identity: &Identity::Anonymous,
        arrival: 0,
        has_begun: false,
        exchange,
    })
}

/// A request of `path` without content.
pub(crate) fn request(path: &str) -> Box<Retained> {
    let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    Box::new(with_request(&head, Body::None, Retained::of))
}

/// Two connected sockets: of the server and of the client.
pub(crate) fn sockets() -> (OwnedFd, UnixStream) {
    let (server, client) = UnixStream::pair().unwrap();
    (server.into(), client)
}

/// The text that the client of a closed connection receives.
pub(crate) fn received(mut client: UnixStream) -> String {
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    text
}
