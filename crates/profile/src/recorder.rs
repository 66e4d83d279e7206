//! The start and the end of a recording, and the record of each allocation.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::RandomState;
use std::hint::black_box;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::Instant;
use std::{error, fmt};

use crate::profile::{Count, Profile, RouteRequests, Stack};
use crate::span;
use crate::stack::CallStack;
use crate::stage::Stage;
use crate::symbols::Symbols;
use crate::table::{LIMITS, Site, SiteCount, Table};

/// A recording to start.
pub struct Recording {
    /// The file to write at the end. An existing file is replaced.
    pub file: PathBuf,
    /// The number of requests before the first one that is recorded.
    pub after: u64,
    /// The number of requests to record; `None`: until [`finish`].
    pub requests: Option<u64>,
    /// Called when the file has been written before [`finish`], or could not be written.
    pub on_written: fn(&io::Result<WrittenProfile>),
}

/// A file that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenProfile {
    /// The path of the file.
    pub file: PathBuf,
    /// The number of recorded requests.
    pub requests: u64,
    /// The recorded allocations, with those for whose call stacks there was no room.
    pub count: Count,
}

/// Why a recording cannot start.
#[derive(Debug)]
pub enum StartError {
    /// The file cannot be created.
    File(io::Error),
    /// The program uses an allocator that is not [`Allocator`](crate::Allocator).
    NoAllocator,
    /// A recording has started already.
    Running,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => write!(f, "the file cannot be created: {error}"),
            Self::NoAllocator => f.write_str(
                "this program was built without the profiler: enable the feature `profile` of `bine` in its Cargo.toml; if it has an allocator of its own, wrap that instead: `#[global_allocator] static ALLOCATOR: bine::ProfiledAllocator<A> = bine::ProfiledAllocator::of(A);`",
            ),
            Self::Running => f.write_str("allocations are recorded already"),
        }
    }
}

impl error::Error for StartError {}

/// A recording that has started.
struct Running {
    recording: Recording,
    began: Instant,
}

/// The table of the recording, if one runs. A thread holds the lock for the record of one allocation.
static TABLE: RwLock<Option<(Table, RandomState)>> = RwLock::new(None);
/// The number of allocations whose call stack is cut.
static CUT: AtomicU64 = AtomicU64::new(0);
/// The recording. Its lock is held while the file is written, so that [`finish`] waits for that.
static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

/// Starts a recording.
///
/// # Errors
///
/// Returns why it cannot start; nothing is recorded then.
pub fn start(recording: Recording) -> Result<(), StartError> {
    let mut running = lock_running();
    if running.is_some() {
        return Err(StartError::Running);
    }
    if !is_allocator_installed() {
        return Err(StartError::NoAllocator);
    }
    // An error at the end would come after hours of work.
    File::create(part_file(&recording.file)).map_err(StartError::File)?;
    let (after, requests) = (recording.after, recording.requests);
    *running = Some(Running { recording, began: Instant::now() });
    drop(running);
    begin(after, requests);
    Ok(())
}

/// Ends the recording and writes its file. Returns `None` if no recording runs; one that ends at this
/// moment on another thread has been written before.
///
/// # Errors
///
/// The file cannot be written.
pub fn finish() -> Option<io::Result<WrittenProfile>> {
    let mut running = lock_running();
    Some(write_running(&running.take()?))
}

fn write_running(running: &Running) -> io::Result<WrittenProfile> {
    let Running { recording, began } = running;
    span::exempt(|| write(&recording.file, *began)).unwrap_or_else(|| {
        Err(io::Error::other("the profiler cannot end while it records an allocation"))
    })
}

/// Records an allocation of this thread.
#[cold]
#[inline(never)]
pub(crate) fn record(bytes: usize) {
    span::exempt(|| {
        let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
        let Some((table, hasher)) = &*table else { return };
        let stack = CallStack::walk();
        if stack.is_cut {
            CUT.fetch_add(1, Ordering::Relaxed);
        }
        let (stage, route) = span::current();
        table.add(&Site { stage, route, frames: stack.frames() }, hasher, bytes);
    });
}

/// Whether the allocator of this program is one that is recorded: records an allocation, and looks for
/// it.
fn is_allocator_installed() -> bool {
    begin(0, None);
    drop(black_box(Box::new(0_u8)));
    span::end();
    !end_table().0.is_empty()
}

fn begin(after: u64, requests: Option<u64>) {
    CUT.store(0, Ordering::Relaxed);
    *TABLE.write().unwrap_or_else(PoisonError::into_inner) =
        Some((Table::new(LIMITS), RandomState::new()));
    span::begin(after, requests, end_in_background);
}

/// Ends the record of allocations. Returns all of them, and those for whose places there was no room.
fn end_table() -> (Vec<SiteCount>, Count) {
    let table = TABLE.write().unwrap_or_else(PoisonError::into_inner).take();
    table.map(|(table, _)| table.into_counts()).unwrap_or_default()
}

/// Writes the file on a thread of its own: names of functions may take seconds.
fn end_in_background() {
    let write = || {
        // The lock is held for the whole of it, so that the program does not end before.
        let mut running = lock_running();
        if let Some(ended) = running.take() {
            let written = write_running(&ended);
            (ended.recording.on_written)(&written);
        }
    };
    // Without a thread, the file is written when the program ends.
    let _ = span::exempt(|| thread::Builder::new().name("bine profile".to_owned()).spawn(write));
}

fn write(file: &Path, began: Instant) -> io::Result<WrittenProfile> {
    let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (requests, routes) = span::end();
    let (sites, left_out) = end_table();
    let program = std::env::args_os().next().map(PathBuf::from);
    let program = program.as_deref().and_then(Path::file_name).unwrap_or_default();
    let route =
        |(route, requests): (&str, u64)| RouteRequests { requests, route: route.to_owned() };
    let mut profile = Profile {
        program: program.to_string_lossy().into_owned(),
        requests,
        milliseconds,
        left_out,
        cut: CUT.load(Ordering::Relaxed),
        routes: routes.into_iter().map(route).collect(),
        ..Profile::default()
    };
    let mut count = left_out;
    let mut symbols = Symbols::default();
    // Addresses in the same line of the same function are the same place.
    let mut stacks: BTreeMap<(Stage, &str, Vec<u32>), Count> = BTreeMap::new();
    for SiteCount { site, count: found } in &sites {
        count.add(*found);
        let frames = symbols.name(&site.frames);
        stacks.entry((site.stage, site.route, frames)).or_default().add(*found);
    }
    backtrace::clear_symbol_cache();
    profile.frames = symbols.frames;
    let stacks = stacks.into_iter().map(|((stage, route, frames), count)| Stack {
        count,
        stage,
        route: route.to_owned(),
        frames,
    });
    profile.stacks = stacks.collect();
    let part = part_file(file);
    let mut out = BufWriter::new(File::create(&part)?);
    profile.write(&mut out)?;
    out.flush()?;
    drop(out);
    // A reader never finds an incomplete file.
    fs::rename(&part, file)?;
    Ok(WrittenProfile { file: file.to_owned(), requests, count })
}

/// The file that is written and then renamed.
fn part_file(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

fn lock_running() -> MutexGuard<'static, Option<Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The unit tests have the allocator of the system.
    #[test]
    fn rejects_a_program_without_the_allocator() {
        let recording = Recording {
            file: std::env::temp_dir().join("bine-profile-without-allocator"),
            after: 0,
            requests: None,
            on_written: |_| {},
        };
        let error = start(recording).unwrap_err();
        assert!(matches!(error, StartError::NoAllocator));
        assert!(error.to_string().contains("enable the feature `profile` of `bine`"), "{error}");
    }
}
