//! [`Frozen`]: a page rendered once and kept as shared bytes with an entity tag.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::{Page, Render, Writer};

/// A page that was rendered once: its bytes, shared by all clones, and their entity tag.
///
/// It is a page itself, so holes accept it and handlers return it. Stored in a `static` or in the
/// program's state, it is sent like a small static file. A client that has it cached receives 304.
#[derive(Clone)]
pub struct Frozen {
    bytes: Arc<[u8]>,
    tag: [u8; TAG],
    is_whole: bool,
    /// The length of the bytes before the end of the `<head>`, if the page has one.
    head_end: Option<usize>,
}

/// Two quotes and the digits of 128 bits.
const TAG: usize = 2 + 32;

impl Frozen {
    pub(crate) fn of(page: impl Page) -> Self {
        let is_whole = page.is_whole();
        let (mut bytes, mut head_end) = (Vec::new(), None);
        let mut writer = Writer::new(&mut bytes);
        writer.record_head_end(&mut head_end);
        page.write(&mut writer);
        drop(writer);
        Self { tag: tag(&bytes), bytes: bytes.into(), is_whole, head_end }
    }

    /// The bytes of the page.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes before and after the end of the `<head>`. `None`: the page has no `<head>`.
    pub fn split_at_head_end(&self) -> Option<(&[u8], &[u8])> {
        Some(self.bytes.split_at(self.head_end?))
    }

    /// The strong entity tag, in quotes (RFC 9110 section 8.8.3). Equal bytes have equal tags on
    /// every machine and after every restart.
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

/// Lets a hole show a kept page by reference.
impl Render for Frozen {
    fn render(&self, writer: &mut Writer<'_>) {
        let (before, after) = self.split_at_head_end().unwrap_or((&self.bytes, &[]));
        writer.bytes(before);
        if self.head_end.is_some() {
            writer.end_head();
        }
        writer.bytes(after);
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

/// FNV-1a with 128 bits. A collision of two pages in one program is no more likely than a memory
/// error. It does not resist an attacker who constructs two pages with equal tags, but such an
/// attacker gains only that a client keeps the old page.
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
    fn fnv_matches_published_vectors() {
        assert_eq!(hash(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(hash(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(hash(b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }

    #[test]
    fn freezing_keeps_bytes_and_tag() {
        let frozen = page::<Flow, _>(|writer| writer.text("a < b")).freeze();
        assert_eq!(frozen.bytes(), b"a &lt; b");
        assert_eq!(frozen.clone().freeze().tag(), frozen.tag());
        assert_ne!(page::<Flow, _>(|writer| writer.text("a")).freeze().tag(), frozen.tag());
        assert!(frozen.tag().starts_with('"') && frozen.tag().ends_with('"'));
        assert_eq!(frozen.tag().len(), 34);
    }

    #[test]
    fn inserts_head_markup_into_a_frozen_page() {
        let whole = page::<Document, _>(|writer| {
            writer.constant("<html><head>");
            writer.end_head();
            writer.constant("</head></html>");
        });
        let frozen = whole.freeze().freeze();
        assert_eq!(frozen.bytes(), b"<html><head></head></html>");
        let parts = (b"<html><head>".as_slice(), b"</head></html>".as_slice());
        assert_eq!(frozen.split_at_head_end(), Some(parts));
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        writer.set_head("<link />");
        frozen.write(&mut writer);
        drop(writer);
        assert_eq!(out, b"<html><head><link /></head></html>");
    }
}
