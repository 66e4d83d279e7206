//! Storage of certificates and accounts in the data folder, and the check whether a stored
//! certificate is the wanted one.
//!
//! The file `acme/HOST.pem` is a certificate with its key, after lines that name the authority and
//! the hosts (RFC 7468 section 2 permits text before the first BEGIN). `acme/account-HOST.json` is
//! the account at that authority.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bine_log as log;
use bine_server::tls::Certificate;
use bine_server::write_private;
use instant_acme::AccountCredentials;
use serde_json::{Value, json};

use super::validity::Validity;
use crate::self_signed::create_private_folder;

/// The folder of certificates and accounts.
#[derive(Clone, Debug)]
pub(super) struct CertificateStore(PathBuf);

/// A stored certificate.
pub(super) struct Found {
    pub(super) certificate: Certificate,
    /// `None` if its hosts or its authority differ from the wanted ones: a substitute.
    pub(super) validity: Option<Validity>,
}

/// A stored account.
pub(super) struct AcmeAccount {
    pub(super) credentials: AccountCredentials,
    pub(super) email: Option<String>,
}

impl CertificateStore {
    pub(super) fn in_data(data: &Path) -> Self {
        Self(data.join("acme"))
    }

    /// The stored certificate for `hosts`, at least one. An invalid file is logged and ignored.
    pub(super) fn certificate(&self, directory: &str, hosts: &[String]) -> Option<Found> {
        let path = self.path(hosts);
        let pem = match fs::read(&path) {
            Ok(pem) => pem,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                log::warn(format_args!("cannot read {}: {error}", path.display()));
                return None;
            }
        };
        let certificate = Certificate::from_pem(&pem, &pem)
            .inspect_err(|error| log::warn(format_args!("{}: {error}", path.display())))
            .ok()?;
        let is_wanted = pem.starts_with(title(directory, hosts).as_bytes());
        let validity = if is_wanted { Validity::of_pem(&pem) } else { None };
        Some(Found { certificate, validity })
    }

    /// Stores a certificate with its key, in place of the previous one.
    pub(super) fn keep_certificate(
        &self,
        directory: &str,
        hosts: &[String],
        pem: &str,
    ) -> Result<(), String> {
        self.keep(&self.path(hosts), &(title(directory, hosts) + pem))
    }

    /// The account at this authority, if there is one.
    pub(super) fn account(&self, directory: &str) -> Option<AcmeAccount> {
        let text = fs::read(self.account_path(directory)).ok()?;
        let mut kept: Value = serde_json::from_slice(&text).ok()?;
        if kept["directory"] != directory {
            return None;
        }
        let email = kept["email"].as_str().map(ToOwned::to_owned);
        let credentials = serde_json::from_value(kept["credentials"].take()).ok()?;
        Some(AcmeAccount { credentials, email })
    }

    pub(super) fn keep_account(
        &self,
        directory: &str,
        account: &AcmeAccount,
    ) -> Result<(), String> {
        let AcmeAccount { credentials, email } = account;
        let kept = json!({ "directory": directory, "email": email, "credentials": credentials });
        self.keep(&self.account_path(directory), &kept.to_string())
    }

    /// Removes an account that its authority no longer knows.
    pub(super) fn forget_account(&self, directory: &str) {
        // If the file remains, the authority rejects the account again, and this is repeated.
        let _ = fs::remove_file(self.account_path(directory));
    }

    fn keep(&self, path: &Path, text: &str) -> Result<(), String> {
        create_private_folder(&self.0)?;
        write_private(path, text.as_bytes()).map_err(|error| {
            let reason = "the data folder must belong to the server's user";
            format!("cannot write {}: {error}; {reason}", path.display())
        })
    }

    /// The path of a certificate. Hosts are names, without characters that have a meaning in paths.
    fn path(&self, hosts: &[String]) -> PathBuf {
        self.0.join(format!("{}.pem", hosts[0]))
    }

    fn account_path(&self, directory: &str) -> PathBuf {
        let host = directory.split('/').nth(2).unwrap_or(directory).replace(':', "-");
        self.0.join(format!("account-{host}.json"))
    }
}

fn title(directory: &str, hosts: &[String]) -> String {
    format!("From: {directory}\nFor: {}\n\n", hosts.join(" "))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::super::tests::{Folder, pem};
    use super::*;

    const HERE: &str = "https://ca.example:14000/directory";

    #[test]
    fn stores_certificates_privately() {
        let folder = Folder::new();
        let store = CertificateStore::in_data(&folder.0);
        let hosts = ["a.example", "b.example"].map(str::to_owned);
        assert!(store.certificate(HERE, &hosts).is_none());
        store.keep_certificate(HERE, &hosts, &pem(&hosts)).unwrap();
        let found = store.certificate(HERE, &hosts).unwrap();
        assert!(found.validity.is_some());
        let mode = |name: &str| fs::metadata(folder.0.join(name)).unwrap().mode() & 0o777;
        assert_eq!((mode("acme"), mode("acme/a.example.pem")), (0o700, 0o600));
        // A certificate from a different authority, or for different hosts, is the substitute until
        // the right one exists.
        let other = store.certificate("https://other.example/", &hosts).unwrap();
        assert_eq!(other.certificate.fingerprint(), found.certificate.fingerprint());
        assert_eq!(other.validity, None);
        assert_eq!(store.certificate(HERE, &hosts[..1]).unwrap().validity, None);
    }

    #[test]
    fn ignores_files_without_a_certificate() {
        let folder = Folder::new();
        let store = CertificateStore::in_data(&folder.0);
        let hosts = ["a.example".to_owned()];
        store.keep_certificate(HERE, &hosts, "nothing").unwrap();
        assert!(store.certificate(HERE, &hosts).is_none());
        let whole = pem(&hosts);
        store.keep_certificate(HERE, &hosts, &whole[..whole.len() / 2]).unwrap();
        assert!(store.certificate(HERE, &hosts).is_none());
    }

    #[test]
    fn accounts_belong_to_one_authority() {
        let folder = Folder::new();
        let store = CertificateStore::in_data(&folder.0);
        let credentials = json!({ "id": "1", "key_pkcs8": "AAAA", "directory": HERE });
        let credentials = serde_json::from_value(credentials).unwrap();
        let account = AcmeAccount { credentials, email: Some("a@b.example".to_owned()) };
        store.keep_account(HERE, &account).unwrap();
        assert_eq!(store.account(HERE).unwrap().email, account.email);
        assert!(store.account("https://ca.example:14000/other").is_none());
        assert!(store.account("https://other.example/directory").is_none());
        store.forget_account(HERE);
        assert!(store.account(HERE).is_none());
    }
}
