//! Decides that a page of any size arrives whole, however it is framed and whoever wrote it.

use crate::app::{numbered, on_each_scheduler};

/// Where the size of a buffer, a chunk or the length's digits could go wrong.
fn sizes() -> impl Iterator<Item = usize> {
    let edges = [1, 10, 100, 1000, 4096, 8192, 10_000, 16 * 1024, 32 * 1024, 64 * 1024, 100_000];
    let around = edges.into_iter().flat_map(|edge| edge - 1..=edge + 1);
    around.chain([65_000, 66_000, 66_001, 127_999, 128 * 1024])
}

/// Written on the loop, by a worker, and by a task: only the first leaves in chunks.
const PAGES: [&str; 3] = ["/numbers", "/numbers/plain", "/numbers/later"];

#[test]
fn a_page_of_any_size_arrives_whole() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for page in PAGES {
            for size in sizes() {
                let reply = peer.get(&format!("{page}?bytes={size}"));
                assert!(reply.text() == numbered(size), "{page} of {size} bytes: {}", reply.head);
                let chunked = page == "/numbers" && size > 64 * 1024;
                let expected = chunked.then_some("chunked");
                assert_eq!(reply.field("Transfer-Encoding"), expected, "{page} of {size} bytes");
            }
        }
    });
}

#[test]
fn a_pipeline_of_pages_of_any_size_stays_in_order() {
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
fn head_of_a_page_of_any_size_is_a_head_alone() {
    on_each_scheduler(|program| {
        let mut peer = program.connect();
        for page in PAGES {
            for size in sizes() {
                peer.send(format!("HEAD {page}?bytes={size} HTTP/1.1\r\nHost: a\r\n\r\n"));
                let head = peer.reply_to_head();
                match head.field("Content-Length") {
                    Some(length) => assert_eq!(length, size.to_string()),
                    None => assert_eq!(head.field("Transfer-Encoding"), Some("chunked")),
                }
            }
        }
        assert_eq!(peer.get("/hello?name=a").text(), "<h1>Hello a</h1>");
    });
}

#[test]
fn an_old_peer_gets_no_chunks() {
    on_each_scheduler(|program| {
        for page in PAGES {
            for size in sizes() {
                let mut peer = program.connect();
                peer.send(format!(
                    "GET {page}?bytes={size} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
                ));
                let reply = peer.reply();
                assert!(reply.text() == numbered(size), "{page} of {size} bytes: {}", reply.head);
                assert_eq!(reply.field("Transfer-Encoding"), None);
                if reply.head.contains("\r\nConnection: close") {
                    assert_eq!((page, reply.field("Content-Length")), ("/numbers", None));
                    peer.expect_closed();
                }
            }
        }
    });
}

#[test]
fn a_peer_that_reads_late_gets_all_of_a_long_page() {
    on_each_scheduler(|program| {
        let mut peers: Vec<_> = (0..4).map(|_| program.connect()).collect();
        let size = 9_000_001;
        for (peer, page) in peers.iter_mut().zip(PAGES.into_iter().cycle()) {
            peer.send(format!("GET {page}?bytes={size} HTTP/1.1\r\nHost: a\r\n\r\n"));
        }
        // The last one first: the others stand with their buffers full.
        for mut peer in peers.into_iter().rev() {
            assert!(peer.reply().text() == numbered(size));
            assert_eq!(peer.get("/hello?name=a").text(), "<h1>Hello a</h1>");
        }
    });
}
