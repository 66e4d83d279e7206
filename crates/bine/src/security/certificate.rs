//! The names in a certificate (RFC 5280 section 4.2.1.6), and whether public browsers trust it.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::der::DerElements;
use crate::sites::HostPattern;

/// The facts about a certificate that affect other defaults of the server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Facts {
    /// Its host names, and domains for wildcards.
    pub(crate) names: Vec<HostPattern>,
    /// Whether an authority issued it for a name of the public DNS.
    pub(crate) is_public: bool,
}

const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;
const OCTET_STRING: u8 = 0x04;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;
/// The identifier `id-ce-subjectAltName`, 2.5.29.17.
const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];

/// Top-level labels that cannot be registered (RFC 6761, 6762, 7686, 8375, and ICANN's `internal`),
/// or that private networks use.
const PRIVATE: [&str; 13] = [
    "alt",
    "arpa",
    "corp",
    "example",
    "home",
    "internal",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "onion",
    "test",
];

impl Facts {
    /// The facts about the first certificate in `pem`. An unreadable certificate has no names.
    pub(crate) fn of_pem(pem: &[u8]) -> Self {
        let der = CertificateDer::from_pem_slice(pem).ok();
        der.and_then(|der| Self::of_der(&der)).unwrap_or_default()
    }

    /// The facts about a certificate that a public authority issued for these names.
    pub(crate) fn issued(names: Vec<HostPattern>) -> Self {
        Self { names, is_public: true }
    }

    fn of_der(der: &[u8]) -> Option<Self> {
        let mut certificate = DerElements(DerElements(der).content(SEQUENCE)?);
        let mut signed = DerElements(certificate.content(SEQUENCE)?);
        if signed.0.first() == Some(&VERSION) {
            signed.next()?;
        }
        let [_serial, _algorithm, issuer] = [signed.next()?, signed.next()?, signed.next()?];
        let [_validity, subject, _key] = [signed.next()?, signed.next()?, signed.next()?];
        let is_self_signed = issuer == subject;
        let extensions = signed.find(|(kind, _)| *kind == EXTENSIONS);
        let names = extensions.and_then(|(_, content)| names(content)).unwrap_or_default();
        let is_public = !is_self_signed && names.iter().any(is_public);
        Some(Self { names, is_public })
    }
}

/// The names in the extensions of a certificate, except those that are not hosts.
fn names(extensions: &[u8]) -> Option<Vec<HostPattern>> {
    let all = DerElements(DerElements(extensions).content(SEQUENCE)?);
    for (_, extension) in all {
        let mut extension = DerElements(extension);
        if extension.content(OBJECT_IDENTIFIER) != Some(SUBJECT_ALTERNATIVE_NAME) {
            continue;
        }
        // The optional critical flag precedes the value.
        let (_, value) = extension.find(|(kind, _)| *kind == OCTET_STRING)?;
        let names = DerElements(DerElements(value).content(SEQUENCE)?);
        let names = names.filter(|(kind, _)| *kind == DNS_NAME);
        let texts = names.filter_map(|(_, name)| std::str::from_utf8(name).ok());
        return Some(texts.filter_map(|name| HostPattern::parse(name).ok()).collect());
    }
    None
}

fn is_public(name: &HostPattern) -> bool {
    let name = name.to_string();
    let mut labels = name.rsplit('.');
    let last = labels.next().unwrap_or_default();
    labels.next().is_some() && !PRIVATE.contains(&last)
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

    use super::*;

    /// A certificate for these names, signed by an authority of the same run.
    fn signed(names: &[&str]) -> String {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "an authority");
        let issuer = Issuer::new(authority, KeyPair::generate().unwrap());
        parameters(names).signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap().pem()
    }

    fn parameters(names: &[&str]) -> CertificateParams {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        CertificateParams::new(names).unwrap()
    }

    fn facts(pem: &str) -> (Vec<String>, bool) {
        let Facts { names, is_public } = Facts::of_pem(pem.as_bytes());
        (names.iter().map(ToString::to_string).collect(), is_public)
    }

    #[test]
    fn reads_the_names_of_a_certificate() {
        let names = ["a.org", "*.b.org", "192.0.2.1", "c.org"];
        let expected = ["a.org", "*.b.org", "c.org"].map(str::to_owned).to_vec();
        assert_eq!(facts(&signed(&names)), (expected, true));
    }

    #[test]
    fn only_issued_certificates_with_public_names_are_public() {
        for (names, expected) in [
            (&["shop.org"][..], true),
            (&["machine.local", "shop.org"], true),
            (&["localhost", "127.0.0.1"], false),
            (&["machine", "machine.internal", "a.test", "b.example"], false),
            (&["192.0.2.1"], false),
            (&[], false),
        ] {
            assert_eq!(facts(&signed(names)).1, expected, "{names:?}");
        }
        let key = KeyPair::generate().unwrap();
        let own = parameters(&["shop.org"]).self_signed(&key).unwrap().pem();
        assert_eq!(facts(&own), (vec!["shop.org".to_owned()], false));
    }

    #[test]
    fn reads_a_damaged_certificate_without_a_panic() {
        let pem = signed(&["a.org"]);
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec();
        for length in 0..der.len() {
            let _ = Facts::of_der(&der[..length]);
        }
        for place in 0..der.len() {
            for byte in [0, 0x30, 0x82, 0x83, 0xff] {
                let mut changed = der.clone();
                changed[place] = byte;
                let _ = Facts::of_der(&changed);
            }
        }
    }
}
