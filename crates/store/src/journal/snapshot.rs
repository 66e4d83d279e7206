//! Snapshot files: written under a temporary name, and renamed once complete.

use std::sync::Arc;

use super::format::{FileHeader, FileKind, HEADER_LENGTH, UNFINISHED, checksum, long, word};
use super::{Damage, Error, Sequence, SnapshotWriter};
use crate::disk::{File, Folder, Lock, read_full, write_all};

/// The longest block of a snapshot in bytes.
pub const MAX_BLOCK_LENGTH: usize = 16 << 20;

/// The length of a block's header in bytes.
const BLOCK_HEADER_LENGTH: usize = 8;
/// The length of a snapshot's trailer in bytes.
const TRAILER_LENGTH: usize = BLOCK_HEADER_LENGTH + 16;
/// The bytes of one write.
const PIECE: usize = 1 << 20;
/// The bytes of one sync. Larger syncs would delay the journal's own: 8 MiB take 25 ms on a disk of
/// 300 MB/s.
const STRETCH: u64 = 1 << 20;

/// A writer of a snapshot file.
pub(super) struct Writer {
    folder: Arc<dyn Folder>,
    /// Keeps the folder locked while the snapshot is written.
    _lock: Arc<dyn Lock>,
    file: Box<dyn File>,
    head: FileHeader,
    /// Bytes not written yet.
    bytes: Vec<u8>,
    at: u64,
    /// The offset up to which the file is durable.
    synced: u64,
    totals: Totals,
    is_finished: bool,
}

/// The totals of the blocks so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Totals {
    pub(super) blocks: u64,
    /// The total length of the blocks, without their headers.
    pub(super) bytes: u64,
}

impl Writer {
    pub(super) fn new(
        folder: Arc<dyn Folder>,
        lock: Arc<dyn Lock>,
        store: u64,
        sequence: Sequence,
    ) -> Result<Self, Error> {
        let head = FileHeader { kind: FileKind::Snapshot, store, number: sequence };
        let name = head.name() + UNFINISHED;
        let file = folder.create(&name).map_err(|error| Error::disk(&name, "make", error))?;
        let bytes = head.to_bytes().to_vec();
        let totals = Totals::default();
        Ok(Self {
            folder,
            _lock: lock,
            file,
            head,
            bytes,
            at: 0,
            synced: 0,
            totals,
            is_finished: false,
        })
    }

    fn flush(&mut self) -> Result<(), Error> {
        let written = write_all(&*self.file, &self.bytes, self.at);
        self.at += self.bytes.len() as u64;
        self.bytes.clear();
        let synced = written.and_then(|()| {
            if self.at - self.synced < STRETCH {
                return Ok(());
            }
            self.synced = self.at;
            self.file.sync_data()
        });
        synced.map_err(|error| self.fault("write", error))
    }

    fn fault(&self, action: &'static str, error: std::io::Error) -> Error {
        Error::disk(&(self.head.name() + UNFINISHED), action, error)
    }
}

impl SnapshotWriter for Writer {
    fn block(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if bytes.is_empty() || bytes.len() > MAX_BLOCK_LENGTH {
            return Err(Error::TooLong { length: bytes.len(), room: MAX_BLOCK_LENGTH });
        }
        self.bytes.extend_from_slice(&block_head(self.head, self.totals.blocks, bytes));
        self.bytes.extend_from_slice(bytes);
        self.totals.blocks += 1;
        self.totals.bytes += bytes.len() as u64;
        if self.bytes.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        self.bytes.extend_from_slice(&end(self.head, self.totals));
        self.flush()?;
        self.file.sync_all().map_err(|error| self.fault("sync", error))?;
        let name = self.head.name();
        let renamed = self.folder.rename(&(name.clone() + UNFINISHED), &name);
        renamed.map_err(|error| self.fault("rename", error))?;
        self.is_finished = true;
        self.folder.sync().map_err(|error| {
            let folder = self.folder.name();
            Error::Disk { file: folder, action: "sync", error }
        })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.is_finished {
            // A file that cannot be removed is removed at the next start.
            let _ = self.folder.remove(&(self.head.name() + UNFINISHED));
        }
    }
}

/// Reads the blocks of the snapshot with this number.
///
/// # Errors
///
/// [`Error::Damaged`] at the first corrupt byte, possibly after some blocks were passed on. The
/// errors of `receive`.
pub(super) fn read(
    folder: &dyn Folder,
    number: Sequence,
    receive: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(FileHeader, Totals), Error> {
    read_over(folder, number, receive, &mut |damage| Err(Error::Damaged(damage)))
}

/// Reads a snapshot like `read`, but continues after a damaged block if `on_damage` returns `Ok`.
pub(super) fn read_over(
    folder: &dyn Folder,
    number: Sequence,
    receive: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    on_damage: &mut dyn FnMut(Damage) -> Result<(), Error>,
) -> Result<(FileHeader, Totals), Error> {
    let name = FileKind::Snapshot.name(number);
    let file = folder.open(&name).map_err(|error| Error::disk(&name, "read", error))?;
    read_file(&*file, number, receive, on_damage)
}

/// Reads a snapshot like `read_over`, from an open file.
pub(super) fn read_file(
    file: &dyn File,
    number: Sequence,
    receive: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    on_damage: &mut dyn FnMut(Damage) -> Result<(), Error>,
) -> Result<(FileHeader, Totals), Error> {
    let name = FileKind::Snapshot.name(number);
    let size = file.size().map_err(|error| Error::disk(&name, "read", error))?;
    let mut source = BlockReader { file, name: &name, size, at: 0, piece: Vec::new(), taken: 0 };
    let bytes = source.take(HEADER_LENGTH.min(size as usize))?;
    let head = FileHeader::read(bytes, FileKind::Snapshot, number)?;
    let mut totals = Totals::default();
    let mut block = Vec::new();
    loop {
        let begin = source.at;
        let damage = |what| Damage { file: name.clone(), offset: begin, records: None, what };
        let damaged = |what| Err(Error::Damaged(damage(what)));
        if size - begin < BLOCK_HEADER_LENGTH as u64 {
            return damaged("it ends where a block should begin");
        }
        let mut start = [0; BLOCK_HEADER_LENGTH];
        start.copy_from_slice(source.take(BLOCK_HEADER_LENGTH)?);
        let length = word(&start, 0) as usize;
        if length == 0 {
            let rest = size - begin;
            if rest != TRAILER_LENGTH as u64 {
                return damaged("its end is not where it says");
            }
            let counts = source.take(TRAILER_LENGTH - BLOCK_HEADER_LENGTH)?;
            let stored = Totals { blocks: long(counts, 0), bytes: long(counts, 8) };
            if end(head, stored)[..BLOCK_HEADER_LENGTH] != start || stored != totals {
                return damaged("its end does not match what is before it");
            }
            return Ok((head, totals));
        }
        if length > MAX_BLOCK_LENGTH || length as u64 > size - source.at {
            return damaged("a block is longer than what is left");
        }
        block.clear();
        block.extend_from_slice(source.take(length)?);
        let is_whole = block_head(head, totals.blocks, &block) == start;
        totals.blocks += 1;
        totals.bytes += length as u64;
        if is_whole {
            receive(&block)?;
        } else {
            on_damage(damage("a block does not match its checksum"))?;
        }
    }
}

fn block_head(head: FileHeader, index: u64, bytes: &[u8]) -> [u8; BLOCK_HEADER_LENGTH] {
    let length = (bytes.len() as u32).to_le_bytes();
    let (number, index) = (head.number.to_le_bytes(), index.to_le_bytes());
    let check = checksum(head.store, &[&number, &index, &length, bytes]);
    let mut begin = [0; BLOCK_HEADER_LENGTH];
    begin[..4].copy_from_slice(&length);
    begin[4..].copy_from_slice(&check.to_le_bytes());
    begin
}

fn end(head: FileHeader, totals: Totals) -> [u8; TRAILER_LENGTH] {
    let mut end = [0; TRAILER_LENGTH];
    end[8..16].copy_from_slice(&totals.blocks.to_le_bytes());
    end[16..].copy_from_slice(&totals.bytes.to_le_bytes());
    let check = checksum(head.store, &[&head.number.to_le_bytes(), &[0; 4], &end[8..]]);
    end[4..8].copy_from_slice(&check.to_le_bytes());
    end
}

/// A sequential reader of a file.
struct BlockReader<'f> {
    file: &'f dyn File,
    name: &'f str,
    size: u64,
    /// The offset of the next byte.
    at: u64,
    piece: Vec<u8>,
    /// The number of bytes of the piece that were taken.
    taken: usize,
}

impl BlockReader<'_> {
    /// The next bytes, which must be within the file.
    fn take(&mut self, length: usize) -> Result<&[u8], Error> {
        if self.piece.len() - self.taken < length {
            self.piece.drain(..self.taken);
            self.taken = 0;
            let kept = self.piece.len();
            let rest = self.size - self.at - kept as u64;
            let more = rest.min((length - kept).max(PIECE) as u64) as usize;
            self.piece.resize(kept + more, 0);
            let read = read_full(self.file, &mut self.piece[kept..], self.at + kept as u64);
            let read = read.map_err(|error| Error::disk(self.name, "read", error))?;
            if read < more {
                let error = std::io::ErrorKind::UnexpectedEof.into();
                return Err(Error::disk(self.name, "read", error));
            }
        }
        let from = self.taken;
        self.taken += length;
        self.at += length as u64;
        Ok(&self.piece[from..from + length])
    }
}
