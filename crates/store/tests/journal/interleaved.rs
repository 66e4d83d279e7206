//! A folder that runs an action before one of its operations, as if another process did.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bine_store::disk::{File, Folder, Lock, SimulatedFolder};

/// A folder that runs `action` once, before its operation number `at`.
pub(crate) struct Interleaved {
    folder: SimulatedFolder,
    state: Arc<State>,
}

type Action = Box<dyn FnMut() + Send>;

struct State {
    operations: AtomicU64,
    at: u64,
    /// Whether the action runs before each later operation too, and not once.
    is_repeated: bool,
    action: Mutex<Action>,
}

struct InterleavedFile {
    file: Box<dyn File>,
    state: Arc<State>,
}

impl Interleaved {
    pub(crate) fn new(folder: SimulatedFolder, at: u64, is_repeated: bool, action: Action) -> Self {
        let action = Mutex::new(action);
        let state = State { operations: AtomicU64::new(0), at, is_repeated, action };
        Self { folder, state: Arc::new(state) }
    }

    /// The number of operations so far.
    pub(crate) fn operations(&self) -> u64 {
        self.state.operations.load(Ordering::Relaxed)
    }
}

impl State {
    fn step(&self) {
        let number = self.operations.fetch_add(1, Ordering::Relaxed);
        if number == self.at || (self.is_repeated && number > self.at) {
            self.action.lock().unwrap()();
        }
    }
}

impl Folder for Interleaved {
    fn name(&self) -> String {
        self.folder.name()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.state.step();
        self.folder.list()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.state.step();
        let file = self.folder.open(name)?;
        Ok(Box::new(InterleavedFile { file, state: Arc::clone(&self.state) }))
    }

    fn create(&self, _name: &str) -> io::Result<Box<dyn File>> {
        panic!("a backup does not change its source")
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        panic!("a backup does not change its source")
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        panic!("a backup does not change its source")
    }

    fn sync(&self) -> io::Result<()> {
        panic!("a backup does not change its source")
    }

    fn lock(&self, _name: &str) -> io::Result<Box<dyn Lock>> {
        panic!("a backup does not lock its source")
    }

    fn random_number(&self) -> io::Result<u64> {
        self.folder.random_number()
    }
}

impl File for InterleavedFile {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.state.step();
        self.file.read_at(buffer, at)
    }

    fn write_at(&self, _bytes: &[u8], _at: u64) -> io::Result<usize> {
        panic!("a backup does not change its source")
    }

    fn reserve(&self, _length: u64) -> io::Result<()> {
        panic!("a backup does not change its source")
    }

    fn truncate(&self, _length: u64) -> io::Result<()> {
        panic!("a backup does not change its source")
    }

    fn size(&self) -> io::Result<u64> {
        self.state.step();
        self.file.size()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.state.step();
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.state.step();
        self.file.sync_all()
    }
}
