//! Reads chunked content: chunks, their extensions, and the trailer section.

use crate::byte_class;
use crate::fault::PeerFault;
use crate::fields;
use crate::limits::Limits;
use crate::line;
use crate::path::hex_digit;
use crate::scan;

/// Reads chunks (RFC 9112 section 7.1). Consumes every byte at once, so it examines no byte twice.
#[derive(Debug, Default)]
pub(crate) struct ChunkReader {
    /// The size of this chunk while its digits are read, then the remaining size of its data.
    size: u64,
    /// The sum of the sizes of all chunks so far, including this one.
    total_size: u64,
    /// The size of the extensions of this chunk.
    extension_bytes: u16,
    /// The size of the extensions of all chunks.
    total_extension_bytes: u16,
    state: ChunkState,
}

/// The next expected part of a chunk.
#[derive(Clone, Copy, Debug)]
enum ChunkState {
    Size { digits: u8 },
    ExtensionStart,
    Extension,
    SizeLineFeed,
    Data,
    DataReturn,
    DataLineFeed,
}

/// The result of reading some input.
#[derive(Debug)]
pub(crate) enum Chunk<'b> {
    /// The input was consumed without a result.
    More,
    /// Data of a chunk. Never empty.
    Data(&'b [u8]),
    /// The chunk of size 0. The trailer section follows.
    Last,
}

/// Reads the trailer section. Checks its fields like those of a head, then drops them.
#[derive(Debug, Default)]
pub(crate) struct TrailerReader {
    /// The size of the complete lines so far.
    total_bytes: u32,
    /// The size of the incomplete line that was scanned and has no line feed.
    scanned: u32,
    fields: u16,
}

impl Default for ChunkState {
    fn default() -> Self {
        Self::Size { digits: 0 }
    }
}

impl ChunkReader {
    /// Reads input up to and including the next piece of data. Returns the number of bytes
    /// consumed.
    pub(crate) fn receive<'b>(
        &mut self,
        input: &'b [u8],
        limits: &Limits,
    ) -> Result<(usize, Chunk<'b>), PeerFault> {
        let mut consumed = 0;
        while let Some(&byte) = input.get(consumed) {
            if matches!(self.state, ChunkState::Data) {
                let rest = &input[consumed..];
                let length = rest.len().min(usize::try_from(self.size).unwrap_or(usize::MAX));
                self.size -= length as u64;
                if self.size == 0 {
                    self.state = ChunkState::DataReturn;
                }
                return Ok((consumed + length, Chunk::Data(&rest[..length])));
            }
            consumed += 1;
            self.state = self.next_state(byte, limits)?;
            if matches!(self.state, ChunkState::Data) && self.size == 0 {
                return Ok((consumed, Chunk::Last));
            }
        }
        Ok((consumed, Chunk::More))
    }

    /// Returns the state after this byte of a size line, or of the line end after the data.
    fn next_state(&mut self, byte: u8, limits: &Limits) -> Result<ChunkState, PeerFault> {
        Ok(match (self.state, byte) {
            (
                ChunkState::Size { digits: 1.. }
                | ChunkState::Extension
                | ChunkState::ExtensionStart,
                b'\n',
            ) => {
                return Err(PeerFault::BareLineFeed);
            }

            (ChunkState::Size { digits: 1.. }, b'\r' | b';') => {
                // Rejects a large chunk before its data arrives (other servers were seen to wait
                // for sizes of sixteen digits).
                self.total_size = self
                    .total_size
                    .checked_add(self.size)
                    .filter(|&total| total <= limits.body)
                    .ok_or(PeerFault::ContentTooLarge)?;
                self.extension_bytes = 0;
                if byte == b';' {
                    self.count_extension(limits)?;
                    ChunkState::ExtensionStart
                } else {
                    ChunkState::SizeLineFeed
                }
            }
            (ChunkState::Size { digits: digits @ 0..16 }, _) => {
                let digit = hex_digit(byte).ok_or(PeerFault::ChunkSize)?;
                self.size = self.size << 4 | u64::from(digit);
                ChunkState::Size { digits: digits + 1 }
            }
            (ChunkState::Size { .. }, _) => return Err(PeerFault::ChunkSize),

            (ChunkState::Extension, b'\r') => ChunkState::SizeLineFeed,
            (ChunkState::Extension, b'\t' | b' '..=0x7e | 0x80..) => {
                self.count_extension(limits)?;
                if byte == b';' { ChunkState::ExtensionStart } else { ChunkState::Extension }
            }
            // A name must follow the semicolon. RFC 9112 section 7.1.1 allows white space in
            // between.
            (ChunkState::ExtensionStart, b'\t' | b' ') => {
                self.count_extension(limits)?;
                ChunkState::ExtensionStart
            }
            (ChunkState::ExtensionStart, _) if byte_class::is_token(&[byte]) => {
                self.count_extension(limits)?;
                ChunkState::Extension
            }
            (ChunkState::Extension | ChunkState::ExtensionStart, _) => {
                return Err(PeerFault::ChunkExtensionByte);
            }

            (ChunkState::SizeLineFeed, b'\n') => ChunkState::Data,
            (ChunkState::SizeLineFeed, _) => return Err(PeerFault::BareCarriageReturn),

            (ChunkState::DataReturn, b'\r') => ChunkState::DataLineFeed,
            (ChunkState::DataLineFeed, b'\n') => ChunkState::Size { digits: 0 },
            // `receive` handles the state `Data`.
            (ChunkState::DataReturn | ChunkState::DataLineFeed | ChunkState::Data, _) => {
                return Err(PeerFault::ChunkEnd);
            }
        })
    }

    fn count_extension(&mut self, limits: &Limits) -> Result<(), PeerFault> {
        self.extension_bytes = self.extension_bytes.saturating_add(1);
        self.total_extension_bytes = self.total_extension_bytes.saturating_add(1);
        if self.extension_bytes > limits.chunk_extension
            || self.total_extension_bytes > limits.chunk_extensions
        {
            return Err(PeerFault::ChunkExtensionTooLong);
        }
        Ok(())
    }
}

impl TrailerReader {
    /// Reads complete lines. Returns the number of bytes consumed, and whether the empty line was
    /// among them.
    pub(crate) fn receive(
        &mut self,
        input: &[u8],
        limits: &Limits,
    ) -> Result<(usize, bool), PeerFault> {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            let seen = self.scanned as usize;
            let left = limits.head.saturating_sub(self.total_bytes) as usize;
            let Some(end) = scan::find_line_feed(&rest[seen..]) else {
                // The line can no longer end within the limit.
                if rest.len() >= left {
                    return Err(PeerFault::HeadTooLarge);
                }
                self.scanned = rest.len() as u32;
                return Ok((consumed, false));
            };
            let length = seen + end + 1;
            if length > left {
                return Err(PeerFault::HeadTooLarge);
            }
            let line = line::end(&rest[..length])?;
            consumed += length;
            self.total_bytes += length as u32;
            self.scanned = 0;
            if line.is_empty() {
                return Ok((consumed, true));
            }
            if self.fields >= limits.fields {
                return Err(PeerFault::TooManyFields);
            }
            self.fields += 1;
            let (name, _) = line::field(line)?;
            fields::check_trailer(name)?;
        }
    }
}
