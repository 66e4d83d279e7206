//! The messages of one channel: retention, and lookup by position and by time in O(log n).

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use crate::cursor::Sequence;
use crate::message::Message;
use crate::settings::Retention;

/// The messages that a channel holds, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    messages: VecDeque<Arc<Message>>,
    bytes: u64,
    /// The last dropped message of this channel, or of an earlier channel of the same name. A
    /// client that has read it misses no message.
    dropped: Sequence,
    /// The time of that message, or a later time.
    dropped_time: u64,
}

impl Queue {
    /// Creates an empty queue whose messages up to a position, published up to a time, were
    /// dropped.
    pub(crate) fn starting_after(dropped: Sequence, dropped_time: u64) -> Self {
        Self { dropped, dropped_time, ..Self::default() }
    }

    /// Returns the queue of a fork: the messages between two positions, and the first `bytes` bytes
    /// of the next body. Also returns whether that partial message exists.
    pub(crate) fn fork(&self, after: Sequence, until: Sequence, bytes: u64) -> (Self, bool) {
        let mut fork = Self::starting_after(self.dropped, self.dropped_time);
        let (start, end) = (self.index_after(after), self.index_after(until));
        if let Some(last) = start.checked_sub(1).and_then(|last| self.get(last)) {
            fork.mark_dropped(last.sequence, last.time);
        }
        self.messages.range(start.min(end)..end).for_each(|message| fork.push(message.clone()));
        let cut = self.messages.get(end).filter(|_| bytes > 0);
        if let Some(next) = cut {
            fork.push(Arc::new(next.truncated(bytes as usize)));
        }
        (fork, cut.is_some())
    }

    /// Returns the number of messages that a fork shares with this queue, and the message that it
    /// truncates.
    pub(crate) fn fork_size(
        &self,
        after: Sequence,
        until: Sequence,
        bytes: u64,
    ) -> (usize, Option<&Message>) {
        let end = self.index_after(until);
        let cut = self.get(end).filter(|_| bytes > 0);
        (end.saturating_sub(self.index_after(after)), cut.map(|message| &**message))
    }

    /// Records that everything up to a position was dropped, even if this queue never held it.
    pub(crate) fn mark_dropped(&mut self, until: Sequence, time: u64) {
        if until > self.dropped {
            (self.dropped, self.dropped_time) = (until, time);
        }
    }

    /// Appends a message. It must be after all messages in the queue.
    pub(crate) fn push(&mut self, message: Arc<Message>) {
        self.bytes += message.weight() as u64;
        self.messages.push_back(message);
    }

    /// Drops the messages that the retention does not keep at this time.
    pub(crate) fn trim(
        &mut self,
        retention: Retention,
        now: u64,
        mut dropped: impl FnMut(&Arc<Message>),
    ) {
        while let Some(oldest) = self.messages.front() {
            let held = (self.messages.len() as u64, self.bytes);
            if retention.keeps(oldest, held, now) {
                break;
            }
            self.bytes -= oldest.weight() as u64;
            dropped(oldest);
            let (sequence, time) = (oldest.sequence, oldest.time);
            self.messages.pop_front();
            self.mark_dropped(sequence, time);
        }
    }

    /// Returns the messages that the retention would drop if `count` messages of `bytes` bytes were
    /// added now.
    pub(crate) fn overflow(
        &self,
        retention: Retention,
        now: u64,
        (count, bytes): (u64, u64),
    ) -> impl Iterator<Item = &Arc<Message>> {
        let mut held = (self.messages.len() as u64 + count, self.bytes + bytes);
        self.messages.iter().take_while(move |oldest| {
            let is_dropped = !retention.keeps(oldest, held, now);
            held = (held.0 - 1, held.1 - oldest.weight() as u64);
            is_dropped
        })
    }

    /// Returns the index of the first message after a position.
    pub(crate) fn index_after(&self, sequence: Sequence) -> usize {
        self.partition(|message| message.sequence <= sequence)
    }

    /// Returns the index of the first message published at or after a time.
    pub(crate) fn index_since(&self, time: u64) -> usize {
        self.partition(|message| message.time < time)
    }

    /// Returns the last known message before a time: a lower bound if messages were dropped.
    pub(crate) fn last_before(&self, time: u64) -> Sequence {
        let last = self.index_since(time).checked_sub(1).and_then(|last| self.get(last));
        let dropped = if self.dropped_time < time { self.dropped } else { Sequence::START };
        last.map_or(dropped, |last| last.sequence)
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Arc<Message>> {
        self.messages.get(index)
    }

    /// Returns the position just before the first message. Dropped messages may extend further if
    /// the name was reused for a fork.
    pub(crate) fn before_first(&self) -> Sequence {
        let first = self.messages.front().map(|first| first.sequence.number().saturating_sub(1));
        first.map_or(self.dropped, Sequence::from_number)
    }

    pub(crate) fn last_message(&self) -> Option<&Arc<Message>> {
        self.messages.back()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.messages.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn dropped(&self) -> Sequence {
        self.dropped
    }

    pub(crate) fn dropped_time(&self) -> u64 {
        self.dropped_time
    }

    /// Whether every message published at or after this time is still in the queue.
    pub(crate) fn is_whole_since(&self, time: u64) -> bool {
        self.dropped == Sequence::START || self.dropped_time < time
    }

    /// Returns the last message that this queue, or an earlier channel of the same name, accepted.
    pub(crate) fn last_sequence(&self) -> Sequence {
        let last = self.messages.back().map_or(Sequence::START, |message| message.sequence);
        last.max(self.dropped)
    }

    fn partition(&self, is_before: impl Fn(&Message) -> bool) -> usize {
        self.messages.partition_point(|message| {
            #[cfg(test)]
            crate::steps::count();
            is_before(message)
        })
    }
}

impl Retention {
    /// Whether the oldest of `count` messages of `bytes` bytes stays.
    fn keeps(&self, oldest: &Message, (count, bytes): (u64, u64), now: u64) -> bool {
        let within = |limit: u64, value: u64| limit == 0 || value <= limit;
        within(self.messages, count)
            && within(self.bytes, bytes)
            && within(self.age, now.saturating_sub(oldest.time))
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::message::BodyFormat;

    fn message(number: u64, time: u64, length: usize) -> Arc<Message> {
        Arc::new(Message {
            sequence: Sequence::from_number(number),
            time,
            channels: Arc::from([]),
            content_type: "a/b".into(),
            event: None,
            id: None,
            headers: Box::default(),
            body: alloc::vec![0; length].into(),
            format: BodyFormat::Binary,
            publisher: None,
        })
    }

    proptest! {
        /// Quotas rely on it: `overflow` announces what `trim` drops after the messages are added.
        #[test]
        fn predicts_what_retention_drops(
            held in prop::collection::vec((0_u64..4, 0_usize..40), 0..8),
            added in prop::collection::vec(0_usize..40, 0..4),
            messages in 0_u64..8,
            bodies in prop_oneof![Just(None), (0_u64..8, 0_u64..120).prop_map(Some)],
            age in 0_u64..12,
        ) {
            let fixed = message(0, 0, 0).weight() as u64;
            let bytes = bodies.map_or(0, |(count, bytes)| count * fixed + bytes);
            let retention = Retention { messages, bytes, age };
            let mut queue = Queue::default();
            let mut now = 1;
            for (number, (gap, length)) in (1..).zip(held) {
                now += gap;
                queue.push(message(number, now, length));
            }
            let added: Vec<Arc<Message>> =
                (100..).zip(added).map(|(number, length)| message(number, now, length)).collect();
            let weight = added.iter().map(|message| message.weight() as u64).sum();
            let size = (added.len() as u64, weight);
            let predicted: Vec<Sequence> =
                queue.overflow(retention, now, size).map(|message| message.sequence).collect();
            for message in added {
                queue.push(message);
            }
            let mut dropped = Vec::new();
            queue.trim(retention, now, |message| dropped.push(message.sequence));
            dropped.retain(|sequence| sequence.number() < 100);
            prop_assert_eq!(predicted, dropped);
        }
    }
}
