//! The certificates that remote servers must be trusted by.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore, crypto};
use tokio::task::spawn_blocking;

/// Paths at which systems store their trusted certificates.
const SYSTEM_ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The configuration with the system's certificates, read once.
static SYSTEM: OnceLock<Arc<ClientConfig>> = OnceLock::new();

/// The configuration with the system's certificates, which the first call reads.
///
/// # Errors
///
/// The system has no certificates, or they cannot be read.
pub(super) async fn system_config() -> io::Result<Arc<ClientConfig>> {
    if let Some(known) = SYSTEM.get() {
        return Ok(Arc::clone(known));
    }
    // Not on the pool of `blocking`: the caller may itself hold a thread of that pool, perhaps the
    // last one.
    spawn_blocking(read_system).await?.map_err(io::Error::other)
}

fn read_system() -> Result<Arc<ClientConfig>, String> {
    let path = usual_roots().ok_or("this system has no trusted certificates: install the package `ca-certificates`, or pass certificates to `Remote::roots`")?;
    let pem = std::fs::read(&path);
    let pem = pem.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let config = of(&pem).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Arc::clone(SYSTEM.get_or_init(|| config)))
}

/// The path of the system's certificates.
pub(crate) fn usual_roots() -> Option<PathBuf> {
    SYSTEM_ROOTS.iter().map(Path::new).find(|path| path.exists()).map(Path::to_owned)
}

/// A configuration that trusts only the certificates in this PEM text.
pub(crate) fn of(pem: &[u8]) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    // A system's collection may contain certificates that cannot be parsed.
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(pem).flatten());
    if roots.is_empty() {
        return Err("there is no certificate in this PEM text".to_owned());
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
