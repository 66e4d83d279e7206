//! Writes a hub as a sequence of chunks, and restores a hub from them.
//!
//! docs/formats/channels.md documents every byte. Messages are written first, each once and
//! numbered in order from 0; then the channels, which refer to their messages by number.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::channel::Channel;
use crate::codec::{Decoder, put_bytes, put_number, put_optional};
use crate::cursor::{MAX_RECORD, Sequence};
use crate::dedup::{MessageIds, Producers};
use crate::hub::Hub;
use crate::message::{BodyFormat, Message};
use crate::order::Corrupt;
use crate::queue::Queue;
use crate::record::{Origin, put_headers, read_headers};
use crate::removed::RemovedNames;
use crate::settings::{Limits, Settings};

/// The first bytes of chunks.
const HEAD: u8 = 1;
const MESSAGES: u8 = 2;
const CHANNELS: u8 = 3;

/// The version that this module writes. Version 1 has no publishers.
const VERSION: u64 = 2;

/// The size at which a chunk is full. The last item may exceed it.
const CHUNK_BYTES: usize = 256 << 10;

/// A hub as it was at one moment. Taking a snapshot copies the state of channels, but only pointers
/// to messages. Iteration produces the chunks while the hub continues to change.
#[derive(Debug)]
pub struct Snapshot {
    epoch: u32,
    record: u64,
    time: u64,
    removed_names: RemovedNames,
    channels: vec::IntoIter<Channel>,
    /// All messages in order, and their keys, once the head is written.
    messages: Option<vec::IntoIter<Arc<Message>>>,
    keys: Vec<MessageKey>,
}

/// Identifies a message. The body's length is part of the key because a fork may hold a truncated
/// message at the position of the whole one.
type MessageKey = (Sequence, usize);

fn key(message: &Message) -> MessageKey {
    (message.sequence, message.body.len())
}

/// Restores a hub from a snapshot's chunks, in their order.
#[derive(Debug)]
pub struct SnapshotReader {
    hub: Hub,
    messages: Vec<Arc<Message>>,
    /// The numbers of messages and of channels that the head announced.
    expected: Option<(u64, u64)>,
    version: u64,
    strings: BTreeSet<Arc<str>>,
    lists: BTreeSet<Arc<[Arc<str>]>>,
}

impl Hub {
    /// Takes a snapshot after the last applied record.
    pub fn snapshot(&self) -> Snapshot {
        let channels: Vec<Channel> = self.channels.values().cloned().collect();
        Snapshot {
            epoch: self.epoch,
            record: self.record,
            time: self.time,
            removed_names: self.removed_names.clone(),
            channels: channels.into_iter(),
            messages: None,
            keys: Vec::new(),
        }
    }
}

impl Snapshot {
    /// Sorts all messages and writes the head.
    fn head(&mut self) -> Vec<u8> {
        let mut messages: Vec<Arc<Message>> = Vec::new();
        for channel in self.channels.as_slice() {
            messages.extend(channel.queue.iter().cloned());
        }
        messages.sort_by_key(|message| key(message));
        messages.dedup_by_key(|message| key(message));
        let mut head = vec![HEAD];
        for number in [VERSION, u64::from(self.epoch), self.record, self.time] {
            put_number(&mut head, number);
        }
        put_number(&mut head, messages.len() as u64);
        put_number(&mut head, self.channels.len() as u64);
        self.removed_names.write(&mut head);
        self.keys = messages.iter().map(|message| key(message)).collect();
        self.messages = Some(messages.into_iter());
        head
    }
}

impl Iterator for Snapshot {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let Some(messages) = &mut self.messages else { return Some(self.head()) };
        let mut chunk = vec![MESSAGES];
        while chunk.len() < CHUNK_BYTES
            && let Some(message) = messages.next()
        {
            message.write(&mut chunk);
        }
        if chunk.len() > 1 {
            return Some(chunk);
        }
        chunk[0] = CHANNELS;
        while chunk.len() < CHUNK_BYTES
            && let Some(channel) = self.channels.next()
        {
            channel.write(&mut chunk, &self.keys);
        }
        (chunk.len() > 1).then_some(chunk)
    }
}

impl SnapshotReader {
    /// Creates a reader that has received no chunk.
    pub fn new(limits: Limits) -> Self {
        Self {
            hub: Hub::new(0, limits),
            messages: Vec::new(),
            expected: None,
            version: VERSION,
            strings: BTreeSet::new(),
            lists: BTreeSet::new(),
        }
    }

    /// Reads the next chunk.
    ///
    /// # Errors
    /// The bytes are no chunk, or not the next one.
    pub fn receive(&mut self, chunk: &[u8]) -> Result<(), Corrupt> {
        self.read(chunk).ok_or(Corrupt)
    }

    /// Returns the hub after the last chunk.
    ///
    /// # Errors
    /// A chunk is missing, or a removed channel has no fork.
    pub fn finish(self) -> Result<Hub, Corrupt> {
        let counted = (self.messages.len() as u64, self.hub.channels.len() as u64);
        let is_whole = self.expected == Some(counted);
        let mut channels = self.hub.channels.values();
        let is_sound = channels.all(|channel| !channel.is_removed || channel.forks > 0);
        if is_whole && is_sound { Ok(self.hub) } else { Err(Corrupt) }
    }

    fn read(&mut self, chunk: &[u8]) -> Option<()> {
        let mut rest = Decoder(chunk);
        match (rest.byte()?, self.expected) {
            (HEAD, None) => {
                self.version = rest.number()?;
                (1..=VERSION).contains(&self.version).then_some(())?;
                self.hub.epoch = u32::try_from(rest.number()?).ok()?;
                self.hub.record = rest.number()?;
                (self.hub.record <= MAX_RECORD).then_some(())?;
                self.hub.time = rest.number()?;
                self.expected = Some((rest.number()?, rest.number()?));
                self.hub.removed_names = RemovedNames::read(&mut rest)?;
                rest.is_empty().then_some(())
            }
            (MESSAGES, Some(_)) if self.hub.channels.is_empty() => {
                while !rest.is_empty() {
                    let message = self.message(&mut rest)?;
                    let last = self.messages.last().map(|last| key(last));
                    (Some(key(&message)) > last).then_some(())?;
                    self.messages.push(Arc::new(message));
                }
                Some(())
            }
            (CHANNELS, Some(_)) => {
                while !rest.is_empty() {
                    let mut channel = Channel::read(&mut rest, &self.messages)?;
                    channel.owner = self.publisher(&mut rest)?;
                    let is_new = !self.hub.names.contains_key(&channel.name)
                        && !self.hub.channels.contains_key(&channel.number);
                    (is_new && channel.number <= self.hub.record).then_some(())?;
                    // A removed channel only reserves its name, so it holds no messages.
                    (!channel.is_removed || channel.queue.len() == 0).then_some(())?;
                    // A fork's source is older, so it was read before.
                    if let Some(origin) = channel.origin {
                        self.hub.channels.get_mut(&origin.source)?.forks += 1;
                    }
                    self.hub.restore(channel);
                }
                Some(())
            }
            _ => None,
        }
    }

    fn message(&mut self, from: &mut Decoder<'_>) -> Option<Message> {
        let sequence = Sequence::from_number(from.number()?);
        let time = from.number()?;
        let channels = from.list(|from| Some(self.intern(from.text()?)))?;
        let content_type = from.text()?;
        Some(Message {
            sequence,
            time,
            channels: self.intern_list(&channels),
            content_type: self.intern(content_type),
            format: BodyFormat::read(from)?,
            event: from.optional()?,
            id: from.optional()?,
            headers: read_headers(from)?,
            body: Arc::from(from.bytes()?),
            publisher: self.publisher(from)?,
        })
    }

    #[allow(
        clippy::option_option,
        reason = "the outer one is a failure to read, the inner one the value"
    )]
    fn publisher(&mut self, from: &mut Decoder<'_>) -> Option<Option<Arc<str>>> {
        if self.version < 2 || !from.flag()? {
            return Some(None);
        }
        let publisher = from.text().filter(|publisher| !publisher.is_empty())?;
        Some(Some(self.intern(publisher)))
    }

    /// Returns one shared copy of a text: a million messages have few content types.
    fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(word) = self.strings.get(text) {
            return word.clone();
        }
        let word: Arc<str> = Arc::from(text);
        self.strings.insert(word.clone());
        word
    }

    fn intern_list(&mut self, channels: &[Arc<str>]) -> Arc<[Arc<str>]> {
        if let Some(list) = self.lists.get(channels) {
            return list.clone();
        }
        let list: Arc<[Arc<str>]> = Arc::from(channels);
        self.lists.insert(list.clone());
        list
    }
}

impl Message {
    fn write(&self, to: &mut Vec<u8>) {
        put_number(to, self.sequence.number());
        put_number(to, self.time);
        put_number(to, self.channels.len() as u64);
        for name in self.channels.iter() {
            put_bytes(to, name.as_bytes());
        }
        put_bytes(to, self.content_type.as_bytes());
        self.format.write(to);
        put_optional(to, self.event.as_deref());
        put_optional(to, self.id.as_deref());
        put_headers(to, &self.headers);
        put_bytes(to, &self.body);
        put_optional(to, self.publisher.as_deref());
    }
}

impl Channel {
    fn write(&self, to: &mut Vec<u8>, keys: &[MessageKey]) {
        put_number(to, self.number);
        put_bytes(to, self.name.as_bytes());
        self.settings.write(to);
        to.push(u8::from(self.is_closed));
        to.push(u8::from(self.is_removed));
        Origin::write(self.origin, to);
        for number in [self.created, self.last_active, self.active_record, self.tail.number()] {
            put_number(to, number);
        }
        put_optional(to, self.mark.as_deref());
        self.ids.write(to);
        self.producers.write(to);
        put_number(to, self.queue.dropped().number());
        put_number(to, self.queue.dropped_time());
        put_number(to, self.queue.len() as u64);
        // Each index is written as the distance from the previous one: usually one byte.
        let mut before = 0;
        for message in self.queue.iter() {
            let index = keys.partition_point(|before| *before < key(message)) as u64;
            put_number(to, index - before);
            before = index;
        }
        put_optional(to, self.owner.as_deref());
    }

    fn read(from: &mut Decoder<'_>, messages: &[Arc<Message>]) -> Option<Self> {
        let number = from.number().filter(|number| *number > 0)?;
        let name = Arc::from(from.text()?);
        let settings = Settings::read(from)?;
        let (is_closed, is_removed) = (from.flag()?, from.flag()?);
        let origin = Origin::read(from)?;
        let created = from.number()?;
        let mut channel = Self::new(number, name, settings, Sequence::START, created);
        channel.is_closed = is_closed;
        channel.is_removed = is_removed;
        channel.origin = origin;
        channel.last_active = from.number()?;
        channel.active_record = from.number()?;
        channel.tail = Sequence::from_number(from.number()?);
        channel.mark = from.optional()?;
        channel.ids = MessageIds::read(from)?;
        channel.producers = Producers::read(from)?;
        let dropped = Sequence::from_number(from.number()?);
        channel.queue = Queue::starting_after(dropped, from.number()?);
        let mut index = 0_u64;
        from.list(|from| {
            index = index.checked_add(from.number()?)?;
            let message = messages.get(usize::try_from(index).ok()?)?;
            let last = channel.queue.last_message().map(|last| last.sequence);
            (Some(message.sequence) > last).then_some(())?;
            channel.queue.push(message.clone());
            Some(())
        })?;
        Some(channel)
    }
}
