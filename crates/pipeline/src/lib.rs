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
mod census;
mod clock;
mod connection;
pub mod control;
mod conversation;
mod discard;
mod event_loop;
mod figures;
mod generation;
mod guard;
mod handler;
mod hold;
mod inside;
mod lifecycle;
mod link;
mod listener;
mod lobby;
mod mailbox;
mod next;
mod notify;
mod owner;
mod parcel;
mod pressure;
mod private_file;
mod process;
mod readings;
mod refusal;
mod relay;
pub mod scheduler;
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
mod waits;
mod warmth;
mod watchdog;
mod wheel;
mod wire;
mod workers;

pub use access::AccessSettings;
pub use address::{Address, AddressBlock, AddressSite, BadAddress, Peer};
pub use blocking::{blocking, overdue_calls};
pub use budget::BudgetFigures;
pub use clock::{Clock, Tick};
pub use figures::{Figures, LoopFigures, SchedulerFigures};
pub use guard::GuardFigures;
pub use handler::{
    Answer, Bench, Body, Done, FilePart, Finished, Follow, Handler, Incoming, LaterReply, Outgoing,
    Responder, Retained, Visitor, Who, Work,
};
pub use hold::{After, Bell, Deliver, Hold, MakeWaiters, Sent, Waiters, Why};
pub use inside::{Around, Errand, Errands, Inside, Then};
pub use link::{Link, Way};
pub use listener::inherited;
pub use next::{Kind, Next};
pub use notify::{notify, notify_reloading};
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
pub use waits::{BOUNDS, WaitFigures};
pub use wire::{Living, Parting, Upgrade, Wire};
pub use workers::{Task, Ticket};
