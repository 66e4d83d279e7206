//! Decides by whom another server must be vouched for.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore, crypto};
use tokio::task::spawn_blocking;

/// Where systems keep the certificates that all their programs trust.
const USUAL_ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The one whom the system trusts, read once.
static USUAL: OnceLock<Arc<ClientConfig>> = OnceLock::new();

/// Whom the system trusts, read at the first call.
///
/// # Errors
///
/// There is nobody, or they cannot be read.
pub(super) async fn usual() -> io::Result<Arc<ClientConfig>> {
    if let Some(known) = USUAL.get() {
        return Ok(Arc::clone(known));
    }
    // Not by `blocking`: whoever waits for this call may hold a place of those, perhaps the last.
    spawn_blocking(read_usual).await?.map_err(io::Error::other)
}

fn read_usual() -> Result<Arc<ClientConfig>, String> {
    let path = usual_roots().ok_or("this system has no roots to trust a server by: install its package `ca-certificates`, or say whom to trust by `Remote::roots`")?;
    let pem = std::fs::read(&path);
    let pem = pem.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let config = of(&pem).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Arc::clone(USUAL.get_or_init(|| config)))
}

/// The file of those whom the system trusts.
pub(crate) fn usual_roots() -> Option<PathBuf> {
    USUAL_ROOTS.iter().map(Path::new).find(|path| path.exists()).map(Path::to_owned)
}

/// Those in a file of PEM, and nobody else.
pub(crate) fn of(pem: &[u8]) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    // A system's collection may hold one that cannot be understood.
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(pem).flatten());
    if roots.is_empty() {
        return Err("there is no certificate (PEM) to trust a server by".to_owned());
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
