//! Checks whether a command is valid, as far as that is known before it has a position.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::channel::{Channel, footprint};
use crate::cursor::{MAX_MESSAGES_PER_RECORD, Sequence};
use crate::hub::Hub;
use crate::memory::{Reservation, SHARE, address};
use crate::message::{BodyFormat, DEFAULT_TYPE, Draft, Publish, check_text, name_from_bits};
use crate::order::{
    Applied, ChannelName, Command, Fork, Preparation, Prepared, Published, Receipt,
};
use crate::publisher::Publisher;
use crate::record::{Change, Due, Entry, NEW, Number, Origin, Publication, Record};
use crate::refused::{Quota, Refused};
use crate::settings::Settings;

impl Hub {
    /// Checks a command of the program itself. Its only effect is that it reserves memory.
    ///
    /// # Errors
    /// Any fault that is known now. [`apply`](Self::apply) may still refuse the command, since
    /// another command may be applied first.
    pub fn prepare(&mut self, command: Command, now: u64) -> Result<Preparation, Refused> {
        self.prepare_by(command, None, now)
    }

    /// Checks a command of a publisher, whose quota the command counts against.
    ///
    /// # Errors
    /// Any fault that is known now.
    pub fn prepare_by(
        &mut self,
        command: Command,
        publisher: Option<&Publisher>,
        now: u64,
    ) -> Result<Preparation, Refused> {
        let mut reserved = None;
        let (change, durability) = match command {
            Command::Create { name, settings, fork, first, is_closed } => {
                let name = match name {
                    ChannelName::Given(name) => name,
                    ChannelName::Random(bits) => Arc::from(name_from_bits(bits)),
                };
                let start = (fork, first, is_closed);
                return self.prepare_create((name, publisher), settings, start, now);
            }
            Command::Publish(publish) => {
                let publication = self.resolve(publish, now)?;
                if let Some(done) = self.find_completed(&publication, now)? {
                    return Ok(Preparation::Done(Applied::Published(done)));
                }
                reserved = self.reserve(&publication, publisher, now)?;
                let channels =
                    publication.channels().filter_map(|number| self.channels.get(&number));
                let durability = channels.map(|channel| channel.settings.durability).max();
                (Change::Publish(publication), durability.unwrap_or_default())
            }
            Command::Renew(name) => {
                let channel = self.find(&name, now)?;
                (Change::Renew(channel.number), channel.settings.durability)
            }
            Command::SetExpiry { channel, expiry } => {
                let channel = self.find(&channel, now)?;
                (Change::SetExpiry(channel.number, expiry), channel.settings.durability)
            }
            Command::Remove(name) => {
                let channel = self.find(&name, now)?;
                (Change::Remove(channel.number), channel.settings.durability)
            }
        };
        let publisher = publisher.map(|publisher| publisher.name.clone());
        let record = Record { time: now, publisher, change };
        Ok(Preparation::Record(Prepared { record, durability, reserved }))
    }

    /// Reserves memory for messages to existing channels.
    fn reserve(
        &mut self,
        publication: &Publication,
        publisher: Option<&Publisher>,
        now: u64,
    ) -> Result<Option<Reservation>, Refused> {
        let mut requested: u64 = publication.entries.iter().map(Entry::footprint).sum();
        let only = publication.only_channel().and_then(|number| self.channels.get(&number));
        requested += only
            .zip(publication.producer.as_ref())
            .map_or(0, |(channel, producer)| channel.producers.bytes_to_add(producer));
        if requested == 0 {
            return Ok(None);
        }
        let mut channels: Vec<Number> = publication.channels().collect();
        channels.sort_unstable();
        channels.dedup();
        let channels = channels.iter().filter_map(|number| self.channels.get(number));
        let limit = self.limits.channel_bytes;
        for channel in channels.clone().filter(|at| at.settings.retention.bytes == 0) {
            // Fast path: usually the whole publication fits, whatever share of it this channel
            // receives.
            let used = channel.queue.bytes();
            if used + requested <= limit {
                continue;
            }
            let (count, requested) = publication.size_in(channel.number);
            let overflow =
                channel.queue.overflow(channel.settings.retention, now, (count, requested));
            let freed: u64 = overflow.map(|message| message.weight() as u64).sum();
            if used - freed + requested > limit {
                let quota = Quota::Channel(channel.name.clone());
                return Err(Refused::QuotaExceeded { quota, used, limit, requested });
            }
        }
        let freed = || {
            let (mut dropped, mut freed) = (BTreeMap::<usize, u32>::new(), (0, 0));
            for channel in channels.clone() {
                let retention = channel.settings.retention.within(limit);
                let incoming = publication.size_in(channel.number);
                for message in channel.queue.overflow(retention, now, incoming) {
                    let count = dropped.entry(address(message)).or_default();
                    *count += 1;
                    if *count == self.memory.holders(message) {
                        freed.0 += message.footprint();
                        let is_own = publisher.is_some_and(|publisher| {
                            message.publisher.as_ref() == Some(&publisher.name)
                        });
                        freed.1 += if is_own { message.footprint() } else { 0 };
                    }
                }
            }
            freed
        };
        let room = self.memory.room(requested, self.limits.bytes, publisher, freed)?;
        Ok(Some(self.memory.reserve(room)))
    }

    /// Prepares the creation of a channel with its source, its first messages and whether it is
    /// closed after them.
    fn prepare_create(
        &mut self,
        (name, publisher): (Arc<str>, Option<&Publisher>),
        mut settings: Settings,
        (fork, first, is_closed): (Option<Fork>, Vec<Draft>, bool),
        now: u64,
    ) -> Result<Preparation, Refused> {
        check_text("the channel's name", &name, self.limits.name)?;
        if let Some(content_type) = &settings.content_type {
            check_text("the channel's type", content_type, self.limits.attribute)?;
        }
        let source = match &fork {
            Some(fork) => Some(self.find(&fork.channel, now)?),
            None => None,
        };
        if let Some(inherited) = source.and_then(|source| source.settings.content_type.as_ref())
            && settings.content_type.get_or_insert_with(|| inherited.clone()) != inherited
        {
            return Err(Refused::ContentType(inherited.clone()));
        }
        let existing = self.names.get(&name).and_then(|number| self.channels.get(number));
        let due = match existing {
            Some(channel) if !channel.is_due(now) => {
                let is_same = match (&fork, channel.origin) {
                    (Some(fork), Some(origin)) => {
                        source.is_some_and(|source| source.number == origin.source)
                            && fork.until.is_none_or(|until| until == self.cursor(origin.until))
                            && fork.bytes == origin.bytes
                    }
                    (fork, _) => fork.is_none(),
                };
                if channel.is_removed || channel.settings != settings || !is_same {
                    return Err(Refused::Conflict(name));
                }
                return Ok(Preparation::Done(Applied::Existed { expires: channel.expires_at() }));
            }
            Some(channel) => {
                Some(Due { channel: channel.number, active_record: channel.active_record })
            }
            None if self.channels.len() >= self.limits.channels => {
                let limit = self.limits.channels as u64;
                return Err(Refused::LimitExceeded { quantity: "channels", limit });
            }
            None => None,
        };
        let origin = match (fork, source) {
            (Some(fork), Some(source)) => Some(self.origin(&fork, source)?),
            _ => None,
        };
        let mut entries = Vec::with_capacity(first.len());
        for draft in first {
            entries.push(self.entry(draft, Box::from([NEW]), settings.content_type.as_ref())?);
        }
        self.check_size(&entries)?;
        let close = if is_closed { Vec::from([NEW]) } else { Vec::new() };
        let publication = Publication { close, entries, ..Publication::default() };
        let durability = settings.durability;
        let first: u64 = publication.entries.iter().map(Entry::footprint).sum();
        let forked = source.map_or(0, |source| source.queue.bytes());
        let fork = source.zip(origin).map_or(0, |(source, origin)| {
            let Origin { after, until, bytes, .. } = origin;
            let (shared, cut) = source.queue.fork_size(after, until, bytes);
            shared as u64 * SHARE + cut.map_or(0, |cut| cut.footprint_truncated(bytes))
        });
        let (_, weight) = publication.size_in(NEW);
        let limit = self.limits.channel_bytes;
        if settings.retention.bytes == 0 && forked + weight > limit {
            let quota = Quota::Channel(name);
            return Err(Refused::QuotaExceeded { quota, used: forked, limit, requested: weight });
        }
        let requested = footprint(&name, &settings) + first + fork;
        let room = self.memory.room(requested, self.limits.bytes, publisher, || (0, 0))?;
        let reserved = Some(self.memory.reserve(room));
        let change = Change::Create { name, settings, due, origin, publication };
        let publisher = publisher.map(|publisher| publisher.name.clone());
        let record = Record { time: now, publisher, change };
        Ok(Preparation::Record(Prepared { record, durability, reserved }))
    }

    /// Resolves the position of a fork. The source must hold every message after it.
    fn origin(&self, fork: &Fork, source: &Channel) -> Result<Origin, Refused> {
        let (tail, earliest) = (self.cursor(source.tail), self.cursor(source.queue.dropped()));
        let until = fork.until.unwrap_or(tail);
        if until.epoch != self.epoch {
            return Err(Refused::ForeignEpoch { earliest });
        } else if until > tail {
            return Err(Refused::Ahead { watermark: tail });
        } else if until < earliest {
            return Err(Refused::TooOld { earliest });
        }
        let next = source.queue.get(source.queue.index_after(until.sequence));
        let limit = next.map_or(0, |next| next.body.len() as u64);
        if fork.bytes > limit {
            return Err(Refused::LimitExceeded {
                quantity: "bytes of the message at a fork",
                limit,
            });
        }
        Ok(Origin {
            source: source.number,
            after: source.queue.before_first().min(until.sequence),
            until: until.sequence,
            bytes: fork.bytes,
        })
    }

    /// Resolves the channels of a publication and checks everything that other commands cannot
    /// change.
    pub(crate) fn resolve(&self, publish: Publish, now: u64) -> Result<Publication, Refused> {
        let Publish { messages, close, producer, mark } = publish;
        if messages.is_empty() && close.is_empty() {
            return Err(Refused::Empty("a publication"));
        }
        for (what, word) in [
            ("the producer's id", producer.as_ref().map(|producer| &producer.id)),
            ("the mark", mark.as_ref()),
        ] {
            if let Some(word) = word {
                check_text(what, word, self.limits.attribute)?;
            }
        }
        let mut entries = Vec::with_capacity(messages.len());
        for draft in messages {
            let limit = self.limits.channels_per_message;
            if draft.channels.is_empty() {
                return Err(Refused::Empty("a message's list of channels"));
            } else if draft.channels.len() > limit {
                return Err(Refused::LimitExceeded {
                    quantity: "channels of a message",
                    limit: limit as u64,
                });
            }
            let channels = self.resolve_names(&draft.channels, now)?;
            let content_type = match &channels[..] {
                [only] => {
                    self.channels.get(only).and_then(|only| only.settings.content_type.as_ref())
                }
                _ => None,
            };
            for channel in channels.iter().filter_map(|number| self.channels.get(number)) {
                if let Some(required) = &channel.settings.content_type
                    && draft.content.content_type.as_ref().or(content_type) != Some(required)
                {
                    return Err(Refused::ContentType(required.clone()));
                }
            }
            entries.push(self.entry(draft, channels, content_type)?);
        }
        self.check_size(&entries)?;
        let limit = self.limits.channels_per_subscription;
        if close.len() > limit {
            return Err(Refused::LimitExceeded {
                quantity: "channels to close",
                limit: limit as u64,
            });
        }
        let close = self.resolve_names(&close, now)?.into_vec();
        let publication = Publication { producer, mark, close, entries };
        if publication.producer.is_some() || publication.mark.is_some() {
            publication.only_channel().ok_or(Refused::OneChannel)?;
        }
        Ok(publication)
    }

    /// Returns the channels' numbers, sorted and without duplicates.
    fn resolve_names(&self, names: &[Arc<str>], now: u64) -> Result<Box<[Number]>, Refused> {
        let mut numbers = Vec::with_capacity(names.len());
        for name in names {
            numbers.push(self.find(name, now)?.number);
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers.into())
    }

    fn entry(
        &self,
        draft: Draft,
        channels: Box<[Number]>,
        content_type: Option<&Arc<str>>,
    ) -> Result<Entry, Refused> {
        draft.content.check(&self.limits)?;
        let effective_type = draft.content.content_type.as_ref().or(content_type);
        let format =
            BodyFormat::of(effective_type.map_or(DEFAULT_TYPE, |text| text), &draft.content.body);
        Ok(Entry { channels, format, content: draft.content })
    }

    fn check_size(&self, entries: &[Entry]) -> Result<(), Refused> {
        let limit = self.limits.messages.min(MAX_MESSAGES_PER_RECORD);
        if entries.len() > limit {
            return Err(Refused::LimitExceeded {
                quantity: "messages of a publication",
                limit: limit as u64,
            });
        }
        let bytes: usize = entries.iter().map(|entry| entry.content.body.len()).sum();
        if bytes > self.limits.publication {
            let limit = self.limits.publication as u64;
            return Err(Refused::LimitExceeded { quantity: "bytes of a publication", limit });
        }
        Ok(())
    }

    /// Returns the result of a publication that was applied before, and an error for one that can
    /// never succeed. A sequence gap is no error yet: the missing publication may be in progress.
    fn find_completed(
        &self,
        publication: &Publication,
        now: u64,
    ) -> Result<Option<Published>, Refused> {
        match self.admit(publication) {
            Ok(Some(done)) => return Ok(Some(done)),
            Ok(None) | Err(Refused::SequenceGap { .. } | Refused::EpochStart) => {}
            Err(refused) => return Err(refused),
        }
        if !publication.close.is_empty()
            || publication.entries.is_empty()
            || publication.producer.is_some()
        {
            return Ok(None);
        }
        let mut messages = Vec::new();
        for entry in &publication.entries {
            let Some(sequence) = self.find_duplicate(entry, now) else { return Ok(None) };
            messages.push(Receipt::Duplicate(sequence));
        }
        let tail = self.tail_of(publication);
        Ok(Some(Published { messages, producer: None, tail }))
    }

    fn tail_of(&self, publication: &Publication) -> Sequence {
        let first = publication.channels().next();
        first.and_then(|number| self.channels.get(&number)).map_or(Sequence::START, |at| at.tail)
    }
}
