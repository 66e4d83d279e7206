//! Wraps a folder so that a backup leaves time and the disk to the server, in short turns.
//!
//! A low priority would not do: the kernel compares it only within one session or control group,
//! and a timer starts a backup in another one than the server's.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bine::store::disk::{File, Folder, Lock};

/// A folder that pauses after each turn of work.
pub(super) struct PacedFolder {
    folder: Box<dyn Folder>,
    pace: Arc<Pace>,
}

/// The share of the time that all folders of a backup work together.
pub(super) struct Pace {
    /// From 1 to 100 percent.
    share: u32,
    /// The begin of the current turn.
    turn: Mutex<Instant>,
}

struct PacedFile {
    file: Box<dyn File>,
    pace: Arc<Pace>,
    /// Bytes written since the last sync.
    unsynced: AtomicU64,
}

/// The shortest turn: shorter ones would cost more in switches than they save.
const TURN: Duration = Duration::from_micros(200);
/// The longest pause. A turn is long if the disk or the processor was busy with other work.
const MAX_PAUSE: Duration = Duration::from_millis(100);
/// The bytes of one sync. A commit of the server waits for the disk to write them.
const SYNC_EVERY: u64 = 2 << 20;

impl Pace {
    /// Works for this percentage of the time.
    pub(super) fn new(share: u32) -> Arc<Self> {
        Arc::new(Self { share: share.clamp(1, 100), turn: Mutex::new(Instant::now()) })
    }

    /// Pauses if the turn is over.
    fn keep(&self) {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pause) = pause_after(turn.elapsed(), self.share) else { return };
        #[expect(
            clippy::disallowed_methods,
            reason = "the ban protects servers; this program has one thread, and waits on purpose"
        )]
        std::thread::sleep(pause);
        *turn = Instant::now();
    }
}

/// The pause after a turn of this length; `None`: the turn continues.
fn pause_after(turn: Duration, share: u32) -> Option<Duration> {
    let pause = turn * (100 - share) / share;
    (turn >= TURN && share < 100).then(|| pause.min(MAX_PAUSE))
}

impl PacedFolder {
    pub(super) fn new(folder: impl Folder + 'static, pace: &Arc<Pace>) -> Self {
        Self { folder: Box::new(folder), pace: Arc::clone(pace) }
    }

    fn paced(&self, file: Box<dyn File>) -> Box<dyn File> {
        let (pace, unsynced) = (Arc::clone(&self.pace), AtomicU64::new(0));
        Box::new(PacedFile { file, pace, unsynced })
    }
}

impl Folder for PacedFolder {
    fn name(&self) -> String {
        self.folder.name()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.folder.open(name).map(|file| self.paced(file))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.folder.create(name).map(|file| self.paced(file))
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

    fn random_number(&self) -> io::Result<u64> {
        self.folder.random_number()
    }
}

impl File for PacedFile {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.pace.keep();
        self.file.read_at(buffer, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        self.pace.keep();
        if self.unsynced.load(Ordering::Relaxed) >= SYNC_EVERY && self.pace.share < 100 {
            self.file.sync_data()?;
            self.unsynced.store(0, Ordering::Relaxed);
            self.pace.keep();
        }
        let written = self.file.write_at(bytes, at)?;
        self.unsynced.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_in_proportion_to_the_turn() {
        let millisecond = Duration::from_millis(1);
        assert_eq!(pause_after(millisecond, 25), Some(3 * millisecond));
        assert_eq!(pause_after(millisecond, 50), Some(millisecond));
        assert_eq!(pause_after(TURN / 2, 25), None);
        assert_eq!(pause_after(millisecond, 100), None);
        assert_eq!(pause_after(Duration::from_secs(9), 1), Some(MAX_PAUSE));
    }
}
