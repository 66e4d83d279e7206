//! Properties of all input: results are independent of splits, no input panics, and valid requests
//! are parsed exactly.

use bine_http::{Event, Head, Limits, Method, RequestParser};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;

use crate::feed::feed;

/// Returns limits low enough for short input to reach.
fn narrow() -> Limits {
    Limits { head: 120, fields: 4, target: 40, body: 60, chunk_extension: 8, chunk_extensions: 12 }
}

/// Generates sequences of valid and invalid request fragments that reach many states of the parser.
fn fragments() -> impl Strategy<Value = Vec<u8>> {
    let fragment = select(vec![
        "GET ",
        "POST ",
        "/",
        "/a?b ",
        "* ",
        "http://b",
        " HTTP/1.1\r\n",
        " HTTP/1.0\r\n",
        "Host: a\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\n",
        "Content-Length: 3\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Connection: close\r\n",
        "Expect: 100-continue\r\n",
        "\r\n",
        "\r",
        "\n",
        "\r\n\r\n",
        "3\r\nabc\r\n",
        "0\r\n\r\n",
        "0\r\n",
        "3;a=b\r\n",
        "abc",
        ":",
        " ",
        "A: b\r\n",
        "%2e",
        "..",
        "\0",
    ])
    .prop_map(|text| text.as_bytes().to_vec());
    vec(prop_oneof![9 => fragment, 1 => vec(any::<u8>(), 1..4)], 0..16)
        .prop_map(|fragments| fragments.concat())
}

/// A valid request: its method, decoded path, fields and content.
#[derive(Clone, Debug)]
struct Request {
    method: Method,
    path: String,
    fields: Vec<(String, String)>,
    content: Vec<u8>,
    chunked: bool,
}

fn requests() -> impl Strategy<Value = Request> {
    let method = prop_oneof![Just(Method::Get), Just(Method::Post), Just(Method::Query)];
    (
        method,
        "(/[a-z\u{e4}\u{20ac} %?.]{1,8}[a-z]){1,4}",
        vec(("[a-z]{2}-[A-Za-z-]{0,20}", "[!-~]([ -~]{0,30}[!-~])?"), 0..20),
        vec(any::<u8>(), 0..200),
        any::<bool>(),
    )
        .prop_map(|(method, path, fields, content, chunked)| Request {
            method,
            path,
            fields,
            content,
            chunked,
        })
        .prop_filter("fields with a meaning have vectors", |request| {
            request.fields.iter().all(|(name, _)| !name.eq_ignore_ascii_case("if-range"))
        })
}

impl Request {
    fn rendered(&self) -> Vec<u8> {
        let mut target = String::new();
        for byte in self.path.bytes() {
            match byte {
                b'a'..=b'z' | b'/' | b'.' => target.push(char::from(byte)),
                _ => target += &format!("%{byte:02X}"),
            }
        }
        let mut bytes = format!("{} {target} HTTP/1.1\r\nHost: a\r\n", self.method.as_str());
        for (name, value) in &self.fields {
            bytes += &format!("{name}: {value}\r\n");
        }
        bytes += &if self.chunked {
            String::from("Transfer-Encoding: chunked\r\n\r\n")
        } else {
            format!("Content-Length: {}\r\n\r\n", self.content.len())
        };
        let mut bytes = bytes.into_bytes();
        if !self.chunked {
            bytes.extend_from_slice(&self.content);
            return bytes;
        }
        for piece in self.content.chunks(17) {
            bytes.extend(format!("{:x}\r\n", piece.len()).bytes());
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        bytes
    }

    fn compare(&self, head: &Head<'_>) {
        assert_eq!(head.method(), self.method);
        assert_eq!(head.path(), self.path);
        let sent = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let known = ["Host", "Content-Length", "Transfer-Encoding"];
        let received = head.fields().filter(|(name, _)| !known.contains(name));
        assert!(received.eq(sent));
        for (name, _) in &self.fields {
            let first = self.fields.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
            let first = first.map(|(_, value)| value.as_str());
            assert_eq!(head.field_text(&name.to_ascii_uppercase()), first);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn result_is_independent_of_splits(bytes in fragments(), lengths in vec(1..40usize, 0..40)) {
        for limits in [Limits::default(), narrow()] {
            let whole = feed(&bytes, [bytes.len()], &limits);
            let single = feed(&bytes, std::iter::repeat_n(1, bytes.len()), &limits);
            assert_eq!(single, whole);
            let split = feed(&bytes, lengths.iter().copied(), &limits);
            assert_eq!(split, whole);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..200), lengths in vec(1..40usize, 0..40)) {
        let split = feed(&bytes, lengths, &narrow());
        assert_eq!(split, feed(&bytes, [bytes.len()], &narrow()));
    }
}

proptest! {
    #[test]
    fn parses_any_valid_request(request in requests()) {
        let bytes = request.rendered();
        let limits = Limits::default();
        let mut parser = RequestParser::new();
        let mut rest = bytes.as_slice();
        let mut content = Vec::new();
        loop {
            let step = parser.receive(rest, &limits);
            rest = &rest[step.consumed..];
            match step.event {
                Event::Head(head) => request.compare(&head),
                Event::Body(piece) => content.extend_from_slice(piece),
                Event::End => {}
                Event::More => break,
                Event::Fault(fault) => panic!("{fault}"),
            }
        }
        assert!(rest.is_empty());
        assert_eq!(content, request.content);
    }
}
