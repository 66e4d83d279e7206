//! Decides what an order changes when its turn comes, and who is told.

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

/// All channels and what they hold. Owns no lock and reads no clock: times are arguments, in milliseconds since 1970.
///
/// Every change goes two steps. [`prepare`](Self::prepare) checks an [order](crate::Command) and changes nothing; what comes of it
/// is written to the engine's journal, which numbers it. With that number [`apply`](Self::apply) makes it true, and
/// the [`ring`](Self::ring) tells the loops. Numbers rise and need not be without gaps. The same records applied in
/// the same order lead to the same hub, so a restart [replays](Self::replay) them.
///
/// What is due by time is an order as well ([`expire`](Self::expire)): nothing changes but by a record, except that
/// messages grow too old.
#[derive(Debug)]
pub struct Hub {
    pub(crate) epoch: u32,
    pub(crate) limits: Limits,
    pub(crate) channels: BTreeMap<Number, Channel>,
    pub(crate) names: BTreeMap<Arc<str>, Number>,
    pub(crate) removed_names: RemovedNames,
    /// When to look at which channel; never later than something of it is due.
    checks: BTreeSet<(u64, Number)>,
    pub(crate) memory: Memory,
    /// The last record applied.
    pub(crate) record: u64,
    /// The latest time of a record.
    pub(crate) time: u64,
    ring: Ring,
    default_type: Arc<str>,
}

/// A channel that was due and did not go is looked at again so many milliseconds later.
const RECHECK_AFTER: u64 = 1000;

impl Hub {
    /// One without channels. `epoch` is the engine's: another one whenever numbers of records begin anew.
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

    /// Makes an order true that has become the record of this number.
    ///
    /// # Errors
    /// Why it changes nothing after all: other orders came first. It is then no fault that its record is in the journal.
    pub fn apply(&mut self, prepared: Prepared, record: u64) -> Result<Applied, Refused> {
        if record <= self.record || record > MAX_RECORD {
            return Err(Refused::Record { last: self.record });
        }
        let Prepared { record: Record { time, publisher, change }, reserved, .. } = prepared;
        // From here on what is applied counts.
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

    /// Makes true again what a record of the journal says. What was refused then is refused now.
    ///
    /// # Errors
    /// The bytes are no record, or the number is not higher than the last one.
    pub fn replay(&mut self, record: &[u8], number: u64) -> Result<(), Corrupt> {
        let record = Record::read(record).ok_or(Corrupt)?;
        let prepared = Prepared { record, durability: Durability::Memory, reserved: None };
        match self.apply(prepared, number) {
            Err(Refused::Record { .. }) => Err(Corrupt),
            _ => Ok(()),
        }
    }

    /// Looks at what is due, at most at so many channels: messages that are too old go, and channels that are to go
    /// are named in an order, to be written and applied as any other.
    pub fn expire(&mut self, now: u64, max_channels: usize) -> Option<Prepared> {
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
            if channel.is_due(now) {
                due.push(Due { channel: number, active_record: channel.active_record });
                channel.next_check = Some(now.saturating_add(RECHECK_AFTER));
                self.checks.insert((now.saturating_add(RECHECK_AFTER), number));
            } else {
                self.schedule(number);
            }
        }
        // A server that forgets that a channel went finds it due again.
        let is_any = !due.is_empty();
        let record = Record { time: now, publisher: None, change: Change::Expire(due) };
        is_any.then_some(Prepared { record, durability: Durability::Memory, reserved: None })
    }

    /// When [`expire`](Self::expire) has something to do, at the earliest.
    pub fn next_due(&self) -> Option<u64> {
        self.checks.first().map(|(time, _)| *time)
    }

    /// Notes that a reader came: it keeps a channel alive whose expiry says so.
    ///
    /// # Errors
    /// There is no such channel.
    pub fn touch(&mut self, name: &str, now: u64) -> Result<(), Refused> {
        let number = self.find(name, now)?.number;
        if let Some(channel) = self.channels.get_mut(&number) {
            channel.last_read = channel.last_read.max(now);
        }
        Ok(())
    }

    /// Begins another epoch, because numbers of records may come again: whoever has a cursor of the one before is told.
    pub fn begin_epoch(&mut self, epoch: u32) {
        self.epoch = epoch;
    }

    /// Ends a restart: readers, whose visits no record tells, get the time anew that they have.
    pub fn resume(&mut self, now: u64) {
        for channel in self.channels.values_mut() {
            channel.last_read = channel.last_read.max(now);
        }
    }

    /// What there is to know of a channel.
    ///
    /// # Errors
    /// There is no such channel.
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

    /// The names of all channels behind one, in their order.
    pub fn names_after<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h Arc<str>> {
        use core::ops::Bound;
        let range = (Bound::Excluded(name), Bound::Unbounded);
        let names = self.names.range::<str, _>(range);
        let is_there =
            |number| self.channels.get(number).is_some_and(|channel| !channel.is_removed);
        names.filter(move |(_, number)| is_there(number)).map(|(name, _)| name)
    }

    /// How many channels there are, at most: some that are due to go may be among them.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// What happened last, for the loops.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Behind everything that happened.
    pub fn watermark(&self) -> Cursor {
        self.cursor(Sequence::end_of(self.record))
    }

    /// The memory that all messages and channels take, each message counted once.
    pub fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// The part of it that a publisher has made and published.
    pub fn publisher_bytes(&self, publisher: &str) -> u64 {
        self.memory.publisher_bytes(publisher)
    }

    /// Sets other quotas of memory: of all channels together, and of one.
    pub fn set_quotas(&mut self, bytes: u64, channel_bytes: u64) {
        (self.limits.bytes, self.limits.channel_bytes) = (bytes, channel_bytes);
    }

    /// Whether all channels together may take so many bytes more.
    pub fn has_room(&self, wanted: u64) -> bool {
        self.memory.has_room(wanted, self.limits.bytes)
    }

    /// The channel of a name, unless it is due to go.
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

    /// Puts a channel in its place, with whatever it holds.
    pub(crate) fn insert(&mut self, channel: Channel) {
        let number = channel.number;
        self.memory.add(channel.owner.as_ref(), channel.footprint());
        self.names.insert(channel.name.clone(), number);
        self.channels.insert(number, channel);
        self.schedule(number);
    }

    /// Puts a channel of a snapshot in its place. Its messages are held by the snapshot, once, and by queues.
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

    /// Drops what a channel's retention does not keep.
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

    /// The place of the message of the same id, if all channels know one.
    pub(crate) fn known_to_all(&self, entry: &Entry, now: u64) -> Option<Sequence> {
        let id = entry.content.id.as_ref()?;
        let mut known = None;
        for number in &entry.channels {
            let sequence = self.channels.get(number)?.ids.find(id, now, &self.limits)?;
            known = known.min(Some(sequence)).or(Some(sequence));
        }
        known
    }

    /// Whether a publication may change something. `Some`: it is a repetition.
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
        for new in publication.channels_mut() {
            *new = number;
        }
        let mut published = self.publish(publication, owner.as_ref())?;
        published.tail = self.channels.get(&number).map_or(published.tail, |channel| channel.tail);
        Ok(Applied::Created { name, expires, published })
    }

    /// Puts a channel's expiry off, and may put another in its place.
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
            messages.push(self.take(entry, (sequence, publisher), &mut groups));
        }
        let mut grown: Vec<Number> = Vec::new();
        for mut group in groups {
            grown.extend(&group.channels);
            group.is_final = group.channels.iter().all(|number| publication.close.contains(number));
            self.ring.push(Event::Messages(group));
        }
        grown.sort_unstable();
        grown.dedup();
        // Once they are in the ring, so that what goes at once goes there too.
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

    /// Gives a message to those of its channels that do not know its id.
    fn take(
        &mut self,
        entry: Entry,
        (sequence, publisher): (Sequence, Option<&Arc<str>>),
        groups: &mut Vec<MessageGroup>,
    ) -> Receipt {
        if let Some(first) = self.known_to_all(&entry, self.time) {
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

    /// Removes a channel that was due, if nothing has kept it since.
    fn remove_due(&mut self, due: Due) -> bool {
        let channel = self.channels.get(&due.channel);
        channel.is_some_and(|channel| channel.active_record == due.active_record)
            && self.remove(due.channel, EndReason::Expired)
    }

    /// Removes a channel; one that was forked leaves its name.
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

    /// Looks after a channel no later than something of it is due. What is put off is not moved until then, so that a
    /// publication costs nothing here.
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
