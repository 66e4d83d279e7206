//! The messages of this node that the stream has not delivered yet, with the callers that wait for
//! them.
//!
//! Entries collect in an open body until the transport takes the next message, so that many small
//! commits share one.

use std::collections::VecDeque;
use std::sync::Arc;

use super::message::{Entry, MAX_PIECE, Message, Origin};

/// Unconfirmed messages. `W` is the caller that waits for an entry.
#[derive(Debug)]
pub(crate) struct Outbox<W> {
    origin: Origin,
    /// The number of the last message.
    last: u64,
    sealed: VecDeque<Sealed<W>>,
    /// Bytes of the sealed messages.
    sealed_bytes: usize,
    body: Vec<u8>,
    waiting: Vec<W>,
    /// The number of entries of all messages.
    count: usize,
}

#[derive(Debug)]
struct Sealed<W> {
    bytes: Arc<[u8]>,
    waiting: Vec<W>,
}

/// A body of this length is not extended any more.
const MAX_SHARED_BODY: usize = 256 << 10;
/// Bytes that may be unconfirmed.
const MAX_BYTES: usize = 128 << 20;

impl<W> Outbox<W> {
    pub(crate) const fn new(origin: Origin) -> Self {
        Self {
            origin,
            last: 0,
            sealed: VecDeque::new(),
            sealed_bytes: 0,
            body: Vec::new(),
            waiting: Vec::new(),
            count: 0,
        }
    }

    pub(crate) const fn origin(&self) -> Origin {
        self.origin
    }

    /// Whether there is room for one more entry.
    pub(crate) fn has_room(&self) -> bool {
        self.sealed_bytes + self.body.len() < MAX_BYTES
    }

    /// The number of entries that wait.
    pub(crate) const fn waiting(&self) -> usize {
        self.count
    }

    pub(crate) fn push(&mut self, entry: Entry<'_>, waiting: W) {
        entry.write(&mut self.body);
        self.waiting.push(waiting);
        self.count += 1;
        // A mark ends its body, so that its snapshot contains no later entry.
        if self.body.len() >= MAX_SHARED_BODY || entry == Entry::Mark {
            self.seal();
        }
    }

    /// The first message above a number, with its own number.
    pub(crate) fn after(&mut self, number: u64) -> Option<(u64, Arc<[u8]>)> {
        if self.sealed.is_empty() || number >= self.last {
            self.seal();
        }
        let first = self.last - self.sealed.len() as u64 + 1;
        let index = (number + 1).saturating_sub(first);
        let sealed = self.sealed.get(usize::try_from(index).ok()?)?;
        Some((first + index, Arc::clone(&sealed.bytes)))
    }

    /// Closes the open body.
    fn seal(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let body = std::mem::take(&mut self.body);
        let mut pieces = body.chunks(MAX_PIECE).peekable();
        while let Some(piece) = pieces.next() {
            self.last += 1;
            let is_continued = pieces.peek().is_some();
            let (origin, number) = (self.origin, self.last);
            let bytes = Message { origin, number, is_continued, body: piece }.write();
            self.sealed_bytes += bytes.len();
            let waiting = if is_continued { Vec::new() } else { std::mem::take(&mut self.waiting) };
            self.sealed.push_back(Sealed { bytes: bytes.into(), waiting });
        }
    }

    /// Removes the oldest message, which the stream has delivered. Returns the callers that wait for its
    /// entries.
    pub(crate) fn confirm(&mut self) -> Vec<W> {
        let Some(first) = self.sealed.pop_front() else { return Vec::new() };
        self.sealed_bytes -= first.bytes.len();
        self.count -= first.waiting.len();
        first.waiting
    }

    /// Drops all messages, continues as a new writer, and returns the callers that wait.
    pub(crate) fn abandon(&mut self, origin: Origin) -> Vec<W> {
        let Self { sealed, waiting, .. } = std::mem::replace(self, Self::new(origin));
        sealed.into_iter().flat_map(|sealed| sealed.waiting).chain(waiting).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox() -> Outbox<u8> {
        Outbox::new(Origin([7; 16]))
    }

    #[test]
    fn collects_entries_until_a_message_is_taken() {
        let mut outbox = outbox();
        assert!(outbox.after(0).is_none());
        outbox.push(Entry::Extension(b"record"), 1);
        outbox.push(Entry::Mark, 2);
        let (number, bytes) = outbox.after(0).unwrap();
        let body = Message::read(&bytes).unwrap().body;
        let expected = vec![Entry::Extension(b"record"), Entry::Mark];
        assert_eq!((number, Entry::read_all(body)), (1, Some(expected)));
        outbox.push(Entry::Mark, 3);
        assert_eq!(outbox.after(1).map(|(number, _)| number), Some(2));
        assert_eq!(outbox.after(0).map(|(number, _)| number), Some(1));
        assert_eq!((outbox.after(2), outbox.waiting()), (None, 3));
        assert_eq!(outbox.confirm(), [1, 2]);
        assert_eq!(outbox.after(0).map(|(number, _)| number), Some(2));
        assert_eq!(outbox.confirm(), [3]);
        // All sealed messages are confirmed, and the open body is sent even to a caller that begins
        // with the first message.
        outbox.push(Entry::Extension(b""), 4);
        assert_eq!(outbox.after(0).map(|(number, _)| number), Some(3));
        assert_eq!(outbox.confirm(), [4]);
        assert_eq!((outbox.after(0), outbox.confirm(), outbox.sealed_bytes), (None, vec![], 0));
    }

    #[test]
    fn divides_long_bodies() {
        let mut outbox = outbox();
        let record = vec![9; 2 * MAX_PIECE];
        outbox.push(Entry::Extension(&record), 1);
        let mut body = Vec::new();
        for number in 1..=3 {
            let (found, bytes) = outbox.after(number - 1).unwrap();
            let message = Message::read(&bytes).unwrap();
            assert_eq!((found, message.is_continued), (number, number < 3));
            body.extend_from_slice(message.body);
        }
        assert_eq!(Entry::read_all(&body), Some(vec![Entry::Extension(&record)]));
        assert_eq!(
            [outbox.confirm(), outbox.confirm(), outbox.confirm()],
            [vec![], vec![], vec![1]]
        );
    }

    #[test]
    fn has_no_room_beyond_its_limit() {
        let mut outbox = outbox();
        let record = vec![9; MAX_BYTES / 2];
        outbox.push(Entry::Extension(&record), 1);
        assert!(outbox.has_room());
        outbox.push(Entry::Extension(&record), 2);
        assert!(!outbox.has_room());
        assert_eq!(outbox.abandon(Origin([8; 16])), [1, 2]);
        assert!(outbox.has_room() && outbox.after(0).is_none());
    }
}
