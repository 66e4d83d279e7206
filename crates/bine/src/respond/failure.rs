//! Writes error responses: pages, problem documents and lines of text, in the words for the visitor.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;
use std::time::Instant;

use bine_html::Writer;
use bine_http::{Finished, Status};
use bine_log as log;
use bine_server::{Clock, Outgoing};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::{HTML, RequestSummary, ResponseHead, ResponsePreference, ResponseWriter, VARY, XHTML};
use crate::accept::AcceptPreferences;
use crate::error::Error;
use crate::languages::VisitorWords;
use crate::log_limiter::LogLimiter;
use crate::panics;
use crate::problem::{ArgumentError, problem};
use crate::templates::{ErrorInfo, Templates};
use crate::visitor_message::{MessageText, VisitorMessage};

const TEXT: &str = "Content-Type: text/plain; charset=utf-8\r\n";
const PROBLEM: &str = "Content-Type: application/problem+json\r\n";
/// RFC 9110 section 15.5.2 requires a challenge in each 401. Browsers show the page of a challenge
/// that they do not know.
pub(crate) const CHALLENGE: (&str, &str) = ("WWW-Authenticate", "Cookie realm=\"session\"");

/// Writes the response for a handler that panicked. The log records the panic message; the page
/// displays it in development.
pub(crate) fn write_panic_response(
    asked: RequestSummary<'_>,
    clock: &Clock,
    templates: &Templates,
    out: &mut Vec<u8>,
) {
    let mut keep = |_: &mut Vec<u8>| {};
    let mut out = Outgoing { buffer: out, drain: &mut keep };
    let panic_message = panics::take_last_message();
    let causes = if templates.shows_causes() { panic_message.as_slice() } else { &[] };
    let top = ResponseHead::of(Status::INTERNAL_SERVER_ERROR);
    let mut to = ResponseWriter::new(&mut out, asked, clock, usize::MAX, templates);
    let words = to.words();
    let message = words.say(&VisitorMessage::Failed {});
    to.write_failure(&top, &ErrorContent { causes, ..ErrorContent::of(&message, &words) });
}

impl ResponseWriter<'_, '_> {
    /// Writes an error response: a page for clients that accept pages, otherwise a line of text.
    /// A redirect is written as such.
    pub(crate) fn refuse(&mut self, status: Status, error: &Error) -> Finished {
        if let Some(location) = error.location() {
            return self.redirect(location);
        }
        let number = note(status, error);
        let (words, causes) = (self.words(), self.templates.causes(error));
        let message = self.message(error, number, &words);
        let told = error.message_text().and_then(MessageText::message);
        let content = ErrorContent {
            wrong: error.arguments(),
            causes: &causes,
            is_missing: matches!(told, Some(VisitorMessage::NothingHere {})),
            ..ErrorContent::of(&message, &words)
        };
        self.write_failure(&ResponseHead::of(status), &content)
    }

    /// Writes the error response of a call: for clients that accept pages a page with a link back
    /// to the calling page, otherwise a problem document.
    pub(crate) fn fail(&mut self, error: &Error, preference: &ResponsePreference) -> Finished {
        if let Some(location) = error.location() {
            return self.redirect(location);
        }
        let number = note(error.code(), error);
        let (words, causes) = (self.words(), self.templates.causes(error));
        let message = self.message(error, number, &words);
        let content = ErrorContent {
            wrong: error.arguments(),
            causes: &causes,
            ..ErrorContent::to(preference, &message, &words)
        };
        self.write_failure(&ResponseHead::of(error.code()), &content)
    }

    /// The message for the client, with the number of the error in the log. In development the client
    /// reads the causes instead.
    fn message<'e>(
        &self,
        error: &'e Error,
        number: Option<ErrorNumber>,
        words: &VisitorWords,
    ) -> Cow<'e, str> {
        match number {
            Some(number) if !self.templates.shows_causes() => {
                numbered(error, &number, words).into()
            }
            _ => error.message_in(words),
        }
    }

    fn redirect(&mut self, location: &str) -> Finished {
        let location = location.to_owned();
        let redirect = ResponseHead::of(Status::SEE_OTHER).with_header("Location", location);
        let top = &*self.complete(&redirect);
        self.begin(top).whole(b"");
        Finished { close: !self.asked.exchange.keep_alive }
    }

    /// Writes the response for a call that panicked, which the log already has.
    pub(crate) fn break_down(
        &mut self,
        words: &[String],
        preference: &ResponsePreference,
    ) -> Finished {
        let causes = if self.templates.shows_causes() { words } else { &[] };
        let words = self.words();
        let message = words.say(&VisitorMessage::Failed {});
        let content = ErrorContent { causes, ..ErrorContent::to(preference, &message, &words) };
        self.write_failure(&ResponseHead::of(Status::INTERNAL_SERVER_ERROR), &content)
    }

    /// Writes a failure: a page for clients that accept pages, a problem document (RFC 9457) for
    /// clients that prefer JSON, otherwise a line of text.
    pub(super) fn write_failure(
        &mut self,
        top: &ResponseHead,
        content: &ErrorContent<'_>,
    ) -> Finished {
        let ErrorContent { message, wrong, causes, back, is_for_program, words, .. } = *content;
        let mut bytes = Vec::new();
        let AcceptPreferences { reads_pages, prefers_xhtml, prefers_json } =
            self.asked.accept_preferences();
        let kind = if is_for_program || prefers_json {
            // A service that called a missing address must not reveal that to its own clients.
            let detail = Some(message).filter(|_| !content.is_missing);
            bytes = problem(top.status, detail, wrong, causes, words);
            PROBLEM
        } else if reads_pages {
            let (title, language) = (words.title(top.status), words.language());
            let failure =
                ErrorInfo { status: top.status, title: &title, language, message, causes, back };
            let user = self.layout_user();
            let user = user.as_ref();
            let is_xml = prefers_xhtml && self.templates.failure_is_document();
            let mut writer = Writer::new(&mut bytes);
            writer.set_head(self.templates.head());
            if is_xml {
                writer.switch_to_xml();
            }
            match self.context() {
                // The layout may contain actions.
                Some(context) => {
                    context.during(|| {
                        self.templates.write_failure(
                            &failure,
                            self.asked,
                            user,
                            words,
                            &mut writer,
                        );
                    });
                    self.visitor_session =
                        self.visitor_session.take().or_else(|| context.visitor());
                }
                None => {
                    self.templates.write_failure(&failure, self.asked, user, words, &mut writer);
                }
            }
            if is_xml { XHTML } else { HTML }
        } else {
            bytes.extend_from_slice(message.as_bytes());
            for cause in causes {
                bytes.extend_from_slice(b"\n  ");
                bytes.extend_from_slice(cause.as_bytes());
            }
            bytes.push(b'\n');
            TEXT
        };
        let top = &*self.complete(top);
        let templates = self.templates;
        let mut reply = self.begin(top);
        if top.status == Status::UNAUTHORIZED && !top.has("www-authenticate") {
            let (name, value) = CHALLENGE;
            reply.field(name, value).expect("a token and visible characters");
        }
        reply.static_lines(kind);
        if kind == HTML || kind == XHTML {
            top.write_policy(templates, &mut reply);
        }
        // The response depends on the `Accept` field.
        reply.static_lines(VARY);
        words.write_fields(&mut reply);
        reply.whole(&bytes);
        Finished { close: !self.asked.exchange.keep_alive }
    }

    /// Writes an error response with this message for the client.
    pub(crate) fn write_error(&mut self, status: Status, message: &str) -> Finished {
        let words = self.words();
        self.write_failure(&ResponseHead::of(status), &ErrorContent::of(message, &words))
    }
}

/// The content of an error response.
pub(super) struct ErrorContent<'t> {
    pub(super) message: &'t str,
    /// Invalid arguments, by name.
    pub(super) wrong: &'t [ArgumentError],
    /// The causes, for developers.
    pub(super) causes: &'t [String],
    /// The page to link back to.
    pub(super) back: Option<&'t str>,
    /// The client is a program that stated no preference.
    pub(super) is_for_program: bool,
    /// The path does not exist.
    pub(super) is_missing: bool,
    /// The words that the message has.
    pub(super) words: &'t VisitorWords,
}

impl<'t> ErrorContent<'t> {
    pub(super) const fn of(message: &'t str, words: &'t VisitorWords) -> Self {
        let (wrong, causes, back) = (&[], &[], None);
        Self { message, wrong, causes, back, is_for_program: false, is_missing: false, words }
    }

    fn to(preference: &'t ResponsePreference, message: &'t str, words: &'t VisitorWords) -> Self {
        let (back, is_for_program) = (preference.page.as_deref(), !preference.reads_pages);
        Self { back, is_for_program, ..Self::of(message, words) }
    }
}

/// The number under which the log has an error. It is random, so that it reveals no information
/// about other errors.
pub(crate) struct ErrorNumber(u32);

impl ErrorNumber {
    fn new() -> Self {
        let mut bytes = [0; 4];
        // Two errors with one number are no problem.
        let _ = SystemRandom::new().fill(&mut bytes);
        Self(u32::from_le_bytes(bytes))
    }
}

impl fmt::Display for ErrorNumber {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:08x}", self.0)
    }
}

/// The message of an error for the client, with its number in the log.
pub(crate) fn numbered(error: &Error, number: &ErrorNumber, words: &VisitorWords) -> String {
    let message = error.message_in(words).into_owned();
    words.say(&VisitorMessage::Numbered { message, number: number.to_string() })
}

/// Logs an error of the server, and returns its number if it is one of the program (500). A lasting
/// condition such as a full disk is logged at most once a second, without a number.
pub(crate) fn note(status: Status, error: &Error) -> Option<ErrorNumber> {
    static LIMITER: LazyLock<LogLimiter> = LazyLock::new(LogLimiter::new);
    if status.code() < 500 {
        return None;
    }
    let text = log_line(error);
    if status == Status::INTERNAL_SERVER_ERROR {
        let number = ErrorNumber::new();
        log::error(format_args!("answered {} ({number}): {text}", status.code()));
        return Some(number);
    }
    match LIMITER.pass(&text, Instant::now()) {
        None => {}
        Some(0) => log::error(format_args!("answered {}: {text}", status.code())),
        Some(more) => {
            log::error(format_args!(
                "answered {}: {text} (and {more} times before)",
                status.code()
            ));
        }
    }
    None
}

/// The log's text for an error: its message and its causes, without adjacent repeats.
fn log_line(error: &Error) -> String {
    let mut parts: Vec<String> = error.message().map(str::to_owned).into_iter().collect();
    parts.extend(error.chain());
    parts.dedup();
    parts.join(": ")
}
