//! Replies as handlers write them: into a buffer, or finished elsewhere, with what follows the head.

use std::future::Future;
use std::pin::Pin;

use crate::handler::file_part::FilePart;
use crate::handler::hold::Hold;
use crate::handler::stream::Stream;
use crate::handler::wire::Upgrade;

/// Where a reply is written.
pub struct Outgoing<'a> {
    /// The reply goes behind what is here already, which are earlier replies of this connection.
    pub buffer: &'a mut Vec<u8>,
    /// Sends what it can of `buffer` now. What is left stays in front.
    pub drain: &'a mut dyn FnMut(&mut Vec<u8>),
}

/// A reply in the making.
pub type LaterReply = Pin<Box<dyn Future<Output = Finished>>>;

/// A reply made away from the connection's buffer.
#[derive(Debug, Default)]
pub struct Finished {
    /// The reply, or its head if something follows.
    pub bytes: Vec<u8>,
    /// What follows the head.
    pub follow: Option<Follow>,
    /// The connection must close behind it.
    pub close: bool,
}

impl Finished {
    /// There is no reply, or none yet.
    pub(crate) fn is_nothing(&self) -> bool {
        self.bytes.is_empty() && self.follow.is_none()
    }
}

/// What follows a head that stands in a buffer.
#[derive(Debug)]
pub enum Follow {
    /// A part of a file.
    File(FilePart),
    /// Content that is yet to be written.
    Stream(Stream),
    /// What takes the connection over.
    Upgrade(Upgrade),
    /// Nothing is in the buffer: the whole reply comes when something happens.
    Hold(Hold),
}

/// What came of a [`Work`](crate::Work).
#[derive(Debug, Default)]
pub struct Done {
    /// What follows the head it wrote.
    pub follow: Option<Follow>,
    /// The connection must close behind it.
    pub close: bool,
}
