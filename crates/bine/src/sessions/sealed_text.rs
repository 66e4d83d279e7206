//! Sealed texts: encrypts and authenticates text in pages for one session (docs/formats/sealed.md).

use ring::aead::{Aad, NONCE_LEN, Nonce};

use super::derived_keys::{SealContext, associated_data};
use super::keys::{KeyName, Keys};
use crate::base64;

const VERSION: u8 = 1;
const TAG: usize = 16;
/// Bytes before the sealed content: version, key name, nonce.
const HEADER: usize = 1 + size_of::<KeyName>() + NONCE_LEN;

pub(super) fn seal(keys: &Keys, now: u64, context: SealContext<'_>, content: &[u8]) -> String {
    keys.newest(now, |key| {
        let nonce = key.sealing.nonce(context, content);
        let mut bytes = Vec::with_capacity(HEADER + content.len() + TAG);
        bytes.push(VERSION);
        bytes.extend_from_slice(&key.name);
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(content);
        let (header, content) = bytes.split_at_mut(HEADER);
        let (nonce, own) =
            (Nonce::assume_unique_for_key(nonce), Aad::from(associated_data(context)));
        // It fails only for more than 64 GiB.
        let tag = key.sealing.cipher.seal_in_place_separate_tag(nonce, own, content);
        debug_assert_eq!(header.len(), HEADER);
        bytes.extend_from_slice(tag.expect("a few kilobytes can be sealed").as_ref());
        base64::written(&bytes)
    })
}

pub(super) fn open(keys: &Keys, now: u64, context: SealContext<'_>, text: &str) -> Option<Vec<u8>> {
    let mut bytes = base64::url(text)?;
    let (before, sealed) = bytes.split_first_chunk_mut::<HEADER>()?;
    let [version, rest @ ..] = *before;
    let (name, rest) = rest.split_first_chunk()?;
    let nonce = *rest.first_chunk()?;
    if version != VERSION {
        return None;
    }
    keys.find(*name, now, |key| {
        let (own, unique) =
            (Aad::from(associated_data(context)), Nonce::assume_unique_for_key(nonce));
        let content = key.sealing.cipher.open_in_place(unique, own, sealed).ok()?;
        // A text is valid for one key only: its nonce must be the one that this key derives.
        (key.sealing.nonce(context, content) == nonce).then(|| content.to_vec())
    })
}

/// Asserts that no text is opened, unless it is the one that was sealed.
#[doc(hidden)]
pub fn check_sealed(text: &str) {
    let keys = Keys::in_memory(0, 1000);
    let context = ("remove", &[9; 16]);
    let own = seal(&keys, 0, context, b"/board\n{\"id\":7}");
    assert_eq!(open(&keys, 0, context, &own).as_deref(), Some(&b"/board\n{\"id\":7}"[..]));
    assert_eq!(open(&keys, 0, context, text), None);
    // Mixes characters of the text into a valid one.
    let mut mixed = own.clone().into_bytes();
    for (place, letter) in mixed.iter_mut().zip(text.bytes()) {
        if letter != 0 && letter.is_ascii() {
            *place = letter;
        }
    }
    let mixed = String::from_utf8_lossy(&mixed);
    assert_eq!(open(&keys, 0, context, &mixed).is_some(), mixed == own);
    let cut = own.get(text.len() % own.len()..).unwrap_or_default();
    assert!(open(&keys, 0, context, cut).is_none() || cut == own);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWN: SealContext<'static> = ("remove", &[7; 16]);

    #[test]
    fn sealing_is_deterministic_and_injective() {
        let keys = Keys::in_memory(0, 9);
        let text = seal(&keys, 0, OWN, b"/\n{}");
        assert_eq!(seal(&keys, 5, OWN, b"/\n{}"), text);
        assert_ne!(seal(&keys, 0, OWN, b"/\n[]"), text);
        assert_ne!(seal(&keys, 0, ("remove", &[8; 16]), b"/\n{}"), text);
        assert_ne!(seal(&Keys::in_memory(0, 9), 0, OWN, b"/\n{}"), text);
    }

    #[test]
    fn rejects_sealed_text_of_other_session_purpose_or_program() {
        let keys = Keys::in_memory(0, 9);
        let text = seal(&keys, 0, OWN, b"content");
        assert_eq!(open(&keys, 0, OWN, &text).as_deref(), Some(&b"content"[..]));
        for other in [("remove", &[8; 16]), ("removes", OWN.1), ("", OWN.1)] {
            assert_eq!(open(&keys, 0, other, &text), None, "{other:?}");
        }
        assert_eq!(open(&Keys::in_memory(0, 9), 0, OWN, &text), None);
        // Its key has expired.
        assert_eq!(open(&keys, 31 * 86_400, OWN, &text), None);
    }

    #[test]
    fn rejects_changed_or_truncated_sealed_text() {
        let keys = Keys::in_memory(0, 9);
        let text = seal(&keys, 0, OWN, b"content");
        let own = base64::url(&text).unwrap();
        for bit in 0..own.len() * 8 {
            let mut changed = own.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&keys, 0, OWN, &base64::written(&changed)), None, "bit {bit}");
        }
        for length in 0..own.len() {
            assert_eq!(open(&keys, 0, OWN, &base64::written(&own[..length])), None);
        }
    }

    proptest! {
        #[test]
        fn rejects_arbitrary_text_as_sealed(
            text in "\\PC{0,120}",
            letters in "[A-Za-z0-9_-]{40,80}",
        ) {
            check_sealed(&text);
            check_sealed(&letters);
        }

        #[test]
        fn sealed_text_round_trips(purpose in "\\PC{0,20}", session: [u8; 16], content: Vec<u8>) {
            let keys = Keys::in_memory(0, 9);
            let context = (&*purpose, &session);
            let text = seal(&keys, 0, context, &content);
            prop_assert_eq!(open(&keys, 0, context, &text), Some(content));
        }
    }
}
