//! Requests to a NATS server, by its text protocol.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(2);
const INBOX: &str = "_INBOX.histories";

/// Sends a request to this subject, and returns the answer as JSON.
fn request(server: SocketAddr, subject: &str) -> Result<Value> {
    let stream = TcpStream::connect_timeout(&server, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut stream = BufReader::new(stream);
    let commands = format!(
        "CONNECT {{\"verbose\":false,\"headers\":true,\"no_responders\":true}}\r\nSUB {INBOX} 1\r\nPUB {subject} {INBOX} 0\r\n\r\n"
    );
    stream.get_mut().write_all(commands.as_bytes())?;
    let begun = Instant::now();
    while begun.elapsed() < TIMEOUT {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            bail!("the NATS server has closed the connection");
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.first() {
            Some(&"MSG") => {
                let length = words.last().and_then(|word| word.parse().ok());
                let mut body = vec![0; length.context("a message without a length")?];
                stream.read_exact(&mut body)?;
                return Ok(serde_json::from_slice(&body)?);
            }
            Some(&"HMSG") => bail!("no server answers at {subject}"),
            Some(&"PING") => stream.get_mut().write_all(b"PONG\r\n")?,
            _ => {}
        }
    }
    bail!("no answer at {subject} within {TIMEOUT:?}")
}

/// The names of all streams.
pub(super) fn streams(server: SocketAddr) -> Result<Vec<String>> {
    let answer = request(server, "$JS.API.STREAM.NAMES")?;
    let names = answer["streams"].as_array().context("no streams")?;
    Ok(names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// The name of the server that leads a stream.
pub(super) fn leader(server: SocketAddr, stream: &str) -> Result<String> {
    let answer = request(server, &format!("$JS.API.STREAM.INFO.{stream}"))?;
    let leader = answer["cluster"]["leader"].as_str();
    Ok(leader.context("the stream has no leader")?.to_owned())
}

/// Makes the leader of a stream give its role up.
pub(super) fn step_down(server: SocketAddr, stream: &str) -> Result<()> {
    let answer = request(server, &format!("$JS.API.STREAM.LEADER.STEPDOWN.{stream}"))?;
    if answer["success"] != Value::Bool(true) {
        bail!("the leader of {stream} does not step down: {answer}");
    }
    Ok(())
}
