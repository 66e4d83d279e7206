//! Decides whether bytes form a valid head: all at once if they are all there, else line by line.

use alloc::vec;
use core::mem::MaybeUninit;

use httparse::{Request, Status};

use crate::fault::PeerFault;
use crate::fields::Fields;
use crate::head::{Flags, Head, HeadIndex, Span, Version};
use crate::limits::Limits;
use crate::line;
use crate::method::Method;
use crate::target::{self, Target};

/// Fields a head may have without the parser asking for memory.
const USUAL_FIELDS: usize = 100;

/// How far an unfinished head was looked at, so that no byte of it is looked at again.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Where the unfinished line begins; 0 is the request line.
    line: u32,
    /// Up to here there is no line feed in it.
    seen: u32,
    fields: u16,
}

impl Progress {
    pub(crate) const fn new() -> Self {
        Self { line: 0, seen: 0, fields: 0 }
    }

    /// The head at the front of the bytes and its length, or nothing yet.
    #[inline]
    pub(crate) fn receive<'b>(
        &mut self,
        bytes: &'b [u8],
        limits: &Limits,
    ) -> Result<Option<Head<'b>>, PeerFault> {
        // What was looked at under wider limits, before a reload, is not taken back.
        let limit = limits.head.max(self.seen) as usize;
        let within = &bytes[..bytes.len().min(limit)];
        if self.seen == 0 {
            // A hello of TLS may hold no line feed; its peer should not wait for one.
            if !within.first().is_some_and(|first| line::is_token(&[*first])) {
                return Err(PeerFault::MethodSyntax);
            }
            if let Some(head) = whole(within, limits) {
                return head.map(Some);
            }
        }
        match self.walk(within, limits)? {
            Some(length) => match whole(&within[..length], limits) {
                Some(head) => head.map(Some),
                // Each line is well formed, so this is not expected; refusing is safe.
                None => Err(PeerFault::Malformed),
            },
            None if within.len() < limit => Ok(None),
            None if self.line == 0 => Err(PeerFault::TargetTooLong),
            None => Err(PeerFault::HeadTooLarge),
        }
    }

    /// Checks each line as it ends; says where the empty line ended the head.
    fn walk(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, PeerFault> {
        while let Some(length) = line::line_feed(&bytes[self.seen as usize..]) {
            let end = self.seen as usize + length + 1;
            let line = line::end(&bytes[self.line as usize..end])?;
            if self.line == 0 {
                request_line(line, limits)?;
            } else if line.is_empty() {
                return Ok(Some(end));
            } else if self.fields >= limits.fields {
                return Err(PeerFault::TooManyFields);
            } else {
                self.fields += 1;
                line::field(line)?;
            }
            self.line = end as u32;
            self.seen = end as u32;
        }
        self.seen = bytes.len() as u32;
        Ok(None)
    }
}

/// Reads a whole head by httparse's wide instructions. `None` says: incomplete, or a line is malformed.
///
/// Only `walk` says which line, so a head gets the same answer however it was cut on its way.
#[inline]
fn whole<'b>(bytes: &'b [u8], limits: &Limits) -> Option<Result<Head<'b>, PeerFault>> {
    let allowed = usize::from(limits.fields);
    let mut usual = [const { MaybeUninit::uninit() }; USUAL_FIELDS];
    let mut request = Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(bytes, &mut usual[..allowed.min(USUAL_FIELDS)]);
    match parsed {
        Ok(Status::Complete(length)) => understand(&bytes[..length], &request, limits),
        Err(httparse::Error::TooManyHeaders) if allowed > USUAL_FIELDS => {
            let mut many = vec![httparse::EMPTY_HEADER; allowed];
            let mut request = Request::new(&mut many);
            match request.parse(bytes) {
                Ok(Status::Complete(length)) => understand(&bytes[..length], &request, limits),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Applies what httparse leaves open: bare line feeds, the target, and what the fields mean together.
#[inline]
fn understand<'b>(
    raw: &'b [u8],
    request: &Request<'_, 'b>,
    limits: &Limits,
) -> Option<Result<Head<'b>, PeerFault>> {
    let method =
        Method::of(request.method?.as_bytes()).filter(|&method| method != Method::Connect)?;
    let target = request.path?.as_bytes();
    let start = method.as_str().len() + 1;
    let end = start + target.len();
    let version = match raw.get(end..end + 11)? {
        b" HTTP/1.1\r\n" => Version::Http11,
        b" HTTP/1.0\r\n" => Version::Http10,
        _ => return None,
    };
    if target.len() > limits.target as usize || !raw.ends_with(b"\r\n\r\n") {
        return None;
    }
    let Target { path, authority, plain } = target::read(target, method).ok()?;
    let mut index = HeadIndex {
        content_length: 0,
        known: 0,
        target_end: end as u32,
        path: path.moved(start),
        authority: if authority == Span::default() { authority } else { authority.moved(start) },
        method,
        version,
        flags: Flags::default(),
    };
    index.flags.set(Flags::PLAIN_PATH, plain);

    // Lines first, all of them, as `walk` would; meaning second.
    let place = |part: &[u8]| part.as_ptr().addr() - raw.as_ptr().addr();
    let bare = |field: &httparse::Header<'_>| raw[place(field.name.as_bytes()) - 2] != b'\r';
    if request.headers.iter().any(bare) {
        return None;
    }
    let mut fields = Fields::default();
    for field in request.headers.iter() {
        // httparse has trimmed the value.
        let start = place(field.value);
        let end = start + field.value.len();
        if let Err(fault) = fields.take(field.name.as_bytes(), field.value, start..end) {
            return Some(Err(fault));
        }
    }
    let finished = fields.finish(&mut index, limits);
    Some(finished.map(|()| Head::from_parts(raw, index)))
}

/// Refuses a request line (RFC 9112 section 3), most general mistake first.
fn request_line(line: &[u8], limits: &Limits) -> Result<(), PeerFault> {
    if line.contains(&b'\r') {
        return Err(PeerFault::BareCarriageReturn);
    }
    let mut parts = line.splitn(2, |&byte| byte == b' ');
    let token = parts.next().filter(|token| line::is_token(token));
    let token = token.ok_or(PeerFault::MethodSyntax)?;
    let rest = parts.next().ok_or(PeerFault::MissingVersion)?;
    let space = rest.iter().rposition(|&byte| byte == b' ');
    let (target, version) = rest.split_at(space.ok_or(PeerFault::MissingVersion)?);
    match &version[1..] {
        b"HTTP/1.1" | b"HTTP/1.0" => {}
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => {
            return Err(PeerFault::UnsupportedVersion);
        }
        _ => return Err(PeerFault::VersionSyntax),
    }
    let method = match Method::of(token) {
        Some(Method::Connect) => return Err(PeerFault::Connect),
        Some(method) => method,
        None => return Err(PeerFault::UnknownMethod),
    };
    if target.len() > limits.target as usize {
        return Err(PeerFault::TargetTooLong);
    }
    target::read(target, method).map(|_| ())
}
