//! Parts of open files, which are sent as content.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A part of a file that follows the head of a reply.
#[derive(Clone)]
pub struct FilePart {
    /// The file, open for reading; shared, since a cache may keep it.
    pub file: Arc<OwnedFd>,
    /// The offset of the part in bytes.
    pub offset: u64,
    /// The length of the part in bytes.
    pub length: u64,
}

impl fmt::Debug for FilePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FilePart({}+{})", self.offset, self.length)
    }
}
