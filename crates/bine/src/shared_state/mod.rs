//! State of one run that several nodes share besides tables: who is present where, values of signals,
//! and messages to other nodes.
//!
//! All of it travels as records of the journal, so each node applies the same changes in the same
//! order. A program on one machine writes no such record
//! (docs/decisions/0022-shared-state.md).

#[cfg(feature = "cluster")]
mod discarded;
mod engine;
mod machine;
mod record;
mod subsystem;

#[cfg(feature = "cluster")]
pub(crate) use discarded::DiscardedState;
pub(crate) use engine::{Roster, RosterObserver, SharedState};
pub(crate) use machine::{RosterChange, RosterChangeKind};
