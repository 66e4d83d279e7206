//! Interfaces to the operating system: sockets, wakeups, users, private files, and the service
//! manager.

mod notify;
mod priority;
mod private_file;
mod process;
mod program_pages;
pub(crate) mod socket;
pub(crate) mod supervised;
mod user;
mod wakeup;

pub use notify::{notify, notify_reloading};
pub use priority::{lower_thread_priority, reduce_thread_priority};
pub use private_file::{is_disk_full, write_private};
pub use process::{ProcessMetrics, process_metrics, thread_cpu_time};
pub use socket::Transfer;
pub use supervised::{end_with_parent, is_supervised};
pub use user::{UnknownUser, User};

pub(crate) use notify::watchdog_limit;
pub(crate) use program_pages::release_program_pages;
pub(crate) use socket::{
    is_exhaustion, receive, receive_part, transmit, transmit_file, transmit_now,
};
pub(crate) use supervised::{HEARTBEAT, NOTICES, SOCKETS, STUCK, name, take_heartbeat};
pub(crate) use wakeup::{Wakeup, event_counter};
