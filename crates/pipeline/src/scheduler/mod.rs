//! Decides which thread runs which stage. One trait, one file per policy, a factory by name.
//!
//! The trait has Hop's three verbs (document 000 section 2.4): how connections are accepted, how a
//! job is spawned, and how one stage hands over to the next. A scheduler owns threads; it sees
//! tokens and outcomes of stages, never bytes.

mod accept_many;
mod ceiling;
mod cohort;
mod event;
mod hybrid;
mod nothread;
mod one_to_one;
mod pool;
mod queue;
mod row;
mod threads;

use std::io;
use std::sync::Arc;

use crate::settings::Settings;

pub use crate::arrival::{Arrival, Entrance};
pub use crate::conversation::Conversations;
pub use crate::mailbox::Ticket;
pub use crate::next::{Kind, Next};
pub use crate::server::Server;
pub use crate::waits::WaitFigures;
pub use crate::workers::Task;
pub use accept_many::AcceptMany;
pub use bine_admission::queue::ServiceFigures;
pub use cohort::Cohort;
pub use event::Event;
pub use hybrid::Hybrid;
pub use nothread::NoThread;
pub use one_to_one::OneToOne;
pub use pool::Pool;
pub use queue::Queue;
pub use row::Row;
pub use threads::{serve_loops, serve_threads};

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

    /// How busy its threads are, 0 to 1. At 1 an idle connection that has a thread gives way to a newcomer.
    fn load(&self) -> f32;

    /// How it is, in one line for people: what is busy, and what waits.
    fn status(&self) -> String {
        format!("{:.0} % busy", 100.0 * self.load())
    }

    /// Whether tasks wait for longer than they should, so that nobody else had better come.
    fn is_overloaded(&self) -> bool {
        false
    }

    /// How long tasks have waited for a thread, if they do.
    fn waits(&self) -> Option<WaitFigures> {
        None
    }

    /// What is known of each service whose runs it [spawns](Self::spawn).
    fn figures(&self) -> Vec<ServiceFigures> {
        Vec::new()
    }
}

/// Where a stage runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// On the thread that ran the stage before it.
    Here,
    /// Wherever [`Scheduler::spawn`] puts it.
    Elsewhere,
    /// On the loop that ran the stage before it, together with the same stage of other connections.
    /// A loop asks once, at its start, whether [`Next::Request`] is gathered; elsewhere than on a
    /// loop it is as [`Here`](Self::Here).
    Gathered,
}

/// Each scheduler by name, with what it is for.
pub const SCHEDULERS: &[(&str, &str)] = &[
    ("hybrid", "event loops, and workers for handlers that block (the default)"),
    ("event", "event loops alone; a handler that blocks holds up its loop"),
    ("cohort", "event loops that run each stage for all who are ready, then the next stage"),
    ("nothread", "one thread: one connection from accept to close, then the next"),
    ("one-to-one", "a thread for each connection, as many as the kernel allows"),
    ("pool", "threads that each accept a connection and keep it until it closes"),
    ("accept-many", "one thread that accepts, and a pool that holds what it accepts"),
    ("queue", "a queue of stages, and a pool that works it off in order"),
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
        "cohort" => Arc::new(Cohort),
        "nothread" => Arc::new(NoThread::new()),
        "one-to-one" => Arc::new(OneToOne::new(ceiling::threads())?),
        "accept-many" => Arc::new(AcceptMany::new(settings.workers, settings.queue)?),
        "pool" => Arc::new(Pool::new(settings.workers)),
        "queue" => Arc::new(Queue::new(settings.workers, settings.queue)?),
        _ => Arc::new(Hybrid::growing(settings.workers, settings.most_workers, settings.queue)),
    })
}
