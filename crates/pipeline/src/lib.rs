//! The pipeline: sockets, threads and timers that carry a request from accept to reply.
//!
//! It knows a [`Handler`], and events of `bine-http`; it knows no page, no file and no table. Start
//! reading at [`Next`] and the four stages, then the event loop, then the schedulers.

mod access;
mod address;
mod arrival;
mod aside;
mod blocking;
mod budget;
mod busy;
mod census;
mod clock;
mod connection;
mod context;
pub mod control;
mod conversation;
mod discard;
mod event_loop;
mod failure;
mod figures;
mod file_part;
mod generation;
mod guard;
mod handler;
mod hold;
mod incoming;
mod inside;
mod lifecycle;
mod link;
mod listener;
mod lobby;
mod mailbox;
mod next;
mod notify;
mod outgoing;
mod owner;
mod parcel;
mod pressure;
mod private_file;
mod process;
mod readings;
mod refusal;
mod relay;
mod run;
mod scheduler_names;
mod schedulers;
mod scheduling;
mod server;
mod settings;
mod shares;
mod signals;
mod slab;
mod slowness;
mod socket;
mod spool;
mod stages;
mod stream;
mod supervise;
mod supervised;
mod tally;
mod timeout;
pub mod tls;
mod user;
mod visitor;
mod waits;
mod wakeup;
mod warmth;
mod watchdog;
mod wheel;
mod wire;
mod workers;

/// What a program's own scheduler is made of, and the schedulers that there are.
pub mod scheduler {
    pub use bine_admission::queue::ServiceFigures;

    pub use crate::arrival::{Arrival, Entrance};
    pub use crate::conversation::Conversations;
    pub use crate::mailbox::Ticket;
    pub use crate::next::{Kind, Next};
    pub use crate::scheduler_names::{SCHEDULERS, check};
    pub use crate::schedulers::{
        AcceptMany, Cohort, Event, Hybrid, NoThread, OneToOne, Pool, Queue, Row, serve_loops,
        serve_threads,
    };
    pub use crate::scheduling::{Place, Scheduler};
    pub use crate::server::Server;
    pub use crate::waits::WaitFigures;
    pub use crate::workers::Task;
}

pub use access::AccessSettings;
pub use address::{Address, AddressBlock, AddressSite, BadAddress, Peer};
pub use blocking::{blocking, overdue_calls};
pub use budget::BudgetFigures;
pub use clock::{Clock, Tick};
pub use figures::{Figures, LoopFigures, SchedulerFigures};
pub use file_part::FilePart;
pub use guard::GuardFigures;
pub use handler::{Answer, Bench, Handler, Responder, Work};
pub use hold::{After, Bell, Deliver, Hold, MakeWaiters, Sent, Waiters, Why};
pub use incoming::{Body, Incoming, Retained};
pub use inside::{Around, Errand, Errands, Inside, Then};
pub use link::{Link, Way};
pub use listener::inherited;
pub use mailbox::Ticket;
pub use next::{Kind, Next};
pub use notify::{notify, notify_reloading};
pub use outgoing::{Done, Finished, Follow, LaterReply, Outgoing};
pub use pressure::Pressure;
pub use private_file::{is_disk_full, write_private};
pub use process::{ProcessFigures, process_figures};
pub use readings::memory_limit;
pub use server::Server;
pub use settings::{Budgeted, Guards, Listen, Settings, Timeouts, WatchdogSettings};
pub use signals::{on_hangup, reopen_logs_on_signal, stop_on_signals};
pub use slab::Token;
pub use socket::Transfer;
pub use spool::Spool;
pub use stream::{Gone, Sender, Stream, Writing};
pub use supervise::supervise;
pub use supervised::{end_with_parent, is_supervised};
pub use timeout::timeout;
pub use user::{UnknownUser, User};
pub use visitor::{Visitor, Who};
pub use waits::{BOUNDS, WaitFigures};
pub use wire::{Living, Parting, Upgrade, Wire};
pub use workers::Task;
