//! Decides that one thread keeps no more of its files than agreed.

use crate::asking::Asker;
use crate::place::Place;

/// Asks for each file, changes all and asks again within the same second: what is still told as it was
/// was kept. Returns how many were.
fn kept(count: usize, length: usize) -> usize {
    let place = Place::new();
    let name = |number: usize| format!("{number}.txt");
    for number in 0..count {
        place.write(&name(number), "o".repeat(length));
    }
    let mut asker = Asker::of(&place);
    let mut ask = |number: usize| {
        let told = asker.hear(&format!("GET /{number}.txt")).expect("the file is there");
        assert_eq!(told.content.len(), length);
        told.content[0]
    };
    for number in 0..count {
        assert_eq!(ask(number), b'o');
    }
    for number in 0..count {
        // Not replaced in one step: some file systems wait for the disk then.
        place.remove(&name(number));
        place.write(&name(number), "n".repeat(length));
    }
    // Backwards, so that what is read anew drives out what was asked for long ago.
    (0..count).rev().filter(|&number| ask(number) == b'o').count()
}

#[test]
fn all_files_are_kept_while_there_is_room() {
    assert_eq!(kept(20, 1000), 20);
    assert_eq!(kept(20, 40_000), 20);
}

#[test]
fn the_bytes_of_small_files_are_bounded() {
    let (length, most) = (32_000, 8 << 20);
    let kept = kept(300, length);
    assert!(kept * length <= most, "{kept} files kept");
}

#[test]
fn the_number_of_small_files_is_bounded() {
    let kept = kept(1100, 10);
    assert!(kept <= 1024, "{kept} files kept");
}

#[test]
fn the_number_of_open_files_is_bounded() {
    assert_eq!(kept(70, 33_000), 64);
}
