//! Decides what a page is once it is written and kept: bytes that are shared, and a tag that tells them from others.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::{Page, Render, Writer};

/// A page that was written once: its bytes, shared by all clones, and their entity tag.
///
/// It is a page itself, so it stands in holes and is answered with. Kept in a `static` or in the state of a program,
/// it is sent as a small file is, and to a peer that has it already it is not sent at all.
#[derive(Clone)]
pub struct Frozen {
    bytes: Arc<[u8]>,
    tag: [u8; TAG],
    is_whole: bool,
    /// The length of what stands before the end of the `<head>`, if it has one.
    head_end: Option<usize>,
}

/// Two quotes and the digits of 128 bits.
const TAG: usize = 2 + 32;

impl Frozen {
    pub(crate) fn of(page: impl Page) -> Self {
        let is_whole = page.is_whole();
        let (mut bytes, mut head_end) = (Vec::new(), None);
        page.write(&mut Writer::new(&mut bytes).noting_head(&mut head_end));
        Self { tag: tag(&bytes), bytes: bytes.into(), is_whole, head_end }
    }

    /// What was written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What was written, in two: before and behind the end of the `<head>`. `None`: it has none.
    pub fn around_head_end(&self) -> Option<(&[u8], &[u8])> {
        Some(self.bytes.split_at(self.head_end?))
    }

    /// Its strong entity tag, in quotes (RFC 9110 section 8.8.3): the same bytes have the same tag, on every machine
    /// and after every start.
    pub fn tag(&self) -> &str {
        str::from_utf8(&self.tag).expect("quotes and digits")
    }
}

impl Page for Frozen {
    fn write(self, writer: &mut Writer<'_>) {
        self.render(writer);
    }

    fn is_whole(&self) -> bool {
        self.is_whole
    }

    fn frozen(&self) -> Option<&Frozen> {
        Some(self)
    }
}

/// One that is kept stands in a hole too.
impl Render for Frozen {
    fn render(&self, writer: &mut Writer<'_>) {
        let (before, behind) = self.around_head_end().unwrap_or((&self.bytes, &[]));
        writer.bytes(before);
        if self.head_end.is_some() {
            writer.end_head();
        }
        writer.bytes(behind);
    }
}

impl fmt::Debug for Frozen {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Frozen({} bytes, {})", self.bytes.len(), self.tag())
    }
}

fn tag(bytes: &[u8]) -> [u8; TAG] {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let hash = hash(bytes).to_be_bytes();
    let mut tag = [b'"'; TAG];
    for (pair, byte) in tag[1..].chunks_exact_mut(2).zip(hash) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    tag
}

/// FNV-1a with 128 bits: that two pages of a program have the same is no more likely than that its memory errs. It
/// does not withstand somebody who looks for two pages with one tag, who would gain nothing but to see the old one.
fn hash(bytes: &[u8]) -> u128 {
    const START: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = (1 << 88) + 0x13b;
    bytes.iter().fold(START, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Document;
    use crate::{Flow, page};

    #[test]
    fn a_hash_is_that_of_the_published_vectors() {
        assert_eq!(hash(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(hash(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(hash(b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }

    #[test]
    fn what_is_frozen_is_written_as_it_was() {
        let frozen = page::<Flow, _>(|writer| writer.text("a < b")).freeze();
        assert_eq!(frozen.bytes(), b"a &lt; b");
        assert_eq!(frozen.clone().freeze().tag(), frozen.tag());
        assert_ne!(page::<Flow, _>(|writer| writer.text("a")).freeze().tag(), frozen.tag());
        assert!(frozen.tag().starts_with('"') && frozen.tag().ends_with('"'));
        assert_eq!(frozen.tag().len(), 34);
    }

    #[test]
    fn what_belongs_into_the_head_finds_it_in_a_frozen_page() {
        let whole = page::<Document, _>(|writer| {
            writer.constant("<html><head>");
            writer.end_head();
            writer.constant("</head></html>");
        });
        let frozen = whole.freeze().freeze();
        assert_eq!(frozen.bytes(), b"<html><head></head></html>");
        let parts = (b"<html><head>".as_slice(), b"</head></html>".as_slice());
        assert_eq!(frozen.around_head_end(), Some(parts));
        let mut out = Vec::new();
        frozen.write(&mut Writer::new(&mut out).with_head("<link />"));
        assert_eq!(out, b"<html><head><link /></head></html>");
    }
}
