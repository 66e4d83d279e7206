//! The handler that compresses the responses of another one, whichever thread writes them.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bine_http::{Head, Method};
use bine_server::{
    Answer, ClientAddress, Clock, Done, Finished, Follow, Handler, HandlerContext, Identity,
    Incoming, Outgoing, ReplyFuture, Responder, Retained, ServerRefusal, Work, blocking, timeout,
};

use super::decision::{ClientWish, has_preference};
use super::stage::{SlowReply, Stage};
use crate::response_notes::ResponseNotes;

/// A page that is sent while it is rendered is collected up to this many bytes. A longer one is sent as
/// it is.
const MAX_COLLECTED: usize = 1 << 20;
/// It is collected for at most this time: the client of a slow page sees its beginning early.
const MAX_COLLECTION: Duration = Duration::from_secs(1);
/// A reply that waits longer for a thread is sent as it is.
const PATIENCE: Duration = Duration::from_secs(1);

/// Compresses the responses of `inner`.
pub(super) struct Compressing {
    pub(super) inner: Arc<dyn Handler>,
    pub(super) stage: Arc<Stage>,
}

struct CompressingResponder {
    inner: Box<dyn Responder>,
    stage: Arc<Stage>,
}

/// Work of `inner`, with the notes from its call on the event loop.
struct CompressingWork {
    inner: Arc<dyn Work>,
    stage: Arc<Stage>,
    notes: ResponseNotes,
}

impl Handler for Compressing {
    fn local(&self, handler_context: HandlerContext) -> Box<dyn Responder> {
        // The program itself reads the replies to its own requests.
        let is_internal = handler_context.is_internal;
        let inner = self.inner.local(handler_context);
        if is_internal {
            return inner;
        }
        Box::new(CompressingResponder { inner, stage: Arc::clone(&self.stage) })
    }
}

impl Responder for CompressingResponder {
    fn identify(&mut self, head: &Head<'_>, peer: ClientAddress) -> Identity {
        self.inner.identify(head, peer)
    }

    fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let (stage, inner) = (&self.stage, &mut self.inner);
        let mark = out.buffer.len();
        let mut collection = Collection::new(stage, request, ResponseNotes::default(), mark);
        let Outgoing { buffer, drain } = out;
        let mut collect = |buffer: &mut Vec<u8>| collection.take(buffer, drain);
        let outer = ResponseNotes::default().enter();
        let answer = inner.respond(request, &mut Outgoing { buffer, drain: &mut collect });
        let notes = outer.restore();
        match answer {
            answer if collection.is_sent() => answer,
            // The usual response is short: it costs these comparisons.
            Answer::Written { close } if stage.is_unchanged(request, &out.buffer[mark..]) => {
                Answer::Written { close }
            }
            Answer::Collect { .. } | Answer::Upgrade(_) | Answer::Suspend(_) => answer,
            _ if !has_preference(request) => answer,
            answer => {
                let wish = stage.wish_of(request);
                compressed(stage, wish, notes, answer, request, (out.buffer, mark))
            }
        }
    }

    fn failed(&mut self, request: &Incoming<'_>, out: &mut Vec<u8>) {
        self.inner.failed(request, out);
    }

    fn refuse(
        &mut self,
        request: Option<&Incoming<'_>>,
        refusal: &ServerRefusal,
        out: &mut Outgoing<'_>,
    ) {
        self.inner.refuse(request, refusal, out);
    }

    fn begins(&self) -> bool {
        self.inner.begins()
    }

    fn last(&self) -> &'static str {
        self.inner.last()
    }

    fn is_unlogged(&self) -> bool {
        self.inner.is_unlogged()
    }
}

impl Work for CompressingWork {
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        let incoming = request.incoming();
        let mark = out.buffer.len();
        let mut collection = Collection::new(&self.stage, &incoming, self.notes, mark);
        let Outgoing { buffer, drain } = out;
        let mut collect = |buffer: &mut Vec<u8>| collection.take(buffer, drain);
        let outer = self.notes.enter();
        let done = self.inner.run(request, clock, &mut Outgoing { buffer, drain: &mut collect });
        let notes = outer.restore();
        let bytes = &mut *out.buffer;
        if collection.is_sent()
            || (done.follow.is_none() && self.stage.is_unchanged(&incoming, &bytes[mark..]))
        {
            return done;
        }
        let wish = self.stage.wish_of(&incoming);
        let follow = match done.follow {
            None => {
                self.stage.encode_written(&wish, notes, (bytes, mark), true);
                None
            }
            Some(follow) => self.stage.encode_follow(&wish, notes, (bytes, mark), follow),
        };
        Done { follow, close: done.close }
    }

    fn failed(&self, request: &Incoming<'_>, clock: &Clock, out: &mut Vec<u8>) {
        self.inner.failed(request, clock, out);
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }
}

impl Stage {
    /// Whether a written reply certainly stays as it is, because it is short.
    fn is_unchanged(&self, request: &Incoming<'_>, reply: &[u8]) -> bool {
        (reply.len() as u64) < self.least()
            && request.exchange.method != Method::Head
            && reply.get(9..12) != Some(b"304")
    }

    fn encode_follow(
        &self,
        wish: &ClientWish,
        notes: ResponseNotes,
        (bytes, mark): (&mut Vec<u8>, usize),
        follow: Follow,
    ) -> Option<Follow> {
        match follow {
            Follow::File(part) => {
                let is_written = self.encode_file(wish, notes, (bytes, mark), &part);
                (!is_written).then_some(Follow::File(part))
            }
            Follow::Stream(stream) => {
                Some(Follow::Stream(self.encode_stream(wish, notes, (bytes, mark), stream)))
            }
            follow => Some(follow),
        }
    }
}

/// A page that is sent while it is rendered. It stays in the buffer if it will be encoded, up to a
/// limit.
struct Collection<'r> {
    stage: &'r Stage,
    request: &'r Incoming<'r>,
    notes: ResponseNotes,
    /// The start of the reply in the buffer.
    mark: usize,
    /// Whether the reply stays in the buffer; `None` until its first part would be sent.
    is_collected: Option<bool>,
    began: Option<Instant>,
}

impl<'r> Collection<'r> {
    const fn new(
        stage: &'r Stage,
        request: &'r Incoming<'r>,
        notes: ResponseNotes,
        mark: usize,
    ) -> Self {
        Self { stage, request, notes, mark, is_collected: None, began: None }
    }

    /// Passes the reply on to `drain`, unless it stays in the buffer.
    fn take(&mut self, buffer: &mut Vec<u8>, drain: &mut dyn FnMut(&mut Vec<u8>)) {
        let Self { stage, request, notes, mark, .. } = *self;
        let is_collected = self.is_collected.get_or_insert_with(|| {
            let encodes = |reply: &[u8]| stage.encodes(&stage.wish_of(request), notes, reply);
            has_preference(request) && buffer.get(mark..).is_some_and(encodes)
        });
        let began = self.began.get_or_insert_with(Instant::now);
        *is_collected &= buffer.len() - mark.min(buffer.len()) <= MAX_COLLECTED
            && began.elapsed() <= MAX_COLLECTION;
        if !*is_collected {
            drain(buffer);
        }
    }

    /// Whether a part of the reply was sent, so that it must stay as it is.
    fn is_sent(&self) -> bool {
        self.is_collected == Some(false)
    }
}

/// The answer with compressed content. The bytes at `mark` belong to it.
fn compressed(
    stage: &Arc<Stage>,
    wish: ClientWish,
    notes: ResponseNotes,
    answer: Answer,
    request: &Incoming<'_>,
    (bytes, mark): (&mut Vec<u8>, usize),
) -> Answer {
    match answer {
        Answer::Written { close } => {
            match stage.encode_written(&wish, notes, (bytes, mark), false) {
                None => Answer::Written { close },
                Some(slow) => {
                    let stage = Arc::clone(stage);
                    Answer::Later(Box::pin(async move {
                        let bytes = encode_elsewhere(stage, slow).await;
                        Finished { bytes, follow: None, close }
                    }))
                }
            }
        }
        Answer::File(part) => {
            if stage.encode_file(&wish, notes, (bytes, mark), &part) {
                return Answer::Written { close: !request.exchange.keep_alive };
            }
            Answer::File(part)
        }
        Answer::Stream(stream) => {
            Answer::Stream(stage.encode_stream(&wish, notes, (bytes, mark), stream))
        }
        Answer::Work(inner) => {
            Answer::Work(Arc::new(CompressingWork { inner, stage: Arc::clone(stage), notes }))
        }
        Answer::Later(reply) => Answer::Later(later(Arc::clone(stage), wish, notes, reply)),
        Answer::WhileOpen(reply) => Answer::WhileOpen(later(Arc::clone(stage), wish, notes, reply)),
        answer => answer,
    }
}

/// Compresses the reply of a future.
fn later(
    stage: Arc<Stage>,
    wish: ClientWish,
    mut notes: ResponseNotes,
    mut reply: ReplyFuture,
) -> ReplyFuture {
    Box::pin(async move {
        let mut finished = poll_fn(|task| {
            let (polled, noted) = notes.during(|| reply.as_mut().poll(task));
            notes = noted;
            polled
        })
        .await;
        match finished.follow.take() {
            None => {
                let slow = stage.encode_written(&wish, notes, (&mut finished.bytes, 0), false);
                if let Some(slow) = slow {
                    finished.bytes = encode_elsewhere(stage, slow).await;
                }
            }
            Some(follow) => {
                let bytes = (&mut finished.bytes, 0);
                finished.follow = stage.encode_follow(&wish, notes, bytes, follow);
            }
        }
        finished
    })
}

/// Encodes a reply on a thread for blocking calls. If they are busy for too long, it stays as it is.
async fn encode_elsewhere(stage: Arc<Stage>, slow: SlowReply) -> Vec<u8> {
    let slow = Arc::new(slow);
    let job = Arc::clone(&slow);
    let encoded = timeout(PATIENCE, blocking(move || stage.encode_slow(&job)), async || None).await;
    match (encoded, Arc::try_unwrap(slow)) {
        (Some(encoded), _) => encoded,
        (None, Ok(slow)) => slow.bytes,
        // The call still runs.
        (None, Err(slow)) => slow.bytes.clone(),
    }
}
