//! Decides how a reply leaves that a worker is still writing: how far the worker may be ahead of its peer, and what
//! each of the two learns of the other's end.

use std::future::poll_fn;
use std::mem::take;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use bine_http::{BodyFraming, Version};

use crate::access::measure;
use crate::handler::{Finished, Follow, Retained, Stream};
use crate::mailbox::{Letter, Ticket};

/// A worker waits while this much of its reply is not taken; as much again is with the connection.
const AHEAD: usize = 64 * 1024;

/// A worker's way out for one reply. The first part that it carries takes the reply's head to the loop; what comes
/// later follows as a stream.
pub(crate) struct Courier<'w> {
    ticket: &'w Ticket,
    request: &'w Retained,
    relay: Option<Arc<Relay>>,
}

impl<'w> Courier<'w> {
    pub(crate) const fn new(ticket: &'w Ticket, request: &'w Retained) -> Self {
        Self { ticket, request, relay: None }
    }

    /// Takes all of `buffer`. Waits while the peer is too far behind, which ends with its connection at the latest:
    /// that has a deadline for each.
    pub(crate) fn carry(&mut self, buffer: &mut Vec<u8>) {
        match &self.relay {
            Some(relay) => relay.put(buffer),
            None => self.depart(buffer),
        }
        buffer.clear();
    }

    /// Whether a part of the reply has left.
    pub(crate) const fn has_left(&self) -> bool {
        self.relay.is_some()
    }

    /// The reply is over, whole or not. What is not whole has its connection cut.
    pub(crate) fn end(self, is_whole: bool) {
        if let Some(relay) = self.relay {
            relay.end(if is_whole { End::Whole } else { End::Cut });
        }
    }

    fn depart(&mut self, buffer: &[u8]) {
        let Some((_status, head)) = measure(buffer) else { return };
        let (head, content) = buffer.split_at(head);
        let relay = Arc::new(Relay::default());
        relay.lock().ready.extend_from_slice(content);
        let reader = Reader(Arc::clone(&relay));
        // Framed where it is written, which also finds out that an old peer knows no chunks.
        let stream = Stream::new(BodyFraming::Preframed, |mut sender| {
            Box::pin(async move {
                while let Some(part) = reader.next().await? {
                    sender.send(part).await.map_err(|gone| gone.to_string())?;
                }
                Ok(())
            })
        });
        let exchange = self.request.exchange;
        let finished = Finished {
            bytes: head.to_vec(),
            follow: Some(Follow::Stream(stream)),
            close: !exchange.keep_alive || exchange.version == Version::Http10,
        };
        let request = Box::new(self.request.clone());
        self.ticket.reply_to.post(Letter::Finished(self.ticket.token, request, finished));
        self.relay = Some(relay);
    }
}

/// What a worker and the connection that it writes for share.
#[derive(Default)]
struct Relay {
    state: Mutex<State>,
    has_room: Condvar,
}

#[derive(Default)]
struct State {
    ready: Vec<u8>,
    end: Option<End>,
    /// Nobody will take anything any more.
    is_deserted: bool,
    reader: Option<Waker>,
}

#[derive(Clone, Copy)]
enum End {
    Whole,
    Cut,
}

impl Relay {
    fn put(&self, part: &mut Vec<u8>) {
        let is_full = |state: &mut State| state.ready.len() >= AHEAD && !state.is_deserted;
        let waited = self.has_room.wait_while(self.lock(), is_full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_deserted {
            return;
        }
        if state.ready.is_empty() {
            std::mem::swap(&mut state.ready, part);
        } else {
            state.ready.append(part);
        }
        Self::wake_reader(state);
    }

    fn end(&self, end: End) {
        let mut state = self.lock();
        state.end = Some(end);
        Self::wake_reader(state);
    }

    /// Wakes outside the lock: the reader may look at once.
    fn wake_reader(mut state: MutexGuard<'_, State>) {
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under it can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connection's end. Dropping it lets the worker go on, for nobody.
struct Reader(Arc<Relay>);

impl Reader {
    /// The next part; `None` at the end.
    async fn next(&self) -> Result<Option<Vec<u8>>, String> {
        poll_fn(|task| {
            let mut state = self.0.lock();
            if !state.ready.is_empty() {
                let ready = take(&mut state.ready);
                drop(state);
                self.0.has_room.notify_one();
                return Poll::Ready(Ok(Some(ready)));
            }
            match state.end {
                Some(End::Whole) => Poll::Ready(Ok(None)),
                Some(End::Cut) => Poll::Ready(Err("it panicked".to_owned())),
                None => {
                    state.reader = Some(task.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_deserted = true;
        state.ready = Vec::new();
        drop(state);
        self.0.has_room.notify_one();
    }
}
