//! Decides who somebody is: by a password, and for the next half an hour by what their form brings along.
//!
//! The auction of `RUBiS` knows no cookies: whoever bids says their name and password, and the form that follows knows
//! them. What it knows is a pass, which nobody else can make. A house that was not to be measured would have sessions.

use std::fmt::Write as _;

use bine::prelude::*;
use ring::hmac::{self, HMAC_SHA256};
use ring::rand::{SecureRandom, SystemRandom};

use crate::tables::User;

/// In seconds.
const PASS_LASTS: u64 = 30 * 60;

/// What is kept of a password: one round with a salt of its own.
///
/// That is too cheap for a house that is broken into, where a slow function such as Argon2 belongs, and is so on purpose:
/// `RUBiS` compares texts, and what is measured here is a server and its tables.
pub(crate) fn hashed(password: &str, salt: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(HMAC_SHA256, salt), password.as_bytes()).as_ref().to_vec()
}

/// Says whether it is that user's, in a time that does not tell how much of it is.
pub(crate) fn is_right(password: &str, user: &User) -> bool {
    let key = hmac::Key::new(HMAC_SHA256, &user.salt);
    hmac::verify(&key, password.as_bytes(), &user.password).is_ok()
}

/// # Errors
///
/// The system has none.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    let drawn = SystemRandom::new().fill(&mut bytes);
    drawn.map_err(|_| {
        Error::status(Status::SERVICE_UNAVAILABLE, "the system has no random numbers")
    })?;
    Ok(bytes)
}

/// Makes passes and knows its own again, until the program ends.
pub(crate) struct Passes(hmac::Key);

impl Passes {
    pub(crate) fn new() -> Self {
        let key = hmac::Key::generate(HMAC_SHA256, &SystemRandom::new());
        Self(key.expect("a system without random numbers does not start a server"))
    }

    /// The user, until when, and a signature of both.
    pub(crate) fn make(&self, user: Id<User>) -> String {
        let claim = format!("{user}.{}", Time::now().unix() + PASS_LASTS);
        let signature = hmac::sign(&self.0, claim.as_bytes());
        signature.as_ref().iter().fold(claim + ".", |mut pass, byte| {
            write!(pass, "{byte:02x}").expect("a text has room");
            pass
        })
    }

    /// Who it was made for.
    ///
    /// # Errors
    ///
    /// It is too old, or somebody else's work.
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
