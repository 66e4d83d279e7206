//! Marks around the parts of a page that a browser keeps up to date: two comments, the second of
//! which holds a hash of the bytes between them.

use core::fmt;
use core::hash::Hasher as _;

use siphasher::sip128::{Hasher128 as _, SipHasher13};

use crate::writer::Writer;

/// The state of region marks in a writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Regions {
    /// Regions are not marked, because the client could not update them.
    #[default]
    Unmarked,
    /// Regions are marked; the number of regions so far.
    Marked(u32),
    /// The writer is inside the region of this number. Regions inside it get no marks of their own.
    Within(u32),
}

/// A region that was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region<'w> {
    /// The index of the region in the page, from 0.
    pub number: u32,
    /// The hash of the markup under the writer's key.
    pub hash: RegionHash,
    /// The markup, without the marks.
    pub markup: &'w [u8],
}

/// The secret key of region hashes. Without it a client cannot construct two contents with one
/// hash, so a client that controls part of a page cannot make other clients keep outdated content.
#[derive(Clone, Copy, Default)]
pub struct RegionKey([u8; 16]);

/// The hash of a region's bytes: SipHash-1-3 with 128 bits (Aumasson and Bernstein 2012) under a
/// [`RegionKey`].
///
/// Its text has 22 digits, 0 to 9, A to Z and a to z, 11 for each half. A browser sends up to 256
/// hashes in a URL of at most 8 KiB, and no digit ends a comment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionHash([u64; 2]);

impl RegionKey {
    /// A key from these bytes, which must be unpredictable.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for RegionKey {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("RegionKey")
    }
}

impl RegionHash {
    /// The hash of some bytes.
    pub fn of(bytes: &[u8], key: &RegionKey) -> Self {
        let mut hasher = SipHasher13::new_with_key(&key.0);
        hasher.write(bytes);
        let hash = hasher.finish128();
        Self([hash.h1, hash.h2])
    }

    /// Parses the output of [`Display`](fmt::Display).
    pub fn parse(text: &str) -> Option<Self> {
        let (first, second) = text.as_bytes().split_at_checked(HALF_DIGITS)?;
        Some(Self([parse_half(first)?, parse_half(second)?]))
    }

    fn digits(self) -> [u8; 2 * HALF_DIGITS] {
        let mut digits = [b'0'; 2 * HALF_DIGITS];
        for (place, mut rest) in self.0.into_iter().enumerate() {
            for digit in digits[place * HALF_DIGITS..][..HALF_DIGITS].iter_mut().rev() {
                *digit = DIGITS[(rest % BASE) as usize];
                rest /= BASE;
            }
        }
        digits
    }
}

impl fmt::Display for RegionHash {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.digits().into_iter().try_for_each(|digit| fmt::Write::write_char(to, digit.into()))
    }
}

/// Parses half a hash; `None` if the number of digits is wrong.
fn parse_half(digits: &[u8]) -> Option<u64> {
    if digits.len() != HALF_DIGITS {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, digit| {
        let digit = DIGITS.iter().position(|known| known == digit)?;
        value.checked_mul(BASE)?.checked_add(digit as u64)
    })
}

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE: u64 = DIGITS.len() as u64;
/// The number of digits for 64 bits.
const HALF_DIGITS: usize = 11;

/// The number of an empty mark that identifies the viewer of the page. No region has this number.
pub const VIEWER_MARK: u32 = 999;

/// The number of an empty mark that identifies the version of the program. No region has this
/// number.
pub const VERSION_MARK: u32 = 998;

/// The maximum number of marked regions in a page: a browser sends all hashes in one URL.
const MAX_REGIONS: u32 = 256;

impl Writer<'_> {
    /// Marks [regions](Self::region) from here on, with hashes under this key. XHTML gets no marks.
    pub const fn mark_regions(&mut self, key: &RegionKey) {
        (self.regions, self.region_key) = (Regions::Marked(0), *key);
    }

    /// Writes an empty mark before the first region, which identifies the viewer of the page:
    /// `<!--live 999--><!--/live 999 0123456789abcdef-->`. A browser sends it back with the hashes
    /// of the regions, but no patch changes it.
    pub const fn set_viewer(&mut self, word: u64) {
        self.viewer = Some(word);
    }

    /// Writes an empty mark before the first region, which identifies the version of the program:
    /// `<!--live 998--><!--/live 998 0123456789abcdef-->`. A browser sends it back as it does the
    /// mark of the [viewer](Self::set_viewer).
    pub const fn set_version(&mut self, word: u64) {
        self.version = Some(word);
    }

    /// Writes a part of a page between two marks, `<!--live 0-->` and `<!--/live 0 HASH-->`, and
    /// passes the finished region to `look`. The buffer does not spill before `look` returns. The
    /// part is written without marks if the writer marks no regions, inside another region, and
    /// after the 256th region of a page.
    pub fn region(&mut self, write: impl FnOnce(&mut Self), look: impl FnOnce(Region<'_>)) {
        let number = match self.regions {
            Regions::Marked(number) if !self.is_in_xml() && number < MAX_REGIONS => number,
            _ => return write(self),
        };
        for (mark, word) in [(VERSION_MARK, self.version.take()), (VIEWER_MARK, self.viewer.take())]
        {
            if let Some(word) = word {
                self.begin_mark(mark);
                self.end_mark(mark, &digits(word));
            }
        }
        self.begin_mark(number);
        self.regions = Regions::Within(number);
        let (hold, key) = (self.hold(), self.region_key);
        write(self);
        let markup = self.release(&hold);
        let hash = RegionHash::of(markup, &key);
        look(Region { number, hash, markup });
        self.regions = Regions::Marked(number + 1);
        self.end_mark(number, &hash.digits());
    }

    fn begin_mark(&mut self, number: u32) {
        self.constant("<!--live ");
        self.decimal(false, number.into());
        self.constant("-->");
    }

    fn end_mark(&mut self, number: u32, word: &[u8]) {
        self.constant("<!--/live ");
        self.decimal(false, number.into());
        self.constant(" ");
        self.bytes(word);
        self.constant("-->");
    }
}

/// A mark's word in sixteen hexadecimal digits.
fn digits(word: u64) -> [u8; 16] {
    let mut digits = [0; 16];
    for (place, digit) in digits.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(word >> (60 - 4 * place)) as usize & 15];
    }
    digits
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    const KEY: RegionKey = RegionKey::new([7; 16]);

    fn hash(bytes: &[u8]) -> RegionHash {
        RegionHash::of(bytes, &KEY)
    }

    fn written(write: impl FnOnce(&mut Writer<'_>)) -> String {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        writer.mark_regions(&KEY);
        write(&mut writer);
        drop(writer);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn marks_regions_with_their_hash() {
        let mut seen = Vec::new();
        let page = written(|writer| {
            for text in ["a<", "b"] {
                writer.region(
                    |writer| writer.text(text),
                    |region| seen.push((region.number, region.hash, region.markup.to_vec())),
                );
            }
        });
        let [(0, first, markup), (1, second, _)] = &seen[..] else { panic!("{seen:?}") };
        assert_eq!(markup, b"a&lt;");
        let both = alloc::format!(
            "<!--live 0-->a&lt;<!--/live 0 {first}--><!--live 1-->b<!--/live 1 {second}-->"
        );
        assert_eq!(page, both);
    }

    #[test]
    fn writes_the_viewer_mark_before_the_first_region() {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        writer.mark_regions(&KEY);
        writer.set_viewer(0xabc);
        writer.region(|writer| writer.text("a"), |_| {});
        writer.region(|writer| writer.text("b"), |_| {});
        drop(writer);
        let page = String::from_utf8(out).unwrap();
        let mark = "<!--live 999--><!--/live 999 0000000000000abc-->";
        assert!(page.starts_with(&alloc::format!("{mark}<!--live 0-->a")), "{page}");
        assert_eq!(page.matches("999").count(), 2);
    }

    #[test]
    fn writes_the_version_mark_only_in_pages_with_regions() {
        for count in 0..3 {
            let mut out = Vec::new();
            let mut writer = Writer::new(&mut out);
            writer.mark_regions(&KEY);
            writer.set_version(0xdef);
            writer.text("a");
            (0..count).for_each(|_| writer.region(|writer| writer.text("b"), |_| {}));
            drop(writer);
            let page = String::from_utf8(out).unwrap();
            let mark = "a<!--live 998--><!--/live 998 0000000000000def--><!--live 0-->b";
            assert_eq!(page.starts_with(mark), count > 0, "{page}");
            assert_eq!(page.matches("998").count(), 2 * count.min(1));
        }
    }

    #[test]
    fn does_not_mark_nested_regions() {
        let inner = |writer: &mut Writer<'_>| writer.region(|writer| writer.text("b"), |_| {});
        let page = written(|writer| {
            writer.region(
                |writer| {
                    writer.text("a");
                    inner(writer);
                },
                |_| {},
            );
            inner(writer);
        });
        assert!(page.starts_with("<!--live 0-->ab<!--/live 0 ") && page.contains("<!--live 1-->b"));
    }

    #[test]
    fn does_not_mark_regions_by_default_or_in_xml() {
        let mut out = Vec::new();
        Writer::new(&mut out).region(|writer| writer.text("a"), |_| panic!("seen"));
        let mut in_xml = Writer::new(&mut out);
        in_xml.mark_regions(&KEY);
        in_xml.switch_to_xml();
        in_xml.region(|writer| writer.text("b"), |_| panic!("seen"));
        drop(in_xml);
        assert_eq!(out, b"ab");
    }

    #[test]
    fn holds_a_region_back_until_it_is_complete() {
        let (mut out, mut left) = (Vec::new(), Vec::new());
        let mut spill = |out: &mut Vec<u8>| left.append(out);
        let mut writer = Writer::with_spill(&mut out, 8, &mut spill);
        writer.mark_regions(&KEY);
        writer.constant("before");
        writer.region(
            |writer| (0..100).for_each(|_| writer.constant("0123456789")),
            |region| assert_eq!(region.markup.len(), 1000),
        );
        writer.constant("behind, which is longer than a piece");
        writer.constant("end");
        drop(writer);
        assert!(out == b"end" && left.starts_with(b"before<!--live 0-->0123"));
        assert!(left.ends_with(b"behind, which is longer than a piece"));
    }

    #[test]
    fn writes_a_region_after_a_spill_panicked() {
        extern crate std;
        let mut out = Vec::new();
        let mut spills = 0;
        let mut spill = |out: &mut Vec<u8>| {
            spills += 1;
            if spills == 1 {
                out.clear();
                panic!("as this test wants it");
            }
        };
        let mut writer = Writer::with_spill(&mut out, 1, &mut spill);
        writer.mark_regions(&KEY);
        let fill = std::panic::AssertUnwindSafe(|| {
            (0..200).for_each(|_| writer.constant("0123456789"));
        });
        assert!(std::panic::catch_unwind(fill).is_err());
        let mut seen = Vec::new();
        writer.region(|writer| writer.text("a"), |region| seen.extend_from_slice(region.markup));
        drop(writer);
        assert_eq!(seen, b"a");
        assert!(out.starts_with(b"<!--live 0-->a<!--/live 0 "));
    }

    #[test]
    fn hash_depends_on_the_key() {
        let other = RegionKey::new([8; 16]);
        for content in ["", "a", "hello, bine"] {
            let hashes = [&KEY, &other].map(|key| RegionHash::of(content.as_bytes(), key));
            // Both halves change.
            assert!(hashes[0].0.iter().zip(hashes[1].0).all(|(one, other)| *one != other));
        }
    }

    #[test]
    fn hash_is_siphash_1_3_of_128_bits() {
        let key = RegionKey::new(core::array::from_fn(|place| place as u8));
        // Expected values computed by an independent implementation.
        for (text, expected) in [
            ("hello, bine", [0x9043_9d0b_2892_848a, 0xc19b_e822_064f_3859]),
            (
                &"a bine is the climbing stem on which hops grow".repeat(3),
                [0x754d_43d4_4136_0a22, 0x3056_3d76_17e1_5f5e],
            ),
        ] {
            assert_eq!(RegionHash::of(text.as_bytes(), &key).0, expected, "{text}");
        }
    }

    #[test]
    fn rejects_malformed_hashes() {
        let most = RegionHash([u64::MAX; 2]);
        let text = alloc::format!("{most}");
        assert_eq!(RegionHash::parse(&text), Some(most));
        let too_much = text.replace(|digit: char| digit.is_ascii_alphanumeric(), "z");
        for wrong in ["", "0", &text[1..], &too_much, &text.replace(&text[..1], "-")] {
            assert_eq!(RegionHash::parse(wrong), None, "{wrong}");
        }
        assert_eq!(RegionHash::parse(&alloc::format!("{text}0")), None);
    }

    proptest! {
        #[test]
        fn parses_displayed_hashes(first: u64, second: u64) {
            let hash = RegionHash([first, second]);
            let text = alloc::format!("{hash}");
            prop_assert!(text.len() == 22 && text.bytes().all(|digit| digit.is_ascii_alphanumeric()));
            prop_assert_eq!(RegionHash::parse(&text), Some(hash));
        }

        #[test]
        fn hash_does_not_depend_on_write_sizes(
            pieces in vec("[a-z]{0,100}", 0..12),
        ) {
            let all = pieces.concat();
            let mut hashes = Vec::new();
            let mut by = |write: &dyn Fn(&mut Writer<'_>)| {
                written(|writer| writer.region(|writer| write(writer), |region| hashes.push(region.hash)));
            };
            by(&|writer| writer.text(&all));
            by(&|writer| pieces.iter().for_each(|piece| writer.text(piece)));
            by(&|writer| all.chars().for_each(|letter| writer.text(letter.encode_utf8(&mut [0; 4]))));
            let expected = hash(all.as_bytes());
            prop_assert_eq!(hashes, [expected; 3]);
        }

        #[test]
        fn hash_changes_with_any_byte(
            bytes in vec(any::<u8>(), 0..200), place: Index, other in 1_u8..=255,
        ) {
            let own = hash(&bytes);
            let mut longer = bytes.clone();
            longer.push(0);
            prop_assert_ne!(hash(&longer), own);
            if !bytes.is_empty() {
                let mut changed = bytes.clone();
                changed[place.index(bytes.len())] ^= other;
                prop_assert_ne!(hash(&changed), own);
                let mut turned = bytes.clone();
                turned.rotate_left(8 % bytes.len());
                prop_assert!(turned == bytes || hash(&turned) != own, "words in another order");
            }
        }
    }
}
