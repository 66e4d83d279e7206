//! Reads the messages of any set of channels in one order, and detects gaps.

use alloc::boxed::Box;
use alloc::collections::BinaryHeap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::channel::Channel;
use crate::cursor::{Cursor, Sequence};
use crate::hub::Hub;
use crate::message::Message;
use crate::refused::Refused;

/// A request for the messages of several channels, in one order, each message once.
#[derive(Clone, Copy, Debug)]
pub struct Subscription<'s> {
    /// The names of the channels; at least one.
    pub channels: &'s [&'s str],
    /// The position at which to start.
    pub start: Start,
    /// The position at which to end.
    pub end: Until,
    /// The policy for messages that retention has dropped.
    pub gaps: GapPolicy,
    /// The maximum number of messages in a batch. A batch holds at least one message if one exists.
    pub limit: usize,
    /// The maximum number of bytes of messages in a batch.
    pub bytes: usize,
}

/// The start of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// After a cursor.
    After(Cursor),
    /// With the messages published at a time, in milliseconds since 1970. A future time counts as
    /// now.
    Since(u64),
    /// With the earliest message that the channels hold.
    Earliest,
    /// With the next message.
    Now,
}

/// The end of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// No end.
    Open,
    /// After the message of a cursor.
    Cursor(Cursor),
    /// Before the messages published at a time, in milliseconds since 1970.
    Time(u64),
}

/// The policy if messages after the start cursor were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GapPolicy {
    /// Reject the read and return the earliest valid cursor.
    #[default]
    Reject,
    /// Continue, and report the cursor up to which messages may be missing. A cursor of another
    /// epoch is rejected in any case; start with the earliest message instead.
    Allow,
}

/// The result of a read.
#[derive(Clone, Debug)]
pub struct MessageBatch {
    /// The messages, in order.
    pub messages: Vec<Arc<Message>>,
    /// The cursor up to which messages may be missing: the start was before a gap, or the batch
    /// ends before the position after which all channels are complete. A client that continues from
    /// there must allow gaps ([`GapPolicy::Allow`]).
    pub lost: Option<Cursor>,
    /// The cursor from which to continue: after the last message, and after every position known to
    /// hold no message of the subscription.
    pub next: Cursor,
    /// The state of the subscription after these messages.
    pub rest: Rest,
}

/// The state of a subscription after a batch.
#[derive(Clone, Debug)]
pub enum Rest {
    /// More messages are available now.
    More,
    /// The subscription has ended.
    Ended,
    /// All channels are closed.
    Closed,
    /// No message is available yet. Pass this to [`Waiters::park`](crate::Waiters::park) to wait
    /// for one.
    Wait(WaitPoint),
}

/// Proof that a client has read everything up to a position. Only a client that has this proof can
/// wait without missing a message; see [`Waiters::park`](crate::Waiters::park).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitPoint {
    pub(crate) channels: Followed,
    /// The position up to which all messages were read.
    pub(crate) cursor: Cursor,
    /// The time at which the subscription ends, in milliseconds since 1970.
    pub(crate) ends: Option<u64>,
}

/// The numbers of the channels that a waiter follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Followed {
    One(u64),
    Many(Box<[u64]>),
}

impl Followed {
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(channels) => channels.len(),
        }
    }
}

impl WaitPoint {
    /// Returns the cursor that stays valid until the next publication.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// Returns the time at which the subscription ends, in milliseconds since 1970.
    pub fn ends(&self) -> Option<u64> {
        self.ends
    }
}

impl Hub {
    /// Reads the messages that match a subscription: O(log n) per channel and per message.
    ///
    /// # Errors
    /// A channel that does not exist, or a cursor that is too old or from another hub.
    pub fn read(&self, subscription: &Subscription<'_>, now: u64) -> Result<MessageBatch, Refused> {
        let channels = self.subscribed(subscription, now)?;
        let earliest = channels.iter().map(|channel| channel.queue.dropped()).max();
        let earliest = self.cursor(earliest.unwrap_or_default());
        let tail = channels.iter().map(|channel| channel.tail).max().unwrap_or_default();
        self.check_end(subscription.end, earliest)?;
        let (start, from, since) = match subscription.start {
            Start::After(cursor) => (cursor.sequence, cursor.sequence, 0),
            Start::Now => (self.watermark().sequence, Sequence::START, 0),
            Start::Since(time) => (Sequence::START, Sequence::START, time),
            Start::Earliest => (Sequence::START, Sequence::START, 0),
        };
        if let Start::After(cursor) = subscription.start {
            match self.check_start(cursor, earliest) {
                Err(Refused::TooOld { .. }) if subscription.gaps == GapPolicy::Allow => {}
                checked => checked?,
            }
        }
        let next = self.cursor(from);
        let mut batch = MessageBatch { messages: Vec::new(), lost: None, next, rest: Rest::More };
        let is_more = batch.fill(Merge::new(&channels, start, since), subscription);
        if let Some(last) = batch.messages.last() {
            batch.next.sequence = last.sequence;
        }
        if !is_more {
            batch.rest = self.rest(subscription, &channels, now);
            let seen = match (&batch.rest, subscription.end) {
                // A client that continues from here receives the messages published at or after the
                // end.
                (Rest::Ended, Until::Time(end)) => {
                    channels.iter().map(|channel| channel.queue.last_before(end)).max()
                }
                (Rest::Ended, Until::Cursor(end)) => Some(end.sequence),
                // A subscription that ends later has read all existing messages.
                _ => Some(tail),
            };
            batch.next.sequence = batch.next.sequence.max(seen.unwrap_or_default());
        }
        let is_whole = match subscription.start {
            Start::After(cursor) => cursor >= earliest,
            Start::Since(time) => channels.iter().all(|channel| channel.queue.is_whole_since(time)),
            Start::Earliest | Start::Now => batch.next >= earliest,
        };
        batch.lost = (!is_whole).then_some(earliest);
        Ok(batch)
    }

    /// The result of a read for a client that is ahead of this hub: it has read messages from a second
    /// hub with the same records, and this hub has yet to apply them. The batch has no message and
    /// keeps the client's cursor. `None`: the client is not ahead, or a channel does not exist.
    ///
    /// A waiter that is parked with the batch receives also the messages up to the cursor. So after
    /// each delivery at or before the cursor, call this again.
    pub fn read_ahead(&self, subscription: &Subscription<'_>, now: u64) -> Option<MessageBatch> {
        let Start::After(next) = subscription.start else { return None };
        if next.epoch != self.epoch || next <= self.watermark() {
            return None;
        }
        let channels = self.subscribed(subscription, now).ok()?;
        let open = Subscription { end: Until::Open, ..*subscription };
        let rest = match subscription.end {
            // The messages up to this end are yet to come.
            Until::Cursor(end) if end > next => self.rest(&open, &channels, now),
            _ => self.rest(subscription, &channels, now),
        };
        Some(MessageBatch { messages: Vec::new(), lost: None, next, rest })
    }

    /// Returns at most `limit` messages of one channel, the newest last, and none that was published
    /// after `until`.
    ///
    /// # Errors
    /// The channel does not exist.
    pub fn newest(
        &self,
        name: &str,
        limit: usize,
        until: Option<Cursor>,
        now: u64,
    ) -> Result<Vec<Arc<Message>>, Refused> {
        let queue = &self.find(name, now)?.queue;
        let end = match until.filter(|until| until.epoch == self.epoch) {
            Some(until) => queue.index_after(until.sequence),
            None => queue.len(),
        };
        let messages = (end.saturating_sub(limit)..end).filter_map(|index| queue.get(index));
        Ok(messages.cloned().collect())
    }

    /// Returns the channels, each once.
    fn subscribed(
        &self,
        subscription: &Subscription<'_>,
        now: u64,
    ) -> Result<Vec<&Channel>, Refused> {
        let limit = self.limits.channels_per_subscription;
        if subscription.channels.is_empty() {
            return Err(Refused::Empty("the list of channels"));
        } else if subscription.channels.len() > limit {
            return Err(Refused::LimitExceeded {
                quantity: "channels of a subscription",
                limit: limit as u64,
            });
        }
        let mut channels = Vec::with_capacity(subscription.channels.len());
        for name in subscription.channels {
            channels.push(self.find(name, now)?);
        }
        channels.sort_unstable_by_key(|channel| channel.number);
        channels.dedup_by_key(|channel| channel.number);
        Ok(channels)
    }

    fn check_start(&self, cursor: Cursor, earliest: Cursor) -> Result<(), Refused> {
        if cursor.epoch != self.epoch {
            Err(Refused::ForeignEpoch { earliest })
        } else if cursor > self.watermark() {
            Err(Refused::Ahead { watermark: self.watermark() })
        } else if cursor < earliest {
            Err(Refused::TooOld { earliest })
        } else {
            Ok(())
        }
    }

    fn check_end(&self, end: Until, earliest: Cursor) -> Result<(), Refused> {
        match end {
            Until::Cursor(cursor) if cursor.epoch != self.epoch => {
                Err(Refused::ForeignEpoch { earliest })
            }
            Until::Cursor(cursor) if cursor > self.watermark() => {
                Err(Refused::Ahead { watermark: self.watermark() })
            }
            _ => Ok(()),
        }
    }

    fn rest(&self, subscription: &Subscription<'_>, channels: &[&Channel], now: u64) -> Rest {
        let ends = match subscription.end {
            Until::Open => None,
            // No cursor is after the watermark, so everything before the end was read.
            Until::Cursor(_) => return Rest::Ended,
            Until::Time(time) if time <= now => return Rest::Ended,
            Until::Time(time) => Some(time),
        };
        let mut open = channels.iter().filter(|channel| !channel.is_closed);
        let channels = match (open.next(), open.next()) {
            (None, _) => return Rest::Closed,
            (Some(only), None) => Followed::One(only.number),
            (Some(first), Some(second)) => {
                let numbers = [first, second].into_iter().chain(open).map(|open| open.number);
                Followed::Many(numbers.collect())
            }
        };
        Rest::Wait(WaitPoint { channels, cursor: self.watermark(), ends })
    }
}

impl MessageBatch {
    /// Adds messages up to the subscription's limits and returns whether more exist.
    fn fill<'h>(
        &mut self,
        merge: impl Iterator<Item = &'h Arc<Message>>,
        subscription: &Subscription<'_>,
    ) -> bool {
        let mut bytes = 0;
        for message in merge {
            match subscription.end {
                Until::Cursor(cursor) if message.sequence > cursor.sequence => return false,
                Until::Time(time) if message.time >= time => return false,
                _ => {}
            }
            bytes += message.weight();
            let is_full = self.messages.len() >= subscription.limit || bytes > subscription.bytes;
            if is_full && !self.messages.is_empty() {
                return true;
            }
            self.messages.push(message.clone());
        }
        false
    }
}

/// Merges the messages of several channels, each message once.
struct Merge<'h, 'c> {
    channels: &'c [&'h Channel],
    /// For each channel with a next message: its position, the channel, and its index in the
    /// channel's queue.
    next: BinaryHeap<Reverse<(Sequence, usize, usize)>>,
    last: Sequence,
}

impl<'h, 'c> Merge<'h, 'c> {
    fn new(channels: &'c [&'h Channel], start: Sequence, since: u64) -> Self {
        let mut next = Vec::with_capacity(channels.len());
        for (source, channel) in channels.iter().enumerate() {
            let index = if since > 0 {
                channel.queue.index_since(since)
            } else {
                channel.queue.index_after(start)
            };
            if let Some(message) = channel.queue.get(index) {
                next.push(Reverse((message.sequence, source, index)));
            }
        }
        Self { channels, next: next.into(), last: Sequence::START }
    }
}

impl<'h> Iterator for Merge<'h, '_> {
    type Item = &'h Arc<Message>;

    fn next(&mut self) -> Option<&'h Arc<Message>> {
        loop {
            #[cfg(test)]
            crate::steps::count();
            let mut top = self.next.peek_mut()?;
            let Reverse((sequence, source, index)) = *top;
            let queue = &self.channels[source].queue;
            match queue.get(index + 1) {
                Some(following) => *top = Reverse((following.sequence, source, index + 1)),
                None => {
                    alloc::collections::binary_heap::PeekMut::pop(top);
                }
            }
            if sequence > self.last {
                self.last = sequence;
                return queue.get(index);
            }
        }
    }
}
