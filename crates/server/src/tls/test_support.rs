//! A TLS session over a socket pair, with its client in the same thread.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion, version};

use super::{
    Certificate, HandshakeLimits, Handshakes, Session, Tickets, Tls, TlsBuffers, provider,
};
use crate::address::{AddressBlock, ClientAddress};
use crate::system::Transfer;

/// The certificate and its DER encoding, which all tests share.
fn certificate() -> &'static (Certificate, Vec<u8>) {
    static MADE: OnceLock<(Certificate, Vec<u8>)> = OnceLock::new();
    MADE.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let certificate = Certificate::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
        (certificate, made.cert.der().to_vec())
    })
}

pub(crate) fn tls() -> Tls {
    let certificate = certificate().0.clone();
    Tls::new(Box::new(move |_| Some(certificate.clone())), Arc::new(Tickets::passing()))
}

/// Clients of one thread. They save their sessions, and offer to resume the last one.
pub(crate) struct TlsClients {
    pub(crate) tls: Arc<Tls>,
    pub(crate) config: ClientConfig,
    pub(crate) buffers: Rc<TlsBuffers>,
    pub(crate) handshakes: Arc<Handshakes>,
}

impl TlsClients {
    pub(crate) fn new(
        tls: Tls,
        versions: &[&'static SupportedProtocolVersion],
        limits: HandshakeLimits,
    ) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(certificate().1.clone().into()).unwrap();
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let handshakes = Arc::new(Handshakes::new(limits));
        Self { tls: Arc::new(tls), config, buffers: Rc::default(), handshakes }
    }

    pub(crate) fn connect(&self, block: AddressBlock) -> TlsPair {
        let name = ServerName::try_from("localhost").unwrap();
        let client = ClientConnection::new(Arc::new(self.config.clone()), name).unwrap();
        let (socket, stream) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        let (tls, buffers) = (Arc::clone(&self.tls), Rc::clone(&self.buffers));
        let session = Session::new((tls, false), buffers, Arc::clone(&self.handshakes), block);
        let handshakes = Arc::clone(&self.handshakes);
        TlsPair { session, socket: socket.into(), client, stream, handshakes }
    }
}

/// A session and its client.
pub(crate) struct TlsPair {
    pub(crate) session: Session,
    pub(crate) socket: OwnedFd,
    pub(crate) client: ClientConnection,
    pub(crate) stream: UnixStream,
    pub(crate) handshakes: Arc<Handshakes>,
}

impl TlsPair {
    pub(crate) fn new(tls: Tls, protocols: &[&str]) -> Self {
        let versions = [&version::TLS13, &version::TLS12];
        let mut clients = TlsClients::new(tls, &versions, HandshakeLimits::new(8, 0));
        clients.config.alpn_protocols =
            protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        clients.connect(ClientAddress::UNIX.block())
    }

    /// A pair after the handshake.
    pub(crate) fn open() -> Self {
        let mut pair = Self::new(tls(), &["http/1.1"]);
        pair.complete();
        pair
    }

    /// Completes the handshake. The client receives its tickets.
    pub(crate) fn complete(&mut self) {
        for _ in 0..3 {
            self.send_all();
            assert_eq!(self.receive(), (String::new(), Transfer::Again));
            self.client_reads().unwrap();
        }
        assert!(!self.client.is_handshaking() && !self.session.is_shaking_hands());
    }

    /// The encrypted bytes that the client wants to send.
    pub(crate) fn encrypted(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    pub(crate) fn encrypt(&mut self, content: &[u8]) -> Vec<u8> {
        self.client.writer().write_all(content).unwrap();
        self.encrypted()
    }

    pub(crate) fn send_all(&mut self) {
        let bytes = self.encrypted();
        self.stream.write_all(&bytes).unwrap();
    }

    /// Receives into `space` until there is nothing more: the content, and the last result.
    pub(crate) fn receive_into(&mut self, space: &mut [u8]) -> (String, Transfer) {
        let mut content = Vec::new();
        loop {
            match self.session.receive(&self.socket, space) {
                Transfer::Moved(count) => content.extend_from_slice(&space[..count]),
                end => return (String::from_utf8(content).unwrap(), end),
            }
        }
    }

    pub(crate) fn receive(&mut self) -> (String, Transfer) {
        self.receive_into(&mut vec![0; 20_000])
    }

    /// The bytes that have arrived at the client.
    pub(crate) fn arrived(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.stream.read_to_end(&mut bytes) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{error}"),
            _ => bytes,
        }
    }

    /// Decrypts what has arrived at the client. Returns the content, or the alert.
    pub(crate) fn client_reads(&mut self) -> Result<Vec<u8>, rustls::Error> {
        let arrived = self.arrived();
        let (mut arrived, mut content) = (&arrived[..], Vec::new());
        while !arrived.is_empty() {
            self.client.read_tls(&mut arrived).unwrap();
            self.client.process_new_packets()?;
            match self.client.reader().read_to_end(&mut content) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{error}"),
                _ => {}
            }
        }
        Ok(content)
    }

    pub(crate) fn under_way(&self) -> u64 {
        self.handshakes.metrics().under_way
    }
}
