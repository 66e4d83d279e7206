//! Decides how a certificate is had from an authority (RFC 8555 section 7): an account, an order, a proof by HTTP for
//! each host, and the certificate.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use instant_acme::{
    Account, AuthorizationStatus, ChallengeType, Error, Identifier, NewAccount, NewOrder, Order,
    OrderStatus, RetryPolicy,
};
use rustls::ClientConfig;

use super::call::Caller;
use super::challenges::Challenges;
use super::shelf::{self, Shelf};
use crate::remote::trust;

/// An authority, and what we are to it.
#[derive(Clone, Debug)]
pub(super) struct Authority {
    /// Its address.
    pub(super) directory: String,
    /// Whom it may write to.
    pub(super) email: Option<String>,
    /// Who vouches for the authority itself, PEM.
    pub(super) roots: PathBuf,
    pub(super) shelf: Shelf,
}

/// An authority that looks at proofs, or makes a certificate, is asked again after a quarter of a second, then twice
/// as long each time.
const PATIENCE: RetryPolicy = RetryPolicy::new().timeout(Duration::from_mins(2));

/// Where the system keeps the certificates that all its programs trust.
///
/// # Errors
///
/// Nowhere.
pub(super) fn usual_roots() -> Result<PathBuf, String> {
    trust::usual_roots().ok_or_else(|| {
        "this system has no roots to trust an authority by: install its package `ca-certificates`, or set `acme-roots`".to_owned()
    })
}

impl Authority {
    /// A certificate with those behind it and its new key, as PEM. Proofs are given at `challenges` meanwhile.
    ///
    /// # Errors
    ///
    /// Why there is none, in words for the one who runs the server.
    pub(super) async fn certify(
        &self,
        hosts: &[String],
        challenges: &Challenges,
    ) -> Result<String, String> {
        let account = self.account().await?;
        let said = |error: Error| self.reason(&error);
        let identifiers: Vec<_> = hosts.iter().cloned().map(Identifier::Dns).collect();
        let mut order = account.new_order(&NewOrder::new(&identifiers)).await.map_err(said)?;
        prove(&mut order, challenges).await.map_err(said)?;
        let key = rcgen::KeyPair::generate().map_err(|error| error.to_string())?;
        let wish = wish(hosts, &key).map_err(|error| error.to_string())?;
        order.finalize_csr(&wish).await.map_err(said)?;
        let chain = order.poll_certificate(&PATIENCE).await.map_err(said)?;
        Ok(chain + &key.serialize_pem())
    }

    /// Ours, made with the first certificate.
    async fn account(&self) -> Result<Account, String> {
        let said = |error: Error| self.reason(&error);
        let config = self.trust()?;
        let builder = Account::builder_with_http(Box::new(Caller { config }));
        let address = self.email.as_ref().map(|email| format!("mailto:{email}"));
        let contact: Vec<&str> = address.as_deref().into_iter().collect();
        if let Some(known) = self.shelf.account(&self.directory) {
            let is_same = known.email == self.email;
            let account = builder.from_credentials(known.credentials).await.map_err(said)?;
            if !is_same {
                account.update_contacts(&contact).await.map_err(said)?;
                // Read again, since an account is no value that can be copied.
                if let Some(known) = self.shelf.account(&self.directory) {
                    self.keep(known.credentials)?;
                }
            }
            return Ok(account);
        }
        let wish = NewAccount {
            contact: &contact,
            // Who writes `tls = "acme"` has been told so.
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let (account, credentials) =
            builder.create(&wish, self.directory.clone(), None).await.map_err(said)?;
        self.keep(credentials)?;
        Ok(account)
    }

    fn keep(&self, credentials: instant_acme::AccountCredentials) -> Result<(), String> {
        let account = shelf::Account { credentials, email: self.email.clone() };
        self.shelf.keep_account(&self.directory, &account)
    }

    /// Whom to trust when speaking to it.
    fn trust(&self) -> Result<Arc<ClientConfig>, String> {
        let path = self.roots.display();
        let pem = fs::read(&self.roots).map_err(|error| format!("cannot read {path}: {error}"))?;
        trust::of(&pem).map_err(|error| format!("{path}: {error}"))
    }

    fn reason(&self, error: &Error) -> String {
        if let Error::Api(problem) = error {
            let kind = problem.r#type.as_deref().unwrap_or_default();
            if kind == "urn:ietf:params:acme:error:accountDoesNotExist" {
                self.shelf.forget_account(&self.directory);
            }
        }
        error.to_string()
    }
}

/// Proves each host, and waits for the authority to have looked.
async fn prove(order: &mut Order, challenges: &Challenges) -> Result<(), Error> {
    let mut posted = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        if authorization.status == AuthorizationStatus::Valid {
            // Proved not long ago.
            continue;
        }
        let mut challenge = authorization
            .challenge(ChallengeType::Http01)
            .ok_or("a proof by HTTP; the authority offers none")?;
        posted.push(challenges.post(&challenge.token, challenge.key_authorization().as_str()));
        challenge.set_ready().await?;
    }
    match order.poll_ready(&PATIENCE).await? {
        OrderStatus::Ready => Ok(()),
        _ => Err(refusal(order).await),
    }
}

/// Why the authority does not believe a proof.
async fn refusal(order: &mut Order) -> Error {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let Ok(state) = authorization.refresh().await else { continue };
        if let Some(problem) = state.challenges.iter().find_map(|one| one.error.clone()) {
            return problem.into();
        }
    }
    Error::Str("the reason for which the authority refuses")
}

/// What is to be certified (RFC 2986), as DER.
fn wish(hosts: &[String], key: &rcgen::KeyPair) -> Result<Vec<u8>, rcgen::Error> {
    let mut parameters = rcgen::CertificateParams::new(hosts)?;
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    Ok(parameters.serialize_request(key)?.der().to_vec())
}
