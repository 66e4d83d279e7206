//! A TLS session over a socket pair, with its client in the same thread.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::{Certificate, HandshakeLimits, Handshakes, Session, Tickets, Tls, provider};
use crate::address::ClientAddress;
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
        let mut roots = RootCertStore::empty();
        roots.add(certificate().1.clone().into()).unwrap();
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = ServerName::try_from("localhost").unwrap();
        let client = ClientConnection::new(Arc::new(config), name).unwrap();
        let (socket, stream) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        let handshakes = Arc::new(Handshakes::new(HandshakeLimits::new(8, 0)));
        let block = ClientAddress::UNIX.block();
        let (tls, buffers) = (Arc::new(tls), Rc::default());
        let session = Session::new((tls, false), buffers, Arc::clone(&handshakes), block);
        Self { session, socket: socket.into(), client, stream, handshakes }
    }

    /// A pair after the handshake.
    pub(crate) fn open() -> Self {
        let mut pair = Self::new(tls(), &["http/1.1"]);
        for _ in 0..3 {
            pair.send_all();
            assert_eq!(pair.receive(), (String::new(), Transfer::Again));
            pair.client_reads().unwrap();
        }
        assert!(!pair.client.is_handshaking() && !pair.session.is_shaking_hands());
        pair
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
