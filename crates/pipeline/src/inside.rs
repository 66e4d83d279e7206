//! Decides how a request is answered that comes from no peer: on a thread of its own, one after the other where they
//! need not wait, and for nobody longer than a handler may take.

use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{LocalSet, spawn_local};

use crate::admission::Admission;
use crate::blocking::blocking;
use crate::clock::Clock;
use crate::handler::{Answer, Bench, Handler, LaterReply, Outgoing, Responder, Retained, Work};
use crate::log;
use crate::tally::count_panic;

/// Asks a program what it would answer, from any thread. The program is asked as it is by a peer, from its filters on; no
/// line is written into the access log.
///
/// Whoever asks bounds how many requests are under way.
#[derive(Clone, Debug)]
pub struct Inside(UnboundedSender<Letter>);

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
    /// Whether anybody wants to know still. It is asked once, when the turn of an errand has come.
    fn is_wanted(&self) -> bool {
        true
    }

    /// Calls `part`, once.
    fn around(&self, part: &mut dyn FnMut());
}

enum Letter {
    Errand(Errand),
    /// From here on it is this program.
    Replace(Arc<dyn Handler>),
}

impl Inside {
    /// Asks `handler`, which may take so long for a reply.
    ///
    /// # Errors
    ///
    /// There is no thread, or no runtime for it.
    pub fn begin(handler: Arc<dyn Handler>, patience: Duration) -> io::Result<Self> {
        let (sender, letters) = unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let inside = thread::Builder::new().name("inside".to_owned());
        inside.spawn(move || {
            let tasks = LocalSet::new();
            runtime.block_on(tasks.run_until(serve(handler, patience, letters)));
        })?;
        Ok(Self(sender))
    }

    /// Asks; what comes of it is told by [`Errand::then`], in any case.
    pub fn ask(&self, errand: Errand) {
        // The thread ends when nobody can ask any more.
        let _ = self.0.send(Letter::Errand(errand));
    }

    /// Asks another program from here on.
    pub fn replace(&self, handler: Arc<dyn Handler>) {
        let _ = self.0.send(Letter::Replace(handler));
    }
}

async fn serve(
    handler: Arc<dyn Handler>,
    patience: Duration,
    mut letters: UnboundedReceiver<Letter>,
) {
    let clock = Rc::new(Clock::kernel());
    // What the program asks of itself has been admitted already.
    let admission = Arc::new(Admission::off());
    let local = |handler: Arc<dyn Handler>| {
        let (clock, admission) = (Rc::clone(&clock), Arc::clone(&admission));
        handler.local(Bench { clock, chunk_at: usize::MAX, admission })
    };
    let mut responder = local(handler);
    while let Some(letter) = letters.recv().await {
        match letter {
            Letter::Replace(handler) => {
                // Whoever cannot make its part for a thread serves nobody, and this thread goes on with the old.
                match catch_unwind(AssertUnwindSafe(|| local(handler))) {
                    Ok(new) => responder = new,
                    Err(_) => log::error(format_args!("a program could not be asked from inside")),
                }
            }
            Letter::Errand(errand) => {
                clock.turn();
                answer(&mut *responder, &clock, patience, errand);
            }
        }
        // What it has begun has its turn.
        tokio::task::yield_now().await;
    }
}

fn answer(responder: &mut dyn Responder, clock: &Clock, patience: Duration, errand: Errand) {
    let Errand { mut request, around, then } = errand;
    if !around.is_wanted() {
        return then.tell(None);
    }
    let mut bytes = Vec::new();
    // It may have waited since it was made.
    request.arrival = clock.unix();
    let answered = catch_unwind(AssertUnwindSafe(|| {
        let mut answer = None;
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
            spawn_local(async move {
                let reply = finished(reply, &*around);
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
async fn finished(mut reply: LaterReply, around: &dyn Around) -> Option<Vec<u8>> {
    let polled = poll_fn(|task| {
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let mut polled = Poll::Pending;
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
    let worked = blocking(move || {
        let clock = Clock::kernel();
        let mut bytes = Vec::new();
        let done = catch_unwind(AssertUnwindSafe(|| {
            let mut follows = false;
            around.around(&mut || {
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
    worked.await
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    use bine_http::{Event, Head, Limits, Machine};

    use super::*;
    use crate::address::Peer;
    use crate::handler::{Body, Done, Finished, Incoming, Who};

    /// Longer than a test may take.
    const LONG: Duration = Duration::from_secs(20);

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
    }

    impl Around for Parts {
        fn is_wanted(&self) -> bool {
            !self.is_unwanted.load(Ordering::Relaxed)
        }

        fn around(&self, part: &mut dyn FnMut()) {
            self.count.fetch_add(1, Ordering::Relaxed);
            part();
        }
    }

    fn request(path: &str) -> Retained {
        let bytes = format!("GET {path} HTTP/1.1\r\nHost: a\r\nName: ann\r\n\r\n");
        let Event::Head(head) = Machine::new().receive(bytes.as_bytes(), &Limits::default()).event
        else {
            panic!("it is a request");
        };
        let peer = Peer::tcp(([127, 0, 0, 1], 1).into());
        let (who, exchange) = (&Who::Anonymous, head.exchange());
        let (body, has_begun) = (Body::None, false);
        Retained::of(&Incoming { head, body, peer, who, arrival: 0, has_begun, exchange })
    }

    /// What comes of an errand, and in how many parts it ran.
    fn ask(inside: &Inside, path: &str, around: &Arc<Parts>) -> (Option<String>, usize) {
        let (tell, told) = channel();
        let then = Then::new(move |reply| tell.send(reply).unwrap());
        let (request, part) = (request(path), Arc::clone(around));
        inside.ask(super::Errand { request, around: part, then });
        let reply = told.recv_timeout(LONG).unwrap();
        let text = reply.map(|reply| String::from_utf8(reply).unwrap());
        (text, around.count.load(Ordering::Relaxed))
    }

    #[track_caller]
    fn check(inside: &Inside, path: &str, reply: Option<&str>, parts: usize) {
        let told = ask(inside, path, &Arc::default());
        assert_eq!(told, (reply.map(str::to_owned), parts), "{path}");
    }

    #[test]
    fn every_kind_of_answer_comes_or_nothing_does_and_all_that_runs_is_within() {
        let inside = Inside::begin(Arc::new(Program("first")), LONG).unwrap();
        for _ in 0..2 {
            // Who asks is found out again, whoever asked first.
            check(&inside, "/", Some("first for ann"), 1);
            check(&inside, "/later", Some("first"), 3);
            check(&inside, "/work", Some("worked"), 2);
            check(&inside, "/collect", None, 1);
            check(&inside, "/panic", None, 1);
            check(&inside, "/later/panic", None, 3);
            check(&inside, "/work-panic", None, 2);
        }
    }

    #[test]
    fn what_takes_too_long_is_given_up_and_holds_nobody_up() {
        let inside = Inside::begin(Arc::new(Program("first")), Duration::from_millis(1)).unwrap();
        assert_eq!(ask(&inside, "/never", &Arc::default()).0, None);
        check(&inside, "/", Some("first for ann"), 1);
    }

    #[test]
    fn what_nobody_wants_to_know_is_not_asked() {
        let inside = Inside::begin(Arc::new(Program("first")), LONG).unwrap();
        let around = Arc::new(Parts { is_unwanted: true.into(), ..Parts::default() });
        assert_eq!(ask(&inside, "/", &around), (None, 0));
    }

    #[test]
    fn another_program_answers_when_it_has_come() {
        let inside = Inside::begin(Arc::new(Program("first")), LONG).unwrap();
        check(&inside, "/", Some("first for ann"), 1);
        inside.replace(Arc::new(Program("second")));
        check(&inside, "/", Some("second for ann"), 1);
        check(&inside, "/later", Some("second"), 3);
    }

    #[test]
    fn who_asks_nobody_is_told_so() {
        let (sender, letters) = unbounded_channel();
        drop(letters);
        assert_eq!(ask(&Inside(sender), "/", &Arc::default()), (None, 0));
    }
}
