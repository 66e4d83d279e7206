//! Wraps a folder so that reads are reported as progress.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bine::store::disk::{File, Folder, Lock};

use super::is_table_file;
use super::progress::ProgressMeter;

/// A folder that reports the progress of reads.
pub(super) struct ProgressFolder {
    folder: Arc<dyn Folder>,
    progress: Arc<Mutex<ReadProgress>>,
}

struct ReadProgress {
    meter: ProgressMeter,
    done: u64,
    /// The length of all files.
    total: u64,
}

struct ProgressFile {
    file: Box<dyn File>,
    progress: Arc<Mutex<ReadProgress>>,
}

impl ProgressFolder {
    pub(super) fn new(folder: Arc<dyn Folder>) -> io::Result<Self> {
        let mut total = 0;
        // A repair's files (`damaged-*`) are not read.
        for name in folder.list()?.into_iter().filter(|name| is_table_file(name)) {
            // The operation itself reports a file that cannot be opened.
            total += folder.open(&name).and_then(|file| file.size()).unwrap_or_default();
        }
        let meter = ProgressMeter::new("read", None);
        Ok(Self { folder, progress: Arc::new(Mutex::new(ReadProgress { meter, done: 0, total })) })
    }

    fn with_progress(&self, file: Box<dyn File>) -> Box<dyn File> {
        Box::new(ProgressFile { file, progress: Arc::clone(&self.progress) })
    }
}

impl Folder for ProgressFolder {
    fn name(&self) -> String {
        self.folder.name()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.folder.open(name).map(|file| self.with_progress(file))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.folder.create(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.folder.sync()
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Lock>> {
        self.folder.lock(name)
    }

    fn random_number(&self) -> io::Result<u64> {
        self.folder.random_number()
    }
}

impl File for ProgressFile {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let read = self.file.read_at(buffer, at)?;
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.done += read as u64;
        // Damaged files are read more than once.
        let (done, total) = (progress.done.min(progress.total), progress.total);
        progress.meter.show(done, Some(total));
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        self.file.write_at(bytes, at)
    }

    fn reserve(&self, length: u64) -> io::Result<()> {
        self.file.reserve(length)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.file.truncate(length)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}
