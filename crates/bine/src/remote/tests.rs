//! Tests of calls to servers that behave correctly and to servers that do not.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bine_http::Status;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;

/// A server that sends the next response to each request, and closes the connection for an empty
/// one. Its thread returns the requests with the number of their connection.
pub(crate) fn server<const N: usize>(
    answers: [&'static str; N],
) -> (String, JoinHandle<Vec<(usize, String)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let serve = move || {
        let (mut seen, mut left, mut connection) = (Vec::new(), answers.iter(), 0);
        while left.len() > 0 {
            let (mut socket, _) = listener.accept().unwrap();
            connection += 1;
            while left.len() > 0
                && let Some(request) = request(&mut socket)
            {
                seen.push((connection, request));
                match left.next() {
                    None | Some(&"") => break,
                    Some(answer) => socket.write_all(answer.as_bytes()).unwrap(),
                }
            }
        }
        seen
    };
    (address, thread::spawn(serve))
}

/// Reads the next request with its body; `None`: the connection has ended.
fn request(from: &mut impl std::io::Read) -> Option<String> {
    let mut text = String::new();
    while !text.ends_with("\r\n\r\n") {
        let mut byte = [0];
        if from.read(&mut byte).ok()? == 0 {
            return None;
        }
        text.push(char::from(byte[0]));
    }
    let length = text.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    from.read_exact(&mut body).ok()?;
    Some(text + std::str::from_utf8(&body).unwrap())
}

const SEVEN: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n7";

#[test]
fn call_sends_json_and_bearer_token() {
    let (address, server) = server([SEVEN]);
    let other = remote(&format!("{address}/deep/")).token("t-1");
    let seven: u8 = other.service("/board/post").call(&Pair(("body", "a\n"))).wait().unwrap();
    assert_eq!(seven, 7);
    let seen = server.join().unwrap();
    let host = address.strip_prefix("http://").unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        seen[0].1,
        format!(
            "POST /deep/board/post HTTP/1.1\r\nHost: {host}\r\nUser-Agent: bine/{version}\r\n\
             Accept: application/json, application/problem+json\r\n\
             Content-Type: application/json\r\nContent-Length: 14\r\n\
             Authorization: Bearer t-1\r\n\r\n{{\"body\":\"a\\n\"}}"
        )
    );
}

/// One argument with its name.
struct Pair((&'static str, &'static str));

impl Serialize for Pair {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map([self.0])
    }
}

#[test]
fn reuses_connection_when_response_permits() {
    let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n7";
    let nothing = "HTTP/1.1 204 No Content\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n7\r\n0\r\n\r\n";
    let (address, server) = server([SEVEN, chunked, nothing, closing, SEVEN]);
    for _ in 0..5 {
        // Each call creates its own client value.
        let answer = remote(&address).service("/a").call::<_, Option<u8>>(&()).wait();
        assert!(matches!(answer, Ok(Some(7) | None)), "{answer:?}");
    }
    let connections: Vec<usize> =
        server.join().unwrap().iter().map(|(number, _)| *number).collect();
    assert_eq!(connections, [1, 1, 1, 1, 2]);
}

#[test]
fn tasks_of_two_runtimes_share_connections() {
    let (address, server) = server([SEVEN, SEVEN]);
    for _ in 0..2 {
        // The first runtime has ended when the second one makes its call.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let call = remote(&address).service("/a").call::<_, u8>(&());
        assert_eq!(runtime.block_on(call), Ok(7));
    }
    let connections: Vec<usize> =
        server.join().unwrap().iter().map(|(number, _)| *number).collect();
    assert_eq!(connections, [1, 1]);
}

#[test]
fn never_repeats_unsafe_call() {
    let (address, server) = server([SEVEN, "", SEVEN]);
    let call = || remote(&address).service("/a").call::<_, u8>(&()).wait();
    assert_eq!(call(), Ok(7));
    // On the pooled connection, which the server closes then.
    assert!(matches!(call(), Err(Error::Unanswered(_))));
    assert_eq!(call(), Ok(7));
    assert_eq!(server.join().unwrap().len(), 3);
}

/// An address that no other test uses, so that its port stays closed.
const UNUSED_ADDRESS: &str = "127.7.7.5:0";

#[test]
fn refused_connection_is_unreached() {
    let closed = TcpListener::bind(UNUSED_ADDRESS).unwrap().local_addr().unwrap();
    let address = format!("http://{closed}");
    let told = remote(&address).service("/a").call::<_, ()>(&()).wait().unwrap_err();
    let Error::Unreached(what) = &told else { panic!("{told:?}") };
    assert!(what.starts_with(&format!("{address}: ")), "{what}");
    assert_eq!(crate::Error::from(told).code(), Status::BAD_GATEWAY);
}

/// The error of a call with a short timeout. The timeout is extended if a busy machine cannot
/// connect in time.
#[track_caller]
fn timed_out(call: impl Fn(Duration) -> Error) -> Error {
    let mut told = [100, 1000, 10_000].into_iter().map(Duration::from_millis).map(call);
    let told = told.find(|told| !matches!(told, Error::Unreached(_)));
    assert!(matches!(told, Some(Error::TimedOut(_))), "{told:?}");
    told.unwrap()
}

#[test]
fn call_times_out_without_response() {
    // The system accepts the connections, but no thread reads them.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let told = timed_out(|limit| {
        remote(&address).timeout(limit).service("/a").call::<_, ()>(&()).wait().unwrap_err()
    });
    assert_eq!(crate::Error::from(told).code(), Status::GATEWAY_TIMEOUT);
    let address = address.replace("http://", "https://");
    let other = remote(&address)
        .connect_timeout(Duration::from_millis(10))
        .root_certificates(&certificate().0);
    let told = other.service("/a").call::<_, ()>(&()).wait().unwrap_err();
    assert!(matches!(told, Error::Unreached(_)), "{told:?}");
}

#[test]
fn refusal_keeps_status_and_message() {
    let refusal = "HTTP/1.1 404 Not Found\r\nContent-Type: application/problem+json\r\nContent-Length: 55\r\n\r\n{\"title\":\"Not Found\",\"detail\":\"there is no forum `a` \"}";
    let page = "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<p>a";
    let moved =
        "HTTP/1.1 303 See Other\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n";
    let (address, server) = server([refusal, page, moved]);
    let call = || remote(&address).service("/a").call::<_, ()>(&()).wait().unwrap_err();
    let told = call();
    let (status, message) = (Status::NOT_FOUND, "there is no forum `a` ".to_owned());
    assert_eq!(told, Error::Refused { by: address.clone(), status, message });
    assert_eq!(
        told.to_string(),
        format!("{address}: refused with 404 Not Found: there is no forum `a` ")
    );
    let error = crate::Error::from(told);
    assert_eq!((error.code(), error.message()), (status, Some("there is no forum `a` ")));
    // A refusal without a message for users concerns only the two servers.
    assert_eq!(crate::Error::from(call()).code(), Status::BAD_GATEWAY);
    assert!(matches!(call(), Error::Misunderstood(_)));
    server.join().unwrap();
}

#[test]
fn reports_invalid_answers() {
    let long = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n15\r\n\"2345678901234567890\"\r\n";
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<p>a";
    let deep = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 17\r\n\r\n{\"__proto__\": {}}";
    let (address, server) = server([long, page, SEVEN, deep]);
    let call =
        || remote(&address).max_response_size(19).service("/a").call::<_, String>(&()).wait();
    for told in [
        "its answer has more than 19 bytes",
        "it answered with `text/html`, not with JSON",
        "the answer: invalid type: integer `7`, expected a string",
        "the answer: the key `__proto__` is refused (at line 1 column 12)",
    ] {
        let Err(Error::Misunderstood(what)) = call() else { panic!("{told}") };
        assert!(what.ends_with(told), "{what}");
    }
    server.join().unwrap();
}

#[test]
fn reports_misuse_before_sending() {
    let misused = |call: RemoteCall<()>| {
        let Err(Error::Misused(what)) = call.wait() else { panic!() };
        what
    };
    assert!(misused(remote("other").service("/a").call(&())).contains("is no address of a server"));
    let other = remote("http://127.0.0.1:1");
    assert!(misused(other.service("a").call(&())).contains("is no path of a service"));
    assert!(misused(other.service("/a HTTP/1.1\r\nX: y").call(&())).contains("is no path"));
    let token = other.clone().token("a\r\nX: y");
    assert!(misused(token.service("/a").call(&())).contains("a token has"));
    let told = misused(other.service("/a").call(&[f64::NAN]));
    assert_eq!(told, "/a: the arguments: NaN is no number of JSON (at [0])");
    assert!(
        misused(other.root_certificates(b"none").service("/a").call(&()))
            .contains("no certificate")
    );
    assert!(!format!("{:?}", remote("http://a").token("secret")).contains("secret"));
}

/// A self-signed certificate for this machine (PEM), and a server configuration with it.
fn certificate() -> (Vec<u8>, Arc<ServerConfig>) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (made.cert.pem().into_bytes(), Arc::new(config))
}

#[test]
fn accepts_tls_server_with_trusted_certificate_only() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    let (pem, config) = certificate();
    let serve = thread::spawn(move || {
        let mut requests = Vec::new();
        for _ in 0..2 {
            let (socket, _): (TcpStream, _) = listener.accept().unwrap();
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(session, socket);
            while let Some(request) = request(&mut stream) {
                requests.push(request.len());
                stream.write_all(SEVEN.as_bytes()).unwrap();
                stream.flush().unwrap();
            }
        }
        requests
    });
    let other = remote(&address).root_certificates(&pem);
    let long = "a".repeat(300_000);
    for _ in 0..3 {
        assert_eq!(other.service("/a").call::<_, u8>(&Pair(("body", "a"))).wait(), Ok(7));
    }
    assert_eq!(other.service("/a").call::<_, u8>(&[&long]).wait(), Ok(7));
    // Closes the idle connection, so that the server can accept the next one.
    pool::close_idle(&address);
    let strangers = certificate().0;
    let told =
        remote(&address).root_certificates(&strangers).service("/a").call::<_, u8>(&()).wait();
    let Err(Error::Unreached(what)) = told else { panic!("{told:?}") };
    assert!(what.contains("certificate"), "{what}");
    assert_eq!(serve.join().unwrap().len(), 4);
}

#[test]
fn connection_closed_in_handshake_is_unreached() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    let serve = thread::spawn(move || {
        // The server reads before it closes: otherwise the system resets the connection.
        let mut socket = listener.accept().unwrap().0;
        std::io::Read::read(&mut socket, &mut [0; 4096]).unwrap()
    });
    let other = remote(&address).root_certificates(&certificate().0);
    let told = other.service("/a").call::<_, ()>(&()).wait().unwrap_err();
    let Error::Unreached(what) = &told else { panic!("{told:?}") };
    assert!(what.ends_with("the connection ended in the handshake"), "{what}");
    assert!(serve.join().unwrap() > 0);
}

#[test]
fn call_times_out_during_endless_response() {
    timed_out(|limit| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let serve = thread::spawn(move || {
            let mut socket = listener.accept().unwrap().0;
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
            let chunk = format!("1;{}\r\n7\r\n", "x".repeat(16_000));
            let mut sent = socket.write_all(head.as_bytes());
            while sent.is_ok() {
                sent = socket.write_all(chunk.as_bytes());
            }
        });
        let call = remote(&address).timeout(limit).service("/a").call::<_, ()>(&());
        let told = call.wait().unwrap_err();
        // The server would wait forever for a client that never connected.
        if !matches!(told, Error::Unreached(_)) {
            serve.join().unwrap();
        }
        told
    });
}

#[test]
fn call_needs_no_thread_of_blocking_pool() {
    let (free, freed) = std::sync::mpsc::channel::<()>();
    let freed = Arc::new(std::sync::Mutex::new(freed));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // More tasks than the pool has threads.
        for _ in 0..50 {
            let freed = Arc::clone(&freed);
            tokio::spawn(crate::blocking(move || freed.lock().unwrap().recv().unwrap_err()));
        }
        tokio::task::yield_now().await;
        let closed = TcpListener::bind(UNUSED_ADDRESS).unwrap().local_addr().unwrap();
        let call = remote(&format!("https://{closed}")).service("/a").call::<_, ()>(&());
        let told = call.await;
        drop(free);
        let Err(Error::Unreached(what)) = &told else { panic!("{told:?}") };
        assert!(!what.ends_with("in time"), "{what}");
    });
}

#[test]
fn empty_response_without_length_is_unanswered() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let serve = thread::spawn(move || {
        for fields in ["", "Content-Length: 0\r\n"] {
            let mut socket = listener.accept().unwrap().0;
            request(&mut socket).unwrap();
            socket.write_all(format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes()).unwrap();
        }
    });
    let call = || remote(&address).service("/a").call::<_, ()>(&()).wait();
    let told = call();
    let Err(Error::Unanswered(what)) = &told else { panic!("{told:?}") };
    assert!(what.ends_with("without a length"), "{what}");
    assert_eq!(call(), Ok(()));
    serve.join().unwrap();
}

#[test]
fn shares_pool_between_clones_of_roots_only() {
    let address = Address::parse("https://roots.test").unwrap();
    let roots = trust::of(&certificate().0).unwrap();
    let pool = pool::ServerPool::of(&address, Some(&roots));
    assert!(Arc::ptr_eq(&pool, &pool::ServerPool::of(&address, Some(&Arc::clone(&roots)))));
    assert!(!Arc::ptr_eq(&pool, &pool::ServerPool::of(&address, None)));
    // The pool holds a reference, so no other value can get the same address.
    assert!(Arc::strong_count(&roots) > 1);
}
