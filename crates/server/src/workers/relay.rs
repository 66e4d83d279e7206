//! Streams a response to the client while a worker still writes it. The relay bounds the bytes that
//! the worker may be ahead, and reports the end of each side to its counterpart.

use std::future::poll_fn;
use std::mem::take;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use bine_http::{BodyFraming, Version};

use crate::access::measure;
use crate::handler::{Finished, Follow, Retained, Stream};
use crate::mailbox::{Letter, Ticket};

/// The worker waits while the connection has this many bytes to send. The connection itself buffers
/// the same amount again.
const MAX_AHEAD: usize = 64 * 1024;

/// The worker's side of one streamed response. The first part sends the head of the response to the
/// event loop; later parts follow as a stream.
pub(crate) struct ResponseStreamer<'w> {
    ticket: &'w Ticket,
    request: &'w Retained,
    relay: Option<Arc<Relay>>,
}

impl<'w> ResponseStreamer<'w> {
    pub(crate) const fn new(ticket: &'w Ticket, request: &'w Retained) -> Self {
        Self { ticket, request, relay: None }
    }

    /// Sends and clears `buffer`. Waits while the client reads too slowly. The deadlines of the
    /// connection bound this wait.
    pub(crate) fn send(&mut self, buffer: &mut Vec<u8>) {
        match &self.relay {
            Some(relay) => relay.put(buffer),
            None => self.send_head(buffer),
        }
        buffer.clear();
    }

    /// Whether a part of the response was sent.
    pub(crate) const fn has_sent(&self) -> bool {
        self.relay.is_some()
    }

    /// Ends the response. An incomplete response closes its connection.
    pub(crate) fn end(self, is_whole: bool) {
        if let Some(relay) = self.relay {
            relay.end(if is_whole { End::Whole } else { End::Cut });
        }
    }

    fn send_head(&mut self, buffer: &[u8]) {
        let Some((_status, head)) = measure(buffer) else { return };
        let (head, content) = buffer.split_at(head);
        let relay = Arc::new(Relay::default());
        relay.lock().ready.extend_from_slice(content);
        let reader = Reader(Arc::clone(&relay));
        // The writer frames the body, and also handles HTTP/1.0 clients, which do not support
        // chunks.
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

/// The state that a worker and its connection share.
#[derive(Default)]
struct Relay {
    state: Mutex<RelayState>,
    has_room: Condvar,
}

#[derive(Default)]
struct RelayState {
    ready: Vec<u8>,
    end: Option<End>,
    /// Whether the connection has dropped the reader.
    is_reader_dropped: bool,
    reader: Option<Waker>,
}

#[derive(Clone, Copy)]
enum End {
    Whole,
    Cut,
}

impl Relay {
    fn put(&self, part: &mut Vec<u8>) {
        let is_full =
            |state: &mut RelayState| state.ready.len() >= MAX_AHEAD && !state.is_reader_dropped;
        let waited = self.has_room.wait_while(self.lock(), is_full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_reader_dropped {
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

    /// Wakes the reader after releasing the lock, since the reader may take the lock at once.
    fn wake_reader(mut state: MutexGuard<'_, RelayState>) {
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, RelayState> {
        // No code panics while it holds this lock, so a poisoned state is still consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connection's side. After a drop the worker continues, and its output is discarded.
struct Reader(Arc<Relay>);

impl Reader {
    /// Returns the next part, or `None` at the end.
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
                Some(End::Cut) => Poll::Ready(Err("the handler panicked".to_owned())),
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
        state.is_reader_dropped = true;
        state.ready = Vec::new();
        drop(state);
        self.0.has_room.notify_one();
    }
}
