//! The keys that are derived from the secret of a session key: for sealed texts, and for tickets.

use ring::aead::{AES_256_GCM, LessSafeKey, NONCE_LEN, UnboundKey};
use ring::hmac;

/// The two keys for sealed texts that are derived from one session key.
pub(super) struct SealingKeys {
    pub(super) cipher: LessSafeKey,
    nonces: hmac::Key,
}

/// The purpose of a sealed text, and the session that it is for.
pub(super) type SealContext<'f> = (&'f str, &'f [u8; 16]);

impl SealingKeys {
    /// The keys are independent: a known key reveals neither the secret nor a different key.
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

    /// Derives the nonce from all that is sealed. Two contents never share a nonce, and a page that
    /// renders again is identical.
    pub(super) fn nonce(&self, context: SealContext<'_>, content: &[u8]) -> [u8; NONCE_LEN] {
        let own = associated_data(context);
        let mut context = hmac::Context::with_key(&self.nonces);
        context.update(&(own.len() as u64).to_be_bytes());
        context.update(&own);
        context.update(content);
        let signed = context.sign();
        *signed.as_ref().first_chunk().expect("an HMAC of SHA-256 has 32 bytes")
    }
}

/// The authenticated data, which the text does not contain and which must be equal when it is
/// opened.
pub(super) fn associated_data((purpose, session): SealContext<'_>) -> Vec<u8> {
    [session, purpose.as_bytes()].concat()
}

/// Derives the key that signs tickets. It does not reveal the key that signs sessions, or the
/// reverse.
pub(super) fn ticket_key(secret: &hmac::Key) -> hmac::Key {
    let derived = hmac::sign(secret, b"bine ticket 1");
    hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())
}
