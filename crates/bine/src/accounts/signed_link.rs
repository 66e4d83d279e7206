//! Signed tokens: links in mails, invitations, and the cookie of a known device.
//!
//! A token is bytes in base64: version, purpose, key name, expiry, row of the account, extra
//! bytes, and an HMAC of SHA-256 over these and over a context that the token does not contain.

use ring::hmac;

use crate::base64;
use crate::sessions::keys::{KeyName, Keys, SessionKey};
use crate::store::RowId;

/// The purpose of a token. A token of one purpose is never valid for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LinkPurpose {
    /// Sets a new password. The context is the current hash of the password, so that the link ends
    /// with it.
    Reset = 1,
    /// Confirms an e-mail address, which is the extra.
    Confirm = 2,
    /// Permits one sign-up; the extra is its number.
    Invite = 3,
    /// Names a device on which a user has logged in; the extra is its number.
    Device = 4,
}

/// The content of a token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SignedLink {
    pub(super) purpose: LinkPurpose,
    pub(super) account: RowId,
    /// When it expires, in seconds since 1970.
    pub(super) expires: u64,
    pub(super) extra: Vec<u8>,
}

/// A token that was parsed and not yet verified.
pub(super) struct UnverifiedLink {
    link: SignedLink,
    key: KeyName,
    signed: Vec<u8>,
    signature: [u8; SIGNATURE],
}

const VERSION: u8 = 1;
/// Version, purpose, key name, expiry, row.
const HEADER: usize = 1 + 1 + size_of::<KeyName>() + 8 + 16;
const SIGNATURE: usize = 32;
/// The most extra bytes: an e-mail address.
const MAX_EXTRA: usize = 254;
/// The most characters of a token.
const MAX_TEXT: usize = (HEADER + MAX_EXTRA + SIGNATURE).div_ceil(3) * 4;
const LABEL: &str = "bine account link 1";

impl SignedLink {
    /// Signs the token, bound to `context`.
    pub(super) fn text(&self, keys: &Keys, now: u64, context: &[u8]) -> String {
        keys.newest(now, |key| {
            let mut bytes = Vec::with_capacity(HEADER + self.extra.len() + SIGNATURE);
            bytes.extend_from_slice(&[VERSION, self.purpose as u8]);
            bytes.extend_from_slice(&key.name);
            bytes.extend_from_slice(&self.expires.to_be_bytes());
            bytes.extend_from_slice(&self.account.number().to_be_bytes());
            bytes.extend_from_slice(&self.extra);
            let signature = hmac::sign(&key.derive(LABEL), &message(&bytes, context));
            bytes.extend_from_slice(signature.as_ref());
            base64::written(&bytes)
        })
    }

    /// Parses a token of this purpose. Its account and its extra are not to be trusted before
    /// [`verify`](UnverifiedLink::verify).
    pub(super) fn parse(text: &str, purpose: LinkPurpose) -> Option<UnverifiedLink> {
        if text.len() > MAX_TEXT {
            return None;
        }
        let mut signed = base64::url(text)?;
        let signature = *signed.last_chunk::<SIGNATURE>()?;
        signed.truncate(signed.len() - SIGNATURE);
        let (header, extra) = signed.split_first_chunk::<HEADER>()?;
        let [VERSION, kind, rest @ ..] = header else { return None };
        let (key, rest) = rest.split_first_chunk()?;
        let (expires, account) = rest.split_first_chunk()?;
        if *kind != purpose as u8 {
            return None;
        }
        let link = Self {
            purpose,
            account: RowId::from_number(u128::from_be_bytes(*account.first_chunk()?)),
            expires: u64::from_be_bytes(*expires),
            extra: extra.to_vec(),
        };
        let key = *key;
        Some(UnverifiedLink { link, key, signed, signature })
    }
}

impl UnverifiedLink {
    /// The account that the token names, to find its context.
    pub(super) const fn account(&self) -> RowId {
        self.link.account
    }

    /// Returns the content if this program has signed it for this context and it has not expired.
    pub(super) fn verify(self, keys: &Keys, now: u64, context: &[u8]) -> Option<SignedLink> {
        let message = message(&self.signed, context);
        // Compares in constant time.
        let check =
            |key: &SessionKey| hmac::verify(&key.derive(LABEL), &message, &self.signature).ok();
        keys.find(self.key, now, check)?;
        (now < self.link.expires).then_some(self.link)
    }
}

/// The signed bytes and their context. The length of the first keeps them apart.
fn message(signed: &[u8], context: &[u8]) -> Vec<u8> {
    [&(signed.len() as u64).to_be_bytes(), signed, context].concat()
}

/// Asserts that no text is a valid token, unless it is the one that was signed.
#[doc(hidden)]
pub fn check_link(text: &str) {
    let keys = Keys::in_memory(0, 1000);
    let link = SignedLink {
        purpose: LinkPurpose::Reset,
        account: RowId::from_number(7),
        expires: 900,
        extra: b"ann@example.org".to_vec(),
    };
    let open =
        |text: &str| SignedLink::parse(text, LinkPurpose::Reset)?.verify(&keys, 0, b"a hash");
    let own = link.text(&keys, 0, b"a hash");
    assert_eq!(open(&own), Some(link));
    assert_eq!(open(text), None);
    // Mixes characters of the text into a valid token.
    let mut mixed = own.clone().into_bytes();
    for (place, letter) in mixed.iter_mut().zip(text.bytes()) {
        if letter != 0 && letter.is_ascii() {
            *place = letter;
        }
    }
    let mixed = String::from_utf8_lossy(&mixed);
    assert_eq!(open(&mixed).is_some(), mixed == own);
    let cut = own.get(text.len() % own.len()..).unwrap_or_default();
    assert!(open(cut).is_none() || cut == own);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn link(purpose: LinkPurpose) -> SignedLink {
        let account = RowId::from_number(12345);
        SignedLink { purpose, account, expires: 100, extra: vec![1, 2, 3] }
    }

    fn open(keys: &Keys, text: &str, purpose: LinkPurpose, now: u64, context: &[u8]) -> bool {
        SignedLink::parse(text, purpose)
            .is_some_and(|link| link.verify(keys, now, context).is_some())
    }

    #[test]
    fn token_is_valid_for_its_purpose_context_time_and_program_only() {
        let keys = Keys::in_memory(0, 1000);
        let text = link(LinkPurpose::Reset).text(&keys, 0, b"hash");
        assert!(open(&keys, &text, LinkPurpose::Reset, 99, b"hash"));
        assert!(!open(&keys, &text, LinkPurpose::Reset, 100, b"hash"));
        assert!(!open(&keys, &text, LinkPurpose::Reset, 0, b"other"));
        for other in [LinkPurpose::Confirm, LinkPurpose::Invite, LinkPurpose::Device] {
            assert!(!open(&keys, &text, other, 0, b"hash"), "{other:?}");
        }
        assert!(!open(&Keys::in_memory(0, 1000), &text, LinkPurpose::Reset, 0, b"hash"));
    }

    #[test]
    fn rejects_token_with_any_changed_bit() {
        let keys = Keys::in_memory(0, 1000);
        let own = base64::url(&link(LinkPurpose::Confirm).text(&keys, 0, b"")).unwrap();
        for bit in 0..own.len() * 8 {
            let mut changed = own.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let text = base64::written(&changed);
            assert!(!open(&keys, &text, LinkPurpose::Confirm, 0, b""), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn rejects_arbitrary_text_as_token(text in "\\PC{0,200}", letters in "[A-Za-z0-9_-]{80,120}") {
            check_link(&text);
            check_link(&letters);
        }
    }
}
