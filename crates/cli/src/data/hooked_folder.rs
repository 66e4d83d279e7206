//! Wraps a folder so that the reads and writes of its files go through a hook.

use std::io;
use std::sync::Arc;

use bine::store::Time;
use bine::store::disk::{File, Folder, Lock};

/// The hook around the reads and writes of a folder's files.
pub(super) trait FileHook: Send + Sync {
    /// Reads from a file, possibly fewer bytes than the buffer holds.
    fn read_at(&self, file: &dyn File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        file.read_at(buffer, at)
    }

    /// Writes to a file, possibly fewer bytes than given.
    fn write_at(&self, file: &dyn File, bytes: &[u8], at: u64) -> io::Result<usize> {
        file.write_at(bytes, at)
    }
}

/// A folder whose files are read and written through a hook.
pub(super) struct HookedFolder<H> {
    folder: Arc<dyn Folder>,
    hook: Arc<H>,
}

struct HookedFile<H> {
    file: Box<dyn File>,
    hook: Arc<H>,
}

impl<H: FileHook + 'static> HookedFolder<H> {
    pub(super) fn new(folder: Arc<dyn Folder>, hook: Arc<H>) -> Self {
        Self { folder, hook }
    }

    fn hooked(&self, file: Box<dyn File>) -> Box<dyn File> {
        Box::new(HookedFile { file, hook: Arc::clone(&self.hook) })
    }
}

impl<H: FileHook + 'static> Folder for HookedFolder<H> {
    fn name(&self) -> String {
        self.folder.name()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.folder.open(name).map(|file| self.hooked(file))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.folder.create(name).map(|file| self.hooked(file))
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

    fn available(&self) -> io::Result<u64> {
        self.folder.available()
    }

    fn now(&self) -> Time {
        self.folder.now()
    }

    fn random_number(&self) -> io::Result<u64> {
        self.folder.random_number()
    }
}

impl<H: FileHook> File for HookedFile<H> {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.hook.read_at(&*self.file, buffer, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        self.hook.write_at(&*self.file, bytes, at)
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
