//! TLS: selects certificates, sets the negotiated parameters, and hands over connections whose
//! clients offer a protocol other than HTTP/1.1 (docs/decisions/0010).

mod buffers;
mod certificate;
mod client_hello;
mod handshake_queue;
mod handshakes;
mod session;
#[cfg(test)]
pub(crate) mod test_support;
mod tickets;

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{Accepted, ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, version};

use crate::address::ClientAddress;

use client_hello::offered_ticket;

pub(crate) use buffers::TlsBuffers;
pub use certificate::{BadCertificate, Certificate};
pub(crate) use handshake_queue::HandshakeQueue;
pub use handshakes::HandshakeMetrics;
pub(crate) use handshakes::{HandshakeLimits, Handshakes};
pub(crate) use session::{DetachedSession, Session};
pub use tickets::Tickets;

/// The ALPN names of HTTP/1.1 and HTTP/2 (RFC 7301 section 6, RFC 9113 section 3.2).
const HTTP_1: &[u8] = b"http/1.1";
const HTTP_2: &[u8] = b"h2";

/// TLS configuration of a server: versions 1.2 and 1.3, cipher suites with authenticated encryption
/// only, no renegotiation, no early data.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    /// The same, with HTTP/2 among the protocols.
    http2_config: Arc<ServerConfig>,
    hand_over: Option<Arc<dyn HandOver>>,
}

/// Selects the certificate for the host name that the client requests, or for a client that sends
/// no name (RFC 6066 section 3). The handshake fails when it returns `None`.
pub type Choice = Box<dyn Fn(Option<&str>) -> Option<Certificate> + Send + Sync>;

/// Receives the connections whose clients offer a protocol other than HTTP/1.1.
pub trait HandOver: Send + Sync {
    /// Returns ALPN names (RFC 7301 section 6) in order of preference. The server prefers each
    /// protocol to HTTP/1.1.
    fn protocols(&self) -> Vec<Vec<u8>>;

    /// Takes over a connection whose client offers such a protocol. Must not block: the thread that
    /// accepted the connection calls it.
    fn take(&self, departure: Departure);
}

/// A connection that the server has handed over and no longer counts.
pub struct Departure {
    /// The socket, in nonblocking mode.
    pub socket: OwnedFd,
    /// Address of the client.
    pub peer: ClientAddress,
    /// The complete `ClientHello`. The server has not answered it.
    pub accepted: Accepted,
    /// The TLS configuration to continue the handshake with.
    pub config: Arc<ServerConfig>,
}

impl Tls {
    /// Creates a configuration that selects certificates with `choice` and resumes sessions with
    /// `tickets`.
    pub fn new(choice: Choice, tickets: Arc<Tickets>) -> Self {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])
            // Cannot fail: the provider always has cipher suites for both versions.
            .expect("both versions have suites")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Resolver(choice)));
        config.alpn_protocols = vec![HTTP_1.to_vec()];
        config.ticketer = tickets;
        // Sessions resume by tickets only, so that memory depends on open connections alone.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Self { http2_config: with_http2(&config), config: Arc::new(config), hand_over: None }
    }

    /// Hands connections over to `hand_over` when the client offers a protocol that it supports.
    #[must_use]
    pub fn with_hand_over(mut self, hand_over: Arc<dyn HandOver>) -> Self {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = hand_over.protocols();
        config.alpn_protocols.push(HTTP_1.to_vec());
        self.http2_config = with_http2(&config);
        self.config = Arc::new(config);
        self.hand_over = Some(hand_over);
        self
    }

    /// The configuration of a session that may offer HTTP/2.
    const fn config(&self, offers_http2: bool) -> &Arc<ServerConfig> {
        if offers_http2 { &self.http2_config } else { &self.config }
    }

    /// Whether the `ClientHello` at the start of `received` offers a ticket that these keys have
    /// encrypted.
    fn can_open_ticket(&self, received: &[u8]) -> bool {
        // Both configurations have the same keys.
        offered_ticket(received)
            .is_some_and(|ticket| self.config.ticketer.decrypt(ticket).is_some())
    }

    /// Returns the receiver of the connection if `hello` offers a protocol that it supports.
    fn taker(&self, hello: &ClientHello<'_>) -> Option<&Arc<dyn HandOver>> {
        let hand_over = self.hand_over.as_ref()?;
        let known = hand_over.protocols();
        let is_known = |name: &[u8]| known.iter().any(|known| known == name);
        hello.alpn()?.any(is_known).then_some(hand_over)
    }
}

/// `config` with HTTP/2, which the server prefers to HTTP/1.1.
fn with_http2(config: &ServerConfig) -> Arc<ServerConfig> {
    let mut config = config.clone();
    let last = config.alpn_protocols.len() - 1;
    config.alpn_protocols.insert(last, HTTP_2.to_vec());
    Arc::new(config)
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
