//! Random tokens for programs: unguessable links, API keys, invitations.

use ring::rand::{SecureRandom as _, SystemRandom};

use crate::base64;

/// The random bytes of a token: 192 bits, which become 32 characters without padding.
const BYTES: usize = 24;

/// Creates an unguessable token: 32 letters, digits, `-` and `_`, from 192 random bits of the
/// operating system. A URL, a header field and a file name can contain it.
///
/// An [`Id`](crate::store::Id) is no secret: it contains its creation time, and pages and URLs show
/// it.
///
/// ```
/// let invitation = bine::random_token();
/// assert_eq!(invitation.len(), 32);
/// assert_ne!(invitation, bine::random_token());
/// ```
pub fn random_token() -> String {
    let mut bytes = [0; BYTES];
    // Without randomness no secret can be created.
    SystemRandom::new().fill(&mut bytes).expect("the system has random bytes");
    base64::written(&bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn tokens_differ_and_fit_into_urls() {
        let tokens: HashSet<String> = (0..1000).map(|_| random_token()).collect();
        assert_eq!(tokens.len(), 1000);
        let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        assert!(tokens.iter().all(|token| token.len() == 32 && token.bytes().all(is_safe)));
    }
}
