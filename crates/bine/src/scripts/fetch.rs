//! `fetch`: requests of scripts to other servers.
//!
//! This module sends single requests through the connections of [`remote`](crate::remote), and the
//! script [`WORDS`] builds `fetch`, redirects and the classes of the Fetch standard on it. Scripts
//! are trusted code, so a request may go to any address, also to a service on this machine.

use std::cell::RefCell;
use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bine_http::Status;
use bine_script::{HostCall, HostError, HostModule, Value};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::remote::http_request::{HttpRequest, HttpResponse};

/// The module `bine:internal/fetch`, which defines the global names `fetch`, `Headers`, `Request`
/// and `Response`. It has no exports.
pub(super) const WORDS: &str = include_str!("words/fetch.js");

/// The limits of the requests of one application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FetchLimits {
    /// The time for a response, with all redirects. It must be shorter than the time that a call
    /// of a script may wait, or the call ends the instance instead of an exception.
    pub(super) timeout: Duration,
    /// Bytes of the body of one response.
    pub(super) response: usize,
    /// Requests at one time.
    pub(super) requests: usize,
    /// Queued requests; more fail at once.
    pub(super) waiting: usize,
}

/// The requests of one application, which all its instances share.
#[derive(Debug)]
pub(super) struct FetchQueue {
    limits: FetchLimits,
    permits: Semaphore,
    waiting: AtomicUsize,
}

/// Bytes of a body that pass to the script at once, below the limit of a value.
const PART: usize = 2 << 20;

impl Default for FetchLimits {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(20), response: 8 << 20, requests: 32, waiting: 256 }
    }
}

impl FetchQueue {
    pub(super) fn new(limits: FetchLimits) -> Arc<Self> {
        let permits = Semaphore::new(limits.requests);
        Arc::new(Self { limits, permits, waiting: AtomicUsize::new(0) })
    }

    pub(super) const fn limits(&self) -> FetchLimits {
        self.limits
    }

    /// Waits until the request may be sent.
    pub(super) async fn admit(&self, deadline: Instant) -> Result<SemaphorePermit<'_>, String> {
        if let Ok(permit) = self.permits.try_acquire() {
            return Ok(permit);
        }
        let FetchLimits { requests, waiting, .. } = self.limits;
        let _place = WaitingPlace::take(&self.waiting, waiting).ok_or_else(|| {
            format!(
                "the application waits for {requests} responses, and {waiting} more requests wait: send fewer at one time"
            )
        })?;
        match timeout_at(deadline, self.permits.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(format!(
                "the application waits for {requests} other responses, and none has ended in time"
            )),
        }
    }
}

/// A place among the requests that wait.
struct WaitingPlace<'q>(&'q AtomicUsize);

impl<'q> WaitingPlace<'q> {
    fn take(waiting: &'q AtomicUsize, most: usize) -> Option<Self> {
        // The place is given back if there is no room.
        let place = Self(waiting);
        (waiting.fetch_add(1, Ordering::Relaxed) < most).then_some(place)
    }
}

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The functions of [`WORDS`] for one instance:
///
/// | name | arguments | result |
/// |---|---|---|
/// | `timeout` | | milliseconds, a constant |
/// | `send` | number of the request, method, origin, path and query, pairs of headers, bytes or `undefined`, milliseconds | a promise of `{ status, reason, headers, length }` |
/// | `read` | number of the request | the next part of the body |
/// | `cancel` | number of the request | |
pub(super) fn host_module(queue: &Arc<FetchQueue>) -> HostModule {
    let requests = Rc::new(Requests::new(queue));
    let (sending, reading) = (Rc::clone(&requests), Rc::clone(&requests));
    let milliseconds = queue.limits.timeout.as_secs_f64() * 1000.0;
    HostModule::new("bine:internal/fetch-host")
        .value("timeout", Value::Number(milliseconds))
        .async_function("send", move |call| {
            let arguments = (0..call.len()).map(|index| call.value(index));
            Ok(Rc::clone(&sending).send(arguments.collect::<Result<_, _>>()?))
        })
        .function("read", move |call| Ok(reading.read(number(call)?)))
        .function("cancel", move |call| {
            requests.cancel(number(call)?);
            Ok(Value::Undefined)
        })
}

fn number(call: &HostCall<'_, '_>) -> Result<u64, HostError> {
    call.number(0).map(f64::to_bits)
}

/// The requests of one instance, by their numbers.
struct Requests {
    queue: Arc<FetchQueue>,
    /// Those that have no response yet. Dropping a sender cancels.
    running: RefCell<HashMap<u64, oneshot::Sender<()>>>,
    /// The unread parts of the bodies.
    bodies: RefCell<HashMap<u64, Vec<u8>>>,
}

/// A request that is running. When it is dropped, its number is free.
struct RunningRequest<'r> {
    requests: &'r Requests,
    number: u64,
}

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        self.requests.running.borrow_mut().remove(&self.number);
    }
}

impl Requests {
    fn new(queue: &Arc<FetchQueue>) -> Self {
        let queue = Arc::clone(queue);
        Self { queue, running: RefCell::default(), bodies: RefCell::default() }
    }

    fn cancel(&self, number: u64) {
        self.running.borrow_mut().remove(&number);
    }

    /// The next part of a body, from its start.
    fn read(&self, number: u64) -> Value {
        let mut bodies = self.bodies.borrow_mut();
        let Some(body) = bodies.get_mut(&number) else { return Value::Bytes(Vec::new()) };
        if body.len() <= PART {
            return Value::Bytes(bodies.remove(&number).unwrap_or_default());
        }
        let rest = body.split_off(PART);
        Value::Bytes(std::mem::replace(body, rest))
    }

    async fn send(self: Rc<Self>, arguments: Vec<Value>) -> Result<Value, HostError> {
        let (number, request) = self.request(arguments)?;
        let path = request.target.split(['?', '#']).next().unwrap_or_default();
        let subject = format!("cannot fetch {}{path}", request.origin);
        let failure = |reason: String| HostError::Type(format!("{subject}: {reason}"));
        let (sender, mut cancelled) = oneshot::channel();
        if self.running.borrow().contains_key(&number) {
            return Err(failure("another request has its number".to_owned()));
        }
        self.running.borrow_mut().insert(number, sender);
        let _running = RunningRequest { requests: &self, number };
        let mut response = pin!(self.response(request));
        let response = std::future::poll_fn(|task| {
            if Pin::new(&mut cancelled).poll(task).is_ready() {
                return Poll::Ready(Err("it was cancelled".to_owned()));
            }
            response.as_mut().poll(task)
        });
        let HttpResponse { status, fields, body } = response.await.map_err(failure)?;
        let length = Value::Number(body.len() as f64);
        if !body.is_empty() {
            self.bodies.borrow_mut().insert(number, body);
        }
        let reason = Status::new(status).map_or("", Status::reason);
        let headers = fields.into_iter().map(|(name, value)| {
            // A value is text in Latin-1 (RFC 9110 section 5.5).
            let value = value.into_iter().map(char::from).collect();
            Value::Array(vec![Value::Text(name), Value::Text(value)])
        });
        Ok(Value::Object(vec![
            ("status".to_owned(), Value::Number(status.into())),
            ("reason".to_owned(), reason.into()),
            ("headers".to_owned(), Value::Array(headers.collect())),
            ("length".to_owned(), length),
        ]))
    }

    /// Sends a request when it may be sent. The error is the end of a sentence.
    async fn response(&self, mut request: HttpRequest) -> Result<HttpResponse, String> {
        let deadline = Instant::now() + request.timeout;
        let _permit = self.queue.admit(deadline).await?;
        request.timeout = deadline.saturating_duration_since(Instant::now());
        let server = format!("{}: ", request.origin);
        request.send().await.map_err(|error| {
            let told = error.to_string();
            told.strip_prefix(&server).unwrap_or(&told).to_owned()
        })
    }

    /// The arguments of `send`.
    fn request(&self, arguments: Vec<Value>) -> Result<(u64, HttpRequest), HostError> {
        let unfit = || HostError::Type("this is no request".to_owned());
        let limits = self.queue.limits;
        let Ok(
            [
                Value::Number(number),
                Value::Text(method),
                Value::Text(origin),
                Value::Text(target),
                Value::Array(headers),
                body,
                Value::Number(milliseconds),
            ],
        ) = <[Value; 7]>::try_from(arguments)
        else {
            return Err(unfit());
        };
        let field = |pair: Value| match pair {
            Value::Array(pair) => match <[Value; 2]>::try_from(pair) {
                Ok([Value::Text(name), Value::Text(value)]) => Some((name, value)),
                _ => None,
            },
            _ => None,
        };
        let body = match body {
            Value::Undefined => None,
            Value::Bytes(bytes) => Some(bytes),
            _ => return Err(unfit()),
        };
        let timeout = Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or_default();
        let request = HttpRequest {
            origin,
            method,
            target,
            fields: headers.into_iter().map(field).collect::<Option<_>>().ok_or_else(unfit)?,
            body,
            timeout: timeout.min(limits.timeout),
            max_response: limits.response,
        };
        Ok((number.to_bits(), request))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use bine_nats_server::ReservedPort;
    use bine_script::{
        Clock, Host, Instance, Level, Limits, LoadError, Messages, ModuleLoader, MonotonicStart,
        Randomness, ScriptError, Settings,
    };
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::remote::tests::server;

    struct TestHost(MonotonicStart);

    impl Clock for TestHost {
        fn now(&self) -> Duration {
            self.0.elapsed()
        }

        fn sleep_until(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()>>> {
            Box::pin(tokio::time::sleep_until(self.0.at(time).into()))
        }
    }

    impl Randomness for TestHost {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(7);
        }
    }

    impl Messages for TestHost {
        fn log(&self, _: Level, text: &str) {
            panic!("{text}");
        }

        fn report(&self, error: &ScriptError) {
            panic!("{error}");
        }
    }

    /// A script, whose module `bine` is the function `fetch` or, for a test, its host.
    struct Script {
        source: String,
        bine: &'static str,
    }

    impl ModuleLoader for Script {
        fn load(&self, _: &str) -> Result<String, LoadError> {
            Ok(self.source.clone())
        }

        fn load_built_in(&self, name: &str) -> Option<String> {
            match name {
                "bine" => Some(self.bine.to_owned()),
                "bine:internal/fetch" => Some(WORDS.to_owned()),
                _ => None,
            }
        }
    }

    /// Runs the body of an `async` function of `url`, and returns its result as JSON.
    fn run_within(limits: FetchLimits, url: &str, body: &str) -> String {
        let source = format!(
            "import 'bine';
             export default async (url) => {{
               try {{ return JSON.stringify(await (async () => {{ {body} }})()); }}
               catch (error) {{ return `${{error.name}}: ${{error.message}}`; }}
             }}"
        );
        call(limits, Script { source, bine: "import \"bine:internal/fetch\";" }, url)
    }

    /// Calls the function that a script exports.
    fn call(limits: FetchLimits, script: Script, url: &str) -> String {
        let start = MonotonicStart::new();
        let instance = Instance::new(Settings {
            limits: Limits::default(),
            host: Host {
                clock: Box::new(TestHost(start)),
                randomness: Box::new(TestHost(start)),
                messages: Box::new(TestHost(start)),
            },
            loader: Box::new(script),
            modules: vec![host_module(&FetchQueue::new(limits))],
        })
        .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let told = runtime.block_on(async {
            let exports = instance.load("index.js").await.unwrap();
            let Some(Value::Function(run)) = exports.property("default") else { panic!() };
            instance.call(run, &[url.into()]).await.unwrap()
        });
        assert_eq!(instance.usage().operations, 0);
        drop(runtime);
        told.as_text().unwrap().to_owned()
    }

    fn run(url: &str, body: &str) -> String {
        run_within(FetchLimits::default(), url, body)
    }

    const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-A: 1\r\nx-a: 2\r\n\
                         Content-Length: 6\r\n\r\nh\u{e9}llo";
    const SEVEN: &str = "HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n{\"a\": 7}\n";

    /// A response that redirects to `location`.
    fn redirect(status: u16, location: &str) -> &'static str {
        format!("HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
            .leak()
    }

    #[test]
    fn returns_the_response() {
        let (address, server) = server([HELLO, SEVEN, HELLO]);
        let told = run(
            &address,
            "const a = await fetch(`${url}/a b?c=d#e`, { headers: { 'X-Own': ' 1 ' } });
             const text = await a.text();
             const b = await fetch(new URL('/json', url), { method: 'post', body: '{}' });
             const json = await b.json();
             const c = await fetch(new Request(url), { headers: [['accept', 'x/y']] });
             const bytes = await c.bytes();
             return [a.ok, a.status, a.statusText, a.url.slice(url.length), a.redirected, text,
                     a.bodyUsed, [...a.headers], a.headers.get('CONTENT-type'), a.headers.has('no'),
                     b.status, json, bytes.length, c.type];",
        );
        assert_eq!(
            told,
            "[true,200,\"OK\",\"/a%20b?c=d\",false,\"h\u{e9}llo\",true,\
             [[\"content-length\",\"6\"],[\"content-type\",\"text/plain\"],[\"x-a\",\"1, 2\"]],\
             \"text/plain\",false,201,{\"a\":7},6,\"basic\"]"
        );
        let seen = server.join().unwrap();
        let connections: Vec<usize> = seen.iter().map(|(connection, _)| *connection).collect();
        assert_eq!(connections, [1, 1, 1], "connections are reused");
        assert!(seen[0].1.starts_with("GET /a%20b?c=d HTTP/1.1\r\nHost: 127.0.0.1:"), "{seen:?}");
        assert!(seen[0].1.contains("\r\nx-own: 1\r\n"), "{seen:?}");
        assert!(seen[1].1.starts_with("POST /json HTTP/1.1\r\n"), "{seen:?}");
        assert!(seen[1].1.contains("\r\ncontent-type: text/plain;charset=UTF-8\r\n"), "{seen:?}");
        assert!(seen[1].1.ends_with("\r\n\r\n{}"), "{seen:?}");
        assert!(seen[2].1.starts_with("GET / HTTP/1.1\r\n"), "{seen:?}");
        assert!(seen[2].1.contains("\r\naccept: x/y\r\n"), "{seen:?}");
    }

    #[test]
    fn sends_each_kind_of_body() {
        let (address, server) = server([SEVEN; 4]);
        let told = run(
            &address,
            "for (const body of [new URLSearchParams({ a: 'b c' }), new Uint8Array([65, 66]),
                                 new Uint8Array([65, 66, 67]).subarray(1), new ArrayBuffer(2)]) {
               await fetch(url, { method: 'PUT', body });
             }
             return 'sent';",
        );
        assert_eq!(told, "\"sent\"");
        let bodies = server.join().unwrap();
        let bodies: Vec<&str> =
            bodies.iter().map(|(_, text)| text.split("\r\n\r\n").nth(1).unwrap()).collect();
        assert_eq!(bodies, ["a=b+c", "AB", "BC", "\0\0"]);
    }

    #[test]
    fn response_to_head_has_no_body() {
        let empty = "HTTP/1.1 200 OK\r\nContent-Length: 600\r\n\r\n";
        let (address, server) = server([empty, SEVEN]);
        let told = run(
            &address,
            "const a = await fetch(url, { method: 'head' });
             const b = await fetch(url);
             return [a.headers.get('content-length'), await a.text(), b.status];",
        );
        assert_eq!(told, "[\"600\",\"\",201]");
        assert_eq!(server.join().unwrap()[1].0, 1);
    }

    #[test]
    fn follows_redirects_and_forgets_secrets_elsewhere() {
        let (other, elsewhere) = server([HELLO]);
        let there = redirect(307, &format!("{other}/end"));
        let (address, here) = server([redirect(302, "next?x"), redirect(308, "/last#f"), there]);
        let told = run(
            &address,
            "const headers = { authorization: 'Bearer a', Cookie: 'b=c', 'x-d': 'e' };
             const a = await fetch(`${url}/deep/start`, { method: 'POST', body: 'text', headers });
             return [a.status, a.redirected, new URL(a.url).pathname];",
        );
        assert_eq!(told, "[200,true,\"/end\"]");
        let seen = here.join().unwrap();
        assert!(seen[0].1.starts_with("POST /deep/start ") && seen[0].1.ends_with("\r\n\r\ntext"));
        for ((_, request), start) in seen[1..].iter().zip(["GET /deep/next?x ", "GET /last "]) {
            assert!(request.starts_with(start), "{request}");
            assert!(request.contains("authorization: Bearer a"), "{request}");
            assert!(!request.to_ascii_lowercase().contains("content-"), "{request}");
        }
        let (_, request) = &elsewhere.join().unwrap()[0];
        assert!(request.contains("x-d: e"), "{request}");
        for secret in ["authorization", "cookie", "Bearer", "b=c"] {
            assert!(!request.contains(secret), "{request}");
        }
    }

    #[test]
    fn keeps_the_body_where_a_redirect_requires_it() {
        let (address, server) = server([redirect(307, "/next"), SEVEN]);
        let told =
            run(&address, "return (await fetch(url, { method: 'POST', body: 'a' })).status;");
        assert_eq!(told, "201");
        let seen = server.join().unwrap();
        assert!(seen[1].1.starts_with("POST /next ") && seen[1].1.ends_with("\r\n\r\na"));
    }

    #[test]
    fn handles_redirects_as_the_option_says() {
        let (address, _server) = server([redirect(301, "/b?c"), redirect(301, "/b")]);
        let told = run(
            &address,
            "return (await fetch(url, { redirect: 'manual' })).headers.get('location');",
        );
        assert_eq!(told, "\"/b?c\"");
        let told = run(&address, "return await fetch(url, { redirect: 'error' });");
        assert!(
            told.ends_with("/: it redirects, and the option \"redirect\" is \"error\""),
            "{told}"
        );
        let (address, server) = server::<21>([redirect(302, "/"); 21]);
        let told = run(&address, "return await fetch(url);");
        assert_eq!(told, format!("TypeError: cannot fetch {address}/: more than 20 redirects"));
        assert_eq!(server.join().unwrap().len(), 21);
        for (location, words) in [
            ("ftp://other/", "TypeError: fetch knows http: and https:, not ftp:"),
            ("http://me:pw@other/", "has a user or a password"),
            ("http://[", "it redirects to an invalid URL"),
        ] {
            let (address, _server) = server_of(redirect(302, location));
            let told = run(&address, "return await fetch(url);");
            assert!(told.contains(words) && !told.contains("pw"), "{told}");
        }
    }

    fn server_of(answer: &'static str) -> (String, impl Sized) {
        server([answer])
    }

    #[test]
    fn rejects_what_cannot_be_sent() {
        for (call, told) in [
            (
                "fetch('/a?key=1')",
                "fetch takes a whole URL such as https://example.org/, not \"/a\"",
            ),
            ("fetch('http://me:secret@a b/')", "not \"http://a b/\""),
            ("fetch('file:///etc/passwd')", "fetch knows http: and https:, not file:"),
            (
                "fetch('https://me:secret@other/a?b=c')",
                "cannot fetch https://other/a: the URL has a user or a password",
            ),
            ("fetch('http://a/', { method: 'TRACE' })", "no method that can be sent"),
            ("fetch('http://a/', { method: 'A B' })", "no method that can be sent"),
            ("fetch('http://a/', { body: 'x' })", "a GET request has no body"),
            ("fetch('http://a/', { method: 'POST', body: {} })", "write JSON.stringify(..)"),
            (
                "fetch('http://a/', { method: 'POST', body: 'x'.repeat(5 << 20) })",
                "has at most 4194304 bytes, not 5242880",
            ),
            ("fetch('http://a/', { headers: { 'a b': '' } })", "\"a b\" is no name of a header"),
            ("fetch('http://a/', { headers: { a: 'b\\nc' } })", "the header a has a line break"),
            ("fetch('http://a/', { headers: { Host: 'b' } })", "`host` is written by the server"),
            ("fetch('http://a/', { headers: { 'Content-Length': 1 } })", "leave it out"),
            ("fetch('http://a/', { headers: [['a']] })", "pairs of a name and a value"),
            ("fetch('http://a/', { redirect: 'no' })", "redirect is \"follow\""),
            ("fetch('http://a/', { signal: {} })", "the signal is an AbortSignal"),
        ] {
            let found = run("", &format!("return await {call};"));
            assert!(found.starts_with("TypeError: ") && found.contains(told), "{call}: {found}");
            assert!(!found.contains("secret") && !found.contains("key="), "{found}");
        }
    }

    #[test]
    fn reports_why_there_is_no_response() {
        let closed = ReservedPort::new();
        let address = format!("http://127.0.0.1:{}", closed.number());
        let told = run(&address, "return await fetch(`${url}/a?secret=1`);");
        let start = format!("TypeError: cannot fetch {address}/a: ");
        assert!(told.starts_with(&start) && told.contains("refused"), "{told}");
        for (answer, words) in [
            ("SSH-2.0-OpenSSH\r\n\r\n", "the answer is not valid HTTP"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na", "the answer broke off"),
        ] {
            // The server closes the connection after its only answer.
            let (address, _server) = server([answer]);
            let told = run(&address, "return await fetch(url);");
            assert_eq!(told, format!("TypeError: cannot fetch {address}/: {words}"));
        }
        let (address, _server) = server([HELLO]);
        let told = run(&address, "return await fetch(url.replace('http:', 'https:'));");
        assert!(told.starts_with("TypeError: cannot fetch https://127.0.0.1:"), "{told}");
    }

    #[test]
    fn bounds_the_bytes_of_a_response() {
        let body = "x".repeat(5_000_000);
        let whole = format!("HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n{body}").leak();
        let (address, _server) = server([whole]);
        let told = run(
            &address,
            "const text = await (await fetch(url)).text(); return text === 'x'.repeat(5000000);",
        );
        assert_eq!(told, "true");
        let limits = FetchLimits { response: 4_999_999, ..FetchLimits::default() };
        let (address, _server) = server([whole]);
        let told = run_within(limits, &address, "return await fetch(url);");
        let words = "its answer has more than 4999999 bytes";
        assert_eq!(told, format!("TypeError: cannot fetch {address}/: {words}"));
    }

    /// The address of a server that accepts connections and never responds.
    fn silent() -> (String, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        (format!("http://{}", listener.local_addr().unwrap()), listener)
    }

    #[test]
    fn ends_the_wait_for_a_silent_server() {
        let (address, _listener) = silent();
        // A busy machine may not connect within the first timeout.
        let told = [20, 1000, 10_000].map(Duration::from_millis).into_iter().map(|timeout| {
            let limits = FetchLimits { timeout, ..FetchLimits::default() };
            run_within(limits, &address, "return await fetch(url);")
        });
        let told = told.into_iter().find(|told| !told.ends_with("no connection in time"));
        let expected = format!("TypeError: cannot fetch {address}/: no answer in time");
        assert_eq!(told, Some(expected));
        let told = run(&address, "return await fetch(url, { signal: AbortSignal.timeout(10) });");
        assert_eq!(told, "TimeoutError: the operation has timed out");
        let told = run(
            &address,
            "const controller = new AbortController();
             const waiting = fetch(url, { signal: controller.signal });
             controller.abort();
             return await waiting;",
        );
        assert_eq!(told, "AbortError: the operation was aborted");
        let told = run(&address, "return await fetch(url, { signal: AbortSignal.abort('own') });");
        assert_eq!(told, "undefined: undefined");
    }

    #[test]
    fn limits_the_requests_of_an_application() {
        let (address, server) = server([SEVEN, HELLO]);
        let limits = FetchLimits { requests: 1, waiting: 1, ..FetchLimits::default() };
        let body = "const all = await Promise.allSettled([fetch(url), fetch(url), fetch(url)]);
                    return all.map((one) => one.value?.status ?? one.reason.message);";
        let told = run_within(limits, &address, body);
        assert_eq!(
            told,
            format!(
                "[201,200,\"cannot fetch {address}/: the application waits for 1 responses, and 1 more \
                 requests wait: send fewer at one time\"]"
            )
        );
        assert_eq!(server.join().unwrap().len(), 2);
        let (address, _listener) = silent();
        let timeout = Duration::from_millis(20);
        let limits = FetchLimits { requests: 1, timeout, ..FetchLimits::default() };
        let told =
            run_within(limits, &address, &body.replace("url)]", "url, { method: 'POST' })]"));
        assert_eq!(told.matches("time").count(), 3, "{told}");
    }

    #[test]
    fn headers_ignore_case_and_join_values() {
        let told = run(
            "",
            "const headers = new Headers({ 'X-B': '1', a: '2' });
             headers.append('x-b', '3');
             headers.append('Set-Cookie', 'c=1');
             headers.append('set-cookie', 'd=2');
             const copy = new Headers(headers);
             headers.set('A', '4');
             headers.delete('X-b');
             return [[...copy], copy.get('X-B'), copy.getSetCookie(), [...headers.keys()],
                     headers.get('a'), headers.get('none')];",
        );
        assert_eq!(
            told,
            "[[[\"a\",\"2\"],[\"set-cookie\",\"c=1\"],[\"set-cookie\",\"d=2\"],[\"x-b\",\"1, 3\"]],\
             \"1, 3\",[\"c=1\",\"d=2\"],[\"a\",\"set-cookie\",\"set-cookie\"],\"4\",null]"
        );
    }

    #[test]
    fn bodies_are_read_once() {
        let told = run(
            "",
            "const response = Response.json({ a: 1 }, { status: 202 });
             const copy = response.clone();
             const first = await response.json();
             const again = await response.text().catch((error) => error.message);
             const request = new Request('http://a/b', { method: 'POST', body: 'text' });
             const moved = new Request(request, { headers: { x: 'y' } });
             return [first, again, await copy.text(), copy.status, copy.headers.get('content-type'),
                     request.bodyUsed, await moved.text(), moved.method, moved.headers.get('x')];",
        );
        assert_eq!(
            told,
            "[{\"a\":1},\"the body was read already\",\"{\\\"a\\\":1}\",202,\"application/json\",\
             true,\"text\",\"POST\",\"y\"]"
        );
    }

    /// Values of each type, and some that `send` accepts.
    const VALUES: [&str; 14] = [
        "1",
        "2",
        "-0.5",
        "'GET'",
        "'http://127.0.0.1:1'",
        "'/a?b'",
        "''",
        "[]",
        "[['a', 'b']]",
        "[[1], 'a', {}]",
        "new Uint8Array(3)",
        "undefined",
        "null",
        "{ a: () => 1 }",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn host_functions_accept_any_values_in_any_order(
            calls in vec(
                (select(&["send", "read", "cancel"][..]), vec(select(&VALUES[..]), 0..9), any::<bool>()),
                0..12,
            )
        ) {
            let whole = "1, 'GET', 'http://127.0.0.1:1', '/', [], undefined, 5";
            let calls = calls.iter().map(|(name, values, is_whole)| {
                let values = if *is_whole { whole.to_owned() } else { values.join(", ") };
                format!("await call(host.{name}, {values});\n")
            });
            let source = format!(
                "import * as host from 'bine';
                 const waiting = [];
                 async function call(run, ...values) {{
                   try {{ waiting.push(Promise.resolve(run(...values)).catch(() => 0)); }} catch {{}}
                 }}
                 export default async () => {{
                   {}
                   await Promise.all(waiting);
                   return 'done';
                 }}",
                calls.collect::<String>()
            );
            let script = Script { source, bine: "export * from \"bine:internal/fetch-host\";" };
            prop_assert_eq!(call(FetchLimits::default(), script, ""), "done");
        }
    }
}
