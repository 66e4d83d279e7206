//! Decides what of an authority's is kept in the data folder, and when a certificate found there is the wanted one.
//!
//! `acme/HOST.pem` is a certificate with its key, below lines that say from whom and for which hosts it is (RFC 7468
//! section 2 lets text stand before the first BEGIN); `acme/account-HOST.json` is the account at that authority.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bine_log as log;
use bine_server::tls::Certificate;
use bine_server::write_private;
use instant_acme::AccountCredentials;
use serde_json::{Value, json};

use super::validity::Validity;
use crate::self_signed::make_folder;

/// The folder for what an authority gives.
#[derive(Clone, Debug)]
pub(super) struct Shelf(PathBuf);

/// A certificate that was found.
pub(super) struct Found {
    pub(super) certificate: Certificate,
    /// `None`: it is not the one that is wanted, but better than none.
    pub(super) validity: Option<Validity>,
}

/// An account that was found.
pub(super) struct Account {
    pub(super) credentials: AccountCredentials,
    pub(super) email: Option<String>,
}

impl Shelf {
    pub(super) fn in_data(data: &Path) -> Self {
        Self(data.join("acme"))
    }

    /// What is there for `hosts`, at least one. A file that is none is told of, and is like none.
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

    /// Puts a certificate with its key in the place of the one before.
    pub(super) fn keep_certificate(
        &self,
        directory: &str,
        hosts: &[String],
        pem: &str,
    ) -> Result<(), String> {
        self.keep(&self.path(hosts), &(title(directory, hosts) + pem))
    }

    /// The account at this authority, if there is one.
    pub(super) fn account(&self, directory: &str) -> Option<Account> {
        let text = fs::read(self.account_path(directory)).ok()?;
        let mut kept: Value = serde_json::from_slice(&text).ok()?;
        if kept["directory"] != directory {
            return None;
        }
        let email = kept["email"].as_str().map(ToOwned::to_owned);
        let credentials = serde_json::from_value(kept["credentials"].take()).ok()?;
        Some(Account { credentials, email })
    }

    pub(super) fn keep_account(&self, directory: &str, account: &Account) -> Result<(), String> {
        let Account { credentials, email } = account;
        let kept = json!({ "directory": directory, "email": email, "credentials": credentials });
        self.keep(&self.account_path(directory), &kept.to_string())
    }

    /// Forgets an account that its authority no longer knows.
    pub(super) fn forget_account(&self, directory: &str) {
        // If it stays, it is refused again, and this is tried again.
        let _ = fs::remove_file(self.account_path(directory));
    }

    fn keep(&self, path: &Path, text: &str) -> Result<(), String> {
        make_folder(&self.0)?;
        write_private(path, text.as_bytes()).map_err(|error| {
            let reason = "the data folder must belong to whom the server runs as";
            format!("cannot write {}: {error}; {reason}", path.display())
        })
    }

    /// Hosts are names, which hold nothing that means something in a path.
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
    fn a_certificate_is_found_again_and_nobody_else_may_read_it() {
        let folder = Folder::new();
        let shelf = Shelf::in_data(&folder.0);
        let hosts = ["a.example", "b.example"].map(str::to_owned);
        assert!(shelf.certificate(HERE, &hosts).is_none());
        shelf.keep_certificate(HERE, &hosts, &pem(&hosts)).unwrap();
        let found = shelf.certificate(HERE, &hosts).unwrap();
        assert!(found.validity.is_some());
        let mode = |name: &str| fs::metadata(folder.0.join(name)).unwrap().mode() & 0o777;
        assert_eq!((mode("acme"), mode("acme/a.example.pem")), (0o700, 0o600));
        // From another authority, or for other hosts, it is shown until there is the right one.
        let other = shelf.certificate("https://other.example/", &hosts).unwrap();
        assert_eq!(other.certificate.fingerprint(), found.certificate.fingerprint());
        assert_eq!(other.validity, None);
        assert_eq!(shelf.certificate(HERE, &hosts[..1]).unwrap().validity, None);
    }

    #[test]
    fn a_file_that_holds_no_certificate_is_like_none() {
        let folder = Folder::new();
        let shelf = Shelf::in_data(&folder.0);
        let hosts = ["a.example".to_owned()];
        shelf.keep_certificate(HERE, &hosts, "nothing").unwrap();
        assert!(shelf.certificate(HERE, &hosts).is_none());
        let whole = pem(&hosts);
        shelf.keep_certificate(HERE, &hosts, &whole[..whole.len() / 2]).unwrap();
        assert!(shelf.certificate(HERE, &hosts).is_none());
    }

    #[test]
    fn an_account_is_for_its_authority_alone() {
        let folder = Folder::new();
        let shelf = Shelf::in_data(&folder.0);
        let credentials = json!({ "id": "1", "key_pkcs8": "AAAA", "directory": HERE });
        let credentials = serde_json::from_value(credentials).unwrap();
        let account = Account { credentials, email: Some("a@b.example".to_owned()) };
        shelf.keep_account(HERE, &account).unwrap();
        assert_eq!(shelf.account(HERE).unwrap().email, account.email);
        assert!(shelf.account("https://ca.example:14000/other").is_none());
        assert!(shelf.account("https://other.example/directory").is_none());
        shelf.forget_account(HERE);
        assert!(shelf.account(HERE).is_none());
    }
}
