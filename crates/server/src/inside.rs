//! Decides how a request is answered that comes from no peer: on threads of their own, many at one time where they wait
//! for something, and for nobody longer than a handler may take.

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
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{LocalSet, spawn_local};

use crate::blocking::blocking;
use crate::handler::{Answer, Bench, Handler, LaterReply, Outgoing, Responder, Retained, Work};
use crate::metrics::count_panic;
use crate::time::Clock;

/// Threads that ask a program what it would answer. The program is asked as it is by a peer, from its filters on; no line
/// is written into the access log.
///
/// The threads end when all clones of this are gone.
#[derive(Clone, Debug)]
pub struct Inside(Arc<[UnboundedSender<Arc<dyn Handler>>]>);

/// Where the threads get their errands. The source decides on the order, and how many are under way.
pub trait Errands: Send + Sync {
    /// The next errand for a thread, when it is due; `None` ends the thread. While there is none, `waker` is to be woken
    /// when there may be one.
    ///
    /// A thread asks whenever it has nothing to poll, also while its errands wait for something.
    fn poll_next(&self, thread: usize, waker: &Waker) -> Poll<Option<Errand>>;

    /// The pool to which a thread reports how long it runs handlers, asked for once, when the thread begins. A handler
    /// that may block runs on another thread, and is not reported.
    fn pool(&self, _thread: usize) -> Option<Arc<ThreadPool>> {
        None
    }
}

/// A request from inside.
pub struct Errand {
    /// What is asked. It has no content.
    pub request: Retained,
    /// Is around all that runs of the handler.
    pub around: Arc<dyn Around>,
    /// Gets the whole reply.
    pub then: Then,
}

/// Gets the whole reply to an [`Errand`], once. `None`: there is none, because the handler panicked or took too long,
/// answers with something else than bytes, or nobody is there any more who could ask it.
pub struct Then(Option<Telling>);

/// What is told of a reply.
type Telling = Box<dyn FnOnce(Option<Vec<u8>>) + Send>;

impl Then {
    /// Has `then` called.
    pub fn new(then: impl FnOnce(Option<Vec<u8>>) + Send + 'static) -> Self {
        Self(Some(Box::new(then)))
    }

    fn tell(mut self, reply: Option<Vec<u8>>) {
        if let Some(then) = self.0.take() {
            then(reply);
        }
    }
}

impl Drop for Then {
    fn drop(&mut self) {
        if let Some(then) = self.0.take() {
            then(None);
        }
    }
}

/// What is around each part of a handler that runs without a pause, on whatever thread.
pub trait Around: Send + Sync {
    /// Whether anybody wants to know still. It is asked when an errand begins and at each of its awaits; `waker` may be
    /// woken when the answer changes, so that the errand is dropped at once.
    fn is_wanted(&self, _waker: &Waker) -> bool {
        true
    }

    /// Calls `part`, once.
    fn around(&self, part: &mut dyn FnMut());
}

/// What a thread does next.
enum Step {
    /// From here on it asks this program.
    Replace(Arc<dyn Handler>),
    Ask(Errand),
    End,
}

impl Inside {
    /// Has so many threads ask `handler` what `errands` tells, and wait for each reply for no longer than `patience`.
    ///
    /// # Errors
    ///
    /// There is no thread, or no runtime for it.
    pub fn begin(
        handler: &Arc<dyn Handler>,
        patience: Duration,
        threads: usize,
        errands: &Arc<dyn Errands>,
    ) -> io::Result<Self> {
        let begin = |number: usize| {
            let (sender, replaced) = unbounded_channel();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (handler, errands) = (Arc::clone(handler), Arc::clone(errands));
            let inside = thread::Builder::new().name(format!("inside-{number}"));
            inside.spawn(move || {
                let tasks = LocalSet::new();
                let pool = errands.pool(number);
                let own = Thread { number, errands, pool, patience };
                runtime.block_on(tasks.run_until(own.serve(handler, replaced)));
            })?;
            Ok(sender)
        };
        (0..threads.max(1)).map(begin).collect::<io::Result<_>>().map(Self)
    }

    /// Asks another program from here on.
    pub fn replace(&self, handler: &Arc<dyn Handler>) {
        for thread in &*self.0 {
            let _ = thread.send(Arc::clone(handler));
        }
    }
}

struct Thread {
    number: usize,
    errands: Arc<dyn Errands>,
    pool: Option<Arc<ThreadPool>>,
    patience: Duration,
}

impl Thread {
    async fn serve(
        self,
        handler: Arc<dyn Handler>,
        mut replaced: UnboundedReceiver<Arc<dyn Handler>>,
    ) {
        let clock = Rc::new(Clock::kernel());
        // What the program asks of itself has been admitted already.
        let admission = Arc::new(Admission::off());
        let local = |handler: Arc<dyn Handler>| {
            let (clock, admission) = (Rc::clone(&clock), Arc::clone(&admission));
            handler.local(Bench { clock, chunk_at: usize::MAX, admission })
        };
        let mut responder = local(handler);
        loop {
            match self.step(&mut replaced).await {
                // Whoever cannot make its part for a thread serves nobody, and this thread goes on with the old.
                Step::Replace(handler) => match catch_unwind(AssertUnwindSafe(|| local(handler))) {
                    Ok(new) => responder = new,
                    Err(_) => {
                        log::error(format_args!("a program could not be asked from inside"));
                    }
                },
                Step::Ask(errand) => {
                    clock.turn();
                    answer(&mut *responder, &clock, &self, errand);
                }
                Step::End => return,
            }
            // What it has begun has its turn.
            tokio::task::yield_now().await;
        }
    }

    async fn step(&self, replaced: &mut UnboundedReceiver<Arc<dyn Handler>>) -> Step {
        poll_fn(|task| match replaced.poll_recv(task) {
            Poll::Ready(Some(handler)) => Poll::Ready(Step::Replace(handler)),
            Poll::Ready(None) => Poll::Ready(Step::End),
            Poll::Pending => self
                .errands
                .poll_next(self.number, task.waker())
                .map(|errand| errand.map_or(Step::End, Step::Ask)),
        })
        .await
    }
}

/// Reports to a pool how long its thread runs a part of a handler, also when that panics.
struct Busy<'t> {
    pool: &'t ThreadPool,
    began: Instant,
}

impl<'t> Busy<'t> {
    fn begin(pool: &'t ThreadPool) -> Self {
        pool.began();
        Self { pool, began: Instant::now() }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.pool.ended(self.began.elapsed());
    }
}

fn answer(responder: &mut dyn Responder, clock: &Clock, own: &Thread, errand: Errand) {
    let Thread { patience, pool, .. } = own;
    let patience = *patience;
    let Errand { mut request, around, then } = errand;
    if !around.is_wanted(Waker::noop()) {
        return then.tell(None);
    }
    let mut bytes = Vec::new();
    // It may have waited since it was made.
    request.arrival = clock.unix();
    let answered = catch_unwind(AssertUnwindSafe(|| {
        let mut answer = None;
        let _busy = pool.as_deref().map(Busy::begin);
        around.around(&mut || {
            request.who = responder.admit(&request.incoming().head, request.peer);
            let out = &mut Outgoing { buffer: &mut bytes, drain: &mut |_: &mut Vec<u8>| {} };
            answer = Some(responder.respond(&request.incoming(), out));
        });
        answer
    }));
    match answered {
        Ok(Some(Answer::Written { .. })) => then.tell(Some(bytes)),
        Ok(Some(Answer::Later(reply))) => {
            let pool = pool.clone();
            spawn_local(async move {
                let reply = finished(reply, &*around, pool.as_deref());
                then.tell(tokio::time::timeout(patience, reply).await.unwrap_or_else(|_| {
                    log::warn(format_args!(
                        "a page took longer than {patience:?} to be made again"
                    ));
                    None
                }));
            });
        }
        Ok(Some(Answer::Work(work))) => {
            spawn_local(async move {
                let reply = tokio::time::timeout(patience, worked(work, request, around)).await;
                then.tell(reply.unwrap_or_default());
            });
        }
        Ok(_) => then.tell(None),
        Err(_) => {
            count_panic();
            log::error(format_args!("{} panicked, asked from inside", responder.last()));
            then.tell(None);
        }
    }
}

/// The reply of an async handler, each poll of which is within `around`.
async fn finished(
    mut reply: LaterReply,
    around: &dyn Around,
    pool: Option<&ThreadPool>,
) -> Option<Vec<u8>> {
    let polled = poll_fn(|task| {
        if !around.is_wanted(task.waker()) {
            return Poll::Ready(None);
        }
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let mut polled = Poll::Pending;
            let _busy = pool.map(Busy::begin);
            around.around(&mut || polled = reply.as_mut().poll(task));
            polled
        }));
        // A page is written by the last poll, and what it shows may panic then.
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

/// The reply of a handler that may block.
async fn worked(
    work: Arc<dyn Work>,
    request: Retained,
    around: Arc<dyn Around>,
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
                log::error(format_args!("{} panicked, asked from inside", work.name()));
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
    use std::collections::VecDeque;
    use std::future::pending;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, channel};

    use bine_http::{Event, Head, Limits, RequestParser};

    use super::*;
    use crate::address::Peer;
    use crate::handler::{Body, Done, Finished, Incoming, Who};

    /// Longer than a test may take.
    const LONG: Duration = Duration::from_secs(20);

    /// At which handlers block.
    static GATES: Mutex<Vec<Receiver<()>>> = Mutex::new(Vec::new());

    /// Answers by path, and says of which program it is.
    struct Program(&'static str);

    impl Handler for Program {
        fn local(&self, _bench: Bench) -> Box<dyn Responder> {
            Box::new(Self(self.0))
        }
    }

    impl Responder for Program {
        fn admit(&mut self, head: &Head<'_>, _peer: Peer) -> Who {
            head.field_text("name").map_or(Who::Anonymous, Who::named)
        }

        fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
            let own = self.0;
            match &*request.head.path() {
                "/panic" => panic!("it was told to"),
                "/blocks" => {
                    let gate = GATES.lock().unwrap().pop().unwrap();
                    gate.recv().unwrap();
                    out.buffer.extend_from_slice(format!("{own} for nobody").as_bytes());
                    Answer::Written { close: false }
                }
                "/collect" => Answer::Collect { limit: 1, on_disk: false },
                "/work" => Answer::Work(Arc::new(Errand { panics: false })),
                "/work-panic" => Answer::Work(Arc::new(Errand { panics: true })),
                "/later" => Answer::Later(Box::pin(async move {
                    tokio::task::yield_now().await;
                    Finished { bytes: own.into(), ..Finished::default() }
                })),
                "/later/panic" => Answer::Later(Box::pin(async {
                    tokio::task::yield_now().await;
                    panic!("it was told to")
                })),
                "/never" => Answer::Later(Box::pin(pending())),
                _ => {
                    let user = request.who.user().unwrap_or("nobody");
                    out.buffer.extend_from_slice(format!("{own} for {user}").as_bytes());
                    Answer::Written { close: false }
                }
            }
        }

        fn last(&self) -> &'static str {
            self.0
        }
    }

    struct Errand {
        panics: bool,
    }

    impl Work for Errand {
        fn run(&self, _request: &Retained, _clock: &Clock, out: &mut Outgoing<'_>) -> Done {
            assert!(!self.panics, "it was told to");
            out.buffer.extend_from_slice(b"worked");
            Done { follow: None, close: false }
        }

        fn name(&self) -> &'static str {
            "errand"
        }
    }

    /// Counts the parts, and says whether anybody wants to know.
    #[derive(Default)]
    struct Parts {
        count: AtomicUsize,
        is_unwanted: AtomicBool,
        waker: Mutex<Option<Waker>>,
    }

    impl Parts {
        fn leave(&self) {
            self.is_unwanted.store(true, Ordering::SeqCst);
            if let Some(waker) = self.waker.lock().unwrap().take() {
                waker.wake();
            }
        }
    }

    impl Around for Parts {
        fn is_wanted(&self, waker: &Waker) -> bool {
            *self.waker.lock().unwrap() = Some(waker.clone());
            !self.is_unwanted.load(Ordering::SeqCst)
        }

        fn around(&self, part: &mut dyn FnMut()) {
            self.count.fetch_add(1, Ordering::Relaxed);
            part();
        }
    }

    /// Errands in their order, for whichever thread asks first.
    #[derive(Default)]
    struct InOrder {
        waiting: Mutex<(VecDeque<super::Errand>, Vec<Waker>)>,
        pool: Option<Arc<ThreadPool>>,
    }

    impl InOrder {
        fn push(&self, errand: super::Errand) {
            let mut own = self.waiting.lock().unwrap();
            own.0.push_back(errand);
            own.1.drain(..).for_each(Waker::wake);
        }
    }

    impl Errands for InOrder {
        fn poll_next(&self, _thread: usize, waker: &Waker) -> Poll<Option<super::Errand>> {
            let mut own = self.waiting.lock().unwrap();
            match own.0.pop_front() {
                Some(errand) => Poll::Ready(Some(errand)),
                None => {
                    own.1.push(waker.clone());
                    Poll::Pending
                }
            }
        }

        fn pool(&self, _thread: usize) -> Option<Arc<ThreadPool>> {
            self.pool.clone()
        }
    }

    /// A program that is asked from inside by so many threads.
    struct Asked {
        inside: Inside,
        errands: Arc<InOrder>,
    }

    impl Asked {
        fn new(patience: Duration, threads: usize) -> Self {
            Self::by(InOrder::default(), patience, threads)
        }

        fn by(errands: InOrder, patience: Duration, threads: usize) -> Self {
            let errands = Arc::new(errands);
            let handler: Arc<dyn Handler> = Arc::new(Program("first"));
            let source: Arc<dyn Errands> = Arc::<InOrder>::clone(&errands);
            let inside = Inside::begin(&handler, patience, threads, &source).unwrap();
            Self { inside, errands }
        }

        /// Asks; the reply will be told.
        fn begin(&self, path: &str, around: &Arc<Parts>) -> Receiver<Option<String>> {
            let (tell, told) = channel();
            let text = |reply: Vec<u8>| String::from_utf8(reply).unwrap();
            let then = Then::new(move |reply| drop(tell.send(reply.map(text))));
            let (request, around) = (request(path), Arc::clone(around));
            self.errands.push(super::Errand { request, around, then });
            told
        }

        /// What comes of an errand, and in how many parts it ran.
        fn ask(&self, path: &str, around: &Arc<Parts>) -> (Option<String>, usize) {
            let reply = self.begin(path, around).recv_timeout(LONG).unwrap();
            (reply, around.count.load(Ordering::Relaxed))
        }

        #[track_caller]
        fn check(&self, path: &str, reply: Option<&str>, parts: usize) {
            let told = self.ask(path, &Arc::default());
            assert_eq!(told, (reply.map(str::to_owned), parts), "{path}");
        }
    }

    fn request(path: &str) -> Retained {
        let bytes = format!("GET {path} HTTP/1.1\r\nHost: a\r\nName: ann\r\n\r\n");
        let Event::Head(head) =
            RequestParser::new().receive(bytes.as_bytes(), &Limits::default()).event
        else {
            panic!("it is a request");
        };
        let peer = Peer::tcp(([127, 0, 0, 1], 1).into());
        let (who, exchange) = (&Who::Anonymous, head.exchange());
        let (body, has_begun) = (Body::None, false);
        Retained::of(&Incoming { head, body, peer, who, arrival: 0, has_begun, exchange })
    }

    #[test]
    fn every_kind_of_answer_comes_or_nothing_does_and_all_that_runs_is_within() {
        let asked = Asked::new(LONG, 1);
        for _ in 0..2 {
            // Who asks is found out again, whoever asked first.
            asked.check("/", Some("first for ann"), 1);
            asked.check("/later", Some("first"), 3);
            asked.check("/work", Some("worked"), 2);
            asked.check("/collect", None, 1);
            asked.check("/panic", None, 1);
            asked.check("/later/panic", None, 3);
            asked.check("/work-panic", None, 2);
        }
    }

    #[test]
    fn what_takes_too_long_is_given_up_and_holds_nobody_up() {
        let asked = Asked::new(Duration::from_millis(1), 1);
        assert_eq!(asked.ask("/never", &Arc::default()).0, None);
        asked.check("/", Some("first for ann"), 1);
    }

    #[test]
    fn what_nobody_wants_to_know_is_not_asked() {
        let around = Arc::new(Parts { is_unwanted: true.into(), ..Parts::default() });
        assert_eq!(Asked::new(LONG, 1).ask("/", &around), (None, 0));
    }

    #[test]
    fn drops_an_errand_that_waits_when_it_is_not_wanted_any_more() {
        let (asked, around) = (Asked::new(LONG, 1), Arc::<Parts>::default());
        let told = asked.begin("/never", &around);
        // It waits before the next is asked: the thread takes them in their order.
        asked.check("/", Some("first for ann"), 1);
        around.leave();
        assert_eq!(told.recv_timeout(LONG / 2), Ok(None));
    }

    #[test]
    fn asks_on_other_threads_while_one_blocks() {
        let asked = Asked::new(LONG, 2);
        let (let_go, gate) = channel();
        GATES.lock().unwrap().push(gate);
        let told = asked.begin("/blocks", &Arc::default());
        asked.check("/", Some("first for ann"), 1);
        let_go.send(()).unwrap();
        assert_eq!(told.recv_timeout(LONG), Ok(Some("first for nobody".to_owned())));
    }

    #[test]
    fn reports_to_its_pool_which_threads_run_a_handler() {
        let pool = Arc::new(Admission::off()).add_pool(1);
        let errands = InOrder { pool: Some(Arc::clone(&pool)), ..InOrder::default() };
        let asked = Asked::by(errands, LONG, 1);
        let (let_go, gate) = channel();
        GATES.lock().unwrap().push(gate);
        let told = asked.begin("/blocks", &Arc::default());
        let began = Instant::now();
        while pool.running() == 0 {
            assert!(began.elapsed() < LONG, "no thread runs the handler");
        }
        assert_eq!(pool.running(), 1);
        let_go.send(()).unwrap();
        assert_eq!(told.recv_timeout(LONG), Ok(Some("first for nobody".to_owned())));
        for path in ["/", "/later", "/work", "/panic", "/later/panic", "/work-panic"] {
            asked.ask(path, &Arc::default());
            assert_eq!(pool.running(), 0, "{path}");
        }
    }

    #[test]
    fn another_program_answers_when_it_has_come() {
        let asked = Asked::new(LONG, 1);
        asked.check("/", Some("first for ann"), 1);
        let second: Arc<dyn Handler> = Arc::new(Program("second"));
        asked.inside.replace(&second);
        asked.check("/", Some("second for ann"), 1);
        asked.check("/later", Some("second"), 3);
    }

    #[test]
    fn tells_that_there_is_no_reply_when_an_errand_is_dropped() {
        let (tell, told) = channel();
        drop(Then::new(move |reply| tell.send(reply).unwrap()));
        assert_eq!(told.recv(), Ok(None));
    }
}
