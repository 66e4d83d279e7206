//! Decides how connections are kept secret: which certificate is shown to whom, what is agreed on, and
//! who takes a connection that agrees on another protocol (docs/decisions/0010).

mod buffers;
mod certificate;
mod handshakes;
mod session;
mod tickets;

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{Accepted, ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, version};

use crate::address::Peer;

pub(crate) use buffers::TlsBuffers;
pub use certificate::{BadCertificate, Certificate};
pub use handshakes::HandshakeMetrics;
pub(crate) use handshakes::{HandshakeLimits, Handshakes};
pub(crate) use session::{DetachedSession, Session};
pub use tickets::Tickets;

/// The protocol that is spoken here (RFC 7301 section 6).
const HTTP_1: &[u8] = b"http/1.1";

/// What a server needs to be spoken to in secret. TLS 1.2 and 1.3, suites with authenticated encryption
/// only, no renegotiation, no early data.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    hand_over: Option<Arc<dyn HandOver>>,
}

/// Says which certificate a peer is shown that asks for this host, or for none in particular (RFC 6066
/// section 3). With `None` its handshake fails.
pub type Choice = Box<dyn Fn(Option<&str>) -> Option<Certificate> + Send + Sync>;

/// Takes the connections that agree on another protocol than HTTP/1.1.
pub trait HandOver: Send + Sync {
    /// The names of its protocols (RFC 7301 section 6), the preferred one first; all of them are preferred
    /// to HTTP/1.1.
    fn protocols(&self) -> Vec<Vec<u8>>;

    /// Takes one whose peer offers such a protocol, on the thread that accepted it: this must not block.
    fn take(&self, departure: Departure);
}

/// A connection that has left the server. It no longer counts among its connections.
pub struct Departure {
    /// The socket; its calls do not wait.
    pub socket: OwnedFd,
    /// Who came.
    pub peer: Peer,
    /// What was received: the whole `ClientHello`. Nothing has been answered.
    pub accepted: Accepted,
    /// What to answer it with.
    pub config: Arc<ServerConfig>,
}

impl Tls {
    /// Serves the certificates that `choice` says; resumption goes by `tickets`.
    pub fn new(choice: Choice, tickets: Arc<Tickets>) -> Self {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])
            // The provider has suites for both versions: this is a constant.
            .expect("both versions have suites")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Resolver(choice)));
        config.alpn_protocols = vec![HTTP_1.to_vec()];
        config.ticketer = tickets;
        // What a ticket cannot resume is not kept here either: memory follows connections alone.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Self { config: Arc::new(config), hand_over: None }
    }

    /// The same, but peers that offer a protocol of `hand_over` are its own.
    #[must_use]
    pub fn with_hand_over(mut self, hand_over: Arc<dyn HandOver>) -> Self {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = hand_over.protocols();
        config.alpn_protocols.push(HTTP_1.to_vec());
        self.config = Arc::new(config);
        self.hand_over = Some(hand_over);
        self
    }

    /// Who takes a connection whose peer says this, if it is not ours.
    fn taker(&self, hello: &ClientHello<'_>) -> Option<&Arc<dyn HandOver>> {
        let hand_over = self.hand_over.as_ref()?;
        let known = hand_over.protocols();
        let is_known = |name: &[u8]| known.iter().any(|known| known == name);
        hello.alpn()?.any(is_known).then_some(hand_over)
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

struct Resolver(Choice);

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        (self.0)(hello.server_name()).map(Certificate::into_key)
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
