//! Suspended responses: the connection waits for an event, and the waiters of its thread know what
//! to send to it.
//!
//! A suspended connection has no buffer, no task and no future. When there are events for the
//! waiters of a thread, the program rings their [`WakeHandle`]. The thread then sends to its
//! waiters in slices, so that its other connections run between two slices.

use std::any::Any;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bine_http::Exchange;

use crate::system::Wakeup;
use crate::time::Clock;

/// A suspended response.
#[derive(Clone)]
pub struct SuspendedResponse {
    /// The event source that it waits for. Only the program interprets it.
    pub subject: Arc<dyn Any + Send + Sync>,
    /// The client's position in that source. Only the program interprets it.
    pub position: u64,
    /// More about that position. Only the program interprets it.
    pub detail: u32,
    /// The form in which the client gets events. Only the program interprets it.
    pub manner: u32,
    /// The properties of the request on which the response depends.
    pub exchange: Exchange,
}

/// Creates the waiters of one thread. The program rings the given bell when they have events.
pub type WaitersFactory = Box<dyn Fn(Rc<Clock>, WakeHandle) -> Box<dyn Waiters> + Send + Sync>;

/// The suspended responses of one thread.
pub trait Waiters {
    /// Adds a connection. The server refers to it by `place`; the returned key refers to it in the
    /// other calls.
    fn park(&mut self, place: u64, hold: SuspendedResponse) -> u32;

    /// Appends the bytes that are due to one waiter now, possibly none, and returns its next state.
    /// Both sides remove a waiter that is [over](ServeOutcome::Over).
    fn serve(&mut self, key: u32, why: ServeReason, out: &mut Vec<u8>) -> ServeOutcome;

    /// Called after the bell was rung: sends to waiters that have events, to at most `slice` of
    /// them. Returns true if more waiters have events.
    fn deliver(&mut self, slice: usize, out: &mut dyn WaiterSink) -> bool;

    /// Removes a waiter whose client has closed the connection.
    fn forget(&mut self, key: u32);
}

/// The reason for a call of [`Waiters::serve`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServeReason {
    /// The response was suspended just now; its event may have happened already.
    Parked,
    /// All earlier bytes have been sent; a stream may continue.
    Room,
    /// The time that the waiter asked for has passed.
    Time,
    /// The scheduler has no thread for it. It must be [over](ServeOutcome::Over).
    NoThread,
    /// The server stops. The response must be [over](ServeOutcome::Over), and its connection
    /// closes.
    Stop,
}

/// The next state of a waiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServeOutcome {
    /// The reply is complete.
    Over {
        /// The connection must close after it.
        close: bool,
    },
    /// It keeps waiting, and is served again after this time.
    Waits(Duration),
}

/// The connections that waiters are sent to.
pub trait WaiterSink {
    /// Sends `bytes` to the connection that was parked as `place`.
    fn send(&mut self, place: u64, bytes: &[u8], after: ServeOutcome) -> SendOutcome;
}

/// The result of a send to a waiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendOutcome {
    /// The connection accepted the bytes. Some may still be unsent.
    Taken,
    /// The connection accepted no bytes, because the client has not read the earlier ones. The
    /// server [serves](Waiters::serve) the waiter when the client has.
    Full,
    /// The connection is closed. The server does not [forget](Waiters::forget) the waiter in
    /// addition.
    Gone,
}

/// Wakes the waiters of one thread. Any thread may use it.
#[derive(Clone)]
pub struct WakeHandle(pub(crate) Arc<Wakeup>);

impl WakeHandle {
    /// Rings. Further calls cost one atomic operation each until the thread reacts.
    pub fn wake(&self) {
        self.0.ring();
    }
}

impl fmt::Debug for WakeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WakeHandle")
    }
}

impl fmt::Debug for SuspendedResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuspendedResponse")
            .field("position", &self.position)
            .field("manner", &self.manner)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_position_and_form_of_a_suspended_response() {
        let suspended = SuspendedResponse {
            subject: Arc::new(()),
            position: 17,
            detail: 4,
            manner: 3,
            exchange: Exchange::closing(),
        };
        assert_eq!(format!("{suspended:?}"), "SuspendedResponse { position: 17, manner: 3, .. }");
        let handle = WakeHandle(Arc::new(Wakeup::new().unwrap()));
        assert_eq!(format!("{handle:?}"), "WakeHandle");
        handle.wake();
        assert!(handle.0.take_ring() && !handle.0.take_ring());
    }
}
