//! The bytes of a snapshot: blocks with lengths and checksums, and an end with their count.
//!
//! A block is its length (u32), the CRC-32C of its bytes (u32), and the bytes. The end is the length
//! 0xffffffff, the CRC-32C of the count, and the count of blocks (u64). Numbers are little-endian.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest block.
pub(crate) const LONGEST_BLOCK: usize = 64 * 1024 * 1024;
/// The length that marks the end.
const END: u32 = u32::MAX;

/// Encodes a block; `None` if it is too long.
pub(crate) fn encode(block: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(block.len()).ok().filter(|_| block.len() <= LONGEST_BLOCK)?;
    let mut frame = Vec::with_capacity(block.len() + 8);
    frame.extend(length.to_le_bytes());
    frame.extend(crc32c::crc32c(block).to_le_bytes());
    frame.extend(block);
    Some(frame)
}

/// Encodes the end after `count` blocks.
pub(crate) fn encode_end(count: u64) -> Vec<u8> {
    let count = count.to_le_bytes();
    [&END.to_le_bytes()[..], &crc32c::crc32c(&count).to_le_bytes(), &count].concat()
}

/// Reads the block after `count` blocks; `None` at the end.
pub(crate) async fn decode(
    source: &mut (impl AsyncRead + Unpin),
    count: u64,
) -> Result<Option<Vec<u8>>, String> {
    let broken = |error: std::io::Error| format!("block {count} cannot be read: {error}");
    let length = source.read_u32_le().await.map_err(broken)?;
    let checksum = source.read_u32_le().await.map_err(broken)?;
    let is_end = length == END;
    let length = if is_end { 8 } else { length as usize };
    if length > LONGEST_BLOCK {
        return Err(format!("block {count} has an impossible length"));
    }
    let mut block = vec![0; length];
    source.read_exact(&mut block).await.map_err(broken)?;
    if crc32c::crc32c(&block) != checksum {
        return Err(format!("block {count} has a wrong checksum"));
    }
    if !is_end {
        return Ok(Some(block));
    }
    if block != count.to_le_bytes() {
        return Err(format!("blocks are missing: only {count} were read"));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn reads_the_blocks_that_were_written() {
        let bytes = written(&[b"one", b"", b"three"]);
        assert_eq!(read(&bytes), Ok(vec![b"one".to_vec(), Vec::new(), b"three".to_vec()]));
    }

    #[test]
    fn detects_every_cut_and_every_changed_byte() {
        let bytes = written(&[b"one", b"two"]);
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_err(), "{length}");
        }
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= 1;
            assert!(read(&changed).is_err(), "{index}");
        }
    }

    #[test]
    fn detects_a_missing_block() {
        let bytes = [encode(b"one").unwrap(), encode_end(2)].concat();
        assert_eq!(read(&bytes), Err("blocks are missing: only 1 were read".to_owned()));
    }

    fn written(blocks: &[&[u8]]) -> Vec<u8> {
        let mut bytes: Vec<u8> = blocks.iter().flat_map(|block| encode(block).unwrap()).collect();
        bytes.extend(encode_end(blocks.len() as u64));
        bytes
    }

    fn read(mut bytes: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let mut blocks = Vec::new();
        while let Some(block) =
            decode(&mut bytes, blocks.len() as u64).now_or_never().expect("memory is ready")?
        {
            blocks.push(block);
        }
        Ok(blocks)
    }
}
