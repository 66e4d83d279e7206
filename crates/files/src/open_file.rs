//! A large file that is open for reading.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bine_server::Answer;

use crate::description::Description;
use crate::response::{Responder, Source};

/// A large file, open for reading.
#[derive(Debug)]
pub(crate) struct OpenFile {
    description: Description,
    file: Arc<OwnedFd>,
}

impl OpenFile {
    pub(crate) fn new(file: File, description: Description) -> Self {
        Self { description, file: Arc::new(file.into()) }
    }

    /// Responds with the file.
    pub(crate) fn respond(&self, responder: &mut Responder<'_>) -> Answer {
        responder.respond(&self.description, Source::Disk(&self.file))
    }
}
