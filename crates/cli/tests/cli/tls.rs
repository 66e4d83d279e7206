//! Tests of TLS with curl as the client.

use std::net::SocketAddr;
use std::process::Command;

use crate::bine;
use crate::harness::{Folder, KINDS, Peer, Program};

/// Writes a certificate for `host`, and its key, as `NAME.pem`.
fn certify(folder: &Folder, name: &str, host: &str) {
    let made = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
    let pem = made.cert.pem() + &made.signing_key.serialize_pem();
    folder.write(&format!("{name}.pem"), pem.as_bytes());
}

/// Returns the body of `https://HOST/` for a client that trusts only `NAME.pem`; `None` if the
/// request fails.
fn ask(folder: &Folder, address: SocketAddr, host: &str, name: &str) -> Option<String> {
    let port = address.port();
    let output = Command::new("curl")
        .args(["--silent", "--fail", "--max-time", "20", "--cacert"])
        .arg(folder.join(&format!("{name}.pem")))
        .args(["--resolve", &format!("{host}:{port}:{}", address.ip())])
        .arg(format!("https://{host}:{port}/"))
        .output()
        .unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

#[test]
fn presents_certificate_of_each_site() {
    let folder = Folder::new();
    for (name, host) in [("top", "localhost"), ("one", "one.example"), ("below", "a.two.example")] {
        certify(&folder, name, host);
        folder.write(&format!("{name}/index.html"), name.as_bytes());
    }
    let site = |name: &str, hosts: &str| {
        format!(
            "\n[[site]]\nhosts = [\"{hosts}\"]\nroot = \"{name}\"\ncertificate = \"{name}.pem\"\ncertificate-key = \"{name}.pem\"\n"
        )
    };
    let top = "listen = \"127.0.0.1:0\"\ntls = \"on\"\nroot = \"top\"\ncertificate = \"top.pem\"\ncertificate-key = \"top.pem\"\n";
    let text = top.to_owned() + &site("one", "one.example") + &site("below", "*.two.example");
    let config = folder.write("bine.toml", text.as_bytes());
    for scheduler in KINDS {
        let options = ["serve", "--config", config.to_str().unwrap(), "--scheduler", scheduler];
        let program = Program::start(&mut bine(&options));
        assert!(program.addresses()[0].starts_with("https://127.0.0.1:"));
        let body_of = |host, name| ask(&folder, program.address(), host, name);
        assert_eq!(body_of("localhost", "top").as_deref(), Some("top"), "{scheduler}");
        assert_eq!(body_of("one.example", "one").as_deref(), Some("one"), "{scheduler}");
        assert_eq!(body_of("a.two.example", "below").as_deref(), Some("below"), "{scheduler}");
        assert_eq!(body_of("one.example", "top"), None, "{scheduler}");
    }
}

#[test]
fn presents_new_certificate_after_reload() {
    let folder = Folder::new();
    for name in ["old", "new"] {
        certify(&folder, name, "localhost");
    }
    folder.write("www/index.html", b"here");
    let configure = |name: &str| {
        let text = format!(
            "listen = \"127.0.0.1:0\"\ncontrol = \"control\"\nroot = \"www\"\ntls = \"on\"\ncertificate = \"{name}.pem\"\ncertificate-key = \"{name}.pem\"\n"
        );
        folder.write("bine.toml", text.as_bytes())
    };
    let config = configure("old");
    let run = |word| Program::run(&mut bine(&[word, "--config", config.to_str().unwrap()]));
    let program = Program::start(&mut bine(&["serve", "--config", config.to_str().unwrap()]));
    assert_eq!(ask(&folder, program.address(), "localhost", "old").as_deref(), Some("here"));
    configure("new");
    assert_eq!(run("reload").code, Some(0));
    assert_eq!(ask(&folder, program.address(), "localhost", "old"), None);
    assert_eq!(ask(&folder, program.address(), "localhost", "new").as_deref(), Some("here"));
    folder.write("wrong.pem", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    for (name, reason) in [("wrong", "wrong.pem: "), ("absent", "absent.pem: No such file")] {
        configure(name);
        let reloaded = run("reload");
        assert_eq!(reloaded.code, Some(1));
        assert!(reloaded.errors.contains(reason), "{}", reloaded.errors);
        assert_eq!(ask(&folder, program.address(), "localhost", "new").as_deref(), Some("here"));
    }
}

#[test]
fn changes_options_of_kept_address_on_reload() {
    for scheduler in KINDS {
        let folder = Folder::new();
        certify(&folder, "own", "localhost");
        folder.write("www/index.html", b"here");
        let configure = |listen: &str| {
            let text = format!(
                "listen = \"127.0.0.1:0,{listen}\"\ncontrol = \"control\"\nroot = \"www\"\nscheduler = \"{scheduler}\"\nworkers = 8\n\
                 tls = \"on\"\ncertificate = \"own.pem\"\ncertificate-key = \"own.pem\"\n"
            );
            folder.write("bine.toml", text.as_bytes())
        };
        let config = configure("tls=off");
        let config = config.to_str().unwrap();
        let program = Program::start(&mut bine(&["serve", "--config", config]));
        let address = program.address();
        let mut old = program.connect();
        assert_eq!(old.get("/").text(), "here");
        for _ in 0..2 {
            configure("tls=on,backlog=7,nodelay=off");
            let reloaded = Program::run(&mut bine(&["reload", "--config", config]));
            assert_eq!((reloaded.code, reloaded.errors.as_str()), (Some(0), ""), "{scheduler}");
            let secure = ask(&folder, address, "localhost", "own");
            assert_eq!(secure.as_deref(), Some("here"), "{scheduler}");
            configure("tls=off");
            assert_eq!(Program::run(&mut bine(&["reload", "--config", config])).code, Some(0));
            assert_eq!(program.connect().get("/").text(), "here", "{scheduler}");
        }
        assert_eq!(old.get("/").text(), "here", "{scheduler}");
    }
}

/// The second address was once mistaken for the first with new options.
#[test]
fn keeps_both_addresses_with_port_zero_on_reload() {
    let folder = Folder::new();
    certify(&folder, "own", "localhost");
    folder.write("www/index.html", b"here");
    let config = folder.write(
        "bine.toml",
        b"listen = [\"127.0.0.1:0\", \"127.0.0.1:0,tls=off\"]\ncontrol = \"control\"\nroot = \"www\"\n\
          tls = \"on\"\ncertificate = \"own.pem\"\ncertificate-key = \"own.pem\"\n",
    );
    let config = config.to_str().unwrap();
    let mut program = Program::start(&mut bine(&["serve", "--config", config]));
    let plain = program.await_address();
    let plain = plain.trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
    let secure = program.address();
    for _ in 0..2 {
        assert_eq!(ask(&folder, secure, "localhost", "own").as_deref(), Some("here"));
        assert_eq!(Peer::tcp(plain).get("/").text(), "here");
        assert_eq!(Program::run(&mut bine(&["reload", "--config", config])).code, Some(0));
    }
}

#[test]
fn redirects_plain_requests_to_https() {
    let folder = Folder::new();
    folder.write("www/.well-known/acme-challenge/token", b"proof");
    folder.write("www/index.html", b"here");
    let (www, data) = (folder.join("www"), folder.join("data"));
    let mut program = Program::start(&mut bine(&[
        "serve",
        www.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
        "--listen",
        "127.0.0.1:0,tls=off",
        "--tls",
        "self-signed",
        "--https-redirect",
        "on",
        "--hsts",
        "2d",
        "--data",
        data.to_str().unwrap(),
    ]));
    let plain = program.await_address();
    let curl = |options: &[&str], url: &str| {
        let output = Command::new("curl")
            .args(["--silent", "--max-time", "20"])
            .args(options)
            .arg(url)
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let head = curl(&["--include"], &format!("{plain}a?b=c"));
    assert!(head.starts_with("HTTP/1.1 308 "), "{head}");
    // The redirect keeps the port of the configuration, because the one that the kernel chose is
    // not known before.
    assert!(head.contains("\r\nLocation: https://127.0.0.1:0/a?b=c\r\n"), "{head}");
    assert!(!head.contains("Strict-Transport-Security"), "{head}");
    assert_eq!(curl(&[], &format!("{plain}.well-known/acme-challenge/token")), "proof");
    let trusted = data.join("self-signed.pem");
    let head = curl(&["--include", "--cacert", trusted.to_str().unwrap()], &program.addresses()[0]);
    assert!(head.starts_with("HTTP/2 200 "), "{head}");
    assert!(head.contains("\r\nstrict-transport-security: max-age=172800\r\n"), "{head}");
}

#[test]
fn reports_missing_tls_settings_before_serving() {
    for (options, reason) in [
        (&["--tls", "on"][..], "TLS needs a certificate: set `certificate`"),
        (&["--https-redirect", "on"], "https-redirect: no address speaks TLS"),
        (&["--tls", "perhaps"], "must be one of on, off, acme, self-signed"),
        (&["--tls", "on", "--certificate", "a.pem"], "`certificate-key` must say where its key is"),
    ] {
        let mut command = bine(&["serve", ".", "--listen", "127.0.0.1:0"]);
        let ended = Program::run(command.args(options));
        assert!(matches!(ended.code, Some(1 | 2)), "{ended:?}");
        assert!(ended.errors.contains(reason), "{}", ended.errors);
    }
}
