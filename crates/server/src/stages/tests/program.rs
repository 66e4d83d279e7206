//! The test program: the path of a request selects the answer.

use std::cell::Cell;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use bine_http::{Exchange, Head, Method, Reply, Status};

use crate::address::ClientAddress;
use crate::handler::{
    Answer, Body, Done, FilePart, Finished, Follow, Identity, Incoming, Outgoing, Responder,
    Retained, Work,
};
use crate::time::Clock;

/// Answers by path: `/later` when the gate opens, `/work` on a worker, any other path with its
/// name.
pub(super) struct TestProgram {
    pub(super) clock: Rc<Clock>,
    /// Opened when a reply that is written elsewhere may finish.
    pub(super) gate: Rc<Cell<bool>>,
    pub(super) file: Arc<OwnedFd>,
    /// Whether the handler of `/again` has waited.
    pub(super) has_waited: Cell<bool>,
}

/// The length of the file at `/file`, more than two slices.
pub(super) const FILE: u64 = 2_500_000;

/// A file of [`FILE`] bytes with different values, shared by all tests.
pub(super) fn file() -> Arc<OwnedFd> {
    static SHARED: OnceLock<Arc<OwnedFd>> = OnceLock::new();
    Arc::clone(SHARED.get_or_init(make_file))
}

fn make_file() -> Arc<OwnedFd> {
    let file = rustix::fs::memfd_create("bine test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let bytes: Vec<u8> = (0..FILE).map(|place| (place % 251) as u8).collect();
    let mut written = 0;
    while written < bytes.len() {
        written += rustix::io::write(&file, &bytes[written..]).unwrap();
    }
    Arc::new(file)
}

impl Responder for TestProgram {
    fn identify(&mut self, _head: &Head<'_>, _peer: ClientAddress) -> Identity {
        Identity::Anonymous
    }

    fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let path = request.head.path();
        let mut parts = path.split('/').skip(1);
        let name = parts.next().unwrap_or_default();
        let number = parts.next().and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
        match name {
            "later" => Answer::Later(self.later(request.exchange, false)),
            "later-panic" => Answer::Later(self.later(request.exchange, true)),
            "work" => Answer::Work(Arc::new(TestWork { panics: false })),
            "work-panic" => Answer::Work(Arc::new(TestWork { panics: true })),
            // Unwinds like a panic, but prints no message to standard error.
            "panic" => {
                out.buffer.extend_from_slice(b"HTTP/1.1 200 OK\r\nhalf a reply");
                resume_unwind(Box::new("a handler's fault"))
            }
            "page" => self.page(request.exchange, out, number, false),
            "page-panic" => self.page(request.exchange, out, number, true),
            "file" => {
                let length = if number == 0 { FILE } else { number as u64 };
                let status = Status::OK;
                Reply::begin(out.buffer, request.exchange, status, &self.clock.date())
                    .content_length(length);
                if request.exchange.method == Method::Head {
                    return Answer::Written { close: false };
                }
                Answer::File(FilePart { file: Arc::clone(&self.file), offset: 0, length })
            }
            "echo" => match request.body {
                Body::Pending => Answer::Collect { limit: number as u64, on_disk: false },
                Body::OnDisk(_) => unreachable!("the handler did not ask for it"),
                Body::InMemory(bytes) => self.whole(request.exchange, out, bytes),
                Body::None => self.whole(request.exchange, out, b"nothing"),
            },
            "again" => match request.body {
                Body::Pending => Answer::Collect { limit: 1000, on_disk: false },
                Body::OnDisk(_) => unreachable!("the handler did not ask for it"),
                body if self.has_waited.replace(true) => {
                    self.has_waited.set(false);
                    let content = if let Body::InMemory(bytes) = body { bytes } else { b"again" };
                    self.whole(request.exchange, out, content)
                }
                _ => {
                    let (gate, request) = (Rc::clone(&self.gate), Retained::of(request));
                    Answer::Later(Box::pin(async move {
                        open(&gate).await;
                        let follow = Some(Follow::Again(Box::new(request)));
                        Finished { follow, ..Finished::default() }
                    }))
                }
            },
            "twice" => Answer::Collect { limit: 1000, on_disk: false },
            "close" => {
                let exchange = Exchange { keep_alive: false, ..request.exchange };
                self.whole(exchange, out, b"bye");
                Answer::Written { close: true }
            }
            "client" => {
                let scheme = if request.peer.is_secure() { "https" } else { "http" };
                self.whole(request.exchange, out, format!("{scheme} {}", request.peer).as_bytes())
            }
            "long" => self.whole(request.exchange, out, &vec![b'x'; number]),
            other => self.whole(request.exchange, out, other.as_bytes()),
        }
    }

    fn last(&self) -> &'static str {
        "program"
    }
}

impl TestProgram {
    fn whole(&self, exchange: Exchange, out: &mut Outgoing<'_>, content: &[u8]) -> Answer {
        let date = self.clock.date();
        Reply::begin(out.buffer, exchange, Status::OK, &date).whole(content);
        Answer::Written { close: false }
    }

    /// A page of `length` bytes that is sent in parts of 1000 bytes.
    fn page(
        &self,
        exchange: Exchange,
        out: &mut Outgoing<'_>,
        length: usize,
        panics: bool,
    ) -> Answer {
        let date = self.clock.date();
        let mut body = Reply::begin(out.buffer, exchange, Status::OK, &date).body();
        let mut left = length;
        while left > 0 {
            let piece = left.min(1000);
            out.buffer.extend(std::iter::repeat_n(b'p', piece));
            left -= piece;
            if left > 0 {
                body.flush(out.buffer, &mut *out.drain);
            }
        }
        if panics {
            resume_unwind(Box::new("a page's fault"));
        }
        Answer::Written { close: body.finish(out.buffer).close }
    }

    fn later(&self, exchange: Exchange, panics: bool) -> crate::handler::ReplyFuture {
        let (gate, clock) = (Rc::clone(&self.gate), Rc::clone(&self.clock));
        Box::pin(async move {
            open(&gate).await;
            if panics {
                resume_unwind(Box::new("a late fault"));
            }
            let mut bytes = Vec::new();
            Reply::begin(&mut bytes, exchange, Status::OK, &clock.date()).whole(b"later");
            Finished { bytes, follow: None, close: false }
        })
    }
}

async fn open(gate: &Cell<bool>) {
    poll_fn(|_| if gate.replace(false) { Poll::Ready(()) } else { Poll::Pending }).await;
}

struct TestWork {
    panics: bool,
}

impl Work for TestWork {
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        let exchange = request.incoming().exchange;
        Reply::begin(out.buffer, exchange, Status::OK, &clock.date()).whole(b"work");
        if self.panics {
            resume_unwind(Box::new("a worker's fault"));
        }
        Done::default()
    }

    fn name(&self) -> &'static str {
        "test work"
    }
}
