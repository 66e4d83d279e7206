//! Both ends of one stream, and the bytes between them.

use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use rustix::event::epoll::EventFlags;

use crate::memory_stream::events::StreamEvents;
use crate::slab::Token;
use crate::system::Transfer;

/// The bytes that a stream holds at most in each direction, as a socket's buffers would.
const CAPACITY: usize = 64 * 1024;
/// The bytes of a file that one call copies.
const FILE_PIECE: usize = 32 * 1024;
/// A buffer of this size is kept when it is empty.
const KEPT: usize = 4 * 1024;

const READABLE: EventFlags = EventFlags::IN;
const WRITABLE: EventFlags = EventFlags::OUT;
const GONE: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::HUP);

/// The server's end, for a connection of the event loop.
pub(crate) struct MemoryTransport(Rc<Pipe>);

/// The other end, for a task that acts as the client of the connection.
pub(crate) struct ClientEnd(Rc<Pipe>);

/// The connection has ended before this end has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Closed;

struct Pipe {
    events: Rc<StreamEvents>,
    state: RefCell<PipeState>,
}

#[derive(Default)]
struct PipeState {
    /// Bytes for the server; those before `received` have been received.
    input: Vec<u8>,
    received: usize,
    /// Bytes from the server.
    output: Vec<u8>,
    /// The server sends no more.
    is_finished: bool,
    /// The server's end has been dropped.
    is_closed: bool,
    /// The task sends no more.
    is_input_over: bool,
    /// The task's end has been dropped.
    is_abandoned: bool,
    /// The server waits for room in `output`.
    wants_room: bool,
    /// Whether the server has received any byte.
    has_begun: bool,
    server: Observer,
    /// The tasks that wait for bytes from the server, and for room in `input`.
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// Who learns of events at the server's end.
#[derive(Default)]
enum Observer {
    /// The loop does not know the stream yet. It looks at it when it begins to serve it.
    #[default]
    Nobody,
    /// The loop, by this token.
    Loop(Token),
    /// The task of an upgraded connection.
    Task(Option<Waker>),
}

/// Creates a stream whose events are reported to `events`, with these first bytes for the server.
pub(super) fn stream(events: &Rc<StreamEvents>, first: Vec<u8>) -> (ClientEnd, MemoryTransport) {
    let state = PipeState { input: first, ..PipeState::default() };
    let pipe = Rc::new(Pipe { events: Rc::clone(events), state: RefCell::new(state) });
    (ClientEnd(Rc::clone(&pipe)), MemoryTransport(pipe))
}

impl Pipe {
    fn notify_server(&self, state: &mut PipeState, flags: EventFlags) {
        match &mut state.server {
            Observer::Nobody => {}
            Observer::Loop(token) => self.events.report(*token, flags),
            Observer::Task(waker) => wake(waker),
        }
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

fn set_waker(place: &mut Option<Waker>, task: &Context<'_>) {
    place.get_or_insert_with(|| task.waker().clone()).clone_from(task.waker());
}

impl MemoryTransport {
    /// Reports events to the loop by this token from now on.
    pub(crate) fn watch(&self, token: Token) {
        self.0.state.borrow_mut().server = Observer::Loop(token);
    }

    /// Reports no event to the loop any more. The next call of [`note`](Self::note) names a task.
    pub(crate) fn forget(&self) {
        self.0.state.borrow_mut().server = Observer::Task(None);
    }

    /// Wakes `task` when bytes or room arrive, or the stream ends.
    pub(crate) fn note(&self, task: &Context<'_>) {
        let mut state = self.0.state.borrow_mut();
        if let Observer::Task(waker) = &mut state.server {
            set_waker(waker, task);
        }
    }

    pub(crate) fn receive(&self, space: &mut [u8]) -> Transfer {
        let mut state = self.0.state.borrow_mut();
        let rest = &state.input[state.received..];
        if rest.is_empty() {
            let is_over = state.is_abandoned || state.is_input_over;
            return if is_over { Transfer::Ended } else { Transfer::Again };
        }
        let count = rest.len().min(space.len());
        space[..count].copy_from_slice(&rest[..count]);
        state.received += count;
        state.has_begun = true;
        if state.received == state.input.len() {
            state.received = 0;
            state.input.clear();
            state.input.shrink_to(KEPT);
        }
        wake(&mut state.writer);
        Transfer::Moved(count)
    }

    pub(crate) fn has_emptied(&self) -> bool {
        let state = self.0.state.borrow();
        state.input.is_empty() && !state.is_abandoned && !state.is_input_over
    }

    pub(crate) fn send(&self, bytes: &[u8]) -> Transfer {
        self.send_with(|room, output| {
            let count = bytes.len().min(room);
            output.extend_from_slice(&bytes[..count]);
            Some(count)
        })
    }

    pub(crate) fn send_file(&self, file: BorrowedFd<'_>, offset: u64, count: usize) -> Transfer {
        self.send_with(|room, output| {
            let start = output.len();
            output.resize(start + count.min(room).min(FILE_PIECE), 0);
            let read = rustix::io::pread(file, &mut output[start..], offset).unwrap_or(0);
            output.truncate(start + read);
            // As with `sendfile`: the file has become shorter than the announced length.
            (read > 0).then_some(read)
        })
    }

    /// Appends to the output by `append`, which gets the room and returns what it has added.
    fn send_with(&self, append: impl FnOnce(usize, &mut Vec<u8>) -> Option<usize>) -> Transfer {
        let mut state = self.0.state.borrow_mut();
        if state.is_abandoned || state.is_finished {
            return Transfer::Broken;
        }
        let room = CAPACITY.saturating_sub(state.output.len());
        if room == 0 {
            state.wants_room = true;
            return Transfer::Again;
        }
        let Some(count) = append(room, &mut state.output) else { return Transfer::Broken };
        wake(&mut state.reader);
        Transfer::Moved(count)
    }

    pub(crate) fn finish(&self) {
        let mut state = self.0.state.borrow_mut();
        state.is_finished = true;
        wake(&mut state.reader);
    }
}

impl Drop for MemoryTransport {
    fn drop(&mut self) {
        let mut state = self.0.state.borrow_mut();
        state.is_closed = true;
        state.server = Observer::Nobody;
        wake(&mut state.reader);
        wake(&mut state.writer);
    }
}

impl ClientEnd {
    /// Writes from `bytes` for the server, and returns how many the stream took.
    pub(crate) fn poll_write(
        &self,
        task: &Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Closed>> {
        let mut state = self.0.state.borrow_mut();
        if state.is_closed {
            return Poll::Ready(Err(Closed));
        }
        let room = CAPACITY.saturating_sub(state.input.len());
        if room == 0 {
            set_waker(&mut state.writer, task);
            return Poll::Pending;
        }
        let count = bytes.len().min(room);
        state.input.extend_from_slice(&bytes[..count]);
        self.0.notify_server(&mut state, READABLE);
        Poll::Ready(Ok(count))
    }

    /// Takes the bytes that the server has sent. `None`: it sends no more.
    pub(crate) fn poll_read(&self, task: &Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.0.state.borrow_mut();
        if state.output.is_empty() {
            if state.is_closed || state.is_finished {
                return Poll::Ready(None);
            }
            set_waker(&mut state.reader, task);
            return Poll::Pending;
        }
        let bytes = Bytes::from(std::mem::take(&mut state.output));
        if std::mem::take(&mut state.wants_room) {
            self.0.notify_server(&mut state, WRITABLE);
        }
        Poll::Ready(Some(bytes))
    }

    /// Writes no more. The server can still send.
    pub(crate) fn finish(&self) {
        let mut state = self.0.state.borrow_mut();
        state.is_input_over = true;
        self.0.notify_server(&mut state, READABLE);
    }

    /// Whether the server has received any byte of the stream.
    pub(crate) fn has_begun(&self) -> bool {
        self.0.state.borrow().has_begun
    }
}

impl Drop for ClientEnd {
    fn drop(&mut self) {
        let mut state = self.0.state.borrow_mut();
        state.is_abandoned = true;
        self.0.notify_server(&mut state, GONE);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Count {
        fn read(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    const TOKEN: Token = Token { index: 7, generation: 1 };

    fn with(check: impl FnOnce(ClientEnd, MemoryTransport, &StreamEvents, &Context<'_>, &Count)) {
        let events = Rc::new(StreamEvents::default());
        let (end, transport) = stream(&events, b"first".to_vec());
        transport.watch(TOKEN);
        let count = Arc::new(Count::default());
        let waker = Arc::clone(&count).into();
        check(end, transport, &events, &Context::from_waker(&waker), &count);
    }

    fn reported(events: &StreamEvents) -> Vec<EventFlags> {
        let mut list = Vec::new();
        events.swap(&mut list);
        assert!(list.iter().all(|(token, _)| *token == TOKEN));
        list.into_iter().map(|(_, flags)| flags).collect()
    }

    #[test]
    fn carries_bytes_to_the_server() {
        with(|end, transport, events, task, _| {
            let mut space = [0; 3];
            assert!(!end.has_begun());
            assert_eq!(transport.receive(&mut space), Transfer::Moved(3));
            assert!(end.has_begun() && !transport.has_emptied());
            assert_eq!(transport.receive(&mut space), Transfer::Moved(2));
            assert!(transport.has_emptied());
            assert_eq!(transport.receive(&mut space), Transfer::Again);
            assert_eq!(end.poll_write(task, b"ab"), Poll::Ready(Ok(2)));
            assert_eq!(reported(events), [READABLE]);
            assert_eq!(transport.receive(&mut space), Transfer::Moved(2));
            assert_eq!(&space[..2], b"ab");
        });
    }

    #[test]
    fn limits_the_bytes_for_the_server() {
        with(|end, transport, _, task, count| {
            let long = vec![0; CAPACITY];
            assert_eq!(end.poll_write(task, &long), Poll::Ready(Ok(CAPACITY - 5)));
            assert_eq!(end.poll_write(task, &long), Poll::Pending);
            assert_eq!(transport.receive(&mut vec![0; CAPACITY]), Transfer::Moved(CAPACITY));
            assert_eq!(count.read(), 1, "the writer has room");
            assert_eq!(end.poll_write(task, b"more"), Poll::Ready(Ok(4)));
        });
    }

    #[test]
    fn limits_the_bytes_from_the_server() {
        with(|end, transport, events, task, count| {
            assert_eq!(end.poll_read(task), Poll::Pending);
            let long = vec![1; CAPACITY + 1];
            assert_eq!(transport.send(&long), Transfer::Moved(CAPACITY));
            assert_eq!((transport.send(&long), count.read()), (Transfer::Again, 1));
            assert_eq!(end.poll_read(task), Poll::Ready(Some(long[..CAPACITY].to_vec().into())));
            assert_eq!(reported(events), [WRITABLE]);
            assert_eq!(transport.send(&long[CAPACITY..]), Transfer::Moved(1));
            assert!(matches!(end.poll_read(task), Poll::Ready(Some(bytes)) if bytes.len() == 1));
            assert_eq!(reported(events), [], "the server did not wait for room");
        });
    }

    #[test]
    fn sends_a_part_of_a_file() {
        with(|end, transport, _, task, _| {
            let mut file = tempfile();
            file.write_all(b"0123456789").unwrap();
            assert_eq!(transport.send_file(file.as_fd(), 3, 4), Transfer::Moved(4));
            assert_eq!(end.poll_read(task), Poll::Ready(Some(Bytes::from_static(b"3456"))));
            assert_eq!(transport.send_file(file.as_fd(), 10, 4), Transfer::Broken, "it is short");
        });
    }

    fn tempfile() -> std::fs::File {
        let folder = bine_log::test_support::ScratchFolder::new();
        std::fs::File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(folder.path("file"))
            .unwrap()
    }

    #[test]
    fn reports_the_end_of_either_side() {
        with(|end, transport, events, task, _| {
            drop(end);
            assert_eq!(reported(events), [GONE]);
            let mut space = [0; 5];
            assert_eq!(transport.receive(&mut space), Transfer::Moved(5));
            assert!(!transport.has_emptied(), "the end is still to be received");
            assert_eq!(transport.receive(&mut space), Transfer::Ended);
            assert_eq!(transport.send(b"late"), Transfer::Broken);
            let _ = task;
        });
        with(|end, transport, _, task, count| {
            assert_eq!(transport.send(b"last"), Transfer::Moved(4));
            transport.finish();
            assert_eq!(transport.send(b"late"), Transfer::Broken);
            assert!(matches!(end.poll_read(task), Poll::Ready(Some(_))));
            assert_eq!(end.poll_read(task), Poll::Ready(None));
            drop(transport);
            assert_eq!((end.poll_write(task, b"a"), count.read()), (Poll::Ready(Err(Closed)), 0));
        });
    }

    #[test]
    fn wakes_a_task_after_an_upgrade() {
        with(|end, transport, events, task, count| {
            transport.forget();
            transport.note(task);
            assert_eq!(end.poll_write(task, b"a"), Poll::Ready(Ok(1)));
            assert_eq!((reported(events), count.read()), (vec![], 1));
        });
    }
}
