//! Decides what a head says about a file, apart from its length.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use bine_http::{Date, Reply};

use crate::coding::Coding;
use crate::conditions::Validators;
use crate::media;
use crate::rules::Field;

/// Seconds after a change during which another one may leave the same time behind: file systems stamp with
/// the kernel's tick, some with whole seconds, and one clock is not the other.
pub(crate) const UNSETTLED: i64 = 2;

/// The fields that describe a file, rendered when it is opened.
#[derive(Debug)]
pub(crate) struct Description {
    /// The whole Content-Type line.
    content_type: &'static str,
    tag: Box<str>,
    modified_at: u64,
    modified: Date,
    length: u64,
    variant: Variant,
    fields: Box<[Field]>,
}

/// Which form of a file it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Variant {
    /// There is no other.
    Only,
    /// As it is, and packed ones lie beside it.
    Plain,
    /// Packed.
    Coded(Coding),
}

impl Description {
    /// Of the file that a path means, opened in this second since 1970. `name` is the path, or the index's of a
    /// directory; of a packed form, that of the file itself.
    pub(crate) fn of(
        name: &str,
        metadata: &Metadata,
        second: u64,
        variant: Variant,
        fields: Box<[Field]>,
    ) -> Self {
        let modified = u64::try_from(metadata.mtime()).unwrap_or(0);
        // RFC 9110 section 8.8.2.1: never later than the Date beside it.
        let modified_at = modified.min(second);
        Self {
            content_type: media::line(name),
            tag: tag(metadata, second),
            modified_at,
            modified: Date::at(modified_at),
            length: metadata.len(),
            variant,
            fields,
        }
    }

    /// The same with another length: that of the bytes at hand.
    pub(crate) const fn with_length(mut self, length: u64) -> Self {
        self.length = length;
        self
    }

    pub(crate) fn validators(&self) -> Validators<'_> {
        Validators { tag: &self.tag, modified: self.modified_at, length: self.length }
    }

    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// The Content-Type line, CRLF included.
    pub(crate) const fn content_type(&self) -> &'static str {
        self.content_type
    }

    /// Appends all fields.
    pub(crate) fn write(&self, reply: &mut Reply<'_>) {
        reply.constant(self.content_type);
        reply.constant("Accept-Ranges: bytes\r\n");
        self.write_coding(reply);
        self.write_validators(reply);
    }

    /// Appends what the file is packed by, if it is.
    pub(crate) fn write_coding(&self, reply: &mut Reply<'_>) {
        if let Variant::Coded(coding) = self.variant {
            reply.constant(coding.line());
        }
    }

    /// Appends what a peer can know the file again by, and what the site's rules say (RFC 9110 section 15.4.5 wants
    /// Cache-Control and its like with 304 too).
    pub(crate) fn write_validators(&self, reply: &mut Reply<'_>) {
        for (name, value) in [("Last-Modified", self.modified.as_str()), ("ETag", &self.tag)] {
            reply.field(name, value).expect(
                "names are tokens; a date is letters, digits, spaces, commas and colons, a tag digits and quotes",
            );
        }
        // RFC 9110 section 12.5.5: with every form of it, or a cache would give one peer another's.
        if self.variant != Variant::Only {
            reply.constant("Vary: Accept-Encoding\r\n");
        }
        for (name, value) in &self.fields {
            reply.field(name, value).expect("a rule of fields holds none that cannot be sent");
        }
    }
}

/// Strong once the file has rested: the next change is then sure to make another one.
fn tag(metadata: &Metadata, second: u64) -> Box<str> {
    let now = i64::try_from(second).unwrap_or(i64::MAX);
    let weak = if metadata.ctime().saturating_add(UNSETTLED) < now { "" } else { "W/" };
    let (seconds, nanoseconds) = (metadata.mtime(), metadata.mtime_nsec());
    let (length, inode) = (metadata.len(), metadata.ino());
    format!("{weak}\"{seconds:x}.{nanoseconds:x}-{length:x}-{inode:x}\"").into()
}
