//! The credentials with which a node logs in to a NATS server.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use async_nats::Auth;
use nkeys::{KeyPair, KeyPairType};

use crate::error::Error;

/// The longest file of credentials, in bytes. A user's JWT has some kilobytes.
const LONGEST_FILE: u64 = 64 << 10;
/// The length of an encoded seed.
const SEED_LENGTH: usize = 58;
const JWT_BEGIN: &str = "-----BEGIN NATS USER JWT-----";
const SEED_BEGIN: &str = "-----BEGIN USER NKEY SEED-----";

/// The credentials of a URL or of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    Anonymous,
    Token(String),
    Password {
        user: String,
        password: String,
    },
    /// The seed of a user's key pair, which signs a nonce of the server.
    Seed(String),
    /// A user's JWT, and the seed of its key pair.
    Jwt {
        jwt: String,
        seed: String,
    },
}

impl Credentials {
    /// Reads a file of credentials: `.creds`, a seed, `user:password` or a token.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let shown = path.display();
        let mut text = String::new();
        File::open(path)
            .and_then(|file| file.take(LONGEST_FILE + 1).read_to_string(&mut text))
            .map_err(|error| {
                Error::Misuse(format!(
                    "the file of credentials {shown} cannot be read ({error}): correct \
                     `cluster-credentials`"
                ))
            })?;
        if text.len() as u64 > LONGEST_FILE {
            return Err(Error::Misuse(format!(
                "the file of credentials {shown} is longer than {LONGEST_FILE} bytes: correct \
                 `cluster-credentials`"
            )));
        }
        Self::parse(&text).map_err(|problem| {
            Error::Misuse(format!(
                "the file of credentials {shown} {problem}: `cluster-credentials` names a `.creds` \
                 file, or a file with one line, which is `user:password`, a token, or the seed of a \
                 user's nkey (SU..)"
            ))
        })
    }

    /// Signs the server's nonce, if the credentials contain a key.
    pub(crate) fn answer(self, nonce: &[u8]) -> Result<Auth, Error> {
        let mut auth = Auth::new();
        match self {
            Self::Anonymous => {}
            Self::Token(token) => auth.token = Some(token),
            Self::Password { user, password } => {
                (auth.username, auth.password) = (Some(user), Some(password));
            }
            Self::Seed(seed) => {
                let key = key_pair(&seed).map_err(Error::Misuse)?;
                auth.nkey = Some(key.public_key());
                auth.signature = Some(sign(&key, nonce)?);
            }
            Self::Jwt { jwt, seed } => {
                let key = key_pair(&seed).map_err(Error::Misuse)?;
                auth.jwt = Some(jwt);
                auth.signature = Some(sign(&key, nonce)?);
            }
        }
        Ok(auth)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        let after = |begin: &str| lines().skip_while(|line| *line != begin).nth(1);
        if lines().any(|line| line == JWT_BEGIN) {
            let jwt = after(JWT_BEGIN).ok_or("has no JWT")?.to_owned();
            let seed = after(SEED_BEGIN).ok_or("has no seed of a user's nkey")?.to_owned();
            key_pair(&seed)?;
            return Ok(Self::Jwt { jwt, seed });
        }
        let line = lines().next().ok_or("is empty")?;
        if lines().count() > 1 {
            return Err("has several lines and no JWT".to_owned());
        }
        if line.starts_with('S') && line.len() == SEED_LENGTH && !line.contains(':') {
            key_pair(line)?;
            return Ok(Self::Seed(line.to_owned()));
        }
        Ok(match line.split_once(':') {
            Some((user, password)) => {
                Self::Password { user: user.to_owned(), password: password.to_owned() }
            }
            None => Self::Token(line.to_owned()),
        })
    }
}

/// Decodes a user's seed. The errors do not contain it.
fn key_pair(seed: &str) -> Result<KeyPair, String> {
    let key = KeyPair::from_seed(seed).map_err(|_| "has a damaged seed of an nkey".to_owned())?;
    if key.key_pair_type() == KeyPairType::User {
        Ok(key)
    } else {
        Err("has the seed of a different nkey than a user's".to_owned())
    }
}

fn sign(key: &KeyPair, nonce: &[u8]) -> Result<Vec<u8>, Error> {
    let failed = |error| Error::Misuse(format!("the seed of the nkey cannot sign: {error}"));
    key.sign(nonce).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_each_form_of_a_file() {
        let seed = KeyPair::new_user().seed().unwrap();
        let password =
            Credentials::Password { user: "node".to_owned(), password: "a:b c".to_owned() };
        check("node:a:b c\n", Ok(password));
        check("  s3cret\r\n", Ok(Credentials::Token("s3cret".to_owned())));
        check(&format!("{seed}\n"), Ok(Credentials::Seed(seed.clone())));
        let creds = format!(
            "{JWT_BEGIN}\neyJ.e.x\n------END NATS USER JWT------\n\n*** IMPORTANT ***\n\n\
             {SEED_BEGIN}\n{seed}\n------END USER NKEY SEED------\n"
        );
        check(&creds, Ok(Credentials::Jwt { jwt: "eyJ.e.x".to_owned(), seed }));
    }

    #[test]
    fn rejects_damaged_files() {
        let seed = KeyPair::new_user().seed().unwrap();
        let damaged = format!("{}A", &seed[..SEED_LENGTH - 1]);
        let damaged = if damaged == seed { format!("{}B", &seed[..57]) } else { damaged };
        check("", Err("is empty"));
        check("a\nb\n", Err("has several lines and no JWT"));
        check(&damaged, Err("has a damaged seed of an nkey"));
        let account = KeyPair::new_account().seed().unwrap();
        check(&account, Err("has the seed of a different nkey than a user's"));
        check(&format!("{JWT_BEGIN}\neyJ\n"), Err("has no seed of a user's nkey"));
    }

    fn check(text: &str, expected: Result<Credentials, &str>) {
        assert_eq!(Credentials::parse(text), expected.map_err(str::to_owned));
    }
}
