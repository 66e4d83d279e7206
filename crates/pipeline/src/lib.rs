//! The pipeline: sockets, threads and timers that carry a request from accept to reply.
//!
//! It knows a [`Handler`], and events of `bine-http`; it knows no page, no file and no table. Start
//! reading at [`Next`] and the four stages, then the event loop, then the schedulers.

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
mod inside;
mod lifecycle;
mod limits;
mod listener;
mod mailbox;
mod metrics;
mod next;
mod process_control;
mod quota;
mod run;
mod scheduler_names;
mod schedulers;
mod scheduling;
mod server;
mod settings;
mod slab;
mod stages;
mod system;
mod time;
pub mod tls;
mod transport;
mod watchdog;
mod workers;

/// What a program's own scheduler is made of, and the schedulers that there are.
pub mod scheduler {
    pub use bine_admission::queue::ServiceMetrics;

    pub use crate::arrival::{Arrival, Entrance};
    pub use crate::conversation::Conversations;
    pub use crate::mailbox::Ticket;
    pub use crate::metrics::WaitMetrics;
    pub use crate::next::{Kind, Next};
    pub use crate::scheduler_names::{SCHEDULERS, check};
    pub use crate::schedulers::{
        AcceptMany, Cohort, Event, Hybrid, NoThread, OneToOne, Pool, Queue, Row, serve_loops,
        serve_threads,
    };
    pub use crate::scheduling::{Place, Scheduler};
    pub use crate::server::Server;
    pub use crate::workers::Task;
}

pub use access::AccessSettings;
pub use address::{Address, AddressBlock, AddressSite, BadAddress, Peer};
pub use blocking::{blocking, overdue_calls};
pub use handler::FilePart;
pub use handler::Spool;
pub use handler::{After, Bell, Deliver, Hold, MakeWaiters, Sent, Waiters, Why};
pub use handler::{Answer, Bench, Handler, Responder, Work};
pub use handler::{Body, Incoming, Retained};
pub use handler::{Done, Finished, Follow, LaterReply, Outgoing};
pub use handler::{Gone, Sender, Stream, Writing};
pub use handler::{Living, Parting, Upgrade, Wire};
pub use handler::{Visitor, Who};
pub use inside::{Around, Errand, Errands, Inside, Then};
pub use limits::BudgetMetrics;
pub use limits::GuardMetrics;
pub use limits::Pressure;
pub use limits::memory_limit;
pub use listener::inherited;
pub use mailbox::Ticket;
pub use metrics::{BOUNDS, WaitMetrics};
pub use metrics::{LoopMetrics, SchedulerMetrics, ServerMetrics};
pub use next::{Kind, Next};
pub use process_control::control;
pub use process_control::supervise;
pub use process_control::{on_hangup, reopen_logs_on_signal, stop_on_signals};
pub use server::Server;
pub use settings::{Budgeted, Guards, Listen, Settings, Timeouts, WatchdogSettings};
pub use slab::Token;
pub use system::Transfer;
pub use system::{ProcessMetrics, process_metrics};
pub use system::{UnknownUser, User};
pub use system::{end_with_parent, is_supervised};
pub use system::{is_disk_full, write_private};
pub use system::{notify, notify_reloading};
pub use time::timeout;
pub use time::{Clock, Tick};
pub use transport::{Transport, Way};
pub use workers::Task;
