//! Errors of a wrong setup.

use bine_cluster::{Cluster, Error, Options};
use bine_nats_server::NatsServer;

#[test]
fn names_the_fix_when_no_server_answers() {
    let options = Options::new("nats://user:secret@127.0.0.1:1", "a");
    let error = connect_error(options);
    let expected = "no NATS server answers at nats://127.0.0.1:1 (connection refused): start one with \
                    `nats-server --jetstream`, or correct `cluster`";
    assert_eq!(error, Error::Unreachable(expected.to_owned()));
}

#[test]
fn names_the_fix_when_the_server_has_no_jetstream() {
    let Some(server) = NatsServer::start_with(&[]) else { return };
    let error = connect_error(Options::new(server.url(), "a")).to_string();
    assert!(error.contains("start the NATS server with `--jetstream`"), "{error}");
}

#[test]
fn names_the_fix_when_the_password_is_wrong() {
    let Some(server) = NatsServer::start_with(&["--jetstream", "--user", "a", "--pass", "b"])
    else {
        return;
    };
    let url = |login: &str| server.url().replace("nats://", &format!("nats://{login}@"));
    assert!(Cluster::connect(Options::new(url("a:b"), "a")).is_ok());
    let error = connect_error(Options::new(url("a:wrong"), "a"));
    assert!(matches!(&error, Error::Unauthorized(text) if !text.contains("wrong")), "{error}");
}

#[test]
fn accepts_a_token() {
    let Some(server) = NatsServer::start_with(&["--jetstream", "--auth", "s3cret"]) else { return };
    let url = server.url().replace("nats://", "nats://s3cret@");
    assert!(Cluster::connect(Options::new(url, "a")).is_ok());
}

#[test]
fn names_the_fix_when_one_server_must_store_three_replicas() {
    let Some(server) = NatsServer::start() else { return };
    let options = Options { replicas: 3, ..Options::new(server.url(), "a") };
    let error = connect_error(options);
    assert!(matches!(&error, Error::Unsuitable(text) if text.contains("use 1 replica")), "{error}");
}

#[test]
fn gives_clusters_of_different_names_streams_of_their_own() {
    let Some(server) = NatsServer::start() else { return };
    let connect = |name: &str| {
        let options = Options { name: name.to_owned(), ..Options::new(server.url(), "a") };
        Cluster::connect(options).unwrap()
    };
    assert_ne!(connect("one").stream_id(), connect("two").stream_id());
    assert_eq!(connect("one").stream_id(), connect("one").stream_id());
}

fn connect_error(options: Options) -> Error {
    Cluster::connect(options).map(|_| ()).unwrap_err()
}
