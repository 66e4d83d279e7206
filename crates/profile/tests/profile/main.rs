//! A program whose allocations are recorded: numbers and bytes of threads, stages and routes.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bine_profile::{
    Allocator, Count, Entered, Profile, Recording, Report, Selection, Stage, StartError,
    WrittenProfile,
};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator::system();

const THREADS: usize = 4;
const TIMES: usize = 500;

/// A file that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("bine-profile-{}-{name}", std::process::id())))
    }

    fn recording(&self, after: u64, requests: Option<u64>) -> Recording {
        Recording {
            file: self.0.clone(),
            after,
            requests,
            on_written: |written| {
                WAS_WRITTEN.store(written.is_ok(), Ordering::SeqCst);
            },
        }
    }

    fn read(&self) -> Profile {
        Profile::read(&std::fs::read(&self.0).unwrap()).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

static WAS_WRITTEN: AtomicBool = AtomicBool::new(false);

/// Allocates 10 bytes, then makes them 30, then 100 bytes of zeros.
#[inline(never)]
fn grow() {
    let mut bytes: Vec<u8> = Vec::with_capacity(10);
    bytes.extend([1; 10]);
    bytes.reserve_exact(20);
    drop(black_box(bytes));
    drop(black_box(vec![0_u8; 100]));
}

#[inline(never)]
fn request(route: &'static str) {
    bine_profile::begin_request();
    let _stage: Entered = bine_profile::enter_route(Stage::Handler, route);
    grow();
    bine_profile::count_route(|| route);
}

/// One test, because a process has one recording.
#[test]
fn counts_allocations_of_all_threads_exactly() {
    let scratch = Scratch::new("threads");
    bine_profile::start(scratch.recording(1, None)).unwrap();
    let error = bine_profile::start(scratch.recording(0, None)).unwrap_err();
    assert!(matches!(error, StartError::Running), "{error}");
    request("before");
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                (0..TIMES).for_each(|_| request(if thread == 0 { "one" } else { "others" }));
            });
        }
    });
    drop(black_box(vec![0_u8; 77]));
    let written = bine_profile::finish().unwrap().unwrap();
    let requests = (THREADS * TIMES) as u64;
    assert_eq!((written.requests, &written.file), (requests, &scratch.0));
    assert!(bine_profile::finish().is_none());
    let profile = scratch.read();
    let all = Report::of(&profile, &Selection::default());
    for (selection, calls) in [
        (Selection::default(), requests),
        (Selection { route: Some("one".to_owned()), ..Selection::default() }, TIMES as u64),
        (Selection { route: Some("before".to_owned()), ..Selection::default() }, 0),
    ] {
        let report = Report::of(&profile, &selection);
        let count = Count { number: 3 * calls, bytes: 140 * calls };
        assert_eq!(report.count, count, "{selection:?}");
        assert_eq!(report.requests, calls, "{selection:?}");
        let own: Vec<_> =
            report.functions.iter().filter(|row| row.own != Count::default()).collect();
        assert_eq!(own.len(), usize::from(calls > 0), "{own:?}");
        assert!(own.iter().all(|row| row.function == "profile::grow" && row.own == count));
        let caller = report.functions.iter().find(|row| row.function == "profile::request");
        assert_eq!(caller.map(|row| row.total), (calls > 0).then_some(count));
    }
    // Perhaps also the threads themselves: they start before or after the first request.
    assert!(all.outside.number > 0 && all.outside.bytes >= 77, "{:?}", all.outside);
    assert_eq!(all.left_out, Count::default());
    let WrittenProfile { count, .. } = written;
    let mut sum = all.count;
    sum.add(all.outside);
    assert_eq!(count, sum);

    let scratch = Scratch::new("limited");
    bine_profile::start(scratch.recording(0, Some(2))).unwrap();
    (0..3).for_each(|_| request("limited"));
    // Waits for the thread that writes.
    while bine_profile::finish().is_none() && !WAS_WRITTEN.load(Ordering::SeqCst) {
        thread::yield_now();
    }
    let report = Report::of(&scratch.read(), &Selection::default());
    assert_eq!((report.requests, report.count), (2, Count { number: 6, bytes: 280 }));

    let folder = Scratch(PathBuf::from("/nowhere/at/all"));
    let error = bine_profile::start(folder.recording(0, None)).unwrap_err();
    assert!(error.to_string().starts_with("the file cannot be created: "), "{error}");
}
