//! Tests of certificates from an ACME certificate authority. The authority is Pebble, the test
//! server of Let's Encrypt; without it one test is skipped (`PEBBLE` names the program, else it is
//! looked up on the path).

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use bine_nats_server::ReservedPort;

use crate::bine;
use crate::harness::{Folder, Program};

/// A certificate authority on this machine, which is killed on drop.
struct Pebble(Child);

impl Drop for Pebble {
    fn drop(&mut self) {
        // Killing fails if it has exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The ports of the certificate authority, because Pebble does not report ports that it chooses.
#[derive(Default)]
struct Ports {
    directory: ReservedPort,
    management: ReservedPort,
}

/// Returns Pebble's program if it is installed.
fn find_pebble() -> Option<OsString> {
    if let Some(named) = std::env::var_os("PEBBLE") {
        return Some(named);
    }
    let answers =
        Command::new("pebble").arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    answers.is_ok_and(|status| status.success()).then(|| "pebble".into())
}

/// Starts Pebble and waits until it answers. It validates every host on this machine at port
/// `http`.
fn start_pebble(program: &OsString, folder: &Folder, ports: &Ports, http: u16) -> Pebble {
    let [directory, management] = [&ports.directory, &ports.management].map(ReservedPort::number);
    let identity = folder.join("pebble.pem");
    let identity = identity.to_str().unwrap();
    let text = format!(
        r#"{{"pebble": {{
            "listenAddress": "127.0.0.1:{directory}", "managementListenAddress": "127.0.0.1:{management}",
            "certificate": "{identity}", "privateKey": "{identity}", "httpPort": {http}, "tlsPort": 1,
            "retryAfter": {{"authz": 1, "order": 1}}, "keyAlgorithm": "ecdsa",
            "profiles": {{"default": {{"description": "the usual", "validityPeriod": 7776000}}}}
        }}}}"#
    );
    let config = folder.write("pebble.json", text.as_bytes());
    let child = Command::new(program)
        .args(["-dnsserver", &start_name_server(), "-config"])
        .arg(config)
        .env("PEBBLE_VA_NOSLEEP", "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let pebble = Pebble(child.unwrap());
    let trusted = folder.join("pebble.pem");
    assert!(ask(&trusted, &format!("https://127.0.0.1:{directory}/dir"), &[]).is_some());
    pebble
}

/// Starts a DNS server that resolves every name to this machine, and returns its address.
fn start_name_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        // The threads end with the test process; a client that disconnects in the middle of a
        // question gets no answer.
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer_names(stream));
        }
    });
    address
}

/// Answers questions until the client disconnects. Each message follows its length (RFC 1035
/// section 4.2.2).
fn answer_names(mut stream: TcpStream) -> io::Result<()> {
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut question)?;
        let answer = answer_to(&question);
        let length = u16::try_from(answer.len()).unwrap().to_be_bytes();
        stream.write_all(&[&length[..], &answer].concat())?;
    }
}

/// Returns the answer to a DNS question: 127.0.0.1 for type A, else no record (RFC 1035 section 4.1).
fn answer_to(question: &[u8]) -> Vec<u8> {
    let name_end = 12 + question[12..].iter().position(|byte| *byte == 0).unwrap();
    let asked = &question[12..name_end + 5];
    let is_a = question[name_end + 1..name_end + 3] == [0, 1];
    let counts = [0, 1, 0, u8::from(is_a), 0, 0, 0, 0];
    let mut answer = [&question[..2], &[0x84, 0][..], &counts, asked].concat();
    if is_a {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
    }
    answer
}

/// Returns the body at `url` as soon as a request that trusts only `roots` succeeds; `None` if none
/// does.
fn ask(roots: &Path, url: &str, options: &[&str]) -> Option<String> {
    let output = Command::new("curl")
        .args(["--silent", "--fail", "--max-time", "20"])
        .args(["--retry", "60", "--retry-all-errors", "--retry-delay", "1"])
        .arg("--cacert")
        .arg(roots)
        .args(options)
        .arg(url)
        .output();
    let output = output.unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

/// Like `ask`, for a host of the server at `port`.
fn ask_host(roots: &Path, host: &str, port: u16, options: &[&str]) -> Option<String> {
    let resolved = format!("{host}:{port}:127.0.0.1");
    let options = [&["--resolve", &resolved], options].concat();
    ask(roots, &format!("https://{host}:{port}/"), &options)
}

const NO_RETRY: [&str; 2] = ["--retry", "0"];

fn port_of(address: &str) -> u16 {
    address.trim_end_matches('/').rsplit_once(':').unwrap().1.parse().unwrap()
}

/// Creates a self-signed certificate and its key; `last_year` is the last year in which it is
/// valid.
fn certify(host: &str, last_year: i32) -> String {
    let mut parameters = rcgen::CertificateParams::new([host.to_owned()]).unwrap();
    parameters.not_before = rcgen::date_time_ymd(1990, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(last_year + 1, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    parameters.self_signed(&key).unwrap().pem() + &key.serialize_pem()
}

#[test]
fn obtains_certificates_and_presents_them_to_new_connections() {
    let Some(pebble) = find_pebble() else {
        println!("skipped: pebble is not installed; `cargo xtask test` installs it");
        return;
    };
    let folder = Folder::new();
    folder.write("www/index.html", b"here");
    folder.write("pebble.pem", certify("127.0.0.1", 2090).as_bytes());
    let ports = Ports::default();
    let directory = format!("https://127.0.0.1:{}/dir", ports.directory.number());
    // Less than a third of its validity remains.
    let old = certify("old.example", 2039);
    let kept = format!("From: {directory}\nFor: old.example\n\n{old}");
    let old = folder.write("data/acme/old.example.pem", kept.as_bytes());
    let old_root = folder.write("old.pem", &fs::read(&old).unwrap());
    let text = format!(
        "listen = [\"127.0.0.1:0\", \"127.0.0.1:0,tls=off\"]\ncontrol = \"control\"\nroot = \"www\"\n\
         data = \"data\"\ntls = \"acme\"\nhttps-redirect = true\nacme-host = \"top.example\"\n\
         acme-email = \"me@top.example\"\nacme-directory = \"{directory}\"\nacme-roots = \"pebble.pem\"\n\
         [[site]]\nhosts = [\"one.example\", \"www.one.example\", \"*.one.example\"]\n\
         [[site]]\nhosts = [\"old.example\"]\n"
    );
    let config = folder.write("bine.toml", text.as_bytes());
    let config = config.to_str().unwrap();
    let start = || {
        let mut program = Program::start(&mut bine(&["serve", "--config", config]));
        let plain = program.await_address();
        let secure = port_of(&program.addresses()[0]);
        (program, secure, plain)
    };

    // The server starts although the authority is not reachable yet.
    let (program, secure, plain) = start();
    let untrusting = [&NO_RETRY[..], &["--insecure"]].concat();
    let top =
        |options: &[&str]| ask_host(&folder.join("pebble.pem"), "top.example", secure, options);
    assert_eq!(top(&untrusting).as_deref(), Some("here"));
    assert_eq!(top(&NO_RETRY), None);
    assert_eq!(ask_host(&old_root, "old.example", secure, &NO_RETRY).as_deref(), Some("here"));

    let authority = start_pebble(&pebble, &folder, &ports, port_of(&plain));
    let reloaded = Program::run(&mut bine(&["reload", "--config", config]));
    assert_eq!(reloaded.code, Some(0), "{}", reloaded.errors);
    let roots = format!("https://127.0.0.1:{}/roots/0", ports.management.number());
    let roots = ask(&folder.join("pebble.pem"), &roots, &[]).unwrap();
    let roots = folder.write("roots.pem", roots.as_bytes());
    for host in ["top.example", "one.example", "www.one.example", "old.example"] {
        let Some(body) = ask_host(&roots, host, secure, &[]) else {
            panic!("{host}: {}", program.stop().errors);
        };
        assert_eq!(body, "here", "{host}");
    }
    assert_eq!(ask_host(&roots, "other.one.example", secure, &NO_RETRY), None);
    let kept = fs::read_dir(folder.join("data/acme")).unwrap().map(Result::unwrap);
    let kept: Vec<_> = kept.map(|entry| (entry.file_name(), entry.metadata().unwrap())).collect();
    assert_eq!(kept.len(), 4, "{kept:?}");
    for (name, metadata) in kept {
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{}", name.display());
    }

    // The certificates outlast both processes.
    drop((program, authority));
    let (_program, secure, _) = start();
    for host in ["top.example", "old.example"] {
        assert_eq!(ask_host(&roots, host, secure, &NO_RETRY).as_deref(), Some("here"), "{host}");
    }
}

#[test]
fn reports_invalid_acme_settings_before_serving() {
    let folder = Folder::new();
    folder.write("roots.pem", certify("ca.example", 2090).as_bytes());
    let listen = "listen = [\"127.0.0.1:0\", \"127.0.0.1:0,tls=off\"]\n";
    let data = "data = \"data\"\n";
    let host = "acme-host = \"a.example\"\n";
    let whole = [listen, data, host].concat();
    for (text, reason) in [
        (whole.clone(), "OK"),
        ([listen, host].concat(), "keeps its certificates in a data folder: set `data`"),
        ([listen, data].concat(), "for which hosts? Set `acme-host`"),
        (
            [data, host, "listen = \"127.0.0.1:0\"\n"].concat(),
            "no address is without: add one like",
        ),
        (whole.replace("a.example", "*.example"), "`*.example` is no name of one host"),
        (whole.replace("a.example", "192.0.2.1"), "`192.0.2.1` is no name of one host"),
        (whole.clone() + "acme-email = \"me\"\n", "must be an address like me@example.org"),
        (whole.clone() + "acme-directory = \"http://a/\"\n", "must begin with https://"),
        (
            whole.clone() + "[[site]]\nhosts = [\"*.a.example\"]\n",
            "no host of the site for *.a.example can be proved",
        ),
    ] {
        let text = format!("root = \".\"\ntls = \"acme\"\nacme-roots = \"roots.pem\"\n{text}");
        let config = folder.write("bine.toml", text.as_bytes());
        let ended =
            Program::run(&mut bine(&["check-config", "--config", config.to_str().unwrap()]));
        assert!((ended.output + &ended.errors).contains(reason), "{text}: {reason}");
    }
}
