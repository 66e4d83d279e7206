//! The keys that are derived from the secret of a session key: for sealed texts, and for tickets.

use ring::aead::{AES_256_GCM, LessSafeKey, NONCE_LEN, UnboundKey};
use ring::hmac;

/// What one key of sessions seals with: two keys that are made of it.
pub(super) struct Sealing {
    pub(super) cipher: LessSafeKey,
    nonces: hmac::Key,
}

/// For what, and for whose session.
pub(super) type For<'f> = (&'f str, &'f [u8; 16]);

impl Sealing {
    /// Nobody who knows one of a secret's keys knows another.
    pub(super) fn of(secret: &hmac::Key) -> Self {
        let derive = |label: &str| hmac::sign(secret, label.as_bytes());
        let cipher = derive("bine sealed text 1: cipher");
        let cipher = UnboundKey::new(&AES_256_GCM, cipher.as_ref());
        let nonces = derive("bine sealed text 1: nonces");
        Self {
            cipher: LessSafeKey::new(cipher.expect("an HMAC of SHA-256 has 32 bytes")),
            nonces: hmac::Key::new(hmac::HMAC_SHA256, nonces.as_ref()),
        }
    }

    /// Made of all that is sealed, so that none is used for two contents, and a page that is made again is the same.
    pub(super) fn nonce(&self, whose: For<'_>, content: &[u8]) -> [u8; NONCE_LEN] {
        let own = own(whose);
        let mut context = hmac::Context::with_key(&self.nonces);
        context.update(&(own.len() as u64).to_be_bytes());
        context.update(&own);
        context.update(content);
        let signed = context.sign();
        *signed.as_ref().first_chunk().expect("an HMAC of SHA-256 has 32 bytes")
    }
}

/// What is not in the text, and must be the same where it is opened.
pub(super) fn own((purpose, session): For<'_>) -> Vec<u8> {
    [session, purpose.as_bytes()].concat()
}

/// The key that signs tickets, made of one that signs sessions: nobody who knows the one knows the other.
pub(super) fn ticket_key(secret: &hmac::Key) -> hmac::Key {
    let derived = hmac::sign(secret, b"bine ticket 1");
    hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())
}
