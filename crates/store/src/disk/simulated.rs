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
}
