//! Tests of the defaults of `https-redirect` and `hsts`, which depend on the certificate.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::bine;
use crate::harness::{Folder, Peer, Program, Reply};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The issuer of a server's certificate.
#[derive(Clone, Copy)]
enum IssuedBy {
    Authority,
    Itself,
}

/// A server of a folder at two addresses: the first uses TLS, the second does not.
struct Server {
    folder: Folder,
    secure: u16,
    plain: u16,
    /// Kills the server on drop.
    _program: Program,
}

impl Server {
    /// Starts a server with a certificate for `host`.
    fn start(host: &str, issuer: IssuedBy, options: &[&str]) -> Self {
        let folder = Folder::new();
        folder.write("www/index.html", b"here");
        folder.write("www/.well-known/acme-challenge/token", b"proof");
        certify(&folder, host, issuer);
        let (www, own) = (folder.join("www"), folder.join("own.pem"));
        let mut command = bine(&["serve", www.to_str().unwrap(), "--tls", "on", "--hosts", "auto"]);
        command.args(["--listen", "0.0.0.0:0", "--listen", "0.0.0.0:0,tls=off"]);
        command.arg("--certificate").arg(&own).arg("--certificate-key").arg(&own).args(options);
        let mut program = Program::start(&mut command);
        let secure = program.address().port();
        let plain = program.await_address();
        let plain: SocketAddr =
            plain.trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
        Self { folder, secure, plain: plain.port(), _program: program }
    }

    /// Returns the reply to a request without TLS from a client with this address.
    fn ask(&self, peer: IpAddr, request: &str) -> Reply {
        // A connection to an address of this machine comes from the same address.
        let mut connection = Peer::tcp((peer, self.plain).into());
        connection.send(format!("{request}\r\nConnection: close\r\n\r\n"));
        connection.reply()
    }

    /// Returns curl's output for a request over TLS that trusts the certificate of `host`.
    fn ask_over_tls(&self, peer: IpAddr, host: &str) -> String {
        let port = self.secure;
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

    /// Asserts that a client with this address is served without TLS, and is not redirected.
    #[track_caller]
    fn check_not_redirected(&self, peer: IpAddr, host: &str) {
        let reply = self.ask(peer, &format!("GET / HTTP/1.1\r\nHost: {host}"));
        assert_eq!((reply.status(), reply.text()), (200, "here"), "{peer}");
        assert_eq!(reply.header("Location"), None);
        assert_eq!(reply.header("Strict-Transport-Security"), None);
    }
}

/// Writes a certificate for `host` with its key as `own.pem`, and the certificate that a client
/// must trust as `trusted.pem`.
fn certify(folder: &Folder, host: &str, issuer: IssuedBy) {
    let key = KeyPair::generate().unwrap();
    let mut own = CertificateParams::new([host.to_owned()]).unwrap();
    own.distinguished_name.push(DnType::CommonName, host);
    let (own, trusted) = match issuer {
        IssuedBy::Itself => {
            let pem = own.self_signed(&key).unwrap().pem();
            (pem.clone(), pem)
        }
        IssuedBy::Authority => {
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

/// Returns the address of this machine on the network; no packet is sent for that. Returns `None`
/// without a network: then only clients with a loopback address are tested.
fn own_address() -> Option<IpAddr> {
    let outward = UdpSocket::bind("0.0.0.0:0").ok()?;
    outward.connect("198.51.100.1:9").ok()?;
    let own = outward.local_addr().ok()?.ip();
    (own.is_ipv4() && !own.is_loopback()).then_some(own)
}

#[test]
fn redirects_other_machines_if_its_certificate_is_public() {
    let Some(other) = own_address() else { return };
    let server = Server::start("shop.org", IssuedBy::Authority, &[]);
    for (request, location) in [
        // The redirect keeps the port of the configuration, because the one that the kernel chose
        // is not known before.
        ("GET /a?b=c HTTP/1.1\r\nHost: shop.org", "https://shop.org:0/a?b=c"),
        ("GET / HTTP/1.1\r\nHost: shop.org:8080", "https://shop.org:0/"),
        ("GET //a HTTP/1.1\r\nHost: SHOP.org", "https://SHOP.org:0//a"),
        ("POST /a HTTP/1.1\r\nHost: shop.org\r\nContent-Length: 0", "https://shop.org:0/a"),
        // A proxy is redirected by absolute target, which it may pass on.
        ("GET http://shop.org/a?b HTTP/1.1\r\nHost: shop.org", "https://shop.org:0/a?b"),
        ("GET http://shop.org?b=/c HTTP/1.1\r\nHost: shop.org", "https://shop.org:0/?b=/c"),
        ("GET http://shop.org HTTP/1.1\r\nHost: shop.org", "https://shop.org:0/"),
        ("OPTIONS * HTTP/1.1\r\nHost: shop.org", "https://shop.org:0/"),
        ("GET /a HTTP/1.1\r\nHost: 192.0.2.1", "https://192.0.2.1:0/a"),
    ] {
        let reply = server.ask(other, request);
        assert_eq!((reply.status(), reply.header("Location")), (308, Some(location)), "{request}");
        assert_eq!(reply.header("Strict-Transport-Security"), None, "{request}");
    }
    let reply = server.ask_over_tls(other, "shop.org");
    assert!(reply.starts_with("HTTP/2 200 ") && reply.ends_with("here"), "{reply}");
    assert!(reply.contains("\r\nstrict-transport-security: max-age=15552000\r\n"), "{reply}");
}

#[test]
fn redirects_nobody_to_a_host_that_is_not_its_own() {
    let Some(other) = own_address() else { return };
    let server = Server::start("shop.org", IssuedBy::Authority, &[]);
    for host in ["foe.org", "shop.org.foe.org", "a.shop.org"] {
        let reply = server.ask(other, &format!("GET / HTTP/1.1\r\nHost: {host}"));
        assert_eq!((reply.status(), reply.header("Location")), (421, None), "{host}");
    }
    let reply = server.ask(other, "GET / HTTP/1.0");
    assert_eq!((reply.status(), reply.header("Location")), (200, None));
}

#[test]
fn redirects_neither_this_machine_nor_proofs_for_an_authority() {
    let server = Server::start("shop.org", IssuedBy::Authority, &[]);
    server.check_not_redirected(LOOPBACK, "shop.org");
    server.check_not_redirected(LOOPBACK, "127.0.0.1");
    let proof = "/.well-known/acme-challenge/token";
    for peer in [Some(LOOPBACK), own_address()].into_iter().flatten() {
        for target in [proof, &format!("http://shop.org{proof}")] {
            let reply = server.ask(peer, &format!("GET {target} HTTP/1.1\r\nHost: shop.org"));
            assert_eq!((reply.status(), reply.text()), (200, "proof"), "{target} of {peer}");
        }
        // Over TLS requests of this machine get the same header as remote ones.
        let reply = server.ask_over_tls(peer, "shop.org");
        assert!(reply.contains("\r\nstrict-transport-security: max-age=15552000\r\n"), "{reply}");
    }
}

#[test]
fn redirects_nobody_if_its_certificate_is_not_public() {
    for (host, signed) in [
        ("shop.org", IssuedBy::Itself),
        ("machine.internal", IssuedBy::Authority),
        ("localhost", IssuedBy::Authority),
    ] {
        let server = Server::start(host, signed, &[]);
        for peer in [Some(LOOPBACK), own_address()].into_iter().flatten() {
            server.check_not_redirected(peer, host);
            let reply = server.ask_over_tls(peer, host);
            assert!(reply.starts_with("HTTP/2 200 "), "{reply}");
            assert!(!reply.contains("strict-transport-security"), "{reply}");
        }
    }
}

#[test]
fn follows_explicit_redirect_settings() {
    let peers = || [Some(LOOPBACK), own_address()].into_iter().flatten();
    let on = Server::start("shop.org", IssuedBy::Authority, &["--https-redirect", "on"]);
    for peer in peers() {
        let reply = on.ask(peer, "GET / HTTP/1.1\r\nHost: shop.org");
        assert_eq!(reply.header("Location"), Some("https://shop.org:0/"), "{peer}");
    }
    let options = ["--https-redirect", "off", "--hsts", "off"];
    let off = Server::start("shop.org", IssuedBy::Authority, &options);
    for peer in peers() {
        off.check_not_redirected(peer, "shop.org");
        let reply = off.ask_over_tls(peer, "shop.org");
        assert!(!reply.contains("strict-transport-security"), "{reply}");
    }
}
