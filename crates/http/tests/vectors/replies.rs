//! Decides how replies stand on the wire, and that another parser finds the same content in them.

use bine_http::{
    Date, Exchange, FieldLines, Method, Misuse, Reply, SecurityHeaders, Status, Version,
    continue_100,
};
use proptest::collection::vec;
use proptest::prelude::{any, proptest};

const KEPT: Exchange = Exchange {
    method: Method::Get,
    version: Version::Http11,
    keep_alive: true,
    security: SecurityHeaders::NONE,
    hsts: 0,
};
const HEAD: Exchange = Exchange { method: Method::Head, ..KEPT };
const OLD: Exchange = Exchange { version: Version::Http10, keep_alive: false, ..KEPT };
const OLD_KEPT: Exchange = Exchange { keep_alive: true, ..OLD };

/// The reply behind its status line and date, with `|` for each line end.
fn check(exchange: Exchange, status: Status, write: impl FnOnce(Reply<'_>), expected: &str) {
    let mut out = Vec::new();
    write(Reply::begin(&mut out, exchange, status, &Date::at(0)));
    let text = String::from_utf8(out).expect("the tests write text");
    let front = format!(
        "HTTP/1.1 {} {}\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n",
        status.code(),
        status.reason()
    );
    let rest = text.strip_prefix(&front).expect("status line and date");
    assert_eq!(rest.replace("\r\n", "|"), expected);
}

fn empty(reply: Reply<'_>) {
    reply.empty();
}

fn uncounted(reply: Reply<'_>) {
    reply.unknown_length();
}

/// Writes the pieces with a flush between each two, of all or of half; joins what was sent each time.
fn stream(exchange: Exchange, status: Status, pieces: &[&[u8]], slowly: bool) -> (Vec<u8>, bool) {
    let (mut out, mut sent) = (Vec::new(), Vec::new());
    let mut body = Reply::begin(&mut out, exchange, status, &Date::at(0)).body();
    for (number, piece) in pieces.iter().enumerate() {
        if number > 0 {
            // A peer that reads slowly leaves something behind.
            body.flush(&mut out, |out| {
                let taken = if slowly { out.len() / 2 } else { out.len() };
                sent.extend(out.drain(..taken));
            });
        }
        out.extend_from_slice(piece);
    }
    let finished = body.finish(&mut out);
    sent.append(&mut out);
    (sent, finished.close)
}

fn check_stream(exchange: Exchange, pieces: &[&str], expected: &str) {
    let pieces: Vec<&[u8]> = pieces.iter().map(|piece| piece.as_bytes()).collect();
    for slowly in [false, true] {
        let (sent, close) = stream(exchange, Status::OK, &pieces, slowly);
        let text = String::from_utf8(sent).expect("the tests write text");
        let (_, rest) = text.split_once("GMT\r\n").expect("a date");
        let told = rest.replace("\r\n", "|") + if close { " closes" } else { "" };
        assert_eq!(told, expected);
    }
}

#[test]
fn pieces_for_a_peer_without_chunks_end_with_the_connection() {
    let pieces = |exchange| {
        let mut out = Vec::new();
        let framing = Reply::begin(&mut out, exchange, Status::OK, &Date::at(0)).stream();
        let text = String::from_utf8(out).expect("the tests write text");
        let (_, rest) = text.split_once("GMT\r\n").expect("a date");
        (rest.replace("\r\n", "|"), framing.closes_connection())
    };
    assert_eq!(pieces(KEPT), ("Transfer-Encoding: chunked||".to_owned(), false));
    assert_eq!(pieces(OLD_KEPT), ("Connection: close     ||".to_owned(), true));
    assert!(pieces(OLD).1);
    assert!(!pieces(HEAD).1);
}

#[test]
fn lines_are_empty_until_one_is_added() {
    let mut lines = FieldLines::new();
    assert!(lines.is_empty());
    lines.add("X-Kind", "a").expect("a field");
    assert!(!lines.is_empty());
    assert_eq!(lines.len(), "X-Kind: a\r\n".len());
}

#[test]
fn a_peer_is_told_to_come_in_secret_where_that_is_wished() {
    let mut out = Vec::new();
    let exchange = Exchange { hsts: 31_536_000, ..KEPT };
    Reply::begin(&mut out, exchange, Status::OK, &Date::at(0)).empty();
    let head = String::from_utf8(out).unwrap();
    assert!(head.contains("\r\nStrict-Transport-Security: max-age=31536000\r\n"), "{head}");
}

#[test]
fn a_whole_reply_has_its_exact_length() {
    check(KEPT, Status::OK, |reply| reply.whole(b"hello"), "Content-Length: 5||hello");
    check(HEAD, Status::OK, |reply| reply.whole(b"hello"), "Content-Length: 5||");
    check(HEAD, Status::OK, uncounted, "|");
    check(
        OLD,
        Status::NOT_FOUND,
        |reply| reply.whole(b""),
        "Connection: close|Content-Length: 0||",
    );
    check(OLD_KEPT, Status::OK, empty, "Connection: keep-alive|Content-Length: 0||");
    check(
        KEPT,
        Status::OK,
        |reply| reply.content_length(u64::MAX),
        "Content-Length: 18446744073709551615||",
    );
}

#[test]
fn a_status_without_content_has_neither_length_nor_content() {
    for status in [Status::NO_CONTENT, Status::NOT_MODIFIED, Status::SWITCHING_PROTOCOLS] {
        check(KEPT, status, |reply| reply.whole(b"hello"), "|");
        check(KEPT, status, empty, "|");
        check(KEPT, status, |reply| reply.content_length(5), "|");
        let pieces: [&[u8]; 2] = [b"hello", b"hello"];
        let (sent, close) = stream(KEPT, status, &pieces, false);
        assert!(sent.ends_with(b"GMT\r\n\r\n") && !close);
    }
}

#[test]
fn a_change_of_protocol_says_nothing_about_closing() {
    let exchange = Exchange { keep_alive: false, ..KEPT };
    let write = |mut reply: Reply<'_>| {
        reply.static_lines("Connection: Upgrade\r\n").static_lines("Upgrade: websocket\r\n");
        reply.empty();
    };
    check(exchange, Status::SWITCHING_PROTOCOLS, write, "Connection: Upgrade|Upgrade: websocket||");
}

#[test]
fn content_that_stays_small_gets_its_length_in_the_slot() {
    check_stream(KEPT, &["hello"], "Content-Length:          5||hello");
    check_stream(KEPT, &[""], "Content-Length:          0||");
    check_stream(HEAD, &["hello"], "Content-Length:          5||");
    check_stream(OLD, &["hello"], "Connection: close|Content-Length:          5||hello closes");
    check_stream(OLD_KEPT, &["hello"], "Connection: keep-alive|Content-Length:          5||hello");
}

#[test]
fn content_that_outgrows_its_buffer_becomes_chunks() {
    check_stream(
        KEPT,
        &["hello", " world"],
        "Transfer-Encoding: chunked||00000005|hello|00000006| world|0||",
    );
    check_stream(KEPT, &["", ""], "Transfer-Encoding: chunked||0||");
    check_stream(
        KEPT,
        &["a", "", "0123456789abcdef0"],
        "Transfer-Encoding: chunked||00000001|a|00000011|0123456789abcdef0|0||",
    );
}

#[test]
fn head_gets_the_head_of_the_chunks_alone() {
    check_stream(HEAD, &["hello", " world", "!"], "Transfer-Encoding: chunked||");
}

#[test]
fn an_old_peer_gets_its_content_up_to_the_close() {
    check_stream(
        OLD,
        &["hello", " world"],
        "Connection: close|Connection: close         ||hello world closes",
    );
    check_stream(
        OLD_KEPT,
        &["hello", " world"],
        "Connection: close     |Connection: close         ||hello world closes",
    );
}

#[test]
fn a_field_cannot_split_the_reply() {
    let check_field = |name: &str, value: &str, expected| {
        let mut out = Vec::new();
        let mut reply = Reply::begin(&mut out, KEPT, Status::OK, &Date::at(0));
        assert_eq!(reply.field(name, value), expected, "{name}: {value}");
        reply.empty();
        let text = String::from_utf8(out).expect("the tests write text");
        assert_eq!(text.contains(&format!("{name}: {value}\r\n")), expected.is_ok());
    };
    check_field("Location", "/a?b", Ok(()));
    check_field("X-Text", "\u{e4}\tb", Ok(()));
    for value in ["a\r\nb", "a\rb", "a\nb", "a\0", "\x1b[0m", "\x7f"] {
        check_field("Location", value, Err(Misuse::Value));
    }
    for name in ["", "a b", "a:", "a\r\nb", "\u{e4}"] {
        check_field(name, "", Err(Misuse::Name));
    }
    for name in ["content-length", "Transfer-Encoding", "CONNECTION", "date"] {
        check_field(name, "1", Err(Misuse::Reserved));
    }
}

#[test]
fn the_interim_answer_is_complete() {
    assert!(continue_100().ends_with(b"\r\n\r\n"));
}

/// The content another parser finds behind the head, and whether the head alone was sent.
fn content(sent: &[u8]) -> Vec<u8> {
    let mut slots = [httparse::EMPTY_HEADER; 16];
    let mut response = httparse::Response::new(&mut slots);
    let parsed = response.parse(sent).expect("a valid head");
    let httparse::Status::Complete(end) = parsed else {
        panic!("half a head");
    };
    let mut rest = &sent[end..];
    let field = |name: &str| {
        let found = response.headers.iter().find(|field| field.name == name);
        found.map(|field| String::from_utf8_lossy(field.value).into_owned())
    };
    if let Some(length) = field("Content-Length") {
        assert_eq!(length.parse(), Ok(rest.len()));
        return rest.to_vec();
    }
    if field("Transfer-Encoding").is_none() {
        assert!(field("Connection").is_some_and(|option| option.trim() == "close"));
        return rest.to_vec();
    }
    let mut content = Vec::new();
    loop {
        let parsed = httparse::parse_chunk_size(rest).expect("a valid size");
        let httparse::Status::Complete((start, size)) = parsed else {
            panic!("half a size");
        };
        let size = usize::try_from(size).expect("a small size");
        let (data, behind) = rest[start..].split_at(size);
        content.extend_from_slice(data);
        rest = behind.strip_prefix(b"\r\n").expect("a line end behind the data");
        if size == 0 {
            assert!(rest.is_empty());
            return content;
        }
    }
}

proptest! {
    #[test]
    fn another_parser_finds_the_content_written(
        pieces in vec(vec(any::<u8>(), 0..300), 1..8),
        old in any::<bool>(),
        keep_alive in any::<bool>(),
        slowly in any::<bool>(),
    ) {
        let version = if old { Version::Http10 } else { Version::Http11 };
        let exchange = Exchange { version, keep_alive, ..KEPT };
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let (sent, close) = stream(exchange, Status::OK, &pieces, slowly);
        assert_eq!(content(&sent), pieces.concat());
        assert_eq!(close, !keep_alive || old && pieces.len() > 1);
    }
}

#[test]
fn writes_security_headers_with_final_responses_alone() {
    let security = SecurityHeaders::NOSNIFF.with(SecurityHeaders::SAME_ORIGIN_FRAMES);
    let exchange = Exchange { security, ..KEPT };
    let lines = "X-Content-Type-Options: nosniff\r\nX-Frame-Options: SAMEORIGIN\r\n";
    for (status, expected) in [
        (Status::OK, true),
        (Status::NOT_MODIFIED, true),
        (Status::NOT_FOUND, true),
        (Status::SWITCHING_PROTOCOLS, false),
    ] {
        let mut out = Vec::new();
        Reply::begin(&mut out, exchange, status, &Date::at(0)).empty();
        let head = String::from_utf8(out).unwrap();
        assert_eq!(head.contains(lines), expected, "{head}");
    }
}

#[test]
fn writes_nosniff_once() {
    for security in [SecurityHeaders::NONE, SecurityHeaders::NOSNIFF] {
        let mut out = Vec::new();
        let exchange = Exchange { security, ..KEPT };
        let mut reply = Reply::begin(&mut out, exchange, Status::OK, &Date::at(0));
        reply.nosniff();
        reply.empty();
        let head = String::from_utf8(out).unwrap();
        assert_eq!(head.matches("X-Content-Type-Options: nosniff\r\n").count(), 1, "{head}");
    }
}
