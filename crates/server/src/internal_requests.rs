//! Internal requests: requests without a client, for example to render a page again. They run on
//! their own threads; each thread runs many at one time while they await, each for at most the time
//! limit of a handler.

use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use bine_admission::{Admission, ThreadPool};
use bine_log as log;
use bine_profile as profile;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{LocalSet, spawn_local};

use crate::blocking::blocking;
use crate::handler::{
    Answer, Handler, HandlerContext, Outgoing, ReplyFuture, Responder, Retained, Work,
};
use crate::metrics::count_panic;
use crate::time::Clock;

/// Threads that send internal requests to a program. The program handles them like requests of
/// clients, filters included, but without lines in the access log.
///
/// The threads end when all clones of this are dropped.
#[derive(Clone, Debug)]
pub struct InternalRunner(Arc<[UnboundedSender<Arc<dyn Handler>>]>);

/// The source of requests for the threads. It decides their order and how many run at one time.
pub trait InternalRequestSource: Send + Sync {
    /// The next request for a thread, when it is due; `None` ends the thread. Without a request,
    /// the source wakes `waker` when there may be one.
    ///
    /// A thread calls this whenever it has no request to poll.
    fn poll_next(&self, thread: usize, waker: &Waker) -> Poll<Option<InternalRequest>>;

    /// The pool to which a thread reports how long it runs handlers. Called once, when the thread
    /// starts. A handler that may block runs on a separate thread and is not reported.
    fn pool(&self, _thread: usize) -> Option<Arc<ThreadPool>> {
        None
    }
}

/// An internal request.
pub struct InternalRequest {
    /// The request, without a body.
    pub request: Retained,
    /// The scope in which the handler runs.
    pub around: Arc<dyn RunHook>,
    /// Receives the whole reply.
    pub then: ReplyHandler,
}

/// Receives the whole reply to an [`InternalRequest`], once. `None`: there is no reply, because the
/// handler panicked or exceeded its time limit, its answer is not a plain reply, or the threads
/// have ended.
pub struct ReplyHandler(Option<ReplyCallback>);

/// Called with the reply.
type ReplyCallback = Box<dyn FnOnce(Option<Vec<u8>>) + Send>;

impl ReplyHandler {
    /// Calls `then` with the reply.
    pub fn new(then: impl FnOnce(Option<Vec<u8>>) + Send + 'static) -> Self {
        Self(Some(Box::new(then)))
    }

    fn call(mut self, reply: Option<Vec<u8>>) {
        if let Some(then) = self.0.take() {
            then(reply);
        }
    }
}

impl Drop for ReplyHandler {
    fn drop(&mut self) {
        if let Some(then) = self.0.take() {
            then(None);
        }
    }
}

/// Wraps each part of a handler that runs without a pause, on any thread.
pub trait RunHook: Send + Sync {
    /// Whether the reply is still needed. Called when the request begins and at each await. The
    /// implementation may wake `waker` when the answer changes, so that the request is dropped at
    /// once.
    fn is_wanted(&self, _waker: &Waker) -> bool {
        true
    }

    /// Calls `part` once.
    fn around(&self, part: &mut dyn FnMut());
}

/// The next step of a thread.
enum NextStep {
    /// Sends further requests to this program.
    Replace(Arc<dyn Handler>),
    Ask(InternalRequest),
    End,
}

impl InternalRunner {
    /// Starts `threads` threads (at least one), which send the requests of `requests` to `handler`
    /// and wait at most `time_limit` for each reply.
    ///
    /// # Errors
    ///
    /// Returns the system's error when a thread or its runtime cannot be created.
    pub fn begin(
        handler: &Arc<dyn Handler>,
        time_limit: Duration,
        threads: usize,
        requests: &Arc<dyn InternalRequestSource>,
    ) -> io::Result<Self> {
        let begin = |number: usize| {
            let (sender, replaced) = unbounded_channel();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (handler, requests) = (Arc::clone(handler), Arc::clone(requests));
            let inside = thread::Builder::new().name(format!("inside-{number}"));
            inside.spawn(move || {
                let tasks = LocalSet::new();
                let pool = requests.pool(number);
                let thread = RequestThread { number, requests, pool, time_limit };
                runtime.block_on(tasks.run_until(thread.serve(handler, replaced)));
            })?;
            Ok(sender)
        };
        (0..threads.max(1)).map(begin).collect::<io::Result<_>>().map(Self)
    }

    /// Sends further requests to a new program.
    pub fn replace(&self, handler: &Arc<dyn Handler>) {
        for thread in &*self.0 {
            let _ = thread.send(Arc::clone(handler));
        }
    }
}

struct RequestThread {
    number: usize,
    requests: Arc<dyn InternalRequestSource>,
    pool: Option<Arc<ThreadPool>>,
    time_limit: Duration,
}

impl RequestThread {
    async fn serve(
        self,
        handler: Arc<dyn Handler>,
        mut replaced: UnboundedReceiver<Arc<dyn Handler>>,
    ) {
        let clock = Rc::new(Clock::kernel());
        // Internal requests need no admission: the program itself sends them.
        let admission = Arc::new(Admission::off());
        let local = |handler: Arc<dyn Handler>| {
            let (clock, admission) = (Rc::clone(&clock), Arc::clone(&admission));
            handler.local(HandlerContext {
                clock,
                chunk_at: usize::MAX,
                admission,
                is_internal: true,
            })
        };
        let mut responder = local(handler);
        loop {
            match self.step(&mut replaced).await {
                // If the new program panics here, the thread continues with the old one.
                NextStep::Replace(handler) => {
                    match catch_unwind(AssertUnwindSafe(|| local(handler))) {
                        Ok(new) => responder = new,
                        Err(_) => {
                            log::error(format_args!(
                                "the new program panicked when it was installed; internal requests \
                             still use the old one"
                            ));
                        }
                    }
                }
                NextStep::Ask(internal_request) => {
                    clock.turn();
                    run_request(&mut *responder, &clock, &self, internal_request);
                }
                NextStep::End => return,
            }
            // Lets the tasks run that are already started.
            tokio::task::yield_now().await;
        }
    }

    async fn step(&self, replaced: &mut UnboundedReceiver<Arc<dyn Handler>>) -> NextStep {
        poll_fn(|task| match replaced.poll_recv(task) {
            Poll::Ready(Some(handler)) => Poll::Ready(NextStep::Replace(handler)),
            Poll::Ready(None) => Poll::Ready(NextStep::End),
            Poll::Pending => self
                .requests
                .poll_next(self.number, task.waker())
                .map(|internal_request| internal_request.map_or(NextStep::End, NextStep::Ask)),
        })
        .await
    }
}

/// Reports to a pool how long its thread runs a part of a handler, also after a panic.
struct RunTimer<'t> {
    pool: &'t ThreadPool,
    began: Instant,
}

impl<'t> RunTimer<'t> {
    fn begin(pool: &'t ThreadPool) -> Self {
        pool.began();
        Self { pool, began: Instant::now() }
    }
}

impl Drop for RunTimer<'_> {
    fn drop(&mut self) {
        self.pool.ended(self.began.elapsed());
    }
}

fn run_request(
    responder: &mut dyn Responder,
    clock: &Clock,
    thread: &RequestThread,
    internal_request: InternalRequest,
) {
    let RequestThread { time_limit, pool, .. } = thread;
    let time_limit = *time_limit;
    let InternalRequest { mut request, around, then } = internal_request;
    if !around.is_wanted(Waker::noop()) {
        return then.call(None);
    }
    let mut bytes = Vec::new();
    // The request may have waited since it was created.
    request.arrival = clock.unix();
    let answered = catch_unwind(AssertUnwindSafe(|| {
        let mut answer = None;
        let _timer = pool.as_deref().map(RunTimer::begin);
        around.around(&mut || {
            profile::begin_request();
            request.identity = responder.identify(&request.incoming().head, request.peer);
            let out = &mut Outgoing { buffer: &mut bytes, drain: &mut |_: &mut Vec<u8>| {} };
            answer = Some(responder.respond(&request.incoming(), out));
            profile::count_route(|| responder.last());
        });
        answer
    }));
    match answered {
        Ok(Some(Answer::Written { .. })) => then.call(Some(bytes)),
        Ok(Some(Answer::Later(reply))) => {
            let pool = pool.clone();
            let name = responder.last();
            spawn_local(async move {
                let reply = poll_reply(reply, &*around, pool.as_deref());
                then.call(tokio::time::timeout(time_limit, reply).await.unwrap_or_else(|_| {
                    log::warn(format_args!(
                        "{name} took longer than {time_limit:?} in an internal request, which was \
                         canceled; find what it waits for"
                    ));
                    None
                }));
            });
        }
        Ok(Some(Answer::Work(work))) => {
            spawn_local(async move {
                let reply =
                    tokio::time::timeout(time_limit, run_blocking(work, request, around)).await;
                then.call(reply.unwrap_or_default());
            });
        }
        Ok(_) => then.call(None),
        Err(_) => {
            count_panic();
            log::error(format_args!("{} panicked in an internal request", responder.last()));
            then.call(None);
        }
    }
}

/// Polls an async handler to its reply, each poll within `around`.
async fn poll_reply(
    mut reply: ReplyFuture,
    around: &dyn RunHook,
    pool: Option<&ThreadPool>,
) -> Option<Vec<u8>> {
    let polled = poll_fn(|task| {
        if !around.is_wanted(task.waker()) {
            return Poll::Ready(None);
        }
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let mut polled = Poll::Pending;
            let _timer = pool.map(RunTimer::begin);
            around.around(&mut || polled = reply.as_mut().poll(task));
            polled
        }));
        // The last poll writes the page, and the displayed values may panic.
        match polled {
            Ok(polled) => polled.map(Some),
            Err(_) => {
                count_panic();
                Poll::Ready(None)
            }
        }
    });
    let finished = polled.await?;
    finished.follow.is_none().then_some(finished.bytes)
}

/// Answers an internal request on the current thread, as a part of a handler that runs there. `None`:
/// there is no reply, as for a [`ReplyHandler`]. The time limit is that of the calling handler.
pub async fn answer_internally(handler: &dyn Handler, mut request: Retained) -> Option<Vec<u8>> {
    let around: Arc<dyn RunHook> = Arc::new(NoHook);
    let answered = catch_unwind(AssertUnwindSafe(|| {
        let (clock, admission) = (Rc::new(Clock::kernel()), Arc::new(Admission::off()));
        let mut responder = handler.local(HandlerContext {
            clock,
            chunk_at: usize::MAX,
            admission,
            is_internal: true,
        });
        request.identity = responder.identify(&request.incoming().head, request.peer);
        let mut bytes = Vec::new();
        let out = &mut Outgoing { buffer: &mut bytes, drain: &mut |_: &mut Vec<u8>| {} };
        let answer = responder.respond(&request.incoming(), out);
        (answer, bytes)
    }));
    match answered {
        Ok((Answer::Written { .. }, bytes)) => Some(bytes),
        Ok((Answer::Later(reply), _)) => poll_reply(reply, &*around, None).await,
        Ok((Answer::Work(work), _)) => run_blocking(work, request, around).await,
        Ok(_) => None,
        Err(_) => {
            count_panic();
            log::error(format_args!("a page panicked in an internal request"));
            None
        }
    }
}

/// Runs the parts of a handler as they are.
struct NoHook;

impl RunHook for NoHook {
    fn around(&self, part: &mut dyn FnMut()) {
        part();
    }
}

/// Runs a handler that may block on a thread for blocking calls, within `around`.
async fn run_blocking(
    work: Arc<dyn Work>,
    request: Retained,
    around: Arc<dyn RunHook>,
) -> Option<Vec<u8>> {
    let within = Arc::clone(&around);
    let worked = blocking(move || {
        let clock = Clock::kernel();
        let mut bytes = Vec::new();
        let done = catch_unwind(AssertUnwindSafe(|| {
            let mut follows = false;
            within.around(&mut || {
                let out = &mut Outgoing { buffer: &mut bytes, drain: &mut |_: &mut Vec<u8>| {} };
                follows = work.run(&request, &clock, out).follow.is_some();
            });
            follows
        }));
        match done {
            Ok(follows) => (!follows).then_some(bytes),
            Err(_) => {
                count_panic();
                log::error(format_args!("{} panicked in an internal request", work.name()));
                None
            }
        }
    });
    let mut worked = pin!(worked);
    poll_fn(|task| {
        if around.is_wanted(task.waker()) { worked.as_mut().poll(task) } else { Poll::Ready(None) }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, VecDeque};
    use std::future::pending;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{LazyLock, Mutex};

    use bine_http::{Event, Head, Limits, RequestParser};

    use super::*;
    use crate::address::ClientAddress;
    use crate::handler::{Body, Done, Finished, Identity, Incoming};

    /// Longer than a test may run.
    const LONG: Duration = Duration::from_secs(20);

    /// The receivers that handlers wait for, by the paths of their requests. Tests run at the same
    /// time, so each uses its own path.
    static GATES: LazyLock<Mutex<HashMap<&'static str, Receiver<()>>>> =
        LazyLock::new(Mutex::default);

    /// Answers by path, with the name of the program.
    struct TestProgram(&'static str);

    impl Handler for TestProgram {
        fn local(&self, _bench: HandlerContext) -> Box<dyn Responder> {
            Box::new(Self(self.0))
        }
    }

    impl Responder for TestProgram {
        fn identify(&mut self, head: &Head<'_>, _peer: ClientAddress) -> Identity {
            head.field_text("name").map_or(Identity::Anonymous, Identity::named)
        }

        fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
            let name = self.0;
            match &*request.head.path() {
                "/panic" => panic!("a panic of the test"),
                path if path.starts_with("/blocks/") => {
                    let gate = GATES.lock().unwrap().remove(path).unwrap();
                    gate.recv().unwrap();
                    out.buffer.extend_from_slice(format!("{name} for nobody").as_bytes());
                    Answer::Written { close: false }
                }
                "/collect" => Answer::Collect { limit: 1, on_disk: false },
                "/work" => Answer::Work(Arc::new(TestWork { panics: false })),
                "/work-panic" => Answer::Work(Arc::new(TestWork { panics: true })),
                "/later" => Answer::Later(Box::pin(async move {
                    tokio::task::yield_now().await;
                    Finished { bytes: name.into(), ..Finished::default() }
                })),
                "/later/panic" => Answer::Later(Box::pin(async {
                    tokio::task::yield_now().await;
                    panic!("a panic of the test")
                })),
                "/never" => Answer::Later(Box::pin(pending())),
                _ => {
                    let user = request.identity.user().unwrap_or("nobody");
                    out.buffer.extend_from_slice(format!("{name} for {user}").as_bytes());
                    Answer::Written { close: false }
                }
            }
        }

        fn last(&self) -> &'static str {
            self.0
        }
    }

    struct TestWork {
        panics: bool,
    }

    impl Work for TestWork {
        fn run(&self, _request: &Retained, _clock: &Clock, out: &mut Outgoing<'_>) -> Done {
            assert!(!self.panics, "a panic of the test");
            out.buffer.extend_from_slice(b"worked");
            Done { follow: None, close: false }
        }

        fn name(&self) -> &'static str {
            "errand"
        }
    }

    /// Counts the parts, and can cancel the request.
    #[derive(Default)]
    struct CountingScope {
        count: AtomicUsize,
        is_canceled: AtomicBool,
        waker: Mutex<Option<Waker>>,
    }

    impl CountingScope {
        fn cancel(&self) {
            self.is_canceled.store(true, Ordering::SeqCst);
            if let Some(waker) = self.waker.lock().unwrap().take() {
                waker.wake();
            }
        }
    }

    impl RunHook for CountingScope {
        fn is_wanted(&self, waker: &Waker) -> bool {
            *self.waker.lock().unwrap() = Some(waker.clone());
            !self.is_canceled.load(Ordering::SeqCst)
        }

        fn around(&self, part: &mut dyn FnMut()) {
            self.count.fetch_add(1, Ordering::Relaxed);
            part();
        }
    }

    /// A source that gives requests in order to the first thread that polls.
    #[derive(Default)]
    struct Fifo {
        waiting: Mutex<(VecDeque<super::InternalRequest>, Vec<Waker>)>,
        pool: Option<Arc<ThreadPool>>,
    }

    impl Fifo {
        fn push(&self, internal_request: super::InternalRequest) {
            let mut state = self.waiting.lock().unwrap();
            state.0.push_back(internal_request);
            state.1.drain(..).for_each(Waker::wake);
        }
    }

    impl InternalRequestSource for Fifo {
        fn poll_next(&self, _thread: usize, waker: &Waker) -> Poll<Option<super::InternalRequest>> {
            let mut state = self.waiting.lock().unwrap();
            match state.0.pop_front() {
                Some(internal_request) => Poll::Ready(Some(internal_request)),
                None => {
                    state.1.push(waker.clone());
                    Poll::Pending
                }
            }
        }

        fn pool(&self, _thread: usize) -> Option<Arc<ThreadPool>> {
            self.pool.clone()
        }
    }

    /// The threads of internal requests, with their source.
    struct Fixture {
        inside: InternalRunner,
        requests: Arc<Fifo>,
    }

    impl Fixture {
        fn new(time_limit: Duration, threads: usize) -> Self {
            Self::by(Fifo::default(), time_limit, threads)
        }

        fn by(requests: Fifo, time_limit: Duration, threads: usize) -> Self {
            let requests = Arc::new(requests);
            let handler: Arc<dyn Handler> = Arc::new(TestProgram("first"));
            let source: Arc<dyn InternalRequestSource> = Arc::<Fifo>::clone(&requests);
            let inside = InternalRunner::begin(&handler, time_limit, threads, &source).unwrap();
            Self { inside, requests }
        }

        /// Sends a request. The receiver gets its reply.
        fn begin(&self, path: &str, around: &Arc<CountingScope>) -> Receiver<Option<String>> {
            let (sender, replies) = channel();
            let text = |reply: Vec<u8>| String::from_utf8(reply).unwrap();
            let then = ReplyHandler::new(move |reply| drop(sender.send(reply.map(text))));
            let (request, around) = (request(path), Arc::clone(around));
            self.requests.push(super::InternalRequest { request, around, then });
            replies
        }

        /// Sends a request whose handler blocks until the sender sends.
        fn block(&self, path: &'static str) -> (Sender<()>, Receiver<Option<String>>) {
            let (release, gate) = channel();
            GATES.lock().unwrap().insert(path, gate);
            (release, self.begin(path, &Arc::default()))
        }

        /// The reply to a request, and the number of parts of the handler that ran.
        fn ask(&self, path: &str, around: &Arc<CountingScope>) -> (Option<String>, usize) {
            let reply = self.begin(path, around).recv_timeout(LONG).unwrap();
            (reply, around.count.load(Ordering::Relaxed))
        }

        #[track_caller]
        fn check(&self, path: &str, reply: Option<&str>, parts: usize) {
            let replies = self.ask(path, &Arc::default());
            assert_eq!(replies, (reply.map(str::to_owned), parts), "{path}");
        }
    }

    fn request(path: &str) -> Retained {
        let bytes = format!("GET {path} HTTP/1.1\r\nHost: a\r\nName: ann\r\n\r\n");
        let Event::Head(head) =
            RequestParser::new().receive(bytes.as_bytes(), &Limits::default()).event
        else {
            panic!("no head was parsed");
        };
        let peer = ClientAddress::tcp(([127, 0, 0, 1], 1).into());
        let (identity, exchange) = (&Identity::Anonymous, head.exchange());
        let (body, has_begun) = (Body::None, false);
        Retained::of(&Incoming { head, body, peer, identity, arrival: 0, has_begun, exchange })
    }

    #[test]
    fn returns_every_kind_of_reply_and_runs_each_part_within_its_scope() {
        let fixture = Fixture::new(LONG, 1);
        for _ in 0..2 {
            // Each request identifies its user again.
            fixture.check("/", Some("first for ann"), 1);
            fixture.check("/later", Some("first"), 3);
            fixture.check("/work", Some("worked"), 2);
            fixture.check("/collect", None, 1);
            fixture.check("/panic", None, 1);
            fixture.check("/later/panic", None, 3);
            fixture.check("/work-panic", None, 2);
        }
    }

    #[test]
    fn answers_on_the_thread_of_a_handler() {
        let program = TestProgram("first");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for (path, reply) in [
            ("/", Some("first for ann")),
            ("/later", Some("first")),
            ("/work", Some("worked")),
            ("/collect", None),
            ("/panic", None),
            ("/later/panic", None),
            ("/work-panic", None),
        ] {
            let bytes = runtime.block_on(answer_internally(&program, request(path)));
            assert_eq!(bytes.as_deref(), reply.map(str::as_bytes), "{path}");
        }
    }

    #[test]
    fn cancels_a_request_at_its_time_limit_and_continues() {
        let fixture = Fixture::new(Duration::from_millis(1), 1);
        assert_eq!(fixture.ask("/never", &Arc::default()).0, None);
        fixture.check("/", Some("first for ann"), 1);
    }

    #[test]
    fn does_not_run_a_canceled_request() {
        let around =
            Arc::new(CountingScope { is_canceled: true.into(), ..CountingScope::default() });
        assert_eq!(Fixture::new(LONG, 1).ask("/", &around), (None, 0));
    }

    #[test]
    fn drops_a_waiting_request_when_it_is_canceled() {
        let (fixture, around) = (Fixture::new(LONG, 1), Arc::<CountingScope>::default());
        let replies = fixture.begin("/never", &around);
        // Once the next request is answered, this one awaits: the thread takes them in order.
        fixture.check("/", Some("first for ann"), 1);
        around.cancel();
        assert_eq!(replies.recv_timeout(LONG / 2), Ok(None));
    }

    #[test]
    fn runs_requests_on_other_threads_while_one_blocks() {
        let fixture = Fixture::new(LONG, 2);
        let (release, replies) = fixture.block("/blocks/one-of-two");
        fixture.check("/", Some("first for ann"), 1);
        release.send(()).unwrap();
        assert_eq!(replies.recv_timeout(LONG), Ok(Some("first for nobody".to_owned())));
    }

    #[test]
    fn reports_running_handlers_to_the_pool() {
        let pool = Arc::new(Admission::off()).add_pool(1);
        let requests = Fifo { pool: Some(Arc::clone(&pool)), ..Fifo::default() };
        let fixture = Fixture::by(requests, LONG, 1);
        let (release, replies) = fixture.block("/blocks/the-pool");
        let began = Instant::now();
        while pool.running() == 0 {
            assert!(began.elapsed() < LONG, "no thread runs the handler");
        }
        assert_eq!(pool.running(), 1);
        release.send(()).unwrap();
        assert_eq!(replies.recv_timeout(LONG), Ok(Some("first for nobody".to_owned())));
        for path in ["/", "/later", "/work", "/panic", "/later/panic", "/work-panic"] {
            fixture.ask(path, &Arc::default());
            assert_eq!(pool.running(), 0, "{path}");
        }
    }

    #[test]
    fn sends_requests_to_the_new_program_after_a_replacement() {
        let fixture = Fixture::new(LONG, 1);
        fixture.check("/", Some("first for ann"), 1);
        let second: Arc<dyn Handler> = Arc::new(TestProgram("second"));
        fixture.inside.replace(&second);
        fixture.check("/", Some("second for ann"), 1);
        fixture.check("/later", Some("second"), 3);
    }

    #[test]
    fn reports_no_reply_when_a_request_is_dropped() {
        let (sender, replies) = channel();
        drop(ReplyHandler::new(move |reply| sender.send(reply).unwrap()));
        assert_eq!(replies.recv(), Ok(None));
    }
}
