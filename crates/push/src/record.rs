//! The journal records of channels.
//!
//! docs/formats/channels.md documents every byte. A record contains a command, not its result. The
//! same records applied in the same order produce the same state in every hub, so the journal and
//! the responses cannot disagree.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::codec::{Decoder, put_bytes, put_number, put_optional};
use crate::cursor::{MAX_MESSAGES_PER_RECORD, Sequence};
use crate::dedup::entry_bytes;
use crate::memory::SHARE;
use crate::message::{BodyFormat, Content, Headers, Producer};
use crate::settings::{Expiry, Settings};

/// The number of a channel: that of the record that created it. [`NEW`] refers to the channel that
/// the same record creates.
pub(crate) type Number = u64;

/// See [`Number`].
pub(crate) const NEW: Number = 0;

/// A command in its journal form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The time when it was prepared, in milliseconds since 1970.
    pub(crate) time: u64,
    /// The publisher whose quota the new channel or messages count against.
    pub(crate) publisher: Option<Arc<str>>,
    pub(crate) change: Change,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Create {
        name: Arc<str>,
        settings: Settings,
        /// An expired channel of this name, which the new one replaces.
        due: Option<Due>,
        /// The source of a fork.
        origin: Option<Origin>,
        /// The first messages.
        publication: Publication,
    },
    Publish(Publication),
    Renew(Number),
    SetExpiry(Number, Expiry),
    Remove(Number),
    Expire(Vec<Due>),
}

/// A channel to remove unless a publication or renewal followed this record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) channel: Number,
    /// The record of the channel's last activity.
    pub(crate) active_record: u64,
}

/// The position at which a fork was taken from its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) source: Number,
    /// The fork does not share messages up to here. Retention had dropped them by age, and no
    /// record contains the time of that.
    pub(crate) after: Sequence,
    pub(crate) until: Sequence,
    /// Bytes of the next body.
    pub(crate) bytes: u64,
}

/// A publication whose channels are resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Publication {
    pub(crate) producer: Option<Producer>,
    pub(crate) mark: Option<Arc<str>>,
    pub(crate) close: Vec<Number>,
    pub(crate) entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) channels: Box<[Number]>,
    pub(crate) format: BodyFormat,
    pub(crate) content: Content,
}

/// The first bytes of records. Tables share the journal and use lower values.
const CREATE: u8 = 16;
const PUBLISH: u8 = 17;
const RENEW: u8 = 18;
const REMOVE: u8 = 19;
const EXPIRE: u8 = 20;
const SET_EXPIRY: u8 = 21;
/// `CREATE` and `PUBLISH` with the name of a publisher.
const CREATE_BY: u8 = 22;
const PUBLISH_BY: u8 = 23;

/// Whether a record that begins with this byte belongs to channels.
pub const fn is_channel_record(first: u8) -> bool {
    first >= CREATE && first <= PUBLISH_BY
}

impl Record {
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        let publisher = self.publisher.as_ref().filter(|_| self.change.has_publisher());
        to.push(match self.change {
            Change::Create { .. } if publisher.is_some() => CREATE_BY,
            Change::Publish(_) if publisher.is_some() => PUBLISH_BY,
            Change::Create { .. } => CREATE,
            Change::Publish(_) => PUBLISH,
            Change::Renew(_) => RENEW,
            Change::Remove(_) => REMOVE,
            Change::Expire(_) => EXPIRE,
            Change::SetExpiry(..) => SET_EXPIRY,
        });
        put_number(to, self.time);
        if let Some(publisher) = publisher {
            put_bytes(to, publisher.as_bytes());
        }
        match &self.change {
            Change::Create { name, settings, due, origin, publication } => {
                put_bytes(to, name.as_bytes());
                settings.write(to);
                to.push(u8::from(due.is_some()));
                if let Some(due) = due {
                    due.write(to);
                }
                Origin::write(*origin, to);
                publication.write(to);
            }
            Change::Publish(publication) => publication.write(to),
            Change::Renew(channel) | Change::Remove(channel) => put_number(to, *channel),
            Change::SetExpiry(channel, expiry) => {
                put_number(to, *channel);
                expiry.write(to);
            }
            Change::Expire(all) => {
                put_number(to, all.len() as u64);
                for due in all {
                    due.write(to);
                }
            }
        }
    }

    /// Reads a record, or returns `None` if the bytes are not one.
    pub(crate) fn read(record: &[u8]) -> Option<Self> {
        let mut rest = Decoder(record);
        let kind = rest.byte()?;
        let time = rest.number()?;
        let publisher = match kind {
            CREATE_BY | PUBLISH_BY => {
                Some(Arc::from(rest.text().filter(|publisher| !publisher.is_empty())?))
            }
            _ => None,
        };
        let change = match kind {
            CREATE | CREATE_BY => Change::Create {
                name: Arc::from(rest.text()?),
                settings: Settings::read(&mut rest)?,
                due: if rest.flag()? { Some(Due::read(&mut rest)?) } else { None },
                origin: Origin::read(&mut rest)?,
                publication: Publication::read(&mut rest)?,
            },
            PUBLISH | PUBLISH_BY => Change::Publish(Publication::read(&mut rest)?),
            RENEW => Change::Renew(rest.number()?),
            REMOVE => Change::Remove(rest.number()?),
            SET_EXPIRY => Change::SetExpiry(rest.number()?, Expiry::read(&mut rest)?),
            EXPIRE => Change::Expire(rest.list(Due::read)?),
            _ => return None,
        };
        rest.is_empty().then_some(Self { time, publisher, change })
    }
}

impl Change {
    /// Whether the change creates a channel or publishes messages.
    fn has_publisher(&self) -> bool {
        matches!(self, Self::Create { .. } | Self::Publish(_))
    }
}

impl Due {
    fn write(self, to: &mut Vec<u8>) {
        put_number(to, self.channel);
        put_number(to, self.active_record);
    }

    fn read(from: &mut Decoder<'_>) -> Option<Self> {
        Some(Self { channel: from.number()?, active_record: from.number()? })
    }
}

impl Origin {
    pub(crate) fn write(origin: Option<Self>, to: &mut Vec<u8>) {
        to.push(u8::from(origin.is_some()));
        if let Some(origin) = origin {
            put_number(to, origin.source);
            put_number(to, origin.after.number());
            put_number(to, origin.until.number());
            put_number(to, origin.bytes);
        }
    }

    #[allow(
        clippy::option_option,
        reason = "the outer one is a failure to read, the inner one the value"
    )]
    pub(crate) fn read(from: &mut Decoder<'_>) -> Option<Option<Self>> {
        if !from.flag()? {
            return Some(None);
        }
        let source = from.number()?;
        let after = Sequence::from_number(from.number()?);
        let until = Sequence::from_number(from.number()?);
        Some(Some(Self { source, after, until, bytes: from.number()? }))
    }
}

impl Publication {
    fn write(&self, to: &mut Vec<u8>) {
        to.push(u8::from(self.producer.is_some()));
        if let Some(producer) = &self.producer {
            put_bytes(to, producer.id.as_bytes());
            put_number(to, producer.epoch);
            put_number(to, producer.sequence);
        }
        put_optional(to, self.mark.as_deref());
        put_numbers(to, &self.close);
        put_number(to, self.entries.len() as u64);
        for entry in &self.entries {
            put_numbers(to, &entry.channels);
            entry.format.write(to);
            entry.content.write(to);
        }
    }

    fn read(from: &mut Decoder<'_>) -> Option<Self> {
        let producer = if from.flag()? {
            let id = Arc::from(from.text()?);
            Some(Producer { id, epoch: from.number()?, sequence: from.number()? })
        } else {
            None
        };
        let mark = from.optional()?;
        let close = read_numbers(from)?;
        let entries = from.list(|from| {
            let channels = read_numbers(from).filter(|channels| !channels.is_empty())?.into();
            Some(Entry { channels, format: BodyFormat::read(from)?, content: Content::read(from)? })
        })?;
        (entries.len() <= MAX_MESSAGES_PER_RECORD).then_some(Self {
            producer,
            mark,
            close,
            entries,
        })
    }
}

impl Entry {
    /// Returns the memory that the message will take in all its channels. Every channel also stores
    /// the id.
    pub(crate) fn footprint(&self) -> u64 {
        let channels = self.channels.len() as u64;
        let names = channels * size_of::<Arc<str>>() as u64;
        let ids = channels * self.content.id.as_deref().map_or(0, entry_bytes);
        self.content.weight() as u64 + names + channels.saturating_sub(1) * SHARE + ids
    }
}

impl Publication {
    /// Returns all channels, those of messages first. A channel may appear more than once.
    pub(crate) fn channels(&self) -> impl Iterator<Item = Number> {
        let entries = self.entries.iter().flat_map(|entry| entry.channels.iter());
        entries.chain(&self.close).copied()
    }

    /// Replaces all channels by one. A damaged record may name several, and each message still
    /// gets into the channel once.
    pub(crate) fn move_to(&mut self, channel: Number) {
        for entry in &mut self.entries {
            entry.channels = [channel].into();
        }
        self.close.iter_mut().for_each(|close| *close = channel);
        self.close.dedup();
    }

    /// Returns the number and the weight of the messages that a channel would receive.
    pub(crate) fn size_in(&self, channel: Number) -> (u64, u64) {
        let entries = self.entries.iter();
        let own = entries.filter(|entry| entry.channels.binary_search(&channel).is_ok());
        own.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + entry.content.weight() as u64))
    }

    /// Returns the channel if the publication concerns exactly one.
    pub(crate) fn only_channel(&self) -> Option<Number> {
        let mut channels = self.channels();
        let first = channels.next()?;
        channels.all(|other| other == first).then_some(first)
    }
}

impl Content {
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        put_optional(to, self.content_type.as_deref());
        put_optional(to, self.event.as_deref());
        put_optional(to, self.id.as_deref());
        put_headers(to, &self.headers);
        put_bytes(to, &self.body);
    }

    pub(crate) fn read(from: &mut Decoder<'_>) -> Option<Self> {
        Some(Self {
            content_type: from.optional()?,
            event: from.optional()?,
            id: from.optional()?,
            headers: read_headers(from)?,
            body: Arc::from(from.bytes()?),
        })
    }
}

impl BodyFormat {
    pub(crate) fn write(self, to: &mut Vec<u8>) {
        to.push(match self {
            Self::Binary => 0,
            Self::Text => 1,
            Self::Json => 2,
        });
    }

    pub(crate) fn read(from: &mut Decoder<'_>) -> Option<Self> {
        match from.byte()? {
            0 => Some(Self::Binary),
            1 => Some(Self::Text),
            2 => Some(Self::Json),
            _ => None,
        }
    }
}

fn put_numbers(to: &mut Vec<u8>, numbers: &[Number]) {
    put_number(to, numbers.len() as u64);
    for number in numbers {
        put_number(to, *number);
    }
}

/// Reads channel numbers, which must be sorted and unique.
fn read_numbers(from: &mut Decoder<'_>) -> Option<Vec<Number>> {
    from.list(Decoder::number).filter(|numbers| numbers.is_sorted_by(|one, other| one < other))
}

pub(crate) fn put_headers(to: &mut Vec<u8>, headers: &Headers) {
    put_number(to, headers.len() as u64);
    for (name, value) in headers {
        put_bytes(to, name.as_bytes());
        put_bytes(to, value.as_bytes());
    }
}

pub(crate) fn read_headers(from: &mut Decoder<'_>) -> Option<Headers> {
    Some(from.list(|from| Some((from.text()?.into(), from.text()?.into())))?.into())
}
