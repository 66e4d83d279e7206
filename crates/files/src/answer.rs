//! Decides how a file is answered with: whole, in parts, or by a word.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bine_http::{Date, Exchange, Head, Method, Reply, Status};
use bine_pipeline::{Answer, FilePart, log};
use rustix::io::pread;

use crate::conditions::{Verdict, judge};
use crate::description::Description;
use crate::ranges::Part;

/// Several parts of a file that is not in memory are sent together if they are no more bytes than this.
const MOST_COPIED: u64 = 256 * 1024;

/// A reply not yet begun, and the request it answers.
pub(crate) struct Blank<'a> {
    pub(crate) buffer: &'a mut Vec<u8>,
    pub(crate) exchange: Exchange,
    pub(crate) head: Head<'a>,
    pub(crate) date: Date,
}

/// Where a file's bytes are.
#[derive(Clone, Copy)]
pub(crate) enum Source<'f> {
    Memory(&'f [u8]),
    Disk(&'f Arc<OwnedFd>),
}

impl Blank<'_> {
    pub(crate) fn begin(&mut self, status: Status) -> Reply<'_> {
        Reply::begin(self.buffer, self.exchange, status, &self.date)
    }

    /// Answers with a file as the request's conditions want it.
    #[inline]
    pub(crate) fn answer(&mut self, file: &Description, source: Source<'_>) -> Answer {
        match judge(&self.head, &file.validators()) {
            Verdict::Whole => self.whole(file, source),
            verdict => self.partly(file, source, verdict),
        }
    }

    #[inline]
    fn whole(&mut self, file: &Description, source: Source<'_>) -> Answer {
        let is_head = self.exchange.method == Method::Head;
        let mut reply = self.begin(Status::OK);
        file.write(&mut reply);
        match source {
            Source::Memory(bytes) => reply.whole(bytes),
            Source::Disk(_) => reply.length(file.length()),
        }
        match source {
            Source::Disk(open) if !is_head => {
                Answer::File(FilePart { file: Arc::clone(open), offset: 0, length: file.length() })
            }
            _ => Answer::Written { close: false },
        }
    }

    fn partly(&mut self, file: &Description, source: Source<'_>, verdict: Verdict) -> Answer {
        match verdict {
            Verdict::Whole => {}
            Verdict::NotModified => {
                let mut reply = self.begin(Status::NOT_MODIFIED);
                file.write_validators(&mut reply);
                reply.empty();
            }
            Verdict::Failed => self.begin(Status::PRECONDITION_FAILED).empty(),
            Verdict::NotSatisfiable => {
                let mut reply = self.begin(Status::RANGE_NOT_SATISFIABLE);
                content_range(&mut reply, &format!("bytes */{}", file.length()));
                reply.empty();
            }
            Verdict::Part(part) => return self.part(file, source, part),
            Verdict::Parts(parts) => return self.parts(file, source, &parts),
        }
        Answer::Written { close: false }
    }

    fn part(&mut self, file: &Description, source: Source<'_>, part: Part) -> Answer {
        let mut reply = self.begin(Status::PARTIAL_CONTENT);
        file.write(&mut reply);
        content_range(&mut reply, &range(part, file.length()));
        match source {
            Source::Memory(bytes) => {
                reply.whole(&bytes[part.first as usize..=part.last as usize]);
                Answer::Written { close: false }
            }
            Source::Disk(open) => {
                reply.length(part.len());
                let (offset, length) = (part.first, part.len());
                Answer::File(FilePart { file: Arc::clone(open), offset, length })
            }
        }
    }

    /// `multipart/byteranges` (RFC 9110 section 14.6).
    fn parts(&mut self, file: &Description, source: Source<'_>, parts: &[Part]) -> Answer {
        let sum: u64 = parts.iter().map(|part| part.len()).sum();
        if let Source::Disk(open) = source
            && sum > MOST_COPIED
        {
            // RFC 9110 section 14.2: a server may answer with all of it.
            return self.whole(file, Source::Disk(open));
        }
        let boundary = boundary(&file.validators().tag.replace(['"', '/'], ""));
        let mut content = Vec::new();
        for part in parts {
            let range = range(*part, file.length());
            let head = format!(
                "\r\n--{boundary}\r\n{}Content-Range: {range}\r\n\r\n",
                file.content_type()
            );
            content.extend_from_slice(head.as_bytes());
            if let Err(error) = source.copy(*part, &mut content) {
                log::error(format_args!("a part of a file cannot be read: {error}"));
                self.begin(Status::INTERNAL_SERVER_ERROR).empty();
                return Answer::Written { close: false };
            }
        }
        content.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        let mut reply = self.begin(Status::PARTIAL_CONTENT);
        let kind = format!("multipart/byteranges; boundary={boundary}");
        reply.field("Content-Type", &kind).expect("a boundary is letters, digits, dots and dashes");
        file.write_validators(&mut reply);
        reply.whole(&content);
        Answer::Written { close: false }
    }
}

impl Source<'_> {
    fn copy(self, part: Part, content: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Memory(bytes) => {
                content.extend_from_slice(&bytes[part.first as usize..=part.last as usize]);
            }
            Self::Disk(file) => {
                let start = content.len();
                content.resize(start + part.len() as usize, 0);
                let mut filled = start;
                while filled < content.len() {
                    let place = part.first + (filled - start) as u64;
                    match pread(file, &mut content[filled..], place)? {
                        0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                        count => filled += count,
                    }
                }
            }
        }
        Ok(())
    }
}

fn range(part: Part, length: u64) -> String {
    format!("bytes {}-{}/{length}", part.first, part.last)
}

fn content_range(reply: &mut Reply<'_>, range: &str) {
    reply
        .field("Content-Range", range)
        .expect("a range is letters, digits, spaces, stars, slashes and dashes");
}

/// What stands between parts. It is not looked for in them: whoever reads them goes by their lengths as well, and
/// twenty letters behind two dashes are there by nobody's accident.
fn boundary(tag: &str) -> String {
    format!("bine-part-of-{tag}")
}
