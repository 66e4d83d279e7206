//! Journal errors, grouped by how to handle them.

use std::fmt;
use std::io;
use std::ops::RangeInclusive;

use super::Sequence;
use crate::disk::is_full;

/// The reason why a journal operation failed.
#[derive(Debug)]
pub enum Error {
    /// The disk is full. The operation had no effect, and later calls may succeed.
    Full {
        /// The file that the operation wrote.
        file: String,
        /// The system's error.
        error: io::Error,
    },
    /// The disk failed. The journal rejects all writes; the next start finds all acknowledged
    /// records.
    Broken {
        /// The operation and the file that failed.
        why: String,
    },
    /// One operation failed, and the journal is as it was.
    Disk {
        /// The file or the folder.
        file: String,
        /// The operation: `read`, `open`.
        action: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The folder is locked by a different process.
    Locked {
        /// The folder.
        folder: String,
        /// The process id; empty if unknown.
        process: String,
    },
    /// Acknowledged data cannot be read.
    Damaged(Damage),
    /// A file of an unknown format version. The file stays unchanged.
    Version {
        /// The file.
        file: String,
        /// The version found.
        found: u32,
    },
    /// The record or the block is too long.
    TooLong {
        /// Its length in bytes.
        length: usize,
        /// The bytes that have room; more after the group is written.
        room: usize,
    },
    /// The receiver of the records rejected them, or the operation is not possible.
    Refused(String),
}

/// A corrupt part of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// The offset of the first corrupt byte.
    pub offset: u64,
    /// The records that may have been there.
    pub records: Option<RangeInclusive<Sequence>>,
    /// The kind of corruption.
    pub what: &'static str,
}

impl Error {
    /// An error without an effect on the journal: `Full` or `Disk`.
    pub(super) fn disk(file: &str, action: &'static str, error: io::Error) -> Self {
        let file = file.to_owned();
        if is_full(&error) {
            Self::Full { file, error }
        } else {
            Self::Disk { file, action, error }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { file, error } => write!(
                f,
                "no room for {file}: {error}; nothing was written, and writes resume when there is room"
            ),
            Self::Broken { why } => write!(
                f,
                "{why}; no more writes are accepted. Check the disk, then restart: acknowledged data is kept"
            ),
            Self::Disk { file, action, error } => write!(f, "cannot {action} {file}: {error}"),
            Self::Locked { folder, process } if process.is_empty() => {
                write!(f, "another server uses {folder}; stop it, or give this one its own folder")
            }
            Self::Locked { folder, process } => write!(
                f,
                "another server (process {process}) uses {folder}; stop it, or give this one its own folder"
            ),
            Self::Damaged(damage) => write!(
                f,
                "{damage}. `bine data check` lists all damage, `bine data repair` keeps all data that can be read; nothing was changed"
            ),
            Self::Version { file, found } => write!(
                f,
                "{file} has version {found} of its format, which this version of Bine does not know; use the version that wrote it, or a newer one. Nothing was changed"
            ),
            Self::TooLong { length, room } => {
                write!(f, "{length} bytes do not fit into the remaining {room} bytes")
            }
            Self::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Full { error, .. } | Self::Disk { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is damaged at byte {}: {}", self.file, self.offset, self.what)?;
        match &self.records {
            None => Ok(()),
            Some(records) if *records.end() == Sequence::MAX => {
                write!(f, " (records from {})", records.start())
            }
            Some(records) if records.start() == records.end() => {
                write!(f, " (record {})", records.start())
            }
            Some(records) => write!(f, " (records {} to {})", records.start(), records.end()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    fn damage(records: Option<RangeInclusive<Sequence>>) -> Damage {
        Damage { file: "journal-1".to_owned(), offset: 8, records, what: "it is cut" }
    }

    #[test]
    fn names_the_records_of_a_damage() {
        let begin = "journal-1 is damaged at byte 8: it is cut";
        for (records, expected) in [
            (None, ""),
            (Some(3..=3), " (record 3)"),
            (Some(3..=4), " (records 3 to 4)"),
            (Some(3..=Sequence::MAX - 1), " (records 3 to 18446744073709551614)"),
            // No later file shows how many there were.
            (Some(3..=Sequence::MAX), " (records from 3)"),
            (Some(Sequence::MAX..=Sequence::MAX), " (records from 18446744073709551615)"),
        ] {
            assert_eq!(damage(records).to_string(), format!("{begin}{expected}"));
        }
    }

    #[test]
    fn tells_what_the_operator_can_do() {
        let (full, io) = (io::ErrorKind::StorageFull.into(), io::ErrorKind::NotFound.into());
        let locked =
            |process: &str| Error::Locked { folder: "data".into(), process: process.into() };
        for (error, parts) in [
            (Error::disk("a", "open", full), ["no room for a: ", "resume when there is room"]),
            (Error::disk("a", "open", io), ["cannot open a: ", "not found"]),
            (Error::Broken { why: "x".into() }, ["x; no more writes", "then restart"]),
            (locked(""), ["another server uses data;", "stop it"]),
            (locked("7"), ["another server (process 7) uses data;", "stop it"]),
            (Error::Damaged(damage(None)), ["is damaged at byte 8", "`bine data repair`"]),
            (Error::Version { file: "a".into(), found: 9 }, ["a has version 9", "a newer one"]),
            (Error::TooLong { length: 9, room: 7 }, ["9 bytes do not fit", "7 bytes"]),
            (Error::Refused("no".into()), ["no", "no"]),
        ] {
            let text = error.to_string();
            assert!(parts.iter().all(|part| text.contains(part)), "{parts:?}: {text}");
        }
    }

    #[test]
    fn has_the_error_of_the_system_as_its_source() {
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::NotFound] {
            let source = Error::disk("a", "open", kind.into());
            assert_eq!(source.source().unwrap().to_string(), io::Error::from(kind).to_string());
        }
        assert!(Error::Refused("no".to_owned()).source().is_none());
    }
}
