//! Decides where chunks, their extensions and the trailers behind them end.

use crate::fault::PeerFault;
use crate::fields;
use crate::limits::Limits;
use crate::line;
use crate::path::hex;
use crate::scan;

/// Reads chunks (RFC 9112 section 7.1). Consumes every byte at once, so nothing is ever looked at twice.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// The size of this chunk while its digits come, then what is left of its data.
    size: u64,
    /// Sizes of the chunks so far, this one included.
    total: u64,
    /// Bytes of extensions of this chunk, and of all.
    extension: u16,
    extensions: u16,
    at: At,
}

/// What comes next.
#[derive(Clone, Copy, Debug)]
enum At {
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
pub(crate) struct Trailers {
    /// Bytes of the lines read.
    bytes: u32,
    /// Bytes of the unfinished line known to hold no line feed.
    seen: u32,
    fields: u16,
}

impl Default for At {
    fn default() -> Self {
        Self::Size { digits: 0 }
    }
}

impl Chunks {
    /// Takes input up to and including the next piece of data; says how much.
    pub(crate) fn receive<'b>(
        &mut self,
        input: &'b [u8],
        limits: &Limits,
    ) -> Result<(usize, Chunk<'b>), PeerFault> {
        let mut done = 0;
        while let Some(&byte) = input.get(done) {
            if matches!(self.at, At::Data) {
                let rest = &input[done..];
                let length = rest.len().min(usize::try_from(self.size).unwrap_or(usize::MAX));
                self.size -= length as u64;
                if self.size == 0 {
                    self.at = At::DataReturn;
                }
                return Ok((done + length, Chunk::Data(&rest[..length])));
            }
            done += 1;
            self.at = self.after(byte, limits)?;
            if matches!(self.at, At::Data) && self.size == 0 {
                return Ok((done, Chunk::Last));
            }
        }
        Ok((done, Chunk::More))
    }

    /// What comes after this byte of a size line, or of the line end behind the data.
    fn after(&mut self, byte: u8, limits: &Limits) -> Result<At, PeerFault> {
        Ok(match (self.at, byte) {
            (At::Size { digits: 1.. } | At::Extension | At::ExtensionStart, b'\n') => {
                return Err(PeerFault::BareLineFeed);
            }

            (At::Size { digits: 1.. }, b'\r' | b';') => {
                // At once, not when the data has come (sizes of sixteen digits were seen to wait elsewhere).
                self.total = self
                    .total
                    .checked_add(self.size)
                    .filter(|&total| total <= limits.body)
                    .ok_or(PeerFault::ContentTooLarge)?;
                self.extension = 0;
                if byte == b';' {
                    self.count_extension(limits)?;
                    At::ExtensionStart
                } else {
                    At::SizeLineFeed
                }
            }
            (At::Size { digits: digits @ 0..16 }, _) => {
                let digit = hex(byte).ok_or(PeerFault::ChunkSize)?;
                self.size = self.size << 4 | u64::from(digit);
                At::Size { digits: digits + 1 }
            }
            (At::Size { .. }, _) => return Err(PeerFault::ChunkSize),

            (At::Extension, b'\r') => At::SizeLineFeed,
            (At::Extension, b'\t' | b' '..=0x7e | 0x80..) => {
                self.count_extension(limits)?;
                if byte == b';' { At::ExtensionStart } else { At::Extension }
            }
            // A semicolon promises a name; the white space between is allowed to be bad.
            (At::ExtensionStart, b'\t' | b' ') => {
                self.count_extension(limits)?;
                At::ExtensionStart
            }
            (At::ExtensionStart, _) if line::is_token(&[byte]) => {
                self.count_extension(limits)?;
                At::Extension
            }
            (At::Extension | At::ExtensionStart, _) => return Err(PeerFault::ChunkExtensionByte),

            (At::SizeLineFeed, b'\n') => At::Data,
            (At::SizeLineFeed, _) => return Err(PeerFault::BareCarriageReturn),

            (At::DataReturn, b'\r') => At::DataLineFeed,
            (At::DataLineFeed, b'\n') => At::Size { digits: 0 },
            // `Data` is not asked: its bytes are taken in `receive`.
            (At::DataReturn | At::DataLineFeed | At::Data, _) => return Err(PeerFault::ChunkEnd),
        })
    }

    fn count_extension(&mut self, limits: &Limits) -> Result<(), PeerFault> {
        self.extension = self.extension.saturating_add(1);
        self.extensions = self.extensions.saturating_add(1);
        if self.extension > limits.chunk_extension || self.extensions > limits.chunk_extensions {
            return Err(PeerFault::ChunkExtensionTooLong);
        }
        Ok(())
    }
}

impl Trailers {
    /// Takes whole lines; says how much, and whether the empty line was among them.
    pub(crate) fn receive(
        &mut self,
        input: &[u8],
        limits: &Limits,
    ) -> Result<(usize, bool), PeerFault> {
        let mut done = 0;
        loop {
            let rest = &input[done..];
            let seen = self.seen as usize;
            let left = limits.head.saturating_sub(self.bytes) as usize;
            let Some(end) = scan::line_feed(&rest[seen..]) else {
                // The line cannot end within the limit any more.
                if rest.len() >= left {
                    return Err(PeerFault::HeadTooLarge);
                }
                self.seen = rest.len() as u32;
                return Ok((done, false));
            };
            let length = seen + end + 1;
            if length > left {
                return Err(PeerFault::HeadTooLarge);
            }
            let line = line::end(&rest[..length])?;
            done += length;
            self.bytes += length as u32;
            self.seen = 0;
            if line.is_empty() {
                return Ok((done, true));
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
