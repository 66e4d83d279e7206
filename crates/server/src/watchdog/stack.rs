//! Captures the call stack of another thread of this process.
//!
//! The caller sends a signal to the thread. The signal handler walks the stack and stores the
//! return addresses in a static buffer. It does not allocate, takes no lock of this crate and
//! resolves no symbols. The calling thread resolves the symbols afterwards.

use std::ffi::c_void;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::getpid;
use rustix::thread::{futex, gettid};
use rustix::time::Timespec;
use signal_hook::consts::SIGURG;

/// Maximum number of frames. A deeper stack loses its outermost frames.
const MOST_FRAMES: usize = 128;
/// Time within which a thread must answer. A thread in an uninterruptible wait never does.
const PATIENCE: Duration = Duration::from_millis(500);

/// The buffer is free.
const FREE: u32 = 0;
/// The thread `WANTED` must fill the buffer.
const REQUESTED: u32 = 1;
/// The signal handler fills the buffer.
const WALKING: u32 = 2;
/// The buffer is complete.
const DONE: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(FREE);
static WANTED: AtomicU32 = AtomicU32::new(0);
static LENGTH: AtomicUsize = AtomicUsize::new(0);
static FRAMES: [AtomicUsize; MOST_FRAMES] = [const { AtomicUsize::new(0) }; MOST_FRAMES];

/// Installs the signal handler, once for the process.
///
/// SIGURG is ignored by default, libraries use it only for out-of-band data, and debuggers pass it
/// through. Go's runtime chose it for the same reasons.
///
/// # Errors
///
/// Returns the error of the system when the handler cannot be installed.
pub(super) fn prepare() -> io::Result<()> {
    static PREPARED: OnceLock<Result<(), i32>> = OnceLock::new();
    let prepared = PREPARED.get_or_init(|| {
        // The unwinder sets up its tables at the first use, which must not happen in the signal
        // handler.
        // SAFETY: the function must not run on two threads at the same time with a closure that
        // symbolizes; this closure does not.
        unsafe { backtrace::trace_unsynchronized(|_| true) };
        // SAFETY: `on_signal` only makes system calls, uses atomics, and walks the stack; see
        // there.
        let registered = unsafe { signal_hook::low_level::register(SIGURG, on_signal) };
        registered.map(|_| ()).map_err(|error| error.raw_os_error().unwrap_or_default())
    });
    prepared.map_err(io::Error::from_raw_os_error)
}

/// Handles SIGURG on any thread, and acts only on the thread `WANTED`.
fn on_signal() {
    let this_thread = gettid().as_raw_nonzero().get().cast_unsigned();
    if WANTED.load(Ordering::Acquire) != this_thread
        || STATE.compare_exchange(REQUESTED, WALKING, Ordering::AcqRel, Ordering::Relaxed).is_err()
    {
        return;
    }
    let mut length = 0;
    // SAFETY: only the thread that set `STATE` to `WALKING` reaches this line, so no two threads
    // walk at the same time. The closure only stores numbers. The unwinder of glibc (since 2.35)
    // and GCC (since 12) finds its tables without a lock; older systems take the loader's lock,
    // which is recursive. `prepare` has set up the unwinder.
    unsafe {
        backtrace::trace_unsynchronized(|frame| {
            FRAMES[length].store(frame.ip().addr(), Ordering::Relaxed);
            length += 1;
            length < MOST_FRAMES
        });
    }
    LENGTH.store(length, Ordering::Relaxed);
    STATE.store(DONE, Ordering::Release);
    let _ = futex::wake(&STATE, futex::Flags::PRIVATE, 1);
}

/// Returns the stack of the thread with this id, one function per line, the innermost first.
/// Returns `None` when the thread does not answer in time.
pub(super) fn of_thread(thread: u32) -> Option<String> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // Discard the result of a thread that answered too late. A thread that still walks owns the
    // buffer.
    let _ = STATE.compare_exchange(DONE, FREE, Ordering::AcqRel, Ordering::Relaxed);
    if STATE.load(Ordering::Acquire) != FREE {
        return None;
    }
    WANTED.store(thread, Ordering::Relaxed);
    STATE.store(REQUESTED, Ordering::Release);
    let frames = if interrupt(thread) { await_frames() } else { None };
    // Withdraw a request that the thread has not accepted.
    let _ = STATE.compare_exchange(REQUESTED, FREE, Ordering::AcqRel, Ordering::Relaxed);
    let named = named(&frames?);
    // Free the symbols of the whole program: the next use may be far in the future.
    backtrace::clear_symbol_cache();
    Some(named)
}

/// Sends the signal to one thread of this process.
fn interrupt(thread: u32) -> bool {
    let process = getpid().as_raw_nonzero().get();
    // SAFETY: tgkill takes three numbers and accesses no memory. It fails for a thread that has
    // ended. A new thread of this process with the same id ignores the signal or answers with its
    // own stack.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, thread.cast_signed(), SIGURG) };
    sent == 0
}

fn await_frames() -> Option<Vec<usize>> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let state = STATE.load(Ordering::Acquire);
        if state == DONE {
            let length = LENGTH.load(Ordering::Relaxed);
            let frames = FRAMES[..length].iter().map(|frame| frame.load(Ordering::Relaxed));
            let frames = frames.collect();
            STATE.store(FREE, Ordering::Release);
            return Some(frames);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        let timeout = Timespec::try_from(left).ok();
        // The result is not needed: the loop checks the state and the time.
        let _ = futex::wait(&STATE, futex::Flags::PRIVATE, state, timeout.as_ref());
    }
}

/// Resolves the addresses to function names, and omits the frames of the signal handler.
fn named(frames: &[usize]) -> String {
    let handler = frames.iter().rposition(|frame| {
        let mut is_of_handler = false;
        backtrace::resolve(*frame as *mut c_void, |symbol| {
            is_of_handler |= symbol
                .name()
                .is_some_and(|name| name.to_string().starts_with("signal_hook_registry::"));
        });
        is_of_handler
    });
    // The outermost frame of the handler is followed by the kernel's signal return, then by the
    // interrupted code.
    let first = handler.map_or(0, |index| index + 2).min(frames.len());
    let mut text = String::new();
    for (number, frame) in frames[first..].iter().enumerate() {
        // Symbol lookup subtracts one byte, because a return address points after its call. Only
        // the address of the interrupted instruction is exact, so add that byte again.
        let address = frame.wrapping_add(usize::from(number == 0 && handler.is_some()));
        push_frame(&mut text, number, address);
    }
    text
}

fn push_frame(text: &mut String, number: usize, address: usize) {
    let mut is_named = false;
    // One address yields several symbols where functions were inlined. Writing to a String cannot
    // fail.
    backtrace::resolve(address as *mut c_void, |symbol| {
        let Some(name) = symbol.name() else { return };
        let _ = write!(text, "\n  {number}: {name:#}");
        if let Some((path, line)) = symbol.filename().zip(symbol.lineno()) {
            let _ = write!(text, " at {}:{line}", shortened(path));
        }
        is_named = true;
    });
    if !is_named {
        let _ = write!(text, "\n  {number}: {address:#x}");
    }
}

/// Shortens the path of a source file in the registry to start with its crate.
fn shortened(path: &Path) -> String {
    let text = path.to_string_lossy();
    let registry = text.split_once("/registry/src/").and_then(|(_, inner)| inner.split_once('/'));
    registry.map_or_else(|| text.clone().into_owned(), |(_, inner)| inner.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    static MAY_END: AtomicBool = AtomicBool::new(false);

    #[inline(never)]
    fn spins_until_stopped() {
        while !MAY_END.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn names_the_function_in_which_another_thread_spins() {
        prepare().unwrap();
        let (sender, receiver) = channel();
        let spinner = thread::spawn(move || {
            sender.send(gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
            spins_until_stopped();
        });
        let number = receiver.recv().unwrap();
        // Repeat, since the first stacks may predate the call of the function.
        let found = std::iter::repeat_with(|| of_thread(number).unwrap_or_default())
            .take(10_000)
            .find(|stack| stack.contains("spins_until_stopped"));
        MAY_END.store(true, Ordering::Relaxed);
        spinner.join().unwrap();
        let stack = found.expect("a stack with the function");
        assert!(stack.contains("watchdog/stack.rs:"), "{stack}");
        assert!(!stack.contains("signal_hook"), "the handler is left out: {stack}");
    }

    #[test]
    fn returns_no_stack_for_a_missing_thread() {
        prepare().unwrap();
        // Above the largest thread id on Linux.
        assert_eq!(of_thread(1 << 30), None);
    }

    /// The frame after the outermost frame of the handler is the kernel's return from the signal.
    #[test]
    fn omits_the_frames_of_the_signal_handler() {
        // Inside the function: a lookup subtracts a byte.
        let handler = signal_hook::low_level::unregister as *const () as usize + 4;
        let own = spins_until_stopped as *const () as usize;
        let text = named(&[handler, handler, handler, 1, own, handler]);
        assert!(text.is_empty(), "the outermost frame of the handler is the last: {text}");
        let text = named(&[handler, 1, own, own + 4]);
        assert_eq!(text.matches("spins_until_stopped").count(), 2, "{text}");
        assert!(!text.contains("signal_hook_registry"), "{text}");
        // Without a handler all frames are of the loop.
        assert_eq!(named(&[own + 4]).matches("spins_until_stopped").count(), 1);
    }
}
