//! Programs behind real `HAProxy` and nginx, and in front of nginx. A test is skipped unless the variable `HAPROXY` or `NGINX`
//! names its program.
//!
//! The tests connect to the proxy as a proxy of their own, which names clients at addresses of
//! documentation, since a loopback address is not believed.

use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use bine_nats_server::ReservedPort;

use crate::harness::{Folder, PATIENCE, Peer, Program, Reply};
use crate::proxies::{start, start_with_preface};
use crate::proxy;

/// A running proxy. Dropping the value kills it.
struct Balancer {
    child: Child,
    ports: Vec<ReservedPort>,
}

impl Balancer {
    /// Starts `command` with the path of a file, which contains the configuration for `count` free
    /// ports.
    fn start(
        folder: &Folder,
        command: impl Fn(&Path) -> Command,
        count: usize,
        configuration: impl Fn(&[u16]) -> String,
    ) -> Self {
        let ports: Vec<_> = (0..count).map(|_| ReservedPort::new()).collect();
        let numbers: Vec<_> = ports.iter().map(ReservedPort::number).collect();
        let path = folder.write("proxy.conf", configuration(&numbers).as_bytes());
        let log = std::fs::File::create(folder.join("proxy.log")).unwrap();
        let mut command = command(&path);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let mut balancer = Self { child: command.spawn().unwrap(), ports };
        if !balancer.await_ports() {
            let log = std::fs::read_to_string(folder.join("proxy.log")).unwrap();
            panic!("the proxy does not start: {log}");
        }
        balancer
    }

    /// Waits until each port accepts. Returns false if the proxy has ended.
    fn await_ports(&mut self) -> bool {
        let patience = Instant::now() + PATIENCE;
        for port in &self.ports {
            while TcpStream::connect((Ipv4Addr::LOCALHOST, port.number())).is_err() {
                if self.child.try_wait().unwrap().is_some() {
                    return false;
                }
                assert!(Instant::now() < patience, "the proxy opens no port {}", port.number());
                std::thread::yield_now();
            }
        }
        true
    }

    /// The number of a port.
    fn port(&self, index: usize) -> u16 {
        self.ports[index].number()
    }

    /// Requests `path` as the client at `client`, whom a header names to the proxy.
    fn get(&self, index: usize, client: &str, path: &str, fields: &str) -> Reply {
        let mut peer = self.connect(index, client);
        peer.send(format!("GET {path} HTTP/1.1\r\nHost: example.org\r\n{fields}\r\n"));
        peer.reply()
    }

    fn connect(&self, index: usize, client: &str) -> Peer {
        let mut peer = Peer::tcp((Ipv4Addr::LOCALHOST, self.port(index)).into());
        peer.send(format!("PROXY TCP4 {client} 198.51.100.1 50000 443\r\n"));
        peer
    }

    /// Requests `path` over TLS without a header, from `client`, an address of this machine.
    /// Returns the head, with the names of its fields in small letters as `HAProxy` sends them, and
    /// the content.
    fn get_over_tls(&self, index: usize, client: IpAddr, path: &str) -> String {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--include", "--insecure", "--max-time", "20"])
            .arg(format!("https://{client}:{}{path}", self.port(index)))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let reply = String::from_utf8(output.stdout).unwrap();
        let small = |line: &str| match line.split_once(": ") {
            Some((name, value)) => format!("{}: {value}", name.to_lowercase()),
            None => line.to_owned(),
        };
        reply.split("\r\n").map(small).collect::<Vec<_>>().join("\r\n")
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program that a variable names, or `None`, with a note.
fn named(variable: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    if named.is_none() {
        eprintln!("skipped: {variable} does not name a program");
    }
    named
}

/// A non-local address of this machine, without sending a packet; `None` without a network.
fn own_address() -> Option<IpAddr> {
    let outward = UdpSocket::bind("0.0.0.0:0").ok()?;
    outward.connect("198.51.100.1:9").ok()?;
    let own = outward.local_addr().ok()?.ip();
    own.is_ipv4().then_some(own)
}

/// The clients in the access log, sorted.
fn logged(program: Program, log: &Path) -> Vec<String> {
    program.stop();
    let lines = std::fs::read_to_string(log).unwrap();
    let clients = lines.lines().filter_map(|line| line.split(' ').next());
    let mut clients: Vec<String> = clients.map(ToOwned::to_owned).collect();
    clients.sort_unstable();
    clients
}

fn haproxy(
    haproxy: &Path,
    folder: &Folder,
    count: usize,
    configuration: impl Fn(&[u16]) -> String,
) -> Balancer {
    let command = |path: &Path| {
        let mut command = Command::new(haproxy);
        command.arg("-db").arg("-f").arg(path);
        command
    };
    Balancer::start(folder, command, count, |ports| {
        let usual = "defaults\n mode http\n timeout connect 10s\n timeout client 60s\n \
                     timeout server 60s\n http-reuse always\n";
        usual.to_owned() + &configuration(ports)
    })
}

#[test]
fn learns_clients_from_haproxy() {
    let Some(program) = named("HAPROXY") else { return };
    let folder = Folder::new();
    let log = folder.join("access.log");
    let (server, address) = start_with_preface(&[
        "--access-log",
        log.to_str().unwrap(),
        "--connections-per-address",
        "2",
    ]);
    let balancer = haproxy(&program, &folder, 3, |ports| {
        let section = |name: &str, port: u16, mode: &str, option: &str| {
            format!(
                "listen {name}\n bind 127.0.0.1:{port} accept-proxy\n mode {mode}\n \
                 server bine {address} {option}\n"
            )
        };
        section("lines", ports[0], "tcp", "send-proxy")
            + &section("binary", ports[1], "tcp", "send-proxy-v2")
            + &section("requests", ports[2], "http", "send-proxy-v2")
    });
    for (index, client) in [(0, "192.0.2.1"), (1, "192.0.2.2"), (2, "192.0.2.3"), (2, "192.0.2.4")]
    {
        let forged = "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: https\r\n";
        let reply = balancer.get(index, client, "/client", forged);
        assert_eq!(reply.text(), format!("{client} http example.org"), "{index}");
    }
    // One client at its limit leaves room for others.
    let mut kept = [(); 2].map(|()| balancer.connect(0, "192.0.2.5"));
    for peer in &mut kept {
        assert_eq!(peer.get("/client").text(), "192.0.2.5 http a");
    }
    assert_eq!(balancer.get(0, "192.0.2.5", "/client", "").status(), 503);
    assert_eq!(balancer.get(1, "192.0.2.6", "/client", "").status(), 200);
    // HAProxy would report a loopback address; the server does not believe it.
    assert_eq!(balancer.get(0, "127.0.0.2", "/client", "").text(), "127.0.0.1 http example.org");
    drop((kept, balancer));
    let clients = logged(server, &log);
    let expected = ["127.0.0.1", "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"];
    assert_eq!(clients[..5], expected, "{clients:?}");
    assert_eq!(clients[5..], ["192.0.2.5", "192.0.2.5", "192.0.2.6"], "{clients:?}");
}

#[test]
fn learns_from_haproxy_which_clients_use_tls() {
    let (Some(program), Some(own)) = (named("HAPROXY"), own_address()) else { return };
    let folder = Folder::new();
    let data = folder.join("data");
    // This program generates the certificate.
    let options = ["--data", data.to_str().unwrap(), "--tls", "self-signed"];
    let (mut secure, _) =
        start_with_preface(&[&options[..], &["--listen", "127.0.0.1:0,tls=on,proxy=on"]].concat());
    let inner = secure.await_address();
    let inner = inner.trim_start_matches("https://").trim_end_matches('/');
    let (_server, address) = start_with_preface(&["--https-redirect", "on", "--hsts", "1d"]);
    let balancer = haproxy(&program, &folder, 3, |ports| {
        let [tls, plain, passed] = ports else { unreachable!("three ports") };
        let certificate = data.join("self-signed.pem");
        format!(
            "listen ends\n bind 0.0.0.0:{tls} ssl crt {}\n bind 127.0.0.1:{plain} accept-proxy\n \
             server bine {address} send-proxy-v2-ssl\n\
             listen passes\n bind 0.0.0.0:{passed}\n mode tcp\n server bine {inner} send-proxy-v2\n",
            certificate.display()
        )
    });
    let reply = balancer.get_over_tls(0, own, "/client");
    let host = format!("{own}:{}", balancer.port(0));
    assert!(reply.ends_with(&format!("{own} https {host}")), "{reply}");
    assert!(reply.contains("\r\nstrict-transport-security: max-age=86400\r\n"), "{reply}");
    let reply = balancer.get_over_tls(0, own, "/log_in");
    assert!(reply.contains("\r\nset-cookie: __Host-session="), "{reply}");
    let reply = balancer.get(1, "192.0.2.7", "/client?a=b", "");
    assert_eq!(reply.status(), 308, "{reply:?}");
    assert_eq!(reply.header("Location"), Some("https://example.org/client?a=b"));
    // The server ends TLS itself.
    let reply = balancer.get_over_tls(2, own, "/client");
    let host = format!("{own}:{}", balancer.port(2));
    assert!(reply.ends_with(&format!("{own} https {host}")), "{reply}");
    let reply = balancer.get_over_tls(2, own, "/log_in");
    assert!(reply.contains("\r\nset-cookie: __Host-session="), "{reply}");
}

/// Starts nginx with these servers: `http` in the block of HTTP, `stream` in that of streams.
/// Returns `None`, with a note, if its module for streams is missing.
fn nginx(
    nginx: &Path,
    folder: &Folder,
    count: usize,
    servers: impl Fn(&[u16]) -> [String; 2],
) -> Option<Balancer> {
    let options = Command::new(nginx).arg("-V").output().unwrap().stderr;
    let options = String::from_utf8(options).unwrap();
    let modules = options.split("--modules-path=").nth(1)?.split(' ').next()?;
    let module = Path::new(modules).join("ngx_stream_module.so");
    if !module.exists() {
        eprintln!("skipped: nginx has no module for streams");
        return None;
    }
    let module = module.display();
    let own = folder.path().display();
    let command = |path: &Path| {
        let mut command = Command::new(nginx);
        command.arg("-p").arg(folder.path()).arg("-c").arg(path).args(["-e", "stderr"]);
        command
    };
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {own}/{kind};\n"))
        .concat();
    Some(Balancer::start(folder, command, count, |ports| {
        let [http, stream] = servers(ports);
        let trust = "set_real_ip_from 127.0.0.1;\n";
        format!(
            "load_module {module};\ndaemon off;\nmaster_process off;\npid {own}/nginx.pid;\n\
             events {{}}\nhttp {{\n{temporary}access_log off;\n{trust}\
             real_ip_header proxy_protocol;\n{http}}}\nstream {{\n{trust}{stream}}}\n"
        )
    }))
}

#[test]
fn learns_clients_from_nginx() {
    let (Some(program), Some(own)) = (named("NGINX"), own_address()) else { return };
    let folder = Folder::new();
    let (log, data) = (folder.join("access.log"), folder.join("data"));
    // This program generates the certificate.
    let _secure = start(&["--data", data.to_str().unwrap(), "--tls", "self-signed"]);
    let (server, address) = start_with_preface(&[
        "--access-log",
        log.to_str().unwrap(),
        "--https-redirect",
        "on",
        "--connections-per-address",
        "1",
    ]);
    let standard =
        start(&["--trusted-proxies", "127.0.0.1", "--proxy-fields", "forwarded", "--hsts", "1d"]);
    let balancer = nginx(&program, &folder, 4, |ports| {
        let (requests, forwarded) = (server.address(), standard.address());
        let certificate = data.join("self-signed.pem");
        let certificate = certificate.display();
        let tls = format!("ssl_certificate {certificate};\nssl_certificate_key {certificate};\n");
        let fields = "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n\
                      proxy_set_header X-Forwarded-Proto $scheme;\n\
                      proxy_set_header X-Forwarded-Host $http_host;\nproxy_set_header Host inner;\n";
        let forward = "proxy_set_header Forwarded \
                       \"for=$remote_addr;proto=$scheme;host=\\\"$http_host\\\"\";\n";
        [
            format!(
                "server {{\nlisten 127.0.0.1:{} proxy_protocol;\nlisten 0.0.0.0:{} ssl;\n{tls}{fields}\
                 location / {{ proxy_pass http://{requests}; }}\n}}\n\
                 server {{\nlisten 127.0.0.1:{} proxy_protocol;\n{forward}\
                 location / {{ proxy_pass http://{forwarded}; }}\n}}\n",
                ports[0], ports[1], ports[2]
            ),
            format!(
                "server {{\nlisten 127.0.0.1:{} proxy_protocol;\nproxy_protocol on;\n\
                 proxy_pass {address};\n}}\n",
                ports[3]
            ),
        ]
    });
    let Some(balancer) = balancer else { return };
    // By fields: the client, the scheme and the host.
    let reply = balancer.get(0, "192.0.2.1", "/client?a=b", "");
    assert_eq!(
        (reply.status(), reply.header("Location")),
        (308, Some("https://example.org/client?a=b"))
    );
    let reply = balancer.get_over_tls(1, own, "/client");
    let host = format!("{own}:{}", balancer.port(1));
    assert!(reply.ends_with(&format!("{own} https {host}")), "{reply}");
    let reply = balancer.get_over_tls(1, own, "/log_in");
    assert!(reply.contains("\r\nset-cookie: __Host-session="), "{reply}");
    // By the standard field. The client forges one.
    let forged = "Forwarded: for=203.0.113.9;proto=https\r\nX-Forwarded-For: 203.0.113.9\r\n";
    let reply = balancer.get(2, "192.0.2.2", "/client", forged);
    assert_eq!(reply.text(), "192.0.2.2 http example.org");
    // By the PROXY protocol.
    let mut kept = balancer.connect(3, "192.0.2.3");
    assert_eq!(kept.get("/client").text(), "192.0.2.3 http a");
    assert_eq!(balancer.get(3, "192.0.2.3", "/client", "").status(), 503);
    assert_eq!(
        balancer.get(3, "192.0.2.4", "/client", forged).text(),
        "192.0.2.4 http example.org"
    );
    drop((kept, balancer));
    let mut expected = vec![own.to_string(); 2];
    expected.extend(["192.0.2.1", "192.0.2.3", "192.0.2.4"].map(ToOwned::to_owned));
    expected.sort_unstable();
    assert_eq!(logged(server, &log), expected);
}

#[test]
fn proxies_requests_to_nginx() {
    const LENGTH: usize = 1 << 20;
    let Some(program) = named("NGINX") else { return };
    let folder = Folder::new();
    let file: Vec<u8> = (0..LENGTH).map(|place| (place % 251) as u8).collect();
    folder.write("www/file.bin", &file);
    let text = "A line that repeats.\n".repeat(1000);
    folder.write("www/text.txt", text.as_bytes());
    let origin = nginx(&program, &folder, 1, |ports| {
        // The address of the client is that of the field. `$connection` numbers the connections.
        let seen = "$remote_addr $http_x_forwarded_proto $http_host $http_x_forwarded_host";
        let http = format!(
            "server {{\nlisten 127.0.0.1:{};\nroot {}/www;\nreal_ip_header X-Forwarded-For;\n\
             default_type text/plain;\ngzip on;\ngzip_types text/plain;\ngzip_proxied any;\n\
             location = /seen {{ gzip off; return 200 \"{seen}\"; }}\n\
             location = /connection {{ gzip off; return 200 $connection; }}\n}}\n",
            ports[0],
            folder.path().display()
        );
        [http, String::new()]
    });
    let Some(origin) = origin else { return };
    let rule = format!("to=http://127.0.0.1:{} kept=1", origin.port(0));
    let options =
        ["--proxy", &rule, "--loops", "1", "--trusted-proxies", "127.0.0.1", "--hosts", "any"];
    let program = proxy::start(&options);
    let mut peer = program.connect();
    let fields = "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: example.org\r\n";
    let seen = peer.request("GET", "/seen", fields, "");
    assert_eq!(seen.text(), "192.0.2.7 https example.org example.org");
    assert_eq!(peer.get("/seen").text(), "127.0.0.1 http a a", "without a proxy in front");
    let mut connections: Vec<_> =
        (0..5).map(|_| peer.get("/connection").text().to_owned()).collect();
    let whole = peer.get("/file.bin");
    assert_eq!(whole.header("Content-Length"), Some("1048576"));
    assert!(whole.bytes() == file, "the file differs");
    let part = peer.request("GET", "/file.bin", "Range: bytes=1000-1999\r\n", "");
    assert_eq!((part.status(), part.bytes()), (206, &file[1000..2000]));
    let packed = peer.request("GET", "/text.txt", "Accept-Encoding: gzip\r\n", "");
    assert_eq!(packed.header("Content-Encoding"), Some("gzip"));
    assert!(packed.bytes().len() < text.len() / 4, "{} bytes", packed.bytes().len());
    let mut unpacked = String::new();
    flate2::read::GzDecoder::new(packed.bytes()).read_to_string(&mut unpacked).unwrap();
    assert!(unpacked == text, "the text differs");
    assert_eq!(peer.get("/text.txt").text(), text, "a client without gzip");
    connections.extend((0..5).map(|_| peer.get("/connection").text().to_owned()));
    connections.dedup();
    assert_eq!(connections.len(), 1, "one connection carries all requests: {connections:?}");
}
