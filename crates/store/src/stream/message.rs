//! The encoding of messages in the stream that nodes share.
//!
//! A message names the node that wrote it and its number among the messages of that node. Its body
//! is a list of entries. A body that is longer than [`MAX_PIECE`] is divided among several messages;
//! docs/formats/replica.md describes each byte.

use std::fmt;

use crate::bytes::{ByteReader, put_bytes, put_number};

/// A node from its start, or from its last return to the stream, on. Random, so that no two nodes
/// have the same one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin(pub(crate) [u8; 16]);

/// A message as it is in the stream.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Message<'m> {
    pub(crate) origin: Origin,
    /// The number of the message among those of its origin, from 1 on without gaps.
    pub(crate) number: u64,
    /// Whether the next message of the origin continues the body.
    pub(crate) is_continued: bool,
    pub(crate) body: &'m [u8],
}

/// One entry of a body.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Entry<'m> {
    /// The writes of a transaction, if no record after `base` has changed what it read.
    Rows { base: u64, reads: &'m [u8], record: &'m [u8] },
    /// The definitions of all tables, if no record after `base` has changed them.
    Tables { base: u64, record: &'m [u8] },
    /// A record of the store's extension.
    Extension(&'m [u8]),
    /// The place of a snapshot: later transactions with an earlier base conflict.
    Mark,
}

const VERSION: u8 = 1;
/// The message that reserves an empty stream for a snapshot: its only byte. It has no version, origin
/// or body.
pub(crate) const RESERVATION: u8 = 0;
const CONTINUED: u8 = 1;
const WHOLE: u8 = 0;
const ROWS: u8 = 1;
const TABLES: u8 = 2;
const EXTENSION: u8 = 3;
const MARK: u8 = 4;
/// The longest part of a body in one message. NATS accepts messages of 1 MiB by default.
pub(crate) const MAX_PIECE: usize = 768 << 10;

impl Message<'_> {
    pub(crate) fn write(self) -> Vec<u8> {
        let mut to = Vec::with_capacity(self.body.len() + 32);
        to.push(VERSION);
        to.extend_from_slice(&self.origin.0);
        put_number(&mut to, u128::from(self.number));
        to.push(if self.is_continued { CONTINUED } else { WHOLE });
        to.extend_from_slice(self.body);
        to
    }
}

impl<'m> Message<'m> {
    /// Decodes a message.
    ///
    /// # Errors
    ///
    /// The bytes are no message of this version of the format.
    pub(crate) fn read(bytes: &'m [u8]) -> Result<Self, String> {
        let mut rest = ByteReader(bytes);
        if *bytes == [RESERVATION] {
            return Err(
                "a data folder is being moved into this cluster: start the node again after `bine data move` has ended, and if that was interrupted, run it again"
                    .to_owned(),
            );
        }
        if rest.byte() != Some(VERSION) {
            return Err(
                "it is no message of this version of Bine: run the same version on all nodes, and let no other program write to the stream"
                    .to_owned(),
            );
        }
        Self::read_versioned(rest).ok_or_else(|| "it cannot be decoded".to_owned())
    }

    fn read_versioned(mut rest: ByteReader<'m>) -> Option<Self> {
        let origin = Origin(rest.array()?);
        let number = u64::try_from(rest.number()?).ok()?;
        let is_continued = match rest.byte()? {
            WHOLE => false,
            CONTINUED => true,
            _ => return None,
        };
        Some(Self { origin, number, is_continued, body: rest.0 })
    }
}

impl<'m> Entry<'m> {
    pub(crate) fn write(self, to: &mut Vec<u8>) {
        match self {
            Self::Rows { base, reads, record } => {
                to.push(ROWS);
                put_number(to, u128::from(base));
                put_bytes(to, reads);
                put_bytes(to, record);
            }
            Self::Tables { base, record } => {
                to.push(TABLES);
                put_number(to, u128::from(base));
                put_bytes(to, record);
            }
            Self::Extension(record) => {
                to.push(EXTENSION);
                put_bytes(to, record);
            }
            Self::Mark => to.push(MARK),
        }
    }

    /// Decodes the entries of a body; `None` if one is invalid.
    pub(crate) fn read_all(body: &'m [u8]) -> Option<Vec<Self>> {
        let mut rest = ByteReader(body);
        let mut entries = Vec::new();
        while !rest.is_empty() {
            entries.push(match rest.byte()? {
                ROWS => {
                    let base = u64::try_from(rest.number()?).ok()?;
                    Self::Rows { base, reads: rest.bytes()?, record: rest.bytes()? }
                }
                TABLES => {
                    let base = u64::try_from(rest.number()?).ok()?;
                    Self::Tables { base, record: rest.bytes()? }
                }
                EXTENSION => Self::Extension(rest.bytes()?),
                MARK => Self::Mark,
                _ => return None,
            });
        }
        Some(entries)
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:032x}", u128::from_be_bytes(self.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trips_messages(origin: [u8; 16], number: u64, is_continued: bool, body: Vec<u8>) {
            let message = Message { origin: Origin(origin), number, is_continued, body: &body };
            let bytes = message.write();
            prop_assert_eq!(Message::read(&bytes), Ok(message));
        }

        #[test]
        fn round_trips_entries(kinds in prop::collection::vec(0_u8..4, 0..9), base: u64, bytes: Vec<u8>) {
            let entry = |kind: &u8| match kind {
                0 => Entry::Rows { base, reads: &bytes, record: &bytes },
                1 => Entry::Tables { base, record: &bytes },
                2 => Entry::Extension(&bytes),
                _ => Entry::Mark,
            };
            let entries: Vec<Entry<'_>> = kinds.iter().map(entry).collect();
            let mut body = Vec::new();
            for entry in &entries {
                entry.write(&mut body);
            }
            prop_assert_eq!(Entry::read_all(&body), Some(entries));
        }

        #[test]
        fn decodes_any_bytes_as_a_message_without_panic(bytes: Vec<u8>) {
            let _ = Message::read(&[&[VERSION], &bytes[..]].concat());
            let _ = Entry::read_all(&bytes);
        }
    }

    #[test]
    fn rejects_other_versions_and_other_programs() {
        for bytes in [&b""[..], b"hello", &[VERSION + 1]] {
            let error = Message::read(bytes).unwrap_err();
            assert!(error.contains("run the same version on all nodes"), "{error}");
        }
        assert_eq!(Message::read(&[VERSION, 1]), Err("it cannot be decoded".to_owned()));
        let reserved = Message::read(&[RESERVATION]).unwrap_err();
        assert!(reserved.contains("after `bine data move` has ended"), "{reserved}");
    }
}
