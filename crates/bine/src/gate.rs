//! The interface between request routing and admission control, and the header line that admitted
//! clients receive.

use std::sync::Arc;

use bine_admission::Admission;
use bine_server::{Answer, Clock, Done, Incoming, Outgoing, ReplyFuture, Retained, Work};

use crate::languages::VisitorWords;

/// Decides under overload which clients are admitted.
pub(crate) trait AdmissionPolicy: Send + Sync {
    /// Creates the part that belongs to one thread.
    fn local(&self, admission: Arc<Admission>) -> Box<dyn LocalAdmissionPolicy>;
}

/// One thread's part of an admission policy. It runs under overload only.
pub(crate) trait LocalAdmissionPolicy {
    /// Decides whether a request may reach dynamic content.
    fn decide(&mut self, request: &Incoming<'_>) -> AdmissionDecision;

    /// Writes the response to a rejected request.
    fn refuse(
        &mut self,
        request: &Incoming<'_>,
        words: &VisitorWords,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Answer;
}

/// The decision about a request.
pub(crate) enum AdmissionDecision {
    /// The request continues.
    Admit,
    /// The request continues, and its response gets this header line.
    AdmitWithTicket(String),
    /// The request is rejected.
    Reject,
}

/// Lines that are inserted into the head of a response.
#[derive(Clone)]
enum HeadLines {
    /// A ticket, which a shared cache must not store.
    Ticket(String),
    /// Lines that forbid shared caches to store the response.
    Private,
    /// Fields of a filter, which replace those of the same name.
    Fields(Arc<[(String, String)]>),
    /// Lines that are known when the head is written, with a cookie that a shared cache must not store.
    Late(LateLines),
}

/// Returns lines for the head of a response, or an empty text.
pub(crate) type LateLines = Arc<dyn Fn() -> String + Send + Sync>;

/// Runs `call` and inserts the lines that `lines` returns when the head is written, whichever thread
/// writes it.
pub(crate) fn with_late_lines(
    lines: LateLines,
    out: &mut Outgoing<'_>,
    call: impl FnOnce(&mut Outgoing<'_>) -> Answer,
) -> Answer {
    with_lines(HeadLines::Late(lines), out, call)
}

/// Runs `call` and inserts `line` into the head of its response, whichever thread writes it.
pub(crate) fn with_line(
    line: String,
    out: &mut Outgoing<'_>,
    call: impl FnOnce(&mut Outgoing<'_>) -> Answer,
) -> Answer {
    with_lines(HeadLines::Ticket(line), out, call)
}

/// Runs `call` and forbids shared caches to store its response, whichever thread writes it.
pub(crate) fn private(
    out: &mut Outgoing<'_>,
    call: impl FnOnce(&mut Outgoing<'_>) -> Answer,
) -> Answer {
    with_lines(HeadLines::Private, out, call)
}

/// Runs `call` and sets fields of its response, whichever thread writes it. The names and values are
/// valid.
pub(crate) fn with_fields(
    fields: Vec<(String, String)>,
    out: &mut Outgoing<'_>,
    call: impl FnOnce(&mut Outgoing<'_>) -> Answer,
) -> Answer {
    with_lines(HeadLines::Fields(fields.into()), out, call)
}

/// Sets fields of the response that begins at `begin`. The names and values are valid.
pub(crate) fn insert_fields(fields: Vec<(String, String)>, bytes: &mut Vec<u8>, begin: usize) {
    HeadLines::Fields(fields.into()).insert(bytes, begin);
}

fn with_lines(
    line: HeadLines,
    out: &mut Outgoing<'_>,
    call: impl FnOnce(&mut Outgoing<'_>) -> Answer,
) -> Answer {
    let (answer, line) = writing(line, out, call);
    let Some(line) = line else { return answer };
    match answer {
        Answer::Work(work) => Answer::Work(Arc::new(Ticketed { work, line })),
        Answer::Later(reply) => Answer::Later(later_with_line(reply, line)),
        Answer::Receive(reply, body) => Answer::Receive(later_with_line(reply, line), body),
        Answer::WhileOpen(reply) => Answer::WhileOpen(later_with_line(reply, line)),
        answer => answer,
    }
}

fn later_with_line(reply: ReplyFuture, line: HeadLines) -> ReplyFuture {
    Box::pin(async move {
        let mut finished = reply.await;
        line.insert(&mut finished.bytes, 0);
        finished
    })
}

/// Runs `write` and inserts `line` into its output. Returns the line if there was no output.
fn writing<A>(
    line: HeadLines,
    out: &mut Outgoing<'_>,
    write: impl FnOnce(&mut Outgoing<'_>) -> A,
) -> (A, Option<HeadLines>) {
    let begin = out.buffer.len();
    let mut line = Some(line);
    let Outgoing { buffer, drain } = out;
    // A long page is sent while it is rendered: its head is in the first chunk.
    let mut first = |buffer: &mut Vec<u8>| {
        line = line.take().filter(|line| !line.insert(buffer, begin));
        drain(buffer);
    };
    let written = write(&mut Outgoing { buffer, drain: &mut first });
    let line = line.filter(|line| !line.insert(buffer, begin));
    (written, line)
}

impl HeadLines {
    /// Inserts the lines after the status line of the head that starts at `begin`. Returns false if
    /// there is no head.
    fn insert(&self, bytes: &mut Vec<u8>, begin: usize) -> bool {
        let Some(reply) = bytes.get(begin..) else { return false };
        let end = |mark: &[u8]| reply.windows(mark.len()).position(|part| part == mark);
        let (Some(status), Some(head)) = (end(b"\r\n"), end(b"\r\n\r\n")) else { return false };
        let keeping = cache_control(&reply[status..head]);
        let place = begin + status + 2;
        match self {
            // A shared cache would hand the ticket to all its clients: the response is sent without
            // one instead.
            Self::Ticket(_) | Self::Late(_) if keeping.as_deref().is_some_and(is_shared) => {}
            Self::Ticket(line) => {
                let also = if keeping.is_none() { "Cache-Control: private\r\n" } else { "" };
                bytes.splice(place..place, line.bytes().chain(also.bytes()));
            }
            Self::Late(lines) => {
                bytes.splice(place..place, lines().bytes());
            }
            Self::Private if keeping.as_deref().is_some_and(is_private) => {}
            Self::Private => {
                bytes.splice(place..place, PRIVATE.bytes());
            }
            Self::Fields(fields) => {
                // A filter does not open a private response to shared caches.
                let is_kept = keeping.as_deref().is_some_and(is_private);
                let opens = |(name, value): &&(String, String)| {
                    let is_open = !is_private(&value.to_ascii_lowercase());
                    is_kept && is_open && name.eq_ignore_ascii_case("cache-control")
                };
                let fields = fields.iter().filter(|field| !opens(field)).cloned();
                let fields: Vec<_> = fields.collect();
                let lines = with_replaced(&bytes[place..begin + head + 2], &fields);
                bytes.splice(place..begin + head + 2, lines);
            }
        }
        true
    }
}

/// The lines of a session's response too: the browser asks again before it shows the content.
const PRIVATE: &str = "Vary: Cookie\r\nCache-Control: private, no-cache\r\n";

/// Fields that a response may have several times: one more does not replace the others.
const REPEATED: [&str; 3] = ["link", "set-cookie", "vary"];

/// The lines of a head with these fields, without others of the same names.
fn with_replaced(head: &[u8], fields: &[(String, String)]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(head.len() + 64);
    for (name, value) in fields {
        lines.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    let is_replaced = |line: &[u8]| {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        let is_named = |(own, _): &(String, String)| own.as_bytes().eq_ignore_ascii_case(name);
        let is_repeated = |own: &&str| own.as_bytes().eq_ignore_ascii_case(name);
        fields.iter().any(is_named) && !REPEATED.iter().any(is_repeated)
    };
    for line in head.split_inclusive(|byte| *byte == b'\n').filter(|line| !is_replaced(line)) {
        lines.extend_from_slice(line);
    }
    lines
}

fn cache_control(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let values = head.lines().filter_map(|line| line.strip_prefix("cache-control:"));
    let values: Vec<&str> = values.collect();
    (!values.is_empty()).then(|| values.join(","))
}

fn is_shared(keeping: &str) -> bool {
    let is_kept = says(keeping, "public") || says(keeping, "s-maxage") || says(keeping, "max-age");
    !is_private(keeping) && is_kept
}

fn is_private(keeping: &str) -> bool {
    says(keeping, "private") || says(keeping, "no-store")
}

fn says(keeping: &str, word: &str) -> bool {
    keeping.split(',').any(|part| part.trim().starts_with(word))
}

/// A handler's work whose response gets an additional header line.
struct Ticketed {
    work: Arc<dyn Work>,
    line: HeadLines,
}

impl Work for Ticketed {
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        writing(self.line.clone(), out, |out| self.work.run(request, clock, out)).0
    }

    fn failed(&self, request: &Incoming<'_>, clock: &Clock, out: &mut Vec<u8>) {
        self.work.failed(request, clock, out);
    }

    fn name(&self) -> &'static str {
        self.work.name()
    }
}

#[cfg(test)]
mod tests {
    use bine_server::Finished;

    use super::*;

    const LINE_OF_TICKET: &str = "Set-Cookie: ticket=a\r\n";

    #[track_caller]
    fn check(reply: &str, expected: &str) {
        let mut bytes = format!("earlier\r\n\r\n{reply}").into_bytes();
        HeadLines::Ticket(LINE_OF_TICKET.to_owned()).insert(&mut bytes, 11);
        assert_eq!(String::from_utf8(bytes).unwrap(), format!("earlier\r\n\r\n{expected}"));
    }

    #[test]
    fn sets_fields_and_replaces_those_of_the_same_name() {
        let fields = [("X-A", "1"), ("cache-control", "no-store"), ("Vary", "Cookie")];
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let line = HeadLines::Fields(fields.into());
        let mut bytes = b"earlier\r\n\r\nHTTP/1.1 200 OK\r\nDate: a\r\nCache-Control: max-age=5\r\nVary: Accept\r\n\r\nCache-Control: body\r\n\r\n".to_vec();
        assert!(line.insert(&mut bytes, 11));
        let expected = "earlier\r\n\r\nHTTP/1.1 200 OK\r\nX-A: 1\r\ncache-control: no-store\r\nVary: Cookie\r\nDate: a\r\nVary: Accept\r\n\r\nCache-Control: body\r\n\r\n";
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        assert!(!line.insert(&mut b"HTTP/1.1 200 OK\r\n".to_vec(), 0));
        let open = vec![("Cache-Control".to_owned(), "public, max-age=300".to_owned())];
        let mut private = b"HTTP/1.1 200 OK\r\nCache-Control: private, no-cache\r\n\r\n".to_vec();
        let before = private.clone();
        assert!(HeadLines::Fields(open.into()).insert(&mut private, 0));
        assert_eq!(private, before, "a private response stays private");
        let mut bare = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        assert!(line.insert(&mut bare, 0));
        assert!(bare.ends_with(b"Vary: Cookie\r\n\r\n"), "{bare:?}");
    }

    #[test]
    fn inserts_the_ticket_after_the_status_line_unless_shared_caches_store_it() {
        check(
            "HTTP/1.1 200 OK\r\nDate: a\r\n\r\nbody\r\n\r\n",
            "HTTP/1.1 200 OK\r\nSet-Cookie: ticket=a\r\nCache-Control: private\r\nDate: a\r\n\r\nbody\r\n\r\n",
        );
        check(
            "HTTP/1.1 200 OK\r\ncache-control: no-cache\r\n\r\n",
            "HTTP/1.1 200 OK\r\nSet-Cookie: ticket=a\r\ncache-control: no-cache\r\n\r\n",
        );
        for shared in ["public", "max-age=5", "no-transform, s-maxage=9"] {
            let reply = format!("HTTP/1.1 200 OK\r\nCache-Control: {shared}\r\n\r\n");
            check(&reply, &reply);
        }
        check("", "");
    }

    #[test]
    fn forbids_shared_caches_to_store_a_private_response() {
        for (keeping, is_added) in [
            ("", true),
            ("Cache-Control: public, max-age=9\r\n", true),
            ("Cache-Control: no-cache\r\n", true),
            ("Cache-Control: private, no-cache\r\n", false),
            ("Cache-Control: no-store\r\n", false),
        ] {
            let mut bytes = format!("HTTP/1.1 200 OK\r\n{keeping}\r\nbody").into_bytes();
            HeadLines::Private.insert(&mut bytes, 0);
            let added = if is_added { PRIVATE } else { "" };
            let expected = format!("HTTP/1.1 200 OK\r\n{added}{keeping}\r\nbody");
            assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        }
    }

    #[test]
    fn inserts_the_ticket_into_the_first_chunk_of_a_page() {
        let (mut buffer, mut sent) = (Vec::new(), Vec::new());
        let mut drain = |piece: &mut Vec<u8>| sent.append(piece);
        let mut out = Outgoing { buffer: &mut buffer, drain: &mut drain };
        let answer = with_line(LINE_OF_TICKET.to_owned(), &mut out, |out| {
            for piece in ["HTTP/1.1 200 OK\r\n\r\na", "b\r\n\r\n", "c"] {
                out.buffer.extend_from_slice(piece.as_bytes());
                (out.drain)(out.buffer);
            }
            Answer::Written { close: false }
        });
        assert!(matches!(answer, Answer::Written { close: false }));
        let sent = String::from_utf8(sent).unwrap();
        assert_eq!(sent.matches("Set-Cookie").count(), 1, "{sent}");
        assert!(sent.ends_with("\r\n\r\nab\r\n\r\nc"), "{sent}");
    }

    #[test]
    fn inserts_the_ticket_into_a_later_response() {
        let (mut buffer, mut drain) = (Vec::new(), |_: &mut Vec<u8>| {});
        let mut out = Outgoing { buffer: &mut buffer, drain: &mut drain };
        let answer = with_line(LINE_OF_TICKET.to_owned(), &mut out, |_| {
            let bytes = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
            Answer::Later(Box::pin(async { Finished { bytes, ..Finished::default() } }))
        });
        let Answer::Later(mut reply) = answer else { panic!("it comes later") };
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let std::task::Poll::Ready(finished) = reply.as_mut().poll(&mut context) else {
            panic!("it is ready");
        };
        assert!(finished.bytes.starts_with(b"HTTP/1.1 200 OK\r\nSet-Cookie: ticket=a\r\n"));
    }
}
