//! Decides what a head says about a file, apart from its length.

use std::borrow::Cow;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use bine_http::{Date, Lines, Reply, SecurityHeaders};

use crate::conditions::Validators;
use crate::encoding::Encoding;
use crate::media;
use crate::rules::Field;

/// Seconds after a change during which another one may leave the same time behind: file systems stamp with
/// the kernel's tick, some with whole seconds, and one clock is not the other.
pub(crate) const SETTLE_SECONDS: i64 = 2;

/// What describes a file, rendered when it is opened.
#[derive(Debug)]
pub(crate) struct Description {
    /// All fields.
    all_fields: Lines,
    /// Those by which a peer knows the file again, and what the site's rules say.
    validator_fields: Lines,
    content_type: Cow<'static, str>,
    /// Security headers that the site's rules set, so that the server does not.
    overrides: SecurityHeaders,
    variant: Variant,
    tag: Box<str>,
    modified_at: u64,
    length: u64,
}

/// Which form of a file it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Variant {
    /// There is no other.
    Single,
    /// As it is, and packed ones lie beside it.
    Identity,
    /// Packed.
    Encoded(Encoding),
}

impl Description {
    /// Of the file that a path means, opened in this second since 1970. `name` is the path, or the index's of a
    /// directory; of a packed form, that of the file itself.
    pub(crate) fn of(
        name: &str,
        metadata: &Metadata,
        second: u64,
        variant: Variant,
        fields: &[Field],
    ) -> Self {
        let modified = u64::try_from(metadata.mtime()).unwrap_or(0);
        // RFC 9110 section 8.8.2.1: never later than the Date beside it.
        let modified_at = modified.min(second);
        let (tag, content_type) = (tag(metadata, second), media::media_type(name));
        let mut validator_fields = Lines::new();
        add(&mut validator_fields, "Last-Modified", Date::at(modified_at).as_str());
        add(&mut validator_fields, "ETag", &tag);
        // RFC 9110 section 12.5.5: with every form of it, or a cache would give one peer another's.
        if variant != Variant::Single {
            add(&mut validator_fields, "Vary", "Accept-Encoding");
        }
        let mut overrides = SecurityHeaders::NONE;
        for (name, value) in fields {
            add(&mut validator_fields, name, value);
            overrides = overrides.with(SecurityHeaders::named(name));
        }
        let mut all_fields = Lines::new();
        add(&mut all_fields, "Content-Type", &content_type);
        add(&mut all_fields, "Accept-Ranges", "bytes");
        if let Variant::Encoded(encoding) = variant {
            add(&mut all_fields, "Content-Encoding", encoding.name());
        }
        all_fields.extend(&validator_fields);
        let length = metadata.len();
        Self {
            all_fields,
            validator_fields,
            content_type,
            overrides,
            variant,
            tag,
            modified_at,
            length,
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

    /// Security headers that the site's rules set.
    pub(crate) const fn overrides(&self) -> SecurityHeaders {
        self.overrides
    }

    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// The media type, as a field says it.
    pub(crate) fn content_type(&self) -> &str {
        &self.content_type
    }

    /// Appends all fields.
    #[inline]
    pub(crate) fn write(&self, reply: &mut Reply<'_>) {
        reply.lines(&self.all_fields);
    }

    /// Appends what the file is packed by, if it is.
    pub(crate) fn write_encoding(&self, reply: &mut Reply<'_>) {
        if let Variant::Encoded(encoding) = self.variant {
            reply
                .field("Content-Encoding", encoding.name())
                .expect("the name of an encoding is letters");
        }
    }

    /// Appends what a peer can know the file again by, and what the site's rules say (RFC 9110 section 15.4.5 wants
    /// Cache-Control and its like with 304 too).
    pub(crate) fn write_validators(&self, reply: &mut Reply<'_>) {
        reply.lines(&self.validator_fields);
    }
}

fn add(lines: &mut Lines, name: &str, value: &str) {
    lines.add(name, value).expect(
        "names are tokens, rules are checked when they are made, and what is rendered here is visible ASCII",
    );
}

/// Strong once the file has rested: the next change is then sure to make another one.
fn tag(metadata: &Metadata, second: u64) -> Box<str> {
    let now = i64::try_from(second).unwrap_or(i64::MAX);
    let weak = if metadata.ctime().saturating_add(SETTLE_SECONDS) < now { "" } else { "W/" };
    let (seconds, nanoseconds) = (metadata.mtime(), metadata.mtime_nsec());
    let (length, inode) = (metadata.len(), metadata.ino());
    format!("{weak}\"{seconds:x}.{nanoseconds:x}-{length:x}-{inode:x}\"").into()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Symptom: no test asked at the very second from which on a tag is strong, so one that was strong a second early,
    /// when a change within the same second could still follow, passed.
    #[test]
    fn sends_weak_etag_until_file_settles() {
        let path = std::env::temp_dir().join(format!("bine-tag-{}", std::process::id()));
        fs::write(&path, b"a").unwrap();
        let metadata = fs::metadata(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let changed = metadata.ctime();
        let is_weak = |second: i64| tag(&metadata, second.cast_unsigned()).starts_with("W/");
        assert!((changed..=changed + SETTLE_SECONDS).all(is_weak));
        assert!(!is_weak(changed + SETTLE_SECONDS + 1));
    }
}
