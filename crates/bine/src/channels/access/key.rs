//! Signature keys. The key determines the algorithm, never the token (RFC 8725 section 3.1).

use crate::base64;
use ring::hmac;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use serde_json::Value;

/// A key that verifies the signatures of tokens.
pub(super) struct TokenKey {
    /// The name of the algorithm in token headers (RFC 7518 section 3.1).
    algorithm: &'static str,
    /// The key id, if any.
    name: Option<String>,
    check: Verifier,
}

enum Verifier {
    Shared(hmac::Key),
    Public(UnparsedPublicKey<Vec<u8>>),
    /// Modulus and exponent.
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
}

/// A public-key algorithm.
struct PublicKeyAlgorithm {
    algorithm: &'static str,
    /// Its `AlgorithmIdentifier` in DER (RFC 5280 section 4.1.1.2).
    identifier: &'static [u8],
    check: &'static dyn VerificationAlgorithm,
}

/// ECDSA on the curve P-256 (RFC 5480 section 2.1.1).
const ES256: PublicKeyAlgorithm = PublicKeyAlgorithm {
    algorithm: "ES256",
    identifier:
        b"\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07",
    check: &ECDSA_P256_SHA256_FIXED,
};
/// RFC 8410 section 3.
const EDDSA: PublicKeyAlgorithm = PublicKeyAlgorithm {
    algorithm: "EdDSA",
    identifier: b"\x30\x05\x06\x03\x2b\x65\x70",
    check: &ED25519,
};
/// RFC 3279 section 2.3.1.
const RS256: PublicKeyAlgorithm = PublicKeyAlgorithm {
    algorithm: "RS256",
    identifier: b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00",
    check: &RSA_PKCS1_2048_8192_SHA256,
};
/// A secret must be at least as long as the hash (RFC 7518 section 3.2).
const SHORTEST_SECRET: usize = 32;

impl TokenKey {
    pub(super) fn hs256(secret: &[u8]) -> Result<Self, String> {
        if secret.len() < SHORTEST_SECRET {
            return Err(format!(
                "a secret of {} bytes can be guessed: HS256 wants {SHORTEST_SECRET} random ones, which `openssl rand -hex 32` makes",
                secret.len()
            ));
        }
        let check = Verifier::Shared(hmac::Key::new(hmac::HMAC_SHA256, secret));
        Ok(Self { algorithm: "HS256", name: None, check })
    }

    pub(super) fn es256(pem: &str) -> Result<Self, String> {
        ES256.key(pem)
    }

    pub(super) fn eddsa(pem: &str) -> Result<Self, String> {
        EDDSA.key(pem)
    }

    pub(super) fn rs256(pem: &str) -> Result<Self, String> {
        RS256.key(pem)
    }

    /// Detects the format: a key set, a public key, or a secret.
    pub(super) fn of_any(bytes: &[u8]) -> Result<Vec<Self>, String> {
        match str::from_utf8(bytes) {
            Ok(json) if json.trim_start().starts_with('{') => Self::of_set(json),
            Ok(pem) if pem.contains("-----BEGIN ") => {
                let der = public_part(pem)?;
                let mut kinds = [ES256, EDDSA, RS256].into_iter();
                let key = kinds.find_map(|kind| Some(kind.of_bytes(kind.bits(&der)?.to_vec())));
                let key = key.ok_or("this public key is for none of ES256, EdDSA and RS256")?;
                Ok(vec![key])
            }
            _ => Ok(vec![Self::hs256(bytes.trim_ascii_end())?]),
        }
    }

    /// Parses a key set (RFC 7517 section 5). Keys with other algorithms or uses are skipped.
    pub(super) fn of_set(json: &str) -> Result<Vec<Self>, String> {
        let set: Value =
            serde_json::from_str(json).map_err(|error| format!("it is no set of keys: {error}"))?;
        let keys = set["keys"].as_array().ok_or("it is no set of keys: it has no `keys`")?;
        let keys = keys.iter().map(Self::of_member);
        let keys: Vec<_> = keys.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err("it has no key for HS256, ES256, EdDSA or RS256".to_owned());
        }
        Ok(keys)
    }

    fn of_member(key: &Value) -> Result<Option<Self>, String> {
        let text = |name: &str| key[name].as_str();
        let bytes = |name: &str| {
            let bytes = text(name).and_then(base64::url);
            bytes.ok_or_else(|| format!("a key has no `{name}`, or not in base64url"))
        };
        let mut made = match (text("kty"), text("crv")) {
            (Some("oct"), _) => Self::hs256(&bytes("k")?)?,
            (Some("EC"), Some("P-256")) => {
                ES256.of_bytes([vec![UNCOMPRESSED], bytes("x")?, bytes("y")?].concat())
            }
            (Some("OKP"), Some("Ed25519")) => EDDSA.of_bytes(bytes("x")?),
            (Some("RSA"), _) => {
                let check =
                    Verifier::Rsa(RsaPublicKeyComponents { n: bytes("n")?, e: bytes("e")? });
                Self { algorithm: RS256.algorithm, name: None, check }
            }
            _ => return Ok(None),
        };
        let is_other = text("alg").is_some_and(|algorithm| algorithm != made.algorithm)
            || text("use").is_some_and(|used| used != "sig");
        made.name = text("kid").map(str::to_owned);
        Ok(Some(made).filter(|_| !is_other))
    }

    /// Whether a token with this algorithm and key id may be signed by the key.
    pub(super) fn fits(&self, algorithm: &str, name: Option<&str>) -> bool {
        let is_named = match (&self.name, name) {
            (Some(own), Some(name)) => own == name,
            _ => true,
        };
        self.algorithm == algorithm && is_named
    }

    pub(super) const fn algorithm(&self) -> &'static str {
        self.algorithm
    }

    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.check {
            Verifier::Shared(key) => hmac::verify(key, message, signature).is_ok(),
            Verifier::Public(key) => key.verify(message, signature).is_ok(),
            Verifier::Rsa(key) => {
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
            }
        }
    }
}

/// The first byte of a curve point with both coordinates (SEC 1 section 2.3.3).
const UNCOMPRESSED: u8 = 4;
const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 3;

impl PublicKeyAlgorithm {
    fn key(&self, pem: &str) -> Result<TokenKey, String> {
        let der = public_part(pem)?;
        let key = self.bits(&der).ok_or_else(|| {
            format!("this public key is of another kind than {} wants", self.algorithm)
        })?;
        Ok(self.of_bytes(key.to_vec()))
    }

    fn of_bytes(&self, key: Vec<u8>) -> TokenKey {
        let check = Verifier::Public(UnparsedPublicKey::new(self.check, key));
        TokenKey { algorithm: self.algorithm, name: None, check }
    }

    /// Extracts the key of a `SubjectPublicKeyInfo` (RFC 5280 section 4.1.2.7).
    fn bits<'d>(&self, der: &'d [u8]) -> Option<&'d [u8]> {
        let (whole, []) = element(der, SEQUENCE)? else { return None };
        let (bits, []) = element(whole.strip_prefix(self.identifier)?, BIT_STRING)? else {
            return None;
        };
        // The number of unused bits in the last byte is zero.
        bits.strip_prefix(&[0])
    }
}

/// Splits an element's content from the bytes after it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (first, rest) = der.strip_prefix(&[tag])?.split_first()?;
    let (length, rest) = match *first {
        short @ 0..=0x7f => (usize::from(short), rest),
        0x81 => (usize::from(*rest.first()?), &rest[1..]),
        0x82 => {
            let (length, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// Decodes a public key in PEM (RFC 7468 section 13).
fn public_part(pem: &str) -> Result<Vec<u8>, String> {
    const WANTED: &str = "-----BEGIN PUBLIC KEY-----";
    let Some((_, rest)) = pem.split_once(WANTED) else {
        let found = pem.lines().find(|line| line.starts_with("-----BEGIN "));
        let found = found.map_or("no PEM", |line| line.trim_matches('-').trim());
        return Err(format!(
            "there is {found} where a PUBLIC KEY should be; `openssl pkey -pubout` makes one of a private key"
        ));
    };
    let inner = rest.split_once("-----END PUBLIC KEY-----").map(|(inner, _)| inner);
    inner.and_then(base64::plain).ok_or_else(|| "the public key is cut or damaged".to_owned())
}
