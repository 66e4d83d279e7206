//! Admission control for dynamic content: decides which clients are admitted under overload, and
//! rejects the rest. Admitted clients receive a ticket.
//!
//! The check precedes the body, the handler and the tables. Files, assets and channels are exempt:
//! serving a file to a rejected client costs almost nothing, and channels have limits of their own.

mod ticket;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use bine_admission::{Admission, AdmissionOutcome, PresentedTicket, RequestIdentity};
use bine_html::{Page, Writer};
use bine_http::{Exchange, Reply, Status};
use bine_server::{Answer, Body, Clock, Incoming, Outgoing};

use crate::accept::AcceptPreferences;
use crate::gate::{AdmissionDecision, AdmissionPolicy, LocalAdmissionPolicy};
use crate::languages::VisitorWords;
use crate::sessions::SessionStore;
use crate::subsystem::{Definition, Registration, Subsystem};
use crate::visitor_message::VisitorMessage;
use ticket::{Holder, Reading, Tickets};

#[doc(hidden)]
pub use ticket::check_ticket;

inventory::submit! {
    Registration { rank: 50, create: || Box::new(AdmissionSubsystem) }
}

/// Admission control of a program that has not started.
struct AdmissionSubsystem;

impl Subsystem for AdmissionSubsystem {
    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        let sessions = definition.states.find_shared::<SessionStore>();
        definition.admission = Some(Arc::new(SessionAdmission(Arc::new(Tickets::new(sessions)))));
        Ok(())
    }
}

/// Admits sessions that have begun before new ones.
struct SessionAdmission(Arc<Tickets>);

impl AdmissionPolicy for SessionAdmission {
    fn local(&self, admission: Arc<Admission>) -> Box<dyn LocalAdmissionPolicy> {
        let chance = RandomState::new().hash_one(0);
        Box::new(Gate { admission, tickets: Arc::clone(&self.0), chance })
    }
}

/// One thread's admission check.
struct Gate {
    admission: Arc<Admission>,
    tickets: Arc<Tickets>,
    /// The state of the generator for random retry delays.
    chance: u64,
}

/// A client and the evidence that identifies it.
struct ClientEvidence<'r> {
    holder: Holder<'r>,
    reading: Reading,
    /// The number of the account, if the client has logged in.
    account: Option<u64>,
    identity: RequestIdentity,
}

impl LocalAdmissionPolicy for Gate {
    fn decide(&mut self, request: &Incoming<'_>) -> AdmissionDecision {
        // A request that was admitted without its body is not checked again when the body has
        // arrived.
        match request.body {
            Body::InMemory(_) | Body::OnDisk(_) => self.go_on(request),
            Body::None | Body::Pending => self.weigh(request),
        }
    }

    /// Writes the overload response, with the time after which to retry.
    fn refuse(
        &mut self,
        request: &Incoming<'_>,
        words: &VisitorWords,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        // Knuth's linear congruential generator: the delay need not be unpredictable.
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let again = self.admission.again_after((self.chance >> 32) as u32);
        let reads_pages = AcceptPreferences::of(request.head.field_text("accept")).reads_pages;
        let text = refusal_text(reads_pages, words);
        write_refusal(request.exchange, (reads_pages, &text), again, clock, words, out.buffer);
        Answer::Written { close: !request.exchange.keep_alive }
    }
}

impl Gate {
    #[cold]
    fn weigh(&self, request: &Incoming<'_>) -> AdmissionDecision {
        let ClientEvidence { holder, reading, account, identity } = self.visitor(request);
        let (known, session) = match (self.admission.admit(identity), reading.shown) {
            (AdmissionOutcome::Rejected, _) => return AdmissionDecision::Reject,
            (AdmissionOutcome::Known, PresentedTicket::Valid(old)) if reading.is_due => {
                (old, account.unwrap_or(old))
            }
            (AdmissionOutcome::Known, _) => return AdmissionDecision::Admit,
            (AdmissionOutcome::Reissue(known) | AdmissionOutcome::Admitted(known), _) => {
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
        let ClientEvidence { holder, reading, identity, .. } = self.visitor(request);
        match (reading.shown, identity.stand_in) {
            (PresentedTicket::Valid(_), _) | (_, None) => AdmissionDecision::Admit,
            (_, Some(session)) => {
                AdmissionDecision::AdmitWithTicket(self.tickets.line(session, holder))
            }
        }
    }

    fn visitor<'r>(&self, request: &Incoming<'r>) -> ClientEvidence<'r> {
        let Incoming { head, peer, identity, arrival, .. } = request;
        let holder = Holder { peer: *peer, user: identity.user(), now: *arrival };
        let reading = self.tickets.read(head, holder);
        // A connection from a proxy, and an address with its port, belongs to many clients. A
        // client on a Unix socket may always be a proxy, and has no address to distinguish it.
        let is_forwarded =
            ["x-forwarded-for", "forwarded", "via"].iter().any(|name| head.field(name).is_some());
        let address = if is_forwarded { None } else { peer.socket_address() };
        let own = address.map(|address| self.admission.number_of(address));
        let account = holder.user.map(|user| self.tickets.account(user, holder.now));
        let has_begun = request.has_begun && own.is_some();
        let identity =
            RequestIdentity { ticket: reading.shown, has_begun, stand_in: account.or(own) };
        ClientEvidence { holder, reading, account, identity }
    }
}

const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";
const TEXT: &str = "Content-Type: text/plain; charset=utf-8\r\n";
const NOT_KEPT: &str = "Cache-Control: no-store\r\n";

/// The page or the line for a rejected client.
fn refusal_text(reads_pages: bool, words: &VisitorWords) -> Vec<u8> {
    if !reads_pages {
        return (words.say(&VisitorMessage::Busy {}) + "\n").into_bytes();
    }
    let title = words.say(&VisitorMessage::BusyTitle {});
    let text = words.say(&VisitorMessage::BusyPage {});
    let language = words.language().unwrap_or("en");
    let page = crate::html! {
        <!DOCTYPE html>
        <html lang={language}>
            <head>
                <meta charset="utf-8">
                <meta name="viewport" content="width=device-width">
                <title>{&title}</title>
            </head>
            <body><h1>{&title}</h1><p>{text}</p></body>
        </html>
    };
    let mut text = Vec::new();
    page.write(&mut Writer::new(&mut text));
    text
}

fn write_refusal(
    exchange: Exchange,
    (is_page, text): (bool, &[u8]),
    again: u32,
    clock: &Clock,
    words: &VisitorWords,
    out: &mut Vec<u8>,
) {
    let mut reply = Reply::begin(out, exchange, Status::SERVICE_UNAVAILABLE, &clock.date());
    reply.static_lines(if is_page { HTML } else { TEXT }).static_lines(NOT_KEPT);
    words.write_fields(&mut reply);
    reply.field("Retry-After", &again.to_string()).expect("digits");
    reply.whole(text);
}

#[cfg(test)]
mod tests {
    use bine_http::{Method, Version};

    use super::*;

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
            let words = VisitorWords::ENGLISH;
            let text = refusal_text(reads_pages, &words);
            write_refusal(exchange, (reads_pages, &text), 7, &clock, &words, &mut out);
            let text = String::from_utf8(out).unwrap();
            assert!(text.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{text}");
            for line in ["Retry-After: 7\r\n", "Cache-Control: no-store\r\n", kind] {
                assert!(text.contains(line), "{text}");
            }
            assert!(!text.contains("Connection: close"), "{text}");
        }
    }
}
