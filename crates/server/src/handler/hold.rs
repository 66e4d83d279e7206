//! Decides how a reply waits for something to happen: its connection rests, and what is owed to it is known by the
//! waiters of its thread.
//!
//! A held connection has no buffer, no task and no future. Whoever has news for the waiters rings their [`Bell`], and
//! each thread sends to its own in slices, so that all others keep their turns between.

use std::any::Any;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bine_http::Exchange;

use crate::system::Wakeup;
use crate::time::Clock;

/// A reply that waits for something to happen.
#[derive(Clone)]
pub struct Hold {
    /// What it waits for; the program's own.
    pub subject: Arc<dyn Any + Send + Sync>,
    /// Where in it the peer is; the program's own.
    pub position: u64,
    /// More of that; the program's own.
    pub detail: u32,
    /// How it wants to be told; the program's own.
    pub manner: u32,
    /// What the reply must know of its request.
    pub exchange: Exchange,
}

/// Makes each thread its waiters, for whom others ring this bell.
pub type MakeWaiters = Box<dyn Fn(Rc<Clock>, Bell) -> Box<dyn Waiters> + Send + Sync>;

/// Those on one thread whose replies wait for something to happen.
pub trait Waiters {
    /// Takes in a connection, which is named by `place` from here on, and names it by a key of its own.
    fn park(&mut self, place: u64, hold: Hold) -> u32;

    /// Appends what is owed to one of them now, which may be nothing, and says what becomes of it. Whoever is
    /// [over](After::Over) is forgotten by both sides.
    fn serve(&mut self, key: u32, why: Why, out: &mut Vec<u8>) -> After;

    /// The bell has rung: sends to those who have waited for it, to `slice` of them at most. True: there are more.
    fn deliver(&mut self, slice: usize, out: &mut dyn Deliver) -> bool;

    /// Its peer has gone.
    fn forget(&mut self, key: u32);
}

/// Why a waiter is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// It was parked this moment, and what it waits for may be there already.
    Parked,
    /// All that was sent before has left; a stream may go on.
    Room,
    /// It has waited as long as it said.
    Time,
    /// No thread can be lent to it. It must be [over](After::Over).
    NoThread,
    /// The server stops: it must be [over](After::Over), and its connection closes.
    Stop,
}

/// What becomes of a waiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    /// The reply is whole.
    Over {
        /// The connection must close behind it.
        close: bool,
    },
    /// It waits on, and is asked for again after this time.
    Waits(Duration),
}

/// Where waiters are sent to.
pub trait Deliver {
    /// Sends `bytes` to the connection that was parked as `place`.
    fn send(&mut self, place: u64, bytes: &[u8], after: After) -> Sent;
}

/// What came of sending to a waiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// It was taken, if perhaps not all of it has left.
    Taken,
    /// Nothing was taken: the peer has not read what came before. The waiter is [served](Waiters::serve) when it has.
    Full,
    /// The connection is no more. The waiter is not [forgotten](Waiters::forget) through the other call as well.
    Gone,
}

/// Has the waiters of one thread look for news, from any thread.
#[derive(Clone)]
pub struct Bell(pub(crate) Arc<Wakeup>);

impl Bell {
    /// Rings. While the thread has not looked, more of this costs one atomic operation.
    pub fn ring(&self) {
        self.0.ring();
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bell")
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("position", &self.position)
            .field("manner", &self.manner)
            .finish_non_exhaustive()
    }
}
