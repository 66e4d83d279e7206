//! The pace of a backup, which leaves the processor and the disk to the server: short turns of
//! work, with pauses between them.
//!
//! - A call transfers few bytes. A kernel that does not preempt itself runs a call to its end, and
//!   a request that arrives on the same core meanwhile waits. With calls of 1 MiB a turn took up to
//!   2.8 ms of CPU time (99th percentile), with calls of 64 KiB 0.6 ms.
//! - A share of the time stays free.
//!
//! Low priorities were rejected. The kernel compares them only within one session or control group,
//! and a timer starts a backup in another one than the server's. Measured in its own group,
//! `SCHED_IDLE` disturbed pages as much as the usual priority, and made a backup a third slower
//! (docs/measurements/store.md). A thread that never runs on a busy machine also holds the locks of
//! the file system that a commit of the server waits for.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bine::store::disk::{File, Folder};

use super::hooked_folder::{FileHook, HookedFolder};

/// The share of the time that all folders of a backup work together.
pub(super) struct Pace {
    /// From 1 to 100 percent. 100 means no limit.
    share: u32,
    turn: Mutex<Turn>,
}

struct Turn {
    begin: Instant,
    /// Bytes written since the last sync.
    unsynced: u64,
}

/// The shortest turn: shorter ones would cost more in switches than they save.
const TURN: Duration = Duration::from_micros(100);
/// The longest pause. A turn is long if the disk or the processor was busy with other work.
const MAX_PAUSE: Duration = Duration::from_millis(100);
/// The bytes of one read or write. The kernel copies them in less than a turn.
const CALL: usize = 64 << 10;
/// The bytes of one sync. A commit of the server waits for the disk to write them.
const SYNC_EVERY: u64 = 2 << 20;

impl Pace {
    /// Works for this percentage of the time.
    pub(super) fn new(share: u32) -> Arc<Self> {
        let turn = Mutex::new(Turn { begin: Instant::now(), unsynced: 0 });
        Arc::new(Self { share: share.clamp(1, 100), turn })
    }

    /// Wraps a folder so that its files are read and written at this pace.
    pub(super) fn folder(self: &Arc<Self>, folder: impl Folder + 'static) -> HookedFolder<Self> {
        HookedFolder::new(Arc::new(folder), Arc::clone(self))
    }

    /// Pauses if the turn is over.
    fn keep(&self, turn: &mut Turn) {
        let Some(pause) = pause_after(turn.begin.elapsed(), self.share) else { return };
        #[expect(
            clippy::disallowed_methods,
            reason = "the ban protects servers; this program has one thread, and waits on purpose"
        )]
        std::thread::sleep(pause);
        turn.begin = Instant::now();
    }

    /// The bytes that one call may transfer of these.
    fn bytes_of_call(&self, wanted: usize) -> usize {
        if self.share < 100 { wanted.min(CALL) } else { wanted }
    }
}

/// The pause after a turn of this length; `None`: the turn continues.
fn pause_after(turn: Duration, share: u32) -> Option<Duration> {
    let pause = turn * (100 - share) / share;
    (turn >= TURN && share < 100).then(|| pause.min(MAX_PAUSE))
}

impl FileHook for Pace {
    fn read_at(&self, file: &dyn File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.keep(&mut self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        let length = self.bytes_of_call(buffer.len());
        file.read_at(&mut buffer[..length], at)
    }

    fn write_at(&self, file: &dyn File, bytes: &[u8], at: u64) -> io::Result<usize> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.keep(&mut turn);
        if turn.unsynced >= SYNC_EVERY && self.share < 100 {
            file.sync_data()?;
            turn.unsynced = 0;
            self.keep(&mut turn);
        }
        let written = file.write_at(&bytes[..self.bytes_of_call(bytes.len())], at)?;
        turn.unsynced += written as u64;
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use bine::store::disk::{SimulatedFolder, read_full, write_all};

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

    #[test]
    fn transfers_few_bytes_per_call_unless_nothing_is_limited() {
        let bytes: Vec<u8> = (0..3 * CALL).map(|at| (at % 251) as u8).collect();
        for (share, of_call) in [(99, CALL), (100, bytes.len())] {
            let folder = Pace::new(share).folder(SimulatedFolder::new(1, 1 << 20));
            let file = folder.create("a").unwrap();
            assert_eq!(file.write_at(&bytes, 0).unwrap(), of_call);
            write_all(&*file, &bytes, 0).unwrap();
            let mut read = vec![0; bytes.len()];
            assert_eq!(file.read_at(&mut read, 0).unwrap(), of_call);
            assert_eq!(read_full(&*file, &mut read, 0).unwrap(), bytes.len());
            assert_eq!(read, bytes);
        }
    }
}
