//! Tests of bodies that exceed the memory limit and go to a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use bine_server::Settings;

use crate::house::{House, SCHEDULERS, settings};
use crate::peer::{Peer, get};
use crate::program::{file_byte, sum};

/// A temporary folder of one test, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("bine-spool-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn house(scheduler: &str, spool: &Path) -> House {
    House::with(Settings { spool: spool.to_owned(), upload: 4_000_000, ..settings(scheduler) })
}

fn post(length: usize) -> String {
    format!("POST /keep HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n")
}

fn body(length: usize) -> Vec<u8> {
    (0..length).map(file_byte).collect()
}

#[track_caller]
fn expect(peer: &mut Peer, told: &str) {
    assert_eq!(String::from_utf8_lossy(&peer.reply().content), told);
}

#[test]
fn writes_long_bodies_to_a_file_and_keeps_short_ones_in_memory() {
    for scheduler in SCHEDULERS {
        let folder = Folder::new();
        let house = house(scheduler, &folder.0);
        let mut peer = house.connect();
        for length in [1, 262_143] {
            peer.send([post(length).as_bytes(), &body(length)].concat());
            expect(&mut peer, &format!("here {length}"));
        }
        // A body of exactly one piece, a body with an extra byte, and a body of many pieces; a
        // second request follows each.
        for length in [262_144, 262_145, 3_999_999] {
            let content = body(length);
            peer.send([post(length).as_bytes(), &content, get("/").as_bytes()].concat());
            expect(&mut peer, &format!("filed {length} {:x}", sum(&content)));
            assert_eq!(peer.reply().to_string(), "200 hello", "{length}, {scheduler}");
        }
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0, "{scheduler}");
    }
}

#[test]
fn writes_decoded_chunks_to_the_file() {
    for scheduler in SCHEDULERS {
        let folder = Folder::new();
        let house = house(scheduler, &folder.0);
        let mut peer = house.connect();
        peer.send("POST /keep HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        let content = body(1_000_000);
        for chunk in content.chunks(65_432) {
            peer.send([format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
        }
        peer.send("0\r\n\r\n");
        expect(&mut peer, &format!("filed 1000000 {:x}", sum(&content)));
    }
}

#[test]
fn rejects_bodies_over_the_upload_limit() {
    for scheduler in SCHEDULERS {
        let folder = Folder::new();
        let house = house(scheduler, &folder.0);
        let mut peer = house.connect();
        peer.send(post(4_000_001));
        assert_eq!(peer.reply().to_string(), "413 close", "{scheduler}");
        let mut peer = house.connect();
        peer.send("POST /keep HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3d0901\r\n");
        peer.send(body(4_000_001));
        assert_eq!(peer.reply().to_string(), "413 close", "{scheduler}");
    }
}

#[test]
fn reports_a_failed_write_and_keeps_serving() {
    for scheduler in SCHEDULERS {
        let folder = Folder::new();
        let house = house(scheduler, &folder.0.join("nowhere"));
        let mut peer = house.connect();
        peer.send(post(262_144));
        peer.send(body(262_144));
        assert_eq!(peer.reply().to_string(), "500 close", "{scheduler}");
        assert_eq!(house.connect().ask("/"), "200 hello", "{scheduler}");
    }
}

#[test]
fn removes_the_file_of_an_aborted_upload() {
    for scheduler in SCHEDULERS {
        let folder = Folder::new();
        let house = house(scheduler, &folder.0);
        for _ in 0..10 {
            let mut peer = house.connect();
            peer.send(post(3_000_000));
            peer.send(body(1_000_000));
            peer.reset();
        }
        assert_eq!(house.connect().ask("/"), "200 hello", "{scheduler}");
        house.stop();
        house.await_end();
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0, "{scheduler}");
    }
}
