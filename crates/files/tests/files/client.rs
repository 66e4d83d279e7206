//! A client for tests, which shows responses as text.

use std::fs::File;
use std::os::unix::fs::FileExt;

use bine_files::Files;
use bine_http::{Event, Framing, Limits, RequestParser};
use bine_server::{
    Answer, Body, ClientAddress, Clock, FilePart, Identity, Incoming, Outgoing, Retained,
};

use crate::site::TestSite;

/// A time long after the last change of every file in the tests, so that all files have settled.
pub(crate) const NOW: u64 = 100_000_000_000;

/// A thread's cache with its own clock.
pub(crate) struct Client {
    pub(crate) files: Files,
    pub(crate) clock: Clock,
}

/// A response.
pub(crate) struct Response {
    pub(crate) head: String,
    pub(crate) content: Vec<u8>,
    /// Whether the content follows the head from disk.
    pub(crate) is_streamed: bool,
}

/// Sends one request and compares the status, some fields and the content, in the format of
/// [`Response::text`].
#[track_caller]
pub(crate) fn check(site: &TestSite, request_line: &str, expected: &str) {
    assert_eq!(Client::of(site).ask(request_line), expected, "{request_line}");
}

impl Client {
    pub(crate) fn of(site: &TestSite) -> Self {
        Self { files: site.files(), clock: Clock::told(NOW) }
    }

    /// Returns the response to `METHOD /target` as text, or `none` if there is no response.
    pub(crate) fn ask(&mut self, request_line: &str) -> String {
        self.send(request_line).map_or("none".to_owned(), |response| response.text())
    }

    /// Returns the response to `METHOD /target`.
    pub(crate) fn send(&mut self, request_line: &str) -> Option<Response> {
        self.request(request_line, "", None)
    }

    /// Returns the response to a request with header fields.
    pub(crate) fn send_with(
        &mut self,
        request_line: &str,
        fields: &[(&str, &str)],
    ) -> Option<Response> {
        let lines = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        self.request(request_line, &lines.collect::<Vec<_>>().concat(), None)
    }

    /// Returns the response to GET with a path that no request can contain.
    pub(crate) fn send_path(&mut self, path: &str) -> Option<Response> {
        self.request("GET /", "", Some(path))
    }

    fn request(
        &mut self,
        request_line: &str,
        fields: &str,
        path: Option<&str>,
    ) -> Option<Response> {
        let bytes = format!("{request_line} HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let Event::Head(head) =
            RequestParser::new().receive(bytes.as_bytes(), &Limits::default()).event
        else {
            panic!("the request is refused: {request_line}");
        };
        assert_eq!(head.framing(), Framing::None);
        let request = Incoming {
            head,
            body: Body::None,
            peer: ClientAddress::UNIX,
            identity: &Identity::Anonymous,
            arrival: self.clock.unix(),
            has_begun: false,
            exchange: head.exchange(),
        };
        let decoded = head.path();
        // The buffer contains an earlier response, which must stay.
        let mut buffer = b"earlier".to_vec();
        let mut drain = |_: &mut Vec<u8>| panic!("a file is never drained");
        let answer = self.files.respond(
            path.unwrap_or(&decoded),
            &request,
            &self.clock,
            &mut Outgoing { buffer: &mut buffer, drain: &mut drain },
        );
        let answer = match answer {
            Some(Answer::Work(work)) => {
                let mut out = Outgoing { buffer: &mut buffer, drain: &mut drain };
                let done = work.run(&Retained::of(&request), &self.clock, &mut out);
                assert!(done.follow.is_none() && !done.close);
                Some(Answer::Written { close: false })
            }
            answer => answer,
        };
        let reply = buffer.strip_prefix(b"earlier").expect("what stood in the buffer stays");
        let Some(answer) = answer else {
            assert!(reply.is_empty(), "no answer, and something was written");
            return None;
        };
        Some(Response::of(reply, answer))
    }
}

impl Response {
    fn of(reply: &[u8], answer: Answer) -> Self {
        let end = reply.windows(4).position(|four| four == b"\r\n\r\n").expect("the head ends") + 4;
        let head = str::from_utf8(&reply[..end]).expect("a head is ASCII").to_owned();
        let content = reply[end..].to_vec();
        match answer {
            Answer::Written { close: false } => Self { head, content, is_streamed: false },
            Answer::Stream(stream) => {
                assert!(content.is_empty(), "the stream follows the head");
                let runtime = tokio::runtime::Builder::new_current_thread().build();
                let content = runtime.expect("a thread is left").block_on(stream.gather());
                Self { head, content: content.expect("the file has its length"), is_streamed: true }
            }
            Answer::File(part) => {
                assert!(content.is_empty(), "the file follows the head");
                Self { head, content: read(&part), is_streamed: true }
            }
            _ => panic!("neither written nor a file"),
        }
    }

    /// Returns the value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Returns the value of Content-Length.
    pub(crate) fn length(&self) -> Option<usize> {
        self.field("Content-Length")?.parse().ok()
    }

    /// Returns the status, each field except dates and those of every file, and the content if it
    /// is not empty.
    pub(crate) fn text(&self) -> String {
        let mut lines = self.head.trim_end().lines();
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")).unwrap_or("?");
        let mut text = status.to_owned();
        for line in lines {
            let usual = ["Date: ", "Last-Modified: ", "ETag: ", "Accept-Ranges: bytes"];
            if !usual.iter().any(|usual| line.starts_with(usual)) {
                text += "; ";
                text += line;
            }
        }
        if !self.content.is_empty() {
            text += " | ";
            text += &String::from_utf8_lossy(&self.content);
        }
        text
    }
}

fn read(part: &FilePart) -> Vec<u8> {
    let file = File::from(part.file.try_clone().expect("a descriptor is left"));
    let mut content = vec![0; part.length as usize];
    file.read_exact_at(&mut content, part.offset).expect("the file has its length");
    content
}
