//! Certificates for tests: an authority, and what it signs.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};

/// An authority, whose certificate is in a file.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pub(crate) certificate: PathBuf,
}

/// The files of a certificate and its key.
pub(crate) struct Signed {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let certificate = folder.join(format!("{name}.pem"));
        fs::write(&certificate, issuer.pem()).unwrap();
        Self { issuer, certificate }
    }

    /// Issues a certificate for hosts, or with no host for a client.
    pub(crate) fn sign(&self, folder: &Path, name: &str, hosts: &[&str]) -> Signed {
        let params =
            CertificateParams::new(hosts.iter().map(ToString::to_string).collect::<Vec<_>>())
                .unwrap();
        self.write(folder, name, params)
    }

    /// Issues a certificate for the local host whose time is over.
    pub(crate) fn sign_expired(&self, folder: &Path, name: &str) -> Signed {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        self.write(folder, name, params)
    }

    fn write(&self, folder: &Path, name: &str, mut params: CertificateParams) -> Signed {
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let own = KeyPair::generate().unwrap();
        let signed = params.signed_by(&own, &self.issuer).unwrap();
        let certificate = folder.join(format!("{name}.pem"));
        let key = folder.join(format!("{name}-key.pem"));
        fs::write(&certificate, signed.pem()).unwrap();
        fs::write(&key, own.serialize_pem()).unwrap();
        Signed { certificate, key }
    }
}
