//! Claims about `https-redirect` and `hsts` where nobody sets them: they follow the certificate.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::bine;
use crate::harness::{Folder, Peer, Program, Reply};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Who signs the certificate of a server.
#[derive(Clone, Copy)]
enum Signed {
    ByAnAuthority,
    ByItself,
}

/// A server of a folder at two addresses: the first speaks TLS, the second does not.
struct Server {
    folder: Folder,
    secret: u16,
    plain: u16,
    /// Killed when it goes.
    _program: Program,
}

impl Server {
    /// Its certificate is for `host`.
    fn start(host: &str, signed: Signed, options: &[&str]) -> Self {
        let folder = Folder::new();
        folder.write("www/index.html", b"here");
        folder.write("www/.well-known/acme-challenge/token", b"proof");
        certify(&folder, host, signed);
        let (www, own) = (folder.join("www"), folder.join("own.pem"));
        let mut command = bine(&["serve", www.to_str().unwrap(), "--tls", "on", "--hosts", "auto"]);
        command.args(["--listen", "0.0.0.0:0", "--listen", "0.0.0.0:0,tls=off"]);
        command.arg("--certificate").arg(&own).arg("--certificate-key").arg(&own).args(options);
        let mut program = Program::start(&mut command);
        let secret = program.address().port();
        let plain = program.await_address();
        let plain: SocketAddr =
            plain.trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
        Self { folder, secret, plain: plain.port(), _program: program }
    }

    /// The reply to a request without TLS by a client with this address.
    fn ask(&self, peer: IpAddr, request: &str) -> Reply {
        // Whoever connects to an address of this machine has the same one.
        let mut connection = Peer::tcp((peer, self.plain).into());
        connection.send(format!("{request}\r\nConnection: close\r\n\r\n"));
        connection.reply()
    }

    /// What curl is told over TLS, if it trusts the certificate for `host`.
    fn ask_in_secret(&self, peer: IpAddr, host: &str) -> String {
        let port = self.secret;
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--include", "--max-time", "20", "--cacert"])
            .arg(self.folder.join("trusted.pem"))
            .args(["--resolve", &format!("{host}:{port}:{peer}")])
            .arg(format!("https://{host}:{port}/"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A client with this address is answered as if there were no TLS, and is told to use it by no address.
    #[track_caller]
    fn check_left_alone(&self, peer: IpAddr, host: &str) {
        let reply = self.ask(peer, &format!("GET / HTTP/1.1\r\nHost: {host}"));
        assert_eq!((reply.status(), reply.text()), (200, "here"), "{peer}");
        assert_eq!(reply.field("Location"), None);
        assert_eq!(reply.field("Strict-Transport-Security"), None);
    }
}

/// Writes a certificate for `host` with its key as `own.pem`, and the one that a client must trust as `trusted.pem`.
fn certify(folder: &Folder, host: &str, signed: Signed) {
    let key = KeyPair::generate().unwrap();
    let mut own = CertificateParams::new([host.to_owned()]).unwrap();
    own.distinguished_name.push(DnType::CommonName, host);
    let (own, trusted) = match signed {
        Signed::ByItself => {
            let pem = own.self_signed(&key).unwrap().pem();
            (pem.clone(), pem)
        }
        Signed::ByAnAuthority => {
            let mut authority = CertificateParams::new(Vec::new()).unwrap();
            authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            authority.distinguished_name.push(DnType::CommonName, "an authority");
            let authority_key = KeyPair::generate().unwrap();
            let trusted = authority.self_signed(&authority_key).unwrap().pem();
            let issuer = Issuer::new(authority, authority_key);
            (own.signed_by(&key, &issuer).unwrap().pem(), trusted)
        }
    };
    folder.write("own.pem", (own + &key.serialize_pem()).as_bytes());
    folder.write("trusted.pem", trusted.as_bytes());
}

/// This machine as others see it: nothing is sent to learn that. `None`: it has no network, so that only clients with a
/// loopback address can be tried.
fn own_address() -> Option<IpAddr> {
    let outward = UdpSocket::bind("0.0.0.0:0").ok()?;
    outward.connect("198.51.100.1:9").ok()?;
    let own = outward.local_addr().ok()?.ip();
    (own.is_ipv4() && !own.is_loopback()).then_some(own)
}

#[test]
fn redirects_other_machines_if_its_certificate_is_public() {
    let Some(other) = own_address() else { return };
    let server = Server::start("shop.org", Signed::ByAnAuthority, &[]);
    for (request, location) in [
        // The port is the one that was asked for, since the other cannot be known before.
        ("GET /a?b=c HTTP/1.1\r\nHost: shop.org", "https://shop.org:0/a?b=c"),
        ("GET / HTTP/1.1\r\nHost: shop.org:8080", "https://shop.org:0/"),
        ("GET //a HTTP/1.1\r\nHost: SHOP.org", "https://SHOP.org:0//a"),
        ("POST /a HTTP/1.1\r\nHost: shop.org\r\nContent-Length: 0", "https://shop.org:0/a"),
        // A proxy is sent the whole address, and may pass it on.
        ("GET http://shop.org/a?b HTTP/1.1\r\nHost: shop.org", "https://shop.org:0/a?b"),
        ("GET http://shop.org?b=/c HTTP/1.1\r\nHost: shop.org", "https://shop.org:0/?b=/c"),
        ("GET http://shop.org HTTP/1.1\r\nHost: shop.org", "https://shop.org:0/"),
        ("OPTIONS * HTTP/1.1\r\nHost: shop.org", "https://shop.org:0/"),
        ("GET /a HTTP/1.1\r\nHost: 192.0.2.1", "https://192.0.2.1:0/a"),
    ] {
        let reply = server.ask(other, request);
        assert_eq!((reply.status(), reply.field("Location")), (308, Some(location)), "{request}");
        assert_eq!(reply.field("Strict-Transport-Security"), None, "{request}");
    }
    let told = server.ask_in_secret(other, "shop.org");
    assert!(told.starts_with("HTTP/1.1 200 ") && told.ends_with("here"), "{told}");
    assert!(told.contains("\r\nStrict-Transport-Security: max-age=15552000\r\n"), "{told}");
}

#[test]
fn redirects_nobody_to_a_host_that_is_not_its_own() {
    let Some(other) = own_address() else { return };
    let server = Server::start("shop.org", Signed::ByAnAuthority, &[]);
    for host in ["foe.org", "shop.org.foe.org", "a.shop.org"] {
        let reply = server.ask(other, &format!("GET / HTTP/1.1\r\nHost: {host}"));
        assert_eq!((reply.status(), reply.field("Location")), (421, None), "{host}");
    }
    let reply = server.ask(other, "GET / HTTP/1.0");
    assert_eq!((reply.status(), reply.field("Location")), (200, None));
}

#[test]
fn redirects_neither_this_machine_nor_proofs_for_an_authority() {
    let server = Server::start("shop.org", Signed::ByAnAuthority, &[]);
    server.check_left_alone(LOOPBACK, "shop.org");
    server.check_left_alone(LOOPBACK, "127.0.0.1");
    let proof = "/.well-known/acme-challenge/token";
    for peer in [Some(LOOPBACK), own_address()].into_iter().flatten() {
        for target in [proof, &format!("http://shop.org{proof}")] {
            let reply = server.ask(peer, &format!("GET {target} HTTP/1.1\r\nHost: shop.org"));
            assert_eq!((reply.status(), reply.text()), (200, "proof"), "{target} of {peer}");
        }
        // Over TLS its own machine is told what others are.
        let told = server.ask_in_secret(peer, "shop.org");
        assert!(told.contains("\r\nStrict-Transport-Security: max-age=15552000\r\n"), "{told}");
    }
}

#[test]
fn redirects_nobody_if_its_certificate_is_not_public() {
    for (host, signed) in [
        ("shop.org", Signed::ByItself),
        ("machine.internal", Signed::ByAnAuthority),
        ("localhost", Signed::ByAnAuthority),
    ] {
        let server = Server::start(host, signed, &[]);
        for peer in [Some(LOOPBACK), own_address()].into_iter().flatten() {
            server.check_left_alone(peer, host);
            let told = server.ask_in_secret(peer, host);
            assert!(told.starts_with("HTTP/1.1 200 "), "{told}");
            assert!(!told.contains("Strict-Transport-Security"), "{told}");
        }
    }
}

#[test]
fn redirects_everybody_or_nobody_if_it_is_told_so() {
    let peers = || [Some(LOOPBACK), own_address()].into_iter().flatten();
    let on = Server::start("shop.org", Signed::ByAnAuthority, &["--https-redirect", "on"]);
    for peer in peers() {
        let reply = on.ask(peer, "GET / HTTP/1.1\r\nHost: shop.org");
        assert_eq!(reply.field("Location"), Some("https://shop.org:0/"), "{peer}");
    }
    let options = ["--https-redirect", "off", "--hsts", "off"];
    let off = Server::start("shop.org", Signed::ByAnAuthority, &options);
    for peer in peers() {
        off.check_left_alone(peer, "shop.org");
        let told = off.ask_in_secret(peer, "shop.org");
        assert!(!told.contains("Strict-Transport-Security"), "{told}");
    }
}
