//! A node of `bine-bench push-nodes`: the channel `news`, and a page that shows whether it is ready.
//!
//! With `--cluster`, nodes share a stream. With `UNICAST_TO=HOST:PORT,..`, a node sends each message that it
//! accepts at `/publish` to those nodes, one request each: the way of Liu and Cui, "PushUp", section 3.4.

use std::io::{self, BufRead as _, BufReader, Error as IoError, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bine::Body;
use bine::channels::{Access, Retention, Settings};
use bine::prelude::*;
use serde_json::json;

/// The longest wait for a remote node.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The remote nodes, each with a kept connection.
struct OtherNodes(Mutex<Vec<OtherNode>>);

struct OtherNode {
    address: String,
    stream: Option<BufReader<TcpStream>>,
}

impl OtherNodes {
    fn parse(addresses: &str) -> Self {
        let addresses = addresses.split(',').filter(|address| !address.is_empty());
        let node = |address: &str| OtherNode { address: address.to_owned(), stream: None };
        Self(Mutex::new(addresses.map(node).collect()))
    }

    /// Sends a message to all nodes, then reads their responses.
    fn publish(&self, text: &str) -> io::Result<()> {
        let mut nodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let body = json!({ "channels": "news", "data": text }).to_string();
        for node in &mut *nodes {
            node.send(&body)?;
        }
        nodes.iter_mut().try_for_each(OtherNode::read_response)
    }
}

impl OtherNode {
    fn send(&mut self, body: &str) -> io::Result<()> {
        let (address, length) = (&self.address, body.len());
        let request = format!(
            "POST /channels HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let stream = match &mut self.stream {
            Some(stream) => stream,
            empty => {
                let stream = TcpStream::connect(address)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                stream.set_nodelay(true)?;
                empty.insert(BufReader::new(stream))
            }
        };
        stream.get_mut().write_all(request.as_bytes())
    }

    fn read_response(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else {
            return Err(IoError::other("no request was sent"));
        };
        let mut status = String::new();
        stream.read_line(&mut status)?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().map_err(IoError::other)?;
            }
        }
        io::copy(&mut stream.take(length), &mut io::sink())?;
        if status.starts_with("HTTP/1.1 2") {
            return Ok(());
        }
        Err(IoError::other(format!("{} answered {}", self.address, status.trim_end())))
    }
}

/// Publishes here first, so that the subscribers of this node do not wait for other nodes.
#[page(POST "/publish")]
fn publish(channels: Channels, others: State<OtherNodes>, body: Body) -> Result<Response, Error> {
    let text = std::str::from_utf8(&body)?;
    channels.publish("news", text).wait()?;
    others.publish(text)?;
    Ok(Response::text("published"))
}

#[page("/hello")]
async fn hello(name: Query<Text>) -> impl Page {
    html!(<h1>Hello {name}</h1>)
}

fn main() -> Exit {
    let others = OtherNodes::parse(&std::env::var("UNICAST_TO").unwrap_or_default());
    let retention = Retention { messages: 1000, ..Retention::default() };
    App::new()
        .in_memory()
        .channels(Access::allow_all())
        .channel("news", Settings { retention, ..Settings::default() })
        .state(others)
        .page(publish)
        .page(hello)
        .run()
}
