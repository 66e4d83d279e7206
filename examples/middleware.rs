//! A program with middleware: it forwards requests below
//! `/other/` to a second server, and answers the rest with its own pages.
//!
//! Start the second server with `cargo run --release --example hello`, then this program with
//! `OTHER=127.0.0.1:8080 cargo run --release --example middleware -- --listen 127.0.0.1:8081`, and
//! open <http://127.0.0.1:8081/other/hello?name=TLUG>.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use bine::middleware::{
    Answer, ClientAddress, Clock, Done, Exchange, Handler, HandlerContext, Head, Identity,
    Incoming, Outgoing, Reply, Responder, Retained, Work,
};
use bine::prelude::*;

/// The longest pause of the second server.
const PATIENCE: Duration = Duration::from_secs(10);

/// The middleware: the program's own handler, and a second server.
struct Split {
    own: Arc<dyn Handler>,
    other: Arc<Other>,
}

/// The same for one thread.
struct LocalSplit {
    own: Box<dyn Responder>,
    other: Arc<Other>,
}

impl Handler for Split {
    fn local(&self, handler_context: HandlerContext) -> Box<dyn Responder> {
        Box::new(LocalSplit {
            own: self.own.local(handler_context),
            other: Arc::clone(&self.other),
        })
    }
}

impl Responder for LocalSplit {
    fn identify(&mut self, head: &Head<'_>, peer: ClientAddress) -> Identity {
        self.own.identify(head, peer)
    }

    fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        if request.head.target().starts_with("/other/") && request.head.method().is_safe() {
            // The request blocks, so a worker runs it.
            return Answer::Work(Arc::<Other>::clone(&self.other));
        }
        self.own.respond(request, out)
    }

    fn failed(&mut self, request: &Incoming<'_>, out: &mut Vec<u8>) {
        self.own.failed(request, out);
    }

    fn last(&self) -> &'static str {
        self.own.last()
    }
}

/// The address of the second server.
struct Other(String);

impl Other {
    /// The whole reply, after which the server closes the connection.
    fn ask(&self, head: &Head<'_>) -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(&self.0)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (method, target) = (head.method().as_str(), &head.target()["/other".len()..]);
        let host = &self.0;
        write!(stream, "{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply)?;
        Ok(reply)
    }
}

impl Work for Other {
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        match self.ask(&request.incoming().head) {
            Ok(reply) if reply.starts_with(b"HTTP/1.1 ") => out.buffer.extend_from_slice(&reply),
            _ => {
                let exchange = Exchange::closing();
                Reply::begin(out.buffer, exchange, Status::BAD_GATEWAY, &clock.date())
                    .whole(b"The other server does not answer.\n");
            }
        }
        // Both replies close the connection.
        Done { follow: None, close: true }
    }

    fn name(&self) -> &'static str {
        "the other server"
    }
}

#[page("/")]
async fn home() -> impl Page {
    html!(<p>Ours. <a href="/other/hello?name=you">Theirs.</a></p>)
}

fn main() -> Exit {
    let address = std::env::var("OTHER").unwrap_or_else(|_| "127.0.0.1:8080".to_owned());
    let other = Arc::new(Other(address));
    let middleware =
        move |own| -> Arc<dyn Handler> { Arc::new(Split { own, other: Arc::clone(&other) }) };
    App::new().page(home).middleware(middleware).run()
}
