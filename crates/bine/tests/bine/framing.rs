//! Pages of all sizes arrive complete, with either framing and from any kind of handler.

use std::io::Write;
use std::net::TcpListener;

use crate::app::{FIRST_ROWS, numbered, on_each, on_each_scheduler, start};
use crate::harness::AT_ONCE;

/// Sizes around the limits of buffers, chunks and length digits.
fn sizes() -> impl Iterator<Item = usize> {
    let edges = [1, 10, 100, 1000, 4096, 8192, 10_000, 16 * 1024, 32 * 1024, 64 * 1024, 100_000];
    let around = edges.into_iter().flat_map(|edge| edge - 1..=edge + 1);
    around.chain([65_000, 66_000, 66_001, 127_999, 128 * 1024])
}

/// Pages rendered on the loop, by a worker, and by a task, which buffers the whole page.
const PAGES: [&str; 3] = ["/numbers", "/numbers/plain", "/numbers/later"];

/// Size above which a response must be chunked: streaming begins once a page exceeds 64 KiB by at
/// least one piece, and a piece may reserve six times its size.
const LONG: usize = 64 * 1024 + 7 * 1024;

#[test]
fn delivers_pages_of_all_sizes_complete() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for page in PAGES {
            for size in sizes() {
                let reply = peer.get(&format!("{page}?bytes={size}"));
                assert!(reply.text() == numbered(size), "{page} of {size} bytes: {}", reply.head);
                let is_chunked = reply.header("Transfer-Encoding") == Some("chunked");
                let must_be = page != "/numbers/later" && size > LONG;
                let may_be = page != "/numbers/later" && size > 64 * 1024;
                assert!(is_chunked || !must_be, "{page} of {size} bytes is whole");
                assert!(!is_chunked || may_be, "{page} of {size} bytes is in chunks");
            }
        }
    });
}

#[test]
fn keeps_order_of_pipelined_pages_of_all_sizes() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        let requests = sizes()
            .zip(PAGES.into_iter().cycle())
            .map(|(size, page)| format!("GET {page}?bytes={size} HTTP/1.1\r\nHost: a\r\n\r\n"));
        peer.send(requests.collect::<String>());
        for size in sizes() {
            assert!(peer.reply().text() == numbered(size), "{size} bytes");
        }
    });
}

#[test]
fn head_of_pages_of_all_sizes_has_no_content() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for page in PAGES {
            for size in sizes() {
                peer.send(format!("HEAD {page}?bytes={size} HTTP/1.1\r\nHost: a\r\n\r\n"));
                let head = peer.reply_to_head();
                match head.header("Content-Length") {
                    Some(length) => assert_eq!(length, size.to_string()),
                    None => assert_eq!(head.header("Transfer-Encoding"), Some("chunked")),
                }
            }
        }
        assert_eq!(peer.get("/hello?name=a").text(), "<h1>Hello a</h1>");
    });
}

#[test]
fn sends_no_chunks_to_http_1_0_client() {
    on_each_scheduler(|program| {
        for page in PAGES {
            for size in sizes() {
                let mut peer = program.connect();
                peer.send(format!(
                    "GET {page}?bytes={size} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
                ));
                let reply = peer.reply();
                assert!(reply.text() == numbered(size), "{page} of {size} bytes: {}", reply.head);
                assert_eq!(reply.header("Transfer-Encoding"), None);
                if reply.head.contains("\r\nConnection: close") {
                    assert_ne!(page, "/numbers/later");
                    assert_eq!(reply.header("Content-Length"), None);
                    peer.expect_closed();
                }
            }
        }
    });
}

#[test]
fn sends_first_rows_before_last_is_rendered() {
    on_each_scheduler(|program| {
        for version in ["HTTP/1.1", "HTTP/1.0"] {
            for page in ["/rows", "/rows/plain"] {
                let door = TcpListener::bind("127.0.0.1:0").unwrap();
                let port = door.local_addr().unwrap().port();
                let mut peer = program.connect();
                peer.send(format!("GET {page}/{port} {version}\r\nHost: a\r\n\r\n"));
                peer.await_beginning(64 * 1024);
                // The handler continues only now.
                door.accept().unwrap().0.write_all(b"!").unwrap();
                let reply = peer.reply();
                let is_whole = reply.text() == numbered(FIRST_ROWS) + "the last row";
                assert!(is_whole, "{page}: {}", reply.head);
            }
        }
    });
}

#[test]
fn truncates_page_that_fails_after_first_rows() {
    on_each_scheduler(|program| {
        let door = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = door.local_addr().unwrap().port();
        let mut peer = program.connect();
        peer.send(format!("GET /rows/broken/{port} HTTP/1.1\r\nHost: a\r\n\r\n"));
        peer.await_beginning(64 * 1024);
        door.accept().unwrap().0.write_all(b"!").unwrap();
        let all = String::from_utf8(peer.rest()).unwrap();
        assert!(all.starts_with("HTTP/1.1 200 OK\r\n") && all.contains("chunked"), "{all:.300}");
        assert!(!all.ends_with("\r\n0\r\n\r\n") && !all.contains("the last row"));
        assert_eq!(program.connect().get("/hello?name=a").text(), "<h1>Hello a</h1>");
    });
}

#[test]
fn frees_worker_when_client_disconnects_midway() {
    let program = start(&["--workers", "1"]);
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = door.local_addr().unwrap().port();
    let mut peer = program.connect();
    peer.send(format!("GET /rows/plain/{port} HTTP/1.1\r\nHost: a\r\n\r\n"));
    peer.await_beginning(64 * 1024);
    drop(peer);
    door.accept().unwrap().0.write_all(b"!").unwrap();
    assert_eq!(program.connect().get("/hello/plain?name=a").text(), "<h1>Hello a</h1>");
    // A client that stops reading occupies a worker only until it disconnects.
    let mut peer = program.connect();
    peer.send("GET /numbers/plain?bytes=9000000 HTTP/1.1\r\nHost: a\r\n\r\n");
    peer.await_beginning(64 * 1024);
    drop(peer);
    assert_eq!(program.connect().get("/hello/plain?name=a").text(), "<h1>Hello a</h1>");
}

#[test]
fn delivers_long_page_to_slow_reader() {
    on_each(&AT_ONCE, |program| {
        let mut peers: Vec<_> = (0..4).map(|_| program.connect()).collect();
        let size = 9_000_001;
        for (peer, page) in peers.iter_mut().zip(PAGES.into_iter().cycle()) {
            peer.send(format!("GET {page}?bytes={size} HTTP/1.1\r\nHost: a\r\n\r\n"));
        }
        // Read in reverse order, while the buffers of the rest are full.
        for mut peer in peers.into_iter().rev() {
            assert!(peer.reply().text() == numbered(size));
            assert_eq!(peer.get("/hello?name=a").text(), "<h1>Hello a</h1>");
        }
    });
}
