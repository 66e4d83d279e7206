//! Decides which messages of a channel stay, and finds them by place and by time in O(log n).

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
    /// The last message that is gone, of this channel or of another that had its name. Who has seen it misses nothing.
    dropped: Sequence,
    /// When that was published, or a time after.
    dropped_time: u64,
}

impl Queue {
    /// An empty one, from which everything up to a place is gone, that was published up to a time.
    pub(crate) fn starting_after(dropped: Sequence, dropped_time: u64) -> Self {
        Self { dropped, dropped_time, ..Self::default() }
    }

    /// What a fork begins with: everything from one place to another, and so many bytes of the body that follows. Says
    /// whether it has those.
    pub(crate) fn fork(&self, after: Sequence, until: Sequence, bytes: u64) -> (Self, bool) {
        let mut fork = Self::starting_after(self.dropped, self.dropped_time);
        let (begin, end) = (self.index_after(after), self.index_after(until));
        if let Some(last) = begin.checked_sub(1).and_then(|last| self.get(last)) {
            fork.mark_dropped(last.sequence, last.time);
        }
        self.messages.range(begin.min(end)..end).for_each(|message| fork.push(message.clone()));
        let cut = self.messages.get(end).filter(|_| bytes > 0);
        if let Some(next) = cut {
            fork.push(Arc::new(next.truncated(bytes as usize)));
        }
        (fork, cut.is_some())
    }

    /// How many messages a fork shares with this queue, and the one that it holds the begin of.
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

    /// Tells that everything up to a place is gone, even if it never was here.
    pub(crate) fn mark_dropped(&mut self, until: Sequence, time: u64) {
        if until > self.dropped {
            (self.dropped, self.dropped_time) = (until, time);
        }
    }

    /// Appends a message; it is behind all others.
    pub(crate) fn push(&mut self, message: Arc<Message>) {
        self.bytes += message.weight() as u64;
        self.messages.push_back(message);
    }

    /// Drops what the retention does not keep at this time.
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

    /// What the retention would drop if so many messages, of so many bytes, came at this time.
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

    /// The index of the first message behind a place.
    pub(crate) fn index_after(&self, sequence: Sequence) -> usize {
        self.partition(|message| message.sequence <= sequence)
    }

    /// The index of the first message that is not before a time.
    pub(crate) fn index_since(&self, time: u64) -> usize {
        self.partition(|message| message.time < time)
    }

    /// The last message before a time, as far as that is known: a place that it is not behind.
    pub(crate) fn last_before(&self, time: u64) -> Sequence {
        let last = self.index_since(time).checked_sub(1).and_then(|last| self.get(last));
        let dropped = if self.dropped_time < time { self.dropped } else { Sequence::START };
        last.map_or(dropped, |last| last.sequence)
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Arc<Message>> {
        self.messages.get(index)
    }

    /// Right before the first message that is there. What is gone may reach further, if a name came back as a fork.
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

    /// Whether no message that is gone was published at this time or later.
    pub(crate) fn is_whole_since(&self, time: u64) -> bool {
        self.dropped == Sequence::START || self.dropped_time < time
    }

    /// The last message that it ever took, here or under the same name before.
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
    /// Whether the oldest of so many messages, of so many bytes, stays.
    fn keeps(&self, oldest: &Message, (count, bytes): (u64, u64), now: u64) -> bool {
        let within = |limit: u64, value: u64| limit == 0 || value <= limit;
        within(self.messages, count)
            && within(self.bytes, bytes)
            && within(self.age, now.saturating_sub(oldest.time))
    }
}
