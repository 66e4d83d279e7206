//! The certificates of a rule: files of trusted authorities, and the identity of this server.

use std::path::{Path, PathBuf};

use bine_client::{BadOriginTls, ConnectFailure, OriginTls, TlsFault, TlsFaultKind};
use ring::digest::{Context, SHA256};

use crate::remote::trust::usual_roots;

/// The files of certificates that a rule names.
#[derive(Clone, Default, Debug)]
pub(super) struct TlsFiles {
    /// Certificates of authorities, PEM; `None`: those of the system.
    pub(super) authority: Option<PathBuf>,
    /// The certificate chain for origins that ask for one, PEM.
    pub(super) certificate: Option<PathBuf>,
    /// Its private key, PEM.
    pub(super) key: Option<PathBuf>,
}

/// The content of these files, ready for connections. Two are equal if the files had the same content.
#[derive(Clone, Debug)]
pub(super) struct LoadedTls {
    pub(super) tls: OriginTls,
    digest: [u8; 32],
}

impl TlsFiles {
    /// The key of the first file that the rule names, if any.
    pub(super) fn first_key(&self) -> Option<&'static str> {
        let keys = [
            ("origin-authority", &self.authority),
            ("origin-certificate", &self.certificate),
            ("origin-certificate-key", &self.key),
        ];
        keys.into_iter().find(|(_, file)| file.is_some()).map(|(key, _)| key)
    }

    /// Reads the files.
    ///
    /// # Errors
    ///
    /// A message with the key of the file that cannot be used, and the remedy.
    pub(super) fn load(&self) -> Result<LoadedTls, String> {
        let mut digest = Context::new(&SHA256);
        let mut read = |key: &str, path: &Path| {
            let bytes = std::fs::read(path);
            let bytes =
                bytes.map_err(|error| format!("{key}: cannot read {}: {error}", path.display()))?;
            digest.update(&(bytes.len() as u64).to_be_bytes());
            digest.update(&bytes);
            Ok::<_, String>(bytes)
        };
        let authorities = match &self.authority {
            Some(path) => read("origin-authority", path)?,
            None => {
                let path = usual_roots().ok_or(
                    "to: this system has no certificates of authorities for https://: install the package `ca-certificates`, or name a file by `origin-authority`",
                )?;
                read("the authorities of this system", &path)?
            }
        };
        let identity = match (&self.certificate, &self.key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((
                read("origin-certificate", certificate)?,
                read("origin-certificate-key", key)?,
            )),
            (Some(_), None) => {
                return Err(
                    "origin-certificate: name its key by `origin-certificate-key`".to_owned()
                );
            }
            (None, Some(_)) => {
                return Err("origin-certificate-key: name its certificate by `origin-certificate`"
                    .to_owned());
            }
        };
        let identity = identity.as_ref().map(|(certificate, key)| (&**certificate, &**key));
        let tls = OriginTls::new(&authorities, identity).map_err(|error| {
            let key = match error {
                BadOriginTls::NoAuthority => "origin-authority",
                BadOriginTls::NoCertificate | BadOriginTls::Unusable(_) => "origin-certificate",
                BadOriginTls::NoKey => "origin-certificate-key",
            };
            format!("{key}: {error}")
        })?;
        let mut loaded = LoadedTls { tls, digest: [0; 32] };
        loaded.digest.copy_from_slice(digest.finish().as_ref());
        Ok(loaded)
    }
}

impl PartialEq for LoadedTls {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

/// Describes why an origin is not reached, with the remedy for a failure of TLS.
pub(super) fn describe(failure: &ConnectFailure) -> String {
    match failure {
        ConnectFailure::Tls(fault) => format!("{failure}{}", remedy(fault)),
        ConnectFailure::Io(_) | ConnectFailure::TimedOut(_) => failure.to_string(),
    }
}

/// The end of a message about this fault.
pub(super) fn remedy(fault: &TlsFault) -> &'static str {
    match fault.kind {
        TlsFaultKind::UnknownAuthority => {
            ": name the file with the certificate of its authority by `origin-authority`"
        }
        TlsFaultKind::WrongName => {
            ": use a name of the certificate in `to`, or issue a certificate for this one"
        }
        TlsFaultKind::Expired => ": renew it, or correct the clock of this machine",
        TlsFaultKind::NotYetValid => ": correct the clock of this machine",
        TlsFaultKind::ClientCertificate => {
            ": name one that it trusts by `origin-certificate` and `origin-certificate-key`"
        }
        TlsFaultKind::NotTls => ": use http:// in `to`, or its port with TLS",
        TlsFaultKind::Other => "",
    }
}
