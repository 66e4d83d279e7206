//! Password hashes: argon2id (RFC 9106) in the PHC string format.

use std::fmt;

use argon2::{Algorithm, Argon2, Block, Params, Version};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::base64;

/// How much memory and time one hash of a password costs. The default follows the OWASP password
/// storage cheat sheet: argon2id with 19 MiB, two passes and one lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HashingCost {
    /// KiB of memory.
    memory: u32,
    /// Passes over the memory.
    passes: u32,
}

/// A parsed PHC string, such as `$argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>`.
struct PasswordHash {
    params: Params,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

/// The outcome of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Verification {
    pub(super) is_right: bool,
    /// Whether the password must be hashed again, because the cost has changed.
    pub(super) is_outdated: bool,
}

/// The memory of one thread, which it uses for each hash.
#[derive(Default)]
pub(super) struct HashMemory(Vec<Block>);

const SALT: usize = 16;
const HASH: usize = 32;
/// The most memory of a hash that is verified, in KiB: a hash from elsewhere must not exhaust the
/// memory.
const MAX_MEMORY: u32 = 1 << 20;
const MAX_PASSES: u32 = 100;

impl HashingCost {
    /// Sets the cost: KiB of memory, from 8 to a million, and passes over it, from 1 to 100. Other
    /// values are limited to these ranges.
    ///
    /// Less than the default weakens all passwords: use it in tests only.
    pub const fn new(memory_in_kib: u32, passes: u32) -> Self {
        let memory = match memory_in_kib {
            ..8 => 8,
            MAX_MEMORY.. => MAX_MEMORY,
            kib => kib,
        };
        let passes = match passes {
            0 => 1,
            MAX_PASSES.. => MAX_PASSES,
            passes => passes,
        };
        Self { memory, passes }
    }

    fn params(self) -> Params {
        Params::new(self.memory, self.passes, 1, Some(HASH)).expect("the constructor limits both")
    }
}

impl Default for HashingCost {
    fn default() -> Self {
        Self::new(19 * 1024, 2)
    }
}

/// Hashes a password with a new salt.
pub(super) fn hash(password: &str, cost: HashingCost, memory: &mut HashMemory) -> String {
    let mut salt = vec![0; SALT];
    // Without randomness no password can be stored.
    SystemRandom::new().fill(&mut salt).expect("the system has random bytes");
    let params = cost.params();
    let hash = memory.hash(password, &params, &salt, HASH);
    PasswordHash { params, salt, hash }.to_string()
}

/// Compares a password with a stored hash. A text that is no hash matches no password.
pub(super) fn verify(
    password: &str,
    stored: &str,
    cost: HashingCost,
    memory: &mut HashMemory,
) -> Verification {
    let Some(stored) = PasswordHash::parse(stored) else {
        return Verification { is_right: false, is_outdated: false };
    };
    let PasswordHash { params, salt, hash } = &stored;
    let found = memory.hash(password, params, salt, hash.len());
    Verification {
        is_right: are_equal(&found, hash),
        is_outdated: (params.m_cost(), params.t_cost(), params.p_cost())
            != (cost.memory, cost.passes, 1),
    }
}

/// Compares two texts of the same length in a time that does not depend on their content.
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let difference = one.iter().zip(other).fold(0, |sum, (one, other)| sum | (one ^ other));
    one.len() == other.len() && std::hint::black_box(difference) == 0
}

/// A hash with this cost that no password matches, for work that takes as long as with a real one.
pub(super) fn decoy(cost: HashingCost) -> String {
    let mut bytes = [0; SALT + HASH];
    SystemRandom::new().fill(&mut bytes).expect("the system has random bytes");
    let (salt, hash) = bytes.split_at(SALT);
    PasswordHash { params: cost.params(), salt: salt.to_vec(), hash: hash.to_vec() }.to_string()
}

/// Whether the text is a hash that [`verify`] can compare.
pub(super) fn is_hash(text: &str) -> bool {
    PasswordHash::parse(text).is_some()
}

impl HashMemory {
    fn hash(&mut self, password: &str, params: &Params, salt: &[u8], length: usize) -> Vec<u8> {
        let blocks = params.block_count();
        if self.0.len() < blocks {
            self.0.resize(blocks, Block::default());
        }
        let mut out = vec![0; length];
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone());
        let memory = &mut self.0[..blocks];
        let hashed =
            argon2.hash_password_into_with_memory(password.as_bytes(), salt, &mut out, memory);
        hashed.expect("the lengths were checked, and a password has less than 4 GiB");
        out
    }
}

impl PasswordHash {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix("$argon2id$v=19$")?.split('$');
        let (params, salt, hash) = (parts.next()?, parts.next()?, parts.next()?);
        // The format has neither padding nor line breaks, which the decoder accepts.
        let is_plain =
            |text: &str| !text.contains(|letter: char| letter == '=' || letter.is_whitespace());
        if parts.next().is_some() || !is_plain(salt) || !is_plain(hash) {
            return None;
        }
        let mut costs = params.split(',');
        let mut cost = |name: &str| -> Option<u32> {
            costs.next()?.strip_prefix(name)?.strip_prefix('=')?.parse().ok()
        };
        let (memory, passes, lanes) = (cost("m")?, cost("t")?, cost("p")?);
        let (salt, hash) = (base64::plain(salt)?, base64::plain(hash)?);
        let is_bounded = memory <= MAX_MEMORY && passes <= MAX_PASSES && lanes <= 64;
        if costs.next().is_some() || !is_bounded {
            return None;
        }
        if !(8..=64).contains(&salt.len()) || !(16..=64).contains(&hash.len()) {
            return None;
        }
        let params = Params::new(memory, passes, lanes, Some(hash.len())).ok()?;
        Some(Self { params, salt, hash })
    }
}

impl fmt::Display for PasswordHash {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { params, salt, hash } = self;
        let (memory, passes, lanes) = (params.m_cost(), params.t_cost(), params.p_cost());
        let text = |bytes: &[u8]| base64::written_padded(bytes).trim_end_matches('=').to_owned();
        let (salt, hash) = (text(salt), text(hash));
        write!(to, "$argon2id$v=19$m={memory},t={passes},p={lanes}${salt}${hash}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: HashingCost = HashingCost::new(8, 1);

    fn check(password: &str, stored: &str) -> Verification {
        verify(password, stored, CHEAP, &mut HashMemory::default())
    }

    /// The reference implementation (its tool `argon2`, with `-id -t 2 -k 256 -p 1 -e`) wrote it.
    const REFERENCE: &str =
        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";

    #[test]
    fn verifies_hash_of_reference_implementation() {
        assert_eq!(
            check("password", REFERENCE),
            Verification { is_right: true, is_outdated: true }
        );
        assert!(!check("Password", REFERENCE).is_right);
    }

    #[test]
    fn hashes_differ_and_match_their_password_only() {
        let mut memory = HashMemory::default();
        let one = hash("correct horse", CHEAP, &mut memory);
        let other = hash("correct horse", CHEAP, &mut memory);
        assert_ne!(one, other);
        assert!(one.starts_with("$argon2id$v=19$m=8,t=1,p=1$"), "{one}");
        assert_eq!(
            check("correct horse", &one),
            Verification { is_right: true, is_outdated: false }
        );
        assert!(!check("correct horsf", &one).is_right && !check("", &one).is_right);
        assert!(!check("correct horse", &decoy(CHEAP)).is_right);
        let dearer = HashingCost::new(16, 1);
        assert!(verify("correct horse", &one, dearer, &mut memory).is_outdated);
    }

    #[test]
    fn default_cost_is_that_of_owasp() {
        assert!(decoy(HashingCost::default()).starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
    }

    #[test]
    fn rejects_texts_that_are_no_hashes() {
        for wrong in [
            "",
            "secret",
            "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$v=19$m=99999999,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$v=19$m=256,t=2$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65",
            "$argon2id$v=19$m=256,t=2,p=1$$",
            "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4$",
        ] {
            assert!(!is_hash(wrong) && !check("", wrong).is_right, "{wrong}");
        }
        assert!(is_hash(REFERENCE));
    }
}
