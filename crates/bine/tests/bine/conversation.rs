//! Sequences of requests on one connection, with each scheduler.

use crate::app::on_each_scheduler;
use crate::harness::{Peer, Program};

/// Asserts that the connection still answers the next request correctly.
#[track_caller]
fn expect_next_response(peer: &mut Peer) {
    assert_eq!(peer.get("/hello?name=next").text(), "<h1>Hello next</h1>");
}

#[test]
fn answers_a_thousand_pipelined_requests_in_order() {
    on_each_scheduler(|program| {
        for page in ["/hello", "/hello/plain"] {
            let mut peer = program.connect();
            let requests =
                (0..1000).map(|n| format!("GET {page}?name={n} HTTP/1.1\r\nHost: a\r\n\r\n"));
            peer.send(requests.collect::<String>());
            for number in 0..1000 {
                assert_eq!(peer.reply().text(), format!("<h1>Hello {number}</h1>"));
            }
        }
    });
}

#[test]
fn keeps_order_of_pipelined_responses_when_an_early_one_is_slow() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for target in ["/slow?time=30", "/hello/plain?name=a", "/numbers/later?bytes=3", "/asset"] {
            peer.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        }
        for expected in ["<p>slow</p>", "<h1>Hello a</h1>", "000", "compiled in\n"] {
            assert_eq!(peer.reply().text(), expected);
        }
    });
}

#[test]
fn accepts_a_request_byte_by_byte() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for byte in "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc".bytes() {
            peer.send([byte]);
        }
        assert_eq!(peer.reply().text(), "abc");
        expect_next_response(&mut peer);
    });
}

#[test]
fn head_equals_get_without_content() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for target in ["/hello?name=a", "/hello/plain?name=a", "/asset", "/lost", "/nowhere"] {
            let got = peer.get(target);
            peer.send(format!("HEAD {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let head = peer.reply_to_head();
            assert_eq!(head.status(), got.status());
            assert_eq!(head.header("Content-Length"), got.header("Content-Length"), "{target}");
            assert_eq!(head.header("Content-Type"), got.header("Content-Type"), "{target}");
        }
        expect_next_response(&mut peer);
    });
}

#[test]
fn closes_http_1_0_connection_without_keep_alive() {
    on_each_scheduler(|program| {
        for page in ["/hello", "/hello/plain"] {
            let mut peer = program.connect();
            for name in ["a", "b"] {
                peer.send(format!(
                    "GET {page}?name={name} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
                ));
                let reply = peer.reply();
                assert_eq!(reply.header("Connection"), Some("keep-alive"));
                assert_eq!(reply.text(), format!("<h1>Hello {name}</h1>"));
            }
            peer.send(format!("GET {page}?name=c HTTP/1.0\r\n\r\n"));
            let reply = peer.reply();
            assert_eq!(reply.header("Connection"), Some("close"));
            assert_eq!(reply.text(), "<h1>Hello c</h1>");
            peer.expect_closed();
        }
    });
}

#[test]
fn answers_and_closes_on_connection_close() {
    on_each_scheduler(|program| {
        for target in ["/hello?name=a", "/hello/plain?name=a", "/numbers/later?bytes=1", "/asset"] {
            let mut peer = program.connect();
            let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            peer.send(request.repeat(2));
            let reply = peer.reply();
            assert_eq!((reply.status(), reply.header("Connection")), (200, Some("close")));
            peer.expect_closed();
        }
    });
}

#[test]
fn answers_client_that_closed_its_sending_side() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        peer.send("GET /hello?name=a HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3));
        peer.end();
        for _ in 0..3 {
            assert_eq!(peer.reply().text(), "<h1>Hello a</h1>");
        }
        peer.expect_closed();
    });
}

#[test]
fn unknown_path_is_404_and_keeps_the_connection() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for target in ["/", "/hell", "/hello/", "/HELLO", "/hello/plain/x", "/hello%20"] {
            let reply = peer.get(target);
            let expected = (404, "There is nothing at this address.\n");
            assert_eq!((reply.status(), reply.text()), expected, "{target}");
        }
        expect_next_response(&mut peer);
    });
}

#[test]
fn normalizes_spelling_of_paths() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for target in ["/%68ello?name=a", "/x/../hello?name=a", "/./hello?name=a"] {
            assert_eq!(peer.get(target).text(), "<h1>Hello a</h1>", "{target}");
        }
        assert_eq!(peer.get("http://other.example/hello?name=a").text(), "<h1>Hello a</h1>");
    });
}

#[test]
fn page_rejects_other_methods_with_allow_field() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for page in ["/hello?name=a", "/hello/plain?name=a", "/hello", "/asset"] {
            for method in ["POST", "PUT", "DELETE", "PATCH"] {
                peer.send(format!(
                    "{method} {page} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"
                ));
                let reply = peer.reply();
                let expected = (405, Some("GET, HEAD, OPTIONS"));
                assert_eq!((reply.status(), reply.header("Allow")), expected, "{method} {page}");
                let told = format!("{method} is not what this address answers.\n");
                assert_eq!(reply.text(), told, "{page}");
            }
            // A query, which files answer as well.
            peer.send(format!("OPTIONS {page} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let reply = peer.reply();
            let expected = (204, Some("GET, HEAD, OPTIONS"), None);
            let told = (reply.status(), reply.header("Allow"), reply.header("Content-Length"));
            assert_eq!(told, expected, "{page}");
        }
        expect_next_response(&mut peer);
    });
}

#[test]
fn options_of_the_server_lists_its_methods() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        peer.send("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
        let reply = peer.reply();
        assert_eq!((reply.status(), reply.header("Allow")), (204, Some("GET, HEAD, OPTIONS")));
        assert_eq!(reply.header("Content-Length"), None);
        expect_next_response(&mut peer);
    });
}

#[test]
fn discards_body_that_no_handler_reads() {
    on_each_scheduler(|program| {
        let bodies = [
            "Content-Length: 11\r\n\r\nGET / HTTP/".to_owned(),
            format!("Content-Length: 60000\r\n\r\n{}", "b".repeat(60_000)),
        ];
        for page in ["/hello", "/hello/plain"] {
            let mut peer = program.connect();
            for body in &bodies {
                peer.send(format!("GET {page}?name=a HTTP/1.1\r\nHost: a\r\n{body}"));
                assert_eq!(peer.reply().text(), "<h1>Hello a</h1>");
                expect_next_response(&mut peer);
            }
        }
    });
}

/// Regression: a malformed body got a second response, which a client took for the response to its
/// next request.
#[test]
fn unread_chunked_body_gets_one_response_and_closes() {
    on_each_scheduler(|program| {
        for body in ["3\r\nabc\r\n0\r\nSum: x\r\n\r\n", "nonsense\r\n"] {
            for (request, status) in
                [("POST /hello", 405), ("GET /hello?name=a", 200), ("PUT /none", 404)]
            {
                let mut peer = program.connect();
                peer.send(format!(
                    "{request} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
                ));
                let reply = peer.reply();
                assert_eq!(reply.status(), status, "{request}");
                assert_eq!(reply.header("Connection"), Some("close"), "{request}");
                peer.expect_closed();
            }
        }
    });
}

#[test]
fn closes_after_response_when_body_is_too_long_to_discard() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        peer.send(
            "GET /hello?name=a HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\nbeginning",
        );
        let reply = peer.reply();
        assert_eq!((reply.status(), reply.header("Connection")), (200, Some("close")));
        peer.end();
        peer.expect_closed();
    });
}

#[test]
fn echoes_bodies_unchanged() {
    on_each_scheduler(|program| {
        for page in ["/echo", "/echo/plain"] {
            let mut peer = program.connect();
            for length in [0, 1, 1000, 16 * 1024, 100_000, 1 << 20] {
                let body = crate::app::numbered(length);
                peer.send(format!(
                    "POST {page} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}"
                ));
                assert!(peer.reply().text() == body, "{length} bytes to {page}");
            }
            peer.send(format!(
                "PUT {page} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                 1\r\na\r\n5\r\nbcdef\r\n0\r\n\r\n"
            ));
            assert_eq!(peer.reply().text(), "abcdef");
            expect_next_response(&mut peer);
        }
    });
}

#[test]
fn rejects_body_above_limit_of_handler() {
    on_each_scheduler(|program| {
        for page in ["/echo", "/echo/plain"] {
            let mut peer = program.connect();
            peer.send(format!(
                "POST {page} HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n"
            ));
            let reply = peer.reply();
            assert_eq!((reply.status(), reply.header("Connection")), (413, Some("close")));
            peer.end();
            peer.expect_closed();
        }
    });
}

#[test]
fn sends_100_continue_only_if_handler_reads_body() {
    on_each_scheduler(|program| {
        for page in ["/echo", "/echo/plain"] {
            let mut peer = program.connect();
            peer.send(format!(
                "POST {page} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
            ));
            assert_eq!(peer.reply().head, "HTTP/1.1 100 Continue\r\n\r\n");
            peer.send("body");
            assert_eq!(peer.reply().text(), "body");
            expect_next_response(&mut peer);
        }
        let mut peer = program.connect();
        peer.send(
            "POST /hello?name=a HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n",
        );
        let reply = peer.reply();
        assert_eq!((reply.status(), reply.header("Connection")), (405, Some("close")));
        peer.end();
        peer.expect_closed();
    });
}

#[test]
fn response_may_have_other_status_and_fields() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        let reply = peer.get("/lost");
        assert_eq!((reply.status(), reply.header("X-Kind")), (404, Some("lost")));
        assert_eq!(reply.text(), "<h1>Not here</h1>");
        let reply = peer.get("/moved");
        assert_eq!((reply.status(), reply.header("Location")), (303, Some("/hello?name=a")));
        expect_next_response(&mut peer);
    });
}

/// Asserts that a faulty request gets one response and that the requests after it get none.
#[track_caller]
fn check_fault(program: &Program, request: &str, status: u16) {
    let mut peer = program.connect();
    let ask = |name| format!("GET /hello?name={name} HTTP/1.1\r\nHost: a\r\n\r\n");
    // Send all requests at once, because the server reads little after a faulty one.
    peer.send(ask("before") + request + &ask("behind"));
    assert_eq!(peer.reply().text(), "<h1>Hello before</h1>");
    let reply = peer.reply();
    let expected = (status, Some("close"));
    assert_eq!((reply.status(), reply.header("Connection")), expected, "{request:?}");
    peer.expect_closed();
}

#[test]
fn answers_faulty_request_once_and_ignores_the_rest() {
    let long = "x".repeat(20_000);
    let many = "A: b\r\n".repeat(101);
    let cases = [
        ("NONSENSE\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\nHost: a\n\n".to_owned(), 400),
        ("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400),
        ("GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400),
        ("GET /../x HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n".to_owned(), 505),
        ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 501),
        ("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 501),
        (format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"), 414),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nA: {long}\r\n\r\n"), 431),
        (format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n"), 431),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 2\r\n\r\n".to_owned(), 400),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                .to_owned(),
            400,
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n".to_owned(), 501),
        ("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n".to_owned(), 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: a\r\n\r\n".to_owned(), 417),
        ("POST / HTTP/1.0\r\n\r\n".to_owned(), 411),
    ];
    on_each_scheduler(|program| {
        for (request, status) in &cases {
            check_fault(program, request, *status);
        }
    });
}
