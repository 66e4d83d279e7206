//! The program that a simulated loop serves. The path of a request selects what its handler does
//! and how long that takes.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bine_http::{BodyFraming, Exchange, Head, Reply, Status};

use crate::address::ClientAddress;
use crate::handler::{
    Answer, Body, Done, FilePart, Finished, Handler, HandlerContext, Identity, Incoming, Outgoing,
    Responder, Retained, SendOutcome, ServeOutcome, ServeReason, Stream, SuspendedResponse,
    WaiterSink, Waiters, WakeHandle, Work,
};
use crate::mailbox::Ticket;
use crate::next::{Next, ResponseKind};
use crate::scheduling::{Placement, Scheduler};
use crate::server::Server;
use crate::time::Clock;
use crate::workers::Task;

use super::HANDLER;
use super::world::{SLACK, World};

thread_local! {
    static WORLD: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
}

/// Makes `world` the world of this thread's programs.
pub(super) fn enter(world: Option<&Rc<World>>) {
    WORLD.set(world.cloned());
}

fn world() -> Rc<World> {
    WORLD.with_borrow(|world| Rc::clone(world.as_ref().expect("a simulation runs")))
}

pub(super) struct SimulatedProgram;

impl Handler for SimulatedProgram {
    fn local(&self, handler_context: HandlerContext) -> Box<dyn Responder> {
        Box::new(Local { clock: handler_context.clock })
    }
}

struct Local {
    clock: Rc<Clock>,
}

impl Responder for Local {
    fn identify(&mut self, _head: &Head<'_>, _peer: ClientAddress) -> Identity {
        Identity::Anonymous
    }

    fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let path = request.head.path();
        let mut parts = path.split('/').skip(1);
        let name = parts.next().unwrap_or_default();
        let mut number = || parts.next().and_then(|text| text.parse().ok()).unwrap_or(0u64);
        let date = self.clock.date();
        let exchange = request.exchange;
        match name {
            "slow" => {
                world().block_loop(number());
                Reply::begin(out.buffer, exchange, Status::OK, &date).whole(b"slow");
            }
            // Unwinds like a panic, without a message.
            "panic" => resume_unwind(Box::new("a handler's fault")),
            "close" => {
                let exchange = Exchange { keep_alive: false, ..exchange };
                Reply::begin(out.buffer, exchange, Status::OK, &date).whole(b"bye");
                return Answer::Written { close: true };
            }
            "file" => {
                let length = number();
                Reply::begin(out.buffer, exchange, Status::OK, &date).content_length(length);
                return Answer::File(FilePart { file: file(), offset: 0, length });
            }
            "work" => return Answer::Work(Arc::new(BlockingWork)),
            "hold" | "feed" => {
                return Answer::Suspend(SuspendedResponse {
                    subject: Arc::new(()),
                    position: number(),
                    detail: 0,
                    manner: u32::from(name == "feed"),
                    exchange,
                });
            }
            "later" => {
                let (wait, clock) = (number(), Rc::clone(&self.clock));
                return Answer::Later(Box::pin(async move {
                    world().sleep(wait).await;
                    let mut bytes = Vec::new();
                    Reply::begin(&mut bytes, exchange, Status::OK, &clock.date()).whole(b"later");
                    Finished { bytes, follow: None, close: false }
                }));
            }
            "stream" => {
                let (count, pause) = (number(), number());
                let pieces = Reply::begin(out.buffer, exchange, Status::OK, &date).stream();
                return Answer::Stream(Stream::new(pieces, move |mut sender| {
                    Box::pin(async move {
                        for _ in 0..count {
                            world().sleep(pause).await;
                            sender.send("piece").await.map_err(|gone| gone.to_string())?;
                        }
                        Ok(())
                    })
                }));
            }
            "echo" => match request.body {
                Body::InMemory(bytes) => {
                    Reply::begin(out.buffer, exchange, Status::OK, &date).whole(&bytes[..1]);
                }
                _ => return Answer::Collect { limit: 1 << 20, on_disk: false },
            },
            _ => {
                let content = vec![b'x'; number() as usize];
                Reply::begin(out.buffer, exchange, Status::OK, &date).whole(&content);
            }
        }
        Answer::Written { close: false }
    }

    fn last(&self) -> &'static str {
        "simulated"
    }
}

/// Any file is enough: the simulated transport invents its bytes.
fn file() -> Arc<OwnedFd> {
    static FILE: OnceLock<Arc<OwnedFd>> = OnceLock::new();
    let make = || {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        Arc::new(rustix::fs::memfd_create("bine simulation", flags).expect("memory for a file"))
    };
    Arc::clone(FILE.get_or_init(make))
}

struct BlockingWork;

impl Work for BlockingWork {
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        let exchange = request.incoming().exchange;
        Reply::begin(out.buffer, exchange, Status::OK, &clock.date()).whole(b"work");
        Done::default()
    }

    fn name(&self) -> &'static str {
        "errand"
    }
}

/// The suspended responses.
pub(super) struct SuspendedResponses {
    clock: Rc<Clock>,
    entries: Vec<Option<Suspended>>,
    turn: usize,
}

struct Suspended {
    place: u64,
    wait: Duration,
    exchange: Exchange,
    /// The framing of a streamed response, once its head is written.
    pieces: Option<BodyFraming>,
    is_feed: bool,
    /// The number of the last event that it has received.
    sent_news: u64,
}

impl SuspendedResponses {
    pub(super) fn new(clock: Rc<Clock>, bell: WakeHandle) -> Self {
        world().state().bell = Some(bell);
        Self { clock, entries: Vec::new(), turn: 0 }
    }

    fn leave(&mut self, entry: usize) {
        if self.entries[entry].take().is_some() {
            world().state().held -= 1;
        }
    }
}

impl Suspended {
    fn write(&mut self, out: &mut Vec<u8>, clock: &Clock) -> ServeOutcome {
        if !self.is_feed {
            Reply::begin(out, self.exchange, Status::OK, &clock.date()).whole(b"news");
            return ServeOutcome::Over { close: false };
        }
        let pieces = self.pieces.unwrap_or_else(|| {
            Reply::begin(out, self.exchange, Status::OK, &clock.date()).stream()
        });
        self.pieces = Some(pieces);
        pieces.append(out, b"news;");
        ServeOutcome::Waits(self.wait)
    }
}

impl Waiters for SuspendedResponses {
    fn park(&mut self, place: u64, hold: SuspendedResponse) -> u32 {
        let entry = Suspended {
            place,
            wait: Duration::from_millis(hold.position),
            exchange: hold.exchange,
            pieces: None,
            is_feed: hold.manner == 1,
            sent_news: world().state().news,
        };
        let free = self.entries.iter().position(Option::is_none).unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        world().state().held += 1;
        self.entries[free] = Some(entry);
        free as u32
    }

    fn serve(&mut self, key: u32, why: ServeReason, out: &mut Vec<u8>) -> ServeOutcome {
        let news = world().state().news;
        let slot = &mut self.entries[key as usize];
        let entry = slot.as_mut().expect("the response is suspended");
        if matches!(why, ServeReason::Stop | ServeReason::NoThread) {
            match entry.pieces {
                Some(pieces) => pieces.end(out),
                None => {
                    let exchange = Exchange { keep_alive: false, ..entry.exchange };
                    Reply::begin(out, exchange, Status::NO_CONTENT, &self.clock.date()).empty();
                }
            }
            *slot = None;
            world().state().held -= 1;
            return ServeOutcome::Over { close: true };
        }
        let begins = entry.is_feed && entry.pieces.is_none();
        let pings = entry.is_feed && why == ServeReason::Time;
        if entry.sent_news < news || begins || pings {
            entry.sent_news = news;
            let after = entry.write(out, &self.clock);
            if matches!(after, ServeOutcome::Over { .. }) {
                *slot = None;
                world().state().held -= 1;
            }
            return after;
        }
        if why == ServeReason::Time {
            let exchange = entry.exchange;
            Reply::begin(out, exchange, Status::NO_CONTENT, &self.clock.date()).empty();
            *slot = None;
            world().state().held -= 1;
            return ServeOutcome::Over { close: !exchange.keep_alive };
        }
        ServeOutcome::Waits(entry.wait)
    }

    fn deliver(&mut self, slice: usize, out: &mut dyn WaiterSink) -> bool {
        let news = world().state().news;
        let mut sent = 0;
        for _ in 0..self.entries.len() {
            if sent == slice {
                return true;
            }
            self.turn = (self.turn + 1) % self.entries.len();
            let slot = &mut self.entries[self.turn];
            let Some(entry) = slot.as_mut().filter(|entry| entry.sent_news < news) else {
                continue;
            };
            sent += 1;
            let mut bytes = Vec::new();
            let before = (entry.sent_news, entry.pieces);
            entry.sent_news = news;
            let after = entry.write(&mut bytes, &self.clock);
            let at = entry.place;
            match out.send(at, &bytes, after) {
                SendOutcome::Taken if matches!(after, ServeOutcome::Over { .. }) => {
                    self.leave(self.turn);
                }
                SendOutcome::Taken => {}
                // The loop serves it again when there is room.
                SendOutcome::Full => {
                    if let Some(entry) = &mut self.entries[self.turn] {
                        (entry.sent_news, entry.pieces) = before;
                    }
                    return false;
                }
                SendOutcome::Gone => self.leave(self.turn),
            }
        }
        false
    }

    fn forget(&mut self, key: u32) {
        self.leave(key as usize);
    }
}

/// Simulated workers: the plan decides when they start and finish.
pub(super) struct SimulatedWorkers {
    /// Where a handler that may block runs.
    place: Placement,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    new: Vec<(u64, u64)>,
    waiting: VecDeque<QueuedTask>,
    running: Vec<(u64, u64, Task)>,
    /// The number of tasks that have ended at `ended_at`. The loop may not have read their letters
    /// yet.
    ended: usize,
    ended_at: u64,
    overdue: u64,
    returned: u64,
}

struct QueuedTask {
    id: u64,
    run: u64,
    task: Task,
}

/// The number of tasks that may wait.
const MOST_WAITING: usize = 24;

impl SimulatedWorkers {
    pub(super) fn new(place: Placement) -> Self {
        Self { place, inner: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tasks spawned since the last call, each with its wait before it starts.
    pub(super) fn take_new(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.lock().new)
    }

    /// Starts a task, unless it was withdrawn. Returns how long it runs.
    pub(super) fn begin(&self, id: u64, now: u64) -> Option<u64> {
        let mut inner = self.lock();
        let index = inner.waiting.iter().position(|waiting| waiting.id == id)?;
        let QueuedTask { run, task, .. } = inner.waiting.remove(index)?;
        inner.running.push((id, now, task));
        Some(run)
    }

    pub(super) fn finish(&self, id: u64, now: u64) {
        let mut inner = self.lock();
        let Some(index) = inner.running.iter().position(|(running, ..)| *running == id) else {
            return;
        };
        let (.., task) = inner.running.swap_remove(index);
        if inner.ended_at != now {
            (inner.ended_at, inner.ended) = (now, 0);
        }
        inner.ended += 1;
        drop(inner);
        task.run();
    }

    /// Checks that each worker beyond its time limit was reported as overdue, and at most the
    /// workers that still run or have just ended.
    pub(super) fn check(&self, now: u64) -> Result<(), String> {
        let inner = self.lock();
        let handler = HANDLER.as_millis() as u64;
        let known = inner.overdue - inner.returned;
        let longer = |than: u64| {
            inner.running.iter().filter(|(_, began, _)| now - began > than).count() as u64
        };
        let ended = if inner.ended_at == now { inner.ended as u64 } else { 0 };
        // A task that started late, after a suspension, may be overdue at once.
        let (least, most) = (longer(handler + SLACK), inner.running.len() as u64 + ended);
        if (least..=most).contains(&known) {
            return Ok(());
        }
        Err(format!("{known} workers were reported as overdue, expected {least} to {most}"))
    }

    pub(super) fn is_idle(&self) -> bool {
        let inner = self.lock();
        inner.waiting.is_empty() && inner.running.is_empty() && inner.new.is_empty()
    }

    /// The number of workers that are reported as overdue.
    pub(super) fn overdue(&self) -> u64 {
        let inner = self.lock();
        inner.overdue - inner.returned
    }
}

impl Scheduler for SimulatedWorkers {
    fn accept(self: Arc<Self>, _server: &Arc<Server>) -> io::Result<()> {
        unreachable!("the simulation runs the loop")
    }

    fn stage(&self, next: Next) -> Placement {
        match (self.place, next) {
            (Placement::Spawn, Next::Response(ResponseKind::Dynamic)) => Placement::Spawn,
            (Placement::Spawn, _) => Placement::SameThread,
            (place, _) => place,
        }
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        let mut inner = self.lock();
        if inner.waiting.len() == MOST_WAITING || self.place != Placement::Spawn {
            return Err(task);
        }
        let path = task.path().unwrap_or_default().into_owned();
        let mut numbers = path.split('/').skip(2).filter_map(|text| text.parse().ok());
        let (wait, run) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        inner.next += 1;
        let id = inner.next;
        inner.new.push((id, wait));
        inner.waiting.push_back(QueuedTask { id, run, task });
        Ok(())
    }

    fn withdraw(&self, ticket: &Ticket) -> Option<Task> {
        let mut inner = self.lock();
        let index = inner.waiting.iter().position(|waiting| waiting.task.ticket() == ticket)?;
        inner.waiting.remove(index).map(|waiting| waiting.task)
    }

    fn on_overdue(&self) {
        self.lock().overdue += 1;
    }

    fn on_returned(&self) {
        self.lock().returned += 1;
    }

    fn load(&self) -> f32 {
        0.0
    }
}
