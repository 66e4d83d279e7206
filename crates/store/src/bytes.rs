//! Encoding of numbers and byte strings in rows and records, and decoding of untrusted bytes.

/// A reader of encoded bytes. On any input it returns `None` instead of panicking.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteReader<'b>(pub(crate) &'b [u8]);

/// Appends a number in LEB128: seven bits a byte, the lowest first; the highest bit marks a
/// continuation.
pub(crate) fn put_number(to: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends a signed number in zigzag encoding: numbers near zero are short.
pub(crate) fn put_signed(to: &mut Vec<u8>, number: i128) {
    put_number(to, (number << 1 ^ number >> 127).cast_unsigned());
}

/// Appends bytes after their length.
pub(crate) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_number(to, bytes.len() as u128);
    to.extend_from_slice(bytes);
}

impl<'b> ByteReader<'b> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn array<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Option<u128> {
        // Nearly all numbers are below 128.
        let first = self.byte()?;
        if first < 0x80 { Some(u128::from(first)) } else { self.long_number(first) }
    }

    fn long_number(&mut self, first: u8) -> Option<u128> {
        // Decodes up to eight bytes at once by merging groups of seven bits.
        if let Some(chunk) = self.0.first_chunk() {
            let bytes = u64::from_le_bytes(*chunk);
            let last = !bytes & 0x8080_8080_8080_8080;
            if last != 0 {
                let count = last.trailing_zeros() / 8 + 1;
                let kept = bytes & (u64::MAX >> (64 - 8 * count)) & 0x7f7f_7f7f_7f7f_7f7f;
                let pairs = kept & 0x007f_007f_007f_007f | (kept & 0x7f00_7f00_7f00_7f00) >> 1;
                let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
                let all = fours & 0x0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4;
                self.0 = &self.0[count as usize..];
                return Some(u128::from(all) << 7 | u128::from(first & 0x7f));
            }
        }
        let mut number = u128::from(first & 0x7f);
        let mut shift = 7;
        loop {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7f);
            if shift > 121 && bits >> (128 - shift) != 0 {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
            shift += 7;
            if shift > 126 {
                return None;
            }
        }
    }

    pub(crate) fn signed(&mut self) -> Option<i128> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// Reads a number that counts items in memory.
    pub(crate) fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub(crate) fn bytes(&mut self) -> Option<&'b [u8]> {
        let count = self.count()?;
        self.take(count)
    }

    pub(crate) fn text(&mut self) -> Option<&'b str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn round_trips_extreme_numbers() {
        for number in [0, 127, 128, u128::from(u64::MAX), u128::MAX] {
            let mut written = Vec::new();
            put_number(&mut written, number);
            assert_eq!(ByteReader(&written).number(), Some(number));
        }
        for number in [0, -1, i128::MIN, i128::MAX] {
            let mut written = Vec::new();
            put_signed(&mut written, number);
            assert_eq!(ByteReader(&written).signed(), Some(number));
        }
    }

    #[test]
    fn rejects_a_number_with_too_many_bits() {
        let mut bytes = [0xff; 19];
        bytes[18] = 0x07;
        assert_eq!(ByteReader(&bytes).number(), None);
        bytes[18] = 0x03;
        assert_eq!(ByteReader(&bytes).number(), Some(u128::MAX));
        assert_eq!(ByteReader(&[0x80; 40]).number(), None);
    }

    proptest! {
        #[test]
        fn round_trips_numbers_and_bytes(number: u128, signed: i128, shift in 0_u32..128, bytes: Vec<u8>) {
            let mut written = Vec::new();
            put_number(&mut written, number >> shift);
            put_signed(&mut written, signed >> shift);
            put_bytes(&mut written, &bytes);
            let mut read = ByteReader(&written);
            prop_assert_eq!(read.number(), Some(number >> shift));
            prop_assert_eq!(read.signed(), Some(signed >> shift));
            prop_assert_eq!(read.bytes(), Some(&bytes[..]));
            prop_assert!(read.is_empty());
        }

        #[test]
        fn decodes_any_bytes_without_panic(bytes: Vec<u8>) {
            let mut read = ByteReader(&bytes);
            while read.text().is_some() || read.signed().is_some() {}
        }
    }
}
