//! The call stack of another thread of this process.
//!
//! The thread is sent a signal. Its handler walks the stack and stores the return addresses in a static buffer: it
//! allocates nothing, takes no lock of ours and finds no names. The thread that asked finds the names afterwards.

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

/// The most frames that are kept; a deeper stack is cut at its outer end.
const MOST_FRAMES: usize = 128;
/// How long a thread may take to answer. One that waits in the kernel without being interruptible never does.
const PATIENCE: Duration = Duration::from_millis(500);

/// Nobody uses the buffer.
const FREE: u32 = 0;
/// The thread `WANTED` is to fill the buffer.
const REQUESTED: u32 = 1;
/// The handler fills it.
const WALKING: u32 = 2;
/// It is filled.
const DONE: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(FREE);
static WANTED: AtomicU32 = AtomicU32::new(0);
static LENGTH: AtomicUsize = AtomicUsize::new(0);
static FRAMES: [AtomicUsize; MOST_FRAMES] = [const { AtomicUsize::new(0) }; MOST_FRAMES];

/// Installs the signal handler, once for the process.
///
/// SIGURG is ignored where nobody handles it, no library uses it for anything but out-of-band data, and debuggers pass
/// it through; Go's runtime chose it for the same reasons.
///
/// # Errors
///
/// The system's, when the handler cannot be installed.
pub(super) fn prepare() -> io::Result<()> {
    static PREPARED: OnceLock<Result<(), i32>> = OnceLock::new();
    let prepared = PREPARED.get_or_init(|| {
        // The unwinder sets up its tables at the first use, which must not happen within the handler.
        // SAFETY: it must not run on two threads at one time with a closure that symbolizes; this one does not.
        unsafe { backtrace::trace_unsynchronized(|_| true) };
        // SAFETY: `on_signal` makes system calls, uses atomics, and walks the stack; see there.
        let registered = unsafe { signal_hook::low_level::register(SIGURG, on_signal) };
        registered.map(|_| ()).map_err(|error| error.raw_os_error().unwrap_or_default())
    });
    prepared.map_err(io::Error::from_raw_os_error)
}

/// Runs on whichever thread got SIGURG, and does something on the one that was asked only.
fn on_signal() {
    let own = gettid().as_raw_nonzero().get().cast_unsigned();
    if WANTED.load(Ordering::Acquire) != own
        || STATE.compare_exchange(REQUESTED, WALKING, Ordering::AcqRel, Ordering::Relaxed).is_err()
    {
        return;
    }
    let mut length = 0;
    // SAFETY: only the thread that took `STATE` to `WALKING` gets here, so no two walk at one time. The closure stores
    // numbers. The unwinder of glibc (since 2.35) and GCC (since 12) finds its tables without a lock; the one of older
    // systems takes the loader's lock, which the same thread may take again. It was set up by `prepare`.
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

/// The stack of the thread with this number, a function on each line, the innermost first; `None` when it does not
/// answer in time.
pub(super) fn of_thread(thread: u32) -> Option<String> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // A thread that answered too late has left its result here. One that still walks has the buffer for itself.
    let _ = STATE.compare_exchange(DONE, FREE, Ordering::AcqRel, Ordering::Relaxed);
    if STATE.load(Ordering::Acquire) != FREE {
        return None;
    }
    WANTED.store(thread, Ordering::Relaxed);
    STATE.store(REQUESTED, Ordering::Release);
    let frames = if interrupt(thread) { await_frames() } else { None };
    // A request that nobody has taken up is withdrawn.
    let _ = STATE.compare_exchange(REQUESTED, FREE, Ordering::AcqRel, Ordering::Relaxed);
    let named = named(&frames?);
    // The symbols of the whole program are in memory now, for one use in a long time.
    backtrace::clear_symbol_cache();
    Some(named)
}

/// Sends the signal to one thread of this process.
fn interrupt(thread: u32) -> bool {
    let process = getpid().as_raw_nonzero().get();
    // SAFETY: tgkill takes three numbers and touches no memory. A thread that has ended is an error, and another of
    // this process that has got its number since ignores the signal or answers with its own stack.
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
        // Woken, interrupted or too late: the state says it.
        let _ = futex::wait(&STATE, futex::Flags::PRIVATE, state, timeout.as_ref());
    }
}

/// Names each address, without the frames of the signal handler itself.
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
    // After the handler's outermost frame comes the kernel's return from a signal, then the code that was interrupted.
    let first = handler.map_or(0, |place| place + 2).min(frames.len());
    let mut text = String::new();
    for (number, frame) in frames[first..].iter().enumerate() {
        // Names are looked up one byte before an address, as a return address follows its call. The interrupted
        // instruction is the only one that is exact.
        let address = frame.wrapping_add(usize::from(number == 0 && handler.is_some()));
        push_frame(&mut text, number, address);
    }
    text
}

fn push_frame(text: &mut String, number: usize, address: usize) {
    let mut is_named = false;
    // Several, where functions were inlined. Writing into a String cannot fail.
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

/// A file of a crate, without the folder that the crate was built in.
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
    fn spins_until_told() {
        while !MAY_END.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn names_the_function_in_which_another_thread_spins() {
        prepare().unwrap();
        let (told, tells) = channel();
        let spinner = thread::spawn(move || {
            told.send(gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
            spins_until_told();
        });
        let number = tells.recv().unwrap();
        // It may be asked before it has got to the function.
        let found = std::iter::repeat_with(|| of_thread(number).unwrap_or_default())
            .take(10_000)
            .find(|stack| stack.contains("spins_until_told"));
        MAY_END.store(true, Ordering::Relaxed);
        spinner.join().unwrap();
        let stack = found.expect("a stack with the function");
        assert!(stack.contains("watchdog/stack.rs:"), "{stack}");
        assert!(!stack.contains("signal_hook"), "the handler is left out: {stack}");
    }

    #[test]
    fn a_thread_that_does_not_exist_has_no_stack() {
        prepare().unwrap();
        // Above the largest number that Linux gives a thread.
        assert_eq!(of_thread(1 << 30), None);
    }
}
