//! Followers: a program's own subscriptions, message by message.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::str::Utf8Error;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use bine_push::{self as push, Cursor, GapPolicy, MessageBatch, Refused, Rest, Start};
use serde::Deserialize;

use super::engine::Engine;
use super::reader::Reader;
use super::response::milliseconds;
use super::subscription::SubscriptionSpec;
use crate::store::Time;

/// A subscription of the program ([`Channels::follow`](super::Channels::follow) creates it). It
/// buffers at most a hundred messages and a megabyte; later messages stay in their channels for as
/// long as these retain them.
pub struct Follower {
    reader: Reader,
    /// Messages read and not yet returned.
    ready: VecDeque<Arc<push::Message>>,
    epoch: u32,
    /// A gap to report before those messages.
    hole: Option<Cursor>,
    /// The last reported gap.
    told: Option<Cursor>,
    /// Whether more messages are available: the next read first yields to other tasks.
    yields: bool,
    is_over: bool,
}

/// A published message.
#[derive(Clone, Debug)]
pub struct ReceivedMessage {
    message: Arc<push::Message>,
    epoch: u32,
}

/// An event that a follower returns in place of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Interruption {
    /// Messages up to `until` were dropped before the follower could read them. It continues with
    /// the next message.
    Gap {
        /// The cursor up to which messages may be missing.
        until: Cursor,
    },
    /// No message arrived within the time passed to [`Follower::wait`]. The follower continues.
    TimedOut,
    /// The follower has ended: a channel does not exist (any more), or the cursor belongs to other
    /// data.
    Refused(Refused),
}

impl Follower {
    pub(crate) fn new(engine: Arc<Engine>, names: Box<[Box<str>]>) -> Self {
        // Messages published from now on count, even if the program reads later.
        let now = engine.hub(|hub| hub.watermark());
        let start = now.map_or(Start::Now, Start::After);
        // A gap is reported as an interruption before the messages that follow it.
        let spec = SubscriptionSpec { holes: GapPolicy::Allow, ..SubscriptionSpec::of(names) };
        let reader = Reader::new(engine, spec, start);
        let (ready, epoch) = (VecDeque::new(), now.map_or(0, |now| now.epoch));
        Self { reader, ready, epoch, hole: None, told: None, yields: false, is_over: false }
    }

    /// Begins after the message with this cursor.
    #[must_use]
    pub fn after(self, cursor: Cursor) -> Self {
        self.from(Start::After(cursor))
    }

    /// Begins with the earliest retained message.
    #[must_use]
    pub fn earliest(self) -> Self {
        self.from(Start::Earliest)
    }

    /// Begins with messages published at this time or later.
    #[must_use]
    pub fn since(self, time: impl Into<Time>) -> Self {
        self.from(Start::Since(milliseconds(time.into())))
    }

    fn from(mut self, start: Start) -> Self {
        self.reader.seek(start);
        self
    }

    /// Waits for the next message. `None`: all channels are closed, or the server has ended.
    /// Dropping the future loses no message.
    ///
    /// # Errors
    ///
    /// Messages were [lost](Interruption::Gap), which a program may ignore by calling again, or
    /// the follower was [rejected](Interruption::Refused).
    pub async fn next(&mut self) -> Option<Result<ReceivedMessage, Interruption>> {
        poll_fn(|task| self.poll_next(task)).await
    }

    /// Blocks the thread until the next message, at most for this time. Do not call it in an async
    /// function: it would block the other tasks of the thread.
    ///
    /// # Errors
    ///
    /// Like [`next`](Self::next), and [`Interruption::TimedOut`] after the time.
    pub fn wait(&mut self, at_most: Duration) -> Option<Result<ReceivedMessage, Interruption>> {
        let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
        let begin = Instant::now();
        loop {
            if let Poll::Ready(next) = self.poll_message(&mut Context::from_waker(&waker)) {
                return next;
            }
            match at_most.checked_sub(begin.elapsed()) {
                Some(left) if !left.is_zero() => thread::park_timeout(left),
                _ => return Some(Err(Interruption::TimedOut)),
            }
        }
    }

    /// Polls for [`next`](Self::next), for implementations of stream traits.
    pub fn poll_next(
        &mut self,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<ReceivedMessage, Interruption>>> {
        if self.ready.is_empty() && std::mem::take(&mut self.yields) {
            task.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.poll_message(task)
    }

    fn poll_message(
        &mut self,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<ReceivedMessage, Interruption>>> {
        loop {
            if let Some(until) = self.hole.take() {
                self.told = Some(until);
                return Poll::Ready(Some(Err(Interruption::Gap { until })));
            }
            if let Some(message) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(ReceivedMessage { message, epoch: self.epoch })));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            match ready!(self.reader.poll(task)) {
                Some(Ok(batch)) => self.take(batch),
                Some(Err(refused)) => {
                    self.is_over = true;
                    return Poll::Ready(Some(Err(Interruption::Refused(refused))));
                }
                None => self.is_over = true,
            }
        }
    }

    fn take(&mut self, batch: MessageBatch) {
        self.is_over = matches!(batch.rest, Rest::Closed | Rest::Ended);
        self.yields = matches!(batch.rest, Rest::More);
        // The same gap appears in several batches if only some of the channels have it.
        self.hole = batch.lost.filter(|lost| self.told.is_none_or(|told| *lost > told));
        (self.ready, self.epoch) = (batch.messages.into(), batch.next.epoch);
    }
}

impl ReceivedMessage {
    /// The position of the message; a follower can begin after it.
    pub fn cursor(&self) -> Cursor {
        Cursor { epoch: self.epoch, sequence: self.message.sequence }
    }

    /// The time of publication.
    pub fn time(&self) -> Time {
        Time(i64::try_from(self.message.time).map_or(i64::MAX, |time| time.saturating_mul(1000)))
    }

    /// All channels of the message, including those that are not followed.
    pub fn channels(&self) -> impl Iterator<Item = &str> {
        self.message.channels.iter().map(|name| &**name)
    }

    /// The id that the publisher assigned.
    pub fn id(&self) -> Option<&str> {
        self.message.id.as_deref()
    }

    /// The event name.
    pub fn event(&self) -> Option<&str> {
        self.message.event.as_deref()
    }

    /// The media type of the body.
    pub fn content_type(&self) -> &str {
        &self.message.content_type
    }

    /// The names and values of the message's headers.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.message.headers.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The body.
    pub fn bytes(&self) -> &[u8] {
        &self.message.body
    }

    /// The body as text.
    ///
    /// # Errors
    ///
    /// The body is not UTF-8.
    pub fn text(&self) -> Result<&str, Utf8Error> {
        str::from_utf8(&self.message.body)
    }

    /// Deserializes the body from JSON.
    ///
    /// # Errors
    ///
    /// The body is not JSON of this type.
    pub fn json<'m, T: Deserialize<'m>>(&'m self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.message.body)
    }
}

/// A waker for a blocked thread.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Follower").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

impl fmt::Display for Interruption {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap { until } => write!(to, "messages up to {until} are gone"),
            Self::TimedOut => to.write_str("nothing came in this time"),
            Self::Refused(refused) => refused.fmt(to),
        }
    }
}

impl std::error::Error for Interruption {}

#[cfg(test)]
mod tests;
