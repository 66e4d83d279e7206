//! Decides where chunks, their extensions and the trailers behind them end.

use crate::fault::PeerFault;
use crate::fields;
use crate::limits::Limits;
use crate::line;
use crate::path::hex_digit;
use crate::scan;

/// Reads chunks (RFC 9112 section 7.1). Consumes every byte at once, so nothing is ever looked at twice.
#[derive(Debug, Default)]
pub(crate) struct ChunkReader {
    /// The size of this chunk while its digits come, then what is left of its data.
    size: u64,
    /// Sizes of the chunks so far, this one included.
    total_size: u64,
    /// Bytes of extensions of this chunk, and of all.
    extension_bytes: u16,
    total_extension_bytes: u16,
    state: ChunkState,
}

/// What comes next.
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

/// What became of some input.
#[derive(Debug)]
pub(crate) enum Chunk<'b> {
    /// It was used up.
    More,
    /// It held data, never empty.
    Data(&'b [u8]),
    /// The chunk of size zero: trailers follow.
    Last,
}

/// Reads the fields behind the last chunk; they are checked like those of a head and dropped.
#[derive(Debug, Default)]
pub(crate) struct TrailerReader {
    /// Bytes of the lines read.
    total_bytes: u32,
    /// Bytes of the unfinished line known to hold no line feed.
    scanned: u32,
    fields: u16,
}

impl Default for ChunkState {
    fn default() -> Self {
        Self::Size { digits: 0 }
    }
}

impl ChunkReader {
    /// Takes input up to and including the next piece of data; says how much.
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

    /// What comes after this byte of a size line, or of the line end behind the data.
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
                // ChunkState once, not when the data has come (sizes of sixteen digits were seen to wait elsewhere).
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
            // A semicolon promises a name; the white space between is allowed to be bad.
            (ChunkState::ExtensionStart, b'\t' | b' ') => {
                self.count_extension(limits)?;
                ChunkState::ExtensionStart
            }
            (ChunkState::ExtensionStart, _) if line::is_token(&[byte]) => {
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
            // `Data` is not asked: its bytes are taken in `receive`.
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
    /// Takes whole lines; says how much, and whether the empty line was among them.
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
                // The line cannot end within the limit any more.
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
