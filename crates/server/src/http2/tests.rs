//! Connections over days of a simulated clock: a client of the crate `h2`, the task of the connection,
//! and a loop that answers when the test says so, all on one thread.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use http::Request;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::*;
use crate::address::ClientAddress;
use crate::handler::{ReceiveBuffer, UpgradedConnection};
use crate::lifecycle::State;
use crate::memory_stream::{MemoryTransport, StreamQueue};
use crate::settings::Settings;
use crate::system::Transfer;
use crate::transport::Nonblocking;

const DAY: Duration = Duration::from_hours(24);

/// A connection under test.
struct Fixture {
    queue: Rc<StreamQueue>,
    idle: Rc<IdleConnections>,
    state: watch::Sender<State>,
    is_leaving: Rc<Cell<bool>>,
    settings: Arc<Settings>,
    /// Ends with the connection.
    connection: JoinHandle<()>,
    client: Option<UnixStream>,
}

impl Fixture {
    fn open() -> Self {
        let (server, client) = StdUnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        client.set_nonblocking(true).unwrap();
        let transport = Nonblocking::new(server.into(), None);
        let connection =
            UpgradedConnection::new(transport, Vec::new(), ReceiveBuffer::new()).unwrap();
        let (queue, idle): (Rc<StreamQueue>, Rc<IdleConnections>) = Default::default();
        let (state, receiver) = watch::channel(State::Serving);
        let (settings, is_leaving) = (Arc::new(Settings::default()), Rc::new(Cell::new(false)));
        let leaves = Rc::clone(&is_leaving);
        let terms = ConnectionTerms {
            queue: Rc::clone(&queue),
            idle: Rc::clone(&idle),
            peer: ClientAddress::UNIX,
            settings: Arc::clone(&settings),
            state: receiver,
            is_leaving: Box::new(move || leaves.get()),
            floods: Arc::default(),
        };
        let connection = tokio::task::spawn_local(serve(connection, terms));
        let client = Some(UnixStream::from_std(client).unwrap());
        Self { queue, idle, state, is_leaving, settings, connection, client }
    }

    /// The client, after its handshake, and the end of its connection.
    async fn client(&mut self) -> (SendRequest<Bytes>, JoinHandle<Result<(), h2::Error>>) {
        let client = self.client.take().unwrap();
        let (send, connection) = h2::client::handshake(client).await.unwrap();
        (send, tokio::task::spawn_local(connection))
    }

    /// Sends a request, and returns it as the loop sees it.
    async fn ask(&self, client: &mut SendRequest<Bytes>) -> (ResponseFuture, MemoryTransport) {
        poll_fn(|task| client.poll_ready(task)).await.unwrap();
        let request = Request::get("http://localhost/").body(()).unwrap();
        let response = client.send_request(request, true).unwrap().0;
        loop {
            if let Some(arrival) = self.queue.take_arrivals().pop() {
                return (response, arrival.transport);
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Runs a test whose clock jumps to the next deadline when nothing else happens.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build_local(tokio::runtime::LocalOptions::default())
        .unwrap();
    runtime.block_on(test);
}

async fn answer(response: ResponseFuture, transport: MemoryTransport) {
    let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    assert_eq!(transport.send(reply), Transfer::Moved(reply.len()));
    let mut body = response.await.unwrap().into_body();
    assert_eq!(body.data().await.unwrap().unwrap(), "ok");
    assert!(body.data().await.is_none());
}

#[test]
fn keeps_a_connection_with_an_open_stream_for_days() {
    run(async {
        let mut fixture = Fixture::open();
        let (mut client, _end) = fixture.client().await;
        for _ in 0..3 {
            let (response, transport) = fixture.ask(&mut client).await;
            tokio::time::sleep(10 * DAY).await;
            assert!(fixture.idle.list().is_empty());
            answer(response, transport).await;
            // A rest that is shorter than the limit.
            tokio::time::sleep(fixture.settings.timeouts.idle / 2).await;
            assert_eq!(fixture.idle.list().len(), 1);
        }
    });
}

#[test]
fn closes_an_idle_connection_at_its_time() {
    run(async {
        let mut fixture = Fixture::open();
        let (mut client, end) = fixture.client().await;
        let (response, transport) = fixture.ask(&mut client).await;
        answer(response, transport).await;
        let begun = Instant::now();
        end.await.unwrap().unwrap();
        let timeouts = &fixture.settings.timeouts;
        let lasted = begun.elapsed();
        assert!(lasted >= timeouts.idle && lasted <= timeouts.idle + timeouts.linger, "{lasted:?}");
        fixture.connection.await.unwrap();
        assert!(fixture.idle.list().is_empty());
    });
}

#[test]
fn closes_a_connection_whose_handshake_does_not_end() {
    run(async {
        let fixture = Fixture::open();
        let begun = Instant::now();
        fixture.connection.await.unwrap();
        assert_eq!(begun.elapsed(), fixture.settings.timeouts.head);
        drop(fixture.client);
    });
}

#[test]
fn closes_a_connection_whose_client_does_not_read() {
    run(async {
        let mut fixture = Fixture::open();
        let mut client = fixture.client.take().unwrap();
        // Windows of 2 GiB, and a request for `/` at `a`.
        let first = [
            PREFACE,
            b"\0\0\x06\x04\0\0\0\0\0\0\x04\x7f\xff\xff\xff",
            b"\0\0\x04\x08\0\0\0\0\0\x7f\0\0\0",
            b"\0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x01\x01a",
        ];
        client.write_all(&first.concat()).await.unwrap();
        let transport = loop {
            if let Some(arrival) = fixture.queue.take_arrivals().pop() {
                break arrival.transport;
            }
            tokio::task::yield_now().await;
        };
        transport.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
        let mut begun = Instant::now();
        while !fixture.connection.is_finished() {
            if let Transfer::Moved(_) = transport.send(&vec![b'x'; 64 * 1024]) {
                begun = Instant::now();
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert!(begun.elapsed() <= fixture.settings.timeouts.write + Duration::from_secs(2));
    });
}

#[test]
fn ends_after_open_streams_when_the_server_stops() {
    run(async {
        let mut fixture = Fixture::open();
        let (mut client, end) = fixture.client().await;
        let (response, transport) = fixture.ask(&mut client).await;
        fixture.state.send(State::Draining).unwrap();
        tokio::time::sleep(DAY).await;
        answer(response, transport).await;
        end.await.unwrap().unwrap();
        fixture.connection.await.unwrap();
    });
}

#[test]
fn ends_after_the_next_request_when_the_server_leaves() {
    run(async {
        let mut fixture = Fixture::open();
        let (mut client, end) = fixture.client().await;
        let (response, transport) = fixture.ask(&mut client).await;
        fixture.is_leaving.set(true);
        answer(response, transport).await;
        let (response, transport) = fixture.ask(&mut client).await;
        answer(response, transport).await;
        let begun = Instant::now();
        // The client may find that the connection is closed while it acknowledges the end.
        drop(end.await.unwrap());
        assert!(begun.elapsed() <= fixture.settings.timeouts.linger);
    });
}

#[test]
fn closes_idle_connections_that_the_loop_selects() {
    run(async {
        let mut fixture = Fixture::open();
        let (mut client, end) = fixture.client().await;
        let (response, transport) = fixture.ask(&mut client).await;
        answer(response, transport).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let idle = fixture.idle.list().pop().unwrap();
        assert_eq!(idle.allowed, fixture.settings.timeouts.idle);
        fixture.idle.close(idle.id);
        let begun = Instant::now();
        end.await.unwrap().unwrap();
        assert!(begun.elapsed() <= fixture.settings.timeouts.linger);
    });
}

/// A client that takes a response byte by byte has a minimum rate, as over HTTP/1.1.
#[test]
fn resets_a_stream_whose_client_is_too_slow() {
    run(async {
        let mut fixture = Fixture::open();
        let client = fixture.client.take().unwrap();
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(1);
        let (mut client, connection) = builder.handshake(client).await.unwrap();
        tokio::task::spawn_local(connection);
        let (response, transport) = fixture.ask(&mut client).await;
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
        transport.send(&[&head[..], &[b'x'; 1000]].concat());
        let begun = Instant::now();
        let mut body = response.await.unwrap().into_body();
        let error = loop {
            match body.data().await.unwrap() {
                Ok(piece) => {
                    tokio::time::sleep(Duration::from_secs(5)).await;
                    let _ = body.flow_control().release_capacity(piece.len());
                }
                Err(error) => break error,
            }
        };
        assert_eq!(error.reason(), Some(h2::Reason::CANCEL));
        let write = fixture.settings.timeouts.write;
        assert!(begun.elapsed() <= write + Duration::from_secs(6), "{:?}", begun.elapsed());
    });
}

#[test]
fn knows_the_preface_from_its_first_line() {
    for length in 0..=PREFACE.len() {
        assert_eq!(is_preface(&PREFACE[..length]), length >= 14, "{length}");
    }
    let with_frames = [PREFACE, b"\0\0\0\x04\0\0\0\0\0"].concat();
    assert!(is_preface(&with_frames));
    for other in ["PRI * HTTP/2.0\r\nHost: a\r\n\r\n", "PRI / HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        assert!(!is_preface(other.as_bytes()), "{other}");
    }
}
