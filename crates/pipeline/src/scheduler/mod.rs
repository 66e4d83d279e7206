//! Decides which thread runs which stage. One trait, one file per policy, a factory by name.
//!
//! The trait has Hop's three verbs (document 000 section 2.4): how connections are accepted, how a
//! job is spawned, and how one stage hands over to the next. A scheduler owns threads; it sees
//! tokens and outcomes of stages, never bytes.

mod event;
mod hybrid;
mod pool;

use std::io;
use std::sync::Arc;

use crate::event_loop::EventLoop;
use crate::settings::Settings;

pub use crate::server::Server;
pub use crate::stages::{Kind, Next};
pub use crate::workers::{Task, Ticket};
pub use event::Event;
pub use hybrid::Hybrid;
pub use pool::Pool;

/// A policy: who runs what.
pub trait Scheduler: Send + Sync + 'static {
    /// Starts the threads that accept connections, and returns when the last of them has ended.
    ///
    /// # Errors
    ///
    /// Threads or descriptors that could not be had.
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()>;

    /// Where the stage that comes next runs.
    fn stage(&self, next: Next) -> Place;

    /// Runs `task` on some other thread, which answers to the task's mailbox.
    ///
    /// # Errors
    ///
    /// The task itself, when it finds no place.
    fn spawn(&self, task: Task) -> Result<(), Task>;

    /// Takes back a task that nobody has begun, because its wait has been long enough.
    fn withdraw(&self, _ticket: &Ticket) -> Option<Task> {
        None
    }

    /// Whether a thread that blocks may be lent to a reply that waits for something to happen. A scheduler whose threads
    /// are few keeps one for everybody else.
    fn begin_hold(&self) -> bool {
        true
    }

    /// A thread so lent is back.
    fn end_hold(&self) {}

    /// A task's peer was answered without it: its thread may be away for long.
    fn on_overdue(&self) {}

    /// A task that was overdue has returned.
    fn on_returned(&self) {}

    /// How busy its threads are, 0 to 1.
    fn load(&self) -> f32;
}

/// Where a stage runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// On the thread that ran the stage before it.
    Here,
    /// Wherever [`Scheduler::spawn`] puts it.
    Elsewhere,
}

/// Each scheduler by name, with what it is for.
pub const SCHEDULERS: &[(&str, &str)] = &[
    ("hybrid", "event loops, and workers for handlers that block (the default)"),
    ("event", "event loops alone; a handler that blocks holds up its loop"),
    ("pool", "threads that each accept a connection and keep it until it closes"),
];

/// Whether there is a scheduler of that name.
///
/// # Errors
///
/// The names there are.
pub fn check(name: &str) -> io::Result<()> {
    if SCHEDULERS.iter().any(|(known, _)| *known == name) {
        return Ok(());
    }
    let names: Vec<&str> = SCHEDULERS.iter().map(|(known, _)| *known).collect();
    let message = format!("no scheduler is called `{name}`; there are {}", names.join(", "));
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

pub(crate) fn by_name(settings: &Settings) -> io::Result<Arc<dyn Scheduler>> {
    check(&settings.scheduler)?;
    Ok(match settings.scheduler.as_str() {
        "event" => Arc::new(Event),
        "pool" => Arc::new(Pool::new(settings.workers)),
        _ => Arc::new(Hybrid::new(settings.workers, settings.queue)),
    })
}

/// Runs the server's event loops, each on a thread of its own, with every stage placed as
/// `scheduler` says; returns when the last has ended.
///
/// # Errors
///
/// Threads or descriptors that could not be had; connections that the end of the drain has cut.
pub fn serve_loops(server: &Arc<Server>, scheduler: &Arc<dyn Scheduler>) -> io::Result<()> {
    let (shared, own) = (Arc::clone(server), Arc::clone(scheduler));
    run_threads(server, "loop", server.loops.len(), move |index| {
        EventLoop::run(Arc::clone(&shared), Arc::clone(&own), index)
    })
}

/// A thread that fails takes the server down with it: half a server helps nobody to find out why.
fn run_one(
    server: &Server,
    body: &dyn Fn(usize) -> io::Result<()>,
    index: usize,
) -> io::Result<()> {
    let outcome = body(index);
    if outcome.is_err() {
        server.stop();
    }
    outcome
}

/// Starts `count` threads and waits for all of them. When one cannot be started, those that run
/// are told to stop.
fn run_threads(
    server: &Arc<Server>,
    name: &str,
    count: usize,
    body: impl Fn(usize) -> io::Result<()> + Send + Sync + 'static,
) -> io::Result<()> {
    let body = Arc::new(body);
    let mut outcome = Ok(());
    let mut threads = Vec::new();
    // The first body runs on the calling thread: one loop needs one thread.
    for index in 1..count.max(1) {
        let (body, own) = (Arc::clone(&body), Arc::clone(server));
        let thread = std::thread::Builder::new()
            .name(format!("bine {name} {index}"))
            .spawn(move || run_one(&own, &*body, index));
        match thread {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                outcome = Err(error);
                server.stop();
                break;
            }
        }
    }
    let first = run_one(server, &*body, 0);
    for thread in threads {
        let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
        outcome = outcome.and(ended);
    }
    outcome.and(first)
}
