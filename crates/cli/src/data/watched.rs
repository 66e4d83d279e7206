//! Decides how somebody who waits for a whole folder to be read is told how far that is: by what its files are asked for.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bine::store::disk::{File, Folder, Lock};

use super::is_of_tables;
use super::meter::Meter;

/// A folder, what is read of whose files is told.
pub(super) struct Watched {
    folder: Arc<dyn Folder>,
    tally: Arc<Mutex<Tally>>,
}

struct Tally {
    meter: Meter,
    done: u64,
    /// Bytes of all files.
    all: u64,
}

struct WatchedFile {
    file: Box<dyn File>,
    tally: Arc<Mutex<Tally>>,
}

impl Watched {
    pub(super) fn new(folder: Arc<dyn Folder>) -> io::Result<Self> {
        let mut all = 0;
        // What a repair has set aside is not read.
        for name in folder.list()?.into_iter().filter(|name| is_of_tables(name)) {
            // One that cannot be opened is told of by whoever needs it.
            all += folder.open(&name).and_then(|file| file.size()).unwrap_or_default();
        }
        let meter = Meter::new("read", None);
        Ok(Self { folder, tally: Arc::new(Mutex::new(Tally { meter, done: 0, all })) })
    }

    fn watched(&self, file: Box<dyn File>) -> Box<dyn File> {
        Box::new(WatchedFile { file, tally: Arc::clone(&self.tally) })
    }
}

impl Folder for Watched {
    fn name(&self) -> String {
        self.folder.name()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.folder.open(name).map(|file| self.watched(file))
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

impl File for WatchedFile {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let read = self.file.read_at(buffer, at)?;
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.done += read as u64;
        // What is damaged is read more than once.
        let (done, all) = (tally.done.min(tally.all), tally.all);
        tally.meter.show(done, Some(all));
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
