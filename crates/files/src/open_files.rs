//! Keeps large files open for the rest of the second in which they were opened.

use std::collections::HashMap;

use crate::resource::Resource;

/// The large files that were opened in this second, by path.
///
/// Revalidating an open file would cost as much as opening it, so all files are closed together
/// when the second ends. When the limit is reached, each further request opens its own file.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    by_path: HashMap<Box<str>, Resource>,
    second: u64,
    max_files: usize,
}

impl OpenFiles {
    /// Creates an empty set with a limit of open files.
    pub(crate) fn new(max_files: usize) -> Self {
        Self { by_path: HashMap::new(), second: 0, max_files }
    }

    /// Sets the current second and closes the files of an earlier one.
    pub(crate) fn advance_to(&mut self, second: u64) {
        if self.second != second {
            self.second = second;
            self.by_path.clear();
        }
    }

    pub(crate) fn get(&self, path: &str) -> Option<&Resource> {
        self.by_path.get(path)
    }

    pub(crate) fn insert(&mut self, path: &str, file: Resource) {
        if self.by_path.len() < self.max_files {
            self.by_path.insert(path.into(), file);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io;

    use super::*;
    use crate::description::Description;

    /// A file that is too long for memory.
    fn file_with() -> io::Result<Resource> {
        let file = File::open("../../Cargo.lock")?;
        let metadata = file.metadata()?;
        Resource::read(file, metadata, Vec::new(), 0, |metadata, variant| {
            Description::of("Cargo.lock", metadata, 0, variant, &[])
        })
    }

    #[test]
    fn limits_open_descriptors() -> io::Result<()> {
        let mut files = OpenFiles::new(2);
        for path in ["/a", "/b", "/c"] {
            files.insert(path, file_with()?);
        }
        assert!(files.get("/a").is_some() && files.get("/b").is_some());
        assert!(files.get("/c").is_none());
        Ok(())
    }

    #[test]
    fn closes_descriptors_after_their_second() -> io::Result<()> {
        let mut files = OpenFiles::new(2);
        files.advance_to(7);
        files.insert("/a", file_with()?);
        files.advance_to(7);
        assert!(files.get("/a").is_some());
        files.advance_to(8);
        assert!(files.get("/a").is_none());
        Ok(())
    }
}
