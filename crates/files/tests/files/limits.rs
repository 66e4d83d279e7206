//! Tests of the limits of one thread's caches.

use crate::client::Client;
use crate::site::TestSite;

/// Requests each file, changes all files and requests them again within the same second. A file in
/// its old state was cached. Returns the number of cached files.
fn cached(count: usize, length: usize) -> usize {
    let site = TestSite::new();
    let name = |number: usize| format!("{number}.txt");
    for number in 0..count {
        site.write(&name(number), "o".repeat(length));
    }
    let mut client = Client::of(&site);
    let mut ask = |number: usize| {
        let response = client.send(&format!("GET /{number}.txt")).expect("the file is there");
        assert_eq!(response.content.len(), length);
        response.content[0]
    };
    for number in 0..count {
        assert_eq!(ask(number), b'o');
    }
    for number in 0..count {
        // Not renamed over the old file: some file systems wait for the disk then.
        site.remove(&name(number));
        site.write(&name(number), "n".repeat(length));
    }
    // In reverse order, so that newly read files evict the least recently requested ones.
    (0..count).rev().filter(|&number| ask(number) == b'o').count()
}

#[test]
fn caches_all_files_within_limits() {
    assert_eq!(cached(20, 1000), 20);
    assert_eq!(cached(20, 40_000), 20);
}

#[test]
fn limits_bytes_of_cached_files() {
    let (length, most) = (32_000, 8 << 20);
    let cached = cached(300, length);
    assert!(cached * length <= most, "{cached} files cached");
}

#[test]
fn limits_number_of_cached_files() {
    let cached = cached(1100, 10);
    assert!(cached <= 1024, "{cached} files cached");
}

#[test]
fn limits_number_of_open_files() {
    assert_eq!(cached(70, 33_000), 64);
}
