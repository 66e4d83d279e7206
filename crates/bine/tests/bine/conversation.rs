//! Decides how a connection goes from one request to the next, whoever runs the stages.

use crate::app::on_each_scheduler;
use crate::harness::{Peer, Program};

/// A connection that has not lost step answers this.
#[track_caller]
fn expect_in_step(peer: &mut Peer) {
    assert_eq!(peer.get("/hello?name=next").text(), "<h1>Hello next</h1>");
}

#[test]
fn a_thousand_pipelined_requests_are_answered_in_order() {
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
fn pipelined_replies_keep_their_order_when_an_early_one_is_late() {
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
fn a_request_may_come_byte_by_byte() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for byte in "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc".bytes() {
            peer.send([byte]);
        }
        assert_eq!(peer.reply().text(), "abc");
        expect_in_step(&mut peer);
    });
}

#[test]
fn head_is_get_without_the_content() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for target in ["/hello?name=a", "/hello/plain?name=a", "/asset", "/lost", "/nowhere"] {
            let got = peer.get(target);
            peer.send(format!("HEAD {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let head = peer.reply_to_head();
            assert_eq!(head.status(), got.status());
            assert_eq!(head.field("Content-Length"), got.field("Content-Length"), "{target}");
            assert_eq!(head.field("Content-Type"), got.field("Content-Type"), "{target}");
        }
        expect_in_step(&mut peer);
    });
}

#[test]
fn an_old_peer_is_left_unless_it_asks_to_stay() {
    on_each_scheduler(|program| {
        for page in ["/hello", "/hello/plain"] {
            let mut peer = program.connect();
            for name in ["a", "b"] {
                peer.send(format!(
                    "GET {page}?name={name} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
                ));
                let reply = peer.reply();
                assert_eq!(reply.field("Connection"), Some("keep-alive"));
                assert_eq!(reply.text(), format!("<h1>Hello {name}</h1>"));
            }
            peer.send(format!("GET {page}?name=c HTTP/1.0\r\n\r\n"));
            let reply = peer.reply();
            assert_eq!(reply.field("Connection"), Some("close"));
            assert_eq!(reply.text(), "<h1>Hello c</h1>");
            peer.expect_closed();
        }
    });
}

#[test]
fn a_peer_that_says_close_is_answered_and_left() {
    on_each_scheduler(|program| {
        for target in ["/hello?name=a", "/hello/plain?name=a", "/numbers/later?bytes=1", "/asset"] {
            let mut peer = program.connect();
            let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            peer.send(request.repeat(2));
            let reply = peer.reply();
            assert_eq!((reply.status(), reply.field("Connection")), (200, Some("close")));
            peer.expect_closed();
        }
    });
}

#[test]
fn a_peer_that_ends_its_half_still_gets_its_answers() {
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
fn an_address_without_anything_is_a_404_and_the_connection_stays() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for target in ["/", "/hell", "/hello/", "/HELLO", "/hello/plain/x", "/hello%20"] {
            let reply = peer.get(target);
            let expected = (404, "There is nothing at this address.\n");
            assert_eq!((reply.status(), reply.text()), expected, "{target}");
        }
        expect_in_step(&mut peer);
    });
}

#[test]
fn a_path_is_the_same_however_it_is_spelled() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for target in ["/%68ello?name=a", "/x/../hello?name=a", "/./hello?name=a"] {
            assert_eq!(peer.get(target).text(), "<h1>Hello a</h1>", "{target}");
        }
        assert_eq!(peer.get("http://other.example/hello?name=a").text(), "<h1>Hello a</h1>");
    });
}

#[test]
fn a_page_is_only_read_and_says_so() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for page in ["/hello?name=a", "/hello/plain?name=a", "/hello", "/asset"] {
            for method in ["POST", "PUT", "DELETE", "PATCH"] {
                peer.send(format!(
                    "{method} {page} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"
                ));
                let reply = peer.reply();
                let expected = (405, Some("GET, HEAD, OPTIONS"));
                assert_eq!((reply.status(), reply.field("Allow")), expected, "{method} {page}");
                let told = format!("{method} is not what this address answers.\n");
                assert_eq!(reply.text(), told, "{page}");
            }
            // A question, which files answer as well.
            peer.send(format!("OPTIONS {page} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let reply = peer.reply();
            let expected = (204, Some("GET, HEAD, OPTIONS"), None);
            let told = (reply.status(), reply.field("Allow"), reply.field("Content-Length"));
            assert_eq!(told, expected, "{page}");
        }
        expect_in_step(&mut peer);
    });
}

#[test]
fn options_of_the_server_tell_its_methods() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        peer.send("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
        let reply = peer.reply();
        assert_eq!((reply.status(), reply.field("Allow")), (204, Some("GET, HEAD, OPTIONS")));
        assert_eq!(reply.field("Content-Length"), None);
        expect_in_step(&mut peer);
    });
}

#[test]
fn a_body_that_nobody_asked_for_is_dropped() {
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
                expect_in_step(&mut peer);
            }
        }
    });
}

/// A malformed body got a second answer, which a client took for the answer to its next request.
#[test]
fn an_unread_chunked_body_gets_one_answer_and_ends_the_connection() {
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
                assert_eq!(reply.field("Connection"), Some("close"), "{request}");
                peer.expect_closed();
            }
        }
    });
}

#[test]
fn a_body_too_long_to_drop_ends_the_connection_behind_the_answer() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        peer.send(
            "GET /hello?name=a HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\nbeginning",
        );
        let reply = peer.reply();
        assert_eq!((reply.status(), reply.field("Connection")), (200, Some("close")));
        peer.end();
        peer.expect_closed();
    });
}

#[test]
fn a_body_comes_back_as_it_was_sent() {
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
            expect_in_step(&mut peer);
        }
    });
}

#[test]
fn a_body_longer_than_its_handler_takes_is_refused() {
    on_each_scheduler(|program| {
        for page in ["/echo", "/echo/plain"] {
            let mut peer = program.connect();
            peer.send(format!(
                "POST {page} HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n"
            ));
            let reply = peer.reply();
            assert_eq!((reply.status(), reply.field("Connection")), (413, Some("close")));
            peer.end();
            peer.expect_closed();
        }
    });
}

#[test]
fn a_body_held_back_is_asked_for_only_if_somebody_takes_it() {
    on_each_scheduler(|program| {
        for page in ["/echo", "/echo/plain"] {
            let mut peer = program.connect();
            peer.send(format!(
                "POST {page} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
            ));
            assert_eq!(peer.reply().head, "HTTP/1.1 100 Continue\r\n\r\n");
            peer.send("body");
            assert_eq!(peer.reply().text(), "body");
            expect_in_step(&mut peer);
        }
        let mut peer = program.connect();
        peer.send(
            "POST /hello?name=a HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n",
        );
        let reply = peer.reply();
        assert_eq!((reply.status(), reply.field("Connection")), (405, Some("close")));
        peer.end();
        peer.expect_closed();
    });
}

#[test]
fn a_reply_can_be_more_than_a_page() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        let reply = peer.get("/lost");
        assert_eq!((reply.status(), reply.field("X-Kind")), (404, Some("lost")));
        assert_eq!(reply.text(), "<h1>Not here</h1>");
        let reply = peer.get("/moved");
        assert_eq!((reply.status(), reply.field("Location")), (303, Some("/hello?name=a")));
        expect_in_step(&mut peer);
    });
}

/// A fault is answered once; nothing behind it is.
#[track_caller]
fn check_fault(program: &Program, request: &str, status: u16) {
    let mut peer = program.connect();
    let ask = |name| format!("GET /hello?name={name} HTTP/1.1\r\nHost: a\r\n\r\n");
    // All at once: who is answered with a fault is not listened to for long.
    peer.send(ask("before") + request + &ask("behind"));
    assert_eq!(peer.reply().text(), "<h1>Hello before</h1>");
    let reply = peer.reply();
    let expected = (status, Some("close"));
    assert_eq!((reply.status(), reply.field("Connection")), expected, "{request:?}");
    peer.expect_closed();
}

#[test]
fn a_fault_is_answered_once_and_nothing_behind_it_is() {
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
