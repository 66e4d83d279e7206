//! The kinds of misbehavior, and their limits.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::peer::{address, request};
use crate::tools::{pause, yield_priority};

/// One kind of misbehavior, run by one thread.
pub(super) enum Attack {
    /// Many connections that send some bytes at first and a few more from time to time.
    Crowd { opening: Vec<u8>, more: Vec<u8> },
    /// Malformed requests, a few at a time, as fast as the server rejects them.
    Flood,
}

/// The counts of an attack: actions, and connections ended by the server.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) acts: u64,
    pub(super) ended: u64,
}

const CROWD: usize = 1000;
/// One connection of the crowd sends per interval, so each connection sends every 5 s.
const CROWD_INTERVAL: Duration = Duration::from_millis(5);

const FLOOD_AT_ONCE: usize = 8;
/// A connection that the server has not closed by then is dropped.
const FLOOD_PATIENCE: Duration = Duration::from_millis(10);

/// Heads that never end.
pub(super) fn drip(path: &str) -> Attack {
    let opening = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ");
    Attack::Crowd { opening: opening.into_bytes(), more: b"a".to_vec() }
}

/// Pipelined requests whose responses are never read.
pub(super) fn hoard(path: &str) -> Attack {
    let requests = request(path).repeat(16).into_bytes();
    Attack::Crowd { opening: requests.clone(), more: requests }
}

impl Attack {
    /// Runs until `stop`; notifies `begun` when all connections are open.
    pub(super) fn run(&self, port: u16, stop: &AtomicBool, begun: &Sender<()>) -> Result<Tally> {
        yield_priority()?;
        let mut tally = Tally::default();
        match self {
            Self::Crowd { opening, more } => {
                let mut crowd = Vec::new();
                for _ in 0..CROWD {
                    crowd.push(join(port, opening).context("the crowd could not connect")?);
                }
                begun.send(())?;
                for index in (0..CROWD).cycle() {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    pause(CROWD_INTERVAL);
                    tally.acts += 1;
                    if !send_more(&mut crowd[index], more) {
                        tally.ended += 1;
                        // A server may refuse it; the old connection then fails again in the next
                        // round.
                        if let Ok(stream) = join(port, opening) {
                            crowd[index] = stream;
                        }
                    }
                }
            }
            Self::Flood => {
                let malformed = malformed();
                begun.send(())?;
                for first in (0..malformed.len()).cycle() {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let samples = malformed.iter().cycle().skip(first).take(FLOOD_AT_ONCE);
                    tally.acts += FLOOD_AT_ONCE as u64;
                    tally.ended += volley(port, samples);
                }
            }
        }
        Ok(tally)
    }
}

/// Opens a connection with non-blocking reads and writes.
fn join(port: u16, opening: &[u8]) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address(port))?;
    stream.set_nonblocking(true)?;
    stream.write_all(opening)?;
    Ok(stream)
}

/// Whether the connection is still open. A full socket buffer does not count as closed.
fn send_more(stream: &mut TcpStream, more: &[u8]) -> bool {
    let gone = matches!(stream.peek(&mut [0]), Ok(0));
    !gone && stream.write(more).map_or_else(|error| error.kind() == ErrorKind::WouldBlock, |_| true)
}

/// Sends each sample on its own connection, then reads all to their end; returns the number of
/// ended connections.
fn volley<'samples>(port: u16, samples: impl Iterator<Item = &'samples Vec<u8>>) -> u64 {
    let mut streams = Vec::new();
    for sample in samples {
        let sent = TcpStream::connect(address(port)).and_then(|mut stream| {
            stream.set_read_timeout(Some(FLOOD_PATIENCE))?;
            stream.set_write_timeout(Some(FLOOD_PATIENCE))?;
            stream.write_all(sample)?;
            Ok(stream)
        });
        match sent {
            Ok(stream) => streams.push(stream),
            // Out of ports, or closed while sending: wait instead of spinning.
            Err(_) => pause(Duration::from_millis(1)),
        }
    }
    let mut ended = 0;
    for mut stream in streams {
        let mut chunk = [0; 4096];
        let error = loop {
            match stream.read(&mut chunk) {
                Ok(0) => break None,
                Ok(_) => {}
                Err(error) => break Some(error.kind()),
            }
        };
        ended += u64::from(!matches!(error, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut)));
    }
    ended
}

fn malformed() -> Vec<Vec<u8>> {
    let mut samples: Vec<Vec<u8>> = [
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/9.9\r\nHost: a\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into();
    samples.push(format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(1 << 16)).into_bytes());
    samples
}
