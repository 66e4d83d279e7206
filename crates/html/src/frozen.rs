//! Decides what a page is once it is written and kept: bytes that are shared, and a tag that tells them from others.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use crate::page::Page;
use crate::render::Render;
use crate::writer::Writer;

/// A page that was written once: its bytes, shared by all clones, and their entity tag.
///
/// It is a page itself, so it stands in holes and is answered with. Kept in a `static` or in the state of a program,
/// it is sent as a small file is, and to a peer that has it already it is not sent at all.
#[derive(Clone)]
pub struct Frozen {
    bytes: Arc<[u8]>,
    hash: u128,
    tag: Tag,
    /// Where its `<head>` ends, if it has one.
    head_end: Option<usize>,
    is_whole: bool,
}

/// A strong entity tag, in quotes (RFC 9110 section 8.8.3).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Tag([u8; LENGTH]);

/// Two quotes and the digits of 128 bits.
const LENGTH: usize = 2 + 32;

/// Stands in the head while a page is frozen, to be found again: no escaped text has a `<`.
const MARK: &str = "<\0>";

impl Frozen {
    pub(crate) fn of(page: impl Page) -> Self {
        let is_whole = page.is_whole();
        let mut bytes = Vec::new();
        page.write(&mut Writer::new(&mut bytes).with_head(MARK));
        let head_end = bytes.windows(MARK.len()).position(|window| window == MARK.as_bytes());
        if let Some(place) = head_end {
            bytes.drain(place..place + MARK.len());
        }
        let hash = hash(START, &bytes);
        Self { hash, tag: Tag::of(hash), bytes: bytes.into(), head_end, is_whole }
    }

    /// What was written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its entity tag: the same bytes have the same, on every machine and after every start.
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// What is sent where `head` is to stand at the end of its `<head>`, and the tag of all that.
    #[doc(hidden)]
    pub fn with_head<'f>(&'f self, head: &'f str) -> ([&'f [u8]; 3], Tag) {
        match self.head_end.filter(|_| !head.is_empty()) {
            Some(end) => {
                let (before, behind) = self.bytes.split_at(end);
                ([before, head.as_bytes(), behind], Tag::of(hash(self.hash, head.as_bytes())))
            }
            None => ([&self.bytes, b"", b""], self.tag),
        }
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
        let (before, behind) = self.bytes.split_at(self.head_end.unwrap_or_default());
        writer.bytes(before);
        if self.head_end.is_some() {
            writer.end_head();
        }
        writer.bytes(behind);
    }
}

impl fmt::Debug for Frozen {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Frozen({} bytes, {})", self.bytes.len(), &*self.tag())
    }
}

impl Tag {
    fn of(hash: u128) -> Self {
        const DIGITS: [u8; 16] = *b"0123456789abcdef";
        let mut tag = [b'"'; LENGTH];
        for (pair, byte) in tag[1..].chunks_exact_mut(2).zip(hash.to_be_bytes()) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        Self(tag)
    }
}

impl Deref for Tag {
    type Target = str;

    fn deref(&self) -> &str {
        str::from_utf8(&self.0).expect("quotes and digits")
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self)
    }
}

const START: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;

/// FNV-1a with 128 bits, from what came before: that two pages of a program have the same is no more likely than that
/// its memory errs. It does not withstand somebody who looks for two pages with one tag, who would gain nothing but to
/// see the old one.
fn hash(before: u128, bytes: &[u8]) -> u128 {
    const PRIME: u128 = (1 << 88) + 0x13b;
    bytes.iter().fold(before, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flow, page};

    #[test]
    fn a_hash_is_that_of_the_published_vectors() {
        assert_eq!(hash(START, b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(hash(START, b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(hash(START, b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }

    #[test]
    fn what_is_frozen_is_written_as_it_was() {
        let frozen = page::<Flow, _>(|writer| writer.text("a < b")).freeze();
        assert_eq!(frozen.bytes(), b"a &lt; b");
        assert_eq!(frozen.clone().freeze().tag(), frozen.tag());
        assert_ne!(page::<Flow, _>(|writer| writer.text("a")).freeze().tag(), frozen.tag());
        assert_eq!(
            frozen.with_head("<link />"),
            ([b"a &lt; b".as_slice(), b"", b""], frozen.tag())
        );
        assert!(frozen.tag().starts_with('"') && frozen.tag().ends_with('"'));
        assert_eq!(frozen.tag().len(), 34);
    }

    #[test]
    fn a_head_is_filled_when_the_page_is_sent() {
        let frozen = page::<Flow, _>(|writer| {
            writer.constant("<head>");
            writer.end_head();
            writer.constant("</head>");
        });
        let frozen = frozen.freeze();
        assert_eq!(frozen.bytes(), b"<head></head>");
        let (pieces, tag) = frozen.with_head("<link />");
        assert_eq!(pieces.concat(), b"<head><link /></head>");
        assert_ne!(tag, frozen.tag());
        let mut out = Vec::new();
        frozen.clone().write(&mut Writer::new(&mut out).with_head("<link />"));
        assert_eq!(out, pieces.concat());
        assert_eq!(frozen.with_head("").1, frozen.tag());
    }
}
