//! Decides how a tab hears what changes on its page: a thread reads the stream, and what came waits until the tab looks.

use std::io::{self, BufRead as _, BufReader};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::exchange::{Content, Reply, Request};

/// A server says something every twenty seconds, if only that it is still there.
const SILENCE: Duration = Duration::from_mins(1);

/// The stream of one page. It ends with this value.
#[derive(Debug)]
pub(super) struct Stream {
    /// Has no sender when the stream has ended.
    pub(super) news: Receiver<News>,
    connection: TcpStream,
    reader: Option<JoinHandle<()>>,
}

/// What a stream has told.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum News {
    /// The region of this number is another now.
    Patch { number: String, hash: String, markup: String },
    /// The page is to be asked for again.
    Reload,
    /// What the program told those who listen. The cursors of events are in the order of their texts, and each event
    /// has the same in all streams.
    Event { cursor: String, text: String },
}

/// What becomes of the wish to follow a page.
pub(super) enum Opened {
    Stream(Stream),
    /// It is not followed, because of this status.
    Not(u16),
}

impl Stream {
    /// Sends the request that follows a page.
    ///
    /// # Errors
    ///
    /// No answer, or no thread for it.
    pub(super) fn open(request: &Request, site: SocketAddr) -> io::Result<Opened> {
        let (reply, content) = request.open(site, SILENCE)?;
        if !is_stream(&reply) {
            return Ok(Opened::Not(reply.status()));
        }
        let connection = content.connection()?;
        let (tell, news) = channel();
        let read = move || read(content, &tell);
        let reader = thread::Builder::new().name("bine tab".to_owned()).spawn(read)?;
        Ok(Opened::Stream(Self { news, connection, reader: Some(reader) }))
    }
}

impl Stream {
    /// Ends it, and gives what has come and was not looked at.
    pub(super) fn end(mut self) -> Vec<News> {
        self.close();
        self.news.try_iter().collect()
    }

    fn close(&mut self) {
        // The other side may have closed it before. What the system has of it is still read.
        let _ = self.connection.shutdown(Shutdown::Both);
        if let Some(reader) = self.reader.take() {
            // It panics at nothing; if it did, that was told.
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

/// Reads server-sent events (HTML 9.2.6) until there are no more, or nobody wants them.
fn read(content: Content, tell: &Sender<News>) {
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
                if news(&event, &id, &data).is_some_and(|news| tell.send(news).is_err()) {
                    return;
                }
            }
            // A comment, of which the page makes nothing.
            _ => {}
        }
    }
}

/// What an event says, if a page heeds it.
fn news(event: &str, id: &str, data: &[String]) -> Option<News> {
    match event {
        "patch" => {
            let (first, markup) = data.split_first()?;
            let (number, hash) = first.split_once(' ')?;
            let markup = markup.join("\n");
            Some(News::Patch { number: number.into(), hash: hash.into(), markup })
        }
        "reload" => Some(News::Reload),
        "event" => Some(News::Event { cursor: id.to_owned(), text: data.join("\n") }),
        _ => None,
    }
}
