//! The state of a connection between two stages, saved while its thread runs a different
//! connection.
//!
//! A thread runs the stages of one connection at a time, so the state between two stages (the head
//! in the scratch buffer, replies that are not sent yet) belongs to the thread, not to the
//! connection. A scheduler that interleaves connections saves it here.

use std::sync::Arc;

use crate::connection::current_request::CurrentRequest;
use crate::handler::{Retained, Work};
use crate::limits::Reservation;

/// The state of one connection between two stages. Reused for its buffers.
#[derive(Default)]
pub(crate) struct SavedContext {
    /// The head of the request that will be answered, then the bytes received after it.
    pub(crate) received: Vec<u8>,
    /// The request that will be answered. Its head is at the start of `received`.
    pub(crate) current: CurrentRequest,
    /// Replies that are written and not sent.
    pub(crate) output: Vec<u8>,
    pub(crate) output_reservation: Reservation,
    pub(crate) has_new_input: bool,
    pub(crate) is_socket_empty: bool,
    pub(crate) requests_left: u32,
    pub(crate) receive_allowance: usize,
    pub(crate) work: Option<(Arc<dyn Work>, Box<Retained>)>,
}

/// A larger buffer is freed instead of kept.
pub(crate) const MAX_BUFFER: usize = 16 * 1024;
/// The number of spare values to keep: a few more than go through the stages together.
pub(crate) const MAX_SPARE: usize = 80;
