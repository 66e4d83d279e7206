//! Encoders: whole contents, and streams with a flush after each piece.

use std::io::{self, Write as _};
use std::mem::take;

use brotli::CompressorWriter;
use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::write::GzEncoder;
use zstd::stream::write::Encoder as ZstdEncoder;
use zstd::zstd_safe::CParameter;

use bine_http::Coding;

/// How much time the encoder spends for a smaller result.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Level {
    /// The least time.
    Fast,
    /// Nearly the smallest result that a server can afford for each response.
    #[default]
    Balanced,
    /// A smaller result, for several times the time.
    Small,
    /// The smallest result, for content that is compressed once and sent often.
    Stored,
}

/// The window of a stream in bits: the encoder and the client keep 64 KiB of earlier content each.
const STREAM_WINDOW: i32 = 16;
/// The size of the tables of a Zstandard stream in bits; four bytes each.
const STREAM_TABLE: u32 = 14;
/// Brotli copies its output in pieces of this size.
const BROTLI_BUFFER: usize = 4096;
/// The greatest window for whole content in bits. RFC 8878 lets clients refuse more than 8 MiB.
const CONTENT_WINDOW: i32 = 22;

/// An encoder of one content. It appends its output to buffers that the caller passes.
pub struct Encoder(Kind);

enum Kind {
    Zstandard(ZstdEncoder<'static, Vec<u8>>),
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    Gzip(Box<GzEncoder<Vec<u8>>>),
}

impl Encoder {
    /// Creates an encoder for content of unknown length that is flushed often. It takes at most 600 KiB
    /// (measured in docs/decisions/0025-compression.md).
    ///
    /// # Errors
    ///
    /// There is too little memory.
    pub fn for_stream(coding: Coding, level: Level) -> io::Result<Self> {
        let level = level.min(Level::Balanced);
        Ok(Self(match coding {
            Coding::Zstandard => {
                let mut encoder = ZstdEncoder::new(Vec::new(), zstd_level(level))?;
                encoder.set_parameter(CParameter::WindowLog(STREAM_WINDOW as u32))?;
                encoder.set_parameter(CParameter::HashLog(STREAM_TABLE))?;
                encoder.set_parameter(CParameter::ChainLog(STREAM_TABLE))?;
                Kind::Zstandard(encoder)
            }
            // Quality 4 and more take tables of half a mebibyte.
            Coding::Brotli => brotli(brotli_level(level).min(3), STREAM_WINDOW, 0),
            Coding::Gzip => gzip(level),
        }))
    }

    /// Creates an encoder for content of this length in bytes.
    fn for_content(coding: Coding, level: Level, length: usize) -> io::Result<Self> {
        Ok(Self(match coding {
            Coding::Zstandard => {
                let mut encoder = ZstdEncoder::new(Vec::new(), zstd_level(level))?;
                // The tables of a short content are small.
                encoder.set_pledged_src_size(Some(length as u64))?;
                Kind::Zstandard(encoder)
            }
            Coding::Brotli => {
                let bits = (length.max(1).ilog2() + 1).cast_signed();
                brotli(brotli_level(level), bits.clamp(10, CONTENT_WINDOW), length)
            }
            Coding::Gzip => gzip(level),
        }))
    }

    /// Encodes `content`. The encoder may keep some of it until a [`flush`](Self::flush).
    ///
    /// # Errors
    ///
    /// The encoder failed, and the content cannot be continued.
    pub fn write(&mut self, content: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match &mut self.0 {
            Kind::Zstandard(encoder) => encoder.write_all(content)?,
            Kind::Brotli(encoder) => encoder.write_all(content)?,
            Kind::Gzip(encoder) => encoder.write_all(content)?,
        }
        self.take_output(out);
        Ok(())
    }

    /// Appends all output that the content so far requires, so that the client can decode it now.
    ///
    /// # Errors
    ///
    /// The encoder failed, and the content cannot be continued.
    pub fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        match &mut self.0 {
            Kind::Zstandard(encoder) => encoder.flush()?,
            Kind::Brotli(encoder) => encoder.flush()?,
            Kind::Gzip(encoder) => encoder.flush()?,
        }
        self.take_output(out);
        Ok(())
    }

    /// Ends the content.
    ///
    /// # Errors
    ///
    /// The encoder failed, and the content is incomplete.
    pub fn finish(self, out: &mut Vec<u8>) -> io::Result<()> {
        let mut end = match self.0 {
            Kind::Zstandard(encoder) => encoder.finish()?,
            Kind::Brotli(encoder) => encoder.into_inner(),
            Kind::Gzip(encoder) => encoder.finish()?,
        };
        out.append(&mut end);
        Ok(())
    }

    fn take_output(&mut self, out: &mut Vec<u8>) {
        let written = match &mut self.0 {
            Kind::Zstandard(encoder) => encoder.get_mut(),
            Kind::Brotli(encoder) => encoder.get_mut(),
            Kind::Gzip(encoder) => encoder.get_mut(),
        };
        if out.is_empty() && out.capacity() == 0 {
            *out = take(written);
        } else {
            out.append(written);
        }
    }
}

/// Compresses whole content.
///
/// # Errors
///
/// There is too little memory.
pub fn compress(coding: Coding, level: Level, content: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = Encoder::for_content(coding, level, content.len())?;
    let mut out = Vec::new();
    encoder.write(content, &mut out)?;
    encoder.finish(&mut out)?;
    Ok(out)
}

impl Level {
    /// The length of content in bytes that [`compress`] encodes in about a millisecond or less, so that
    /// an event loop may do it (docs/decisions/0025-compression.md has the measurement).
    pub const fn brief_length(self, coding: Coding) -> usize {
        let kibibytes = match (self, coding) {
            (Self::Fast, Coding::Zstandard) => 128,
            (Self::Fast, Coding::Gzip) | (Self::Balanced, Coding::Zstandard) => 64,
            (Self::Fast, Coding::Brotli) | (Self::Balanced, Coding::Gzip) => 32,
            (Self::Balanced, Coding::Brotli) | (Self::Small, Coding::Zstandard | Coding::Gzip) => {
                16
            }
            (Self::Small, Coding::Brotli) => 8,
            (Self::Stored, _) => 2,
        };
        kibibytes * 1024
    }
}

const fn zstd_level(level: Level) -> i32 {
    match level {
        Level::Fast => 1,
        Level::Balanced => 3,
        Level::Small => 7,
        Level::Stored => 15,
    }
}

const fn brotli_level(level: Level) -> i32 {
    match level {
        Level::Fast => 1,
        Level::Balanced => 4,
        Level::Small => 6,
        Level::Stored => 10,
    }
}

fn brotli(quality: i32, window: i32, size_hint: usize) -> Kind {
    let parameters =
        BrotliEncoderParams { quality, lgwin: window, size_hint, ..BrotliEncoderParams::default() };
    Kind::Brotli(Box::new(CompressorWriter::with_params(Vec::new(), BROTLI_BUFFER, &parameters)))
}

fn gzip(level: Level) -> Kind {
    let level = match level {
        Level::Fast => 1,
        Level::Balanced => 4,
        Level::Small => 7,
        Level::Stored => 9,
    };
    Kind::Gzip(Box::new(GzEncoder::new(Vec::new(), Compression::new(level))))
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Kind::Zstandard(_) => "Encoder(zstd)",
            Kind::Brotli(_) => "Encoder(br)",
            Kind::Gzip(_) => "Encoder(gzip)",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use proptest::prelude::*;

    use super::*;

    const LEVELS: [Level; 4] = [Level::Fast, Level::Balanced, Level::Small, Level::Stored];

    fn decoded(coding: Coding, bytes: &[u8]) -> Vec<u8> {
        let mut content = Vec::new();
        match coding {
            Coding::Zstandard => content = zstd::decode_all(bytes).unwrap(),
            Coding::Brotli => {
                brotli::BrotliDecompress(&mut &*bytes, &mut content).unwrap();
            }
            Coding::Gzip => {
                flate2::read::GzDecoder::new(bytes).read_to_end(&mut content).unwrap();
            }
        }
        content
    }

    /// The content that a client can decode from an incomplete response.
    fn decoded_so_far(coding: Coding, bytes: &[u8]) -> Vec<u8> {
        let mut content = Vec::new();
        let mut piece = [0; 64];
        let mut reader: Box<dyn io::Read> = match coding {
            Coding::Zstandard => Box::new(zstd::Decoder::new(bytes).unwrap()),
            Coding::Brotli => Box::new(brotli::Decompressor::new(bytes, 64)),
            Coding::Gzip => Box::new(flate2::read::GzDecoder::new(bytes)),
        };
        while let Ok(count @ 1..) = reader.read(&mut piece) {
            content.extend_from_slice(&piece[..count]);
        }
        content
    }

    #[test]
    fn restores_contents_of_all_lengths() {
        for length in [0, 1, 100, 70_000] {
            let text: Vec<u8> = b"a line of text\n".iter().copied().cycle().take(length).collect();
            for (coding, level) in Coding::ALL.iter().flat_map(|own| LEVELS.map(|l| (*own, l))) {
                let bytes = compress(coding, level, &text).unwrap();
                assert_eq!(decoded(coding, &bytes), text, "{coding:?} {level:?}");
                assert!(length < 100 || bytes.len() < length / 2, "{coding:?} {level:?}");
            }
        }
    }

    #[test]
    fn client_can_decode_each_flushed_piece() {
        for coding in Coding::ALL {
            let mut encoder = Encoder::for_stream(coding, Level::Balanced).unwrap();
            let (mut out, mut expected) = (Vec::new(), Vec::new());
            for number in 0..20 {
                let piece = format!("data: {number}\n\n");
                expected.extend_from_slice(piece.as_bytes());
                encoder.write(piece.as_bytes(), &mut out).unwrap();
                encoder.flush(&mut out).unwrap();
                assert_eq!(decoded_so_far(coding, &out), expected, "{coding:?}");
            }
            encoder.finish(&mut out).unwrap();
            assert_eq!(decoded(coding, &out), expected, "{coding:?}");
        }
    }

    proptest! {
        #[test]
        fn restores_streams_with_any_flushes(
            pieces in prop::collection::vec(
                (prop::collection::vec(prop_oneof![Just(b'a'), any::<u8>()], 0..3000), any::<bool>()),
                0..6,
            ),
            coding in prop::sample::select(Coding::ALL.to_vec()),
            level in prop::sample::select(LEVELS.to_vec()),
        ) {
            let mut encoder = Encoder::for_stream(coding, level).unwrap();
            let (mut out, mut content) = (Vec::new(), Vec::new());
            for (piece, is_flushed) in &pieces {
                content.extend_from_slice(piece);
                encoder.write(piece, &mut out).unwrap();
                if *is_flushed {
                    encoder.flush(&mut out).unwrap();
                }
            }
            encoder.finish(&mut out).unwrap();
            prop_assert_eq!(decoded(coding, &out), content);
        }
    }
}
