//! Parts of open files, to be sent as content.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A part of a file that follows a reply's head.
#[derive(Clone)]
pub struct FilePart {
    /// The file, open for reading; shared, since a cache may keep it.
    pub file: Arc<OwnedFd>,
    /// Where the part begins, in bytes.
    pub offset: u64,
    /// How long it is, in bytes.
    pub length: u64,
}

impl fmt::Debug for FilePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FilePart({}+{})", self.offset, self.length)
    }
}
