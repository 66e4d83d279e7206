//! Framing of response content whose length is unknown at its start.

use alloc::vec::Vec;

/// How the client finds the end of streamed content (RFC 9112 section 6).
///
/// [`Reply::stream`](crate::Reply::stream) returns the framing that it has announced in the head.
/// For [`Preframed`](Self::Preframed) content, the caller announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// Chunked transfer coding: a chunk of size 0 ends the content (RFC 9112 section 7.1).
    Chunked,
    /// The end of the connection ends the content, because the client does not know chunks.
    CloseDelimited,
    /// The caller passes data that is already framed, including its end, as [`Body`](crate::Body)
    /// writes it.
    Preframed,
    /// There is no content: the response is to HEAD, or its status forbids content.
    Empty,
}

impl BodyFraming {
    /// Returns whether the connection must close after the content.
    pub const fn closes_connection(self) -> bool {
        matches!(self, Self::CloseDelimited)
    }

    /// Appends `piece` to `out` with its framing. An empty piece appends no bytes.
    pub fn append(self, out: &mut Vec<u8>, piece: &[u8]) {
        match self {
            Self::Empty => {}
            _ if piece.is_empty() => {}
            Self::CloseDelimited | Self::Preframed => out.extend_from_slice(piece),
            Self::Chunked => {
                let digits = (piece.len().ilog2() / 4 + 1) as usize;
                let size =
                    (0..digits).rev().map(|at| b"0123456789abcdef"[piece.len() >> (at * 4) & 15]);
                out.extend(size);
                out.extend_from_slice(b"\r\n");
                out.extend_from_slice(piece);
                out.extend_from_slice(b"\r\n");
            }
        }
    }

    /// Appends the end of the content. Without it a client that knows chunks detects that some are
    /// missing.
    pub fn end(self, out: &mut Vec<u8>) {
        if self == Self::Chunked {
            out.extend_from_slice(b"0\r\n\r\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;
    use crate::chunked::{Chunk, ChunkReader};
    use crate::limits::Limits;

    #[test]
    fn writes_chunk_size_in_hexadecimal() {
        let mut out = Vec::new();
        BodyFraming::Chunked.append(&mut out, b"");
        BodyFraming::Chunked.append(&mut out, b"a");
        BodyFraming::Chunked.append(&mut out, &[b'x'; 16]);
        BodyFraming::Chunked.end(&mut out);
        assert_eq!(out, b"1\r\na\r\n10\r\nxxxxxxxxxxxxxxxx\r\n0\r\n\r\n");
    }

    #[test]
    fn writes_unchunked_pieces_without_framing() {
        let mut out = Vec::new();
        BodyFraming::CloseDelimited.append(&mut out, b"ab");
        BodyFraming::CloseDelimited.end(&mut out);
        BodyFraming::Empty.append(&mut out, b"cd");
        BodyFraming::Empty.end(&mut out);
        assert_eq!(out, b"ab");
    }

    proptest! {
        #[test]
        fn chunk_reader_recovers_written_content(pieces in prop::collection::vec(
            prop::collection::vec(any::<u8>(), 0..5000), 0..8,
        )) {
            let mut out = Vec::new();
            for piece in &pieces {
                BodyFraming::Chunked.append(&mut out, piece);
            }
            BodyFraming::Chunked.end(&mut out);
            let mut reader = ChunkReader::default();
            let mut rest = &out[..];
            let mut found = vec![];
            loop {
                let (length, chunk) = reader.receive(rest, &Limits::default()).unwrap();
                match chunk {
                    Chunk::Data(data) => found.extend_from_slice(data),
                    Chunk::Last => break,
                    Chunk::More => panic!("not whole"),
                }
                rest = &rest[length..];
            }
            prop_assert_eq!(found, pieces.concat());
        }
    }
}
