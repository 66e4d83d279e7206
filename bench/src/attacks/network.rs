//! A network namespace for a run: many client addresses that differ from the server's.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::net::{SocketFlags, connect, sockopt};

use crate::namespace;
use crate::sockets::bound;
use crate::tools::output;

/// The addresses of servers.
pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub(super) const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1);
/// The number of attackers' addresses of IPv4, and of one IPv6 /64.
const ADDRESSES: u8 = 8;
/// A request without a response for this long has failed.
const PATIENCE: Duration = Duration::from_secs(3);

/// The command that runs in the new network namespace.
pub(crate) const INSIDE: &str = "attacks-inside";

/// Adds all addresses of a run to the loopback device of this namespace.
pub(super) fn prepare() -> Result<()> {
    namespace::ensure_own()?;
    let mut batch = String::from("link set lo up\n");
    let fours = [SERVER, client(1), client(2), client(3)].into_iter().chain(attackers());
    for address in fours {
        writeln!(batch, "address add {address}/32 dev lo")?;
    }
    for address in std::iter::once(SERVER_V6).chain(block()) {
        writeln!(batch, "address add {address}/128 dev lo nodad")?;
    }
    let file = std::env::temp_dir().join(format!("bine-bench-{}", std::process::id()));
    std::fs::write(&file, batch)?;
    let done = output(Command::new("ip").arg("-batch").arg(&file));
    std::fs::remove_file(&file)?;
    done.context("IPv4 and IPv6 are needed").map(drop)
}

/// The address of a normal client.
pub(super) const fn client(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 2, number)
}

/// The IPv4 addresses of attackers.
pub(super) fn attackers() -> impl Iterator<Item = Ipv4Addr> {
    (1..=ADDRESSES).map(|number| Ipv4Addr::new(10, 77, 1, number))
}

/// The attackers' addresses in one IPv6 /64.
pub(super) fn block() -> impl Iterator<Item = Ipv6Addr> {
    (1..=u16::from(ADDRESSES)).map(|number| Ipv6Addr::new(0xfd78, 0, 0, 1, 0, 0, 0, number))
}

/// Opens a blocking connection with the timeouts of a normal client.
pub(super) fn reach(from: IpAddr, to: SocketAddr) -> Result<TcpStream> {
    let socket = bound(from, SocketFlags::empty())?;
    for timeout in [sockopt::Timeout::Send, sockopt::Timeout::Recv] {
        sockopt::set_socket_timeout(&socket, timeout, Some(PATIENCE))?;
    }
    sockopt::set_tcp_nodelay(&socket, true)?;
    connect(&socket, &to).context("not connected")?;
    Ok(socket.into())
}

/// The response to one request.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Reads available bytes; a timeout is an error with the limit.
pub(super) fn read(stream: &mut impl Read, chunk: &mut [u8]) -> Result<usize> {
    match stream.read(chunk) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            bail!("no bytes within {PATIENCE:?}")
        }
        other => other.context("no answer"),
    }
}

/// Sends `request` and reads the whole response, which needs a Content-Length unless it has no
/// body.
pub(super) fn ask(stream: &mut (impl Read + Write), request: &[u8]) -> Result<Answer> {
    stream.write_all(request).context("not sent")?;
    let mut bytes = Vec::new();
    let mut chunk = [0; 16384];
    loop {
        if let Some(answer) = whole(&bytes)? {
            return Ok(answer);
        }
        let count = read(stream, &mut chunk)?;
        ensure!(count > 0, "closed after {} bytes of an answer", bytes.len());
        bytes.extend_from_slice(&chunk[..count]);
    }
}

fn whole(bytes: &[u8]) -> Result<Option<Answer>> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..end]).context("a head that is not text")?;
    let status = head.get(9..12).and_then(|word| word.parse().ok()).context("no status")?;
    let mut fields = head.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = match length {
        Some((_, length)) => length.trim().parse()?,
        None if matches!(status, 204 | 304) => 0,
        None => bail!("an answer {status} without Content-Length"),
    };
    let body = &bytes[end + 4..];
    Ok((body.len() >= length).then(|| Answer { status, body: body[..length].to_vec() }))
}

/// A request with a JSON body.
pub(super) fn posting(path: &str, json: &str) -> Vec<u8> {
    let length = json.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{json}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_a_response_once_its_body_is_complete() {
        let head = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbus";
        assert!(whole(head).unwrap().is_none());
        let answer = whole(&[head.as_slice(), b"y"].concat()).unwrap().unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (503, b"busy".as_slice()));
        assert_eq!(whole(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap().unwrap().status, 204);
    }
}
