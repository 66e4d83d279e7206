//! The common parts of journal files: names, headers and checksums.

use super::{Damage, Error, Sequence};

/// The length of a file's header in bytes.
pub(super) const HEADER_LENGTH: usize = 32;
/// The format version that is written and read.
pub(super) const VERSION: u32 = 1;
/// Groups begin at multiples of this, so that a scan can find them.
pub(super) const ALIGNMENT: usize = 8;
/// The least unit of atomic disk writes.
pub(super) const SECTOR: u64 = 512;

/// The highest valid sequence; a file with a higher one is corrupt.
pub(super) const LAST: Sequence = Sequence::MAX / 2;

/// The name of the lock file.
pub(super) const LOCK: &str = "lock";
/// The name of a backup's manifest.
pub(super) const BACKUP: &str = "backup";
/// The suffix of an unfinished file's name.
pub(super) const UNFINISHED: &str = ".new";
/// The prefix of a damaged file's new name.
pub(super) const DAMAGED: &str = "damaged-";

/// The kind of a journal file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum FileKind {
    /// A segment of records, numbered by its first record.
    Segment,
    /// A snapshot, numbered by the last record in it.
    Snapshot,
    /// The times of a segment's records, with the segment's number.
    Times,
}

/// A file's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FileHeader {
    pub(super) kind: FileKind,
    /// A random number that the files of one store share.
    pub(super) store: u64,
    pub(super) number: Sequence,
}

impl FileKind {
    /// The name of the file with this number.
    pub(super) fn name(self, number: Sequence) -> String {
        match self {
            Self::Segment => format!("journal-{number:016x}.log"),
            Self::Snapshot => format!("snapshot-{number:016x}.bin"),
            Self::Times => format!("times-{number:016x}.bin"),
        }
    }

    /// Parses a file name that [`name`](Self::name) generates.
    pub(super) fn of(name: &str) -> Option<(Self, Sequence)> {
        let mut words = name.split(['-', '.']);
        let kind = match words.next()? {
            "journal" => Self::Segment,
            "snapshot" => Self::Snapshot,
            "times" => Self::Times,
            _ => return None,
        };
        let digits = words.next()?;
        let number = Sequence::from_str_radix(digits, 16).ok()?;
        (number <= LAST && kind.name(number) == name).then_some((kind, number))
    }

    fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Segment => b"BINE-LOG",
            Self::Snapshot => b"BINE-SNP",
            Self::Times => b"BINE-TIM",
        }
    }
}

impl FileHeader {
    pub(super) fn name(self) -> String {
        self.kind.name(self.number)
    }

    pub(super) fn to_bytes(self) -> [u8; HEADER_LENGTH] {
        let mut bytes = [0; HEADER_LENGTH];
        bytes[..8].copy_from_slice(self.kind.magic());
        bytes[8..16].copy_from_slice(&self.store.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..28].copy_from_slice(&VERSION.to_le_bytes());
        let check = checksum(self.store, &[&bytes[..28]]);
        bytes[28..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Parses the header of a file with this kind and number.
    pub(super) fn read(bytes: &[u8], kind: FileKind, number: Sequence) -> Result<Self, Error> {
        let file = kind.name(number);
        let damaged = |what| {
            let damage = Damage { file: file.clone(), offset: 0, records: None, what };
            Err(Error::Damaged(damage))
        };
        let Some(bytes) = bytes.get(..HEADER_LENGTH) else {
            return damaged("it is shorter than its head");
        };
        let store = long(bytes, 8);
        if checksum(store, &[&bytes[..28]]) != word(bytes, 28) {
            return damaged("its head does not match its checksum");
        }
        let found = word(bytes, 24);
        if found != VERSION {
            return Err(Error::Version { file, found });
        }
        if bytes[..8] != *kind.magic() || long(bytes, 16) != number {
            return damaged("its head belongs to a file of another name");
        }
        Ok(Self { kind, store, number })
    }
}

/// CRC-32C over the store's number and these bytes. The number is secret, so neither a foreign
/// store's file nor data that a client wrote into a row passes for a part of this journal.
pub(super) fn checksum(store: u64, parts: &[&[u8]]) -> u32 {
    let begun = crc32c::crc32c(&store.to_le_bytes());
    parts.iter().fold(begun, |check, bytes| crc32c::crc32c_append(check, bytes))
}

/// The 32-bit number at this offset, which must be in range.
pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

/// The 64-bit number at this offset, which must be in range.
pub(super) fn long(bytes: &[u8], at: usize) -> u64 {
    let mut long = [0; 8];
    long.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_file_names() {
        for (kind, number) in
            [(FileKind::Segment, 1), (FileKind::Snapshot, LAST), (FileKind::Times, 7)]
        {
            assert_eq!(FileKind::of(&kind.name(number)), Some((kind, number)));
        }
        for name in [
            "lock",
            "journal-1.log",
            "journal-000000000000000A.log",
            "journal-0000000000000001.log.new",
            "damaged-journal-0000000000000001.log",
            "snapshot-0000000000000001.log",
            "snapshot-ffffffffffffffff.bin",
            "",
            "-",
        ] {
            assert_eq!(FileKind::of(name), None, "{name}");
        }
    }

    #[test]
    fn round_trips_headers() {
        let head =
            FileHeader { kind: FileKind::Snapshot, store: 0x1234_5678_9ABC_DEF1, number: 77 };
        let bytes = head.to_bytes();
        assert_eq!(FileHeader::read(&bytes, FileKind::Snapshot, 77).ok(), Some(head));
        let refused = |bytes: &[u8], kind, number| {
            FileHeader::read(bytes, kind, number).expect_err("it is not whole").to_string()
        };
        assert!(refused(&bytes, FileKind::Snapshot, 78).contains("a file of another name"));
        assert!(refused(&bytes, FileKind::Segment, 77).contains("a file of another name"));
        assert!(refused(&bytes[..31], FileKind::Snapshot, 77).contains("shorter than its head"));
        for position in 0..HEADER_LENGTH * 8 {
            let mut bytes = bytes;
            bytes[position / 8] ^= 1 << (position % 8);
            assert!(refused(&bytes, FileKind::Snapshot, 77).contains("its checksum"));
        }
    }

    #[test]
    fn refuses_a_newer_format_version() {
        let head = FileHeader { kind: FileKind::Segment, store: 1, number: 1 };
        let mut bytes = head.to_bytes();
        bytes[24] = 9;
        let check = checksum(1, &[&bytes[..28]]).to_le_bytes();
        bytes[28..].copy_from_slice(&check);
        let error = FileHeader::read(&bytes, FileKind::Segment, 1).expect_err("9 is unknown");
        assert!(error.to_string().contains("version 9"), "{error}");
    }
}
