//! The state of one channel.

use alloc::sync::Arc;

use crate::cursor::Sequence;
use crate::dedup::{MessageIds, Producers};
use crate::queue::Queue;
use crate::record::{Number, Origin};
use crate::settings::{Expiry, Settings};

/// A channel of a hub.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub(crate) number: Number,
    pub(crate) name: Arc<str>,
    /// A list that contains only this channel's name. Messages of this channel alone share it as
    /// their list of channels.
    pub(crate) name_list: Arc<[Arc<str>]>,
    pub(crate) settings: Settings,
    pub(crate) queue: Queue,
    /// The last message, or a position before the first one.
    pub(crate) tail: Sequence,
    pub(crate) is_closed: bool,
    /// Whether the channel was removed. Its name stays reserved until its last fork is removed.
    pub(crate) is_removed: bool,
    /// The publisher whose quota the channel counts against; `None` for the program itself.
    pub(crate) owner: Option<Arc<str>>,
    /// The position at which this channel was forked, if it is a fork, and the number of its own
    /// forks.
    pub(crate) origin: Option<Origin>,
    pub(crate) forks: u64,
    /// The times of creation and of the last publication or renewal, in milliseconds since 1970.
    pub(crate) created: u64,
    pub(crate) last_active: u64,
    /// The record of that last activity.
    pub(crate) active_record: u64,
    /// The time of the last read. It is kept in memory only and starts anew after a restart.
    pub(crate) last_read: u64,
    /// The time of the last read for which the program was asked to renew the channel.
    pub(crate) renewal_asked: u64,
    pub(crate) ids: MessageIds,
    pub(crate) producers: Producers,
    /// The last mark.
    pub(crate) mark: Option<Arc<str>>,
    /// The time of the hub's next check of this channel. The check may find that the channel is not
    /// due.
    pub(crate) next_check: Option<u64>,
}

impl Channel {
    /// Creates an empty channel for the record `number`. `dropped` is the last message that was
    /// lost under the same name.
    pub(crate) fn new(
        number: Number,
        name: Arc<str>,
        settings: Settings,
        dropped: Sequence,
        now: u64,
    ) -> Self {
        Self {
            number,
            name_list: Arc::from([name.clone()]),
            name,
            settings,
            queue: Queue::starting_after(dropped, now),
            tail: Sequence::end_of(number - 1),
            is_closed: false,
            is_removed: false,
            owner: None,
            origin: None,
            forks: 0,
            created: now,
            last_active: now,
            active_record: number,
            last_read: now,
            renewal_asked: 0,
            ids: MessageIds::default(),
            producers: Producers::default(),
            mark: None,
            next_check: None,
        }
    }

    /// Returns the time at which the channel expires without further activity, in milliseconds
    /// since 1970.
    pub(crate) fn expires_at(&self) -> Option<u64> {
        match self.settings.expiry {
            _ if self.is_removed => None,
            Expiry::Never => None,
            Expiry::AfterPublish(after) => Some(self.last_active.saturating_add(after)),
            Expiry::AfterActivity(after) => {
                Some(self.last_active.max(self.last_read).saturating_add(after))
            }
            Expiry::At(time) => Some(time),
        }
    }

    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.expires_at().is_some_and(|time| time <= now)
    }

    /// Returns the time at which the channel expires or its oldest message becomes too old,
    /// whichever is first.
    pub(crate) fn next_due(&self) -> Option<u64> {
        let age = self.settings.retention.age;
        let oldest = self.queue.get(0).filter(|_| age > 0);
        let too_old = oldest.map(|message| message.time.saturating_add(age).saturating_add(1));
        self.expires_at().into_iter().chain(too_old).min()
    }

    /// Clears everything except the name and the last position, and returns the messages that the
    /// channel held.
    pub(crate) fn clear(&mut self, now: u64) -> Queue {
        self.is_removed = true;
        self.ids = MessageIds::default();
        self.producers = Producers::default();
        self.mark = None;
        let after = Queue::starting_after(self.queue.last_sequence(), now);
        core::mem::replace(&mut self.queue, after)
    }

    /// Returns the memory that the channel takes, without its messages.
    pub(crate) fn footprint(&self) -> u64 {
        footprint(&self.name, &self.settings) + self.ids.bytes() + self.producers.bytes()
    }

    /// Records a publication or renewal.
    pub(crate) fn mark_active(&mut self, record: u64, now: u64) {
        self.last_active = now;
        self.active_record = record;
    }
}

/// Returns the memory that an empty channel takes: its state, its texts and its entries in the
/// hub's indexes.
pub(crate) fn footprint(name: &str, settings: &Settings) -> u64 {
    const PLACES: usize = 512;
    let content_type = settings.content_type.as_ref().map_or(0, |content_type| content_type.len());
    (size_of::<Channel>() + PLACES + name.len() + content_type) as u64
}
