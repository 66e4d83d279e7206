//! Decides what is handed out while the files are being changed: old or new, never outside, never torn.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::thread;
use std::time::{Duration, Instant};

use crate::asking::Asker;
use crate::place::Place;

const SECOND: Duration = Duration::from_secs(1);

/// Swaps a link between two targets 2000 times, or for as many seconds as `BINE_SWAP_SECONDS` says, while it is
/// asked for through `target`.
///
/// A server that looks first and opens then loses this race within a few swaps.
fn swap(place: &Place, link: &str, targets: [&str; 2], asked: &str) {
    let mut asker = Asker::of(place);
    place.link(targets[0], link);
    thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            let begun = Instant::now();
            // An even number, so that the last one leads inside.
            for turn in (1..).take_while(|turn| turn % 2 == 0 || goes_on(*turn, begun)) {
                let fresh = place.at("../fresh-link");
                symlink(targets[turn % 2], &fresh).expect("the place is writable");
                fs::rename(fresh, place.at(link)).expect("the place is writable");
            }
        });
        while !swapper.is_finished() {
            if let Some(told) = asker.hear(&format!("GET {asked}"))
                && told.head.starts_with("HTTP/1.1 200 ")
            {
                assert!(told.content.iter().all(|&byte| byte == b'i'), "a byte from outside");
                assert_eq!(told.length(), Some(told.content.len()));
            }
            asker.clock.advance(SECOND);
        }
    });
    let told = asker.hear(&format!("GET {asked}")).expect("the last swap led inside");
    assert_eq!(told.content.first(), Some(&b'i'));
}

fn goes_on(turn: usize, begun: Instant) -> bool {
    let seconds = std::env::var("BINE_SWAP_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    seconds.map_or(turn <= 2000, |seconds| begun.elapsed() < Duration::from_secs(seconds))
}

#[test]
fn a_swapped_link_never_shows_a_byte_from_outside() {
    for length in [1000, 40_000] {
        let place = Place::new();
        place.write("inside.txt", "i".repeat(length));
        place.write("../outside/secret.txt", "o".repeat(length));
        swap(&place, "link.txt", ["inside.txt", "../outside/secret.txt"], "/link.txt");
    }
}

#[test]
fn a_swapped_directory_never_shows_a_byte_from_outside() {
    for length in [1000, 40_000] {
        let place = Place::new();
        place.write("inside/a.txt", "i".repeat(length));
        place.write("../outside/a.txt", "o".repeat(length));
        // The way through `..` makes the kernel ask for another attempt whenever a rename overtakes it.
        swap(&place, "link", ["inside/../inside", "../outside"], "/link/a.txt");
    }
}

#[test]
fn a_file_written_while_it_is_read_is_never_longer_or_shorter_than_told() {
    let place = Place::with(&[("a.txt", "")]);
    let mut asker = Asker::of(&place);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let file = File::create(place.at("a.txt")).expect("the place is writable");
            for turn in 0..2000 {
                file.set_len(0).expect("the place is writable");
                let content = "x".repeat(turn * 7919 % 32_000);
                file.write_all_at(content.as_bytes(), 0).expect("the place is writable");
            }
        });
        while !writer.is_finished() {
            let told = asker.hear("GET /a.txt").expect("the file is there all the time");
            assert_eq!(told.length(), Some(told.content.len()));
            asker.clock.advance(SECOND);
        }
    });
    assert_eq!(asker.hear("GET /a.txt").map(|told| told.content.len()), Some(1999 * 7919 % 32_000));
}
