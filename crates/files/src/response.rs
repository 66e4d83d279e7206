//! Builds the response with a file: whole, partial or without content.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bine_http::{Date, Exchange, Head, Method, Reply, Status};
use bine_server::{Answer, FilePart, Sender, Stream, blocking};
use rustix::io::{Errno, pread};

use crate::conditions::{Evaluation, evaluate};
use crate::description::Description;
use crate::ranges::Part;

/// The number of bytes read at once for a multipart response from disk.
const READ_BYTES: u64 = 64 * 1024;

/// A request and the buffer for its response.
pub(crate) struct Responder<'a> {
    pub(crate) buffer: &'a mut Vec<u8>,
    pub(crate) exchange: Exchange,
    /// The request head; `None` to ignore conditions and ranges.
    pub(crate) head: Option<Head<'a>>,
    pub(crate) date: Date,
}

/// The location of a file's bytes.
#[derive(Clone, Copy)]
pub(crate) enum Source<'f> {
    Memory(&'f [u8]),
    Disk(&'f Arc<OwnedFd>),
}

impl Responder<'_> {
    pub(crate) fn start(&mut self, status: Status) -> Reply<'_> {
        Reply::begin(self.buffer, self.exchange, status, &self.date)
    }

    /// Responds with a file according to the request's conditions.
    #[inline]
    pub(crate) fn respond(&mut self, file: &Description, source: Source<'_>) -> Answer {
        self.exchange.security = self.exchange.security.without(file.overrides());
        match self.head.as_ref().map(|head| evaluate(head, &file.validators())) {
            None | Some(Evaluation::Whole) => self.whole(file, source),
            Some(evaluation) => self.conditional(file, source, evaluation),
        }
    }

    #[inline]
    fn whole(&mut self, file: &Description, source: Source<'_>) -> Answer {
        let is_head = self.exchange.method == Method::Head;
        let mut reply = self.start(Status::OK);
        file.write(&mut reply);
        match source {
            Source::Memory(bytes) => reply.whole(bytes),
            Source::Disk(_) => reply.content_length(file.length()),
        }
        match source {
            Source::Disk(open) if !is_head => {
                Answer::File(FilePart { file: Arc::clone(open), offset: 0, length: file.length() })
            }
            _ => Answer::Written { close: false },
        }
    }

    fn conditional(
        &mut self,
        file: &Description,
        source: Source<'_>,
        evaluation: Evaluation,
    ) -> Answer {
        match evaluation {
            Evaluation::Whole => {}
            Evaluation::NotModified => {
                let mut reply = self.start(Status::NOT_MODIFIED);
                file.write_validators(&mut reply);
                reply.empty();
            }
            Evaluation::Failed => self.start(Status::PRECONDITION_FAILED).empty(),
            Evaluation::NotSatisfiable => {
                let mut reply = self.start(Status::RANGE_NOT_SATISFIABLE);
                content_range(&mut reply, &format!("bytes */{}", file.length()));
                reply.empty();
            }
            Evaluation::Part(part) => return self.part(file, source, part),
            Evaluation::Parts(parts) => return self.parts(file, source, &parts),
        }
        Answer::Written { close: false }
    }

    fn part(&mut self, file: &Description, source: Source<'_>, part: Part) -> Answer {
        let mut reply = self.start(Status::PARTIAL_CONTENT);
        file.write(&mut reply);
        content_range(&mut reply, &range(part, file.length()));
        match source {
            Source::Memory(bytes) => {
                reply.whole(&bytes[part.first as usize..=part.last as usize]);
                Answer::Written { close: false }
            }
            Source::Disk(open) => {
                reply.content_length(part.len());
                let (offset, length) = (part.first, part.len());
                Answer::File(FilePart { file: Arc::clone(open), offset, length })
            }
        }
    }

    /// Responds with `multipart/byteranges` (RFC 9110 section 14.6).
    fn parts(&mut self, file: &Description, source: Source<'_>, parts: &[Part]) -> Answer {
        let boundary = boundary(&file.validators().tag.replace(['"', '/'], ""));
        let heads = parts.iter().map(|part| {
            let range = range(*part, file.length());
            let content_type = file.content_type();
            (
                format!(
                    "\r\n--{boundary}\r\nContent-Type: {content_type}\r\nContent-Range: {range}\r\n\r\n"
                ),
                *part,
            )
        });
        let end = format!("\r\n--{boundary}--\r\n");
        let mut reply = self.start(Status::PARTIAL_CONTENT);
        let content_type = format!("multipart/byteranges; boundary={boundary}");
        reply
            .field("Content-Type", &content_type)
            .expect("a boundary is letters, digits, dots and dashes");
        file.write_encoding(&mut reply);
        file.write_validators(&mut reply);
        match source {
            Source::Memory(bytes) => {
                let mut content = Vec::new();
                for (head, part) in heads {
                    content.extend_from_slice(head.as_bytes());
                    content.extend_from_slice(&bytes[part.first as usize..=part.last as usize]);
                }
                content.extend_from_slice(end.as_bytes());
                reply.whole(&content);
                Answer::Written { close: false }
            }
            Source::Disk(open) => {
                let (open, heads) = (Arc::clone(open), heads.collect());
                Answer::Stream(Stream::new(reply.stream(), move |out| {
                    Box::pin(async move {
                        send_parts(out, open, heads, &end).await.map_err(|error| error.to_string())
                    })
                }))
            }
        }
    }
}

/// Sends parts of a file, each after its head. Reads run on the pool for blocking calls.
async fn send_parts(
    mut out: Sender,
    file: Arc<OwnedFd>,
    parts: Vec<(String, Part)>,
    end: &str,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    for (head, part) in parts {
        out.send(head).await.map_err(io::Error::other)?;
        let mut next = part.first;
        while next <= part.last {
            let length = (part.last - next + 1).min(READ_BYTES) as usize;
            let file = Arc::clone(&file);
            let read;
            (buffer, read) = blocking(move || {
                buffer.resize(length, 0);
                let read = pread(&file, &mut buffer[..], next);
                (buffer, read)
            })
            .await;
            match read {
                // The file is shorter than before.
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    out.send(&buffer[..count]).await.map_err(io::Error::other)?;
                    next += count as u64;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    out.send(end).await.map_err(io::Error::other)
}

fn range(part: Part, length: u64) -> String {
    format!("bytes {}-{}/{length}", part.first, part.last)
}

fn content_range(reply: &mut Reply<'_>, range: &str) {
    reply
        .field("Content-Range", range)
        .expect("a range is letters, digits, spaces, stars, slashes and dashes");
}

/// Returns the boundary between parts. The content is not searched for it: clients also use the
/// parts' lengths, and twenty given characters after two dashes do not occur by accident.
fn boundary(tag: &str) -> String {
    format!("bine-part-of-{tag}")
}
