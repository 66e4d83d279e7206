//! Tests of conditions and ranges for small and large files.

use bine_server::Clock;

use crate::client::{Client, Response};
use crate::site::TestSite;

/// A length that is too large for memory, so that the file is sent from disk.
const LARGE: usize = 100_000;

fn site() -> TestSite {
    let large: String = (0..LARGE).map(|site| char::from(b'a' + (site % 23) as u8)).collect();
    TestSite::with(&[("small.txt", "0123456789"), ("large.txt", &large)])
}

fn ask(client: &mut Client, path: &str, fields: &[(&str, &str)]) -> Response {
    client.send_with(&format!("GET {path}"), fields).expect("the file is there")
}

#[test]
fn sends_not_modified_for_current_validators() {
    let site = site();
    let mut client = Client::of(&site);
    for path in ["/small.txt", "/large.txt"] {
        let first = ask(&mut client, path, &[]);
        let tag = first.field("ETag").expect("a file has a tag").to_owned();
        let date = first.field("Last-Modified").expect("a file has a date").to_owned();
        assert!(tag.starts_with('"'), "a file that rests has a strong tag: {tag}");
        for (name, value) in [("If-None-Match", &tag), ("If-Modified-Since", &date)] {
            let response = ask(&mut client, path, &[(name, value)]);
            assert_eq!(response.text(), "304 Not Modified", "{path} {name}");
            assert_eq!(
                (response.field("ETag"), response.field("Last-Modified")),
                (Some(&*tag), Some(&*date))
            );
        }
        let response = ask(&mut client, path, &[("If-Match", "\"other\"")]);
        assert_eq!(response.text(), "412 Precondition Failed; Content-Length: 0");
        assert_eq!(ask(&mut client, path, &[("If-Match", &tag)]).content, first.content);
    }
}

#[test]
fn sends_weak_etag_for_recently_written_file() {
    let site = site();
    let mut client = Client { files: site.files(), clock: Clock::told(1) };
    let response = ask(&mut client, "/small.txt", &[]);
    assert!(response.field("ETag").is_some_and(|tag| tag.starts_with("W/\"")), "{}", response.head);
}

#[test]
fn changes_etag_when_content_changes() {
    let site = site();
    let first = ask(&mut Client::of(&site), "/small.txt", &[]);
    site.write("small.txt", "9876543210");
    let second = ask(&mut Client::of(&site), "/small.txt", &[]);
    assert_ne!(first.field("ETag"), second.field("ETag"));
}

#[test]
fn sends_range_with_its_position() {
    let site = site();
    let mut client = Client::of(&site);
    for path in ["/small.txt", "/large.txt"] {
        let whole = ask(&mut client, path, &[]).content;
        let length = whole.len();
        for (range, first, last) in
            [("2-4", 2, 4), ("5-", 5, length - 1), ("-3", length - 3, length - 1), ("0-0", 0, 0)]
        {
            let response = ask(&mut client, path, &[("Range", &format!("bytes={range}"))]);
            assert!(response.head.starts_with("HTTP/1.1 206 "), "{}", response.head);
            let expected = format!("bytes {first}-{last}/{length}");
            assert_eq!(response.field("Content-Range"), Some(&*expected));
            assert_eq!(response.length(), Some(last - first + 1));
            assert_eq!(response.content, whole[first..=last]);
        }
        let response = ask(&mut client, path, &[("Range", "bytes=1000000-")]);
        let expected = format!(
            "416 Range Not Satisfiable; Content-Range: bytes */{length}; Content-Length: 0"
        );
        assert_eq!(response.text(), expected);
    }
}

#[test]
fn sends_several_ranges_as_multipart() {
    let site = site();
    let mut client = Client::of(&site);
    for path in ["/small.txt", "/large.txt"] {
        let whole = ask(&mut client, path, &[]).content;
        let response = ask(&mut client, path, &[("Range", "bytes=0-1, -2")]);
        let kind = response.field("Content-Type").unwrap_or_default();
        let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect("parts");
        // Each version of each file has its own boundary, so no content has it by chance.
        let tag = response.field("ETag").expect("a file has a tag").trim_matches('"');
        assert!(boundary.contains(tag), "{boundary}");
        let text = String::from_utf8(response.content.clone()).expect("text");
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
fn streams_only_the_requested_ranges_of_large_files() {
    let site = TestSite::new();
    let content: Vec<u8> = (0..1 << 20).map(|site: usize| (site % 251) as u8).collect();
    site.write("huge.bin", &content);
    let ranges = [("Range", "bytes=0-200000,300000-600000")];
    let response = ask(&mut Client::of(&site), "/huge.bin", &ranges);
    assert!(
        response.head.starts_with("HTTP/1.1 206 ") && response.is_streamed,
        "{}",
        response.head
    );
    assert_eq!(response.field("Transfer-Encoding"), Some("chunked"));
    let heads = response.content.len() - 200_001 - 300_001;
    assert!((200..400).contains(&heads), "{heads} bytes besides the parts");
    for part in [&content[..200_001], &content[300_000..=600_000]] {
        let site = response.content.windows(part.len()).position(|window| window == part);
        assert!(site.is_some());
    }
}
