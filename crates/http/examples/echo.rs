//! A WebSocket echo server: the simplest way to connect [`RequestParser`] and [`FrameReader`] to
//! sockets.
//!
//! Each connection has a thread that blocks. External test suites run against this server: `cargo
//! run --release -p bine-http --example echo -- 127.0.0.1:9001`

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, SystemTime};
use std::{env, thread};

use bine_http::websocket::{self, Frame, FrameReader, Upgrade};
use bine_http::{Date, Exchange, Limits, RequestParser};

/// Chapter 9 of the Autobahn test suite sends 16 MiB, and 4 MiB in fragments of 64 bytes followed
/// by an empty one.
const LIMITS: websocket::MessageLimits =
    websocket::MessageLimits { message: 16 << 20, fragments: 1 << 17 };

/// The time after which an idle connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

fn main() -> io::Result<()> {
    let address = env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0"))?;
    println!("listening on http://{}/", listener.local_addr()?);
    for stream in listener.incoming() {
        let stream = stream?;
        thread::spawn(move || {
            if let Err(error) = serve(stream) {
                eprintln!("{error}");
            }
        });
    }
    Ok(())
}

/// Serves one connection from its first byte to its last.
fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE_TIMEOUT))?;
    stream.set_write_timeout(Some(IDLE_TIMEOUT))?;
    stream.set_nodelay(true)?;
    let mut received = ReceiveBuffer::new();
    let mut out = Vec::new();
    let accepted = handshake(&mut stream, &mut received, &mut out)?;
    stream.write_all(&out)?;
    if accepted {
        echo(&mut stream, &mut received)?;
    }
    // Reads until the client closes. Unread bytes would turn the close frame into a reset.
    stream.shutdown(std::net::Shutdown::Write)?;
    while received.read_more(&mut stream)? {
        received.consume(received.length);
    }
    Ok(())
}

/// Reads the request and writes its response. Returns whether frames follow.
fn handshake(
    stream: &mut TcpStream,
    received: &mut ReceiveBuffer,
    out: &mut Vec<u8>,
) -> io::Result<bool> {
    let mut parser = RequestParser::new();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let date = Date::at(now.unwrap_or_default().as_secs());
    while received.read_more(stream)? {
        let step = parser.receive(received.bytes(), &Limits::default());
        let accepted = match step.event {
            bine_http::Event::Head(head) => match Upgrade::parse(&head) {
                Ok(upgrade) => {
                    upgrade.accept(out, &date, &["echo"]).empty();
                    Some(true)
                }
                Err(error) => {
                    error.reply(out, head.exchange(), &date);
                    Some(false)
                }
            },
            bine_http::Event::Fault(fault) => {
                fault.reply(out, Exchange::closing(), &date);
                Some(false)
            }
            _ => None,
        };
        let consumed = step.consumed;
        received.consume(consumed);
        if let Some(accepted) = accepted {
            return Ok(accepted);
        }
    }
    Ok(false)
}

/// Sends back each message until one side closes.
fn echo(stream: &mut TcpStream, received: &mut ReceiveBuffer) -> io::Result<()> {
    let mut reader = FrameReader::server();
    let mut fragments = Vec::new();
    let mut out = Vec::new();
    loop {
        let mut closes = false;
        let mut consumed = 0;
        loop {
            let step = reader.receive(&mut received.bytes()[consumed..], &mut fragments, &LIMITS);
            consumed += step.consumed;
            match step.event {
                websocket::FrameEvent::More => break,
                websocket::FrameEvent::Frame(frame @ (Frame::Text(_) | Frame::Binary(_))) => {
                    frame.append(&mut out);
                }
                websocket::FrameEvent::Frame(frame) => {
                    closes |= matches!(frame, Frame::Close { .. });
                    if let Some(answer) = frame.answer() {
                        answer.append(&mut out);
                    }
                }
                websocket::FrameEvent::Fault(fault) => {
                    closes = true;
                    fault.close_frame().append(&mut out);
                }
            }
        }
        received.consume(consumed);
        stream.write_all(&out)?;
        out.clear();
        if closes || !received.read_more(stream)? {
            return Ok(());
        }
    }
}

/// Bytes that were received and not yet consumed.
struct ReceiveBuffer {
    buffer: Box<[u8]>,
    length: usize,
}

impl ReceiveBuffer {
    /// Larger than a request head, and much larger than what a reader leaves unconsumed.
    fn new() -> Self {
        Self { buffer: vec![0; 1 << 16].into(), length: 0 }
    }

    /// Waits for more bytes. Returns false at the end of the stream.
    fn read_more(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        let read = stream.read(&mut self.buffer[self.length..])?;
        self.length += read;
        Ok(read > 0)
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.length]
    }

    fn consume(&mut self, length: usize) {
        self.buffer.copy_within(length..self.length, 0);
        self.length -= length;
    }
}
