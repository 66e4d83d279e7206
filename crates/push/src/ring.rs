//! Decides what the loops are told of all channels, in one order.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::cursor::Sequence;
use crate::message::Message;
use crate::settings::Limits;

/// What happened last, for those who follow. The hub writes it; each loop reads it from a position of its own.
///
/// It is read under the hub's lock, so reading only clones pointers.
#[derive(Debug)]
pub struct Ring {
    events: VecDeque<Arc<Event>>,
    /// The position of the oldest event.
    first_position: u64,
    bytes: usize,
    max_events: usize,
    max_bytes: usize,
}

/// What a loop tells its waiters.
#[derive(Debug)]
pub enum Event {
    /// Messages.
    Messages(MessageGroup),
    /// Messages that were dropped before everybody was told of them: whoever has not seen them reads from the hub.
    Dropped {
        /// The numbers of their channels, sorted.
        channels: Box<[u64]>,
        /// The last message.
        sequence: Sequence,
    },
    /// A channel takes no more.
    Ended {
        /// Its number.
        channel: u64,
        /// Behind its last message.
        sequence: Sequence,
        /// Why.
        reason: EndReason,
    },
}

/// The messages of one publication that are in the same channels: whoever is owed one of them is owed all.
#[derive(Debug)]
pub struct MessageGroup {
    /// The numbers of the channels, sorted.
    pub channels: Box<[u64]>,
    /// At least one.
    pub messages: Vec<Arc<Message>>,
    /// Whether the channels were closed behind them.
    pub is_final: bool,
}

/// Why a channel takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// It was closed; what it holds can be read.
    Closed,
    /// It was removed.
    Removed,
    /// It went by itself.
    Expired,
}

/// Events that a loop has not read are gone: its waiters must be told to read from the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagged;

impl MessageGroup {
    /// The place of its last message.
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

    /// Drops a message that no channel holds any more, and those that were published with it in the same channels.
    pub(crate) fn drop_message(&mut self, sequence: Sequence) {
        let at = self.events.partition_point(|event| event.last() < sequence);
        // A record that makes a channel in the place of one that was due tells the end of that one first.
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

    /// The position behind the last event.
    pub fn position(&self) -> u64 {
        self.first_position + self.events.len() as u64
    }

    /// Appends at most so many events from a position on, and answers with the position behind them.
    ///
    /// # Errors
    /// An event at this position was there and is gone.
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

    /// The place that it ends at. Those of later events are not lower.
    fn last(&self) -> Sequence {
        match self {
            Self::Messages(group) => group.last(),
            Self::Dropped { sequence, .. } | Self::Ended { sequence, .. } => *sequence,
        }
    }
}
