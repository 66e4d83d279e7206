//! Decides what is kept of a connection between two stages while its thread goes on with another.
//!
//! A thread runs the stages of one connection at a time, so what is known between them (the head
//! in the scratch buffer, replies that are not sent yet) is the thread's, not the connection's. A
//! scheduler that does something else in between saves it here.

use std::sync::Arc;

use bine_http::HeadIndex;

use crate::handler::{Retained, Who, Work};
use crate::limits::Reservation;

/// What a thread knows of one connection between two stages. Used again, for its buffers.
#[derive(Default)]
pub(crate) struct SavedContext {
    /// The head of the request that is to be answered, then what was received behind it.
    pub(crate) received: Vec<u8>,
    /// Where in `received` the head ends.
    pub(crate) head: usize,
    pub(crate) index: Option<HeadIndex>,
    pub(crate) who: Who,
    /// Replies made and not sent.
    pub(crate) output: Vec<u8>,
    pub(crate) owed: Reservation,
    pub(crate) fresh: bool,
    pub(crate) drained: bool,
    pub(crate) slice: u32,
    pub(crate) intake: usize,
    pub(crate) work: Option<(Arc<dyn Work>, Box<Retained>)>,
}

/// Buffers above this size are given back to the system rather than kept.
pub(crate) const KEPT: usize = 16 * 1024;
/// Kept for use again: as many as go through the stages together, and a few.
pub(crate) const SPARE: usize = 80;
