//! Decides that conditions and ranges hold for small files and large ones alike.

use bine_pipeline::Clock;

use crate::asking::{Asker, Told};
use crate::place::Place;

/// Above what is kept in memory, so that it comes as a file.
const LARGE: usize = 100_000;

fn place() -> Place {
    let large: String = (0..LARGE).map(|place| char::from(b'a' + (place % 23) as u8)).collect();
    Place::with(&[("small.txt", "0123456789"), ("large.txt", &large)])
}

fn ask(asker: &mut Asker, path: &str, fields: &[(&str, &str)]) -> Told {
    asker.hear_with(&format!("GET {path}"), fields).expect("the file is there")
}

#[test]
fn what_the_peer_knows_is_not_sent_again() {
    let place = place();
    let mut asker = Asker::of(&place);
    for path in ["/small.txt", "/large.txt"] {
        let first = ask(&mut asker, path, &[]);
        let tag = first.field("ETag").expect("a file has a tag").to_owned();
        let date = first.field("Last-Modified").expect("a file has a date").to_owned();
        assert!(tag.starts_with('"'), "a file that rests has a strong tag: {tag}");
        for (name, value) in [("If-None-Match", &tag), ("If-Modified-Since", &date)] {
            let told = ask(&mut asker, path, &[(name, value)]);
            assert_eq!(told.text(), "304 Not Modified", "{path} {name}");
            assert_eq!(
                (told.field("ETag"), told.field("Last-Modified")),
                (Some(&*tag), Some(&*date))
            );
        }
        let told = ask(&mut asker, path, &[("If-Match", "\"other\"")]);
        assert_eq!(told.text(), "412 Precondition Failed; Content-Length: 0");
        assert_eq!(ask(&mut asker, path, &[("If-Match", &tag)]).content, first.content);
    }
}

#[test]
fn a_file_that_was_written_a_moment_ago_has_a_weak_tag() {
    let place = place();
    let mut asker = Asker { files: place.files(), clock: Clock::told(1) };
    let told = ask(&mut asker, "/small.txt", &[]);
    assert!(told.field("ETag").is_some_and(|tag| tag.starts_with("W/\"")), "{}", told.head);
}

#[test]
fn another_state_has_another_tag() {
    let place = place();
    let first = ask(&mut Asker::of(&place), "/small.txt", &[]);
    place.write("small.txt", "9876543210");
    let second = ask(&mut Asker::of(&place), "/small.txt", &[]);
    assert_ne!(first.field("ETag"), second.field("ETag"));
}

#[test]
fn a_part_comes_with_its_place() {
    let place = place();
    let mut asker = Asker::of(&place);
    for path in ["/small.txt", "/large.txt"] {
        let whole = ask(&mut asker, path, &[]).content;
        let length = whole.len();
        for (range, first, last) in
            [("2-4", 2, 4), ("5-", 5, length - 1), ("-3", length - 3, length - 1), ("0-0", 0, 0)]
        {
            let told = ask(&mut asker, path, &[("Range", &format!("bytes={range}"))]);
            assert!(told.head.starts_with("HTTP/1.1 206 "), "{}", told.head);
            let expected = format!("bytes {first}-{last}/{length}");
            assert_eq!(told.field("Content-Range"), Some(&*expected));
            assert_eq!(told.length(), Some(last - first + 1));
            assert_eq!(told.content, whole[first..=last]);
        }
        let told = ask(&mut asker, path, &[("Range", "bytes=1000000-")]);
        let expected = format!(
            "416 Range Not Satisfiable; Content-Range: bytes */{length}; Content-Length: 0"
        );
        assert_eq!(told.text(), expected);
    }
}

#[test]
fn several_parts_come_together() {
    let place = place();
    let mut asker = Asker::of(&place);
    for path in ["/small.txt", "/large.txt"] {
        let whole = ask(&mut asker, path, &[]).content;
        let told = ask(&mut asker, path, &[("Range", "bytes=0-1, -2")]);
        let kind = told.field("Content-Type").unwrap_or_default();
        let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect("parts");
        let text = String::from_utf8(told.content.clone()).expect("text");
        let parts: Vec<&str> = text.split(&format!("\r\n--{boundary}")).collect();
        assert_eq!((parts.len(), parts[0], parts[3]), (4, "", "--\r\n"), "{text}");
        let length = whole.len();
        for (part, first) in [(parts[1], 0), (parts[2], length - 2)] {
            let (head, content) = part.split_once("\r\n\r\n").expect("a part has a head");
            let expected = format!("Content-Range: bytes {first}-{}/{length}", first + 1);
            assert!(
                head.contains(&expected) && head.contains("Content-Type: text/plain"),
                "{head}"
            );
            assert_eq!(content.as_bytes(), &whole[first..first + 2]);
        }
    }
}

#[test]
fn parts_of_a_file_of_any_length_are_no_more_than_asked_for() {
    let place = Place::new();
    let content: Vec<u8> = (0..1 << 20).map(|place: usize| (place % 251) as u8).collect();
    place.write("huge.bin", &content);
    let ranges = [("Range", "bytes=0-200000,300000-600000")];
    let told = ask(&mut Asker::of(&place), "/huge.bin", &ranges);
    assert!(told.head.starts_with("HTTP/1.1 206 ") && told.as_file, "{}", told.head);
    assert_eq!(told.field("Transfer-Encoding"), Some("chunked"));
    let heads = told.content.len() - 200_001 - 300_001;
    assert!((200..400).contains(&heads), "{heads} bytes besides the parts");
    for part in [&content[..200_001], &content[300_000..=600_000]] {
        let place = told.content.windows(part.len()).position(|window| window == part);
        assert!(place.is_some());
    }
}
