//! Decides what a whole server promises, over real sockets and with threads of its own.
//!
//! Nothing here sleeps. A test waits for something that happens: a reply, a handler that has
//! arrived at its gate, a server that has ended; and gives up after [`PATIENCE`].

mod access;
mod budgets;
mod cohorts;
mod ending;
mod exhaustion;
mod faults;
mod gate;
mod holds;
mod house;
mod kinds;
mod limits;
mod loop_rules;
mod metrics;
mod news;
mod overload;
mod peer;
mod program;
mod queues;
mod regressions;
mod reload;
mod rows;
mod secrecy;
mod spool;
mod streams;
mod timeouts;
mod tls;
mod upgrades;

use std::time::Duration;

/// How long a test waits for what must come; on a machine that is busy with other things too.
const PATIENCE: Duration = Duration::from_secs(20);
