//! Decides how content of unknown length is framed, piece after piece.

use alloc::vec::Vec;

/// How the pieces of a content are told apart from what follows it (RFC 9112 section 6).
///
/// Made by [`Reply::pieces`](crate::Reply::pieces), which has announced it in the head, unless they come framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// Each piece is a chunk; an empty one ends the content (RFC 9112 section 7.1).
    Chunked,
    /// The end of the connection ends the content: the peer knows no chunks.
    CloseDelimited,
    /// The pieces come framed, and so does their end: a [`Body`](crate::Body) sees to that.
    Preframed,
    /// There is no content: the reply is to HEAD, or its status allows none.
    Empty,
}

impl BodyFraming {
    /// The connection must close behind the content.
    pub const fn closes_connection(self) -> bool {
        matches!(self, Self::CloseDelimited)
    }

    /// Appends `piece` to `out`, framed. An empty piece is none.
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

    /// Appends what ends the content. Without it a peer that knows chunks sees that some are missing.
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
    fn a_chunk_says_its_size_in_hexadecimal() {
        let mut out = Vec::new();
        BodyFraming::Chunked.append(&mut out, b"");
        BodyFraming::Chunked.append(&mut out, b"a");
        BodyFraming::Chunked.append(&mut out, &[b'x'; 16]);
        BodyFraming::Chunked.end(&mut out);
        assert_eq!(out, b"1\r\na\r\n10\r\nxxxxxxxxxxxxxxxx\r\n0\r\n\r\n");
    }

    #[test]
    fn without_chunks_the_pieces_stand_bare_or_not_at_all() {
        let mut out = Vec::new();
        BodyFraming::CloseDelimited.append(&mut out, b"ab");
        BodyFraming::CloseDelimited.end(&mut out);
        BodyFraming::Empty.append(&mut out, b"cd");
        BodyFraming::Empty.end(&mut out);
        assert_eq!(out, b"ab");
    }

    proptest! {
        #[test]
        fn our_own_reader_finds_what_was_written(pieces in prop::collection::vec(
            prop::collection::vec(any::<u8>(), 0..5000), 0..8,
        )) {
            let mut out = Vec::new();
            for piece in &pieces {
                BodyFraming::Chunked.append(&mut out, piece);
            }
            BodyFraming::Chunked.end(&mut out);
            let (mut reader, mut rest, mut found) = (ChunkReader::default(), &out[..], vec![]);
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
