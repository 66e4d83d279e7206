//! Decides how an authority is spoken to: one request on one connection, over TLS alone, with an end to every wait
//! and to every answer.
//!
//! The thread waits where it stands: nothing else runs on it, and an authority is asked a dozen questions in two months.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, Response};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// Speaks to an authority as `config` says whom to trust.
pub(super) struct Caller {
    pub(super) config: Arc<ClientConfig>,
}

/// For a connection to be made, and for each pause on it.
const PATIENCE: Duration = Duration::from_secs(10);
/// From the first byte of an answer to its last.
const WHOLE: Duration = Duration::from_secs(30);
/// No answer of an authority is longer; a chain of certificates has some kilobytes.
const LONGEST: usize = 1 << 20;
/// Nor has it more fields.
const MOST_FIELDS: usize = 100;

impl HttpClient for Caller {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let config = Arc::clone(&self.config);
        Box::pin(async move {
            let (head, body) = request.into_parts();
            // What a request's body lacks to be read, a response's has.
            let mut body = BytesResponse::from(Response::new(body)).body;
            let body = body.into_bytes().await.map_err(Error::Other)?;
            let answer = ask(config, &Request::from_parts(head, body));
            let answer = answer.map_err(|error| Error::Other(error.into()))?;
            let mut response = Response::builder().status(answer.status);
            for (name, value) in answer.fields {
                response = response.header(name, value);
            }
            let (parts, ()) = response.body(())?.into_parts();
            Ok(BytesResponse { parts, body: Box::new(Bytes::from(answer.body)) })
        })
    }
}

/// What an authority says.
#[derive(PartialEq, Eq, Debug)]
struct Answer {
    status: u16,
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

fn ask(config: Arc<ClientConfig>, request: &Request<Bytes>) -> io::Result<Answer> {
    let uri = request.uri();
    let (Some("https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(io::Error::other(format!("{uri} is no address that begins with https://")));
    };
    let said = |error: io::Error| io::Error::new(error.kind(), format!("{authority}: {error}"));
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    let socket = connect(&host, authority.port_u16().unwrap_or(443)).map_err(said)?;
    let name = ServerName::try_from(host).map_err(|error| said(io::Error::other(error)))?;
    let session = ClientConnection::new(config, name).map_err(io::Error::other)?;
    exchange(StreamOwned::new(session, socket), &written(request)).map_err(said)
}

/// To the first of the host's addresses that takes a connection.
fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(socket) => {
                socket.set_read_timeout(Some(PATIENCE))?;
                socket.set_write_timeout(Some(PATIENCE))?;
                return Ok(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The request as it goes over the wire.
fn written(request: &Request<Bytes>) -> Vec<u8> {
    let uri = request.uri();
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let host = uri.authority().map_or("", |authority| authority.as_str());
    let length = request.body().len();
    let mut bytes = format!(
        "{} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n",
        request.method(),
    )
    .into_bytes();
    for (name, value) in request.headers() {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend(b"\r\n");
    bytes.extend(request.body());
    bytes
}

fn exchange(
    mut stream: StreamOwned<ClientConnection, TcpStream>,
    request: &[u8],
) -> io::Result<Answer> {
    stream.write_all(request)?;
    let to_head = request.starts_with(Method::HEAD.as_str().as_bytes());
    let end = Instant::now() + WHOLE;
    let (mut received, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let (count, has_ended) = match stream.read(&mut piece) {
            Ok(count) => (count, count == 0),
            // Not every server says that it ends; whether all was said is seen by the framing.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => (0, true),
            Err(error) => return Err(error),
        };
        received.extend_from_slice(&piece[..count]);
        match understand(&received, to_head, has_ended) {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) if has_ended => return Err(io::Error::other("the answer broke off")),
            Ok(None) if received.len() > LONGEST => {
                return Err(io::Error::other(format!("an answer of more than {LONGEST} bytes")));
            }
            Ok(None) if Instant::now() > end => return Err(io::ErrorKind::TimedOut.into()),
            Ok(None) => {}
            Err(wrong) => return Err(io::Error::other(wrong)),
        }
    }
}

/// The final answer in these bytes (RFC 9112 section 6.3). `None`: it is not all there.
fn understand(
    received: &[u8],
    to_head: bool,
    has_ended: bool,
) -> Result<Option<Answer>, &'static str> {
    const WRONG: &str = "the answer is no HTTP";
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut head = httparse::Response::new(&mut fields);
    let Ok(parsed) = head.parse(received) else { return Err(WRONG) };
    let httparse::Status::Complete(start) = parsed else { return Ok(None) };
    let status = head.code.ok_or(WRONG)?;
    let rest = &received[start..];
    if (100..200).contains(&status) {
        return understand(rest, to_head, has_ended);
    }
    let field = |name: &str| {
        let found = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
        found.map(|field| field.value)
    };
    let body = if to_head || matches!(status, 204 | 304) {
        Some(Vec::new())
    } else if let Some(coding) = field("transfer-encoding") {
        if !coding.eq_ignore_ascii_case(b"chunked") {
            return Err("the answer comes in a coding that nobody asked for");
        }
        chunks(rest)?
    } else if let Some(length) = field("content-length") {
        let length = std::str::from_utf8(length).ok().and_then(|text| text.parse().ok());
        rest.get(..length.ok_or(WRONG)?).map(<[u8]>::to_vec)
    } else {
        has_ended.then(|| rest.to_vec())
    };
    let Some(body) = body else { return Ok(None) };
    let fields = head.headers.iter().map(|field| (field.name.to_owned(), field.value.to_vec()));
    Ok(Some(Answer { status, fields: fields.collect(), body }))
}

/// What chunks hold (RFC 9112 section 7.1). What stands behind the last one is not looked at: the connection ends.
fn chunks(mut rest: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
    const WRONG: &str = "the answer's chunks are wrong";
    let mut body = Vec::new();
    loop {
        let Ok(parsed) = httparse::parse_chunk_size(rest) else { return Err(WRONG) };
        let httparse::Status::Complete((start, size)) = parsed else { return Ok(None) };
        if size == 0 {
            return Ok(Some(body));
        }
        let size = usize::try_from(size).ok().filter(|size| *size <= LONGEST).ok_or(WRONG)?;
        let Some(data) = rest.get(start..start + size) else { return Ok(None) };
        body.extend_from_slice(data);
        match rest.get(start + size..start + size + 2) {
            Some(b"\r\n") => rest = &rest[start + size + 2..],
            Some(_) => return Err(WRONG),
            None => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(received: &str, expected: Result<Option<(u16, &str)>, &str>) {
        let found = understand(received.as_bytes(), false, false);
        let found = found.map(|answer| {
            answer.map(|answer| (answer.status, String::from_utf8(answer.body).unwrap()))
        });
        let expected =
            expected.map(|answer| answer.map(|(status, body)| (status, body.to_owned())));
        match (&found, &expected) {
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
            _ => assert_eq!(found.ok(), expected.ok(), "{received:?}"),
        }
    }

    #[test]
    fn an_answer_ends_where_its_framing_says() {
        let ok = "HTTP/1.1 200 OK\r\n";
        check(&format!("{ok}Content-Length: 2\r\n\r\nabcd"), Ok(Some((200, "ab"))));
        check(&format!("{ok}Content-Length: 2\r\n\r\na"), Ok(None));
        check(&format!("{ok}Content-Le"), Ok(None));
        check(&format!("{ok}Content-Length: -2\r\n\r\nab"), Err("no HTTP"));
        check("HTTP/1.1 204 No Content\r\n\r\n", Ok(Some((204, ""))));
        check(
            &format!("HTTP/1.1 103 Early Hints\r\n\r\n{ok}content-length:0\r\n\r\n"),
            Ok(Some((200, ""))),
        );
        check("SSH-2.0-OpenSSH\r\n", Err("no HTTP"));
        check(&format!("{ok}\r\nab"), Ok(None));
    }

    #[test]
    fn an_answer_without_a_length_ends_with_its_connection() {
        let answer = understand(b"HTTP/1.1 200 OK\r\n\r\nab", false, true).unwrap().unwrap();
        assert_eq!(answer.body, b"ab");
    }

    #[test]
    fn an_answer_to_head_has_no_body_whatever_it_says() {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nReplay-Nonce: x\r\n\r\n";
        let answer = understand(bytes, true, false).unwrap().unwrap();
        assert!(answer.body.is_empty());
        assert_eq!(answer.fields[1], ("Replay-Nonce".to_owned(), b"x".to_vec()));
    }

    #[test]
    fn chunks_are_put_together() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        check(&format!("{head}3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n"), Ok(Some((200, "abcd"))));
        check(&format!("{head}3\r\nabc\r\n1"), Ok(None));
        check(&format!("{head}3\r\nabcd\r\n"), Err("chunks are wrong"));
        check(&format!("{head}ffffffffffffffff\r\n"), Err("chunks are wrong"));
        let other = head.replace("chunked", "gzip, chunked");
        check(&other, Err("a coding that nobody asked for"));
    }

    #[test]
    fn a_request_says_its_host_its_length_and_that_it_is_the_last() {
        let uri = "https://ca.example:14000/dir?a";
        let request = Request::post(uri).header("Content-Type", "x").body(Bytes::from("ab"));
        assert_eq!(
            String::from_utf8(written(&request.unwrap())).unwrap(),
            "POST /dir?a HTTP/1.1\r\nHost: ca.example:14000\r\nConnection: close\r\n\
             Content-Length: 2\r\ncontent-type: x\r\n\r\nab"
        );
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_without_a_panic(
            bytes: Vec<u8>, is_chunked: bool, to_head: bool, has_ended: bool
        ) {
            let head: &[u8] = if is_chunked {
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            } else {
                b"HTTP/1.1 "
            };
            let _ = understand(&[head, &bytes].concat(), to_head, has_ended);
        }
    }
}
