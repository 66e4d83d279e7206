//! Request bodies that a handler takes in pieces, while the server receives them.

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::handler::stream::Disconnected;

/// The server does not read the client further while this many bytes wait for the handler.
const AHEAD: usize = 64 * 1024;

/// The handler's end of a request body that arrives in pieces.
///
/// The server receives at most 64 KiB more than the handler has taken. If the handler drops the
/// reader or finishes before the body is complete, the server answers and closes the connection.
#[derive(Debug)]
pub struct BodyReader(Rc<BodyFlow>);

/// The server's end of a request body that arrives in pieces.
#[derive(Debug)]
pub struct BodySource(pub(crate) Rc<BodyFlow>);

/// Creates both ends of a request body, for [`Answer::Receive`](crate::Answer::Receive).
pub fn body_stream() -> (BodySource, BodyReader) {
    let flow = Rc::new(BodyFlow::default());
    (BodySource(Rc::clone(&flow)), BodyReader(flow))
}

impl BodyReader {
    /// Waits for the next piece and moves it into `piece`, whose memory is reused. Returns false at
    /// the end of the body.
    ///
    /// # Errors
    ///
    /// The client has disconnected, or has violated the protocol, before the body was complete.
    pub async fn next(&mut self, piece: &mut Vec<u8>) -> Result<bool, Disconnected> {
        piece.clear();
        poll_fn(|task| self.0.poll_take(piece, task.waker())).await
    }

    /// Whether the whole body was received and taken.
    pub fn is_complete(&self) -> bool {
        let state = self.0.0.borrow();
        state.end == Some(BodyEnd::Whole) && state.ready.is_empty()
    }
}

impl Drop for BodyReader {
    fn drop(&mut self) {
        self.0.end(BodyEnd::Cut);
    }
}

/// The state that a connection and its handler share.
#[derive(Default)]
pub(crate) struct BodyFlow(RefCell<BodyFlowState>);

#[derive(Default)]
struct BodyFlowState {
    /// Received bytes that the handler has not taken.
    ready: Vec<u8>,
    end: Option<BodyEnd>,
    /// Wakes the handler, which waits for bytes.
    reader: Option<Waker>,
    /// Whether the server waits until the handler has taken bytes.
    is_full: bool,
    /// Notifies a server that waits for room.
    has_room: Option<Rc<dyn Fn()>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyEnd {
    /// The body is complete.
    Whole,
    /// One of the ends is gone.
    Cut,
}

impl BodyFlow {
    /// Adds a piece. Returns whether there is room for more.
    pub(crate) fn put(&self, piece: &[u8]) -> bool {
        let mut state = self.0.borrow_mut();
        if state.end.is_none() {
            state.ready.extend_from_slice(piece);
        }
        let has_room = state.ready.len() < AHEAD;
        state.is_full = !has_room;
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        has_room
    }

    /// Ends the body. The first end counts.
    pub(crate) fn end(&self, end: BodyEnd) {
        let mut state = self.0.borrow_mut();
        state.end.get_or_insert(end);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Calls `wake` each time when the handler has taken the bytes of a full buffer.
    pub(crate) fn notify_room(&self, wake: impl Fn() + 'static) {
        self.0.borrow_mut().has_room = Some(Rc::new(wake));
    }

    /// Whether the handler waits for more of a body that has not ended.
    pub(crate) fn is_wanted(&self) -> bool {
        let state = self.0.borrow();
        state.end.is_none() && state.ready.is_empty()
    }

    fn poll_take(&self, piece: &mut Vec<u8>, reader: &Waker) -> Poll<Result<bool, Disconnected>> {
        let mut state = self.0.borrow_mut();
        if state.end == Some(BodyEnd::Cut) {
            return Poll::Ready(Err(Disconnected));
        }
        if state.ready.is_empty() {
            if state.end == Some(BodyEnd::Whole) {
                return Poll::Ready(Ok(false));
            }
            state.reader = Some(reader.clone());
            return Poll::Pending;
        }
        std::mem::swap(&mut state.ready, piece);
        let was_full = std::mem::take(&mut state.is_full);
        let has_room = state.has_room.clone().filter(|_| was_full);
        drop(state);
        // Not while the state is borrowed: the server may look at it at once.
        if let Some(wake) = has_room {
            wake();
        }
        Poll::Ready(Ok(true))
    }
}

impl fmt::Debug for BodyFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodyFlow")
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::task::Context;

    use super::*;

    /// The next piece, if there is one or the body has ended.
    fn take(reader: &mut BodyReader) -> Option<Result<Vec<u8>, Disconnected>> {
        let mut piece = Vec::new();
        let polled = pin!(reader.next(&mut piece)).poll(&mut Context::from_waker(Waker::noop()));
        match polled {
            Poll::Pending => None,
            Poll::Ready(taken) => Some(taken.map(|_| piece)),
        }
    }

    #[test]
    fn delivers_pieces_until_the_end() {
        let (source, mut reader) = body_stream();
        assert_eq!(take(&mut reader), None);
        assert!(source.0.is_wanted());
        assert!(source.0.put(b"ab") && source.0.put(b"c"));
        assert!(!source.0.is_wanted());
        assert_eq!(take(&mut reader), Some(Ok(b"abc".to_vec())));
        source.0.put(b"d");
        source.0.end(BodyEnd::Whole);
        assert!(!reader.is_complete(), "a byte is not taken");
        assert_eq!(take(&mut reader), Some(Ok(b"d".to_vec())));
        assert!(reader.is_complete());
        assert_eq!(take(&mut reader), Some(Ok(Vec::new())));
    }

    #[test]
    fn asks_for_more_when_the_handler_has_taken_a_full_buffer() {
        let (source, mut reader) = body_stream();
        let asked = Rc::new(Cell::new(0));
        assert!(source.0.put(&vec![0; AHEAD - 1]));
        assert!(!source.0.put(&[0]), "it is full");
        let counted = Rc::clone(&asked);
        source.0.notify_room(move || counted.set(counted.get() + 1));
        assert_eq!(asked.get(), 0);
        assert_eq!(take(&mut reader).unwrap().unwrap().len(), AHEAD);
        assert_eq!(asked.get(), 1);
        source.0.put(&[0]);
        assert_eq!((take(&mut reader), asked.get()), (Some(Ok(vec![0])), 1));
    }

    #[test]
    fn reports_the_end_of_the_other_side() {
        let (source, mut reader) = body_stream();
        source.0.put(b"lost");
        source.0.end(BodyEnd::Cut);
        assert_eq!(take(&mut reader), Some(Err(Disconnected)));
        let (source, reader) = body_stream();
        drop(reader);
        assert!(!source.0.is_wanted());
        assert!(source.0.put(&vec![0; 2 * AHEAD]), "dropped bytes need no room");
    }
}
