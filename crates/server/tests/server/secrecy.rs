//! TLS for tests: generated certificates, and a client that trusts them.

use std::net::TcpStream;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, ProtocolVersion, RootCertStore, StreamOwned,
    SupportedProtocolVersion, version,
};

use bine_server::tls::{Certificate, Choice, Tickets, Tls};
use bine_server::{Listen, Settings, Timeouts};

use crate::house::settings;

/// A generated certificate and its key, for one host.
pub(crate) struct Made {
    pub(crate) certificate: Certificate,
    der: Vec<u8>,
}

impl Made {
    pub(crate) fn for_host(host: &str) -> Self {
        let made = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let certificate = Certificate::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
        Self { certificate, der: made.cert.der().to_vec() }
    }

    /// The default certificate, which all tests share.
    pub(crate) fn usual() -> &'static Self {
        static MADE: OnceLock<Made> = OnceLock::new();
        MADE.get_or_init(|| Self::for_host("localhost"))
    }

    /// The choice that presents this certificate for every host.
    pub(crate) fn choice(&self) -> Choice {
        let certificate = self.certificate.clone();
        Box::new(move |_| Some(certificate.clone()))
    }
}

/// The TLS configuration with the default certificate.
pub(crate) fn tls() -> Tls {
    Tls::new(Made::usual().choice(), Arc::new(Tickets::passing()))
}

/// The settings of a TLS server.
pub(crate) fn secret(scheduler: &str, tls: Tls) -> Settings {
    let plain = settings(scheduler);
    let secure = |listen: &Listen| Listen { tls: true, ..listen.clone() };
    let listeners = plain.listeners.iter().map(secure).collect();
    // Handshakes that a test leaves unfinished stay so.
    let timeouts = Timeouts { handshake: Duration::from_hours(1), ..plain.timeouts };
    Settings { listeners, timeouts, tls: Some(Arc::new(tls)), ..plain }
}

/// A client's TLS configuration: trusted certificates and saved sessions.
#[derive(Clone)]
pub(crate) struct Trust(Arc<ClientConfig>);

impl Trust {
    pub(crate) fn usual() -> Self {
        Self::in_these(&[Made::usual()], &[&version::TLS13, &version::TLS12])
    }

    pub(crate) fn in_these(
        those: &[&Made],
        versions: &[&'static SupportedProtocolVersion],
    ) -> Self {
        Self::with_provider(those, versions, ring::default_provider())
    }

    /// Offers first the cipher suites whose names contain `word`, then the others.
    pub(crate) fn preferring(word: &str, version: &'static SupportedProtocolVersion) -> Self {
        let mut provider = ring::default_provider();
        provider.cipher_suites.sort_by_key(|suite| !format!("{:?}", suite.suite()).contains(word));
        Self::with_provider(&[Made::usual()], &[version], provider)
    }

    fn with_provider(
        those: &[&Made],
        versions: &[&'static SupportedProtocolVersion],
        provider: CryptoProvider,
    ) -> Self {
        let mut roots = RootCertStore::empty();
        for made in those {
            roots.add(made.der.clone().into()).unwrap();
        }
        let config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self(Arc::new(config))
    }

    /// Offers these ALPN protocols.
    pub(crate) fn offering(mut self, protocols: &[&str]) -> Self {
        let names = protocols.iter().map(|name| name.as_bytes().to_vec());
        Arc::make_mut(&mut self.0).alpn_protocols = names.collect();
        self
    }

    /// Starts TLS as a client on `stream`, and requests `host`.
    pub(crate) fn over(&self, stream: TcpStream, host: &str) -> Secure {
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let connection = ClientConnection::new(Arc::clone(&self.0), name).unwrap();
        Secure(StreamOwned::new(connection, stream))
    }
}

/// A TLS stream.
pub(crate) struct Secure(pub(crate) StreamOwned<ClientConnection, TcpStream>);

impl Secure {
    pub(crate) fn is_resumed(&self) -> bool {
        self.0.conn.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    pub(crate) fn version(&self) -> Option<ProtocolVersion> {
        self.0.conn.protocol_version()
    }

    /// Returns the name of the negotiated cipher suite.
    pub(crate) fn suite(&self) -> String {
        let suite = self.0.conn.negotiated_cipher_suite();
        suite.map(|suite| format!("{:?}", suite.suite())).unwrap_or_default()
    }

    /// Returns the negotiated ALPN protocol.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.0.conn.alpn_protocol()
    }

    /// Sends `close_notify`.
    pub(crate) fn finish(&mut self) {
        self.0.conn.send_close_notify();
        while self.0.conn.wants_write() {
            self.0.conn.write_tls(&mut self.0.sock).unwrap();
        }
    }
}
