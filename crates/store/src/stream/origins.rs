//! The last message of each node: whether a message is the next one, a repeated one, or follows a
//! gap; and the bodies that are not complete.

use std::collections::BTreeMap;

use super::message::{Message, Origin};
use crate::bytes::{ByteReader, put_bytes, put_number};

/// The nodes that have written messages.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    known: BTreeMap<Origin, Progress>,
    /// Bytes of incomplete bodies.
    bytes: usize,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Progress {
    /// The number of the last message.
    last: u64,
    /// The position of the last message in the stream.
    position: u64,
    /// The begin of a body that the next message continues.
    body: Vec<u8>,
    /// Whether the begin of the body was dropped.
    is_torn: bool,
}

/// The decision about a message.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// The message completes this body.
    Complete(Vec<u8>),
    /// The next message continues the body.
    Incomplete,
    /// The body is complete, but its begin was dropped: its entries have no effect.
    Torn,
    /// The message was sent twice.
    Repeated,
    /// An earlier message of the node is missing.
    Gap,
}

/// Nodes that are remembered. The one that has been silent for the longest time is forgotten.
const MAX_ORIGINS: usize = 1024;
/// Bytes of incomplete bodies of all nodes.
const MAX_BYTES: usize = 160 << 20;

impl Origins {
    /// Decides about a message at a position of the stream.
    pub(crate) fn admit(&mut self, message: &Message<'_>, position: u64) -> Admission {
        let last = self.known.get(&message.origin).map_or(0, |progress| progress.last);
        if message.number <= last {
            return Admission::Repeated;
        }
        if message.number != last + 1 {
            return Admission::Gap;
        }
        let progress = self.known.entry(message.origin).or_default();
        (progress.last, progress.position) = (message.number, position);
        let admission = if message.is_continued {
            if !progress.is_torn {
                progress.body.extend_from_slice(message.body);
                self.bytes += message.body.len();
            }
            Admission::Incomplete
        } else if std::mem::take(&mut progress.is_torn) {
            Admission::Torn
        } else {
            let mut body = std::mem::take(&mut progress.body);
            self.bytes -= body.len();
            body.extend_from_slice(message.body);
            Admission::Complete(body)
        };
        self.forget_oldest();
        admission
    }

    fn forget_oldest(&mut self) {
        while self.bytes > MAX_BYTES {
            let incomplete = self.known.values_mut().filter(|progress| !progress.body.is_empty());
            let Some(oldest) = incomplete.min_by_key(|progress| progress.position) else { break };
            self.bytes -= oldest.body.len();
            (oldest.body, oldest.is_torn) = (Vec::new(), true);
        }
        while self.known.len() > MAX_ORIGINS {
            let oldest = self.known.iter().min_by_key(|(_, progress)| progress.position);
            let Some(oldest) = oldest.map(|(origin, _)| *origin) else { break };
            let forgotten = self.known.remove(&oldest);
            self.bytes -= forgotten.map_or(0, |forgotten| forgotten.body.len());
        }
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        put_number(to, self.known.len() as u128);
        for (origin, progress) in &self.known {
            to.extend_from_slice(&origin.0);
            put_number(to, u128::from(progress.last));
            put_number(to, u128::from(progress.position));
            to.push(u8::from(progress.is_torn));
            put_bytes(to, &progress.body);
        }
    }

    /// Decodes the nodes; `None` if the bytes are invalid.
    pub(crate) fn read(rest: &mut ByteReader<'_>) -> Option<Self> {
        let mut origins = Self::default();
        for _ in 0..rest.count()? {
            let origin = Origin(rest.array()?);
            let last = u64::try_from(rest.number()?).ok()?;
            let position = u64::try_from(rest.number()?).ok()?;
            let is_torn = rest.byte()? != 0;
            let body = rest.bytes()?.to_vec();
            origins.bytes += body.len();
            origins.known.insert(origin, Progress { last, position, body, is_torn });
        }
        Some(origins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(origins: &mut Origins, origin: u8, number: u64, piece: (&[u8], bool)) -> Admission {
        let (body, is_continued) = piece;
        let message = Message { origin: Origin([origin; 16]), number, is_continued, body };
        origins.admit(&message, number)
    }

    #[test]
    fn accepts_the_messages_of_each_node_in_order_and_once() {
        let mut origins = Origins::default();
        let whole = |text: &str| Admission::Complete(text.as_bytes().to_vec());
        assert_eq!(admit(&mut origins, 1, 1, (b"a", false)), whole("a"));
        assert_eq!(admit(&mut origins, 1, 1, (b"a", false)), Admission::Repeated);
        assert_eq!(admit(&mut origins, 1, 3, (b"c", false)), Admission::Gap);
        assert_eq!(admit(&mut origins, 2, 1, (b"x", true)), Admission::Incomplete);
        assert_eq!(admit(&mut origins, 1, 2, (b"b", false)), whole("b"));
        assert_eq!(admit(&mut origins, 2, 2, (b"y", false)), whole("xy"));
        assert_eq!(admit(&mut origins, 1, 3, (b"c", false)), whole("c"));
        assert_eq!(origins.bytes, 0);
    }

    #[test]
    fn drops_the_oldest_incomplete_body_beyond_its_limit() {
        let mut origins = Origins::default();
        let half = vec![0; MAX_BYTES / 2];
        assert_eq!(admit(&mut origins, 1, 1, (&half, true)), Admission::Incomplete);
        assert_eq!(admit(&mut origins, 2, 1, (&half, true)), Admission::Incomplete);
        assert_eq!(admit(&mut origins, 2, 2, (b"more", true)), Admission::Incomplete);
        assert_eq!(origins.bytes, MAX_BYTES / 2 + 4);
        assert_eq!(admit(&mut origins, 1, 2, (b"more", true)), Admission::Incomplete);
        assert_eq!(admit(&mut origins, 1, 3, (b"end", false)), Admission::Torn);
        assert!(matches!(admit(&mut origins, 2, 3, (b"", false)), Admission::Complete(_)));
        assert_eq!(origins.bytes, 0);
    }

    #[test]
    fn forgets_the_node_that_has_been_silent_longest() {
        let mut origins = Origins::default();
        for number in 0..=MAX_ORIGINS as u64 {
            let origin = Origin(u128::from(number).to_be_bytes());
            let message = Message { origin, number: 1, is_continued: true, body: b"body" };
            assert_eq!(origins.admit(&message, number + 1), Admission::Incomplete);
        }
        assert_eq!((origins.known.len(), origins.bytes), (MAX_ORIGINS, 4 * MAX_ORIGINS));
        assert_eq!(admit(&mut origins, 0, 2, (b"", false)), Admission::Gap);
    }

    #[test]
    fn round_trips_in_a_snapshot() {
        let mut origins = Origins::default();
        admit(&mut origins, 1, 1, (b"a", false));
        admit(&mut origins, 2, 1, (b"begin", true));
        let mut bytes = Vec::new();
        origins.write(&mut bytes);
        let mut rest = ByteReader(&bytes);
        let read = Origins::read(&mut rest).unwrap();
        assert_eq!((&read.known, read.bytes), (&origins.known, 5));
        assert!(rest.is_empty());
        for length in 0..bytes.len() {
            assert!(Origins::read(&mut ByteReader(&bytes[..length])).is_none(), "{length}");
        }
    }
}
