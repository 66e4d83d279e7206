//! Decides how long the descriptor of a large file is kept: for the rest of the second it was opened in.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bine_pipeline::Answer;

use crate::answer::{Blank, Source};
use crate::description::Description;

/// A large file, open for reading.
#[derive(Debug)]
pub(crate) struct OpenFile {
    description: Description,
    file: Arc<OwnedFd>,
}

/// The large files opened in this second, by path.
///
/// To confirm one would cost as much as to open it, so all are let go together when the second is over, and
/// past the most that are kept each request opens its own.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    by_path: HashMap<Box<str>, OpenFile>,
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

    pub(crate) fn find(&self, path: &str) -> Option<&OpenFile> {
        self.by_path.get(path)
    }

    pub(crate) fn keep(&mut self, path: &str, file: OpenFile) {
        if self.by_path.len() < self.most {
            self.by_path.insert(path.into(), file);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn some_file() -> io::Result<OpenFile> {
        let file = File::open("Cargo.toml")?;
        let metadata = file.metadata()?;
        let description = Description::of("Cargo.toml", &metadata, 0, Box::default());
        Ok(OpenFile::new(file, description))
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
        let file = some_file()?;
        let watched = Arc::downgrade(&file.file);
        files.keep("/a", file);
        files.turn(7);
        assert!(watched.upgrade().is_some());
        files.turn(8);
        assert!(watched.upgrade().is_none());
        Ok(())
    }
}
