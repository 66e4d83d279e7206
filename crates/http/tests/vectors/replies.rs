//! The bytes of responses, checked also by an independent parser (httparse).

use bine_http::{
    Date, Exchange, FieldLines, Method, Misuse, Reply, SecurityHeaders, Status, Version,
    continue_100,
};
use proptest::collection::vec;
use proptest::prelude::{any, proptest};

const KEEP_ALIVE: Exchange = Exchange {
    method: Method::Get,
    version: Version::Http11,
    keep_alive: true,
    security: SecurityHeaders::NONE,
    hsts: 0,
};
const HEAD: Exchange = Exchange { method: Method::Head, ..KEEP_ALIVE };
const HTTP_1_0: Exchange = Exchange { version: Version::Http10, keep_alive: false, ..KEEP_ALIVE };
const HTTP_1_0_KEEP_ALIVE: Exchange = Exchange { keep_alive: true, ..HTTP_1_0 };

/// Checks the response after its status line and date, with `|` for each line end.
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

fn unknown_length(reply: Reply<'_>) {
    reply.unknown_length();
}

/// Writes the pieces with a flush between them, sends all or half of the buffer each time, and
/// joins the sent bytes.
fn stream(exchange: Exchange, status: Status, pieces: &[&[u8]], slowly: bool) -> (Vec<u8>, bool) {
    let (mut out, mut sent) = (Vec::new(), Vec::new());
    let mut body = Reply::begin(&mut out, exchange, status, &Date::at(0)).body();
    for (number, piece) in pieces.iter().enumerate() {
        if number > 0 {
            // With a slow client, part of the buffer stays unsent.
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
        let actual = rest.replace("\r\n", "|") + if close { " closes" } else { "" };
        assert_eq!(actual, expected);
    }
}

#[test]
fn ends_stream_with_connection_for_http_1_0() {
    let pieces = |exchange| {
        let mut out = Vec::new();
        let framing = Reply::begin(&mut out, exchange, Status::OK, &Date::at(0)).stream();
        let text = String::from_utf8(out).expect("the tests write text");
        let (_, rest) = text.split_once("GMT\r\n").expect("a date");
        (rest.replace("\r\n", "|"), framing.closes_connection())
    };
    assert_eq!(pieces(KEEP_ALIVE), ("Transfer-Encoding: chunked||".to_owned(), false));
    assert_eq!(pieces(HTTP_1_0_KEEP_ALIVE), ("Connection: close     ||".to_owned(), true));
    assert!(pieces(HTTP_1_0).1);
    assert!(!pieces(HEAD).1);
}

#[test]
fn field_lines_start_empty() {
    let mut lines = FieldLines::new();
    assert!(lines.is_empty());
    lines.add("X-Kind", "a").expect("a field");
    assert!(!lines.is_empty());
    assert_eq!(lines.len(), "X-Kind: a\r\n".len());
}

#[test]
fn writes_field_lines_of_two_blocks_in_order() {
    let (mut lines, mut more) = (FieldLines::new(), FieldLines::new());
    lines.add("A", "1").expect("a field");
    more.add("B", "2").expect("a field");
    more.add("A", "3").expect("a field");
    lines.extend(&more);
    let write = |mut reply: Reply<'_>| {
        reply.field_lines(&lines);
        reply.empty();
    };
    check(KEEP_ALIVE, Status::OK, write, "A: 1|B: 2|A: 3|Content-Length: 0||");
}

#[test]
fn writes_strict_transport_security_if_configured() {
    let mut out = Vec::new();
    let exchange = Exchange { hsts: 31_536_000, ..KEEP_ALIVE };
    Reply::begin(&mut out, exchange, Status::OK, &Date::at(0)).empty();
    let head = String::from_utf8(out).unwrap();
    assert!(head.contains("\r\nStrict-Transport-Security: max-age=31536000\r\n"), "{head}");
}

#[test]
fn writes_exact_length_of_whole_content() {
    check(KEEP_ALIVE, Status::OK, |reply| reply.whole(b"hello"), "Content-Length: 5||hello");
    check(HEAD, Status::OK, |reply| reply.whole(b"hello"), "Content-Length: 5||");
    check(HEAD, Status::OK, unknown_length, "|");
    check(
        HTTP_1_0,
        Status::NOT_FOUND,
        |reply| reply.whole(b""),
        "Connection: close|Content-Length: 0||",
    );
    check(HTTP_1_0_KEEP_ALIVE, Status::OK, empty, "Connection: keep-alive|Content-Length: 0||");
    check(
        KEEP_ALIVE,
        Status::OK,
        |reply| reply.content_length(u64::MAX),
        "Content-Length: 18446744073709551615||",
    );
}

#[test]
fn omits_length_and_content_if_status_forbids_content() {
    for status in [Status::NO_CONTENT, Status::NOT_MODIFIED, Status::SWITCHING_PROTOCOLS] {
        check(KEEP_ALIVE, status, |reply| reply.whole(b"hello"), "|");
        check(KEEP_ALIVE, status, empty, "|");
        check(KEEP_ALIVE, status, |reply| reply.content_length(5), "|");
        let pieces: [&[u8]; 2] = [b"hello", b"hello"];
        let (sent, close) = stream(KEEP_ALIVE, status, &pieces, false);
        assert!(sent.ends_with(b"GMT\r\n\r\n") && !close);
        for exchange in [KEEP_ALIVE, HTTP_1_0_KEEP_ALIVE] {
            let stream = |reply: Reply<'_>| assert!(!reply.stream().closes_connection());
            let expected = match (exchange.version, status) {
                // A 101 does not decide whether the connection closes.
                (Version::Http11, _) | (_, Status::SWITCHING_PROTOCOLS) => "|",
                (Version::Http10, _) => "Connection: keep-alive||",
            };
            check(exchange, status, stream, expected);
        }
    }
}

#[test]
fn omits_connection_close_from_101() {
    let exchange = Exchange { keep_alive: false, ..KEEP_ALIVE };
    let write = |mut reply: Reply<'_>| {
        reply.static_lines("Connection: Upgrade\r\n").static_lines("Upgrade: websocket\r\n");
        reply.empty();
    };
    check(exchange, Status::SWITCHING_PROTOCOLS, write, "Connection: Upgrade|Upgrade: websocket||");
}

#[test]
fn writes_length_of_small_content_into_slot() {
    check_stream(KEEP_ALIVE, &["hello"], "Content-Length:          5||hello");
    check_stream(KEEP_ALIVE, &[""], "Content-Length:          0||");
    check_stream(HEAD, &["hello"], "Content-Length:          5||");
    check_stream(
        HTTP_1_0,
        &["hello"],
        "Connection: close|Content-Length:          5||hello closes",
    );
    check_stream(
        HTTP_1_0_KEEP_ALIVE,
        &["hello"],
        "Connection: keep-alive|Content-Length:          5||hello",
    );
}

#[test]
fn sends_flushed_content_in_chunks() {
    check_stream(
        KEEP_ALIVE,
        &["hello", " world"],
        "Transfer-Encoding: chunked||00000005|hello|00000006| world|0||",
    );
    check_stream(KEEP_ALIVE, &["", ""], "Transfer-Encoding: chunked||0||");
    check_stream(
        KEEP_ALIVE,
        &["a", "", "0123456789abcdef0"],
        "Transfer-Encoding: chunked||00000001|a|00000011|0123456789abcdef0|0||",
    );
}

#[test]
fn answers_head_request_without_chunks() {
    check_stream(HEAD, &["hello", " world", "!"], "Transfer-Encoding: chunked||");
}

#[test]
fn closes_connection_after_flushed_content_for_http_1_0() {
    check_stream(
        HTTP_1_0,
        &["hello", " world"],
        "Connection: close|Connection: close         ||hello world closes",
    );
    check_stream(
        HTTP_1_0_KEEP_ALIVE,
        &["hello", " world"],
        "Connection: close     |Connection: close         ||hello world closes",
    );
}

#[test]
fn rejects_fields_that_split_the_response() {
    let check_field = |name: &str, value: &str, expected| {
        let mut out = Vec::new();
        let mut reply = Reply::begin(&mut out, KEEP_ALIVE, Status::OK, &Date::at(0));
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
fn interim_response_is_complete() {
    assert!(continue_100().ends_with(b"\r\n\r\n"));
}

/// Returns the content that httparse finds after the head.
fn content(sent: &[u8]) -> Vec<u8> {
    let mut slots = [httparse::EMPTY_HEADER; 16];
    let mut response = httparse::Response::new(&mut slots);
    let parsed = response.parse(sent).expect("a valid head");
    let httparse::Status::Complete(end) = parsed else {
        panic!("an incomplete head");
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
            panic!("an incomplete size");
        };
        let size = usize::try_from(size).expect("a small size");
        let (data, after) = rest[start..].split_at(size);
        content.extend_from_slice(data);
        rest = after.strip_prefix(b"\r\n").expect("a line end after the data");
        if size == 0 {
            assert!(rest.is_empty());
            return content;
        }
    }
}

proptest! {
    #[test]
    fn independent_parser_recovers_written_content(
        pieces in vec(vec(any::<u8>(), 0..300), 1..8),
        old in any::<bool>(),
        keep_alive in any::<bool>(),
        slowly in any::<bool>(),
    ) {
        let version = if old { Version::Http10 } else { Version::Http11 };
        let exchange = Exchange { version, keep_alive, ..KEEP_ALIVE };
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let (sent, close) = stream(exchange, Status::OK, &pieces, slowly);
        assert_eq!(content(&sent), pieces.concat());
        assert_eq!(close, !keep_alive || old && pieces.len() > 1);
    }
}

#[test]
fn writes_security_headers_with_final_responses_only() {
    let security = SecurityHeaders::NOSNIFF.with(SecurityHeaders::SAME_ORIGIN_FRAMES);
    let exchange = Exchange { security, ..KEEP_ALIVE };
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
        let exchange = Exchange { security, ..KEEP_ALIVE };
        let mut reply = Reply::begin(&mut out, exchange, Status::OK, &Date::at(0));
        reply.nosniff();
        reply.empty();
        let head = String::from_utf8(out).unwrap();
        assert_eq!(head.matches("X-Content-Type-Options: nosniff\r\n").count(), 1, "{head}");
    }
}
