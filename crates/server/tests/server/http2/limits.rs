//! Deadlines, quotas and the order of streams.

use std::time::{Duration, Instant};

use h2::Reason;
use http::Request;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use bine_server::{Address, Guards, Settings, Timeouts};

use super::client::{Client, Reply, get, next, run};
use super::frames::{
    DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, WINDOW_UPDATE, frame, frames,
    request,
};
use crate::PATIENCE;
use crate::house::{House, LOOPS, settings};
use crate::peer::get as plain_get;
use crate::program::FILE;

fn with_timeouts(change: impl FnOnce(&mut Timeouts)) -> House {
    let mut settings = settings("hybrid");
    change(&mut settings.timeouts);
    House::with(settings)
}

#[test]
fn counts_streams_like_connections() {
    for scheduler in LOOPS {
        let house = House::with(Settings {
            connections: Some(1000),
            connections_local: Some(5),
            ..settings(scheduler)
        });
        run(async {
            let mut client = Client::connect(&house).await;
            let mut waiting = Vec::new();
            for _ in 0..4 {
                waiting.push(client.begin(get("/wait/quota"), false).await.0);
            }
            house_waits(&house, "quota", 4).await;
            let refused = client.get("/").await.err().and_then(|error| error.reason());
            assert_eq!(refused, Some(Reason::REFUSED_STREAM), "the connection and four streams");
            house.program.gate("quota").open();
            for reply in waiting {
                assert_eq!(Reply(reply.await.unwrap()).text().await, "200 later");
            }
            // The loop learns of the end of a stream in its next turn.
            while client.get("/").await.is_err() {
                tokio::task::yield_now().await;
            }
        });
        house.stop();
        house.await_end();
        assert_eq!(house.server.metrics().open, 0, "{scheduler}: each stream has left");
    }
}

/// Symptom: while memory was short, the server refused each stream, also those of known clients on
/// connections of before. Cause: a stream counted as a new connection. Fix: only its request decides.
#[test]
fn serves_known_clients_of_open_connections_when_memory_is_short() {
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        run(async {
            let mut client = Client::connect(&house).await;
            assert_eq!(client.ask("/work").await, "200 work");
            let guards = Guards { memory: Some(1), memory_pauses: None, ..Guards::default() };
            house.replace(Settings { guards, ..settings(scheduler) });
            // The guards check once a second, when a connection arrives.
            let patience = Instant::now() + PATIENCE;
            loop {
                let mut newcomer = house.connect();
                newcomer.send(plain_get("/"));
                if newcomer.reply().status == 503 {
                    break;
                }
                assert!(Instant::now() < patience, "{scheduler}: memory is not short");
            }
            let newcomers = house.server.guards().newcomers;
            let named = |path: &str| {
                let mut request = get(path);
                request.headers_mut().insert("name", "ann".parse().unwrap());
                request
            };
            let known = client.request(named("/work")).await.unwrap();
            assert_eq!(known.text().await, "200 work", "{scheduler}");
            // Requests that need almost no memory are open to all clients.
            assert_eq!(client.ask("/").await, "200 hello", "{scheduler}");
            let stranger = client.get("/work").await.unwrap();
            assert_eq!(stranger.0.status(), 503, "{scheduler}");
            let metrics = house.server.guards();
            assert_eq!((metrics.newcomers, metrics.strangers), (newcomers, 1), "{scheduler}");
        });
    }
}

async fn house_waits(house: &House, gate: &str, count: usize) {
    while house.program.gate(gate).arrivals() < count {
        tokio::task::yield_now().await;
    }
}

#[test]
fn closes_a_connection_without_streams() {
    let house = with_timeouts(|timeouts| {
        // A busy client has this time to begin a stream.
        timeouts.idle = Duration::from_secs(1);
        timeouts.linger = Duration::from_millis(50);
    });
    run(async {
        let mut client = Client::connect(&house).await;
        // A waiting stream keeps the connection for longer than the limit.
        let waiting = client.begin(get("/sleep/1200"), false).await.0;
        assert_eq!(Reply(waiting.await.unwrap()).text().await, "200 later");
        // GOAWAY without an error.
        client.connection.await.unwrap().unwrap();
    });
}

#[test]
fn resets_a_stream_whose_client_does_not_read() {
    let house = with_timeouts(|timeouts| timeouts.write = Duration::from_millis(100));
    run(async {
        let mut client = Client::over(h2::client::Builder::new(), &house).await;
        let (reply, _sending) = client.begin(get("/file"), false).await;
        let mut body = reply.await.unwrap().into_body();
        // Reads without giving the window back.
        let error = loop {
            match body.data().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => break error,
                None => panic!("the response is complete"),
            }
        };
        assert_eq!(error.reason(), Some(Reason::CANCEL));
        // The connection goes on, once its own window has room.
        let used = body.flow_control().used_capacity();
        body.flow_control().release_capacity(used).unwrap();
        assert_eq!(client.ask("/").await, "200 hello");
    });
}

#[test]
fn ends_a_body_that_does_not_arrive() {
    let house = with_timeouts(|timeouts| timeouts.body = Duration::from_millis(100));
    run(async {
        let mut client = Client::connect(&house).await;
        let request = Request::post("http://localhost/echo").header("content-length", 100);
        let (reply, mut body) = client.begin(request.body(()).unwrap(), true).await;
        body.send_data("a part".into(), false).unwrap();
        assert_eq!(reply.await.unwrap().status(), 408);
        assert_eq!(client.ask("/").await, "200 hello");
    });
}

/// A client with a small window gets a long response in pieces, beside other responses.
#[test]
fn sends_as_much_as_the_client_permits() {
    let house = House::open("hybrid");
    run(async {
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(10_000).initial_connection_window_size(70_000);
        let mut client = Client::over(builder, &house).await;
        let long = client.begin(get("/long/1000000"), false).await.0;
        let mut long = long.await.unwrap().into_body();
        let mut length = 0;
        while let Some(piece) = next(&mut long).await {
            let piece = piece.unwrap();
            assert!(piece.len() <= 10_000);
            length += piece.len();
            if length % 100 == 0 {
                assert_eq!(client.ask("/").await, "200 hello");
            }
        }
        assert_eq!(length, 1_000_000);
    });
}

/// Of two responses on a connection that is slower than the server, the urgent one is complete first
/// (RFC 9218).
#[test]
fn sends_urgent_responses_first() {
    let mut settings = settings("hybrid");
    settings.listeners[0].send_buffer = Some(32 * 1024);
    let house = House::with(settings);
    run(async {
        let Address::Tcp(address) = house.address() else { unreachable!() };
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(32 * 1024).unwrap();
        let mut socket = socket.connect(address).await.unwrap();
        let with_priority = |priority: &[u8; 3]| {
            [&request("/file")[..], b"\x00\x08priority\x03", priority].concat()
        };
        let first = [
            PREFACE,
            // Windows that hold both responses.
            &frame(SETTINGS, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]),
            &frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes()),
            &frame(HEADERS, END_STREAM | END_HEADERS, 1, &with_priority(b"u=7")),
            &frame(HEADERS, END_STREAM | END_HEADERS, 3, &with_priority(b"u=0")),
        ];
        socket.write_all(&first.concat()).await.unwrap();
        let mut received = Vec::new();
        let mut lengths = [0; 4];
        while lengths[1] + lengths[3] < 2 * FILE {
            received.reserve(1 << 20);
            assert!(socket.read_buf(&mut received).await.unwrap() > 0);
            lengths = [0; 4];
            data(&received).for_each(|(stream, length)| lengths[stream as usize] += length);
        }
        let (mut late, mut urgent) = (0, 0);
        for (stream, length) in data(&received) {
            match stream {
                3 => urgent += length,
                _ if urgent < FILE => late += length,
                _ => {}
            }
        }
        assert!(late < FILE / 10, "{late} bytes of the other response came first");
    });
}

/// The streams and lengths of the frames with content.
fn data(bytes: &[u8]) -> impl Iterator<Item = (u32, usize)> {
    frames(bytes)
        .filter(|frame| frame.kind == DATA)
        .map(|frame| (frame.stream, frame.payload.len()))
}
