//! Decides how a part of a page is marked that a browser is to keep as it is at the server: two comments around it, of
//! which the second says which bytes these are.

use core::fmt;
use core::hash::Hasher as _;

use siphasher::sip128::{Hasher128 as _, SipHasher13};

use crate::writer::Writer;

/// Which regions a writer has marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Regions {
    /// None, and none are: nobody could follow them.
    #[default]
    Unmarked,
    /// So many.
    Marked(u32),
    /// So many, and it is in the last of them, which takes what is within it along.
    Within(u32),
}

/// A region that was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region<'w> {
    /// Its place among those of the page, from 0.
    pub number: u32,
    /// What tells its bytes from others, by the key of the writer.
    pub hash: RegionHash,
    /// Its bytes, without the marks.
    pub markup: &'w [u8],
}

/// The secret by which regions are hashed. Without it nobody finds two contents of one hash, so a client who chooses what a
/// page shows cannot have others keep what they saw before.
#[derive(Clone, Copy, Default)]
pub struct RegionKey([u8; 16]);

/// What tells the bytes of a region from others: SipHash-1-3 of 128 bits (Aumasson and Bernstein 2012) under a [`RegionKey`].
///
/// As text it has 22 digits, 0 to 9, A to Z and a to z, 11 for each half: a browser names 256 of them in one address of
/// at most 8 KiB, and none of them ends a comment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionHash([u64; 2]);

impl RegionKey {
    /// The key of these bytes, which nobody should be able to foresee.
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

    /// Reads what [`Display`](fmt::Display) writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (first, second) = text.as_bytes().split_at_checked(HALF)?;
        Some(Self([half_of(first)?, half_of(second)?]))
    }

    fn digits(self) -> [u8; 2 * HALF] {
        let mut digits = [b'0'; 2 * HALF];
        for (place, mut rest) in self.0.into_iter().enumerate() {
            for digit in digits[place * HALF..][..HALF].iter_mut().rev() {
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

/// The value of half a hash, which has as many digits as it should.
fn half_of(digits: &[u8]) -> Option<u64> {
    if digits.len() != HALF {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, digit| {
        let digit = DIGITS.iter().position(|known| known == digit)?;
        value.checked_mul(BASE)?.checked_add(digit as u64)
    })
}

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE: u64 = DIGITS.len() as u64;
/// Digits of 64 bits.
const HALF: usize = 11;

/// The number of a mark around nothing, which says for whom a page was made. No region has it.
pub const MADE_FOR: u32 = 999;

/// A page has no more of them that are marked: a browser names all that it shows in one address.
const MOST: u32 = 256;

impl Writer<'_> {
    /// Has [regions](Self::region) marked from here on, with hashes by this key. A page for readers of XML has none.
    #[must_use]
    pub fn marking_regions(mut self, key: &RegionKey) -> Self {
        (self.regions, self.region_key) = (Regions::Marked(0), *key);
        self
    }

    /// Has the first of them stand behind a mark with this word, `<!--live 999--><!--/live 999 0123456789abcdef-->`: for
    /// whom the page is made. A browser tells it as it tells the hashes of regions, but no patch changes it.
    #[must_use]
    pub fn made_for(mut self, word: u64) -> Self {
        self.made_for = Some(word);
        self
    }

    /// Writes a part of a page with marks around it, `<!--live 0-->` and `<!--/live 0 HASH-->`, and lets
    /// `look` see it: all of it is there then, and leaves in no pieces before. Where none are marked, within another
    /// region, and behind the 256th of a page, it is merely written.
    pub fn region(&mut self, write: impl FnOnce(&mut Self), look: impl FnOnce(Region<'_>)) {
        let number = match self.regions {
            Regions::Marked(number) if !self.is_in_xml() && number < MOST => number,
            _ => return write(self),
        };
        if let Some(word) = self.made_for.take() {
            self.begin_mark(MADE_FOR);
            self.end_mark(MADE_FOR, &digits(word));
        }
        self.begin_mark(number);
        self.regions = Regions::Within(number);
        let (kept, key) = (self.keep(), self.region_key);
        write(self);
        let markup = self.kept(&kept);
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

/// As it stands in its mark: sixteen digits.
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
        let mut writer = Writer::new(&mut out).marking_regions(&KEY);
        write(&mut writer);
        drop(writer);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_region_stands_between_marks_and_its_bytes_have_a_hash() {
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
    fn the_first_region_stands_behind_the_mark_that_says_for_whom_a_page_is_made() {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out).marking_regions(&KEY).made_for(0xabc);
        writer.region(|writer| writer.text("a"), |_| {});
        writer.region(|writer| writer.text("b"), |_| {});
        drop(writer);
        let page = String::from_utf8(out).unwrap();
        let mark = "<!--live 999--><!--/live 999 0000000000000abc-->";
        assert!(page.starts_with(&alloc::format!("{mark}<!--live 0-->a")), "{page}");
        assert_eq!(page.matches("999").count(), 2);
    }

    #[test]
    fn a_region_within_another_is_a_part_of_it() {
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
    fn nothing_is_marked_unless_somebody_can_follow_it() {
        let mut out = Vec::new();
        Writer::new(&mut out).region(|writer| writer.text("a"), |_| panic!("seen"));
        let in_xml = Writer::new(&mut out).marking_regions(&KEY).in_xml();
        { in_xml }.region(|writer| writer.text("b"), |_| panic!("seen"));
        assert_eq!(out, b"ab");
    }

    #[test]
    fn a_region_is_whole_when_it_is_seen_and_leaves_behind_that() {
        let (mut out, mut left) = (Vec::new(), Vec::new());
        let mut spill = |out: &mut Vec<u8>| left.append(out);
        let mut writer = Writer::with_spill(&mut out, 8, &mut spill).marking_regions(&KEY);
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
    fn a_region_behind_a_spill_that_panicked_harms_nobody() {
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
        let mut writer = Writer::with_spill(&mut out, 1, &mut spill).marking_regions(&KEY);
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
    fn another_key_gives_another_hash() {
        let other = RegionKey::new([8; 16]);
        for content in ["", "a", "hello, bine"] {
            let hashes = [&KEY, &other].map(|key| RegionHash::of(content.as_bytes(), key));
            // Neither half stays.
            assert!(hashes[0].0.iter().zip(hashes[1].0).all(|(one, other)| *one != other));
        }
    }

    #[test]
    fn a_hash_is_siphash_1_3_of_128_bits() {
        let key = RegionKey::new(core::array::from_fn(|place| place as u8));
        // Worked out by another program.
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
    fn what_is_no_hash_is_not_read_as_one() {
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
        fn a_hash_comes_back_from_its_text(first: u64, second: u64) {
            let hash = RegionHash([first, second]);
            let text = alloc::format!("{hash}");
            prop_assert!(text.len() == 22 && text.bytes().all(|digit| digit.is_ascii_alphanumeric()));
            prop_assert_eq!(RegionHash::parse(&text), Some(hash));
        }

        #[test]
        fn a_hash_is_that_of_the_bytes_in_whatever_pieces_they_come(
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
        fn a_word_more_or_less_anywhere_is_another_content(
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
