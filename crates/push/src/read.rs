//! Decides what a reader of any set of channels is given, and when it is told of a hole.

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

/// What a reader wants: the messages of all these channels, in one order, each once.
#[derive(Clone, Copy, Debug)]
pub struct Subscription<'s> {
    /// The names of the channels; at least one.
    pub channels: &'s [&'s str],
    /// Where to begin.
    pub start: Start,
    /// Where to end.
    pub end: Until,
    /// What to do about messages that are gone.
    pub gaps: GapPolicy,
    /// So many messages at once; at least one is given if there is one.
    pub limit: usize,
    /// So many bytes of messages at once.
    pub bytes: usize,
}

/// Where a subscription begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Behind a cursor.
    After(Cursor),
    /// At a time, in milliseconds since 1970, with the messages of that time. One in the future counts as now.
    Since(u64),
    /// With the earliest message that is there.
    Earliest,
    /// With the next one.
    Now,
}

/// Where a subscription ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Never.
    Open,
    /// At a cursor, with the message that it stands behind.
    Cursor(Cursor),
    /// At a time, in milliseconds since 1970, without the messages of that time.
    Time(u64),
}

/// What to do if messages behind the start's cursor are gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GapPolicy {
    /// Refuse, with the earliest cursor that is good.
    #[default]
    Reject,
    /// Go on, and tell the cursor up to which something may be missing. A cursor of another epoch is refused all the
    /// same: begin with the earliest.
    Allow,
}

/// What a reader gets.
#[derive(Clone, Debug)]
pub struct MessageBatch {
    /// The messages, in order.
    pub messages: Vec<Arc<Message>>,
    /// Up to here something may be missing: the start was behind a hole, or the page ends before the place from which
    /// on all channels are whole. Who goes on from there must take [`GapPolicy::Allow`].
    pub lost: Option<Cursor>,
    /// Where to go on: behind the last message, and behind all that is known to be none of the subscription's.
    pub next: Cursor,
    /// What comes behind these messages.
    pub rest: Rest,
}

/// What comes behind a page.
#[derive(Clone, Debug)]
pub enum Rest {
    /// More, right now.
    More,
    /// Nothing ever: the subscription has ended.
    Ended,
    /// Nothing ever: all channels are closed.
    Closed,
    /// Nothing yet; this is how to wait for it.
    Wait(WaitPoint),
}

/// The proof that a reader has seen everything up to a place: with it, and only with it, one can wait without missing
/// anything. See [`Waiters::park`](crate::Waiters::park).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitPoint {
    pub(crate) channels: Followed,
    /// Everything up to here was looked at.
    pub(crate) cursor: Cursor,
    /// When the subscription ends, in milliseconds since 1970.
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
    /// The cursor that is good if nothing happens.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// When the subscription ends by itself, in milliseconds since 1970.
    pub fn ends(&self) -> Option<u64> {
        self.ends
    }
}

impl Hub {
    /// Reads what a subscription is owed: O(log n) for each channel and for each message.
    ///
    /// # Errors
    /// A channel that is not there, a cursor that is too old or not of this hub.
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
        let mut page = MessageBatch { messages: Vec::new(), lost: None, next, rest: Rest::More };
        let is_more = page.take(Merge::new(&channels, start, since), subscription);
        if let Some(last) = page.messages.last() {
            page.next.sequence = last.sequence;
        }
        if !is_more {
            page.rest = self.rest(subscription, &channels, now);
            let seen = match (&page.rest, subscription.end) {
                // Who goes on from here gets what was not before the end.
                (Rest::Ended, Until::Time(end)) => {
                    channels.iter().map(|channel| channel.queue.last_before(end)).max()
                }
                (Rest::Ended, Until::Cursor(end)) => Some(end.sequence),
                // Whatever ends later has seen all that is there.
                _ => Some(tail),
            };
            page.next.sequence = page.next.sequence.max(seen.unwrap_or_default());
        }
        let is_whole = match subscription.start {
            Start::After(cursor) => cursor >= earliest,
            Start::Since(time) => channels.iter().all(|channel| channel.queue.is_whole_since(time)),
            Start::Earliest | Start::Now => page.next >= earliest,
        };
        page.lost = (!is_whole).then_some(earliest);
        Ok(page)
    }

    /// The channels, each once.
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
            // No cursor lies beyond the watermark, so all that it ends with was read.
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
    /// Takes messages up to the subscription's limits; answers whether there are more.
    fn take<'h>(
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

/// The messages of several channels as one, each once.
struct Merge<'h, 'c> {
    channels: &'c [&'h Channel],
    /// For each channel that has a next message: its place, the channel, the message's index there.
    next: BinaryHeap<Reverse<(Sequence, usize, usize)>>,
    last: Sequence,
}

impl<'h, 'c> Merge<'h, 'c> {
    fn new(channels: &'c [&'h Channel], start: Sequence, since: u64) -> Self {
        let mut next = Vec::with_capacity(channels.len());
        for (which, channel) in channels.iter().enumerate() {
            let index = if since > 0 {
                channel.queue.index_since(since)
            } else {
                channel.queue.index_after(start)
            };
            if let Some(message) = channel.queue.get(index) {
                next.push(Reverse((message.sequence, which, index)));
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
            let Reverse((sequence, which, index)) = *top;
            let queue = &self.channels[which].queue;
            match queue.get(index + 1) {
                Some(following) => *top = Reverse((following.sequence, which, index + 1)),
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
