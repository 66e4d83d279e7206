//! The program of the tested server: the path of a request selects its response.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use bine_http::{Exchange, Head, Reply, Status};
use bine_server::{
    Answer, Body, Clock, Done, FilePart, Finished, Follow, Handler, HandlerContext, Identity,
    Incoming, Outgoing, ReplyFuture, Responder, Retained, Sender, Spool, Stream, StreamFuture,
    SuspendedResponse, Upgrade, Work, blocking, timeout,
};

use crate::gate::Gate;
use crate::news::News;
use crate::upgrades::upgrade;

/// The length of the file that `/file` sends, larger than a socket buffer.
pub(crate) const FILE: usize = 9_000_000;
/// The length of the stream that `/stream/flood` sends.
pub(crate) const FLOOD: usize = 100_000_000;

/// The state that the test and all threads of its server share.
#[derive(Default)]
pub(crate) struct Program {
    gates: Mutex<HashMap<String, Arc<Gate>>>,
    /// The words of `/say` and the records of `/sleep`, in order.
    said: Mutex<Vec<String>>,
    /// The file that `/disk` sends.
    pub(crate) disk: OnceLock<Arc<OwnedFd>>,
    /// The words of `/tell`, and the requests that wait for more.
    pub(crate) news: Arc<News>,
}

impl Program {
    /// Returns the gate with this name.
    pub(crate) fn gate(&self, name: &str) -> Arc<Gate> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(gates.entry(name.to_owned()).or_default())
    }

    fn say(&self, word: &str) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).push(word.to_owned());
    }

    pub(crate) fn said(&self) -> Vec<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Creates the program's part for each thread.
pub(crate) struct Parts(pub(crate) Arc<Program>);

impl Handler for Parts {
    fn local(&self, handler_context: HandlerContext) -> Box<dyn Responder> {
        Box::new(Part { program: Arc::clone(&self.0), clock: handler_context.clock })
    }
}

pub(crate) struct Part {
    program: Arc<Program>,
    clock: Rc<Clock>,
}

impl Responder for Part {
    fn identify(&mut self, head: &Head<'_>, _peer: bine_server::ClientAddress) -> Identity {
        if head.target() == "/panic/admit" {
            fail();
        }
        head.field("name")
            .map_or(Identity::Anonymous, |name| Identity::named(String::from_utf8_lossy(name)))
    }

    // Long because it is a table with one arm per path.
    fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let path = request.head.path();
        let mut parts = path.split('/').skip(1);
        let (name, rest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let exchange = request.exchange;
        match (name, rest) {
            ("say", word) => {
                self.program.say(word);
                self.whole(exchange, out, word.as_bytes())
            }
            ("sleep", milliseconds) => {
                let wait = Duration::from_millis(milliseconds.parse().unwrap_or(0));
                let program = Arc::clone(&self.program);
                self.later(exchange, async move {
                    tokio::time::sleep(wait).await;
                    program.say("slept");
                })
            }
            ("yield", _) => self.later(exchange, async {
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
            }),
            ("wait", gate) => {
                let gate = self.program.gate(gate);
                self.later(exchange, async move { gate.passed().await })
            }
            ("abandon", gate) => {
                let gate = self.program.gate(gate);
                let passing = Arc::clone(&gate);
                self.later(exchange, async move {
                    let mut call = Box::pin(blocking(move || passing.pass()));
                    // The call must start before its timeout, since an expired call never starts.
                    while gate.arrivals() == 0 {
                        timeout(Duration::from_millis(1), call.as_mut(), async || ()).await;
                    }
                })
            }
            ("work-long", length) => {
                let length = length.parse().unwrap_or(0);
                Answer::Work(Arc::new(TestWork { length, ..TestWork::default() }))
            }
            ("work", _) => Answer::Work(Arc::new(TestWork::default())),
            ("block", gate) => {
                let gate = Some(self.program.gate(gate));
                Answer::Work(Arc::new(TestWork { gate, ..TestWork::default() }))
            }
            // Blocks the whole loop, which programs must not do, so that a test can accumulate
            // events.
            ("hold", gate) => {
                self.program.gate(gate).pass();
                self.whole(exchange, out, b"held")
            }
            ("panic", "work") => {
                Answer::Work(Arc::new(TestWork { panics: true, ..TestWork::default() }))
            }
            ("panic", "later") => self.later(exchange, async { fail() }),
            ("panic", "late") => self.later(exchange, async {
                tokio::task::yield_now().await;
                fail();
            }),
            ("panic", "page") => {
                self.page(exchange, out, 300_000);
                fail()
            }
            ("panic", _) => fail(),
            ("page", length) => self.page(exchange, out, length.parse().unwrap_or(0)),
            ("long", length) => {
                let length = length.parse().unwrap_or(0);
                self.whole(exchange, out, &vec![b'x'; length])
            }
            ("file", _) => {
                let length = FILE as u64;
                let date = self.clock.date();
                Reply::begin(out.buffer, exchange, Status::OK, &date).content_length(length);
                Answer::File(FilePart { file: file(), offset: 0, length })
            }
            ("stream", what) => self.stream(exchange, out, what),
            ("stream-later", what) => {
                let (clock, write) = (Rc::clone(&self.clock), self.writer(what));
                Answer::Later(Box::pin(async move {
                    tokio::task::yield_now().await;
                    let mut bytes = Vec::new();
                    let pieces =
                        Reply::begin(&mut bytes, exchange, Status::OK, &clock.date()).stream();
                    let follow = Some(Follow::Stream(Stream::new(pieces, write)));
                    Finished { bytes, follow, close: false }
                }))
            }
            ("stream-work", what) => {
                Answer::Work(Arc::new(StreamErrand { write: Mutex::new(Some(self.writer(what))) }))
            }
            ("upgrade", what) => {
                let date = self.clock.date();
                Reply::begin(out.buffer, exchange, Status::SWITCHING_PROTOCOLS, &date).empty();
                Answer::Upgrade(upgrade(&self.program, what))
            }
            ("upgrade-work", what) => {
                let upgrade = Mutex::new(Some(upgrade(&self.program, what)));
                Answer::Work(Arc::new(UpgradeErrand { upgrade }))
            }
            ("disk", _) => {
                let file = Arc::clone(self.program.disk.get().unwrap());
                let length = FILE as u64;
                let date = self.clock.date();
                Reply::begin(out.buffer, exchange, Status::OK, &date).content_length(length);
                Answer::File(FilePart { file, offset: 0, length })
            }
            ("echo", _) => match request.body {
                Body::Pending => Answer::Collect { limit: 1 << 20, on_disk: false },
                Body::OnDisk(_) => unreachable!("it was not asked for"),
                Body::InMemory(bytes) => self.whole(exchange, out, bytes),
                Body::None => self.whole(exchange, out, b""),
            },
            ("pieces", what) => self.take_pieces(request, what),
            ("poll" | "feed", position) => Answer::Suspend(SuspendedResponse {
                subject: Arc::clone(&self.program.news) as _,
                position: position.parse().unwrap_or(0),
                detail: 0,
                manner: u32::from(name == "feed"),
                exchange,
            }),
            ("poll-work", position) => {
                Answer::Work(Arc::new(HoldErrand(position.parse().unwrap_or(0))))
            }
            ("tell", word) => {
                self.program.news.tell(word);
                self.whole(exchange, out, b"told")
            }
            // Collects a body for a slow handler.
            ("gather", gate) => match request.body {
                Body::Pending => Answer::Collect { limit: 1 << 20, on_disk: false },
                _ => {
                    let gate = self.program.gate(gate);
                    self.later(exchange, async move { gate.passed().await })
                }
            },
            ("gather-work", gate) => match request.body {
                Body::Pending => Answer::Collect { limit: 1 << 20, on_disk: false },
                _ => {
                    let gate = Some(self.program.gate(gate));
                    Answer::Work(Arc::new(TestWork { gate, ..TestWork::default() }))
                }
            },
            ("keep", _) => match request.body {
                Body::Pending => Answer::Collect { limit: 10, on_disk: true },
                Body::OnDisk(spool) => {
                    let told = format!("filed {} {:x}", spool.length(), sum_of(spool));
                    self.whole(exchange, out, told.as_bytes())
                }
                Body::InMemory(bytes) => {
                    self.whole(exchange, out, format!("here {}", bytes.len()).as_bytes())
                }
                Body::None => self.whole(exchange, out, b"nothing"),
            },
            ("client", _) => {
                let scheme = if request.peer.is_secure() { "tls" } else { "tcp" };
                let client = format!("{scheme} {} {}", request.peer, request.peer.port());
                self.whole(exchange, out, client.as_bytes())
            }
            ("thread", _) => {
                let thread = format!("{:?}", thread::current().id());
                self.whole(exchange, out, thread.as_bytes())
            }
            ("cpu", _) => {
                let used = clock_gettime(ClockId::ProcessCPUTime);
                let total = used.tv_sec * 1000 + used.tv_nsec / 1_000_000;
                self.whole(exchange, out, total.to_string().as_bytes())
            }
            _ => self.whole(exchange, out, b"hello"),
        }
    }

    // The program has no sessions: a client without a name stays anonymous.
    fn begins(&self) -> bool {
        false
    }

    fn last(&self) -> &'static str {
        "program"
    }
}

impl Part {
    pub(crate) fn program(&self) -> Arc<Program> {
        Arc::clone(&self.program)
    }

    pub(crate) fn clock(&self) -> Rc<Clock> {
        Rc::clone(&self.clock)
    }

    fn whole(&self, exchange: Exchange, out: &mut Outgoing<'_>, content: &[u8]) -> Answer {
        let date = self.clock.date();
        Reply::begin(out.buffer, exchange, Status::OK, &date).whole(content);
        Answer::Written { close: false }
    }

    fn page(&self, exchange: Exchange, out: &mut Outgoing<'_>, length: usize) -> Answer {
        let date = self.clock.date();
        let mut body = Reply::begin(out.buffer, exchange, Status::OK, &date).body();
        let mut left = length;
        while left > 0 {
            let piece = left.min(10_000);
            out.buffer.extend(std::iter::repeat_n(b'p', piece));
            left -= piece;
            body.flush(out.buffer, &mut *out.drain);
        }
        Answer::Written { close: body.finish(out.buffer).close }
    }

    fn stream(&self, exchange: Exchange, out: &mut Outgoing<'_>, what: &str) -> Answer {
        let date = self.clock.date();
        let pieces = Reply::begin(out.buffer, exchange, Status::OK, &date).stream();
        Answer::Stream(Stream::new(pieces, self.writer(what)))
    }

    /// Returns the writer of a stream. `what` is a number of bytes or the name of a behavior.
    fn writer(&self, what: &str) -> Begin {
        let (program, what) = (Arc::clone(&self.program), what.to_owned());
        Box::new(move |mut sender| {
            Box::pin(async move {
                let _leaving = Leaving(Arc::clone(&program));
                let _fuse = (what == "fuse").then(|| Fuse);
                program.say("writes");
                sender.send("begun").await.map_err(|gone| gone.to_string())?;
                match &*what {
                    "fail" => return Err(String::from("on purpose")),
                    "panic" => fail(),
                    // Far more than sockets and buffers hold, and the writer itself never yields.
                    "flood" => {
                        for _ in 0..FLOOD / 10_000 {
                            if sender.send(vec![b's'; 10_000]).await.is_err() {
                                return Ok(());
                            }
                        }
                        program.say("flooded");
                    }
                    length => match length.parse() {
                        Ok(length) => {
                            for at in (5..length).step_by(10_000) {
                                let piece: Vec<u8> =
                                    (at..length.min(at + 10_000)).map(file_byte).collect();
                                sender.send(piece).await.map_err(|gone| gone.to_string())?;
                            }
                        }
                        Err(_) => {
                            program.gate(&what).passed().await;
                            sender.send("ended").await.map_err(|gone| gone.to_string())?;
                        }
                    },
                }
                Ok(())
            })
        })
    }

    fn later(&self, exchange: Exchange, wait: impl Future<Output = ()> + 'static) -> Answer {
        let clock = Rc::clone(&self.clock);
        let reply: ReplyFuture = Box::pin(async move {
            wait.await;
            let mut bytes = Vec::new();
            Reply::begin(&mut bytes, exchange, Status::OK, &clock.date()).whole(b"later");
            Finished { bytes, follow: None, close: false }
        });
        Answer::Later(reply)
    }
}

#[derive(Default)]
struct TestWork {
    gate: Option<Arc<Gate>>,
    panics: bool,
    /// The length of the content; 0 selects a short text.
    length: usize,
}

impl Work for TestWork {
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        let exchange = request.incoming().exchange;
        let content = if self.length == 0 { b"work".to_vec() } else { vec![b'w'; self.length] };
        Reply::begin(out.buffer, exchange, Status::OK, &clock.date()).whole(&content);
        if let Some(gate) = &self.gate {
            gate.pass();
        }
        if self.panics {
            fail();
        }
        Done::default()
    }

    fn name(&self) -> &'static str {
        "errand"
    }
}

/// The writer of a stream.
type Begin = Box<dyn FnOnce(Sender) -> StreamFuture + Send>;

struct StreamErrand {
    write: Mutex<Option<Begin>>,
}

impl Work for StreamErrand {
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        let exchange = request.incoming().exchange;
        let pieces = Reply::begin(out.buffer, exchange, Status::OK, &clock.date()).stream();
        let write = self.write.lock().unwrap_or_else(PoisonError::into_inner).take();
        let follow = write.map(|write| Follow::Stream(Stream::new(pieces, write)));
        Done { follow, close: false }
    }

    fn name(&self) -> &'static str {
        "stream errand"
    }
}

struct UpgradeErrand {
    upgrade: Mutex<Option<Upgrade>>,
}

impl Work for UpgradeErrand {
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        let exchange = request.incoming().exchange;
        Reply::begin(out.buffer, exchange, Status::SWITCHING_PROTOCOLS, &clock.date()).empty();
        let upgrade = self.upgrade.lock().unwrap_or_else(PoisonError::into_inner).take();
        Done { follow: upgrade.map(Follow::Upgrade), close: false }
    }

    fn name(&self) -> &'static str {
        "upgrade errand"
    }
}

/// Suspends its request from a worker.
struct HoldErrand(u64);

impl Work for HoldErrand {
    fn run(&self, request: &Retained, _clock: &Clock, _out: &mut Outgoing<'_>) -> Done {
        let exchange = request.incoming().exchange;
        // The waiters belong to one program, which needs no subject.
        let subject = Arc::new(()) as _;
        let follow = Follow::Suspend(SuspendedResponse {
            subject,
            position: self.0,
            detail: 0,
            manner: 0,
            exchange,
        });
        Done { follow: Some(follow), close: false }
    }

    fn name(&self) -> &'static str {
        "hold errand"
    }
}

/// Reports the end of a writer, for any reason.
pub(crate) struct Leaving(pub(crate) Arc<Program>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.say("left");
        self.0.gate("left").arrive();
    }
}

/// Panics on drop.
struct Fuse;

impl Drop for Fuse {
    fn drop(&mut self) {
        fail();
    }
}

/// Panics without a message on standard error.
pub(crate) fn fail() -> ! {
    resume_unwind(Box::new("a fault of the program"))
}

/// A checksum that shows missing or reordered bytes of a body.
pub(crate) fn sum<'b>(bytes: impl IntoIterator<Item = &'b u8>) -> u64 {
    // FNV-1a.
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn sum_of(spool: &Spool) -> u64 {
    let mut bytes = vec![0; spool.length() as usize + 1];
    let mut length = 0;
    loop {
        match spool.read_at(&mut bytes[length..], length as u64).unwrap() {
            0 => return sum(&bytes[..length]),
            count => length += count,
        }
    }
}

/// Returns byte `place` of the file.
pub(crate) const fn file_byte(place: usize) -> u8 {
    (place % 251) as u8
}

fn file() -> Arc<OwnedFd> {
    static SHARED: OnceLock<Arc<OwnedFd>> = OnceLock::new();
    Arc::clone(SHARED.get_or_init(|| {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::memfd_create("bine test", flags).unwrap());
        let period: Vec<u8> = (0..251).map(file_byte).collect();
        let mut bytes = period.repeat(FILE / 251 + 1);
        bytes.truncate(FILE);
        file.write_all(&bytes).unwrap();
        Arc::new(file.into())
    }))
}
