//! Encodes numbers and texts for records and snapshots, and decodes them from untrusted bytes.

use alloc::sync::Arc;
use alloc::vec::Vec;

/// Decodes values that the functions below encoded. Any other input yields `None`; the decoder
/// never panics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoder<'b>(pub(crate) &'b [u8]);

/// Appends a number in LEB128: seven bits a byte, lowest first; the highest bit marks that more
/// bytes follow.
pub(crate) fn put_number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends a byte string after its length.
pub(crate) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_number(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Appends 0 for `None`, or 1 and the text.
pub(crate) fn put_optional(to: &mut Vec<u8>, text: Option<&str>) {
    to.push(u8::from(text.is_some()));
    if let Some(text) = text {
        put_bytes(to, text.as_bytes());
    }
}

impl<'b> Decoder<'b> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Reads a number. Only its shortest encoding is valid, so that each record has exactly one
    /// encoding.
    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || bits << shift >> shift != bits || (byte == 0 && shift > 0) {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                break;
            }
        }
        Some(number)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'b [u8]> {
        let count = usize::try_from(self.number()?).ok()?;
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn text(&mut self) -> Option<&'b str> {
        core::str::from_utf8(self.bytes()?).ok()
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    #[allow(
        clippy::option_option,
        reason = "the outer one is a failure to read, the inner one the value"
    )]
    pub(crate) fn optional(&mut self) -> Option<Option<Arc<str>>> {
        Some(if self.flag()? { Some(Arc::from(self.text()?)) } else { None })
    }

    /// Reads a count and then that many values. It reserves no memory for the count, so a false
    /// count is cheap.
    pub(crate) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut all = Vec::new();
        for _ in 0..self.number()? {
            all.push(read(self)?);
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rejects_varint_that_is_too_long_or_not_minimal() {
        assert_eq!(Decoder(&[0xff; 11]).number(), None);
        let max = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Decoder(&max).number(), Some(u64::MAX));
        let more = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert_eq!(Decoder(&more).number(), None);
        assert_eq!(Decoder(&[0x80, 0x00]).number(), None);
    }

    proptest! {
        #[test]
        fn round_trips_numbers_bytes_and_texts(number: u64, shift in 0_u32..64, bytes: Vec<u8>) {
            let mut written = Vec::new();
            put_number(&mut written, number >> shift);
            put_bytes(&mut written, &bytes);
            put_optional(&mut written, None);
            put_optional(&mut written, Some("text"));
            let mut read = Decoder(&written);
            prop_assert_eq!(read.number(), Some(number >> shift));
            prop_assert_eq!(read.bytes(), Some(&bytes[..]));
            prop_assert_eq!(read.optional(), Some(None));
            prop_assert_eq!(read.optional(), Some(Some("text".into())));
            prop_assert!(read.is_empty());
        }
    }
}
