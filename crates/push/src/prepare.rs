//! Decides whether an order can be carried out, as far as that can be told before it has its place.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::channel::{Channel, footprint};
use crate::cursor::{MOST_PLACES, Sequence};
use crate::hub::Hub;
use crate::memory::{Reservation, SHARE, address};
use crate::message::{DEFAULT_TYPE, Draft, Form, Publish, check_word, name_of};
use crate::order::{Applied, Fork, Name, Order, Prepared, Published, Publisher, Ready, Taken};
use crate::record::{Change, Due, Entry, NEW, Number, Origin, Publication, Record};
use crate::refused::{Quota, Refused};
use crate::settings::Settings;

impl Hub {
    /// Checks an order of the program's own and changes nothing but what is reserved for it.
    ///
    /// # Errors
    /// What can be told already; [`apply`](Self::apply) has the last word, since another order may come first.
    pub fn prepare(&mut self, order: Order, now: u64) -> Result<Ready, Refused> {
        self.prepare_by(order, None, now)
    }

    /// The same for an order of a publisher, against whose quota it counts.
    ///
    /// # Errors
    /// What can be told already.
    pub fn prepare_by(
        &mut self,
        order: Order,
        publisher: Option<&Publisher>,
        now: u64,
    ) -> Result<Ready, Refused> {
        let mut reserved = None;
        let (change, durability) = match order {
            Order::Create { name, settings, fork, first, is_closed } => {
                let name = match name {
                    Name::Given(name) => name,
                    Name::Random(bits) => Arc::from(name_of(bits)),
                };
                let start = (fork, first, is_closed);
                return self.prepare_channel((name, publisher), settings, start, now);
            }
            Order::Publish(publish) => {
                let publication = self.find_channels(publish, now)?;
                if let Some(done) = self.was_done(&publication, now)? {
                    return Ok(Ready::Done(Applied::Published(done)));
                }
                reserved = self.reserve(&publication, publisher, now)?;
                let channels =
                    publication.channels().filter_map(|number| self.channels.get(&number));
                let durability = channels.map(|channel| channel.settings.durability).max();
                (Change::Publish(publication), durability.unwrap_or_default())
            }
            Order::Renew(name) => {
                let channel = self.find(&name, now)?;
                (Change::Renew(channel.number), channel.settings.durability)
            }
            Order::Prolong { channel, expiry } => {
                let channel = self.find(&channel, now)?;
                (Change::Prolong(channel.number, expiry), channel.settings.durability)
            }
            Order::Remove(name) => {
                let channel = self.find(&name, now)?;
                (Change::Remove(channel.number), channel.settings.durability)
            }
        };
        let publisher = publisher.map(|publisher| publisher.name.clone());
        let record = Record { time: now, publisher, change };
        Ok(Ready::Record(Prepared { record, durability, reserved }))
    }

    /// Reserves room for what is published in channels that are there.
    fn reserve(
        &mut self,
        publication: &Publication,
        publisher: Option<&Publisher>,
        now: u64,
    ) -> Result<Option<Reservation>, Refused> {
        let mut wanted: u64 = publication.entries.iter().map(Entry::footprint).sum();
        let only = publication.only_channel().and_then(|number| self.channels.get(&number));
        wanted += only
            .zip(publication.producer.as_ref())
            .map_or(0, |(channel, producer)| channel.producers.wanted(producer));
        if wanted == 0 {
            return Ok(None);
        }
        let mut channels: Vec<Number> = publication.channels().collect();
        channels.sort_unstable();
        channels.dedup();
        let channels = channels.iter().filter_map(|number| self.channels.get(number));
        let most = self.limits.channel_bytes;
        for channel in channels.clone().filter(|at| at.settings.retention.bytes == 0) {
            // Mostly all of it fits, whatever its channels are.
            let used = channel.queue.bytes();
            if used + wanted <= most {
                continue;
            }
            let (count, wanted) = publication.coming_to(channel.number);
            let surplus = channel.queue.surplus(channel.settings.retention, now, (count, wanted));
            let freed: u64 = surplus.map(|message| message.weight() as u64).sum();
            if used - freed + wanted > most {
                let of = Quota::Channel(channel.name.clone());
                return Err(Refused::Quota { of, used, most, wanted });
            }
        }
        let freed = || {
            let (mut dropped, mut freed) = (BTreeMap::<usize, u32>::new(), (0, 0));
            for channel in channels.clone() {
                let retention = channel.settings.retention.within(most);
                let coming = publication.coming_to(channel.number);
                for message in channel.queue.surplus(retention, now, coming) {
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
        let room = self.memory.room(wanted, self.limits.bytes, publisher, freed)?;
        Ok(Some(self.memory.reserve(room)))
    }

    /// A channel's making, with where it begins, what is published first and whether it is closed then.
    fn prepare_channel(
        &mut self,
        (name, publisher): (Arc<str>, Option<&Publisher>),
        mut settings: Settings,
        (fork, first, is_closed): (Option<Fork>, Vec<Draft>, bool),
        now: u64,
    ) -> Result<Ready, Refused> {
        check_word("the channel's name", &name, self.limits.name)?;
        if let Some(content_type) = &settings.content_type {
            check_word("the channel's type", content_type, self.limits.word)?;
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
                if channel.is_gone || channel.settings != settings || !is_same {
                    return Err(Refused::Conflict(name));
                }
                return Ok(Ready::Done(Applied::Existed { expires: channel.expires() }));
            }
            Some(channel) => Some(Due { channel: channel.number, kept: channel.kept }),
            None if self.channels.len() >= self.limits.channels => {
                let most = self.limits.channels as u64;
                return Err(Refused::TooMuch { what: "channels", most });
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
            let Origin { behind, until, bytes, .. } = origin;
            let (shared, cut) = source.queue.fork_size(behind, until, bytes);
            shared as u64 * SHARE + cut.map_or(0, |cut| cut.footprint_cut(bytes))
        });
        let (_, weight) = publication.coming_to(NEW);
        let most = self.limits.channel_bytes;
        if settings.retention.bytes == 0 && forked + weight > most {
            let of = Quota::Channel(name);
            return Err(Refused::Quota { of, used: forked, most, wanted: weight });
        }
        let wanted = footprint(&name, &settings) + first + fork;
        let room = self.memory.room(wanted, self.limits.bytes, publisher, || (0, 0))?;
        let reserved = Some(self.memory.reserve(room));
        let change = Change::Create { name, settings, due, origin, publication };
        let publisher = publisher.map(|publisher| publisher.name.clone());
        let record = Record { time: now, publisher, change };
        Ok(Ready::Record(Prepared { record, durability, reserved }))
    }

    /// Where a fork leaves its source: at a place that the source holds everything behind.
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
        let next = source.queue.at(source.queue.after(until.sequence));
        let most = next.map_or(0, |next| next.body.len() as u64);
        if fork.bytes > most {
            return Err(Refused::TooMuch { what: "bytes of the message at a fork", most });
        }
        Ok(Origin {
            source: source.number,
            behind: source.queue.before_first().min(until.sequence),
            until: until.sequence,
            bytes: fork.bytes,
        })
    }

    /// Finds the channels of a publication and checks what does not depend on others.
    fn find_channels(&self, publish: Publish, now: u64) -> Result<Publication, Refused> {
        let Publish { messages, close, producer, mark } = publish;
        if messages.is_empty() && close.is_empty() {
            return Err(Refused::Empty("a publication"));
        }
        for (what, word) in [
            ("the producer's id", producer.as_ref().map(|producer| &producer.id)),
            ("the mark", mark.as_ref()),
        ] {
            if let Some(word) = word {
                check_word(what, word, self.limits.word)?;
            }
        }
        let mut entries = Vec::with_capacity(messages.len());
        for draft in messages {
            let most = self.limits.channels_of_message;
            if draft.channels.is_empty() {
                return Err(Refused::Empty("a message's list of channels"));
            } else if draft.channels.len() > most {
                return Err(Refused::TooMuch { what: "channels of a message", most: most as u64 });
            }
            let channels = self.numbers(&draft.channels, now)?;
            let content_type = match &channels[..] {
                [only] => {
                    self.channels.get(only).and_then(|only| only.settings.content_type.as_ref())
                }
                _ => None,
            };
            for channel in channels.iter().filter_map(|number| self.channels.get(number)) {
                if let Some(wanted) = &channel.settings.content_type
                    && draft.content.content_type.as_ref().or(content_type) != Some(wanted)
                {
                    return Err(Refused::ContentType(wanted.clone()));
                }
            }
            entries.push(self.entry(draft, channels, content_type)?);
        }
        self.check_size(&entries)?;
        let most = self.limits.channels_of_subscription;
        if close.len() > most {
            return Err(Refused::TooMuch { what: "channels to close", most: most as u64 });
        }
        let close = self.numbers(&close, now)?.into_vec();
        let publication = Publication { producer, mark, close, entries };
        if publication.producer.is_some() || publication.mark.is_some() {
            publication.only_channel().ok_or(Refused::OneChannel)?;
        }
        Ok(publication)
    }

    /// Sorted, without repetitions.
    fn numbers(&self, names: &[Arc<str>], now: u64) -> Result<Box<[Number]>, Refused> {
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
        let said = draft.content.content_type.as_ref().or(content_type);
        let form = Form::of(said.map_or(DEFAULT_TYPE, |said| said), &draft.content.body);
        Ok(Entry { channels, form, content: draft.content })
    }

    fn check_size(&self, entries: &[Entry]) -> Result<(), Refused> {
        let most = self.limits.messages.min(MOST_PLACES);
        if entries.len() > most {
            return Err(Refused::TooMuch { what: "messages of a publication", most: most as u64 });
        }
        let bytes: usize = entries.iter().map(|entry| entry.content.body.len()).sum();
        if bytes > self.limits.publication {
            let most = self.limits.publication as u64;
            return Err(Refused::TooMuch { what: "bytes of a publication", most });
        }
        Ok(())
    }

    /// Whether nothing is left to do, or never can be. A gap is not told yet: what fills it may be on its way.
    fn was_done(&self, publication: &Publication, now: u64) -> Result<Option<Published>, Refused> {
        match self.admit(publication) {
            Ok(Some(done)) => return Ok(Some(done)),
            Ok(None) | Err(Refused::Gap { .. } | Refused::EpochStart) => {}
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
            let Some(sequence) = self.known_to_all(entry, now) else { return Ok(None) };
            messages.push(Taken::Repeated(sequence));
        }
        let tail = self.tail_of(publication);
        Ok(Some(Published { messages, producer: None, tail }))
    }

    fn tail_of(&self, publication: &Publication) -> Sequence {
        let first = publication.channels().next();
        first.and_then(|number| self.channels.get(&number)).map_or(Sequence::START, |at| at.tail)
    }
}
