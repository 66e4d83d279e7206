//! A bounded buffer of the latest changes, in order, which all event loops read.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::cursor::Sequence;
use crate::message::Message;
use crate::settings::Limits;

/// The latest changes. The hub writes them; each event loop reads them from its own position.
///
/// Loops read under the hub's lock, so reading only clones pointers.
#[derive(Debug)]
pub struct Ring {
    events: VecDeque<Arc<Event>>,
    /// The position of the oldest event.
    first_position: u64,
    bytes: usize,
    max_events: usize,
    max_bytes: usize,
}

/// A change that an event loop delivers to its waiters.
#[derive(Debug)]
pub enum Event {
    /// New messages.
    Messages(MessageGroup),
    /// Messages that were dropped before every loop delivered them. A waiter that has not received
    /// them must read from the hub.
    Dropped {
        /// The numbers of their channels, sorted.
        channels: Box<[u64]>,
        /// The last message.
        sequence: Sequence,
    },
    /// A channel ended.
    Ended {
        /// Its number.
        channel: u64,
        /// The position after its last message.
        sequence: Sequence,
        /// The reason.
        reason: EndReason,
    },
}

/// The messages of one publication that have the same channels. A waiter receives the whole group
/// or no message.
#[derive(Debug)]
pub struct MessageGroup {
    /// The numbers of the channels, sorted.
    pub channels: Box<[u64]>,
    /// The messages; at least one.
    pub messages: Vec<Arc<Message>>,
    /// Whether the publication also closed the channels.
    pub is_final: bool,
}

/// The reason why a channel accepts no more messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The channel was closed; its messages can still be read.
    Closed,
    /// The channel was removed.
    Removed,
    /// The channel expired.
    Expired,
}

/// The ring dropped events that a loop has not read. The loop's waiters must read from the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagged;

impl MessageGroup {
    /// Returns the position of the last message.
    pub fn last(&self) -> Sequence {
        self.messages.last().map_or(Sequence::START, |message| message.sequence)
    }

    fn weight(&self) -> usize {
        self.messages.iter().map(|message| message.weight()).sum()
    }
}

impl Ring {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            events: VecDeque::new(),
            first_position: 0,
            bytes: 0,
            max_events: limits.ring,
            max_bytes: limits.ring_bytes,
        }
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.bytes += event.weight();
        self.events.push_back(Arc::new(event));
        while self.events.len() > self.max_events || self.bytes > self.max_bytes {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.weight();
            self.first_position += 1;
        }
    }

    /// Replaces a message that no channel holds any more, together with the rest of its group, by
    /// [`Event::Dropped`].
    ///
    /// The event keeps its place. A ring that removed it would evict every waiter of each loop that has
    /// not read it yet, also those of other channels.
    pub(crate) fn drop_message(&mut self, sequence: Sequence) {
        let at = self.events.partition_point(|event| event.last() < sequence);
        // A record that replaces an expired channel first pushes the end of that channel.
        let events = self.events.range_mut(at..);
        for event in events.take_while(|event| event.last().record() == sequence.record()) {
            if let Event::Messages(group) = &**event
                && group.messages.binary_search_by_key(&sequence, |one| one.sequence).is_ok()
            {
                self.bytes -= group.weight();
                let (channels, sequence) = (group.channels.clone(), group.last());
                *event = Arc::new(Event::Dropped { channels, sequence });
                break;
            }
        }
    }

    /// Returns the position after the last event.
    pub fn position(&self) -> u64 {
        self.first_position + self.events.len() as u64
    }

    /// Appends at most `max` events from a position and returns the position after them.
    ///
    /// # Errors
    /// The ring has dropped the event at this position.
    pub fn read(&self, from: u64, max: usize, to: &mut Vec<Arc<Event>>) -> Result<u64, Lagged> {
        let skip = from.checked_sub(self.first_position).ok_or(Lagged)? as usize;
        let before = to.len();
        to.extend(self.events.iter().skip(skip).take(max).cloned());
        Ok(from + (to.len() - before) as u64)
    }
}

impl Event {
    fn weight(&self) -> usize {
        match self {
            Self::Messages(group) => group.weight(),
            Self::Dropped { .. } | Self::Ended { .. } => 0,
        }
    }

    /// Returns the position of the event's end. It never decreases from one event to the next.
    fn last(&self) -> Sequence {
        match self {
            Self::Messages(group) => group.last(),
            Self::Dropped { sequence, .. } | Self::Ended { sequence, .. } => *sequence,
        }
    }
}
