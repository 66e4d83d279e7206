//! The event stream of a tab: a thread reads it and queues its messages until the tab looks.

use std::io::{self, BufRead as _, BufReader};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::exchange::{BodyReader, Reply, TestRequest};

/// The server sends at least a keep-alive comment every twenty seconds.
const SILENCE: Duration = Duration::from_mins(1);

/// The stream of one page. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct Stream {
    /// Disconnected once the stream has ended.
    pub(super) updates: Receiver<Update>,
    connection: TcpStream,
    reader: Option<JoinHandle<()>>,
}

/// A message of the stream.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Update {
    /// A region has new markup.
    Patch { number: String, hash: String, markup: String },
    /// The tab must load the page again.
    Reload,
    /// An event of the program. Cursors are ordered as texts, and one event has the same cursor in
    /// all streams.
    Event { cursor: String, text: String },
}

/// Result of a request for a stream.
pub(super) enum OpenedStream {
    Stream(Stream),
    /// The server refused it with this status.
    Not(u16),
}

impl Stream {
    /// Requests the stream of a page.
    ///
    /// # Errors
    ///
    /// The connection fails, or the system cannot start a thread.
    pub(super) fn open(request: &TestRequest, site: SocketAddr) -> io::Result<OpenedStream> {
        let (reply, content) = request.open(site, SILENCE)?;
        if !is_stream(&reply) {
            return Ok(OpenedStream::Not(reply.status()));
        }
        let connection = content.connection()?;
        let (sender, updates) = channel();
        let read = move || read(content, &sender);
        let reader = thread::Builder::new().name("bine tab".to_owned()).spawn(read)?;
        Ok(OpenedStream::Stream(Self { updates, connection, reader: Some(reader) }))
    }
}

impl Stream {
    /// Closes the stream and returns the messages that were not read yet.
    pub(super) fn end(mut self) -> Vec<Update> {
        self.close();
        self.updates.try_iter().collect()
    }

    fn close(&mut self) {
        // The server may have closed the connection already. Received data is still read.
        let _ = self.connection.shutdown(Shutdown::Both);
        if let Some(reader) = self.reader.take() {
            // The reader does not panic. The panic handler would report it if it did.
            let _ = reader.join();
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.close();
    }
}

fn is_stream(reply: &Reply) -> bool {
    reply.status() == 200 && reply.media_type() == "text/event-stream"
}

/// Reads server-sent events (HTML 9.2.6) until the stream ends or its receiver is dropped.
fn read(content: BodyReader, sender: &Sender<Update>) {
    let (mut event, mut id, mut data) = (String::new(), String::new(), Vec::new());
    for line in BufReader::new(content).lines().map_while(Result::ok) {
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut event),
            "id" => value.clone_into(&mut id),
            "data" => data.push(value.to_owned()),
            "" if line.is_empty() => {
                let (event, data) = (std::mem::take(&mut event), std::mem::take(&mut data));
                if parse_event(&event, &id, &data)
                    .is_some_and(|update| sender.send(update).is_err())
                {
                    return;
                }
            }
            // Comments and unknown fields have no effect.
            _ => {}
        }
    }
}

/// Parses an event. Returns `None` for one that pages ignore.
fn parse_event(event: &str, id: &str, data: &[String]) -> Option<Update> {
    match event {
        "patch" => {
            let (first, markup) = data.split_first()?;
            let (number, hash) = first.split_once(' ')?;
            let markup = markup.join("\n");
            Some(Update::Patch { number: number.into(), hash: hash.into(), markup })
        }
        "reload" => Some(Update::Reload),
        "event" => Some(Update::Event { cursor: id.to_owned(), text: data.join("\n") }),
        _ => None,
    }
}
