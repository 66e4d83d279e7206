//! Reports the reads of a folder's files as progress.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bine::store::disk::{File, Folder};

use super::hooked_folder::{FileHook, HookedFolder};
use super::is_table_file;
use super::progress::ProgressMeter;

/// The bytes read so far, and those of all files.
pub(super) struct ReadProgress {
    state: Mutex<(ProgressMeter, u64)>,
    /// The length of all files.
    total: u64,
}

impl ReadProgress {
    /// Wraps a folder so that reads of its files are reported.
    pub(super) fn of(folder: Arc<dyn Folder>) -> io::Result<HookedFolder<Self>> {
        let mut total = 0;
        // A repair's files (`damaged-*`) are not read.
        for name in folder.list()?.into_iter().filter(|name| is_table_file(name)) {
            // The operation itself reports a file that cannot be opened.
            total += folder.open(&name).and_then(|file| file.size()).unwrap_or_default();
        }
        let state = Mutex::new((ProgressMeter::new("read", None), 0));
        Ok(HookedFolder::new(folder, Arc::new(Self { state, total })))
    }
}

impl FileHook for ReadProgress {
    fn read_at(&self, file: &dyn File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let read = file.read_at(buffer, at)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (meter, done) = &mut *state;
        *done += read as u64;
        // Damaged files are read more than once.
        meter.show((*done).min(self.total), Some(self.total));
        Ok(read)
    }
}
