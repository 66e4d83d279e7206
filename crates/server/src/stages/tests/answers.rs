//! Checks that each request gets at most one response, and that the client can match them.

use std::fmt;

use httparse::{EMPTY_HEADER, Response, Status as Parsed};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;

use super::fake::{ScriptStep, sends};
use super::play::{Placement, check, get, play, post, seconds};

/// One request of a generated stream, and what a client knows about its response.
#[derive(Clone)]
struct Request {
    bytes: Vec<u8>,
    is_head: bool,
    /// The statuses that a response may have.
    statuses: Vec<u16>,
    /// The body of a 200, if it is not empty.
    content: String,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.300}", self.bytes.escape_ascii().to_string())
    }
}

/// A final response as `httparse` reads it.
#[derive(Debug)]
struct FinalResponse {
    status: u16,
    content: Vec<u8>,
    closes: bool,
}

#[test]
fn closes_without_a_second_response_after_a_malformed_body() {
    let head = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in [
        "nonsense\r\n".to_owned(),
        "3\r\nabcX".to_owned(),
        "3;\x01\r\nabc\r\n".to_owned(),
        format!("3;{}\r\nabc\r\n0\r\n\r\n", "x".repeat(5000)),
        "0\r\nContent-Length: 3\r\n\r\n".to_owned(),
        format!("0\r\nA: {}\r\n\r\n", "x".repeat(20_000)),
    ] {
        let expected = "200 a close; finish; 2s: closed";
        check(&[sends(head.to_owned() + &body + &get("/b"))], expected);
        check(&[sends(head), sends(body + &get("/b"))], expected);
    }
}

#[test]
fn closes_after_a_response_sent_before_a_chunked_body() {
    let head = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let expected = "200 a close; finish; 2s: closed";
    check(&[sends(head.to_owned() + "1\r\nx\r\n0\r\n\r\n" + &get("/b"))], expected);
    check(&[sends(head)], expected);
}

#[test]
fn closes_without_a_second_response_when_an_unread_body_never_arrives() {
    check(&[sends(post("/a", 3) + "ab"), seconds(60)], "200 a; 10s: closed");
    check(&[sends(post("/echo/9", 3) + "ab"), seconds(60)], "10s: 408 close; finish; 12s: closed");
}

#[test]
fn sends_no_content_in_responses_to_head() {
    let chunked =
        "HEAD /echo/9 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n";
    for (request, status) in [
        (chunked.to_owned(), 400),
        ("HEAD /echo/9 HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n".to_owned(), 413),
        ("HEAD /twice HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx".to_owned(), 500),
        ("HEAD /panic HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 500),
        ("HEAD /later-panic HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 500),
        ("HEAD /work-panic HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 500),
        // The handler exceeds its deadline.
        ("HEAD /later HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 504),
    ] {
        let script =
            [vec![sends(&request)], vec![ScriptStep::Finish; usize::from(status != 504)]].concat();
        for transcript in [
            play::<false>(&script, Placement::SameThread).transcript,
            play::<true>(&script, Placement::SameThread).transcript,
            play::<false>(&script, Placement::Spawn).transcript,
        ] {
            let answers = read(&transcript.bytes, &[true]);
            assert_eq!(answers.len(), 1, "{request}");
            assert_eq!(answers[0].status, status, "{request}");
            assert!(transcript.bytes.ends_with(b"\r\n\r\n"), "{}", transcript.bytes.escape_ascii());
        }
    }
}

fn sent(script: &[ScriptStep]) -> [Vec<u8>; 3] {
    let finished = [script, &vec![ScriptStep::Finish; 20]].concat();
    [
        play::<false>(&finished, Placement::SameThread).transcript.bytes,
        play::<true>(&finished, Placement::SameThread).transcript.bytes,
        play::<false>(&finished, Placement::Spawn).transcript.bytes,
    ]
}

/// Parses final responses; `heads` marks the requests that were a HEAD. Panics if a response other
/// than the last is incomplete.
fn read(mut bytes: &[u8], heads: &[bool]) -> Vec<FinalResponse> {
    let mut answers = Vec::new();
    while !bytes.is_empty() {
        let mut fields = [EMPTY_HEADER; 16];
        let mut response = Response::new(&mut fields);
        let Ok(Parsed::Complete(head)) = response.parse(bytes) else {
            panic!("no response after {answers:?}: {}", bytes.escape_ascii());
        };
        let status = response.code.unwrap();
        let field = |name: &str| {
            let found = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
            found.map(|field| std::str::from_utf8(field.value).unwrap().trim().to_owned())
        };
        bytes = &bytes[head..];
        if status == 100 {
            continue;
        }
        let closes = field("connection").is_some_and(|value| value == "close");
        let is_head = *heads.get(answers.len()).unwrap_or(&false);
        let mut content = Vec::new();
        if is_head || matches!(status, 204 | 304) {
        } else if field("transfer-encoding").is_some() {
            loop {
                let Ok(Parsed::Complete((line, size))) = httparse::parse_chunk_size(bytes) else {
                    panic!("no chunk: {}", bytes.escape_ascii());
                };
                let size = size as usize;
                content.extend_from_slice(&bytes[line..line + size]);
                bytes = &bytes[line + size + 2..];
                if size == 0 {
                    break;
                }
            }
        } else {
            let length = field("content-length").unwrap().parse().unwrap();
            content.extend_from_slice(&bytes[..length]);
            bytes = &bytes[length..];
        }
        answers.push(FinalResponse { status, content, closes });
    }
    answers
}

/// Well-formed and malformed bodies, with the header lines that frame them.
fn bodies() -> impl Strategy<Value = (String, Vec<u8>, bool)> {
    let chunked =
        |body: &str| ("Transfer-Encoding: chunked\r\n".to_owned(), body.as_bytes().to_vec());
    let whole = vec![
        (String::new(), Vec::new()),
        ("Content-Length: 0\r\n".to_owned(), Vec::new()),
        ("Content-Length: 5\r\n".to_owned(), b"GET /".to_vec()),
        ("Content-Length: 5\r\nExpect: 100-continue\r\n".to_owned(), b"01234".to_vec()),
        ("Content-Length: 100000\r\n".to_owned(), vec![b'\n'; 100_000]),
        (
            "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n".to_owned(),
            b"\x81\x00".to_vec(),
        ),
        chunked("5\r\nabcde\r\n0\r\n\r\n"),
        chunked("2;name=\"value\"\r\nab\r\n1\r\nc\r\n0\r\nX-Sum: 3\r\n\r\n"),
    ];
    let malformed = vec![
        chunked("nonsense\r\n"),
        chunked("3\r\nabcd\r\n"),
        chunked("3\nabc\r\n0\r\n\r\n"),
        chunked("3;\x01\r\nabc\r\n0\r\n\r\n"),
        chunked("2\r\nab\r\n0\r\nContent-Length: 7\r\n\r\n"),
        chunked("2\r\nab\r\n0\r\nno colon\r\n\r\n"),
        chunked(&format!("1\r\na\r\n0\r\nA: {}\r\n\r\n", "x".repeat(17_000))),
        chunked(&format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(5000))),
        chunked("0000000000000000000001\r\na\r\n"),
    ];
    prop_oneof![
        4 => select(whole).prop_map(|(lines, body)| (lines, body, false)),
        1 => select(malformed).prop_map(|(lines, body)| (lines, body, true)),
    ]
}

fn requests() -> impl Strategy<Value = Request> {
    let method = select(vec!["GET", "HEAD", "POST", "PUT"]);
    let handler = prop_oneof![
        4 => Just("plain"),
        1 => Just("echo/200000"),
        1 => Just("echo/3"),
        1 => Just("work"),
        1 => Just("later"),
        1 => Just("page/2500"),
        1 => Just("file/7000"),
        1 => Just("panic"),
        1 => Just("close"),
    ];
    (method, handler, bodies()).prop_map(|(method, handler, (lines, body, is_malformed))| {
        let is_head = method == "HEAD";
        let mut bytes =
            format!("{method} /{handler} HTTP/1.1\r\nHost: a\r\n{lines}\r\n").into_bytes();
        bytes.extend_from_slice(&body);
        let has_body = lines.contains("Transfer") || body.len() > 1;
        let (statuses, content) = match handler {
            "panic" => (vec![500], String::new()),
            "close" => (vec![200], "bye".to_owned()),
            "page/2500" => (vec![200], "p".repeat(2500)),
            "work" | "later" | "plain" => (vec![200], handler.to_owned()),
            _ if handler.starts_with("file") => (vec![200], String::new()),
            _ if !has_body => (vec![200], "nothing".to_owned()),
            _ if is_malformed => (vec![400, 413, 431], String::new()),
            _ => (vec![200, 413], String::new()),
        };
        Request { bytes, is_head, statuses, content }
    })
}

/// `stream` in one piece (0), or in pieces of this length.
fn cut(stream: &[u8], pieces: usize) -> Vec<ScriptStep> {
    match pieces {
        0 => vec![sends(stream)],
        length => stream.chunks(length).map(sends).collect(),
    }
}

/// Symptom: a 431 to a HEAD had content, which a client takes for the next reply. Cause: the reply
/// to an earlier request was sent while the body of the HEAD was collected, and the end of that
/// exchange cleared the mark that the later request is a HEAD. Fix: the mark is cleared only if no
/// later request is being collected.
#[test]
fn sends_no_content_to_a_head_whose_body_fails_after_an_earlier_reply() {
    let trailer = "x".repeat(20_000);
    let stream = format!(
        "GET /echo/200000 HTTP/1.1\r\nHost: a\r\n\r\n\
         HEAD /echo/200000 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nA: {trailer}\r\n\r\n"
    );
    for bytes in sent(&cut(stream.as_bytes(), 1000)) {
        let statuses: Vec<u16> =
            read(&bytes, &[false, true]).iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [200, 431]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn answers_each_request_at_most_once_and_in_order(
        requests in vec(requests(), 1..5),
        pieces in prop_oneof![Just(0), Just(1), 2usize..5000],
        tail in vec(any::<u8>(), 0..40),
        has_tail in any::<bool>(),
    ) {
        let mut stream: Vec<u8> = requests.iter().flat_map(|each| each.bytes.clone()).collect();
        if has_tail {
            stream.extend_from_slice(&tail);
        }
        let heads: Vec<bool> = requests.iter().map(|each| each.is_head).collect();
        // Single bytes of a long body would take long.
        let pieces = if stream.len() > 20_000 { pieces.max(1000) * usize::from(pieces > 0) } else { pieces };
        for bytes in sent(&cut(&stream, pieces)) {
            let answers = read(&bytes, &heads);
            let begun = requests.len() + usize::from(has_tail && !tail.is_empty());
            assert!(answers.len() <= begun, "{} answers to {begun} requests", answers.len());
            for (place, answer) in answers.iter().enumerate() {
                let is_last = place + 1 == answers.len();
                assert!(is_last || !answer.closes, "an answer after `Connection: close`");
                let Some(request) = requests.get(place) else { continue };
                let Request { statuses, content, .. } = request;
                assert!(
                    statuses.contains(&answer.status),
                    "{answer:?} to {}", request.bytes.escape_ascii()
                );
                if answer.status == 200 && !content.is_empty() && !request.is_head {
                    assert_eq!(String::from_utf8_lossy(&answer.content), *content);
                }
            }
        }
    }
}
