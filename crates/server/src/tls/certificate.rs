//! Parses and checks certificates and their private keys.

use std::fmt;
use std::sync::Arc;

use ring::digest;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};

use super::provider;

/// A certificate chain with its private key.
#[derive(Clone, Debug)]
pub struct Certificate(Arc<CertifiedKey>);

/// The error for an invalid certificate or key. Its message names the problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadCertificate(String);

impl Certificate {
    /// Parses a certificate chain, the server's own certificate first, and its private key, both in
    /// PEM (RFC 7468). The key may be RSA, ECDSA or Ed25519.
    ///
    /// # Errors
    ///
    /// Fails when a part is missing or invalid, or when the key does not match the certificate.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, BadCertificate> {
        let bad = |reason: String| BadCertificate(reason);
        let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(|error| bad(format!("the certificate is no PEM: {error}")))?;
        if chain.is_empty() {
            return Err(bad("there is no BEGIN CERTIFICATE in the certificate's file".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            pem::Error::NoItemsFound => {
                bad("there is no BEGIN PRIVATE KEY in the key's file".to_owned())
            }
            other => bad(format!("the key is no PEM: {other}")),
        })?;
        let pair =
            CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
                Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                    bad("the key is not that of the certificate".to_owned())
                }
                other => bad(format!("certificate or key cannot be used: {other}")),
            })?;
        Ok(Self(Arc::new(pair)))
    }

    /// Returns the SHA-256 fingerprint of the server's own certificate, as hexadecimal pairs
    /// separated by colons.
    pub fn fingerprint(&self) -> String {
        let first = self.0.cert.first().map_or(&[][..], |first| first.as_ref());
        let digest = digest::digest(&digest::SHA256, first);
        let pairs: Vec<String> = digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        pairs.join(":")
    }

    pub(super) fn into_key(self) -> Arc<CertifiedKey> {
        self.0
    }
}

impl fmt::Display for BadCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadCertificate {}

#[cfg(test)]
mod tests {
    use super::*;

    fn generate() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    fn check(chain: &str, key: &str, expected: &str) {
        match Certificate::from_pem(chain.as_bytes(), key.as_bytes()) {
            Ok(_) => assert_eq!(expected, "fits"),
            Err(error) => assert!(error.to_string().contains(expected), "{error}: {expected}"),
        }
    }

    #[test]
    fn names_the_problem_of_an_invalid_certificate_or_key() {
        let (chain, key) = generate();
        let other = generate().1;
        check(&chain, &key, "fits");
        check("", &key, "no BEGIN CERTIFICATE");
        check(&key, &key, "no BEGIN CERTIFICATE");
        check(&chain, "", "no BEGIN PRIVATE KEY");
        check(&chain, &chain, "no BEGIN PRIVATE KEY");
        check(&chain, &other, "not that of the certificate");
        check(&chain.replace("MII", "M!!"), &key, "no PEM");
        check(&chain[..chain.len() / 2], &key, "no PEM");
    }

    #[test]
    fn computes_the_fingerprint_of_the_first_certificate() {
        let ((one, key), (other, _)) = (generate(), generate());
        let fingerprint_of = |chain: &str| {
            Certificate::from_pem(chain.as_bytes(), key.as_bytes()).unwrap().fingerprint()
        };
        let alone = fingerprint_of(&one);
        assert_eq!((alone.len(), alone.matches(':').count()), (95, 31));
        assert_eq!(fingerprint_of(&format!("{one}{other}")), alone);
    }
}
