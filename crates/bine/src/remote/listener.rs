//! Listens to events of a remote server over one connection, and reconnects when it breaks.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher as _;
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use bine_http::Status;
use serde::de::DeserializeOwned;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::answer::{Head, RemoteResponse};
use super::call::RemoteRequest;
use super::connection::RemoteConnection;
use super::error::Error;
use super::events::{EventParser, ReceivedEvent};
use super::{Remote, blocking_calls};
use crate::wire::{self, Limits, Value};

/// A listener for an event of a remote server, created by [`Remote::on`]. It receives what the
/// server sends with `events.broadcast`, or to this listener alone with `events.signal`.
///
/// Use it in tasks of one runtime, or in threads that [wait](Self::wait).
pub struct Listener<T> {
    remote: Remote,
    event: String,
    /// Created by the first wait.
    source: Option<Box<EventSource>>,
    kind: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Listener<T> {
    pub(super) fn new(remote: Remote, event: String) -> Self {
        Self { remote, event, source: None, kind: PhantomData }
    }

    /// Waits for the next event. Events before the first call are not received.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, has closed the connection, or refuses. Events are missed until
    /// the next call reconnects: after half a second, then after twice the time for each failure,
    /// up to half a minute.
    pub async fn next(&mut self) -> Result<T, Error> {
        let value = self.source()?.next().await?;
        self.decode_event(&value)
    }

    /// Blocks for the next event, at most `at_most`. `None`: there was no event.
    pub fn wait(&mut self, at_most: Duration) -> Option<Result<T, Error>> {
        if let Err(error) = self.source() {
            return Some(Err(error));
        }
        let mut source = self.source.take()?;
        let received = blocking_calls::wait(async move {
            let received = timeout(at_most, source.next()).await;
            (source, received)
        });
        match received {
            Ok(Some((source, received))) => {
                self.source = Some(source);
                let received = received.ok()?;
                Some(received.and_then(|value| self.decode_event(&value)))
            }
            Ok(None) => Some(Err(Error::Unanswered("the listener panicked; see the log".into()))),
            Err(error) => {
                Some(Err(Error::Unreached(format!("cannot start a thread to listen: {error}"))))
            }
        }
    }

    fn source(&mut self) -> Result<&mut EventSource, Error> {
        if self.source.is_none() {
            let request = self.remote.listening(&self.event)?;
            let event = self.event.clone();
            let source = EventSource {
                request,
                event,
                opening: None,
                stream: None,
                failures: 0,
                not_before: None,
            };
            self.source = Some(Box::new(source));
        }
        self.source
            .as_deref_mut()
            .ok_or_else(|| Error::Unanswered("the listener is closed".to_owned()))
    }

    fn decode_event(&self, value: &Value) -> Result<T, Error> {
        wire::from_value(value)
            .map_err(|fault| Error::Misunderstood(format!("the event `{}`: {fault}", self.event)))
    }
}

/// The connection state of a listener.
struct EventSource {
    request: RemoteRequest,
    event: String,
    /// A stream that is being opened: a wait that times out keeps it for the next wait.
    opening: Option<Opening>,
    stream: Option<EventStream>,
    /// Failures in a row.
    failures: u32,
    /// When the next attempt may start.
    not_before: Option<Instant>,
}

/// An open event stream.
struct EventStream {
    connection: RemoteConnection,
    answer: RemoteResponse,
    events: EventParser,
    opened_at: Instant,
    /// When bytes were last received.
    received_at: Instant,
}

type Opening = Pin<Box<dyn Future<Output = Result<EventStream, Error>> + Send>>;

/// A server sends a comment every twenty seconds. A stream that is silent for this long counts as
/// broken.
const SILENCE_TIMEOUT: Duration = Duration::from_mins(1);
/// A stream that lasted this long resets the count of failures.
const STABLE_AFTER: Duration = Duration::from_secs(30);
const MIN_BACKOFF: Duration = Duration::from_millis(500);
/// Doublings of the shortest pause at most.
const MAX_DOUBLINGS: u32 = 6;

impl EventSource {
    async fn next(&mut self) -> Result<Value, Error> {
        let received = self.receive_event().await;
        match &received {
            Ok(_) => self.failures = 0,
            // An invalid event is skipped; the stream continues.
            Err(Error::Misunderstood(_)) if self.stream.is_some() => {}
            Err(_) => {
                if self
                    .stream
                    .take()
                    .is_some_and(|stream| stream.opened_at.elapsed() >= STABLE_AFTER)
                {
                    self.failures = 0;
                }
                // Random pauses: listeners that lost their server at the same time must not
                // reconnect at the same time.
                let whole = MIN_BACKOFF * (1 << self.failures.min(MAX_DOUBLINGS));
                let share = RandomState::new().hash_one(0) % 1000;
                let pause = whole / 2 + whole / 2 * share as u32 / 1000;
                self.failures += 1;
                self.not_before = Some(Instant::now() + pause);
            }
        }
        received
    }

    async fn receive_event(&mut self) -> Result<Value, Error> {
        let describe = |what: &dyn fmt::Display| format!("{}: {what}", self.request.address);
        if let Some(then) = self.not_before {
            sleep_until(then).await;
            self.not_before = None;
        }
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let begin = || Box::pin(EventStream::begin(self.request.clone())) as Opening;
                let begun = self.opening.get_or_insert_with(begin).await;
                self.opening = None;
                self.stream.insert(begun?)
            }
        };
        loop {
            while let Some(event) = stream.events.next() {
                if let Some(data) = event_data(&event, &self.event, self.request.max_answer) {
                    return data.map_err(|fault| Error::Misunderstood(describe(&fault)));
                }
            }
            if stream.events.len() > self.request.max_answer {
                let long = format!("an event has more than {} bytes", self.request.max_answer);
                // The rest of the event cannot be parsed.
                self.stream = None;
                return Err(Error::Misunderstood(describe(&long)));
            }
            if stream.received_at.elapsed() >= SILENCE_TIMEOUT {
                // No wait was active for a minute. The runtime must first report bytes that arrived
                // meanwhile.
                yield_now().await;
            }
            let received = stream.connection.receive(stream.answer.incoming());
            let has_ended = match timeout_at(stream.received_at + SILENCE_TIMEOUT, received).await {
                Ok(Ok(count)) => count == 0,
                Ok(Err(error)) => return Err(Error::Unanswered(describe(&error))),
                Err(_) => {
                    return Err(Error::TimedOut(describe(&"no bytes were received for a minute")));
                }
            };
            stream.received_at = Instant::now();
            let mut bytes = Vec::new();
            let is_over = stream.answer.body(has_ended, &mut bytes);
            let is_over = is_over.map_err(|what| Error::Unanswered(describe(&what)))?;
            stream.events.add(&bytes);
            if is_over && bytes.is_empty() {
                return Err(Error::Unanswered(describe(&"the server has ended the event stream")));
            }
        }
    }
}

impl EventStream {
    async fn begin(request: RemoteRequest) -> Result<Self, Error> {
        let deadline = Instant::now() + request.timeout;
        let connection = request.open(deadline).await?;
        match timeout_at(deadline, Self::ask(&request, connection)).await {
            Ok(begun) => begun,
            Err(_) => Err(Error::TimedOut(format!("{}: no answer in time", request.address))),
        }
    }

    async fn ask(request: &RemoteRequest, mut connection: RemoteConnection) -> Result<Self, Error> {
        let describe = |what: &dyn fmt::Display| format!("{}: {what}", request.address);
        let broken = |error: std::io::Error| Error::Unanswered(describe(&error));
        request.send(&mut connection).await.map_err(broken)?;
        let mut answer = RemoteResponse::default();
        let head = loop {
            if connection.receive(answer.incoming()).await.map_err(broken)? == 0 {
                let what = "the connection ended before an answer";
                return Err(Error::Unanswered(describe(&what)));
            }
            let head = answer.head().map_err(|what| Error::Unanswered(describe(&what)))?;
            if let Some(head) = head {
                break head;
            }
        };
        let mut events = EventParser::default();
        let mut bytes = Vec::new();
        let body = answer.body(false, &mut bytes);
        body.map_err(|what| Error::Unanswered(describe(&what)))?;
        if head.status == 200 && head.kind.starts_with("text/event-stream") {
            events.add(&bytes);
            let now = Instant::now();
            return Ok(Self { connection, answer, events, opened_at: now, received_at: now });
        }
        let Head { status, kind, .. } = head;
        Err(match Status::new(status).filter(|_| status >= 400) {
            Some(status) => Error::refused(&request.address, status, &kind, &bytes),
            None => Error::Misunderstood(describe(&format!(
                "it answered {status}, not with an event stream"
            ))),
        })
    }
}

/// The data of an event with this name. `None`: the event has a different name.
fn event_data(
    event: &ReceivedEvent,
    name: &str,
    max_bytes: usize,
) -> Option<Result<Value, wire::Fault>> {
    if event.kind != "event" {
        return None;
    }
    let limits =
        Limits { bytes: max_bytes, keys: max_bytes, values: max_bytes, ..Limits::default() };
    match wire::read(event.data.as_bytes(), &limits) {
        Ok(Value::Object(mut told)) if told.get("name").is_some_and(|own| own == name) => {
            Some(Ok(told.remove("data").unwrap_or_default()))
        }
        Ok(_) => None,
        Err(fault) => Some(Err(fault)),
    }
}

impl<T> fmt::Debug for Listener<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("Listener").field(&self.remote).field(&self.event).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc;
    use std::thread;

    use super::super::remote;
    use super::*;

    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    const EVENT: &str = "event: event\ndata: {\"name\":\"bell\",\"data\":7}\n\n";
    /// Long enough for any event in these tests.
    const LONG_WAIT: Duration = Duration::from_mins(1);
    const SHORT_WAIT: Duration = Duration::from_millis(10);

    /// Listens to a server with one connection, on which `serve` responds.
    fn listen(serve: impl FnOnce(TcpStream) + Send + 'static) -> Listener<u8> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                socket.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            serve(socket);
        });
        remote(&address).on("bell")
    }

    #[test]
    fn next_wait_continues_opening_of_stream() {
        let (go, gone) = mpsc::channel();
        let mut bell = listen(move |mut socket| {
            gone.recv().unwrap();
            socket.write_all([HEAD, EVENT].concat().as_bytes()).unwrap();
            gone.recv().unwrap_err();
        });
        assert_eq!(bell.wait(SHORT_WAIT), None);
        assert_eq!(bell.wait(SHORT_WAIT), None);
        go.send(()).unwrap();
        assert_eq!(bell.wait(LONG_WAIT), Some(Ok(7)));
    }

    #[test]
    fn silence_timeout_starts_at_last_received_bytes() {
        let (go, gone) = mpsc::channel::<()>();
        let mut bell = listen(move |mut socket| {
            socket.write_all([HEAD, EVENT, EVENT].concat().as_bytes()).unwrap();
            gone.recv().unwrap_err();
        });
        assert_eq!(bell.wait(LONG_WAIT), Some(Ok(7)));
        // Received events are returned, however late the wait starts.
        let grow_old = |bell: &mut Listener<u8>| {
            bell.source.as_mut().unwrap().stream.as_mut().unwrap().received_at -= SILENCE_TIMEOUT;
        };
        grow_old(&mut bell);
        assert_eq!(bell.wait(LONG_WAIT), Some(Ok(7)));
        grow_old(&mut bell);
        let told = bell.wait(LONG_WAIT);
        assert!(matches!(told, Some(Err(Error::TimedOut(_)))), "{told:?}");
        drop(go);
    }

    #[test]
    fn stable_stream_resets_backoff() {
        let (go, gone) = mpsc::channel::<()>();
        let mut bell = listen(move |mut socket| {
            socket.write_all([HEAD, EVENT].concat().as_bytes()).unwrap();
            gone.recv().unwrap_err();
        });
        assert_eq!(bell.wait(LONG_WAIT), Some(Ok(7)));
        let source = bell.source.as_mut().unwrap();
        source.failures = 6;
        source.stream.as_mut().unwrap().opened_at -= STABLE_AFTER;
        drop(go);
        assert!(matches!(bell.wait(LONG_WAIT), Some(Err(Error::Unanswered(_)))));
        assert_eq!(bell.source.as_ref().unwrap().failures, 1);
    }
}
