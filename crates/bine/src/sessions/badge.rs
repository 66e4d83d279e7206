//! Decides what the cookie of a session holds, byte by byte, and when it is believed (docs/formats/session.md).

use ring::hmac;

use super::keys::{Key, Keys, random};
use crate::base64;

/// What a visitor's cookie says. Only this program can have said it, because it is signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Badge {
    /// Known to this visitor and the program alone.
    pub(super) id: [u8; 16],
    /// There is a row for it: without one the session has ended.
    pub(super) is_kept: bool,
    /// Of the visitor's made-up name.
    pub(super) seed: u16,
    /// When the session began, in seconds since 1970.
    pub(super) made: u64,
    /// When the cookie was made, by the same clock.
    pub(super) seen: u64,
}

const VERSION: u8 = 1;
/// What is signed: version, kind, seed, key's name, id, made, seen.
const SIGNED: usize = 40;
const SIGNATURE: usize = 32;
const WHOLE: usize = SIGNED + SIGNATURE;
/// Its length as text. Three bytes are four letters with nothing left over, so there is one way to write it.
pub(super) const LETTERS: usize = WHOLE / 3 * 4;

impl Badge {
    /// For a visitor who was never here.
    pub(super) fn new(now: u64) -> Self {
        let seed = u16::from_be_bytes(random()) & 0xfff;
        Self { id: random(), is_kept: false, seed, made: now, seen: now }
    }

    /// As the cookie's value, signed by the key whose turn it is.
    pub(super) fn text(&self, keys: &Keys, now: u64) -> String {
        keys.newest(now, |key| {
            let mut bytes = [0; WHOLE];
            bytes[..2].copy_from_slice(&[VERSION, u8::from(self.is_kept)]);
            bytes[2..4].copy_from_slice(&self.seed.to_be_bytes());
            bytes[4..8].copy_from_slice(&key.name);
            bytes[8..24].copy_from_slice(&self.id);
            bytes[24..32].copy_from_slice(&self.made.to_be_bytes());
            bytes[32..40].copy_from_slice(&self.seen.to_be_bytes());
            let signature = hmac::sign(&key.hmac, &bytes[..SIGNED]);
            bytes[SIGNED..].copy_from_slice(signature.as_ref());
            base64::written(&bytes)
        })
    }

    /// What a cookie's value says, if this program has said it. Whether it is too old is not asked here.
    pub(super) fn read(text: &str, keys: &Keys, now: u64) -> Option<Self> {
        if text.len() != LETTERS {
            return None;
        }
        let bytes: [u8; WHOLE] = base64::url(text)?.try_into().ok()?;
        let (signed, signature) = bytes.split_first_chunk::<SIGNED>()?;
        let name = *signed[4..].first_chunk()?;
        // Compares in constant time.
        let verify = |key: &Key| hmac::verify(&key.hmac, signed, signature).ok();
        keys.named(name, now, verify)?;
        let is_kept = match signed[..2] {
            [VERSION, 0] => false,
            [VERSION, 1] => true,
            _ => return None,
        };
        Some(Self {
            id: *signed[8..].first_chunk()?,
            is_kept,
            seed: u16::from_be_bytes(*signed[2..].first_chunk()?),
            made: u64::from_be_bytes(*signed[24..].first_chunk()?),
            seen: u64::from_be_bytes(*signed[32..].first_chunk()?),
        })
    }
}

/// What must hold of any text as a cookie's value: it is never believed, unless it is the one that was given out.
#[doc(hidden)]
pub fn check_session(text: &str) {
    let keys = Keys::passing(0, 1000);
    let badge = Badge { id: [9; 16], is_kept: true, seed: 77, made: 5, seen: 6 };
    let own = badge.text(&keys, 0);
    assert_eq!(Badge::read(&own, &keys, 0), Some(badge));
    assert_eq!(Badge::read(text, &keys, 0), None);
    // Letters of the text in the place of those of a good one.
    let mut mixed = own.clone().into_bytes();
    for (place, letter) in text.bytes().take(LETTERS).enumerate() {
        if letter != 0 && letter.is_ascii() {
            mixed[place] = letter;
        }
    }
    let mixed = String::from_utf8_lossy(&mixed);
    assert_eq!(Badge::read(&mixed, &keys, 0).is_some(), mixed == own);
    let cut = own.get(text.len() % LETTERS..).unwrap_or_default();
    assert!(Badge::read(cut, &keys, 0).is_none() || cut == own);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_badge_is_read_by_the_keys_that_signed_it_alone() {
        let (keys, others) = (Keys::passing(0, 9), Keys::passing(0, 9));
        let badge = Badge::new(3);
        assert!(badge.seed < 4096 && !badge.is_kept);
        let text = badge.text(&keys, 3);
        assert_eq!(text.len(), 96);
        assert_eq!(Badge::read(&text, &keys, 3), Some(badge));
        assert_eq!(Badge::read(&text, &others, 3), None);
    }

    #[test]
    fn two_new_ones_are_not_the_same() {
        assert_ne!(Badge::new(0).id, Badge::new(0).id);
    }

    #[test]
    fn no_single_bit_may_change() {
        let keys = Keys::passing(0, 9);
        let own = base64::url(&Badge::new(0).text(&keys, 0)).unwrap();
        for bit in 0..WHOLE * 8 {
            let mut changed = own.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Badge::read(&base64::written(&changed), &keys, 0), None, "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_no_cookie_of_ours_is_as_none(text in "\\PC{0,120}", letters in "[A-Za-z0-9_-]{96}") {
            check_session(&text);
            check_session(&letters);
        }

        #[test]
        fn what_is_said_is_read(id: [u8; 16], is_kept: bool, seed: u16, made: u64, seen: u64) {
            let keys = Keys::passing(0, 9);
            let badge = Badge { id, is_kept, seed, made, seen };
            prop_assert_eq!(Badge::read(&badge.text(&keys, 0), &keys, 0), Some(badge));
        }
    }
}
