//! Decides whether an order can be carried out, as far as that can be told before it has its place.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::channel::Channel;
use crate::cursor::{MOST_PLACES, Sequence};
use crate::hub::Hub;
use crate::message::{DEFAULT_TYPE, Draft, Form, Publish, check_word, name_of};
use crate::order::{Applied, Fork, Name, Order, Prepared, Published, Ready, Taken};
use crate::record::{Change, Due, Entry, NEW, Number, Origin, Publication, Record};
use crate::refused::Refused;
use crate::settings::Settings;

impl Hub {
    /// Checks an order and changes nothing.
    ///
    /// # Errors
    /// What can be told already; [`apply`](Self::apply) has the last word, since another order may come first.
    pub fn prepare(&self, order: Order, now: u64) -> Result<Ready, Refused> {
        let (change, durability) = match order {
            Order::Create { name, settings, fork, first, is_closed } => {
                let name = match name {
                    Name::Given(name) => name,
                    Name::Random(bits) => Arc::from(name_of(bits)),
                };
                let start = (fork, first, is_closed);
                return self.prepare_channel(name, settings, start, now);
            }
            Order::Publish(publish) => {
                let publication = self.find_channels(publish, now)?;
                if let Some(done) = self.was_done(&publication, now)? {
                    return Ok(Ready::Done(Applied::Published(done)));
                }
                let added: usize =
                    publication.entries.iter().map(|entry| entry.content.body.len()).sum();
                if self.bytes + added as u64 > self.limits.bytes {
                    return Err(Refused::TooMuch {
                        what: "bytes of all channels",
                        most: self.limits.bytes,
                    });
                }
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
        Ok(Ready::Record(Prepared { record: Record { time: now, change }, durability }))
    }

    /// A channel's making, with where it begins, what is published first and whether it is closed then.
    fn prepare_channel(
        &self,
        name: Arc<str>,
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
        let change = Change::Create { name, settings, due, origin, publication };
        Ok(Ready::Record(Prepared { record: Record { time: now, change }, durability }))
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
        } else if self.bytes + source.queue.bytes() > self.limits.bytes {
            let most = self.limits.bytes;
            return Err(Refused::TooMuch { what: "bytes of all channels", most });
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
