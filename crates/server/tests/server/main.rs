//! Integration tests of a whole server, over real sockets and with its own threads.
//!
//! No test sleeps. A test waits for an event (a response, the arrival of a handler at its gate, the
//! end of a server) and fails after [`PATIENCE`].

mod access;
mod budgets;
mod cohorts;
mod ending;
mod exhaustion;
mod faults;
mod gate;
mod handshakes;
mod holds;
mod house;
mod http2;
mod kinds;
mod limits;
mod loop_rules;
mod metrics;
mod news;
mod overload;
mod peer;
mod pieces;
mod process;
mod program;
mod proxies;
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

/// The time limit for each awaited event, with a margin for busy machines.
const PATIENCE: Duration = Duration::from_secs(20);
