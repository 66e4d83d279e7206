//! Tests that files are served whole and only from inside the root while they change.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::site::TestSite;

const SECOND: Duration = Duration::from_secs(1);

/// Swaps a link between two targets 2000 times, or for `BINE_SWAP_SECONDS` seconds, while a client
/// requests it.
///
/// A server that checks first and opens afterwards loses this race within a few swaps.
fn swap(site: &TestSite, link: &str, targets: [&str; 2], asked: &str) {
    let mut client = Client::of(site);
    site.link(targets[0], link);
    thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            let started = Instant::now();
            // An even number of swaps, so that the last target is inside.
            for turn in (1..).take_while(|turn| turn % 2 == 0 || is_running(*turn, started)) {
                let fresh = site.at("../fresh-link");
                symlink(targets[turn % 2], &fresh).expect("the site is writable");
                fs::rename(fresh, site.at(link)).expect("the site is writable");
            }
        });
        while !swapper.is_finished() {
            if let Some(response) = client.send(&format!("GET {asked}"))
                && response.head.starts_with("HTTP/1.1 200 ")
            {
                assert!(response.content.iter().all(|&byte| byte == b'i'), "a byte from outside");
                assert_eq!(response.length(), Some(response.content.len()));
            }
            client.clock.advance(SECOND);
        }
    });
    let response = client.send(&format!("GET {asked}")).expect("the last swap led inside");
    assert_eq!(response.content.first(), Some(&b'i'));
}

fn is_running(turn: usize, started: Instant) -> bool {
    let seconds = std::env::var("BINE_SWAP_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    seconds.map_or(turn <= 2000, |seconds| started.elapsed() < Duration::from_secs(seconds))
}

#[test]
fn never_serves_outside_bytes_while_link_is_swapped() {
    for length in [1000, 40_000] {
        let site = TestSite::new();
        site.write("inside.txt", "i".repeat(length));
        site.write("../outside/secret.txt", "o".repeat(length));
        swap(&site, "link.txt", ["inside.txt", "../outside/secret.txt"], "/link.txt");
    }
}

#[test]
fn never_serves_outside_bytes_while_directory_is_swapped() {
    for length in [1000, 40_000] {
        let site = TestSite::new();
        site.write("inside/a.txt", "i".repeat(length));
        site.write("../outside/a.txt", "o".repeat(length));
        // Because of the `..`, the kernel returns `EAGAIN` whenever a rename interrupts the
        // resolution.
        swap(&site, "link", ["inside/../inside", "../outside"], "/link/a.txt");
    }
}

#[test]
fn sends_stated_length_while_file_is_written() {
    let site = TestSite::with(&[("a.txt", "")]);
    let mut client = Client::of(&site);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let file = File::create(site.at("a.txt")).expect("the site is writable");
            for turn in 0..2000 {
                file.set_len(0).expect("the site is writable");
                let content = "x".repeat(turn * 7919 % 32_000);
                file.write_all_at(content.as_bytes(), 0).expect("the site is writable");
            }
        });
        while !writer.is_finished() {
            let response = client.send("GET /a.txt").expect("the file is there all the time");
            assert_eq!(response.length(), Some(response.content.len()));
            client.clock.advance(SECOND);
        }
    });
    assert_eq!(
        client.send("GET /a.txt").map(|response| response.content.len()),
        Some(1999 * 7919 % 32_000)
    );
}
