//! The HTTP client for an authority: one request per connection, TLS only, with a limit on every
//! wait and every response.
//!
//! The client blocks its thread: the thread has no further work, and an authority gets a dozen
//! requests in two months.

use std::io::{self, Read as _, Write as _};
use std::mem;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, Response};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::remote::answer::{Head, RemoteResponse};

/// A client that trusts the roots in `config`.
pub(super) struct AuthorityClient {
    pub(super) config: Arc<ClientConfig>,
}

/// The time limit for connecting, and for each read and write.
const IO_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for a whole response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest response, in bytes; a certificate chain has a few kilobytes.
const MAX_RESPONSE: usize = 1 << 20;

impl HttpClient for AuthorityClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let config = Arc::clone(&self.config);
        Box::pin(async move {
            let (head, body) = request.into_parts();
            // A request's body cannot be read directly, a response's can.
            let mut body = BytesResponse::from(Response::new(body)).body;
            let body = body.into_bytes().await.map_err(Error::Other)?;
            let answer = ask(config, &Request::from_parts(head, body));
            let (head, body) = answer.map_err(|error| Error::Other(error.into()))?;
            let mut response = Response::builder().status(head.status);
            for (name, value) in head.fields {
                response = response.header(name, value);
            }
            let (parts, ()) = response.body(())?.into_parts();
            Ok(BytesResponse { parts, body: Box::new(Bytes::from(body)) })
        })
    }
}

/// Sends a request and returns the response.
fn ask(config: Arc<ClientConfig>, request: &Request<Bytes>) -> io::Result<(Head, Vec<u8>)> {
    let uri = request.uri();
    let (Some("https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(io::Error::other(format!("{uri} does not begin with https://")));
    };
    let with_authority =
        |error: io::Error| io::Error::new(error.kind(), format!("{authority}: {error}"));
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    let socket = connect(&host, authority.port_u16().unwrap_or(443)).map_err(with_authority)?;
    let name =
        ServerName::try_from(host).map_err(|error| with_authority(io::Error::other(error)))?;
    let session = ClientConnection::new(config, name).map_err(io::Error::other)?;
    exchange(StreamOwned::new(session, socket), &formatted(request)).map_err(with_authority)
}

/// Connects to the first of the host's addresses that accepts.
fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, IO_TIMEOUT) {
            Ok(socket) => {
                socket.set_read_timeout(Some(IO_TIMEOUT))?;
                socket.set_write_timeout(Some(IO_TIMEOUT))?;
                return Ok(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Formats a request for the wire.
fn formatted(request: &Request<Bytes>) -> Vec<u8> {
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
) -> io::Result<(Head, Vec<u8>)> {
    stream.write_all(request)?;
    // A response to HEAD has no body, whatever its header fields state.
    let to_head = request.starts_with(Method::HEAD.as_str().as_bytes());
    let end = Instant::now() + RESPONSE_TIMEOUT;
    let (mut answer, mut head, mut body) = (RemoteResponse::default(), None::<Head>, Vec::new());
    let mut piece = [0; 4096];
    loop {
        let (count, has_ended) = match stream.read(&mut piece) {
            Ok(count) => (count, count == 0),
            // Some servers omit the TLS close alert; the framing shows whether the response is
            // complete.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => (0, true),
            Err(error) => return Err(error),
        };
        answer.incoming().extend_from_slice(&piece[..count]);
        if head.is_none() {
            head = answer.head().map_err(io::Error::other)?;
        }
        if let Some(head) = head.as_mut()
            && (to_head || answer.body(has_ended, &mut body).map_err(io::Error::other)?)
        {
            return Ok((mem::take(head), body));
        }
        if has_ended {
            return Err(io::Error::other("the answer broke off"));
        }
        if body.len() > MAX_RESPONSE {
            return Err(io::Error::other(format!(
                "the response is longer than {MAX_RESPONSE} bytes"
            )));
        }
        if Instant::now() > end {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_host_length_and_connection_close() {
        let uri = "https://ca.example:14000/dir?a";
        let request = Request::post(uri).header("Content-Type", "x").body(Bytes::from("ab"));
        assert_eq!(
            String::from_utf8(formatted(&request.unwrap())).unwrap(),
            "POST /dir?a HTTP/1.1\r\nHost: ca.example:14000\r\nConnection: close\r\n\
             Content-Length: 2\r\ncontent-type: x\r\n\r\nab"
        );
    }
}
