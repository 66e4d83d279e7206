//! The session cookie: its bytes, its signature and its verification (docs/formats/session.md).

use ring::hmac;

use super::keys::{Keys, SessionKey, random};
use crate::base64;

/// The content of a session cookie. Its signature proves that this program wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SessionCookie {
    /// The session's id, known only to this visitor and the program.
    pub(super) id: [u8; 16],
    /// Whether there is a row: if it is missing, the session has ended.
    pub(super) is_kept: bool,
    /// The seed of the visitor's generated name.
    pub(super) seed: u16,
    /// When the session began, in seconds since 1970.
    pub(super) made: u64,
    /// When the cookie was written, in seconds since 1970.
    pub(super) seen: u64,
}

const VERSION: u8 = 1;
/// The signed part: version, kind, seed, key name, id, made, seen.
const SIGNED: usize = 40;
const SIGNATURE: usize = 32;
const LENGTH: usize = SIGNED + SIGNATURE;
/// Length as base64. The number of bytes is a multiple of three, so the text has only one valid
/// spelling.
pub(super) const TEXT_LENGTH: usize = LENGTH / 3 * 4;

impl SessionCookie {
    /// Creates a cookie for a new visitor.
    pub(super) fn new(now: u64) -> Self {
        let seed = u16::from_be_bytes(random()) & 0xfff;
        Self { id: random(), is_kept: false, seed, made: now, seen: now }
    }

    /// Writes the cookie's value, signed with the current key.
    pub(super) fn text(&self, keys: &Keys, now: u64) -> String {
        keys.newest(now, |key| {
            let mut bytes = [0; LENGTH];
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

    /// Parses a cookie's value and verifies its signature. It does not check the age.
    pub(super) fn read(text: &str, keys: &Keys, now: u64) -> Option<Self> {
        if text.len() != TEXT_LENGTH {
            return None;
        }
        let bytes: [u8; LENGTH] = base64::url(text)?.try_into().ok()?;
        let (signed, signature) = bytes.split_first_chunk::<SIGNED>()?;
        let name = *signed[4..].first_chunk()?;
        // Compares in constant time.
        let verify = |key: &SessionKey| hmac::verify(&key.hmac, signed, signature).ok();
        keys.find(name, now, verify)?;
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

/// Asserts that no text is accepted as a cookie, unless it is the cookie that was issued.
#[doc(hidden)]
pub fn check_session(text: &str) {
    let keys = Keys::in_memory(0, 1000);
    let cookie = SessionCookie { id: [9; 16], is_kept: true, seed: 77, made: 5, seen: 6 };
    let own = cookie.text(&keys, 0);
    assert_eq!(SessionCookie::read(&own, &keys, 0), Some(cookie));
    assert_eq!(SessionCookie::read(text, &keys, 0), None);
    // Mixes characters of the text into a valid cookie.
    let mut mixed = own.clone().into_bytes();
    for (place, letter) in text.bytes().take(TEXT_LENGTH).enumerate() {
        if letter != 0 && letter.is_ascii() {
            mixed[place] = letter;
        }
    }
    let mixed = String::from_utf8_lossy(&mixed);
    assert_eq!(SessionCookie::read(&mixed, &keys, 0).is_some(), mixed == own);
    let cut = own.get(text.len() % TEXT_LENGTH..).unwrap_or_default();
    assert!(SessionCookie::read(cut, &keys, 0).is_none() || cut == own);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn verifies_cookie_with_its_own_keys_only() {
        let (keys, others) = (Keys::in_memory(0, 9), Keys::in_memory(0, 9));
        let cookie = SessionCookie::new(3);
        assert!(cookie.seed < 4096 && !cookie.is_kept);
        let text = cookie.text(&keys, 3);
        assert_eq!(text.len(), 96);
        assert_eq!(SessionCookie::read(&text, &keys, 3), Some(cookie));
        assert_eq!(SessionCookie::read(&text, &others, 3), None);
    }

    #[test]
    fn new_cookies_have_distinct_ids() {
        assert_ne!(SessionCookie::new(0).id, SessionCookie::new(0).id);
    }

    #[test]
    fn rejects_cookie_with_any_changed_bit() {
        let keys = Keys::in_memory(0, 9);
        let own = base64::url(&SessionCookie::new(0).text(&keys, 0)).unwrap();
        for bit in 0..LENGTH * 8 {
            let mut changed = own.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                SessionCookie::read(&base64::written(&changed), &keys, 0),
                None,
                "bit {bit}"
            );
        }
    }

    proptest! {
        #[test]
        fn rejects_arbitrary_text_as_cookie(text in "\\PC{0,120}", letters in "[A-Za-z0-9_-]{96}") {
            check_session(&text);
            check_session(&letters);
        }

        #[test]
        fn cookie_round_trips(id: [u8; 16], is_kept: bool, seed: u16, made: u64, seen: u64) {
            let keys = Keys::in_memory(0, 9);
            let cookie = SessionCookie { id, is_kept, seed, made, seen };
            prop_assert_eq!(SessionCookie::read(&cookie.text(&keys, 0), &keys, 0), Some(cookie));
        }
    }
}
