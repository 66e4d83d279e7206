//! Decides how a program follows channels itself: a message after the other, and each hole told.

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
use super::hold::milliseconds;
use super::reader::Reader;
use super::watch::Watch;
use crate::store::Time;

/// One that follows channels, as [`Channels::follow`](super::Channels::follow) makes it. It holds a hundred messages and
/// a megabyte at most; what comes meanwhile waits in its channels, as long as these keep it.
pub struct Follower {
    reader: Reader,
    /// Read, and not given yet.
    ready: VecDeque<Arc<push::Message>>,
    epoch: u32,
    /// A hole that is to be told before them.
    hole: Option<Cursor>,
    /// The hole that was told last.
    told: Option<Cursor>,
    /// There is more behind what is ready: the others of its thread have their turn before.
    yields: bool,
    is_over: bool,
}

/// A message that was published.
#[derive(Clone, Debug)]
pub struct Received {
    message: Arc<push::Message>,
    epoch: u32,
}

/// What a follower is told in place of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Interruption {
    /// Messages are gone that nobody gave it, up to `until`. It goes on behind them.
    Lost {
        /// Up to here something may be missing.
        until: Cursor,
    },
    /// Nothing came in the time that [`Follower::wait`] was given. It goes on.
    Quiet,
    /// It cannot follow: there is no such channel (any more), or its cursor is of other data. It has ended.
    Refused(Refused),
}

impl Follower {
    pub(crate) fn new(engine: Arc<Engine>, names: Box<[Box<str>]>) -> Self {
        // What is published from this moment on is for it, whenever it looks.
        let now = engine.hub(|hub| hub.watermark());
        let start = now.map_or(Start::Now, Start::After);
        // A hole is told with the messages behind it.
        let watch = Watch { holes: GapPolicy::Allow, ..Watch::of(names) };
        let reader = Reader::new(engine, watch, start);
        let (ready, epoch) = (VecDeque::new(), now.map_or(0, |now| now.epoch));
        Self { reader, ready, epoch, hole: None, told: None, yields: false, is_over: false }
    }

    /// Begins behind the message that has this cursor.
    #[must_use]
    pub fn after(self, cursor: Cursor) -> Self {
        self.from(Start::After(cursor))
    }

    /// Begins with the earliest message that is there.
    #[must_use]
    pub fn earliest(self) -> Self {
        self.from(Start::Earliest)
    }

    /// Begins with what was published at this time or later.
    #[must_use]
    pub fn since(self, time: impl Into<Time>) -> Self {
        self.from(Start::Since(milliseconds(time.into())))
    }

    fn from(mut self, start: Start) -> Self {
        self.reader.seek(start);
        self
    }

    /// The next message, once there is one. `None`: all channels are closed, or the server has ended. May be dropped
    /// while it waits: nothing is lost by that.
    ///
    /// # Errors
    ///
    /// Something was [lost](Interruption::Lost), which a program may pass over by asking again, or the follower was
    /// [refused](Interruption::Refused).
    pub async fn next(&mut self) -> Option<Result<Received, Interruption>> {
        poll_fn(|task| self.poll_next(task)).await
    }

    /// The same where a thread may block, for so long at most. Not for an async function: the others of its thread
    /// would wait too.
    ///
    /// # Errors
    ///
    /// The same, and [`Interruption::Quiet`] if nothing came.
    pub fn wait(&mut self, at_most: Duration) -> Option<Result<Received, Interruption>> {
        let waker = Waker::from(Arc::new(Sleeper(thread::current())));
        let begin = Instant::now();
        loop {
            if let Poll::Ready(next) = self.poll_message(&mut Context::from_waker(&waker)) {
                return next;
            }
            match at_most.checked_sub(begin.elapsed()) {
                Some(left) if !left.is_zero() => thread::park_timeout(left),
                _ => return Some(Err(Interruption::Quiet)),
            }
        }
    }

    /// What [`next`](Self::next) does, for a program that has a trait of streams to implement.
    pub fn poll_next(
        &mut self,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Received, Interruption>>> {
        if self.ready.is_empty() && std::mem::take(&mut self.yields) {
            task.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.poll_message(task)
    }

    fn poll_message(
        &mut self,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Received, Interruption>>> {
        loop {
            if let Some(until) = self.hole.take() {
                self.told = Some(until);
                return Poll::Ready(Some(Err(Interruption::Lost { until })));
            }
            if let Some(message) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(Received { message, epoch: self.epoch })));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            match ready!(self.reader.poll(task)) {
                Some(Ok(page)) => self.take(page),
                Some(Err(refused)) => {
                    self.is_over = true;
                    return Poll::Ready(Some(Err(Interruption::Refused(refused))));
                }
                None => self.is_over = true,
            }
        }
    }

    fn take(&mut self, page: MessageBatch) {
        self.is_over = matches!(page.rest, Rest::Closed | Rest::Ended);
        self.yields = matches!(page.rest, Rest::More);
        // One hole spans several pages when some of the channels are whole.
        self.hole = page.lost.filter(|lost| self.told.is_none_or(|told| *lost > told));
        (self.ready, self.epoch) = (page.messages.into(), page.next.epoch);
    }
}

impl Received {
    /// Its place, behind which a follower may go on.
    pub fn cursor(&self) -> Cursor {
        Cursor { epoch: self.epoch, sequence: self.message.sequence }
    }

    /// When it was published.
    pub fn time(&self) -> Time {
        Time(i64::try_from(self.message.time).map_or(i64::MAX, |time| time.saturating_mul(1000)))
    }

    /// All channels that it was published in, also those that are not followed.
    pub fn channels(&self) -> impl Iterator<Item = &str> {
        self.message.channels.iter().map(|name| &**name)
    }

    /// Its publisher's own id.
    pub fn id(&self) -> Option<&str> {
        self.message.id.as_deref()
    }

    /// The name of its event.
    pub fn event(&self) -> Option<&str> {
        self.message.event.as_deref()
    }

    /// The media type of its body.
    pub fn content_type(&self) -> &str {
        &self.message.content_type
    }

    /// Names and values that go with its body.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.message.headers.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Its body.
    pub fn bytes(&self) -> &[u8] {
        &self.message.body
    }

    /// Its body as text.
    ///
    /// # Errors
    ///
    /// It is no UTF-8.
    pub fn text(&self) -> Result<&str, Utf8Error> {
        str::from_utf8(&self.message.body)
    }

    /// Its body, read as JSON.
    ///
    /// # Errors
    ///
    /// It is no JSON, or not of this shape.
    pub fn json<'m, T: Deserialize<'m>>(&'m self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.message.body)
    }
}

/// A thread that is woken as a task is.
struct Sleeper(Thread);

impl Wake for Sleeper {
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
            Self::Lost { until } => write!(to, "messages up to {until} are gone"),
            Self::Quiet => to.write_str("nothing came in this time"),
            Self::Refused(refused) => refused.fmt(to),
        }
    }
}

impl std::error::Error for Interruption {}

#[cfg(test)]
mod tests;
