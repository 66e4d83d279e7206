//! A simulated disk in memory. A seed determines its failures, so that each failure can be
//! reproduced.
//!
//! The model:
//!
//! - A failed sync forgets which sectors it failed to write, while readers still see them.
//! - On a power failure each sector written since the last sync holds any of its contents since
//!   then, independently of other sectors.
//! - A name that was created, changed or removed since the folder's last sync may revert,
//!   independently of other names.
//! - A write may be short.
//! - The disk may be full.
//! - The disk may lose the end of a synced file.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::{File, Folder, Lock};
use crate::time::Time;

/// A folder in memory. Its handles share one state.
#[derive(Clone)]
pub struct SimulatedFolder {
    state: Arc<Mutex<FolderState>>,
    /// The process of this handle; `None` for the test itself.
    life: Option<u64>,
}

/// The failure of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The disk fails (EIO).
    Broken,
    /// The disk is full (ENOSPC).
    Full,
    /// A write or a read is short, or is interrupted at its begin. Other operations succeed.
    Short,
    /// The process dies: this operation and all later ones fail, until
    /// [`revive`](SimulatedFolder::revive) or [`lose_power`](SimulatedFolder::lose_power).
    Death,
}

/// The unit of atomic writes.
const SECTOR: usize = 512;

struct FolderState {
    random: u64,
    files: Vec<FileState>,
    /// Names as readers see them.
    names: BTreeMap<String, usize>,
    /// Names on the disk.
    durable_names: BTreeMap<String, usize>,
    /// Changes of names since the last sync.
    name_changes: Vec<NameChange>,
    /// Free bytes.
    room: u64,
    now: Time,
    /// The number of operations so far, by which faults are scheduled.
    operations: u64,
    faults: BTreeMap<u64, Fault>,
    is_dead: bool,
    is_locked: bool,
    /// The number of deaths. Handles of an earlier process stay unusable.
    life: u64,
}

#[derive(Default)]
struct FileState {
    /// The bytes as readers see them.
    visible: Vec<u8>,
    durable: Vec<u8>,
    /// The contents of each sector since the last sync; at the end of a file shorter than a sector.
    unsynced: BTreeMap<usize, Vec<Vec<u8>>>,
    /// The lengths of the file since the last sync.
    lengths: Vec<usize>,
}

enum NameChange {
    Created(String, usize),
    Renamed(String, String, usize),
    Removed(String),
}

impl SimulatedFolder {
    /// Creates an empty folder with `room` free bytes. `seed` determines its random choices.
    pub fn new(seed: u64, room: u64) -> Self {
        let state = FolderState {
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            files: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            name_changes: Vec::new(),
            room,
            now: Time(0),
            operations: 0,
            faults: BTreeMap::new(),
            is_dead: false,
            is_locked: false,
            life: 0,
        };
        Self { state: Arc::new(Mutex::new(state)), life: None }
    }

    /// A handle of the process that begins here. It fails once that process has ended, even if a
    /// thread still uses it.
    #[must_use]
    pub fn process(&self) -> Self {
        let life = Some(self.state().life);
        Self { state: Arc::clone(&self.state), life }
    }

    /// Schedules a fault for the operation that follows `ahead` further ones.
    pub fn fail(&self, ahead: u64, fault: Fault) {
        let mut state = self.state();
        let at = state.operations + ahead;
        state.faults.insert(at, fault);
    }

    /// Cancels all scheduled faults.
    pub fn heal(&self) {
        self.state().faults.clear();
    }

    /// Sets the number of free bytes.
    pub fn set_room(&self, room: u64) {
        self.state().room = room;
    }

    /// Sets the time of the clock, which begins at 1970-01-01T00:00:00Z and does not advance.
    pub fn set_time(&self, now: Time) {
        self.state().now = now;
    }

    /// The number of free bytes.
    pub fn room(&self) -> u64 {
        self.state().room
    }

    /// The number of operations so far.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Starts a new process without a power failure.
    pub fn revive(&self) {
        self.state().begin_life();
    }

    /// Starts a new process after a power failure.
    pub fn lose_power(&self) {
        let mut state = self.state();
        let state = &mut *state;
        for change in std::mem::take(&mut state.name_changes) {
            if chance(&mut state.random, 2) == 0 {
                change.apply(&mut state.durable_names);
            }
        }
        state.names.clone_from(&state.durable_names);
        for content in &mut state.files {
            content.lose_power(&mut state.random);
        }
        state.begin_life();
    }

    /// The bytes of a file, for a test that compares or corrupts them.
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        state.names.get(name).map(|index| state.files[*index].visible.clone())
    }

    /// Writes a file durably, without counting as an operation.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let mut state = self.state();
        let content =
            FileState { visible: bytes.into(), durable: bytes.into(), ..FileState::default() };
        state.files.push(content);
        let index = state.files.len() - 1;
        state.names.insert(name.to_owned(), index);
        state.durable_names.insert(name.to_owned(), index);
    }

    /// Loses the end of a synced file: each byte from `at` on reads as zero.
    pub fn zero_tail(&self, name: &str, at: u64) {
        if let Some(mut bytes) = self.content(name) {
            let kept = bytes.len().min(at as usize);
            bytes[kept..].fill(0);
            self.put(name, &bytes);
        }
    }

    /// Loses the end of a synced file: its length is at most `at`.
    pub fn truncate_tail(&self, name: &str, at: u64) {
        if let Some(mut bytes) = self.content(name) {
            bytes.truncate(at as usize);
            self.put(name, &bytes);
        }
    }

    fn state(&self) -> MutexGuard<'_, FolderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an operation of a process, and returns its scheduled fault.
    fn operate(
        &self,
        life: Option<u64>,
    ) -> io::Result<(MutexGuard<'_, FolderState>, Option<Fault>)> {
        let mut state = self.state();
        let mut is_dead = life.is_some_and(|life| life != state.life);
        let mut fault = None;
        if !is_dead {
            let at = state.operations;
            state.operations += 1;
            fault = state.faults.remove(&at);
            state.is_dead |= fault == Some(Fault::Death);
            is_dead = state.is_dead;
        }
        if is_dead {
            return Err(io::Error::other("the process is dead"));
        }
        Ok((state, fault))
    }

    /// Begins an operation that either succeeds or has no effect.
    fn operate_whole(&self, life: Option<u64>) -> io::Result<MutexGuard<'_, FolderState>> {
        match self.operate(life)? {
            (_, Some(Fault::Broken)) => Err(Errno::IO.into()),
            (_, Some(Fault::Full)) => Err(Errno::NOSPC.into()),
            (state, _) => Ok(state),
        }
    }

    fn handle(&self, index: usize, life: u64) -> Box<dyn File> {
        Box::new(SimulatedFile { folder: self.clone(), index, life })
    }
}

impl Folder for SimulatedFolder {
    fn name(&self) -> String {
        "a simulated folder".to_owned()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.operate_whole(self.life)?.names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        let state = self.operate_whole(self.life)?;
        let index = *state.names.get(name).ok_or(ErrorKind::NotFound)?;
        Ok(self.handle(index, state.life))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        let mut state = self.operate_whole(self.life)?;
        if state.names.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        state.files.push(FileState::default());
        let index = state.files.len() - 1;
        state.rename(NameChange::Created(name.to_owned(), index));
        Ok(self.handle(index, state.life))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.operate_whole(self.life)?;
        let index = *state.names.get(from).ok_or(ErrorKind::NotFound)?;
        state.release_room(to);
        state.rename(NameChange::Renamed(from.to_owned(), to.to_owned(), index));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.operate_whole(self.life)?;
        if !state.names.contains_key(name) {
            return Err(ErrorKind::NotFound.into());
        }
        state.release_room(name);
        state.rename(NameChange::Removed(name.to_owned()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.operate_whole(self.life)?;
        state.name_changes.clear();
        let names = state.names.clone();
        state.durable_names = names;
        Ok(())
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Lock>> {
        let mut state = self.operate_whole(self.life)?;
        if state.is_locked {
            return Err(io::Error::new(ErrorKind::WouldBlock, "1"));
        }
        state.is_locked = true;
        if !state.names.contains_key(name) {
            state.files.push(FileState::default());
            let index = state.files.len() - 1;
            state.rename(NameChange::Created(name.to_owned(), index));
        }
        Ok(Box::new(SimulatedLock { folder: self.clone(), life: state.life }))
    }

    fn available(&self) -> io::Result<u64> {
        Ok(self.room())
    }

    fn now(&self) -> Time {
        self.state().now
    }

    fn random_number(&self) -> io::Result<u64> {
        Ok(next(&mut self.state().random))
    }
}

impl FolderState {
    fn begin_life(&mut self) {
        self.is_dead = false;
        self.is_locked = false;
        self.faults.clear();
        self.life += 1;
    }

    fn rename(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.name_changes.push(change);
    }

    /// Frees the room of a file that is about to lose its name.
    fn release_room(&mut self, name: &str) {
        if let Some(index) = self.names.get(name) {
            self.room += self.files[*index].visible.len() as u64;
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Created(name, index) => {
                names.insert(name.clone(), *index);
            }
            Self::Renamed(from, to, index) => {
                names.retain(|name, each| name != from || each != index);
                names.insert(to.clone(), *index);
            }
            Self::Removed(name) => {
                names.remove(name);
            }
        }
    }
}

struct SimulatedFile {
    folder: SimulatedFolder,
    index: usize,
    life: u64,
}

impl SimulatedFile {
    fn sync(&self) -> io::Result<()> {
        let (mut state, fault) = self.folder.operate(Some(self.life))?;
        let FolderState { files, random, .. } = &mut *state;
        let content = &mut files[self.index];
        match fault {
            Some(Fault::Broken | Fault::Full) => {
                // An unknown part of the data reached the disk; the system regards the rest as
                // written.
                content.durable = content.survivors(random);
                content.forget();
                Err(Errno::IO.into())
            }
            _ => {
                // Without the data that an earlier failed sync dropped.
                content.durable = content.with_unsynced(|choices| choices - 1);
                content.forget();
                Ok(())
            }
        }
    }
}

impl File for SimulatedFile {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let (mut state, fault) = self.folder.operate(Some(self.life))?;
        let FolderState { files, random, .. } = &mut *state;
        let visible = &files[self.index].visible;
        let rest = visible.get(at as usize..).unwrap_or_default();
        let mut length = rest.len().min(buffer.len());
        match fault {
            Some(Fault::Broken) => return Err(Errno::IO.into()),
            Some(Fault::Short) if length < 2 => return Err(ErrorKind::Interrupted.into()),
            Some(Fault::Short) => length = 1 + chance(random, length - 1),
            _ => {}
        }
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        let (mut state, fault) = self.folder.operate(Some(self.life))?;
        let FolderState { files, random, room, .. } = &mut *state;
        let content = &mut files[self.index];
        let end = content.visible.len();
        let fits = (end + *room as usize).saturating_sub(at as usize).min(bytes.len());
        let taken = match fault {
            Some(Fault::Broken) => return Err(Errno::IO.into()),
            Some(Fault::Full) => return Err(Errno::NOSPC.into()),
            Some(Fault::Short) if chance(random, 4) == 0 => {
                return Err(ErrorKind::Interrupted.into());
            }
            Some(Fault::Short) => fits.min(1 + chance(random, bytes.len())),
            _ => fits,
        };
        if taken == 0 && !bytes.is_empty() {
            return Err(Errno::NOSPC.into());
        }
        content.write(&bytes[..taken], at as usize);
        *room -= (content.visible.len() - end) as u64;
        Ok(taken)
    }

    fn reserve(&self, length: u64) -> io::Result<()> {
        let mut state = self.folder.operate_whole(Some(self.life))?;
        let FolderState { files, room, .. } = &mut *state;
        let content = &mut files[self.index];
        let more = length.saturating_sub(content.visible.len() as u64);
        if more > *room {
            return Err(Errno::NOSPC.into());
        }
        *room -= more;
        content.set_length(content.visible.len().max(length as usize));
        Ok(())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let mut state = self.folder.operate_whole(Some(self.life))?;
        let FolderState { files, room, .. } = &mut *state;
        let content = &mut files[self.index];
        *room = (*room + content.visible.len() as u64).saturating_sub(length);
        content.set_length(length as usize);
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        let state = self.folder.operate_whole(Some(self.life))?;
        Ok(state.files[self.index].visible.len() as u64)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync()
    }
}

struct SimulatedLock {
    folder: SimulatedFolder,
    life: u64,
}

impl Lock for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let mut state = self.folder.state();
        if state.life == self.life {
            state.is_locked = false;
        }
    }
}

impl FileState {
    fn write(&mut self, bytes: &[u8], at: usize) {
        let end = at + bytes.len();
        if end > self.visible.len() {
            self.set_length(end);
        }
        self.visible[at..end].copy_from_slice(bytes);
        self.remember(at, end);
    }

    fn set_length(&mut self, length: usize) {
        let before = self.visible.len();
        self.visible.resize(length, 0);
        self.lengths.push(length);
        if length < before {
            // If the file grows again, the bytes read as zero.
            self.visible.resize(before, 0);
            self.remember(length, before);
            self.visible.truncate(length);
        }
    }

    /// Records the new content of the sectors of this range.
    fn remember(&mut self, from: usize, to: usize) {
        for sector in from / SECTOR..to.div_ceil(SECTOR) {
            let end = ((sector + 1) * SECTOR).min(self.visible.len());
            let bytes = self.visible[sector * SECTOR..end].to_vec();
            self.unsynced.entry(sector).or_default().push(bytes);
        }
    }

    fn forget(&mut self) {
        self.unsynced.clear();
        self.lengths.clear();
    }

    fn lose_power(&mut self, random: &mut u64) {
        self.durable = self.survivors(random);
        self.visible.clone_from(&self.durable);
        self.forget();
    }

    /// The bytes after a power failure: any mixture of contents, sometimes all or no unsynced
    /// writes.
    fn survivors(&self, random: &mut u64) -> Vec<u8> {
        let manner = chance(random, 4);
        self.with_unsynced(|choices| match manner {
            0 => 0,
            1 => choices - 1,
            _ => chance(random, choices),
        })
    }

    /// The durable bytes, with a choice among the durable and the later contents of each sector,
    /// and likewise for the length.
    fn with_unsynced(&self, mut choose: impl FnMut(usize) -> usize) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        let length = match choose(self.lengths.len() + 1) {
            0 => self.durable.len(),
            newer => self.lengths[newer - 1],
        };
        for (sector, contents) in &self.unsynced {
            let Some(newer) = choose(contents.len() + 1).checked_sub(1) else { continue };
            let (from, content) = (sector * SECTOR, &contents[newer]);
            if bytes.len() < from + content.len() {
                bytes.resize(from + content.len(), 0);
            }
            bytes[from..from + content.len()].copy_from_slice(content);
        }
        bytes.resize(length, 0);
        bytes
    }
}

/// A random number below `bound`.
fn chance(random: &mut u64, bound: usize) -> usize {
    (next(random) % bound as u64) as usize
}

/// Xorshift with a multiplication (Vigna 2014): small seeds differ from the first number on.
fn next(random: &mut u64) -> u64 {
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    random.wrapping_mul(0x2545_F491_4F6C_DD1D)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loses_only_unsynced_writes() {
        let mut lost = 0;
        for seed in 0..100 {
            let folder = SimulatedFolder::new(seed, 1 << 20);
            let file = folder.create("a").expect("nothing fails");
            file.write_at(&[1; 2 * SECTOR], 0).expect("nothing fails");
            file.sync_all().expect("nothing fails");
            folder.sync().expect("nothing fails");
            file.write_at(&[2; SECTOR], SECTOR as u64).expect("nothing fails");
            folder.lose_power();
            let found = folder.content("a").expect("its name was synced");
            assert_eq!(found[..SECTOR], [1; SECTOR]);
            assert!(found[SECTOR..] == [1; SECTOR] || found[SECTOR..] == [2; SECTOR]);
            lost += u64::from(found[SECTOR] == 1);
        }
        assert!((20..80).contains(&lost), "{lost}");
    }

    #[test]
    fn loses_only_unsynced_names() {
        let mut lost = 0;
        for seed in 0..100 {
            let folder = SimulatedFolder::new(seed, 1 << 20);
            folder.create("a").expect("nothing fails");
            folder.lose_power();
            lost += u64::from(folder.content("a").is_none());
        }
        assert!((20..80).contains(&lost), "{lost}");
    }

    #[test]
    fn failed_sync_hides_lost_sectors_from_readers() {
        let mut lost = 0;
        for seed in 0..100 {
            let folder = SimulatedFolder::new(seed, 1 << 20);
            let file = folder.create("a").expect("nothing fails");
            folder.sync().expect("nothing fails");
            file.write_at(&[1; 2 * SECTOR], 0).expect("nothing fails");
            folder.fail(0, Fault::Broken);
            assert!(file.sync_data().is_err());
            assert!(file.sync_data().is_ok(), "the system has forgotten");
            assert!(folder.content("a") == Some(vec![1; 2 * SECTOR]));
            folder.lose_power();
            lost += u64::from(folder.content("a") != Some(vec![1; 2 * SECTOR]));
        }
        assert!((20..90).contains(&lost), "{lost}");
    }

    #[test]
    fn full_disk_accepts_a_partial_write() {
        let folder = SimulatedFolder::new(1, 10);
        let file = folder.create("a").expect("nothing fails");
        assert_eq!(file.write_at(&[1; 16], 0).expect("ten fit"), 10);
        let error = file.write_at(&[1; 6], 10).expect_err("none fits");
        assert!(super::super::is_full(&error), "{error}");
        assert_eq!(file.reserve(11).map_err(|error| error.kind()), Err(ErrorKind::StorageFull));
    }

    fn folder() -> SimulatedFolder {
        SimulatedFolder::new(1, 1000)
    }

    fn kind<T>(result: io::Result<T>) -> Result<T, ErrorKind> {
        result.map_err(|error| error.kind())
    }

    #[test]
    fn counts_the_room_of_all_files() {
        let folder = folder();
        let file = folder.create("a").unwrap();
        file.write_at(&[1; 100], 0).unwrap();
        assert_eq!((folder.room(), folder.available().unwrap()), (900, 900));
        // Bytes that the file has already, and new ones after its end.
        file.write_at(&[2; 50], 80).unwrap();
        assert_eq!((folder.room(), file.size().unwrap()), (870, 130));
        // A gap before the written bytes takes room too.
        file.write_at(&[3; 10], 190).unwrap();
        assert_eq!((folder.room(), file.size().unwrap()), (800, 200));
        file.reserve(300).unwrap();
        assert_eq!((folder.room(), file.size().unwrap()), (700, 300));
        file.reserve(250).unwrap();
        assert_eq!((folder.room(), file.size().unwrap()), (700, 300));
        file.truncate(120).unwrap();
        assert_eq!((folder.room(), file.size().unwrap()), (880, 120));
        assert_eq!(kind(file.reserve(1001)), Err(ErrorKind::StorageFull));
        file.reserve(1000).unwrap();
        assert_eq!(folder.room(), 0);
        // Written bytes need no further room.
        assert_eq!(file.write_at(&[4; 10], 995).unwrap(), 5);
        assert_eq!(kind(file.write_at(&[4; 10], 1000)), Err(ErrorKind::StorageFull));
        assert_eq!(file.write_at(&[], 1000).unwrap(), 0);
        file.truncate(400).unwrap();
        let other = folder.create("b").unwrap();
        other.write_at(&[1; 30], 0).unwrap();
        assert_eq!(folder.room(), 570);
        // A file without a name takes no room.
        folder.rename("b", "a").unwrap();
        assert_eq!((folder.room(), folder.list().unwrap()), (970, vec!["a".to_owned()]));
        folder.remove("a").unwrap();
        assert_eq!((folder.room(), folder.list().unwrap()), (1000, vec![]));
        folder.set_room(7);
        assert_eq!(folder.room(), 7);
    }

    #[test]
    fn reads_what_was_written() {
        let folder = folder();
        let file = folder.create("a").unwrap();
        file.write_at(b"abcdef", 2).unwrap();
        assert_eq!(folder.content("a"), Some(b"\0\0abcdef".to_vec()));
        let read = |at, length| {
            let mut buffer = vec![9; length];
            let read = file.read_at(&mut buffer, at).unwrap();
            assert!(buffer[read..].iter().all(|byte| *byte == 9));
            buffer[..read].to_vec()
        };
        assert_eq!((read(1, 3), read(6, 9)), (b"\0ab".to_vec(), b"ef".to_vec()));
        assert_eq!((read(8, 3), read(9, 3), read(0, 0)), (vec![], vec![], vec![]));
        // Bytes that were cut off read as zero when the file grows again.
        file.truncate(4).unwrap();
        file.reserve(6).unwrap();
        assert_eq!(folder.content("a"), Some(b"\0\0ab\0\0".to_vec()));
        folder.put("b", b"abcdef");
        folder.zero_tail("b", 4);
        assert_eq!(folder.content("b"), Some(b"abcd\0\0".to_vec()));
        folder.truncate_tail("b", 3);
        folder.zero_tail("b", 9);
        folder.truncate_tail("b", 9);
        assert_eq!(folder.content("b"), Some(b"abc".to_vec()));
        folder.zero_tail("c", 1);
        folder.truncate_tail("c", 1);
        assert_eq!(folder.content("c"), None);
    }

    #[test]
    fn rejects_names_that_are_missing_or_taken() {
        let folder = folder();
        assert_eq!(kind(folder.open("a").map(drop)), Err(ErrorKind::NotFound));
        assert_eq!(kind(folder.remove("a")), Err(ErrorKind::NotFound));
        assert_eq!(kind(folder.rename("a", "b")), Err(ErrorKind::NotFound));
        folder.create("b").unwrap();
        folder.create("a").unwrap();
        assert_eq!(kind(folder.create("a").map(drop)), Err(ErrorKind::AlreadyExists));
        assert_eq!(folder.list().unwrap(), ["a", "b"]);
        assert_eq!(folder.name(), "a simulated folder");
    }

    #[test]
    fn fails_exactly_the_scheduled_operation() {
        let folder = folder();
        let file = folder.create("a").unwrap();
        folder.fail(1, Fault::Broken);
        folder.fail(3, Fault::Full);
        let before = folder.operations();
        let outcomes = [(); 5].map(|()| kind(file.size()).is_ok());
        assert_eq!(outcomes, [true, false, true, false, true]);
        assert_eq!(folder.operations() - before, 5);
        folder.fail(0, Fault::Full);
        let error = folder.list().unwrap_err();
        assert!(super::super::is_full(&error), "{error}");
        folder.fail(0, Fault::Broken);
        let error = folder.list().unwrap_err();
        assert!(!super::super::is_full(&error), "{error}");
        // A short transfer affects only reads and writes.
        folder.fail(0, Fault::Short);
        folder.list().unwrap();
        folder.fail(0, Fault::Broken);
        folder.heal();
        folder.list().unwrap();
        // Reads and writes fail without an effect.
        for fault in [Fault::Broken, Fault::Full] {
            folder.fail(0, fault);
            assert!(file.write_at(b"abc", 0).is_err());
        }
        folder.fail(0, Fault::Broken);
        assert!(file.read_at(&mut [0; 3], 0).is_err());
        assert_eq!((folder.content("a"), folder.room()), (Some(vec![]), 1000));
    }

    #[test]
    fn shortens_reads_and_writes() {
        let (mut reads, mut writes) = ([0; 4], [0; 4]);
        for seed in 0..200 {
            let folder = SimulatedFolder::new(seed, 1000);
            let file = folder.create("a").unwrap();
            folder.fail(0, Fault::Short);
            match file.write_at(b"abc", 0) {
                Ok(length) => writes[length] += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Interrupted);
                    writes[0] += 1;
                }
            }
            folder.put("a", b"abc");
            let file = folder.open("a").unwrap();
            folder.fail(0, Fault::Short);
            reads[file.read_at(&mut [0; 3], 0).unwrap()] += 1;
            // A single byte cannot be shortened.
            folder.fail(0, Fault::Short);
            assert_eq!(kind(file.read_at(&mut [0; 1], 0)), Err(ErrorKind::Interrupted));
        }
        // A write may be whole; a read transfers a part of the bytes.
        assert!(writes.iter().all(|count| *count > 20), "{writes:?}");
        assert!(reads[1] > 50 && reads[2] > 50 && reads[0] + reads[3] == 0, "{reads:?}");
    }

    #[test]
    fn ends_a_process_with_all_its_handles() {
        let folder = folder();
        let process = folder.process();
        let file = process.create("a").unwrap();
        let lock = process.lock("lock").unwrap();
        process.fail(0, Fault::Death);
        assert_eq!(file.size().unwrap_err().to_string(), "the process is dead");
        assert!(process.list().is_err() && folder.list().is_err());
        let before = folder.operations();
        assert!(file.write_at(b"a", 0).is_err());
        assert_eq!(folder.operations(), before + 1);
        folder.revive();
        // The next process is another one.
        assert!(file.size().is_err() && process.list().is_err());
        assert_eq!(folder.operations(), before + 1);
        let next = folder.process();
        assert_eq!(next.list().unwrap(), ["a", "lock"]);
        // The lock ended with the process, and its drop does not unlock the next one.
        let held = next.lock("lock").unwrap();
        drop(lock);
        let error = folder.lock("lock").map(drop).unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::WouldBlock, "1".to_owned()));
        drop(held);
        drop(folder.lock("lock").unwrap());
    }

    #[test]
    fn power_failure_keeps_what_was_synced() {
        for seed in 0..50 {
            let folder = SimulatedFolder::new(seed, 10_000);
            for name in ["a", "b", "c"] {
                let file = folder.create(name).unwrap();
                file.write_at(name.as_bytes(), 3 * SECTOR as u64).unwrap();
                file.sync_data().unwrap();
            }
            folder.rename("b", "d").unwrap();
            folder.remove("c").unwrap();
            folder.sync().unwrap();
            let process = folder.process();
            folder.lose_power();
            assert_eq!(folder.list().unwrap(), ["a", "d"]);
            let expected = [&[0; 3 * SECTOR][..], b"b"].concat();
            assert_eq!(folder.content("d"), Some(expected));
            assert!(process.list().is_err());
        }
    }

    #[test]
    fn bytes_that_were_cut_off_stay_away() {
        for (cut, grown) in [(10, 100), (600, 700), (SECTOR as u64, 1000)] {
            let folder = SimulatedFolder::new(1, 10_000);
            folder.put("a", &[1; 1000]);
            let file = folder.open("a").unwrap();
            file.truncate(cut).unwrap();
            file.reserve(grown).unwrap();
            file.sync_all().unwrap();
            folder.lose_power();
            let mut expected = vec![1; cut as usize];
            expected.resize(grown as usize, 0);
            assert_eq!(folder.content("a"), Some(expected), "{cut}");
        }
    }

    #[test]
    fn power_failure_draws_each_outcome_of_unsynced_changes() {
        let (mut names, mut lengths) = (BTreeMap::new(), BTreeMap::new());
        for seed in 0..200 {
            let folder = SimulatedFolder::new(seed, 10_000);
            for name in ["removed", "renamed", "cut"] {
                folder.put(name, &[1; 100]);
            }
            folder.remove("removed").unwrap();
            folder.rename("renamed", "new").unwrap();
            folder.open("cut").unwrap().truncate(10).unwrap();
            folder.lose_power();
            let length = folder.content("cut").unwrap().len();
            *lengths.entry(length).or_insert(0) += 1;
            *names.entry(folder.list().unwrap().join(" ")).or_insert(0) += 1;
        }
        assert_eq!(names.len(), 4, "{names:?}");
        assert_eq!(lengths.keys().copied().collect::<Vec<_>>(), [10, 100]);
        let counts = names.values().chain(lengths.values());
        assert!(counts.clone().all(|count| *count > 20), "{names:?} {lengths:?}");
    }

    #[test]
    fn same_seed_draws_the_same_numbers() {
        let numbers = |seed| {
            let folder = SimulatedFolder::new(seed, 1);
            [(); 4].map(|()| folder.random_number().unwrap())
        };
        assert_eq!(numbers(1), numbers(1));
        let mut all: Vec<u64> = (0..100).flat_map(numbers).collect();
        all.sort_unstable();
        all.dedup();
        // Two seeds may have one sequence.
        assert!(all.len() > 390, "{}", all.len());
        let folder = folder();
        assert_eq!(folder.now(), Time(0));
        folder.set_time(Time(7));
        assert_eq!(folder.now(), Time(7));
    }
}
