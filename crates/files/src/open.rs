//! Decides how long the descriptor of a large file is kept: for the rest of the second it was opened in.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bine_pipeline::Answer;

use crate::answer::{Blank, Source};
use crate::description::Description;
use crate::resource::Resource;

/// A large file, open for reading.
#[derive(Debug)]
pub(crate) struct OpenFile {
    description: Description,
    file: Arc<OwnedFd>,
}

/// The files opened in this second that are not in memory, by path.
///
/// To confirm one would cost as much as to open it, so all are let go together when the second is over, and
/// past the most that are kept each request opens its own.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    by_path: HashMap<Box<str>, Resource>,
    second: u64,
    most: usize,
}

impl OpenFile {
    pub(crate) fn new(file: File, description: Description) -> Self {
        Self { description, file: Arc::new(file.into()) }
    }

    /// Answers with the file.
    pub(crate) fn answer(&self, blank: &mut Blank<'_>) -> Answer {
        blank.answer(&self.description, Source::Disk(&self.file))
    }
}

impl OpenFiles {
    /// Keeps at most so many descriptors.
    pub(crate) fn new(most: usize) -> Self {
        Self { by_path: HashMap::new(), second: 0, most }
    }

    /// Told the second it is. Those of another one are closed.
    pub(crate) fn turn(&mut self, second: u64) {
        if self.second != second {
            self.second = second;
            self.by_path.clear();
        }
    }

    pub(crate) fn find(&self, path: &str) -> Option<&Resource> {
        self.by_path.get(path)
    }

    pub(crate) fn keep(&mut self, path: &str, file: Resource) {
        if self.by_path.len() < self.most {
            self.by_path.insert(path.into(), file);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Longer than what is kept in memory.
    fn some_file() -> io::Result<Resource> {
        let file = File::open("../../Cargo.lock")?;
        let metadata = file.metadata()?;
        Resource::read(file, metadata, Vec::new(), 0, |metadata, variant| {
            Description::of("Cargo.lock", metadata, 0, variant, &[])
        })
    }

    #[test]
    fn no_more_descriptors_are_kept_than_agreed() -> io::Result<()> {
        let mut files = OpenFiles::new(2);
        for path in ["/a", "/b", "/c"] {
            files.keep(path, some_file()?);
        }
        assert!(files.find("/a").is_some() && files.find("/b").is_some());
        assert!(files.find("/c").is_none());
        Ok(())
    }

    #[test]
    fn a_descriptor_is_closed_when_its_second_is_over() -> io::Result<()> {
        let mut files = OpenFiles::new(2);
        files.turn(7);
        files.keep("/a", some_file()?);
        files.turn(7);
        assert!(files.find("/a").is_some());
        files.turn(8);
        assert!(files.find("/a").is_none());
        Ok(())
    }
}
