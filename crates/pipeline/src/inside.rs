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

use crate::blocking::blocking;
use crate::clock::Clock;
use crate::handler::{Answer, Bench, Handler, LaterReply, Outgoing, Responder, Retained, Work};
use crate::log;

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
pub struct Then(Option<Box<dyn FnOnce(Option<Vec<u8>>) + Send>>);

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
    let local = |handler: Arc<dyn Handler>| {
        handler.local(Bench { clock: Rc::clone(&clock), chunk_at: usize::MAX })
    };
    let mut responder = local(handler);
    while let Some(letter) = letters.recv().await {
        match letter {
            Letter::Replace(handler) => responder = local(handler),
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
        polled.map_or(Poll::Ready(None), |polled| polled.map(Some))
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
                log::error(format_args!("{} panicked, asked from inside", work.name()));
                None
            }
        }
    });
    worked.await
}
