//! Requests and responses of every kind.

use bytes::Bytes;
use h2::ext::Protocol;
use h2::{Reason, client};
use http::{Method, Request};

use bine_server::Settings;

use super::client::{Client, Reply, get, next, run};
use crate::access::Log;
use crate::house::{AT_ONCE, House, LOOPS, settings};
use crate::peer::Peer;
use crate::program::{FILE, file_byte};

#[test]
fn answers_requests_of_every_kind() {
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        run(async {
            let mut client = Client::connect(&house).await;
            for (path, expected) in [
                ("/", "200 hello"),
                ("/say/word", "200 word"),
                ("/yield", "200 later"),
                ("/work", "200 work"),
                ("/page/300000", "200 <300000>"),
                ("/long/200000", "200 <200000>"),
                ("/work-long/200000", "200 <200000>"),
                ("/stream/300000", "200 <300000>"),
                ("/stream-later/300000", "200 <300000>"),
                ("/panic", "500 The server failed to answer.\n"),
                ("/", "200 hello"),
            ] {
                let told = client.ask(path).await;
                if path == "/panic" {
                    assert!(told.starts_with("500"), "{scheduler}: {told}");
                } else {
                    assert_eq!(told, expected, "{scheduler}: {path}");
                }
            }
            let file = client.get("/file").await.unwrap().content().await.unwrap();
            assert_eq!(file.len(), FILE);
            let differs = file.iter().enumerate().find(|(at, byte)| **byte != file_byte(*at));
            assert_eq!(differs, None, "{scheduler}");
        });
    }
}

#[test]
fn sends_the_head_of_a_response_only() {
    let house = House::open("hybrid");
    run(async {
        let mut client = Client::connect(&house).await;
        let head = Request::head("http://localhost/long/5000").body(()).unwrap();
        let reply = client.request(head).await.unwrap();
        assert_eq!(reply.0.headers()["content-length"], "5000");
        assert!(reply.0.body().is_end_stream());
        for name in ["connection", "keep-alive", "transfer-encoding"] {
            assert!(!reply.0.headers().contains_key(name), "{name}");
        }
    });
}

#[test]
fn receives_bodies_with_and_without_a_length() {
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        run(async {
            let mut client = Client::connect(&house).await;
            for length in [None, Some(300_000)] {
                let mut request = Request::post("http://localhost/echo");
                if let Some(length) = length {
                    request = request.header("content-length", length);
                }
                let (reply, mut body) = client.begin(request.body(()).unwrap(), true).await;
                for piece in 0..3 {
                    let bytes = vec![b'0' + piece; 100_000];
                    body.send_data(bytes.into(), piece == 2).unwrap();
                }
                let content = Reply(reply.await.unwrap()).content().await.unwrap();
                let expected: Vec<u8> =
                    (0..3).flat_map(|piece| vec![b'0' + piece; 100_000]).collect();
                assert!(content == expected, "{scheduler}: {} bytes", content.len());
            }
            let (reply, mut body) =
                client.begin(Request::post("http://localhost/echo").body(()).unwrap(), true).await;
            body.send_data(Bytes::new(), true).unwrap();
            let reply = Reply(reply.await.unwrap());
            assert_eq!(reply.text().await, "200 ");
        });
    }
}

/// The rest of a body that nobody reads does not keep the connection from other requests.
#[test]
fn answers_before_an_unread_body_ends() {
    let house = House::open("hybrid");
    run(async {
        let mut client = Client::connect(&house).await;
        let (reply, mut body) =
            client.begin(Request::post("http://localhost/say/early").body(()).unwrap(), true).await;
        body.send_data(vec![b'x'; 200_000].into(), false).unwrap();
        assert_eq!(Reply(reply.await.unwrap()).text().await, "200 early");
        assert_eq!(client.ask("/").await, "200 hello");
    });
}

#[test]
fn serves_a_hundred_streams_at_one_time() {
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        run(async {
            let mut client = Client::connect(&house).await;
            let mut waiting = Vec::new();
            for _ in 0..99 {
                waiting.push(client.begin(get("/wait/all"), false).await.0);
            }
            assert_eq!(client.ask("/").await, "200 hello", "beside 99 requests that wait");
            house.program.gate("all").open();
            for reply in waiting {
                let reply = Reply(reply.await.unwrap());
                assert_eq!(reply.text().await, "200 later");
            }
        });
    }
}

#[test]
fn delivers_to_suspended_responses() {
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        run(async {
            let mut client = Client::connect(&house).await;
            let poll = client.begin(get("/poll/0"), false).await.0;
            let feed = client.begin(get("/feed/0"), false).await.0;
            assert_eq!(client.ask("/tell/one").await, "200 told");
            let mut feed = feed.await.unwrap().into_body();
            assert!(Reply(poll.await.unwrap()).text().await.contains("one"));
            let mut fed = Vec::new();
            while !fed.windows(3).any(|three| three == b"one") {
                fed.extend_from_slice(&next(&mut feed).await.unwrap().unwrap());
            }
            assert_eq!(client.ask("/tell/two").await, "200 told");
            while !fed.windows(3).any(|three| three == b"two") {
                fed.extend_from_slice(&next(&mut feed).await.unwrap().unwrap());
            }
        });
    }
}

#[test]
fn cancels_the_handler_of_a_stream_that_is_reset() {
    let house = House::open("hybrid");
    run(async {
        let mut client = Client::connect(&house).await;
        let (reply, mut request) = client.begin(get("/stream/fuse"), false).await;
        let mut body = reply.await.unwrap().into_body();
        assert_eq!(next(&mut body).await.unwrap().unwrap(), "begun");
        request.send_reset(Reason::CANCEL);
        drop((body, request));
        assert_eq!(client.ask("/").await, "200 hello");
        // The connection of the stream is gone from the loop, with its task.
        while house.server.metrics().open > 1 {
            tokio::task::yield_now().await;
            assert_eq!(client.ask("/").await, "200 hello");
        }
    });
}

#[test]
fn resets_a_response_that_fails_half_way() {
    let house = House::open("hybrid");
    run(async {
        let mut client = Client::connect(&house).await;
        for path in ["/stream/fail", "/stream/panic", "/panic/page"] {
            let failed = match client.get(path).await {
                Ok(reply) => reply.content().await.err(),
                Err(error) => Some(error),
            };
            let reason = failed.and_then(|error| error.reason());
            assert_eq!(reason, Some(Reason::INTERNAL_ERROR), "{path}");
        }
        assert_eq!(client.ask("/").await, "200 hello", "on the same connection");
    });
}

#[test]
fn tunnels_a_websocket() {
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        run(async {
            let mut client = Client::connect(&house).await;
            assert_eq!(client.ask("/").await, "200 hello", "the settings have arrived");
            let mut request = Request::builder()
                .method(Method::CONNECT)
                .uri("http://localhost/upgrade/echo")
                .body(())
                .unwrap();
            request.extensions_mut().insert(Protocol::from_static("websocket"));
            let (reply, mut sending) = client.begin(request, true).await;
            let reply = reply.await.unwrap();
            assert_eq!(reply.status(), 200);
            let mut receiving = reply.into_body();
            for word in ["first", "second"] {
                sending.send_data(word.into(), false).unwrap();
                assert_eq!(next(&mut receiving).await.unwrap().unwrap(), word);
            }
            sending.send_data(Bytes::new(), true).unwrap();
            while let Some(rest) = next(&mut receiving).await {
                assert_eq!(rest.unwrap(), "", "{scheduler}: the server ends, too");
            }
            assert_eq!(client.ask("/").await, "200 hello");
        });
    }
}

#[test]
fn completes_open_streams_when_the_server_stops() {
    let house = House::open("hybrid");
    run(async {
        let mut client = Client::connect(&house).await;
        let waiting = client.begin(get("/wait/last"), false).await.0;
        while house.program.gate("last").arrivals() == 0 {
            tokio::task::yield_now().await;
        }
        house.stop();
        house.program.gate("last").open();
        assert_eq!(Reply(waiting.await.unwrap()).text().await, "200 later");
        client.connection.await.unwrap().unwrap();
    });
    house.await_end();
}

#[test]
fn logs_the_version_of_the_request() {
    let log = Log::new();
    let house = House::with_log(settings("hybrid"), Some(log.settings("combined")));
    run(async {
        let mut client = Client::connect(&house).await;
        for path in ["/say/a", "/yield", "/file"] {
            client.get(path).await.unwrap().content().await.unwrap();
        }
    });
    house.stop();
    house.await_end();
    let expected = [
        "GET /say/a HTTP/2.0 200 1",
        "GET /yield HTTP/2.0 200 5",
        "GET /file HTTP/2.0 200 9000000",
    ];
    let told = log.lines();
    for line in expected {
        assert!(told.iter().any(|told| told == line), "no `{line}` in {told:?}");
    }
}

#[test]
fn refuses_http2_where_it_is_off_or_too_late() {
    const PREFACE: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for scheduler in AT_ONCE {
        let house =
            House::with(Settings { http2: !LOOPS.contains(&scheduler), ..settings(scheduler) });
        let mut peer = house.connect();
        peer.send(PREFACE);
        assert_eq!(peer.reply().to_string(), "505 close", "{scheduler}");
    }
    // A proxy before the server may pass on a later request of one client on a connection of many.
    let house = House::open("hybrid");
    let mut peer: Peer = house.connect();
    assert_eq!(peer.ask("/"), "200 hello");
    peer.send(PREFACE);
    assert_eq!(peer.reply().to_string(), "505 close");
}

#[test]
fn answers_what_is_no_request_of_http1_like_http1() {
    let house = House::open("hybrid");
    run(async {
        let mut client = Client::over(client::Builder::new(), &house).await;
        let without_host = Request::get("/").body(()).unwrap();
        let reply = client.request(without_host).await;
        assert!(reply.is_err() || reply.unwrap().0.status() == 400);
        let two_hosts = Request::get("http://localhost/").header("host", "other").body(()).unwrap();
        assert_eq!(client.request(two_hosts).await.unwrap().0.status(), 400);
        let long = "x".repeat(bine_http::Limits::default().head as usize);
        let long = Request::get("http://localhost/").header("long", long).body(()).unwrap();
        assert_eq!(client.request(long).await.unwrap().0.status(), 431);
        assert_eq!(client.ask("/").await, "200 hello");
    });
}
