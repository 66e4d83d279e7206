//! Compresses files on a thread of its own, once for each state of a file. A file that is not in the
//! cache yet is sent as it is.

use std::collections::HashSet;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use bine_compression::{Level, compress};
use bine_http::Coding;
use bine_log as log;
use bine_server::reduce_thread_priority;

use super::cache::{Cache, ContentKey};

/// The most files that wait. Others are compressed at a later request.
const MAX_WAITING: usize = 64;
/// The files are compressed once and sent often.
const LEVEL: Level = Level::Stored;

/// A file to compress.
pub(super) struct FileJob {
    pub(super) key: ContentKey,
    pub(super) coding: Coding,
    pub(super) file: Arc<OwnedFd>,
}

/// The queue of files. Its thread starts with the first file, and ends when the queue is dropped.
pub(super) struct FileQueue {
    cache: Arc<Cache>,
    jobs: OnceLock<Option<SyncSender<FileJob>>>,
    /// The files that wait or are being compressed.
    under_way: Arc<Mutex<HashSet<(ContentKey, Coding)>>>,
}

impl FileQueue {
    pub(super) fn new(cache: Arc<Cache>) -> Self {
        Self { cache, jobs: OnceLock::new(), under_way: Arc::default() }
    }

    /// Adds a file, unless it is in the queue already or too many files are.
    pub(super) fn add(&self, job: FileJob) {
        let Some(jobs) = self.jobs.get_or_init(|| self.start()) else { return };
        let name = (job.key.clone(), job.coding);
        if !lock(&self.under_way).insert(name.clone()) {
            return;
        }
        if jobs.try_send(job).is_err() {
            lock(&self.under_way).remove(&name);
        }
    }

    fn start(&self) -> Option<SyncSender<FileJob>> {
        let (sender, receiver) = sync_channel(MAX_WAITING);
        let (cache, under_way) = (Arc::clone(&self.cache), Arc::clone(&self.under_way));
        let run = move || compress_all(&receiver, &cache, &under_way);
        match thread::Builder::new().name("compression".to_owned()).spawn(run) {
            Ok(_) => Some(sender),
            Err(error) => {
                log::error(format_args!(
                    "files are sent without compression, because its thread cannot start: {error}"
                ));
                None
            }
        }
    }
}

fn compress_all(
    jobs: &Receiver<FileJob>,
    cache: &Cache,
    under_way: &Mutex<HashSet<(ContentKey, Coding)>>,
) {
    // On a machine that is always busy, its clients should get smaller files, too.
    reduce_thread_priority();
    while let Ok(FileJob { key, coding, file }) = jobs.recv() {
        // A file that has become shorter, or cannot be read, is sent as it is.
        if let Some(content) = read(&file, key.length)
            && let Ok(compressed) = compress(coding, LEVEL, &content)
        {
            cache.add(key.clone(), coding, compressed.into());
        }
        lock(under_way).remove(&(key, coding));
    }
}

fn read(file: &OwnedFd, length: u64) -> Option<Vec<u8>> {
    let file = File::from(file.try_clone().ok()?);
    let mut content = vec![0; usize::try_from(length).ok()?];
    file.read_exact_at(&mut content, 0).ok()?;
    Some(content)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
