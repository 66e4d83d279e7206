//! The header fields that describe a file, apart from its length.

use std::borrow::Cow;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use bine_http::{Coding, Date, FieldLines, Reply, SecurityHeaders};

use crate::conditions::Validators;
use crate::media;
use crate::rules::Field;

/// The number of seconds after a change during which a second change may have the same time. File
/// systems take times from the kernel's tick, some in whole seconds, and the clocks may differ.
pub(crate) const SETTLE_SECONDS: i64 = 2;

/// The header fields of a file, rendered when the file is opened.
#[derive(Debug)]
pub(crate) struct Description {
    /// All fields.
    all_fields: FieldLines,
    /// The fields of a 304 response: the validators and the fields from the site's rules.
    validator_fields: FieldLines,
    content_type: Cow<'static, str>,
    /// Security headers that the site's rules set, so that the server does not set them.
    overrides: SecurityHeaders,
    variant: Variant,
    tag: Box<str>,
    modified_at: u64,
    length: u64,
}

/// The encoding of a file's content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Variant {
    /// The file has no precompressed variant.
    Single,
    /// The original of a file that has precompressed variants.
    Identity,
    /// A precompressed variant.
    Encoded(Coding),
}

impl Description {
    /// Describes a file that was opened in this second since 1970. `name` determines the media
    /// type: it is the path, the name of a directory's index, or the original's name for a
    /// precompressed variant.
    pub(crate) fn of(
        name: &str,
        metadata: &Metadata,
        second: u64,
        variant: Variant,
        fields: &[Field],
    ) -> Self {
        let modified = u64::try_from(metadata.mtime()).unwrap_or(0);
        // RFC 9110 section 8.8.2.1: Last-Modified must not be later than Date.
        let modified_at = modified.min(second);
        let (tag, content_type) = (tag(metadata, second), media::media_type(name));
        let mut validator_fields = FieldLines::new();
        add(&mut validator_fields, "Last-Modified", Date::at(modified_at).as_str());
        add(&mut validator_fields, "ETag", &tag);
        // RFC 9110 section 12.5.5: every variant has the field, so that a cache does not send one
        // client the variant of another.
        if variant != Variant::Single {
            add(&mut validator_fields, "Vary", "Accept-Encoding");
        }
        let mut overrides = SecurityHeaders::NONE;
        for (name, value) in fields {
            add(&mut validator_fields, name, value);
            overrides = overrides.with(SecurityHeaders::named(name));
        }
        let mut all_fields = FieldLines::new();
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

    /// Replaces the length by that of the bytes that were read.
    pub(crate) const fn with_length(mut self, length: u64) -> Self {
        self.length = length;
        self
    }

    pub(crate) fn validators(&self) -> Validators<'_> {
        Validators { tag: &self.tag, modified: self.modified_at, length: self.length }
    }

    /// Returns the security headers that the site's rules set.
    pub(crate) const fn overrides(&self) -> SecurityHeaders {
        self.overrides
    }

    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// Returns the media type as a Content-Type value.
    pub(crate) fn content_type(&self) -> &str {
        &self.content_type
    }

    /// Appends all fields.
    #[inline]
    pub(crate) fn write(&self, reply: &mut Reply<'_>) {
        reply.field_lines(&self.all_fields);
    }

    /// Appends Content-Encoding if the variant is precompressed.
    pub(crate) fn write_encoding(&self, reply: &mut Reply<'_>) {
        if let Variant::Encoded(encoding) = self.variant {
            reply
                .field("Content-Encoding", encoding.name())
                .expect("the name of an encoding is letters");
        }
    }

    /// Appends the fields of a 304 response. RFC 9110 section 15.4.5 requires Cache-Control and
    /// similar fields there too.
    pub(crate) fn write_validators(&self, reply: &mut Reply<'_>) {
        reply.field_lines(&self.validator_fields);
    }
}

fn add(lines: &mut FieldLines, name: &str, value: &str) {
    lines.add(name, value).expect(
        "names are tokens, rules are checked when they are made, and what is rendered here is visible ASCII",
    );
}

/// Returns the entity tag. It is strong once the file has settled, because the next change is then
/// certain to produce another tag.
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

    /// Symptom: no test covered the second in which a tag becomes strong. A tag that was strong one
    /// second early, when a second change could still have the same time, passed the tests.
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
