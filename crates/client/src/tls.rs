//! TLS to origins: the trusted authorities, and one session over a socket.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, RootCertStore};
use tokio::net::TcpStream;

/// The encrypted bytes that one receive takes at most, and the plain ones that one send takes.
const PART_SIZE: usize = 64 << 10;

/// How connections to origins use TLS: 1.2 or 1.3, with HTTP/1.1 as the protocol. The certificate of an
/// origin is always verified. Sessions are resumed. A clone is cheap and shares them.
#[derive(Clone, Debug)]
pub struct OriginTls(Arc<ClientConfig>);

/// The reason why certificates cannot be used.
#[derive(Debug)]
pub enum BadOriginTls {
    /// There is no certificate of an authority.
    NoAuthority,
    /// There is no certificate to show to origins.
    NoCertificate,
    /// There is no private key for it.
    NoKey,
    /// Certificate and key do not belong together, or are of an unsupported kind.
    Unusable(rustls::Error),
}

/// A failure of TLS with an origin.
#[derive(Debug)]
pub struct TlsFault {
    /// The kind of failure.
    pub kind: TlsFaultKind,
    cause: String,
}

/// The kinds of [`TlsFault`] that have different remedies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlsFaultKind {
    /// The certificate is signed by no trusted authority.
    UnknownAuthority,
    /// The certificate is for other names.
    WrongName,
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The origin requires a certificate of its client, or does not trust the one that it got.
    ClientCertificate,
    /// The origin sent bytes that are not TLS.
    NotTls,
    /// Any other.
    Other,
}

/// One TLS session, from before its handshake.
#[derive(Debug)]
pub(crate) struct TlsSession {
    session: Box<ClientConnection>,
    /// Whether the origin has announced that it sends no more.
    has_ended: bool,
}

impl OriginTls {
    /// Trusts the authorities in this PEM text. `identity`: the certificate chain and the private key,
    /// in PEM, that this client shows to origins that ask for one.
    ///
    /// # Errors
    ///
    /// A part is missing or cannot be used.
    pub fn new(authorities: &[u8], identity: Option<(&[u8], &[u8])>) -> Result<Self, BadOriginTls> {
        let mut roots = RootCertStore::empty();
        // The collection of a system may contain certificates that cannot be parsed.
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(authorities).flatten());
        if roots.is_empty() {
            return Err(BadOriginTls::NoAuthority);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(BadOriginTls::Unusable)?
            .with_root_certificates(roots);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some((certificates, key)) => {
                let chain: Vec<_> =
                    CertificateDer::pem_slice_iter(certificates).flatten().collect();
                if chain.is_empty() {
                    return Err(BadOriginTls::NoCertificate);
                }
                let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| BadOriginTls::NoKey)?;
                builder.with_client_auth_cert(chain, key).map_err(BadOriginTls::Unusable)?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }
}

impl TlsSession {
    /// Begins a session with the origin whose certificate is for `host`, a name or an IP address.
    pub(crate) fn new(tls: &OriginTls, host: &str) -> io::Result<Self> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let session = ClientConnection::new(Arc::clone(&tls.0), name).map_err(io::Error::other)?;
        Ok(Self { session: Box::new(session), has_ended: false })
    }

    /// Completes the handshake.
    pub(crate) fn poll_handshake(
        &mut self,
        socket: &TcpStream,
        task: &mut Context<'_>,
        to: &mut Vec<u8>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_flush(socket, task))?;
            if !self.session.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            if ready!(self.poll_take(socket, task, to))? == 0 {
                let what = "it closed the connection in the TLS handshake";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, what)));
            }
        }
    }

    /// Encrypts a part of `bytes` and sends as much as the socket takes. Returns the length of the
    /// part; the rest of its bytes is sent by [`poll_flush`](Self::poll_flush) or the next call.
    pub(crate) fn poll_send(
        &mut self,
        socket: &TcpStream,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // At most one part is in memory, so that a slow origin slows its client down.
        ready!(self.poll_flush(socket, task))?;
        let part = &bytes[..bytes.len().min(PART_SIZE)];
        let count = self.session.writer().write(part)?;
        if let Poll::Ready(Err(error)) = self.poll_flush(socket, task) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(count))
    }

    /// Sends all encrypted bytes.
    pub(crate) fn poll_flush(
        &mut self,
        socket: &TcpStream,
        task: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            ready!(socket.poll_write_ready(task))?;
            match self.session.write_tls(&mut NonBlocking(socket)) {
                Err(error) if is_passing(&error) => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(_) => {}
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Appends received content to `to` and returns its length; 0: the origin has ended the session.
    pub(crate) fn poll_receive(
        &mut self,
        socket: &TcpStream,
        task: &mut Context<'_>,
        to: &mut Vec<u8>,
    ) -> Poll<io::Result<usize>> {
        let before = to.len();
        loop {
            // A failure to send shows in what the origin sends, or in its silence.
            let _ = self.poll_flush(socket, task);
            let count = ready!(self.poll_take(socket, task, to))?;
            if to.len() > before || count == 0 {
                return Poll::Ready(Ok(to.len() - before));
            }
        }
    }

    /// Whether an idle session can carry a request: the origin has sent neither content nor an end.
    pub(crate) fn is_usable(&mut self, socket: &TcpStream) -> bool {
        let mut content = Vec::new();
        loop {
            // New tickets for sessions may arrive after a response.
            match self.take(socket, &mut content) {
                Ok(1..) if content.is_empty() => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Ok(_) | Err(_) => return false,
            }
        }
        !self.session.wants_write()
    }

    /// Whether encrypted bytes wait for the socket.
    pub(crate) fn has_unsent(&self) -> bool {
        self.session.wants_write()
    }

    /// Announces that no more content follows.
    pub(crate) fn end(&mut self) {
        self.session.send_close_notify();
    }

    /// Receives encrypted bytes once and returns their number; 0: the origin has ended the session.
    fn poll_take(
        &mut self,
        socket: &TcpStream,
        task: &mut Context<'_>,
        to: &mut Vec<u8>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if self.has_ended {
                return Poll::Ready(Ok(0));
            }
            ready!(socket.poll_read_ready(task))?;
            match self.take(socket, to) {
                Err(error) if is_passing(&error) => {}
                taken => {
                    if taken.is_err() {
                        // The alert that tells the origin about it.
                        let _ = self.poll_flush(socket, task);
                    }
                    return Poll::Ready(taken);
                }
            }
        }
    }

    fn take(&mut self, socket: &TcpStream, to: &mut Vec<u8>) -> io::Result<usize> {
        thread_local! {
            /// Encrypted bytes between the socket and a session. Otherwise rustls reads 4 KiB at a time.
            static RECEIVED: RefCell<Vec<u8>> = RefCell::new(vec![0; PART_SIZE]);
        }
        RECEIVED.with_borrow_mut(|received| {
            let count = socket.try_read(received)?;
            let mut left = &received[..count];
            loop {
                let taken = self.session.read_tls(&mut left)?;
                let state = self.session.process_new_packets().map_err(io::Error::other)?;
                let before = to.len();
                to.resize(before + state.plaintext_bytes_to_read(), 0);
                self.session.reader().read_exact(&mut to[before..])?;
                if state.peer_has_closed() {
                    self.has_ended = true;
                    return Ok(0);
                }
                if taken == 0 {
                    let what = "it closed the connection without the end of its TLS session";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
                }
                if left.is_empty() {
                    return Ok(count);
                }
            }
        })
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// A socket whose writes never wait.
struct NonBlocking<'s>(&'s TcpStream);

impl Write for NonBlocking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsFault {
    /// The failure of TLS that is the cause of `error`, if any.
    pub fn of(error: &io::Error) -> Option<Self> {
        use TlsFaultKind as Kind;
        let fault = error.get_ref()?.downcast_ref::<rustls::Error>()?;
        let kind = match fault {
            rustls::Error::InvalidCertificate(reason) => match reason {
                // A bad signature is one of another authority with the same name.
                CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                    Kind::UnknownAuthority
                }
                CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => Kind::WrongName,
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                    Kind::Expired
                }
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    Kind::NotYetValid
                }
                _ => Kind::Other,
            },
            rustls::Error::AlertReceived(
                AlertDescription::CertificateRequired
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA,
            ) => Kind::ClientCertificate,
            rustls::Error::InvalidMessage(_) => Kind::NotTls,
            _ => Kind::Other,
        };
        Some(Self { kind, cause: fault.to_string() })
    }
}

impl fmt::Display for TlsFault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            TlsFaultKind::UnknownAuthority => "no trusted authority has signed its certificate",
            TlsFaultKind::WrongName => "its certificate is for another name",
            TlsFaultKind::Expired => "its certificate has expired",
            TlsFaultKind::NotYetValid => "its certificate is not valid yet",
            TlsFaultKind::ClientCertificate => {
                "it accepts no client without a certificate that it trusts"
            }
            TlsFaultKind::NotTls => "it does not use TLS",
            TlsFaultKind::Other => "TLS failed",
        };
        write!(to, "{what} ({})", self.cause)
    }
}

impl std::error::Error for TlsFault {}

impl fmt::Display for BadOriginTls {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAuthority | Self::NoCertificate => {
                to.write_str("there is no certificate in PEM format")
            }
            Self::NoKey => to.write_str("there is no private key in PEM format"),
            Self::Unusable(error) => write!(to, "certificate and key cannot be used: {error}"),
        }
    }
}

impl std::error::Error for BadOriginTls {}
