//! A file that the program opened itself, instead of one below a root.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bine_http::{Date, Exchange, Head};
use bine_server::Answer;

use crate::description::{Description, Variant};
use crate::response::{Responder, Source};
use crate::rules::{Field, FieldRule};

/// An open file with the name that determines its media type.
#[derive(Clone, Debug)]
pub struct NamedFile {
    file: Arc<OwnedFd>,
    metadata: Metadata,
    name: String,
    fields: Vec<Field>,
}

impl NamedFile {
    /// Wraps an open file. `name` determines the media type.
    ///
    /// # Errors
    ///
    /// The file's metadata cannot be read, or it is not a regular file.
    pub fn new(file: File, name: &str) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a regular file"));
        }
        let (file, name) = (Arc::new(file.into()), name.to_owned());
        Ok(Self { file, metadata, name, fields: Vec::new() })
    }

    /// Adds a header field.
    ///
    /// # Errors
    ///
    /// The field is invalid, or the server sets it itself. Nothing is added then.
    pub fn add_field(&mut self, name: &str, value: &str) -> Result<(), String> {
        FieldRule::new("*", name, value)?;
        self.fields.push((name.into(), value.into()));
        Ok(())
    }

    /// Returns the length in bytes at the time of opening.
    pub fn length(&self) -> u64 {
        self.metadata.len()
    }

    /// Returns the file descriptor.
    pub const fn file(&self) -> &Arc<OwnedFd> {
        &self.file
    }

    /// Responds to a GET or HEAD request according to its conditions and ranges (RFC 9110 sections
    /// 13 and 14), and appends the response head to `buffer`. Without a request head it sends the
    /// whole file. `second` is the current time in seconds since 1970, and `date` is the same time.
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
    fn returns_length_of_the_file() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let named_file = NamedFile::new(File::open(path).unwrap(), "Cargo.toml").unwrap();
        assert_eq!(named_file.length(), std::fs::read(path).unwrap().len() as u64);
    }

    #[test]
    fn sends_added_fields_and_rejects_reserved_ones() {
        let file = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
        let mut named_file = NamedFile::new(file, "Cargo.toml").unwrap();
        assert!(named_file.add_field("Content-Length", "1").is_err());
        assert!(named_file.add_field("X-Kind", "a\r\nX-Other: b").is_err());
        named_file.add_field("X-Kind", "manifest").unwrap();
        let mut head = Vec::new();
        named_file.respond(None, Exchange::closing(), (0, Date::at(0)), &mut head);
        let head = String::from_utf8(head).unwrap();
        assert!(head.contains("\r\nX-Kind: manifest\r\n"), "{head}");
        assert!(!head.contains("X-Other") && !head.contains("Content-Length: 1\r\n"), "{head}");
    }
}
