//! Test helpers: captured messages, scratch folders, and a disk that is nearly full.

use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

thread_local! {
    static CAPTURED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Captures the messages of this thread, instead of logging them, until it is dropped.
pub struct Capture(());

/// Starts to capture the messages of this thread.
pub fn capture() -> Capture {
    CAPTURED.set(Some(Vec::new()));
    Capture(())
}

impl Capture {
    /// Ends the capture and returns the captured messages.
    pub fn end(self) -> Vec<String> {
        let Self(()) = self;
        CAPTURED.take().unwrap_or_default()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        CAPTURED.set(None);
    }
}

/// Captures `message` and returns true, if this thread captures messages.
pub(crate) fn captured(message: fmt::Arguments<'_>) -> bool {
    CAPTURED.with_borrow_mut(|captured| {
        captured.as_mut().map(|captured| captured.push(message.to_string())).is_some()
    })
}

/// A temporary folder for one test, removed on drop.
pub struct ScratchFolder(PathBuf);

impl ScratchFolder {
    /// Creates an empty folder.
    #[expect(clippy::new_without_default, reason = "it creates a folder on disk")]
    pub fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bine-logs-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// The path of the file called `name` in this folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Creates a named pipe.
    pub fn pipe(&self) -> PathBuf {
        let path = self.path("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    /// Returns a disk of 256 KiB that is nearly full, for the test called `name`.
    ///
    /// Runs the test a second time, in a process with its own mount namespace. Returns `None` in
    /// the first process, and on a system that does not allow a test to mount file systems.
    pub fn small_disk(name: &str) -> Option<Self> {
        if let Some(path) = std::env::var_os("BINE_SMALL_DISK") {
            let disk = Self(path.into());
            std::fs::write(disk.path("ballast"), vec![0; 224 * 1024]).unwrap();
            return Some(disk);
        }
        let folder = Self::new();
        let mount = "mount -t tmpfs -o size=256k none \"$BINE_SMALL_DISK\" || exit 77; \
                     exec \"$0\" --exact \"$1\" --nocapture";
        let status = Command::new("unshare")
            .args(["-rm", "sh", "-c", mount])
            .arg(std::env::current_exe().unwrap())
            .arg(name)
            .env("BINE_SMALL_DISK", &folder.0)
            .status();
        // Some systems do not allow the mount. Where it works, the test must pass in the second
        // process.
        let code = status.ok().and_then(|status| status.code());
        assert_ne!(code, Some(101), "the test failed on the small disk");
        None
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Waits until the text of the file at `path` satisfies `is_enough`, and returns it.
///
/// # Panics
///
/// If the text does not satisfy `is_enough` within 20 seconds.
#[track_caller]
pub fn await_text(path: &Path, is_enough: impl Fn(&str) -> bool) -> String {
    let started = Instant::now();
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if is_enough(&text) {
            return text;
        }
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "the file has only this text after 20 s: {text:?}"
        );
        std::thread::yield_now();
    }
}

/// Whether this process runs the test called `name` alone. If not, runs it in a new process, so that
/// no other test changes what belongs to a process: its CPU time, its descriptors, its statics.
///
/// # Panics
///
/// The test fails in its process, or no test has this name.
#[track_caller]
pub fn is_alone(name: &str) -> bool {
    const ALONE: &str = "BINE_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let has_passed = output.status.success() && text.contains("test result: ok. 1 passed");
    // A reader of the output would count the results of that process, too.
    let is_own = |line: &&str| !line.starts_with("test result: ") && *line != "failures:";
    let own: Vec<&str> = text.lines().filter(is_own).collect();
    let own = own.join("\n");
    assert!(has_passed, "{name} failed in a process of its own:\n{errors}{own}");
    false
}
