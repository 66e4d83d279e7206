//! The state of all channels, and how commands change it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::channel::Channel;
use crate::cursor::{Cursor, MAX_RECORD, Sequence};
use crate::dedup::Repetition;
use crate::memory::Memory;
use crate::message::{DEFAULT_TYPE, Message};
use crate::order::{Applied, ChannelInfo, Corrupt, Prepared, ProducerProgress, Published, Receipt};
use crate::record::{Change, Due, Entry, Number, Origin, Publication, Record};
use crate::refused::Refused;
use crate::removed::RemovedNames;
use crate::ring::{EndReason, Event, MessageGroup, Ring};
use crate::settings::{Durability, Expiry, Limits, Settings};

/// All channels and their messages. The hub owns no lock and reads no clock: times are arguments,
/// in milliseconds since 1970.
///
/// A change takes two steps. [`prepare`](Self::prepare) checks a [command](crate::Command) and
/// changes nothing. The engine writes the prepared record to its journal, which numbers it.
/// [`apply`](Self::apply) then makes the change under that number and publishes it in the
/// [`ring`](Self::ring). Record numbers increase but need not be consecutive. The same records
/// applied in the same order produce the same hub, so a restart [replays](Self::replay) them.
///
/// Expiry is a command too ([`expire`](Self::expire)): only a record changes the hub, except that
/// messages are dropped when they become too old.
#[derive(Debug)]
pub struct Hub {
    pub(crate) epoch: u32,
    pub(crate) limits: Limits,
    pub(crate) channels: BTreeMap<Number, Channel>,
    pub(crate) names: BTreeMap<Arc<str>, Number>,
    pub(crate) removed_names: RemovedNames,
    /// The times at which to check channels. A channel's check is never later than its next due
    /// time.
    checks: BTreeSet<(u64, Number)>,
    pub(crate) memory: Memory,
    /// The last applied record.
    pub(crate) record: u64,
    /// The latest time of any record.
    pub(crate) time: u64,
    ring: Ring,
    default_type: Arc<str>,
}

/// The delay in milliseconds until the next check of a channel that was due and was not removed.
const RECHECK_AFTER: u64 = 1000;

impl Hub {
    /// Creates a hub without channels. The engine sets `epoch` and must change it whenever record
    /// numbers start anew.
    pub fn new(epoch: u32, limits: Limits) -> Self {
        Self {
            epoch,
            channels: BTreeMap::new(),
            names: BTreeMap::new(),
            removed_names: RemovedNames::default(),
            checks: BTreeSet::new(),
            memory: Memory::default(),
            record: 0,
            time: 0,
            ring: Ring::new(&limits),
            limits,
            default_type: Arc::from(DEFAULT_TYPE),
        }
    }

    /// Applies a prepared command as the record of this number.
    ///
    /// # Errors
    /// Another command was applied first and makes this one impossible. The record stays in the
    /// journal without effect.
    pub fn apply(&mut self, prepared: Prepared, record: u64) -> Result<Applied, Refused> {
        if record <= self.record || record > MAX_RECORD {
            return Err(Refused::Record { last: self.record });
        }
        let Prepared { record: Record { time, publisher, change }, reserved, .. } = prepared;
        // The bytes that the command takes are counted from here on.
        drop(reserved);
        self.record = record;
        self.time = self.time.max(time);
        let publisher = publisher.map(|publisher| self.memory.intern_publisher(&publisher));
        match change {
            Change::Create { name, settings, due, origin, publication } => {
                due.map(|due| self.remove_due(due));
                self.create((name, publisher), settings, origin, publication)
            }
            Change::Publish(publication) => {
                self.publish(publication, publisher.as_ref()).map(Applied::Published)
            }
            Change::Renew(number) => self.renew(number, None),
            Change::SetExpiry(number, expiry) => self.renew(number, Some(expiry)),
            Change::Remove(number) => self
                .remove(number, EndReason::Removed)
                .then_some(Applied::Removed)
                .ok_or(Refused::Removed),
            Change::Expire(all) => {
                let removed = all.into_iter().filter(|due| self.remove_due(*due)).count();
                Ok(Applied::Expired(removed))
            }
        }
    }

    /// Applies a record of the journal again. A record that was refused then is refused again.
    ///
    /// # Errors
    /// The bytes are no record, or the number is not greater than the last one.
    pub fn replay(&mut self, record: &[u8], number: u64) -> Result<(), Corrupt> {
        let record = Record::read(record).ok_or(Corrupt)?;
        let prepared = Prepared { record, durability: Durability::Memory, reserved: None };
        match self.apply(prepared, number) {
            Err(Refused::Record { .. }) => Err(Corrupt),
            _ => Ok(()),
        }
    }

    /// Checks at most this number of channels that are due. It drops their messages that are too
    /// old, and returns a command that removes expired channels, to be written and applied like any
    /// other.
    pub fn expire(&mut self, now: u64, max_channels: usize) -> Option<Prepared> {
        self.expire_after(now, 0, max_channels)
    }

    /// As [`expire`](Self::expire), for one of several hubs with the same records: it leaves a channel to
    /// the others for this many milliseconds after it is due, because one record is enough. Meanwhile
    /// the channel counts as expired.
    pub fn expire_after(
        &mut self,
        now: u64,
        patience: u64,
        max_channels: usize,
    ) -> Option<Prepared> {
        let mut due = Vec::new();
        for _ in 0..max_channels {
            #[cfg(test)]
            crate::steps::count();
            let Some(&(time, number)) = self.checks.first() else { break };
            if time > now {
                break;
            }
            self.checks.pop_first();
            let Some(channel) = self.channels.get_mut(&number) else { continue };
            channel.next_check = None;
            self.trim(number, now);
            let Some(channel) = self.channels.get_mut(&number) else { continue };
            let Some(expired_at) = channel.expires_at().filter(|time| *time <= now) else {
                self.schedule(number);
                continue;
            };
            let turn = expired_at.saturating_add(patience);
            let next = if turn <= now {
                due.push(Due { channel: number, active_record: channel.active_record });
                now.saturating_add(RECHECK_AFTER)
            } else {
                turn
            };
            channel.next_check = Some(next);
            self.checks.insert((next, number));
        }
        // No durability is needed: after a crash the channel is due again.
        let is_any = !due.is_empty();
        let record = Record { time: now, publisher: None, change: Change::Expire(due) };
        is_any.then_some(Prepared { record, durability: Durability::Memory, reserved: None })
    }

    /// Returns the earliest time at which [`expire`](Self::expire) has work.
    pub fn next_due(&self) -> Option<u64> {
        self.checks.first().map(|(time, _)| *time)
    }

    /// Records that a client read a channel. This postpones the expiry of a channel with
    /// [`Expiry::AfterActivity`].
    ///
    /// # Errors
    /// The channel does not exist.
    pub fn touch(&mut self, name: &str, now: u64) -> Result<(), Refused> {
        let number = self.find(name, now)?.number;
        if let Some(channel) = self.channels.get_mut(&number) {
            channel.last_read = channel.last_read.max(now);
        }
        Ok(())
    }

    /// Whether a read that [`touch`](Self::touch) has recorded is to be followed by
    /// [`Command::Renew`](crate::Command::Renew), so that other hubs with the same records do not let the
    /// channel expire: it expires after activity, and an eighth of that time has passed since the last
    /// recorded activity. Repeats the answer only after the same time.
    pub fn should_renew(&mut self, name: &str, now: u64) -> bool {
        let Ok(number) = self.find(name, now).map(|channel| channel.number) else { return false };
        let Some(channel) = self.channels.get_mut(&number) else { return false };
        let Expiry::AfterActivity(after) = channel.settings.expiry else { return false };
        let last = channel.last_active.max(channel.renewal_asked);
        let is_due = now.saturating_sub(last) >= (after / 8).max(1);
        if is_due {
            channel.renewal_asked = now;
        }
        is_due
    }

    /// Starts a new epoch, because record numbers may be reused. Cursors of the previous epoch are
    /// rejected from then on.
    pub fn begin_epoch(&mut self, epoch: u32) {
        self.epoch = epoch;
    }

    /// Completes a restart: it restarts the expiry period of reads, since the journal contains no
    /// reads.
    pub fn resume(&mut self, now: u64) {
        for channel in self.channels.values_mut() {
            channel.last_read = channel.last_read.max(now);
        }
    }

    /// Returns the description of a channel.
    ///
    /// # Errors
    /// The channel does not exist.
    pub fn describe(&self, name: &str, now: u64) -> Result<ChannelInfo, Refused> {
        let channel = self.find(name, now)?;
        Ok(ChannelInfo {
            number: channel.number,
            settings: channel.settings.clone(),
            created: channel.created,
            expires: channel.expires_at(),
            is_closed: channel.is_closed,
            tail: self.cursor(channel.tail),
            earliest: self.cursor(channel.queue.dropped()),
            messages: channel.queue.len(),
            bytes: channel.queue.bytes(),
        })
    }

    /// Returns the names of the channels after a name, in order.
    pub fn names_after<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h Arc<str>> {
        use core::ops::Bound;
        let range = (Bound::Excluded(name), Bound::Unbounded);
        let names = self.names.range::<str, _>(range);
        let is_there =
            |number| self.channels.get(number).is_some_and(|channel| !channel.is_removed);
        names.filter(move |(_, number)| is_there(number)).map(|(name, _)| name)
    }

    /// Returns the number of channels, including expired ones that are not yet removed.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether the hub has no channel.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the latest changes, for event loops.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Returns the cursor after everything that was published.
    pub fn watermark(&self) -> Cursor {
        self.cursor(Sequence::end_of(self.record))
    }

    /// Returns the memory that all messages and channels take. A message of several channels counts
    /// once.
    pub fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// Returns the part of [`bytes`](Self::bytes) that a publisher created and published.
    pub fn publisher_bytes(&self, publisher: &str) -> u64 {
        self.memory.publisher_bytes(publisher)
    }

    /// Sets the memory quotas of all channels together and of each channel.
    pub fn set_quotas(&mut self, bytes: u64, channel_bytes: u64) {
        (self.limits.bytes, self.limits.channel_bytes) = (bytes, channel_bytes);
    }

    /// Whether all channels together may take `requested` more bytes.
    pub fn has_room(&self, requested: u64) -> bool {
        self.memory.has_room(requested, self.limits.bytes)
    }

    /// Returns the channel of a name, unless it has expired.
    pub(crate) fn find(&self, name: &str, now: u64) -> Result<&Channel, Refused> {
        let channel = self.names.get(name).and_then(|number| self.channels.get(number));
        match channel {
            Some(channel) if channel.is_removed => Err(Refused::Gone(name.into())),
            Some(channel) if !channel.is_due(now) => Ok(channel),
            _ => Err(Refused::NotFound(name.into())),
        }
    }

    pub(crate) fn cursor(&self, sequence: Sequence) -> Cursor {
        Cursor { epoch: self.epoch, sequence }
    }

    /// Inserts a channel with its messages.
    pub(crate) fn insert(&mut self, channel: Channel) {
        let number = channel.number;
        self.memory.add(channel.owner.as_ref(), channel.footprint());
        self.names.insert(channel.name.clone(), number);
        self.channels.insert(number, channel);
        self.schedule(number);
    }

    /// Inserts a channel of a snapshot. The snapshot reader holds each message once, and each queue
    /// once more.
    pub(crate) fn restore(&mut self, channel: Channel) {
        for message in channel.queue.iter() {
            if Arc::strong_count(message) > 2 {
                self.memory.share(message);
            } else {
                self.memory.charge(message);
            }
        }
        self.insert(channel);
    }

    /// Drops messages that a channel's retention does not keep.
    fn trim(&mut self, number: Number, now: u64) {
        let Some(channel) = self.channels.get_mut(&number) else { return };
        let retention = channel.settings.retention.within(self.limits.channel_bytes);
        let (memory, ring) = (&mut self.memory, &mut self.ring);
        channel.queue.trim(retention, now, |message| {
            if memory.release(message) {
                ring.drop_message(message.sequence);
            }
        });
    }

    /// Returns the earliest message of the same id if all channels of the entry know one.
    pub(crate) fn find_duplicate(&self, entry: &Entry, now: u64) -> Option<Sequence> {
        let id = entry.content.id.as_ref()?;
        let mut known = None;
        for number in &entry.channels {
            let sequence = self.channels.get(number)?.ids.find(id, now, &self.limits)?;
            known = known.min(Some(sequence)).or(Some(sequence));
        }
        known
    }

    /// Checks whether a publication may be applied. Returns a result if it is a duplicate.
    pub(crate) fn admit(&self, publication: &Publication) -> Result<Option<Published>, Refused> {
        for number in publication.channels() {
            let channel = self.channels.get(&number).filter(|channel| !channel.is_removed);
            channel.ok_or(Refused::Removed)?;
        }
        let only = publication.only_channel().and_then(|number| self.channels.get(&number));
        if let (Some(channel), Some(producer)) = (only, &publication.producer)
            && let Repetition::Duplicate(sequence) = channel.producers.check(producer)?
        {
            let producer = Some(ProducerProgress { sequence, is_duplicate: true });
            return Ok(Some(Published { messages: Vec::new(), producer, tail: channel.tail }));
        }
        for entry in &publication.entries {
            for channel in entry.channels.iter().filter_map(|number| self.channels.get(number)) {
                if channel.is_closed {
                    return Err(Refused::Closed { name: channel.name.clone(), tail: channel.tail });
                }
            }
        }
        if let (Some(channel), Some(mark)) = (only, &publication.mark)
            && channel.mark.as_ref().is_some_and(|last| mark <= last)
        {
            return Err(Refused::OutOfOrder);
        }
        Ok(None)
    }

    fn create(
        &mut self,
        (name, owner): (Arc<str>, Option<Arc<str>>),
        settings: Settings,
        origin: Option<Origin>,
        mut publication: Publication,
    ) -> Result<Applied, Refused> {
        if let Some(channel) = self.names.get(&name).and_then(|number| self.channels.get(number)) {
            let is_other_fork = origin.is_some() && channel.origin != origin;
            if channel.is_removed || channel.settings != settings || is_other_fork {
                return Err(Refused::Conflict(name));
            }
            return Ok(Applied::Existed { expires: channel.expires_at() });
        }
        let number = self.record;
        let dropped = self.removed_names.last(&name);
        let mut channel = Channel::new(number, name.clone(), settings, dropped, self.time);
        channel.owner.clone_from(&owner);
        if let Some(origin) = origin {
            let source = self.channels.get_mut(&origin.source).filter(|source| !source.is_removed);
            let source = source.ok_or(Refused::Removed)?;
            source.forks += 1;
            channel.origin = Some(origin);
            let (queue, has_cut) = source.queue.fork(origin.after, origin.until, origin.bytes);
            let shared = queue.len() - usize::from(has_cut);
            queue.iter().take(shared).for_each(|message| self.memory.share(message));
            queue.iter().skip(shared).for_each(|message| self.memory.charge(message));
            channel.queue = queue;
            channel.tail = channel.queue.last_message().map_or(channel.tail, |last| last.sequence);
            channel.queue.mark_dropped(dropped, self.time);
            channel.tail = channel.tail.max(dropped);
        }
        self.removed_names.remove(&name);
        let expires = channel.expires_at();
        self.insert(channel);
        self.trim(number, self.time);
        publication.move_to(number);
        let mut published = self.publish(publication, owner.as_ref())?;
        published.tail = self.channels.get(&number).map_or(published.tail, |channel| channel.tail);
        Ok(Applied::Created { name, expires, published })
    }

    /// Postpones a channel's expiry, and replaces its expiry setting if one is given.
    fn renew(&mut self, number: Number, expiry: Option<Expiry>) -> Result<Applied, Refused> {
        let (record, time) = (self.record, self.time);
        let channel = self.channels.get_mut(&number).filter(|channel| !channel.is_removed);
        let channel = channel.ok_or(Refused::Removed)?;
        channel.mark_active(record, time);
        channel.settings.expiry = expiry.unwrap_or(channel.settings.expiry);
        let expires = channel.expires_at();
        self.schedule(number);
        Ok(Applied::Renewed { expires })
    }

    fn publish(
        &mut self,
        publication: Publication,
        publisher: Option<&Arc<str>>,
    ) -> Result<Published, Refused> {
        if let Some(done) = self.admit(&publication)? {
            return Ok(done);
        }
        let tail_of = publication.channels().next();
        let mut producer = None;
        if let Some(channel) =
            publication.only_channel().and_then(|number| self.channels.get_mut(&number))
        {
            if let Some(new) = &publication.producer {
                let before = channel.producers.bytes();
                channel.producers.accept(new, self.record, &self.limits);
                self.memory.subtract(channel.owner.as_ref(), before);
                self.memory.add(channel.owner.as_ref(), channel.producers.bytes());
                producer = Some(ProducerProgress { sequence: new.sequence, is_duplicate: false });
            }
            channel.mark = publication.mark.or(channel.mark.take());
        }
        let mut messages = Vec::with_capacity(publication.entries.len());
        let mut groups: Vec<MessageGroup> = Vec::new();
        for (place, entry) in publication.entries.into_iter().enumerate() {
            let sequence = Sequence::new(self.record, place);
            messages.push(self.store(entry, (sequence, publisher), &mut groups));
        }
        let mut grown: Vec<Number> = Vec::new();
        for mut group in groups {
            grown.extend(&group.channels);
            group.is_final = group.channels.iter().all(|number| publication.close.contains(number));
            self.ring.push(Event::Messages(group));
        }
        grown.sort_unstable();
        grown.dedup();
        // Trimming follows the push to the ring, so that the ring also drops messages that are
        // dropped at once.
        for number in grown {
            self.trim(number, self.time);
            self.schedule(number);
        }
        for number in publication.close {
            self.close(number);
        }
        let tail = tail_of.and_then(|number| self.channels.get(&number));
        Ok(Published {
            messages,
            producer,
            tail: tail.map_or(Sequence::START, |channel| channel.tail),
        })
    }

    /// Stores a message in each channel that does not know its id.
    fn store(
        &mut self,
        entry: Entry,
        (sequence, publisher): (Sequence, Option<&Arc<str>>),
        groups: &mut Vec<MessageGroup>,
    ) -> Receipt {
        if let Some(first) = self.find_duplicate(&entry, self.time) {
            return Receipt::Duplicate(first);
        }
        let Entry { mut channels, format, content } = entry;
        if let Some(id) = &content.id {
            let (time, limits) = (self.time, &self.limits);
            let is_new = |number: &Number| {
                self.channels.get(number).is_some_and(|at| at.ids.find(id, time, limits).is_none())
            };
            if !channels.iter().all(is_new) {
                channels = channels.iter().copied().filter(is_new).collect();
            }
        }
        let held = || channels.iter().filter_map(|number| self.channels.get(number));
        let names = match held().next() {
            Some(channel) if channels.len() == 1 => channel.name_list.clone(),
            _ => held().map(|channel| channel.name.clone()).collect(),
        };
        let usual = held().find_map(|channel| channel.settings.content_type.clone());
        let content_type =
            content.content_type.or(usual).unwrap_or_else(|| self.default_type.clone());
        let message = Arc::new(Message {
            sequence,
            time: self.time,
            channels: names,
            content_type,
            event: content.event,
            id: content.id,
            headers: content.headers,
            body: content.body,
            format,
            publisher: publisher.cloned(),
        });
        let mut is_held = false;
        for number in &channels {
            let Some(channel) = self.channels.get_mut(number) else { continue };
            channel.tail = sequence;
            channel.mark_active(self.record, self.time);
            if let Some(id) = &message.id {
                let before = channel.ids.bytes();
                channel.ids.insert(id, sequence, self.time, &self.limits);
                self.memory.subtract(channel.owner.as_ref(), before);
                self.memory.add(channel.owner.as_ref(), channel.ids.bytes());
            }
            channel.queue.push(message.clone());
            if is_held {
                self.memory.share(&message);
            } else {
                self.memory.charge(&message);
                is_held = true;
            }
        }
        match groups.last_mut() {
            Some(group) if group.channels == channels => group.messages.push(message),
            _ => groups.push(MessageGroup {
                channels,
                messages: Vec::from([message]),
                is_final: false,
            }),
        }
        Receipt::New(sequence)
    }

    fn close(&mut self, number: Number) {
        let (record, time) = (self.record, self.time);
        let Some(channel) = self.channels.get_mut(&number) else { return };
        if channel.is_closed {
            return;
        }
        channel.is_closed = true;
        channel.mark_active(record, time);
        let sequence = Sequence::end_of(record);
        self.ring.push(Event::Ended { channel: number, sequence, reason: EndReason::Closed });
    }

    /// Removes an expired channel unless a later record postponed its expiry.
    fn remove_due(&mut self, due: Due) -> bool {
        let channel = self.channels.get(&due.channel);
        channel.is_some_and(|channel| channel.active_record == due.active_record)
            && self.remove(due.channel, EndReason::Expired)
    }

    /// Removes a channel. A channel with forks keeps its name reserved.
    fn remove(&mut self, number: Number, reason: EndReason) -> bool {
        let Some(channel) = self.channels.get_mut(&number).filter(|channel| !channel.is_removed)
        else {
            return false;
        };
        if let Some(time) = channel.next_check.take() {
            self.checks.remove(&(time, number));
        }
        self.memory.subtract(channel.owner.as_ref(), channel.footprint());
        let held = channel.clear(self.time);
        self.memory.add(channel.owner.as_ref(), channel.footprint());
        for message in held.iter() {
            if self.memory.release(message) {
                self.ring.drop_message(message.sequence);
            }
        }
        let sequence = Sequence::end_of(self.record);
        self.ring.push(Event::Ended { channel: number, sequence, reason });
        let mut next = Some(number);
        while let Some(number) = next
            && self
                .channels
                .get(&number)
                .is_some_and(|channel| channel.is_removed && channel.forks == 0)
            && let Some(channel) = self.channels.remove(&number)
        {
            self.memory.subtract(channel.owner.as_ref(), channel.footprint());
            self.names.remove(&channel.name);
            self.removed_names.insert(
                channel.name,
                channel.queue.last_sequence(),
                self.limits.removed_names,
            );
            next = channel.origin.map(|origin| origin.source);
            if let Some(source) = next.and_then(|source| self.channels.get_mut(&source)) {
                source.forks -= 1;
            }
        }
        true
    }

    /// Schedules a check of a channel no later than its next due time. A check that is already
    /// earlier stays, so that a publication has no cost here.
    fn schedule(&mut self, number: Number) {
        let Some(channel) = self.channels.get_mut(&number) else { return };
        let Some(due) = channel.next_due() else { return };
        match channel.next_check {
            Some(time) if time <= due => return,
            Some(time) => self.checks.remove(&(time, number)),
            None => true,
        };
        channel.next_check = Some(due);
        self.checks.insert((due, number));
    }
}
