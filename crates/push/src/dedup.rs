//! Detects duplicate publications: by message id within a time window, and by producer sequence
//! without one.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::codec::{Decoder, put_bytes, put_number};
use crate::cursor::Sequence;
use crate::message::Producer;
use crate::refused::Refused;
use crate::settings::Limits;

/// The ids of a channel's recent messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageIds {
    by_id: BTreeMap<Arc<str>, (Sequence, u64)>,
    /// The same ids by age, for eviction.
    by_age: VecDeque<(u64, Arc<str>)>,
    bytes: u64,
}

/// The producers that a channel remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Producers {
    by_id: BTreeMap<Arc<str>, ProducerState>,
    /// The same producers by their last record, for eviction.
    by_record: BTreeMap<u64, Arc<str>>,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct ProducerState {
    epoch: u64,
    sequence: u64,
    record: u64,
}

/// The result of a check of a producer's sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repetition {
    New,
    /// The publication was accepted before. Contains the highest number accepted in this epoch.
    Duplicate(u64),
}

/// The memory that an id or a producer takes, without its text.
const ENTRY: u64 = 128;

/// Returns the memory that an id or a producer takes.
pub(crate) fn entry_bytes(text: &str) -> u64 {
    text.len() as u64 + ENTRY
}

impl MessageIds {
    /// Returns the memory that the ids take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the message of an id if it is within the window.
    pub(crate) fn find(&self, id: &str, now: u64, limits: &Limits) -> Option<Sequence> {
        let (sequence, time) = *self.by_id.get(id)?;
        (now.saturating_sub(time) <= limits.id_window).then_some(sequence)
    }

    /// Adds an id that [`find`](Self::find) did not return.
    pub(crate) fn insert(&mut self, id: &Arc<str>, sequence: Sequence, now: u64, limits: &Limits) {
        while let Some((time, oldest)) = self.by_age.front() {
            if self.by_age.len() < limits.ids && now.saturating_sub(*time) <= limits.id_window {
                break;
            }
            self.bytes -= entry_bytes(oldest);
            self.by_id.remove(oldest);
            self.by_age.pop_front();
        }
        self.bytes += entry_bytes(id);
        self.by_id.insert(id.clone(), (sequence, now));
        self.by_age.push_back((now, id.clone()));
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        put_number(to, self.by_age.len() as u64);
        for (time, id) in &self.by_age {
            put_bytes(to, id.as_bytes());
            put_number(to, *time);
            let sequence = self.by_id.get(id).map_or(Sequence::START, |by_id| by_id.0);
            put_number(to, sequence.number());
        }
    }

    pub(crate) fn read(from: &mut Decoder<'_>) -> Option<Self> {
        let mut ids = Self::default();
        from.list(|from| {
            let id: Arc<str> = Arc::from(from.text()?);
            let time = from.number()?;
            let sequence = Sequence::from_number(from.number()?);
            ids.bytes += entry_bytes(&id);
            ids.by_id.insert(id.clone(), (sequence, time));
            ids.by_age.push_back((time, id));
            Some(())
        })?;
        Some(ids)
    }
}

impl Producers {
    /// Returns the memory that the producers take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the additional memory that this producer would take.
    pub(crate) fn bytes_to_add(&self, producer: &Producer) -> u64 {
        if self.by_id.contains_key(&producer.id) { 0 } else { entry_bytes(&producer.id) }
    }

    /// Checks a publication by the rules of the Durable Streams protocol (5.2.1).
    ///
    /// # Errors
    /// A stale epoch, an epoch that does not start at 0, or a gap in the sequence.
    pub(crate) fn check(&self, producer: &Producer) -> Result<Repetition, Refused> {
        let expected = match self.by_id.get(&producer.id) {
            Some(state) if producer.epoch < state.epoch => {
                return Err(Refused::StaleEpoch { current: state.epoch });
            }
            Some(state) if producer.epoch == state.epoch => {
                if producer.sequence <= state.sequence {
                    return Ok(Repetition::Duplicate(state.sequence));
                }
                state.sequence.saturating_add(1)
            }
            Some(_) if producer.sequence != 0 => return Err(Refused::EpochStart),
            _ => 0,
        };
        if producer.sequence == expected {
            Ok(Repetition::New)
        } else {
            Err(Refused::SequenceGap { expected, received: producer.sequence })
        }
    }

    /// Records a publication that was checked to be new.
    pub(crate) fn accept(&mut self, producer: &Producer, record: u64, limits: &Limits) {
        let state = ProducerState { epoch: producer.epoch, sequence: producer.sequence, record };
        match self.by_id.insert(producer.id.clone(), state) {
            Some(before) => drop(self.by_record.remove(&before.record)),
            None => self.bytes += entry_bytes(&producer.id),
        }
        self.by_record.insert(record, producer.id.clone());
        if self.by_id.len() > limits.producers
            && let Some((_, forgotten)) = self.by_record.pop_first()
        {
            self.bytes -= entry_bytes(&forgotten);
            self.by_id.remove(&forgotten);
        }
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        put_number(to, self.by_id.len() as u64);
        for (id, state) in &self.by_id {
            put_bytes(to, id.as_bytes());
            put_number(to, state.epoch);
            put_number(to, state.sequence);
            put_number(to, state.record);
        }
    }

    pub(crate) fn read(from: &mut Decoder<'_>) -> Option<Self> {
        let mut producers = Self::default();
        from.list(|from| {
            let id: Arc<str> = Arc::from(from.text()?);
            let state = ProducerState {
                epoch: from.number()?,
                sequence: from.number()?,
                record: from.number()?,
            };
            producers.bytes += entry_bytes(&id);
            let is_first = producers.by_record.insert(state.record, id.clone()).is_none()
                && producers.by_id.insert(id, state).is_none();
            is_first.then_some(())
        })?;
        Some(producers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symptom: a producer that was listed twice counted twice and was evicted once. Found by a
    /// fuzz target.
    #[test]
    fn rejects_snapshot_that_lists_a_producer_twice() {
        let read = |ids: [&str; 2], records: [u64; 2]| {
            let mut bytes = Vec::from([2]);
            for (id, record) in ids.into_iter().zip(records) {
                put_bytes(&mut bytes, id.as_bytes());
                for number in [0, 0, record] {
                    put_number(&mut bytes, number);
                }
            }
            Producers::read(&mut Decoder(&bytes)).map(|producers| producers.bytes())
        };
        assert_eq!(read(["a", "b"], [1, 2]), Some(2 * entry_bytes("a")));
        assert_eq!(read(["a", "a"], [1, 2]), None);
        assert_eq!(read(["a", "b"], [1, 1]), None);
    }

    #[test]
    fn checks_producer_epoch_and_sequence() {
        let limits = Limits { producers: 2, ..Limits::default() };
        let mut producers = Producers::default();
        let mut record = 0;
        let mut check = |id: &str, epoch, sequence, expected: Result<Repetition, Refused>| {
            let producer = Producer { id: id.into(), epoch, sequence };
            assert_eq!(producers.check(&producer), expected, "{id} {epoch} {sequence}");
            if expected == Ok(Repetition::New) {
                record += 1;
                producers.accept(&producer, record, &limits);
            }
        };
        check("a", 0, 1, Err(Refused::SequenceGap { expected: 0, received: 1 }));
        check("a", 0, 0, Ok(Repetition::New));
        check("a", 0, 0, Ok(Repetition::Duplicate(0)));
        check("a", 0, 2, Err(Refused::SequenceGap { expected: 1, received: 2 }));
        check("a", 0, 1, Ok(Repetition::New));
        check("a", 0, 0, Ok(Repetition::Duplicate(1)));
        check("a", 2, 1, Err(Refused::EpochStart));
        check("a", 2, 0, Ok(Repetition::New));
        check("a", 1, 5, Err(Refused::StaleEpoch { current: 2 }));
        check("b", 7, 0, Ok(Repetition::New));
        check("a", 2, 1, Ok(Repetition::New));
        // `b` published least recently.
        check("c", 0, 0, Ok(Repetition::New));
        check("a", 2, 1, Ok(Repetition::Duplicate(1)));
        check("b", 7, 0, Ok(Repetition::New));
    }

    /// Symptom: producers restored from a snapshot had no age, so they were never evicted and each
    /// new producer was evicted at once.
    #[test]
    fn evicts_restored_producers_before_newer_ones() {
        let limits = Limits { producers: 2, ..Limits::default() };
        let producer = |id: &str, sequence| Producer { id: id.into(), epoch: 0, sequence };
        let mut producers = Producers::default();
        producers.accept(&producer("a", 0), 1, &limits);
        producers.accept(&producer("b", 0), 2, &limits);
        let mut written = Vec::new();
        producers.write(&mut written);
        let mut producers = Producers::read(&mut Decoder(&written)).unwrap();
        assert_eq!(producers.check(&producer("a", 0)), Ok(Repetition::Duplicate(0)));
        producers.accept(&producer("c", 0), 3, &limits);
        assert_eq!(producers.check(&producer("a", 0)), Ok(Repetition::New), "unheard for longest");
        assert_eq!(producers.check(&producer("b", 0)), Ok(Repetition::Duplicate(0)));
        assert_eq!(producers.check(&producer("c", 0)), Ok(Repetition::Duplicate(0)));
        producers.accept(&producer("d", 0), 4, &limits);
        assert_eq!(producers.check(&producer("b", 0)), Ok(Repetition::New));
        assert_eq!(producers.check(&producer("c", 0)), Ok(Repetition::Duplicate(0)));
        assert_eq!((producers.by_id.len(), producers.by_record.len()), (2, 2));
    }

    /// The bytes of a fresh copy are the sum of what it holds.
    #[test]
    fn counts_bytes_of_remembered_ids_and_producers_only() {
        let limits = Limits { ids: 3, id_window: 10, producers: 3, ..Limits::default() };
        let (mut ids, mut producers) = (MessageIds::default(), Producers::default());
        for number in 1..20_u64 {
            let id: Arc<str> = "x".repeat(number as usize).into();
            // The last ids arrive so late that the window has only one.
            let now = if number < 15 { number } else { 100 * number };
            ids.insert(&id, Sequence::from_number(number), now, &limits);
            producers.accept(&Producer { id, epoch: 0, sequence: 0 }, number, &limits);
            let mut written = Vec::new();
            ids.write(&mut written);
            let copy = MessageIds::read(&mut Decoder(&written)).unwrap();
            assert_eq!((ids.bytes(), ids.by_id.len()), (copy.bytes(), ids.by_age.len()));
            written.clear();
            producers.write(&mut written);
            let copy = Producers::read(&mut Decoder(&written)).unwrap();
            assert_eq!(producers.bytes(), copy.bytes());
        }
        assert_eq!((ids.by_id.len(), producers.by_id.len()), (1, 3));
    }

    #[test]
    fn remembers_ids_within_window_and_limit() {
        let limits = Limits { ids: 2, id_window: 10, ..Limits::default() };
        let mut ids = MessageIds::default();
        let at = Sequence::from_number;
        ids.insert(&"a".into(), at(1), 100, &limits);
        assert_eq!(ids.find("a", 110, &limits), Some(at(1)));
        assert_eq!(ids.find("a", 111, &limits), None);
        ids.insert(&"a".into(), at(2), 111, &limits);
        ids.insert(&"b".into(), at(3), 111, &limits);
        assert_eq!(ids.find("a", 111, &limits), Some(at(2)));
        ids.insert(&"c".into(), at(4), 111, &limits);
        assert_eq!(ids.find("a", 111, &limits), None);
        assert_eq!(ids.find("b", 111, &limits), Some(at(3)));
    }
}
