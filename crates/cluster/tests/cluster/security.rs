//! TLS and credentials.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bine_cluster::{Cluster, Error, Options};
use bine_nats_server::{Folder, NatsServer, ReservedPort, wait_until};
use nkeys::KeyPair;

use crate::certificates::{Authority, Signed};
use crate::harness::Node;
use crate::tokens::{Operator, credentials_file};

/// The files of a test, and the configuration of its server.
struct Setup {
    folder: Folder,
    configuration: PathBuf,
}

impl Setup {
    fn new() -> Self {
        let folder = Folder::new();
        let configuration = folder.path().join("nats.conf");
        Self { folder, configuration }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn configure(&self, text: &str) {
        fs::write(&self.configuration, text).unwrap();
    }

    /// Starts a server with JetStream and a configuration.
    fn start(&self, text: &str) -> Option<NatsServer> {
        self.configure(text);
        NatsServer::start_with(&["--jetstream", "--config", self.configuration.to_str().unwrap()])
    }
}

/// The block of a server that has a certificate, and requires one that `clients` has signed.
fn tls(own: &Signed, clients: Option<&Authority>) -> String {
    let (certificate, key) = (own.certificate.display(), own.key.display());
    let verify = clients.map_or_else(String::new, |authority| {
        format!("  ca_file: \"{}\"\n  verify: true\n", authority.certificate.display())
    });
    format!("tls {{\n  cert_file: \"{certificate}\"\n  key_file: \"{key}\"\n{verify}}}\n")
}

fn tls_url(server: &NatsServer) -> String {
    server.url().replace("nats://", "tls://")
}

fn error(options: Options) -> Error {
    Cluster::connect(options).map(|_| ()).unwrap_err()
}

/// Checks that an error names the fix.
fn check(error: &Error, expected: &str) {
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn encrypts_with_an_authority_of_its_own() {
    let setup = Setup::new();
    let authority = Authority::new(setup.path(), "authority");
    let own = authority.sign(setup.path(), "server", &["127.0.0.1"]);
    let Some(server) = setup.start(&tls(&own, None)) else { return };
    // The first server of the list is down. A server that requires TLS gets it at nats:// too.
    let unused = ReservedPort::new();
    let dead = format!("tls://127.0.0.1:{}", unused.number());
    for (count, url) in [(1, format!("{dead},{}", tls_url(&server))), (2, server.url())] {
        let authority = Some(authority.certificate.clone());
        let name = format!("node{count}");
        let node = Node::start_with(Options { authority, ..Options::new(url, name) }, 0);
        node.list.wait_for_connected();
        node.publish(1);
        node.list.wait_for_length(count);
        node.cluster.leave();
    }
}

#[test]
fn names_the_fix_when_tls_is_not_trusted() {
    let setup = Setup::new();
    let authority = Authority::new(setup.path(), "authority");
    let own = authority.sign(setup.path(), "server", &["localhost"]);
    let Some(server) = setup.start(&tls(&own, None)) else { return };
    let with = |url: String, authority: &Path| Options {
        authority: Some(authority.to_owned()),
        ..Options::new(url, "a")
    };
    let other = Authority::new(setup.path(), "other");
    let unknown = error(with(tls_url(&server), &other.certificate));
    assert!(matches!(unknown, Error::Untrusted(_)));
    check(&unknown, "name the file with the certificate of its authority by `cluster-authority`");
    let unused = ReservedPort::new();
    let dead = format!("tls://127.0.0.1:{}", unused.number());
    let second = error(with(format!("{dead},{}", tls_url(&server)), &other.certificate));
    check(&second, &format!("the NATS server at {} ", tls_url(&server)));
    let named = error(with(tls_url(&server), &authority.certificate));
    check(&named, "is for another host");
    let plain = setup.write("empty.pem", "no certificate\n");
    check(&error(with(tls_url(&server), &plain)), "empty.pem has no certificate in PEM format");
    let missing = setup.path().join("missing.pem");
    check(&error(with(tls_url(&server), &missing)), "correct `cluster-authority`");
}

#[test]
fn names_the_fix_when_a_certificate_has_expired() {
    let setup = Setup::new();
    let authority = Authority::new(setup.path(), "authority");
    let own = authority.sign_expired(setup.path(), "server");
    let Some(server) = setup.start(&tls(&own, None)) else { return };
    let authority = Some(authority.certificate);
    let expired = error(Options { authority, ..Options::new(tls_url(&server), "a") });
    check(&expired, "has expired");
}

#[test]
fn names_the_fix_when_the_server_does_not_use_tls() {
    let Some(server) = NatsServer::start() else { return };
    let setup = Setup::new();
    let authority = Some(Authority::new(setup.path(), "authority").certificate);
    let plain = error(Options { authority, ..Options::new(tls_url(&server), "a") });
    check(&plain, "does not use TLS");
    check(&plain, "or use nats:// in `cluster`");
}

#[test]
fn shows_a_certificate_to_a_server_that_requires_one() {
    let setup = Setup::new();
    let authority = Authority::new(setup.path(), "authority");
    let own = authority.sign(setup.path(), "server", &["127.0.0.1"]);
    let Some(server) = setup.start(&tls(&own, Some(&authority))) else { return };
    let base = || Options {
        authority: Some(authority.certificate.clone()),
        ..Options::new(tls_url(&server), "a")
    };
    let with = |signed: &Signed| Options {
        certificate: Some(signed.certificate.clone()),
        certificate_key: Some(signed.key.clone()),
        ..base()
    };
    let client = authority.sign(setup.path(), "client", &[]);
    assert!(Cluster::connect(with(&client)).is_ok());
    let both = fs::read_to_string(&client.certificate).unwrap()
        + &fs::read_to_string(&client.key).unwrap();
    let certificate = Some(setup.write("both.pem", &both));
    assert!(Cluster::connect(Options { certificate, ..base() }).is_ok());
    check(&error(base()), "name one that its authority has signed by `cluster-certificate`");
    let foreign = Authority::new(setup.path(), "other").sign(setup.path(), "foreign", &[]);
    check(
        &error(with(&foreign)),
        "name one that its authority has signed by `cluster-certificate`",
    );
    let keyless = Options { certificate: Some(client.certificate.clone()), ..base() };
    check(&error(keyless), "client.pem has no private key in PEM format");
    let mixed = Options { certificate_key: Some(foreign.key), ..with(&client) };
    check(&error(mixed), "`cluster-certificate-key`");
    let alone = Options { certificate_key: Some(client.key), ..base() };
    check(&error(alone), "`cluster-certificate-key` needs `cluster-certificate`");
}

#[test]
fn logs_in_by_each_form_of_a_credentials_file() {
    let setup = Setup::new();
    let key = KeyPair::new_user();
    let users = format!(
        "authorization {{ users: [{{ user: node, password: \"a:b\" }}, {{ nkey: {} }}] }}",
        key.public_key()
    );
    let Some(server) = setup.start(&users) else { return };
    let with = |text: &str| {
        let credentials = Some(setup.write("credentials", text));
        Options { credentials, ..Options::new(server.url(), "a") }
    };
    assert!(Cluster::connect(with("node:a:b\n")).is_ok());
    assert!(Cluster::connect(with(&key.seed().unwrap())).is_ok());
    for wrong in ["node:wrong", "unknown", &KeyPair::new_user().seed().unwrap()] {
        let rejected = error(with(wrong));
        assert!(matches!(rejected, Error::Unauthorized(_)), "{rejected}");
        check(&rejected, "the file `cluster-credentials`");
        assert!(!rejected.to_string().contains(wrong), "{rejected}");
    }
    check(&error(with("")), "is empty: `cluster-credentials` names");
    let mut twice = with("node:a:b");
    twice.servers = server.url().replace("nats://", "nats://node:b@");
    check(&error(twice), "remove one");
    let Some(server) = setup.start("authorization { token: s3cret }") else { return };
    let mut token = with("s3cret\n");
    token.servers = server.url();
    assert!(Cluster::connect(token).is_ok());
}

#[test]
fn logs_in_by_a_jwt_of_the_operator() {
    let setup = Setup::new();
    let operator = Operator::new();
    let Some(server) = setup.start(&operator.configuration()) else { return };
    let with = |text: &str| {
        let credentials = Some(setup.write("node.creds", text));
        Options { credentials, ..Options::new(server.url(), "a") }
    };
    let node = Node::start_with(with(&operator.issue()), 0);
    node.list.wait_for_connected();
    node.publish(3);
    node.list.wait_for_length(3);
    let (jwt, key) = operator.issue_for_key();
    let foreign = credentials_file(&jwt, &KeyPair::new_user().seed().unwrap());
    assert!(matches!(error(with(&foreign)), Error::Unauthorized(_)));
    assert!(Cluster::connect(with(&credentials_file(&jwt, &key))).is_ok());
    let other = Operator::new().issue();
    assert!(matches!(error(with(&other)), Error::Unauthorized(_)));
}

/// A running node that is refused waits as in any other outage, and names the fix. New credentials in
/// its file are enough.
#[test]
fn running_node_reports_a_refusal_and_recovers() {
    let setup = Setup::new();
    let users = |password: &str| {
        format!("authorization {{ users: [{{ user: node, password: {password} }}] }}")
    };
    let Some(mut server) = setup.start(&users("first")) else { return };
    let credentials = Some(setup.write("credentials", "node:first"));
    let node = Node::start_with(Options { credentials, ..Options::new(server.url(), "a") }, 0);
    node.list.wait_for_connected();
    server.kill();
    node.list.wait_for_cut_off();
    setup.configure(&users("second"));
    server.restart();
    node.list.wait_for_cut_off_by("rejects the credentials");
    node.publish(1);
    setup.write("credentials", "node:second");
    node.list.wait_for_connected();
    node.list.wait_for_length(1);
    node.list.check(&[("a", 1)]);
}

/// Symptom: a node that could not publish or renew a lease while it ran reported only that no answer
/// came, or nothing.
#[test]
fn running_node_names_what_the_server_does_not_permit() {
    let setup = Setup::new();
    let users = |denied: &str| {
        format!(
            "authorization {{ users: [{{ user: node, password: first, permissions: {{ \
             publish: {{ deny: {denied} }}, subscribe: \">\" }} }}] }}"
        )
    };
    let Some(mut server) = setup.start(&users("[\"unused\"]")) else { return };
    let credentials = Some(setup.write("credentials", "node:first"));
    let node = Node::start_with(Options { credentials, ..Options::new(server.url(), "a") }, 0);
    node.list.wait_for_connected();
    let holds = || node.cluster.lease("snapshots", Duration::from_millis(600)).unwrap();
    wait_until("the node has the lease", holds);
    server.kill();
    node.list.wait_for_cut_off();
    setup.configure(&users("[\"$KV.bine-leases.>\"]"));
    server.restart();
    node.list.wait_for_connected();
    let warnings = node.list.wait_for_warning();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("this node cannot hold the lease `snapshots`"), "{warnings:?}");
    for part in ["$KV.bine-leases.snapshots", "give its user the permissions"] {
        assert!(warnings[0].contains(part), "{warnings:?}");
    }
    assert!(!node.cluster.holds("snapshots"));
    server.kill();
    node.list.wait_for_cut_off();
    setup.configure(&users("[\"bine.log\"]"));
    server.restart();
    node.list.wait_for_connected();
    node.publish(1);
    node.list.wait_for_cut_off_by("\"bine.log\"");
    server.kill();
    setup.configure(&users("[\"unused\"]"));
    server.restart();
    node.list.wait_for_connected();
    node.list.wait_for_length(1);
    node.list.check(&[("a", 1)]);
}

#[test]
fn running_node_names_the_stream_that_is_full() {
    let Some(server) = NatsServer::start() else { return };
    let node = Node::start(&server.url(), "a");
    node.list.wait_for_connected();
    node.publish(1);
    node.list.wait_for_length(1);
    let limit = |bytes: i64| {
        let url = server.url();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let context = async_nats::jetstream::new(async_nats::connect(url).await.unwrap());
            let stream = context.get_stream("bine").await.unwrap();
            let config = stream.cached_info().config.clone();
            let config = async_nats::jetstream::stream::Config { max_bytes: bytes, ..config };
            context.update_stream(config).await.unwrap();
        });
    };
    limit(1);
    node.publish(1);
    node.list.wait_for_cut_off_by("refuses a message to `bine.log` (maximum bytes exceeded");
    node.list.wait_for_cut_off_by("raise the limits of the stream `bine`");
    limit(-1);
    node.list.wait_for_connected();
    node.list.wait_for_length(2);
    node.list.check(&[("a", 2)]);
}

/// The configuration of a NATS server in the guide permits everything that a node does.
#[test]
fn permissions_of_the_guide_are_sufficient() {
    let guide = include_str!("../../../../docs/guide/cluster.md");
    let block = guide.split("```nats-server\n").nth(1).unwrap().split("```").next().unwrap();
    let setup = Setup::new();
    let authority = Authority::new(setup.path(), "authority");
    let own = authority.sign(setup.path(), "server", &["127.0.0.1"]);
    let mut text = block.to_owned();
    for (name, own) in [
        ("/etc/nats/server.pem", own.certificate.to_str().unwrap()),
        ("/etc/nats/server-key.pem", own.key.to_str().unwrap()),
        // The command line has the folder.
        ("store_dir: \"/var/lib/nats\"", ""),
    ] {
        assert!(text.contains(name), "{name}");
        text = text.replace(name, own);
    }
    let log = setup.path().join("log");
    let Some(server) = setup.start(&format!("{text}\nlog_file: \"{}\"\n", log.display())) else {
        return;
    };
    let with = |name: &str| Options {
        authority: Some(authority.certificate.clone()),
        credentials: Some(setup.write("credentials", "node:replace-this-password")),
        ..Options::new(tls_url(&server), name)
    };
    let node = Node::start_with(with("a"), 0);
    node.list.wait_for_connected();
    // Beyond one window of the flow control.
    node.publish(20_000);
    node.list.wait_for_length(20_000);
    wait_until("the node has the lease", || {
        node.cluster.lease("snapshots", Duration::from_secs(3)).unwrap()
    });
    for position in [10, 20, 30] {
        let blocks = (0..3).map(|_| vec![7; 200_000]);
        assert_eq!(node.cluster.write_snapshot(position, blocks).unwrap().position, position);
    }
    let other = Cluster::connect(with("b")).unwrap();
    let snapshot = other.newest_snapshot().unwrap().unwrap();
    assert_eq!(snapshot.map(Result::unwrap).count(), 3);
    wait_until("both nodes are listed", || other.nodes().len() == 2);
    node.cluster.leave();
    other.leave();
    let foreign = Options { name: "foreign".to_owned(), ..with("a") };
    check(&error(foreign), "does not permit what this node must do");
    let log = fs::read_to_string(&log).unwrap();
    let denied = log.lines().filter(|line| line.to_lowercase().contains("violation"));
    let own: Vec<_> = denied.filter(|line| !line.contains("foreign")).collect();
    assert!(own.is_empty(), "{own:#?}");
}
