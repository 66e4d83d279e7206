//! Replies as handlers write them: into a buffer, or as a value of their own, with the content that
//! follows the head.

use std::future::Future;
use std::pin::Pin;

use crate::handler::file_part::FilePart;
use crate::handler::incoming::Retained;
use crate::handler::stream::Stream;
use crate::handler::suspended_response::SuspendedResponse;
use crate::handler::wire::Upgrade;

/// The destination of a reply.
pub struct Outgoing<'a> {
    /// Append the reply here. The buffer may begin with earlier replies of the connection.
    pub buffer: &'a mut Vec<u8>,
    /// Sends part of `buffer` now. Unsent bytes stay at its start.
    pub drain: &'a mut dyn FnMut(&mut Vec<u8>),
}

/// A reply that a future produces.
pub type ReplyFuture = Pin<Box<dyn Future<Output = Finished>>>;

/// A reply that was written outside the buffer of its connection.
#[derive(Debug, Default)]
pub struct Finished {
    /// The reply, or its head if content follows.
    pub bytes: Vec<u8>,
    /// The content that follows the head.
    pub follow: Option<Follow>,
    /// The connection must close after it.
    pub close: bool,
}

impl Finished {
    /// Whether it contains no reply yet, or no reply at all.
    pub(crate) fn is_nothing(&self) -> bool {
        self.bytes.is_empty() && self.follow.is_none()
    }
}

/// The content that follows a head in a buffer.
#[derive(Debug)]
pub enum Follow {
    /// A part of a file.
    File(FilePart),
    /// Content that is not written yet.
    Stream(Stream),
    /// An upgrade that takes over the connection.
    Upgrade(Upgrade),
    /// The buffer is empty: the response is suspended until an event.
    Suspend(SuspendedResponse),
    /// The buffer is empty: the client is identified again, and the handler called again, with this
    /// request, which has its body. For a handler that had to wait before it could begin.
    Again(Box<Retained>),
}

/// The result of a [`Work`](crate::Work).
#[derive(Debug, Default)]
pub struct Done {
    /// The content that follows the head that it wrote.
    pub follow: Option<Follow>,
    /// The connection must close after it.
    pub close: bool,
}
