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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::task::{Context, Wake};
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Longer than a test may run.
    const LONG: Duration = Duration::from_secs(20);

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Wakes {
        fn count(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    fn poll(reader: &Reader, wakes: &Arc<Wakes>) -> Poll<Result<Option<Vec<u8>>, String>> {
        let waker = Waker::from(Arc::clone(wakes));
        pin!(reader.next()).poll(&mut Context::from_waker(&waker))
    }

    #[test]
    fn wakes_a_waiting_reader_for_each_part_and_for_the_end() {
        for (end, last) in
            [(End::Whole, Ok(None)), (End::Cut, Err("the handler panicked".to_owned()))]
        {
            let (relay, wakes) = (Arc::new(Relay::default()), Arc::new(Wakes::default()));
            let reader = Reader(Arc::clone(&relay));
            assert!(poll(&reader, &wakes).is_pending());
            relay.put(&mut b"one ".to_vec());
            assert_eq!(wakes.count(), 1);
            // No task waits, so the part joins the first one.
            relay.put(&mut b"two".to_vec());
            assert_eq!(wakes.count(), 1);
            assert_eq!(poll(&reader, &wakes), Poll::Ready(Ok(Some(b"one two".to_vec()))));
            assert!(poll(&reader, &wakes).is_pending());
            relay.end(end);
            assert_eq!(wakes.count(), 2);
            assert_eq!(poll(&reader, &wakes), Poll::Ready(last));
        }
    }

    #[test]
    fn sends_all_parts_before_the_end() {
        let (relay, wakes) = (Arc::new(Relay::default()), Arc::new(Wakes::default()));
        let reader = Reader(Arc::clone(&relay));
        relay.put(&mut b"rest".to_vec());
        relay.end(End::Whole);
        assert_eq!(poll(&reader, &wakes), Poll::Ready(Ok(Some(b"rest".to_vec()))));
        assert_eq!(poll(&reader, &wakes), Poll::Ready(Ok(None)));
    }

    #[test]
    fn makes_the_worker_wait_while_the_reader_is_behind() {
        for is_dropped in [false, true] {
            let relay = Arc::new(Relay::default());
            let reader = Reader(Arc::clone(&relay));
            relay.put(&mut vec![0; MAX_AHEAD]);
            let (sender, progress) = channel();
            let worker = thread::spawn({
                let relay = Arc::clone(&relay);
                move || {
                    sender.send("waits").unwrap();
                    relay.put(&mut vec![1]);
                    sender.send("has continued").unwrap();
                }
            });
            assert_eq!(progress.recv_timeout(LONG), Ok("waits"));
            assert!(progress.try_recv().is_err());
            if is_dropped {
                drop(reader);
                assert_eq!(progress.recv_timeout(LONG), Ok("has continued"));
                assert!(relay.lock().ready.is_empty());
            } else {
                let wakes = Arc::new(Wakes::default());
                let Poll::Ready(Ok(Some(part))) = poll(&reader, &wakes) else {
                    panic!("there is no part")
                };
                assert_eq!(part.len(), MAX_AHEAD);
                assert_eq!(progress.recv_timeout(LONG), Ok("has continued"));
                assert_eq!(poll(&reader, &wakes), Poll::Ready(Ok(Some(vec![1]))));
            }
            worker.join().unwrap();
        }
    }
}
