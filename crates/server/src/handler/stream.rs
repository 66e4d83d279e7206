//! Replies that are written over time: how far the writer may be ahead of the client, and how the
//! writer and the connection notify each other of their end.

use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use bine_http::BodyFraming;
use bine_log as log;
use bine_profile::{self as profile, Stage};
use tokio::task::AbortHandle;

use crate::metrics::tally;
use crate::time::{Clock, Slowness};

/// A writer waits while this many bytes of its content are unsent.
const AHEAD: usize = 64 * 1024;
/// Encodes at most this many bytes before other connections of the thread run again: a quarter to one
/// millisecond.
const ENCODED_PIECE: usize = 16 * 1024;

/// Transforms the content of a [`Stream`], such as by a content coding.
pub trait ContentEncoder: Send {
    /// Appends encoded content. With `flushes`, the client must be able to read all of it at once.
    ///
    /// # Errors
    ///
    /// The content cannot be continued: the server cuts the response.
    fn encode(&mut self, piece: &[u8], flushes: bool, out: &mut Vec<u8>) -> io::Result<()>;

    /// Appends the end of the encoded content. No further call follows.
    ///
    /// # Errors
    ///
    /// The content is incomplete: the server cuts the response.
    fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()>;
}

/// Content that is written while it is sent, after a head that is in the buffer.
///
/// It ends when its writer returns. If the writer fails or panics, the server cuts the connection,
/// so that the client detects that the content is incomplete. If the client closes the connection,
/// the server drops the writer.
pub struct Stream {
    framing: BodyFraming,
    write: StartWriter,
    encoder: Option<Box<dyn ContentEncoder>>,
}

/// A running writer. Its error is for the log.
pub type StreamFuture = Pin<Box<dyn Future<Output = Result<(), String>>>>;

type StartWriter = Box<dyn FnOnce(Sender) -> StreamFuture + Send>;

impl Stream {
    /// A stream framed by `framing`, which the head must announce. The server calls `write`
    /// on the thread of the connection. The returned future runs there and must not block.
    pub fn new(
        framing: BodyFraming,
        write: impl FnOnce(Sender) -> StreamFuture + Send + 'static,
    ) -> Self {
        Self { framing, write: Box::new(write), encoder: None }
    }

    /// Encodes the content. Each call of [`Sender::send`] flushes, so that no content waits.
    #[must_use]
    pub fn with_encoder(self, encoder: Box<dyn ContentEncoder>) -> Self {
        Self { encoder: Some(encoder), ..self }
    }

    /// Collects the whole content without framing, for a program that examines the answer of a
    /// handler. It needs the runtime that the writer needs.
    ///
    /// # Errors
    ///
    /// The error of the writer.
    pub async fn gather(self) -> Result<Vec<u8>, String> {
        let flow = Rc::new(Flow::of(BodyFraming::CloseDelimited, self.encoder));
        let mut writing = (self.write)(Sender(Rc::clone(&flow)));
        let (mut content, mut piece) = (Vec::new(), Vec::new());
        let written = poll_fn(|task| {
            loop {
                let polled = writing.as_mut().poll(task);
                while flow.take(&mut piece) == Taken::More {
                    content.append(&mut piece);
                }
                let waker = task.waker().clone();
                if polled.is_ready() || !flow.await_more(move || waker.wake_by_ref()) {
                    return polled;
                }
            }
        });
        written.await.map(|()| content)
    }

    /// How the content is framed.
    pub const fn framing(&self) -> BodyFraming {
        self.framing
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("framing", &self.framing).finish_non_exhaustive()
    }
}

/// The writer's end of a stream.
#[derive(Debug)]
pub struct Sender(Rc<Flow>);

/// The stream has ended: the connection is closed, or its writer has returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Disconnected;

impl fmt::Display for Disconnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the stream has ended")
    }
}

impl std::error::Error for Disconnected {}

impl Sender {
    /// Sends `content`. Waits while 64 KiB are unsent, so that a slow client slows its writer down
    /// and the server buffers no more.
    ///
    /// # Errors
    ///
    /// The stream has ended.
    pub async fn send(&mut self, content: impl AsRef<[u8]>) -> Result<(), Disconnected> {
        let content = content.as_ref();
        if self.0.is_encoded() {
            return self.send_encoded(content).await;
        }
        // Content longer than the limit of unsent bytes is sent in parts.
        for part in content.chunks(AHEAD) {
            poll_fn(|task| self.0.put(part, false, task.waker())).await?;
        }
        Ok(())
    }

    async fn send_encoded(&mut self, content: &[u8]) -> Result<(), Disconnected> {
        let mut parts = content.chunks(ENCODED_PIECE).peekable();
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            poll_fn(|task| self.0.put(part, is_last, task.waker())).await?;
            if !is_last {
                yield_once().await;
            }
        }
        Ok(())
    }
}

/// Lets other tasks of the thread run.
async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|task| {
        if has_yielded {
            return Poll::Ready(());
        }
        has_yielded = true;
        task.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The state that a writer and its connection share.
#[derive(Default)]
pub(crate) struct Flow(RefCell<FlowState>);

struct FlowState {
    /// Written and framed bytes that the connection has not taken.
    ready: Vec<u8>,
    framing: BodyFraming,
    encoder: Option<Box<dyn ContentEncoder>>,
    end: Option<StreamEnd>,
    /// Wakes the writer, which waits for room.
    writer: Option<Waker>,
    /// Wakes the connection, which waits for content.
    reader: Option<Box<dyn Fn()>>,
}

impl Default for FlowState {
    fn default() -> Self {
        Self {
            ready: Vec::new(),
            framing: BodyFraming::Empty,
            encoder: None,
            end: None,
            writer: None,
            reader: None,
        }
    }
}

impl FlowState {
    /// Appends the end of the content. Returns how the stream has ended.
    fn finish(&mut self, end: StreamEnd, encoder: Option<Box<dyn ContentEncoder>>) -> StreamEnd {
        if end == StreamEnd::Cut {
            return end;
        }
        let framing = self.framing;
        if let Some(mut encoder) = encoder {
            let mut rest = Vec::new();
            if let Err(error) = encoder.finish(&mut rest) {
                log::error(format_args!("content could not be encoded: {error}"));
                return StreamEnd::Cut;
            }
            framing.append(&mut self.ready, &rest);
        }
        framing.end(&mut self.ready);
        end
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StreamEnd {
    Whole,
    Cut,
}

/// The result of [`Flow::take`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    /// Content was moved into the buffer.
    More,
    /// There is no content yet.
    Nothing,
    /// The stream is complete.
    Whole,
    /// The writer failed.
    Cut,
}

impl Flow {
    fn of(framing: BodyFraming, encoder: Option<Box<dyn ContentEncoder>>) -> Self {
        Self(RefCell::new(FlowState { framing, encoder, ..FlowState::default() }))
    }

    fn is_encoded(&self) -> bool {
        self.0.borrow().encoder.is_some()
    }

    /// Appends a part, unless there is too much unsent content. An encoder flushes after it if
    /// `flushes`.
    fn put(&self, part: &[u8], flushes: bool, writer: &Waker) -> Poll<Result<(), Disconnected>> {
        let mut state = self.0.borrow_mut();
        if state.end.is_some() {
            return Poll::Ready(Err(Disconnected));
        }
        if state.ready.len() >= AHEAD {
            state.writer = Some(writer.clone());
            return Poll::Pending;
        }
        let framing = state.framing;
        if let Some(encoder) = &mut state.encoder {
            let mut encoded = Vec::new();
            if let Err(error) = encoder.encode(part, flushes, &mut encoded) {
                log::error(format_args!("content could not be encoded: {error}"));
                drop(state);
                self.end(StreamEnd::Cut);
                return Poll::Ready(Err(Disconnected));
            }
            framing.append(&mut state.ready, &encoded);
        } else {
            framing.append(&mut state.ready, part);
        }
        drop(state);
        self.wake_reader();
        Poll::Ready(Ok(()))
    }

    fn end(&self, end: StreamEnd) {
        let mut state = self.0.borrow_mut();
        if state.end.is_none() {
            // Its memory is free from here on, although the client may still read.
            let encoder = state.encoder.take();
            state.end = Some(state.finish(end, encoder));
        }
        let writer = state.writer.take();
        drop(state);
        if let Some(writer) = writer {
            writer.wake();
        }
        self.wake_reader();
    }

    /// Must not be called while the state is borrowed: the reader may read it at once.
    fn wake_reader(&self) {
        let reader = self.0.borrow_mut().reader.take();
        if let Some(reader) = reader {
            reader();
        }
    }

    /// Moves the ready content into `buffer`, which must be empty. Its memory is reused.
    pub(crate) fn take(&self, buffer: &mut Vec<u8>) -> Taken {
        debug_assert!(buffer.is_empty(), "unsent content in the buffer");
        let mut state = self.0.borrow_mut();
        if !state.ready.is_empty() {
            std::mem::swap(&mut state.ready, buffer);
            let writer = state.writer.take();
            drop(state);
            if let Some(writer) = writer {
                writer.wake();
            }
            return Taken::More;
        }
        match state.end {
            None => Taken::Nothing,
            Some(StreamEnd::Whole) => Taken::Whole,
            Some(StreamEnd::Cut) => Taken::Cut,
        }
    }

    /// Calls `wake` once when there is content to take. Returns true if there already is.
    pub(crate) fn await_more(&self, wake: impl Fn() + 'static) -> bool {
        let mut state = self.0.borrow_mut();
        let more = !state.ready.is_empty() || state.end.is_some();
        state.reader = if more { None } else { Some(Box::new(wake)) };
        more
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Flow")
    }
}

/// The connection's end of a [`Stream`]. Dropping it drops the writer.
pub(crate) struct Streaming {
    pub(crate) flow: Rc<Flow>,
    writer: Writer,
    /// The number of bytes taken from the flow, for the log.
    pub(crate) taken: u64,
}

enum Writer {
    /// Not started; it starts when the head has been sent.
    Waits(StartWriter),
    /// Polled by the thread of the connection.
    Here(Pin<Box<dyn Future<Output = ()>>>),
    /// A task of the event loop.
    Task(AbortHandle),
    Over,
}

impl Streaming {
    pub(crate) fn new(stream: Stream) -> Self {
        let flow = Rc::new(Flow::of(stream.framing, stream.encoder));
        Self { flow, writer: Writer::Waits(stream.write), taken: 0 }
    }

    /// Returns the writer to the first caller, which must run it, and `None` to later callers.
    pub(crate) fn begin(
        &mut self,
        clock: &Rc<Clock>,
        slowness: &Rc<Slowness>,
        name: &'static str,
    ) -> Option<impl Future<Output = ()> + 'static> {
        if !matches!(self.writer, Writer::Waits(_)) {
            return None;
        }
        let Writer::Waits(write) = std::mem::replace(&mut self.writer, Writer::Over) else {
            return None;
        };
        Some(run(write, Rc::clone(&self.flow), Rc::clone(clock), Rc::clone(slowness), name))
    }

    /// Records that the writer runs as `task`.
    pub(crate) fn set_task(&mut self, task: AbortHandle) {
        self.writer = Writer::Task(task);
    }

    /// Records that the writer is polled through [`poll`](Self::poll).
    pub(crate) fn poll_in_place(&mut self, writing: impl Future<Output = ()> + 'static) {
        self.writer = Writer::Here(Box::pin(writing));
    }

    /// Ready when there is content to take.
    pub(crate) fn poll(&mut self, task: &mut std::task::Context<'_>) -> Poll<()> {
        if let Writer::Here(writing) = &mut self.writer
            && writing.as_mut().poll(task).is_ready()
        {
            self.writer = Writer::Over;
        }
        let waker = task.waker().clone();
        let more = self.flow.await_more(move || waker.wake_by_ref());
        if more { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        if let Writer::Task(task) = &self.writer {
            task.abort();
        }
        // A sender that outlives its writer gets an error from now on.
        self.flow.end(StreamEnd::Cut);
        take(&mut self.flow.0.borrow_mut().ready);
    }
}

/// Runs a writer to its end and reports the result to the flow.
async fn run(
    write: StartWriter,
    flow: Rc<Flow>,
    clock: Rc<Clock>,
    slowness: Rc<Slowness>,
    name: &'static str,
) {
    let sender = Sender(Rc::clone(&flow));
    let written = match catch_unwind(AssertUnwindSafe(|| write(sender))) {
        Ok(writing) => guarded(writing, &clock, &slowness, name).await,
        Err(_) => None,
    };
    let end = match written {
        Some(Ok(())) => StreamEnd::Whole,
        Some(Err(error)) => {
            log::error(format_args!(
                "{name} failed in the middle of its reply, which was cut: {error}"
            ));
            StreamEnd::Cut
        }
        None => {
            log::error(format_args!("{name} panicked in the middle of its reply, which was cut"));
            StreamEnd::Cut
        }
    };
    flow.end(end);
}

/// Runs `future` and reports its slow polls. Returns `None` if it panics.
pub(crate) async fn guarded<F: Future + Unpin>(
    mut future: F,
    clock: &Clock,
    slowness: &Slowness,
    name: &'static str,
) -> Option<F::Output> {
    poll_fn(|task| {
        let _stage = profile::enter_route(Stage::Handler, name);
        let began = clock.glance();
        let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(&mut future).poll(task)));
        slowness.check(clock, began, || name);
        match polled {
            Ok(polled) => polled.map(Some),
            Err(_) => {
                tally::count_panic();
                Poll::Ready(None)
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake};

    use bine_log::test_support::capture;

    use super::*;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Wakes {
        fn count(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    fn poll<F: Future>(future: Pin<&mut F>, wakes: &Arc<Wakes>) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(wakes));
        future.poll(&mut Context::from_waker(&waker))
    }

    /// Starts the writer of a stream, as a thread with one connection does.
    fn begin(stream: Stream) -> Streaming {
        let mut streaming = Streaming::new(stream);
        let (clock, slowness) = (Rc::new(Clock::told(0)), Rc::default());
        let writing = streaming.begin(&clock, &slowness, "writer").unwrap();
        assert!(streaming.begin(&clock, &slowness, "writer").is_none(), "it runs already");
        streaming.poll_in_place(writing);
        streaming
    }

    /// The content that is ready, and what follows it.
    fn taken(streaming: &Streaming) -> (String, Taken) {
        let mut buffer = Vec::new();
        let mut content = String::new();
        loop {
            match streaming.flow.take(&mut buffer) {
                Taken::More => content += &String::from_utf8(take(&mut buffer)).unwrap(),
                end => return (content, end),
            }
        }
    }

    fn poll_streaming(streaming: &mut Streaming, wakes: &Arc<Wakes>) -> bool {
        let waker = Waker::from(Arc::clone(wakes));
        streaming.poll(&mut Context::from_waker(&waker)).is_ready()
    }

    #[test]
    fn writer_waits_while_64_kib_are_unsent() {
        let stream = Stream::new(BodyFraming::CloseDelimited, |mut sender| {
            Box::pin(async move {
                sender.send(vec![b'a'; AHEAD - 1]).await.unwrap();
                sender.send("b").await.unwrap();
                sender.send("c").await.unwrap();
                Ok(())
            })
        });
        let (mut streaming, wakes) = (begin(stream), Arc::default());
        assert!(poll_streaming(&mut streaming, &wakes));
        assert_eq!(wakes.count(), 0);
        let (content, end) = taken(&streaming);
        assert_eq!((content.len(), &content[AHEAD - 1..], end), (AHEAD, "b", Taken::Nothing));
        assert_eq!(wakes.count(), 1, "there is room");
        assert!(poll_streaming(&mut streaming, &wakes));
        assert_eq!(taken(&streaming), ("c".to_owned(), Taken::Whole));
    }

    #[test]
    fn sends_long_content_in_parts() {
        let stream = Stream::new(BodyFraming::CloseDelimited, |mut sender| {
            Box::pin(async move {
                sender.send(vec![b'a'; 2 * AHEAD + 1]).await.unwrap();
                Ok(())
            })
        });
        let (mut streaming, wakes) = (begin(stream), Arc::default());
        let mut lengths = Vec::new();
        while poll_streaming(&mut streaming, &wakes) {
            let (content, end) = taken(&streaming);
            lengths.push(content.len());
            if end == Taken::Whole {
                break;
            }
        }
        assert_eq!(lengths, [AHEAD, AHEAD, 1]);
    }

    #[test]
    fn ends_a_chunked_stream_with_the_last_chunk() {
        let stream = Stream::new(BodyFraming::Chunked, |mut sender| {
            Box::pin(async move { sender.send("abc").await.map_err(|gone| gone.to_string()) })
        });
        let (mut streaming, wakes) = (begin(stream), Arc::default());
        assert!(poll_streaming(&mut streaming, &wakes));
        assert_eq!(taken(&streaming), ("3\r\nabc\r\n0\r\n\r\n".to_owned(), Taken::Whole));
    }

    #[test]
    fn cuts_a_stream_whose_writer_fails_or_panics() {
        let panics = || -> Result<(), String> {
            std::panic::resume_unwind(Box::new("a writer's fault"));
        };
        for (number, cause) in ["failed", "panicked", "panicked"].into_iter().enumerate() {
            let stream = Stream::new(BodyFraming::Chunked, move |mut sender| {
                if number == 2 {
                    let _ = panics();
                }
                Box::pin(async move {
                    sender.send("abc").await.unwrap();
                    if number == 0 { Err("on purpose".to_owned()) } else { panics() }
                })
            });
            let messages = capture();
            let (mut streaming, wakes) = (begin(stream), Arc::default());
            assert!(poll_streaming(&mut streaming, &wakes));
            let content = if number == 2 { "" } else { "3\r\nabc\r\n" };
            assert_eq!(taken(&streaming), (content.to_owned(), Taken::Cut), "no last chunk");
            let messages = messages.end();
            let cut = format!("writer {cause} in the middle of its reply, which was cut");
            assert!(messages.len() == 1 && messages[0].contains(&cut), "{messages:?}");
            assert_eq!(messages[0].ends_with(": on purpose"), number == 0);
        }
    }

    #[test]
    fn wakes_a_waiting_connection_once_for_content() {
        let flow = Flow::of(BodyFraming::CloseDelimited, None);
        let count = Rc::new(Cell::new(0));
        let wait = || {
            let count = Rc::clone(&count);
            flow.await_more(move || count.set(count.get() + 1))
        };
        assert!(!wait());
        let put = |text: &str| flow.put(text.as_bytes(), false, Waker::noop());
        assert_eq!((put("a"), count.get()), (Poll::Ready(Ok(())), 1));
        assert_eq!((put("b"), count.get()), (Poll::Ready(Ok(())), 1));
        assert!(wait(), "there is content already");
        assert_eq!((put("c"), count.get()), (Poll::Ready(Ok(())), 1), "it does not wait");
        flow.take(&mut Vec::new());
        assert!(!wait());
        flow.end(StreamEnd::Whole);
        assert_eq!(count.get(), 2);
        assert!(wait(), "it has ended");
        assert_eq!(put("d"), Poll::Ready(Err(Disconnected)));
        assert_eq!(flow.take(&mut Vec::new()), Taken::Whole);
        flow.end(StreamEnd::Cut);
        assert_eq!(flow.take(&mut Vec::new()), Taken::Whole, "the first end counts");
    }

    #[test]
    fn writer_learns_that_its_connection_is_closed() {
        let (wakes, ended) = (Arc::<Wakes>::default(), Rc::new(Cell::new(false)));
        let streaming =
            Streaming::new(Stream::new(BodyFraming::Chunked, |_sender| Box::pin(async { Ok(()) })));
        let mut sender = Sender(Rc::clone(&streaming.flow));
        let seen = Rc::clone(&ended);
        let mut writing = pin!(async move {
            sender.send(vec![b'a'; AHEAD]).await.unwrap();
            seen.set(sender.send("b").await == Err(Disconnected));
        });
        assert!(poll(writing.as_mut(), &wakes).is_pending());
        assert_eq!((wakes.count(), ended.get()), (0, false));
        let flow = Rc::clone(&streaming.flow);
        drop(streaming);
        assert_eq!(wakes.count(), 1);
        assert!(poll(writing.as_mut(), &wakes).is_ready() && ended.get());
        assert_eq!(flow.take(&mut Vec::new()), Taken::Cut, "unsent content is dropped");
        assert_eq!(Disconnected.to_string(), "the stream has ended");
    }

    #[test]
    fn aborts_the_task_of_a_writer_with_its_connection() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let task = runtime.spawn(std::future::pending::<()>());
        let mut streaming =
            Streaming::new(Stream::new(BodyFraming::Chunked, |_sender| Box::pin(async { Ok(()) })));
        streaming.set_task(task.abort_handle());
        drop(streaming);
        assert!(runtime.block_on(task).unwrap_err().is_cancelled());
    }

    #[test]
    fn gathers_the_content_without_framing() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let stream = |fails: bool| {
            Stream::new(BodyFraming::Chunked, move |mut sender| {
                Box::pin(async move {
                    for _ in 0..3 {
                        sender.send(vec![b'a'; AHEAD]).await.unwrap();
                        tokio::task::yield_now().await;
                    }
                    if fails { Err("on purpose".to_owned()) } else { Ok(()) }
                })
            })
        };
        let content = runtime.block_on(stream(false).gather()).unwrap();
        assert!(content.len() == 3 * AHEAD && content.iter().all(|byte| *byte == b'a'));
        assert_eq!(runtime.block_on(stream(true).gather()), Err("on purpose".to_owned()));
        assert_eq!(format!("{:?}", stream(false)), "Stream { framing: Chunked, .. }");
    }

    /// A gathered stream whose writer waits for something else is polled again only when it is
    /// woken.
    #[test]
    fn waits_for_the_writer_of_a_gathered_stream() {
        let polls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&polls);
        let stream = Stream::new(BodyFraming::CloseDelimited, move |mut sender| {
            Box::pin(async move {
                sender.send("first").await.map_err(|gone| gone.to_string())?;
                poll_fn(|_task| match counted.fetch_add(1, Ordering::SeqCst) {
                    0..2 => Poll::Pending,
                    _ => Poll::Ready(()),
                })
                .await;
                sender.send(", last").await.map_err(|gone| gone.to_string())
            })
        });
        let (mut gathered, wakes) = (pin!(stream.gather()), Arc::default());
        assert!(poll(gathered.as_mut(), &wakes).is_pending());
        assert_eq!((polls.load(Ordering::SeqCst), wakes.count()), (1, 0));
        assert!(poll(gathered.as_mut(), &wakes).is_pending());
        assert_eq!(polls.load(Ordering::SeqCst), 2);
        assert_eq!(poll(gathered.as_mut(), &wakes), Poll::Ready(Ok(b"first, last".to_vec())));
    }

    /// Marks each piece, so that a test sees the calls.
    struct Marks;

    impl ContentEncoder for Marks {
        fn encode(&mut self, piece: &[u8], flushes: bool, out: &mut Vec<u8>) -> io::Result<()> {
            if piece == b"fail" {
                return Err(io::Error::other("no memory"));
            }
            out.extend_from_slice(
                format!("<{}{}>", piece.len(), if flushes { "!" } else { "" }).as_bytes(),
            );
            Ok(())
        }

        fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
            out.extend_from_slice(b"<end>");
            Ok(())
        }
    }

    #[test]
    fn encodes_content_and_flushes_after_each_send() {
        let stream = Stream::new(BodyFraming::Chunked, |mut sender| {
            Box::pin(async move {
                sender.send("ab").await.unwrap();
                sender.send(vec![b'a'; ENCODED_PIECE + 1]).await.unwrap();
                Ok(())
            })
        });
        let (mut streaming, wakes) = (begin(stream.with_encoder(Box::new(Marks))), Arc::default());
        assert!(poll_streaming(&mut streaming, &wakes));
        let piece = format!("4\r\n<2!>\r\n7\r\n<{ENCODED_PIECE}>\r\n");
        assert_eq!(taken(&streaming), (piece, Taken::Nothing), "it yields after a piece");
        assert_eq!(wakes.count(), 1);
        assert!(poll_streaming(&mut streaming, &wakes));
        assert_eq!(
            taken(&streaming),
            ("4\r\n<1!>\r\n5\r\n<end>\r\n0\r\n\r\n".to_owned(), Taken::Whole)
        );
    }

    #[test]
    fn cuts_content_that_cannot_be_encoded() {
        let messages = capture();
        let stream = Stream::new(BodyFraming::Chunked, |mut sender| {
            Box::pin(async move {
                assert_eq!(sender.send("fail").await, Err(Disconnected));
                Ok(())
            })
        });
        let (mut streaming, wakes) = (begin(stream.with_encoder(Box::new(Marks))), Arc::default());
        assert!(poll_streaming(&mut streaming, &wakes));
        assert_eq!(taken(&streaming), (String::new(), Taken::Cut));
        assert!(messages.end()[0].contains("could not be encoded: no memory"));
    }
}
