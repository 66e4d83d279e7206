//! The server: sockets, threads and timers that carry a request from accept to reply.
//!
//! This crate depends on a [`Handler`] and on events of `bine-http`. It contains no pages, files or
//! tables.
//!
//! Modules depend downwards only. From the lowest layer up:
//!
//! - `time`, `system`, `address`, `slab`: the interface to the kernel, and basic types.
//! - `quota`, `limits`, `settings`, `tls`, `memory_stream`, `transport`: the limits of a connection,
//!   and the transport of its bytes.
//! - `handler`: the interface to the program. `access` and `metrics` record requests and events.
//!   `refusal`: the responses to connections that the server does not serve.
//! - `generation`, `connection`: a snapshot of the configuration; the state of one connection and
//!   of one thread.
//! - `stages`, `workers`: the steps from one request to the next, and the threads that may block.
//! - `server`: the state that all threads share. `scheduling`: the contract between a scheduler and
//!   its threads.
//! - `http2`: connections of HTTP/2, whose streams are connections for an event loop.
//! - `event_loop`, `conversation`, `arrival`: threads with many connections, threads with one
//!   connection, and connections that wait for a thread.
//! - `schedulers`, `watchdog`, `stop_report`, `run`, `process_control`: policies for threads,
//!   supervision, start and stop.
//!
//! Start reading at [`Next`] and the four stages, then the event loop, then the schedulers.

mod access;
mod address;
mod arrival;
mod blocking;
mod connection;
mod conversation;
mod discard;
mod event_loop;
mod generation;
mod handler;
mod http2;
mod internal_requests;
mod leave;
mod lifecycle;
mod limits;
mod listener;
mod listener_watch;
mod mailbox;
mod memory_stream;
mod metrics;
mod next;
mod process_control;
mod proxies;
mod quota;
mod refusal;
mod run;
mod scheduler_names;
mod schedulers;
mod scheduling;
mod server;
mod settings;
mod slab;
mod stages;
mod stop_report;
mod system;
#[cfg(test)]
mod test_support;
mod time;
pub mod tls;
mod transport;
mod watchdog;
mod workers;

/// The interface for a program's own scheduler, and the schedulers of this crate.
pub mod scheduler {
    pub use bine_admission::queue::ServiceMetrics;

    pub use crate::arrival::{Acceptor, Arrival};
    pub use crate::conversation::Conversations;
    pub use crate::mailbox::Ticket;
    pub use crate::metrics::WaitMetrics;
    pub use crate::next::{Next, ResponseKind};
    pub use crate::scheduler_names::{SCHEDULERS, check};
    pub use crate::schedulers::{
        AcceptMany, Cohort, Event, Hybrid, NoThread, OneToOne, Pool, Queue, SingleThreadScheduler,
        serve_loops, serve_threads,
    };
    pub use crate::scheduling::{Placement, Scheduler};
    pub use crate::server::Server;
    pub use crate::workers::Task;
}

pub use access::AccessSettings;
pub use address::{Address, AddressBlock, AddressSite, BadAddress, ClientAddress};
pub use blocking::{blocking, overdue_calls};
pub use handler::{
    Answer, Body, BodyReader, BodySource, CloseReason, ContentEncoder, Disconnected, Done,
    FilePart, Finished, Follow, Handler, HandlerContext, Identity, Incoming, Outgoing, Principal,
    ReplyFuture, Responder, Retained, SendOutcome, Sender, ServeOutcome, ServeReason,
    ServerRefusal, Spool, Stream, StreamFuture, SuspendedResponse, Upgrade, UpgradeFuture,
    UpgradedConnection, WaiterSink, Waiters, WaitersFactory, WakeHandle, Work, body_stream,
};
pub use internal_requests::{
    InternalRequest, InternalRequestSource, InternalRunner, ReplyHandler, RunHook,
    answer_internally,
};
pub use limits::{BudgetMetrics, GuardMetrics, Pressure, memory_limit};
pub use listener::inherited;
pub use mailbox::Ticket;
pub use metrics::{BOUNDS, LoopMetrics, SchedulerMetrics, ServerMetrics, WaitMetrics};
pub use next::{Next, ResponseKind};
pub use process_control::{control, on_hangup, reopen_logs_on_signal, stop_on_signals, supervise};
pub use proxies::{BadProxy, ProxyFields, TrustedProxies};
pub use server::{LeaveHook, Server, WorkReport};
pub use settings::{ByteBudgets, Guards, Listen, Settings, Timeouts, WatchdogSettings};
pub use slab::Token;
pub use system::{
    ProcessMetrics, Transfer, UnknownUser, User, end_with_parent, is_disk_full, is_supervised,
    lower_thread_priority, notify, notify_reloading, process_metrics, reduce_thread_priority,
    thread_cpu_time, write_private,
};
pub use time::{Clock, Tick, timeout};
pub use transport::{Direction, Transport};
pub use workers::Task;
