//! Admission control for dynamic content: decides which clients are admitted under overload, adds
//! the ticket to the responses of admitted clients, and rejects the rest.
//!
//! The check precedes the body, the handler and the tables. Files, assets and channels are exempt:
//! serving a file to a rejected client costs almost nothing, and channels have limits of their own.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use bine_admission::{Admission, Asker, Shown, Verdict};
use bine_http::{Exchange, Reply, Status};
use bine_server::{Answer, Body, Clock, Done, Incoming, LaterReply, Outgoing, Retained, Work};

use crate::accept::AcceptPreferences;
use crate::sessions::ticket::{Holder, Reading, Tickets};

/// One thread's admission check.
pub(crate) struct Gate {
    admission: Arc<Admission>,
    tickets: Arc<Tickets>,
    /// The state of the generator for random retry delays.
    chance: u64,
    /// Whether the last checked request was admitted.
    begins: bool,
}

/// A client and the evidence that identifies it.
struct Visitor<'r> {
    holder: Holder<'r>,
    reading: Reading,
    /// The number of the account, if the client has logged in.
    account: Option<u64>,
    asker: Asker,
}

/// The decision about a request.
pub(crate) enum AdmissionDecision {
    /// The request continues; there is no overload.
    NoOverload,
    /// The request continues.
    Admit,
    /// The request continues, and its response gets this header line.
    AdmitWithTicket(String),
    /// The request is rejected.
    Reject,
}

impl Gate {
    pub(crate) fn new(admission: Arc<Admission>, tickets: Arc<Tickets>) -> Self {
        Self { admission, tickets, chance: RandomState::new().hash_one(0), begins: false }
    }

    /// Starts a request, before it is known whether it leads to dynamic content.
    pub(crate) const fn open(&mut self) {
        self.begins = false;
    }

    /// Whether the last request was admitted.
    pub(crate) const fn begins(&self) -> bool {
        self.begins
    }

    /// Decides whether a request may reach dynamic content. Without overload this costs one atomic
    /// load.
    #[inline]
    pub(crate) fn pass(&mut self, request: &Incoming<'_>) -> AdmissionDecision {
        self.begins = true;
        // A request that was admitted without its body is not checked again when the body has
        // arrived.
        match request.body {
            _ if !self.admission.is_awake() => AdmissionDecision::NoOverload,
            Body::Here(_) | Body::Filed(_) => self.go_on(request),
            Body::None | Body::Coming => self.weigh(request),
        }
    }

    #[cold]
    fn weigh(&mut self, request: &Incoming<'_>) -> AdmissionDecision {
        let Visitor { holder, reading, account, asker } = self.visitor(request);
        let (known, session) = match (self.admission.ask(asker), reading.shown) {
            (Verdict::Refused, _) => {
                self.begins = false;
                return AdmissionDecision::Reject;
            }
            (Verdict::Known, Shown::Ticket(old)) if reading.is_due => (old, account.unwrap_or(old)),
            (Verdict::Known, _) => return AdmissionDecision::Admit,
            (Verdict::Again(known) | Verdict::Admitted(known), _) => {
                (known, account.unwrap_or(known))
            }
        };
        self.admission.rename(known, session);
        AdmissionDecision::AdmitWithTicket(self.tickets.line(session, holder))
    }

    /// A client that was admitted before its body arrived has had no response yet to carry the
    /// ticket.
    #[cold]
    fn go_on(&self, request: &Incoming<'_>) -> AdmissionDecision {
        let Visitor { holder, reading, asker, .. } = self.visitor(request);
        match (reading.shown, asker.stand_in) {
            (Shown::Ticket(_), _) | (_, None) => AdmissionDecision::Admit,
            (_, Some(session)) => {
                AdmissionDecision::AdmitWithTicket(self.tickets.line(session, holder))
            }
        }
    }

    fn visitor<'r>(&self, request: &Incoming<'r>) -> Visitor<'r> {
        let Incoming { head, peer, who, arrival, .. } = request;
        let holder = Holder { peer: *peer, user: who.user(), now: *arrival };
        let reading = self.tickets.read(head, holder);
        // A connection from a proxy, and an address with its port, belongs to many clients. A
        // client on a Unix socket may always be a proxy, and has no address to distinguish it.
        let is_forwarded =
            ["x-forwarded-for", "forwarded", "via"].iter().any(|name| head.field(name).is_some());
        let address = if is_forwarded { None } else { peer.socket_address() };
        let own = address.map(|address| self.admission.number_of(address));
        let account = holder.user.map(|user| self.tickets.account(user, holder.now));
        let has_begun = request.has_begun && own.is_some();
        let asker = Asker { ticket: reading.shown, has_begun, stand_in: account.or(own) };
        Visitor { holder, reading, account, asker }
    }

    /// Counts a response that needed no worker.
    pub(crate) fn answered(&self) {
        self.admission.answered();
    }

    /// Writes the overload response, with the time after which to retry.
    pub(crate) fn refuse(
        &mut self,
        request: &Incoming<'_>,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        // Knuth's linear congruential generator: the delay need not be unpredictable.
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let again = self.admission.again_after((self.chance >> 32) as u32);
        let reads_pages = AcceptPreferences::of(request.head.field_text("accept")).reads_pages;
        write_refusal(request.exchange, reads_pages, again, clock, out.buffer);
        Answer::Written { close: !request.exchange.keep_alive }
    }
}

const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";
const TEXT: &str = "Content-Type: text/plain; charset=utf-8\r\n";
const NOT_KEPT: &str = "Cache-Control: no-store\r\n";
const PAGE: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Please come again</title>\
    <meta name=\"viewport\" content=\"width=device-width\"></head><body><h1>Please come again</h1>\
    <p>The server is busy: more visitors are here than it can serve at the moment. \
    It will not take long: load this page again in a minute.</p></body></html>\n";
const LINE: &str = "the server is busy: too many visitors at the moment; try again soon\n";

fn write_refusal(
    exchange: Exchange,
    reads_pages: bool,
    again: u32,
    clock: &Clock,
    out: &mut Vec<u8>,
) {
    let mut reply = Reply::begin(out, exchange, Status::SERVICE_UNAVAILABLE, &clock.date());
    let (kind, text) = if reads_pages { (HTML, PAGE) } else { (TEXT, LINE) };
    reply.static_lines(kind).static_lines(NOT_KEPT);
    reply.field("Retry-After", &again.to_string()).expect("digits");
    reply.whole(text.as_bytes());
}

/// Runs `call` and inserts `line` into the head of its response, whichever thread writes it.
pub(crate) fn with_line(
    line: String,
    out: &mut Outgoing<'_>,
    call: impl FnOnce(&mut Outgoing<'_>) -> Answer,
) -> Answer {
    let (answer, line) = writing(line, out, call);
    let Some(line) = line else { return answer };
    match answer {
        Answer::Work(work) => Answer::Work(Arc::new(Ticketed { work, line })),
        Answer::Later(reply) => Answer::Later(later_with_line(reply, line)),
        Answer::WhileOpen(reply) => Answer::WhileOpen(later_with_line(reply, line)),
        answer => answer,
    }
}

fn later_with_line(reply: LaterReply, line: String) -> LaterReply {
    Box::pin(async move {
        let mut finished = reply.await;
        insert(&mut finished.bytes, 0, &line);
        finished
    })
}

/// Runs `write` and inserts `line` into its output. Returns the line if there was no output.
fn writing<A>(
    line: String,
    out: &mut Outgoing<'_>,
    write: impl FnOnce(&mut Outgoing<'_>) -> A,
) -> (A, Option<String>) {
    let begin = out.buffer.len();
    let mut line = Some(line);
    let Outgoing { buffer, drain } = out;
    // A long page is sent while it is rendered: its head is in the first chunk.
    let mut first = |buffer: &mut Vec<u8>| {
        line = line.take().filter(|line| !insert(buffer, begin, line));
        drain(buffer);
    };
    let written = write(&mut Outgoing { buffer, drain: &mut first });
    let line = line.filter(|line| !insert(buffer, begin, line));
    (written, line)
}

/// Inserts a line after the status line of the head that starts at `begin`. Returns false if there
/// is no head.
fn insert(bytes: &mut Vec<u8>, begin: usize, line: &str) -> bool {
    let Some(reply) = bytes.get(begin..) else { return false };
    let end = |mark: &[u8]| reply.windows(mark.len()).position(|part| part == mark);
    let (Some(status), Some(head)) = (end(b"\r\n"), end(b"\r\n\r\n")) else { return false };
    let keeping = cache_control(&reply[status..head]);
    // A shared cache would hand the ticket to all its clients: the response is sent without one
    // instead.
    let is_shared = keeping.as_deref().is_some_and(is_shared);
    if !is_shared {
        let place = begin + status + 2;
        let also = if keeping.is_none() { "Cache-Control: private\r\n" } else { "" };
        bytes.splice(place..place, line.bytes().chain(also.bytes()));
    }
    true
}

fn cache_control(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let values = head.lines().filter_map(|line| line.strip_prefix("cache-control:"));
    let values: Vec<&str> = values.collect();
    (!values.is_empty()).then(|| values.join(","))
}

fn is_shared(keeping: &str) -> bool {
    let says = |word: &str| keeping.split(',').any(|part| part.trim().starts_with(word));
    !says("private") && !says("no-store") && (says("public") || says("s-maxage") || says("max-age"))
}

/// A handler's work whose response gets an additional header line.
struct Ticketed {
    work: Arc<dyn Work>,
    line: String,
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
    use bine_http::{Method, Version};
    use bine_server::Finished;

    use super::*;

    const LINE_OF_TICKET: &str = "Set-Cookie: ticket=a\r\n";

    #[track_caller]
    fn check(reply: &str, expected: &str) {
        let mut bytes = format!("earlier\r\n\r\n{reply}").into_bytes();
        insert(&mut bytes, 11, LINE_OF_TICKET);
        assert_eq!(String::from_utf8(bytes).unwrap(), format!("earlier\r\n\r\n{expected}"));
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

    #[test]
    fn rejection_has_retry_after_and_keeps_the_connection() {
        let exchange = Exchange {
            method: Method::Get,
            version: Version::Http11,
            keep_alive: true,
            ..Exchange::closing()
        };
        let clock = Clock::told(0);
        for (reads_pages, kind) in [(false, "text/plain"), (true, "text/html")] {
            let mut out = Vec::new();
            write_refusal(exchange, reads_pages, 7, &clock, &mut out);
            let text = String::from_utf8(out).unwrap();
            assert!(text.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{text}");
            for line in ["Retry-After: 7\r\n", "Cache-Control: no-store\r\n", kind] {
                assert!(text.contains(line), "{text}");
            }
            assert!(!text.contains("Connection: close"), "{text}");
        }
    }
}
