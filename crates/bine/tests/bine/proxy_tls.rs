//! Origins of the reverse proxy with TLS: real certificates, and each reason to reject one.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::harness::{Folder, KINDS, PATIENCE};
use crate::proxy::{peak_memory, start};

/// An authority that signs certificates.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: Folder,
}

/// A certificate with its key.
struct Signed {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Authority {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let name = format!("authority {}", COUNT.fetch_add(1, Ordering::SeqCst));
        params.distinguished_name.push(DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = Folder::new();
        folder.write("authority.pem", issuer.pem().as_bytes());
        Self { issuer, folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.join("authority.pem")
    }

    /// Signs a certificate for `host`, which expires at the beginning of `last_year`.
    fn sign(&self, host: &str, last_year: i32) -> Signed {
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, host);
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(last_year, 1, 1);
        let key = KeyPair::generate().unwrap();
        Signed { certificate: params.signed_by(&key, &self.issuer).unwrap(), key }
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        Arc::new(roots)
    }
}

type TlsStream = StreamOwned<ServerConnection, TcpStream>;

/// An origin with TLS, whose every response a function writes. It returns false to close the connection.
struct SecureOrigin {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    /// How each handshake was done.
    handshakes: Arc<Mutex<Vec<HandshakeKind>>>,
}

impl SecureOrigin {
    /// `clients`: the authority of the certificates that clients must show.
    fn new(
        signed: &Signed,
        clients: Option<&Authority>,
        answer: impl Fn(&str, &mut TlsStream) -> bool + Send + Sync + 'static,
    ) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(authority.roots(), provider)
                    .build()
                    .unwrap(),
            ),
        };
        let key = PrivateKeyDer::Pkcs8(signed.key.serialize_der().into());
        let mut config =
            builder.with_single_cert(vec![signed.certificate.der().clone()], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            handshakes: Arc::default(),
        };
        let (config, answer) = (Arc::new(config), Arc::new(answer));
        let (connections, handshakes) =
            (Arc::clone(&origin.connections), Arc::clone(&origin.handshakes));
        // The thread ends with the process of the test.
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (socket, answer) = (socket.unwrap(), Arc::clone(&answer));
                connections.fetch_add(1, Ordering::SeqCst);
                socket.set_read_timeout(Some(PATIENCE)).unwrap();
                let session = ServerConnection::new(Arc::clone(&config)).unwrap();
                let handshakes = Arc::clone(&handshakes);
                thread::spawn(move || {
                    let mut stream = StreamOwned::new(session, socket);
                    while let Some(head) = read_head(&mut stream) {
                        assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
                        handshakes.lock().unwrap().extend(stream.conn.handshake_kind());
                        if !answer(&head, &mut stream) {
                            stream.conn.send_close_notify();
                            let _ = stream.flush();
                            return;
                        }
                    }
                });
            }
        });
        origin
    }

    /// A rule for this origin by `name`, with the certificates of `authority`.
    fn rule(&self, name: &str, authority: &Authority, more: &str) -> String {
        let (port, file) = (self.address.port(), authority.file());
        format!("path=/ to=https://{name}:{port} origin-authority={} {more}", file.display())
    }
}

/// Reads a head; `None`: the connection has ended.
fn read_head(stream: &mut impl Read) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    Some(String::from_utf8(head).unwrap())
}

/// Answers with the request line; a POST with the length and the sum of its content.
fn echo(head: &str, stream: &mut TlsStream) -> bool {
    let line = head.lines().next().unwrap();
    let mut told = line.to_owned();
    if let Some((_, rest)) = head.split_once("\r\nContent-Length: ") {
        let mut left: usize = rest.split("\r\n").next().unwrap().parse().unwrap();
        let (length, mut sum, mut space) = (left, 0, vec![0; 64 << 10]);
        while left > 0 {
            let most = left.min(space.len());
            let count = stream.read(&mut space[..most]).unwrap();
            assert!(count > 0, "the content breaks off");
            sum += space[..count].iter().map(|byte| u64::from(*byte)).sum::<u64>();
            left -= count;
        }
        told = format!("{line} {length} {sum}");
    }
    let length = told.len();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{told}").unwrap();
    stream.flush().is_ok()
}

#[test]
fn proxies_over_kept_connections_with_tls() {
    let authority = Authority::new();
    for (host, scheduler) in ["localhost", "127.0.0.1", "localhost"].into_iter().zip(KINDS) {
        let origin = SecureOrigin::new(&authority.sign(host, 2099), None, echo);
        let rule = origin.rule(host, &authority, "");
        let program = start(&["--scheduler", scheduler, "--proxy", &rule]);
        let mut peer = program.connect();
        for count in 0..5 {
            let told = format!("GET /{count} HTTP/1.1");
            assert_eq!(peer.get(&format!("/{count}")).text(), told, "{host}, {scheduler}");
        }
        assert_eq!(origin.connections.load(Ordering::SeqCst), 1, "{scheduler}");
    }
}

#[test]
fn streams_content_in_both_directions_over_tls() {
    const LENGTH: usize = 32_000_000;
    let authority = Authority::new();
    let origin = SecureOrigin::new(&authority.sign("localhost", 2099), None, |head, stream| {
        if head.starts_with("POST") {
            return echo(head, stream);
        }
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n").unwrap();
        (0..LENGTH / 8000).for_each(|_| stream.write_all(&[b'x'; 8000]).unwrap());
        stream.flush().is_ok()
    });
    let program = start(&["--proxy", &origin.rule("localhost", &authority, "")]);
    let mut peer = program.connect();
    assert_eq!(peer.get("/own").text(), "own page");
    let before = peak_memory(program.id());
    for _ in 0..2 {
        let told = peer.request("POST", "/up", "", &"y".repeat(LENGTH));
        let sum = LENGTH as u64 * u64::from(b'y');
        assert_eq!(told.text(), format!("POST /up HTTP/1.1 {LENGTH} {sum}"));
        let reply = peer.get("/down");
        assert!(reply.text().len() == LENGTH && reply.text().bytes().all(|byte| byte == b'x'));
    }
    assert_eq!(origin.connections.load(Ordering::SeqCst), 1);
    let grown = peak_memory(program.id()) - before;
    assert!(grown < 8 << 10, "it has grown by {grown} KiB");
}

#[test]
fn resumes_the_session_of_an_origin() {
    let authority = Authority::new();
    let origin = SecureOrigin::new(&authority.sign("localhost", 2099), None, echo);
    let rule = origin.rule("localhost", &authority, "kept=0");
    let program = start(&["--loops", "1", "--proxy", &rule]);
    let mut peer = program.connect();
    for _ in 0..3 {
        assert_eq!(peer.get("/").status(), 200);
    }
    let kinds = origin.handshakes.lock().unwrap().clone();
    assert_eq!(kinds, [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed]);
}

#[test]
fn answers_502_and_names_the_reason_why_a_certificate_is_rejected() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let origin = |host: &str, last_year, clients| {
        SecureOrigin::new(&authority.sign(host, last_year), clients, echo)
    };
    let usual = origin("localhost", 2099, None);
    let expired = origin("localhost", 2001, None);
    let strict = origin("localhost", 2099, Some(&authority));
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let plain_port = plain.local_addr().unwrap().port();
    thread::spawn(move || {
        for socket in plain.incoming() {
            let mut socket = socket.unwrap();
            let _ = socket.read(&mut [0; 4096]);
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let plain_rule = format!(
        "path=/ to=https://localhost:{plain_port} origin-authority={}",
        authority.file().display()
    );
    for (rule, expected) in [
        (
            usual.rule("localhost", &stranger, ""),
            "no trusted authority has signed its certificate (invalid peer certificate: UnknownIssuer): name the file with the certificate of its authority by `origin-authority`",
        ),
        (usual.rule("127.0.0.1", &authority, ""), "its certificate is for another name ("),
        (expired.rule("localhost", &authority, ""), "its certificate has expired ("),
        (
            strict.rule("localhost", &authority, ""),
            "it accepts no client without a certificate that it trusts (",
        ),
        (plain_rule, "it does not use TLS ("),
    ] {
        let program = start(&["--proxy", &rule]);
        assert_eq!(program.connect().get("/").status(), 502, "{rule}");
        let told = program.stop().errors;
        assert!(told.contains(expected), "{expected} is not in {told}");
    }
}

#[test]
fn trusts_only_the_authorities_of_the_system_without_a_file() {
    let authority = Authority::new();
    let origin = SecureOrigin::new(&authority.sign("localhost", 2099), None, echo);
    let rule = format!("path=/ to=https://localhost:{}", origin.address.port());
    let program = start(&["--proxy", &rule]);
    assert_eq!(program.connect().get("/").status(), 502);
    assert!(program.stop().errors.contains("no trusted authority has signed its certificate"));
}

#[test]
fn shows_its_certificate_to_an_origin_that_asks_for_one() {
    let authority = Authority::new();
    let own = authority.sign("bine", 2099);
    authority.folder.write("bine.pem", own.certificate.pem().as_bytes());
    authority.folder.write("bine.key", own.key.serialize_pem().as_bytes());
    let origin = SecureOrigin::new(&authority.sign("localhost", 2099), Some(&authority), echo);
    // Paths in a file are relative to its folder.
    let text = format!(
        "[[proxy]]\nto = \"https://localhost:{}\"\norigin-authority = \"authority.pem\"\norigin-certificate = \"bine.pem\"\norigin-certificate-key = \"bine.key\"\n",
        origin.address.port()
    );
    let file = authority.folder.write("bine.toml", text.as_bytes());
    let program = start(&["--config", file.to_str().unwrap()]);
    assert_eq!(program.connect().get("/").text(), "GET / HTTP/1.1");
}

#[test]
fn detects_content_that_ends_without_the_end_of_the_session() {
    let authority = Authority::new();
    let origin = SecureOrigin::new(&authority.sign("localhost", 2099), None, |head, stream| {
        write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it").unwrap();
        stream.flush().unwrap();
        if head.starts_with("GET /cut ") {
            stream.sock.shutdown(std::net::Shutdown::Both).unwrap();
        }
        false
    });
    let program = start(&["--proxy", &origin.rule("localhost", &authority, "")]);
    assert_eq!(program.connect().get("/whole").text(), "all of it");
    let mut peer = program.connect();
    peer.send("GET /cut HTTP/1.1\r\nHost: a\r\n\r\n");
    let received = String::from_utf8(peer.rest()).unwrap();
    assert!(received.contains("all of it") && !received.ends_with("0\r\n\r\n"), "{received}");
}

#[test]
fn checks_origins_and_tunnels_upgrades_over_tls() {
    let authority = Authority::new();
    let checks = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&checks);
    let origin =
        SecureOrigin::new(&authority.sign("localhost", 2099), None, move |head, stream| {
            if !head.contains("\r\nUpgrade: ") {
                let is_kept = echo(head, stream);
                seen.fetch_add(usize::from(head.starts_with("GET /check ")), Ordering::SeqCst);
                return is_kept;
            }
            write!(stream, "HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhello")
                .unwrap();
            let mut space = [0; 100];
            while let Ok(count @ 1..) = stream.read(&mut space) {
                stream.write_all(&space[..count].to_ascii_uppercase()).unwrap();
                stream.flush().unwrap();
            }
            stream.write_all(b"bye").unwrap();
            false
        });
    let rule = origin.rule("localhost", &authority, "check=/check check-interval=5s");
    let program = start(&["--proxy", &rule]);
    let mut peer = program.connect();
    peer.send("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    assert!(peer.await_text("\r\n\r\n").starts_with("HTTP/1.1 101 "));
    assert_eq!(peer.take(5), b"hello");
    peer.send("more");
    assert_eq!(peer.take(4), b"MORE");
    peer.end();
    assert_eq!(peer.rest(), b"bye");
    let begun = Instant::now();
    while checks.load(Ordering::SeqCst) == 0 {
        assert!(begun.elapsed() < PATIENCE, "the origin is not checked");
        thread::yield_now();
    }
    assert_eq!(program.connect().get("/").status(), 200, "its check succeeds");
}
