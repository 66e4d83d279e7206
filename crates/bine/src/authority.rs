//! The interface between TLS and a certificate authority.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use bine_server::tls::Certificate;

use crate::acme_choices::AcmeChoices;

/// Orders certificates and keeps them valid.
pub(crate) trait CertificateAuthority: Send + Sync {
    /// Plans a certificate for each of `hosts`, and returns the current ones, which are stored in
    /// the data folder. Nothing is ordered before [`pursue`](Self::pursue).
    ///
    /// # Errors
    ///
    /// Returns the missing setting and how to add it.
    fn plan(
        &self,
        choices: &AcmeChoices,
        data: &Path,
        hosts: Vec<Vec<String>>,
    ) -> Result<(CertificatePlan, Vec<Arc<dyn ChangingCertificate>>), String>;

    /// Follows this plan instead of any before; `None`: stops ordering.
    ///
    /// # Errors
    ///
    /// The thread for it cannot be created.
    fn pursue(&self, plan: Option<CertificatePlan>) -> Result<(), String>;

    /// The response to the authority's challenge at this request target, if it is one.
    fn proof(&self, target: &str) -> Option<String>;
}

/// The certificates to order for one configuration: a value of the authority's own.
pub(crate) type CertificatePlan = Box<dyn Any>;

/// A certificate that an authority renews.
pub(crate) trait ChangingCertificate: Send + Sync {
    /// The latest one.
    fn certificate(&self) -> Certificate;
}
