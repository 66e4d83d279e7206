//! One proxied request: chooses an origin, sends the request, and returns the response.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bine_client::{ExchangeFault, PooledConnection};
use bine_http::{BodyFraming, Framing, Limits, Method, ResponseFault, ResponseParser, Status};
use bine_log as log;
use bine_server::{
    Answer, Body, BodyReader, Clock, Disconnected, Finished, Follow, Outgoing, Retained, Stream,
};

use super::active::{ActiveRule, COOKIE, key_of};
use super::balancer::BalancedRequest;
use super::origin::{NoConnection, OriginConnection, ProxyOrigin};
use super::origin_tls::{describe, remedy};
use super::request_head::{HeadContext, upgrade, write_request};
use super::response_head::{Continuation, ReplyContext, write_reply};
use super::tunnel::tunnel;
use crate::app_state::AppState;
use crate::request_summary::RequestSummary;
use crate::respond::Response;
use crate::visitor_message::VisitorMessage;

/// The parts of a proxied request.
pub(super) struct Exchange {
    pub(super) rule: Arc<ActiveRule>,
    pub(super) request: Box<Retained>,
    /// The content, if it arrives while the request is sent.
    pub(super) body: Option<BodyReader>,
    pub(super) app: Arc<AppState>,
    pub(super) clock: Rc<Clock>,
    /// The value of `X-Request-Id`.
    pub(super) id: String,
}

/// The reason why there is no response of an origin.
enum ProxyFailure {
    /// No origin was reached; the reasons are in the log.
    Unreached,
    /// As many requests as allowed run already, of this client or of all clients.
    Full,
    /// The origin has failed after it may have seen the request.
    Broken,
    /// The origin did not answer in time.
    Late,
    /// The client has disconnected.
    ClientGone,
}

/// What an attempt has led to, if there is no response.
enum Attempt {
    /// Another attempt may follow: the origin has not seen the request, or may see it twice.
    Again,
    Failed(ProxyFailure),
}

/// Content that is in the buffer already is sent together with the head up to this size.
const TOGETHER: usize = 32 << 10;

impl Exchange {
    /// Returns the response of an origin, or an error page.
    pub(super) async fn run(mut self) -> Finished {
        let mut tried = Vec::new();
        let mut last = ProxyFailure::Unreached;
        loop {
            let Some((index, is_new)) = self.choose(&tried) else {
                return self.fail(&last, tried.is_empty());
            };
            match self.attempt(index, is_new, false).await {
                Ok(finished) => return finished,
                // The origin has closed a connection that it had kept.
                Err(Attempt::Again) => {
                    let counts = &self.rule.origins[index].counts;
                    counts.retried.fetch_add(1, Ordering::Relaxed);
                    match self.attempt(index, is_new, true).await {
                        Ok(finished) => return finished,
                        Err(Attempt::Failed(
                            failure @ (ProxyFailure::Unreached | ProxyFailure::Full),
                        )) => {
                            last = failure;
                        }
                        Err(Attempt::Failed(failure)) => return self.fail(&failure, false),
                        Err(Attempt::Again) => return self.fail(&ProxyFailure::Broken, false),
                    }
                }
                // No byte of the request was sent, so any request may go to another origin.
                Err(Attempt::Failed(failure @ (ProxyFailure::Unreached | ProxyFailure::Full))) => {
                    last = failure;
                }
                Err(Attempt::Failed(failure)) => return self.fail(&failure, false),
            }
            tried.push(index);
        }
    }

    fn choose(&self, tried: &[usize]) -> Option<(usize, bool)> {
        let incoming = self.request.incoming();
        let path = incoming.head.path();
        let request =
            BalancedRequest { head: incoming.head, path: &path, client: incoming.peer.ip() };
        self.rule.choose(&request, tried)
    }

    /// Sends the request to an origin and receives the head of the response. `is_fresh`: on a new
    /// connection. `sets_cookie`: the client gets the cookie of this origin.
    async fn attempt(
        &mut self,
        index: usize,
        sets_cookie: bool,
        is_fresh: bool,
    ) -> Result<Finished, Attempt> {
        let origin = &Arc::clone(&self.rule.origins[index]);
        let block = self.request.incoming().peer.block();
        let mut connection = match origin.connect(block, is_fresh).await {
            Ok(connection) => connection,
            Err(NoConnection::Place(reason)) => {
                origin.log_refusal(reason, block);
                return Err(Attempt::Failed(ProxyFailure::Full));
            }
            Err(NoConnection::Failed(failure)) => {
                self.note_failure(origin, &describe(&failure));
                return Err(Attempt::Failed(ProxyFailure::Unreached));
            }
        };
        let may_repeat = connection.is_reused() && self.may_repeat();
        match self.exchange(&mut connection, index, sets_cookie).await {
            Ok(Some((received, parser))) => {
                origin.note_success();
                Ok(self.finish(received, connection, parser, origin))
            }
            Ok(None) => Err(Attempt::Failed(ProxyFailure::ClientGone)),
            // Nothing of a response was received on a connection that the origin had kept.
            Err(ExchangeFault::Io(_) | ExchangeFault::Response(ResponseFault::Incomplete))
                if may_repeat && connection.is_untouched() =>
            {
                Err(Attempt::Again)
            }
            Err(fault) => {
                let remedy = fault.tls_fault().as_ref().map_or("", remedy);
                self.note_failure(origin, &format_args!("{fault}{remedy}"));
                Err(Attempt::Failed(match fault {
                    ExchangeFault::Silent(_) => ProxyFailure::Late,
                    ExchangeFault::Io(_) | ExchangeFault::Response(_) => ProxyFailure::Broken,
                }))
            }
        }
    }

    /// Whether the request may be sent twice: it has no content, and its method is idempotent (RFC
    /// 9110 section 9.2.2).
    fn may_repeat(&self) -> bool {
        let incoming = self.request.incoming();
        let method = incoming.head.method();
        let is_idempotent = method.is_safe() || matches!(method, Method::Put | Method::Delete);
        is_idempotent && self.body.is_none() && matches!(incoming.body, Body::None)
    }

    /// Sends the request and receives the head of the response; `None`: the client has disconnected.
    // Long because the content is sent between the two heads, and each wait has an end of its own.
    async fn exchange(
        &mut self,
        connection: &mut PooledConnection,
        index: usize,
        sets_cookie: bool,
    ) -> Result<Option<(ReceivedHead, ResponseParser)>, ExchangeFault> {
        let rule = Arc::clone(&self.rule);
        let origin = &rule.origins[index];
        let patience = rule.rule.silence;
        let mut bytes = self.written_head(origin);
        if let Body::InMemory(content) = self.request.incoming().body
            && self.body.is_none()
        {
            bytes.extend_from_slice(content);
        }
        let mut is_sent = connection.send(&bytes, patience).await?;
        let mut is_complete = true;
        if let Some(body) = &mut self.body {
            let framing = match self.request.incoming().head.framing() {
                Framing::Chunked => BodyFraming::Chunked,
                Framing::None | Framing::Length(_) => BodyFraming::Preframed,
            };
            let mut piece = Vec::new();
            while is_sent {
                match next_or_response(body, &mut piece, connection).await {
                    Some(Ok(true)) => {}
                    Some(Ok(false)) => break,
                    Some(Err(Disconnected)) => return Ok(None),
                    // The origin answers before the end of the request.
                    None => {
                        is_sent = false;
                        break;
                    }
                }
                bytes.clear();
                framing.append(&mut bytes, &piece);
                is_sent = connection.send(&bytes, patience).await?;
            }
            is_complete = body.is_complete();
            if is_complete && is_sent {
                bytes.clear();
                framing.end(&mut bytes);
                is_sent = connection.send(&bytes, patience).await?;
            }
        }
        let mut parser = ResponseParser::new(self.request.incoming().head.method() == Method::Head);
        let incoming = self.request.incoming();
        let mut exchange = incoming.exchange;
        if self.body.is_some() {
            exchange.keep_alive = incoming.head.exchange().keep_alive && is_complete;
        }
        if !rule.rule.has_security(index) {
            exchange.security = bine_http::SecurityHeaders::NONE;
            exchange.hsts = 0;
        }
        let date = self.clock.date();
        let cookie = sets_cookie.then(|| {
            let secure = if incoming.peer.is_secure() { "; Secure" } else { "" };
            let key = key_of(&origin.name);
            format!("{COOKIE}={key}; Path={}; HttpOnly; SameSite=Lax{secure}", rule.rule.path)
        });
        let context = ReplyContext {
            exchange,
            date: &date,
            id: &self.id,
            cookie: cookie.as_deref(),
            upgrade: upgrade(&incoming),
        };
        let limits = Limits::default();
        let received = connection.head(&mut parser, &limits, rule.rule.first_byte, |head| {
            let mut bytes = Vec::with_capacity(512);
            let continuation = write_reply(&mut bytes, head, context);
            let class = usize::from(head.status().code() / 100).clamp(1, 5) - 1;
            origin.counts.answered[class].fetch_add(1, Ordering::Relaxed);
            // A connection on which a part of the request is missing carries no other one.
            let is_kept = head.is_persistent() && is_sent && is_complete;
            ReceivedHead { bytes, continuation, is_kept, closes: !exchange.keep_alive }
        });
        let received = received.await?;
        if received.continuation == Continuation::Unasked {
            return Err(ExchangeFault::Response(ResponseFault::StatusLine));
        }
        Ok(Some((received, parser)))
    }

    fn written_head(&self, origin: &ProxyOrigin) -> Vec<u8> {
        let incoming = self.request.incoming();
        let framing = match (&self.body, incoming.body) {
            (Some(_), _) => incoming.head.framing(),
            (None, Body::InMemory(bytes)) if !bytes.is_empty() => {
                Framing::Length(bytes.len() as u64)
            }
            (None, _) => Framing::None,
        };
        let authority = origin.pool.address().authority();
        let context =
            HeadContext { rule: &self.rule.rule, authority: &authority, id: &self.id, framing };
        let mut bytes = Vec::with_capacity(1024);
        write_request(&mut bytes, &incoming, &incoming.head.path(), context);
        bytes
    }

    /// Returns the response: its head, with the content that has arrived, and the rest as a stream.
    fn finish(
        &self,
        received: ReceivedHead,
        mut connection: OriginConnection,
        mut parser: ResponseParser,
        origin: &Arc<ProxyOrigin>,
    ) -> Finished {
        let ReceivedHead { mut bytes, continuation, is_kept, closes } = received;
        let framing = match continuation {
            Continuation::Content(framing) => framing,
            Continuation::Upgraded | Continuation::Unasked => {
                let upgrade = tunnel(connection, self.rule.rule.upgrade_silence);
                return Finished { bytes, follow: Some(Follow::Upgrade(upgrade)), close: false };
            }
        };
        let limits = Limits::default();
        let close = closes || framing.closes_connection();
        while bytes.len() < TOGETHER {
            match connection.parsed_piece(&mut parser, &limits) {
                Ok(Some(Some(piece))) => framing.append(&mut bytes, connection.bytes(piece)),
                Ok(Some(None)) => {
                    framing.end(&mut bytes);
                    keep(connection, is_kept);
                    return Finished { bytes, follow: None, close };
                }
                // The stream reports a fault, after it has sent what precedes it.
                Ok(None) | Err(_) => break,
            }
        }
        let (silence, origin) = (self.rule.rule.silence, Arc::clone(origin));
        let stream = Stream::new(framing, move |mut sender| {
            Box::pin(async move {
                loop {
                    match connection.piece(&mut parser, &limits, silence).await {
                        // The server drops this future when the client disconnects.
                        Ok(Some(piece)) => match sender.send(connection.bytes(piece)).await {
                            Ok(()) => {}
                            Err(Disconnected) => return Ok(()),
                        },
                        Ok(None) => {
                            keep(connection, is_kept);
                            return Ok(());
                        }
                        Err(fault) => {
                            origin.counts.cut.fetch_add(1, Ordering::Relaxed);
                            return Err(format!("{}: {fault}", origin.name));
                        }
                    }
                }
            })
        });
        Finished { bytes, follow: Some(Follow::Stream(stream)), close }
    }

    fn note_failure(&self, origin: &ProxyOrigin, what: &dyn std::fmt::Display) {
        let rule = &self.rule.rule;
        origin.counts.failed.fetch_add(1, Ordering::Relaxed);
        log::warn(format_args!("proxy: {}: {what} (request {})", origin.name, self.id));
        if origin.note_failure(rule.failures, rule.failure_time) && self.rule.origins.len() > 1 {
            let time = rule.failure_time;
            log::warn(format_args!("proxy: {} gets no requests for {time:?}", origin.name));
        }
    }

    /// Returns the error page for a request without a response. `is_down`: no origin was tried.
    fn fail(&self, failure: &ProxyFailure, is_down: bool) -> Finished {
        if is_down {
            let path = &self.rule.rule.path;
            log::warn(format_args!("proxy: no origin of {path} is up (request {})", self.id));
        }
        let (status, message) = match failure {
            // No client reads it.
            ProxyFailure::ClientGone => {
                return Finished {
                    close: true,
                    ..self.page(Status::BAD_REQUEST, VisitorMessage::ServerBusy {})
                };
            }
            _ if is_down => (Status::SERVICE_UNAVAILABLE, VisitorMessage::ServerBusy {}),
            ProxyFailure::Full => (Status::SERVICE_UNAVAILABLE, VisitorMessage::ServerBusy {}),
            ProxyFailure::Unreached | ProxyFailure::Broken => {
                (Status::BAD_GATEWAY, VisitorMessage::ServerBusy {})
            }
            ProxyFailure::Late => (Status::GATEWAY_TIMEOUT, VisitorMessage::TookTooLong {}),
        };
        self.page(status, message)
    }

    fn page(&self, status: Status, message: VisitorMessage) -> Finished {
        let mut incoming = self.request.incoming();
        if let Some(body) = &self.body {
            incoming.exchange.keep_alive =
                incoming.head.exchange().keep_alive && body.is_complete();
        }
        let mut response = Response::told(status, message);
        response = response.with_header("X-Request-Id", self.id.clone());
        if status == Status::SERVICE_UNAVAILABLE {
            response = response.with_header("Retry-After", "1");
        }
        let (mut bytes, mut keep) = (Vec::new(), |_: &mut Vec<u8>| {});
        let mut out = Outgoing { buffer: &mut bytes, drain: &mut keep };
        let asked = RequestSummary::by(&incoming);
        let answer = response.answer(asked, &self.clock, &self.app.templates, &mut out);
        let close =
            matches!(answer, Answer::Written { close: true }) || !incoming.exchange.keep_alive;
        Finished { bytes, follow: None, close }
    }
}

/// A response head, as it is sent to the client.
struct ReceivedHead {
    bytes: Vec<u8>,
    continuation: Continuation,
    /// Whether the connection can carry another request afterwards.
    is_kept: bool,
    /// Whether the client's connection closes afterwards.
    closes: bool,
}

/// Returns the connection to its pool, unless the origin has sent more than its response.
fn keep(connection: OriginConnection, is_kept: bool) {
    if is_kept && !connection.has_unparsed() {
        connection.keep();
    }
}

/// Waits for the next piece of the request's content; `None`: the origin has sent bytes, or has ended
/// the connection, before it.
async fn next_or_response(
    body: &mut BodyReader,
    piece: &mut Vec<u8>,
    connection: &mut PooledConnection,
) -> Option<Result<bool, Disconnected>> {
    use std::future::{Future as _, poll_fn};
    use std::task::Poll;
    let mut next = std::pin::pin!(body.next(piece));
    poll_fn(|task| {
        if let Poll::Ready(next) = next.as_mut().poll(task) {
            return Poll::Ready(Some(next));
        }
        connection.poll_receive(task).map(|_| None)
    })
    .await
}
