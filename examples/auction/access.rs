//! Identifies users: by a password, and for half an hour by a token in their forms.
//!
//! The auction of `RUBiS` uses no cookies: users enter name and password for each action, and the
//! next form identifies them. It has a signed pass, which no client can forge. A real site would
//! use sessions.

use std::fmt::Write as _;

use bine::prelude::*;
use ring::hmac::{self, HMAC_SHA256};
use ring::rand::{SecureRandom, SystemRandom};

use crate::tables::User;

/// The lifetime of a pass, in seconds.
const PASS_LASTS: u64 = 30 * 60;

/// Hashes a password: one round of HMAC with a random salt.
///
/// This is too cheap for a real site, which needs a slow function such as Argon2. It is cheap on
/// purpose: `RUBiS` compares texts, and this example measures a server and its tables.
pub(crate) fn hashed(password: &str, salt: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(HMAC_SHA256, salt), password.as_bytes()).as_ref().to_vec()
}

/// Checks a user's password in constant time.
pub(crate) fn is_right(password: &str, user: &User) -> bool {
    let key = hmac::Key::new(HMAC_SHA256, &user.salt);
    hmac::verify(&key, password.as_bytes(), &user.password).is_ok()
}

/// # Errors
///
/// The system has no random numbers.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    let drawn = SystemRandom::new().fill(&mut bytes);
    drawn.map_err(|_| {
        Error::status(Status::SERVICE_UNAVAILABLE, "the system has no random numbers")
    })?;
    Ok(bytes)
}

/// Signs and verifies passes. With a random secret, a pass is valid until the program ends.
pub(crate) struct Passes(hmac::Key);

impl Passes {
    /// Several nodes need the same secret. If it is empty, a random one is used.
    pub(crate) fn new(secret: &str) -> Self {
        if !secret.is_empty() {
            return Self(hmac::Key::new(HMAC_SHA256, secret.as_bytes()));
        }
        let key = hmac::Key::generate(HMAC_SHA256, &SystemRandom::new());
        Self(key.expect("a system without random numbers does not start a server"))
    }

    /// Creates a pass: the user, the expiry, and a signature of both.
    pub(crate) fn make(&self, user: Id<User>) -> String {
        let claim = format!("{user}.{}", Time::now().unix() + PASS_LASTS);
        let signature = hmac::sign(&self.0, claim.as_bytes());
        signature.as_ref().iter().fold(claim + ".", |mut pass, byte| {
            write!(pass, "{byte:02x}").expect("writing to a string cannot fail");
            pass
        })
    }

    /// The user of a pass.
    ///
    /// # Errors
    ///
    /// The pass has expired, or its signature is wrong.
    pub(crate) fn read(&self, pass: &str) -> Result<Id<User>, Error> {
        self.known(pass).ok_or_else(|| {
            Error::forbidden(
                "this form has been open for too long; please go back and log in again",
            )
        })
    }

    fn known(&self, pass: &str) -> Option<Id<User>> {
        let (claim, signature) = pass.rsplit_once('.')?;
        let pairs = signature.as_bytes().chunks(2);
        let bytes = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        let signature = bytes.collect::<Option<Vec<u8>>>()?;
        hmac::verify(&self.0, claim.as_bytes(), &signature).ok()?;
        let (user, until) = claim.split_once('.')?;
        let is_valid = until.parse::<u64>().ok()? > Time::now().unix();
        user.parse().ok().filter(|_| is_valid)
    }
}
