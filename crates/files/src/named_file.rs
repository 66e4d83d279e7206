//! Decides how a file that a program has opened is answered with, where it does not come from a root.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bine_http::{Date, Exchange, Head};
use bine_pipeline::Answer;

use crate::description::{Description, Variant};
use crate::response::{Responder, Source};
use crate::rules::{Field, FieldRule};

/// A file that a program sends, open for reading.
#[derive(Clone, Debug)]
pub struct NamedFile {
    file: Arc<OwnedFd>,
    metadata: Metadata,
    name: String,
    fields: Vec<Field>,
}

impl NamedFile {
    /// `file`, whose name tells its media type.
    ///
    /// # Errors
    ///
    /// It cannot be looked at, or is no regular file.
    pub fn new(file: File, name: &str) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no file"));
        }
        let (file, name) = (Arc::new(file.into()), name.to_owned());
        Ok(Self { file, metadata, name, fields: Vec::new() })
    }

    /// The same with one more field.
    ///
    /// # Errors
    ///
    /// Why it cannot be sent, or that the server sets it itself; nothing is added then.
    pub fn add_field(&mut self, name: &str, value: &str) -> Result<(), String> {
        FieldRule::new("*", name, value)?;
        self.fields.push((name.into(), value.into()));
        Ok(())
    }

    /// Its length when it was opened, in bytes.
    pub fn length(&self) -> u64 {
        self.metadata.len()
    }

    /// The descriptor.
    pub const fn file(&self) -> &Arc<OwnedFd> {
        &self.file
    }

    /// Answers a GET or HEAD as the conditions and ranges in its head want it (RFC 9110 sections 13 and 14), by
    /// appending a head to `buffer`. Without the request's head the file is sent whole. `second` is now, in seconds since 1970, and `date` tells the same.
    pub fn respond(
        self,
        head: Option<Head<'_>>,
        exchange: Exchange,
        (second, date): (u64, Date),
        buffer: &mut Vec<u8>,
    ) -> Answer {
        let description =
            Description::of(&self.name, &self.metadata, second, Variant::Single, &self.fields);
        Responder { buffer, exchange, head, date }.respond(&description, Source::Disk(&self.file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_added_fields_and_rejects_reserved_ones() {
        let file = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
        let mut named_file = NamedFile::new(file, "Cargo.toml").unwrap();
        assert!(named_file.add_field("Content-Length", "1").is_err());
        assert!(named_file.add_field("X-Kind", "a\r\nX-Other: b").is_err());
        named_file.add_field("X-Kind", "manifest").unwrap();
        let mut head = Vec::new();
        named_file.respond(None, Exchange::farewell(), (0, Date::at(0)), &mut head);
        let head = String::from_utf8(head).unwrap();
        assert!(head.contains("\r\nX-Kind: manifest\r\n"), "{head}");
        assert!(!head.contains("X-Other") && !head.contains("Content-Length: 1\r\n"), "{head}");
    }
}
