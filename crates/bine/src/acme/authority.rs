//! The ACME protocol (RFC 8555 section 7): an account, an order, an HTTP challenge for each host,
//! and the certificate.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use instant_acme::{
    Account, AuthorizationStatus, ChallengeType, Error, Identifier, NewAccount, NewOrder, Order,
    OrderStatus, RetryPolicy,
};
use rustls::ClientConfig;

use super::call::AuthorityClient;
use super::challenges::Challenges;
use super::store::{self, CertificateStore};
use crate::remote::trust;

/// A certificate authority, and the account there.
#[derive(Clone, Debug)]
pub(super) struct Authority {
    /// The address of its directory.
    pub(super) directory: String,
    /// The contact address.
    pub(super) email: Option<String>,
    /// The root certificates to trust for the authority itself, PEM.
    pub(super) roots: PathBuf,
    pub(super) store: CertificateStore,
}

/// The polling of challenges and certificates: after a quarter of a second, then after twice as
/// long each time.
const PATIENCE: RetryPolicy = RetryPolicy::new().timeout(Duration::from_mins(2));

/// The system's file of trusted root certificates.
///
/// # Errors
///
/// Returns an error if the system has no such file.
pub(super) fn default_roots() -> Result<PathBuf, String> {
    trust::usual_roots().ok_or_else(|| {
        "this system has no root certificates: install the package `ca-certificates`, or set `acme-roots`".to_owned()
    })
}

impl Authority {
    /// Gets a certificate with its chain and its new key, as PEM. Answers challenges at
    /// `challenges` meanwhile.
    ///
    /// # Errors
    ///
    /// Returns the reason, in words for the operator of the server.
    pub(super) async fn certify(
        &self,
        hosts: &[String],
        challenges: &Challenges,
    ) -> Result<String, String> {
        let account = self.account().await?;
        let reason = |error: Error| self.reason(&error);
        let identifiers: Vec<_> = hosts.iter().cloned().map(Identifier::Dns).collect();
        let mut order = account.new_order(&NewOrder::new(&identifiers)).await.map_err(reason)?;
        prove(&mut order, challenges).await.map_err(reason)?;
        let key = rcgen::KeyPair::generate().map_err(|error| error.to_string())?;
        let request = signing_request(hosts, &key).map_err(|error| error.to_string())?;
        order.finalize_csr(&request).await.map_err(reason)?;
        let chain = order.poll_certificate(&PATIENCE).await.map_err(reason)?;
        Ok(chain + &key.serialize_pem())
    }

    /// The account. The first certificate creates it.
    async fn account(&self) -> Result<Account, String> {
        let reason = |error: Error| self.reason(&error);
        let config = self.trust()?;
        let builder = Account::builder_with_http(Box::new(AuthorityClient { config }));
        let address = self.email.as_ref().map(|email| format!("mailto:{email}"));
        let contact: Vec<&str> = address.as_deref().into_iter().collect();
        if let Some(known) = self.store.account(&self.directory) {
            let is_same = known.email == self.email;
            let account = builder.from_credentials(known.credentials).await.map_err(reason)?;
            if !is_same {
                account.update_contacts(&contact).await.map_err(reason)?;
                // The credentials are loaded again because they cannot be cloned.
                if let Some(known) = self.store.account(&self.directory) {
                    self.keep(known.credentials)?;
                }
            }
            return Ok(account);
        }
        let request = NewAccount {
            contact: &contact,
            // The documentation of `tls = "acme"` states this.
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let (account, credentials) =
            builder.create(&request, self.directory.clone(), None).await.map_err(reason)?;
        self.keep(credentials)?;
        Ok(account)
    }

    fn keep(&self, credentials: instant_acme::AccountCredentials) -> Result<(), String> {
        let account = store::AcmeAccount { credentials, email: self.email.clone() };
        self.store.keep_account(&self.directory, &account)
    }

    /// The TLS configuration for connections to the authority.
    fn trust(&self) -> Result<Arc<ClientConfig>, String> {
        let path = self.roots.display();
        let pem = fs::read(&self.roots).map_err(|error| format!("cannot read {path}: {error}"))?;
        trust::of(&pem).map_err(|error| format!("{path}: {error}"))
    }

    fn reason(&self, error: &Error) -> String {
        if let Error::Api(problem) = error {
            let kind = problem.r#type.as_deref().unwrap_or_default();
            if kind == "urn:ietf:params:acme:error:accountDoesNotExist" {
                self.store.forget_account(&self.directory);
            }
        }
        error.to_string()
    }
}

/// Answers the challenge of each host, and waits until the authority has checked all.
async fn prove(order: &mut Order, challenges: &Challenges) -> Result<(), Error> {
    let mut posted = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        if authorization.status == AuthorizationStatus::Valid {
            // The host was verified recently.
            continue;
        }
        let mut challenge = authorization
            .challenge(ChallengeType::Http01)
            .ok_or("an HTTP challenge; the authority offers none")?;
        posted.push(challenges.post(&challenge.token, challenge.key_authorization().as_str()));
        challenge.set_ready().await?;
    }
    match order.poll_ready(&PATIENCE).await? {
        OrderStatus::Ready => Ok(()),
        _ => Err(refusal(order).await),
    }
}

/// The authority's reason to reject a challenge.
async fn refusal(order: &mut Order) -> Error {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let Ok(state) = authorization.refresh().await else { continue };
        if let Some(problem) = state.challenges.iter().find_map(|one| one.error.clone()) {
            return problem.into();
        }
    }
    Error::Str("the authority's reason for its rejection")
}

/// Creates a certificate signing request (RFC 2986), as DER.
fn signing_request(hosts: &[String], key: &rcgen::KeyPair) -> Result<Vec<u8>, rcgen::Error> {
    let mut parameters = rcgen::CertificateParams::new(hosts)?;
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    Ok(parameters.serialize_request(key)?.der().to_vec())
}
