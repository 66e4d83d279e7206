//! Decides what a head says about a file, apart from its length.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use bine_http::{Date, Reply};

use crate::media;
use crate::name;

/// The fields that describe a file, rendered when it is opened.
#[derive(Debug)]
pub(crate) struct Description {
    /// The whole Content-Type line.
    content_type: &'static str,
    modified: Date,
}

impl Description {
    /// Of the file that a path means, opened in this second since 1970.
    pub(crate) fn of(path: &str, metadata: &Metadata, second: u64) -> Self {
        let modified = u64::try_from(metadata.mtime()).unwrap_or(0);
        // RFC 9110 section 8.8.2.1: never later than the Date beside it.
        let name = if name::is_directory(path) { name::INDEX } else { path };
        Self { content_type: media::line(name), modified: Date::at(modified.min(second)) }
    }

    /// Appends the fields.
    pub(crate) fn write(&self, reply: &mut Reply<'_>) {
        reply.constant(self.content_type);
        reply.field("Last-Modified", self.modified.as_str()).expect(
            "the name is a token, and a date is letters, digits, spaces, commas and colons",
        );
    }
}
