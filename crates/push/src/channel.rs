//! Decides what a channel remembers.

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
    /// Its name as the list of channels that its messages carry, shared by those that are in no other.
    pub(crate) name_list: Arc<[Arc<str>]>,
    pub(crate) settings: Settings,
    pub(crate) queue: Queue,
    /// Its last message, or a place before its first.
    pub(crate) tail: Sequence,
    pub(crate) is_closed: bool,
    /// It was removed and stays for its name alone, until its last fork goes.
    pub(crate) is_removed: bool,
    /// Whose quota it counts against; `None`: the program's own.
    pub(crate) owner: Option<Arc<str>>,
    /// Where it began, if it is a fork, and how many began in it.
    pub(crate) origin: Option<Origin>,
    pub(crate) forks: u64,
    /// When it was made, and when a publisher was last active, in milliseconds since 1970.
    pub(crate) created: u64,
    pub(crate) last_active: u64,
    /// The record of that activity.
    pub(crate) active_record: u64,
    /// When a reader last came. Only in memory: after a restart readers begin anew.
    pub(crate) last_read: u64,
    pub(crate) ids: MessageIds,
    pub(crate) producers: Producers,
    /// The last mark.
    pub(crate) mark: Option<Arc<str>>,
    /// When the hub will look at it; it may find that nothing is due yet.
    pub(crate) next_check: Option<u64>,
}

impl Channel {
    /// One that the record of its number makes, with nothing in it. `dropped` is what is gone under its name.
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
            ids: MessageIds::default(),
            producers: Producers::default(),
            mark: None,
            next_check: None,
        }
    }

    /// When it goes by itself if nothing happens, in milliseconds since 1970.
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

    /// When something of it will be due: itself, or its oldest message.
    pub(crate) fn next_due(&self) -> Option<u64> {
        let age = self.settings.retention.age;
        let oldest = self.queue.get(0).filter(|_| age > 0);
        let too_old = oldest.map(|message| message.time.saturating_add(age).saturating_add(1));
        self.expires_at().into_iter().chain(too_old).min()
    }

    /// Leaves nothing but its name and what is gone with it. Returns what it held.
    pub(crate) fn clear(&mut self, now: u64) -> Queue {
        self.is_removed = true;
        (self.ids, self.producers, self.mark) = (MessageIds::default(), Producers::default(), None);
        let after = Queue::starting_after(self.queue.last_sequence(), now);
        core::mem::replace(&mut self.queue, after)
    }

    /// The memory that it takes besides its messages.
    pub(crate) fn footprint(&self) -> u64 {
        footprint(&self.name, &self.settings) + self.ids.bytes() + self.producers.bytes()
    }

    /// Notes that a publisher was active.
    pub(crate) fn mark_active(&mut self, record: u64, now: u64) {
        self.last_active = now;
        self.active_record = record;
    }
}

/// The memory that a channel takes before anything was published in it: itself, its names and marks, and its places
/// among all channels.
pub(crate) fn footprint(name: &str, settings: &Settings) -> u64 {
    const PLACES: usize = 512;
    let content_type = settings.content_type.as_ref().map_or(0, |content_type| content_type.len());
    (size_of::<Channel>() + PLACES + name.len() + content_type) as u64
}
