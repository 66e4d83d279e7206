//! The priority of threads for work that pages must not wait for.

use rustix::process::setpriority_process;

/// Lets the calling thread run only where no other thread needs the core (`SCHED_IDLE`). Other
/// threads preempt it as soon as they wake up; with a nice value of 19 alone, they waited for up to
/// 3 ms.
///
/// The other threads of the process keep their priority.
pub fn lower_thread_priority() {
    const LOWEST: i32 = 19;
    // Lowering is always permitted. Without it, the thread works as any other.
    let _ = setpriority_process(None, LOWEST);
    let priority: libc::c_int = 0;
    // SAFETY: 0 names the calling thread, and the kernel reads one integer, which outlives the call.
    unsafe {
        // Not the function of the C library: musl's always fails.
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_IDLE, &raw const priority);
    }
}

/// Lets the calling thread run less than others, but also on a machine that is always busy: beside one
/// thread of normal priority it gets about a tenth of a core.
///
/// For work that must get done at some time. Others may wait for it for some milliseconds.
pub fn reduce_thread_priority() {
    const REDUCED: i32 = 10;
    // Reducing is always permitted. Without it, the thread works as any other.
    let _ = setpriority_process(None, REDUCED);
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use super::*;

    /// The nice value and the scheduling policy of the calling thread (proc(5)).
    fn priority() -> [String; 2] {
        let text = fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = text.rsplit_once(')').unwrap();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        [fields[16].to_owned(), fields[38].to_owned()]
    }

    #[test]
    fn lowers_priority_of_the_calling_thread_only() {
        let before = priority();
        let lowered = thread::spawn(|| {
            lower_thread_priority();
            priority()
        });
        assert_eq!(lowered.join().unwrap(), ["19".to_owned(), libc::SCHED_IDLE.to_string()]);
        let reduced = thread::spawn(|| {
            reduce_thread_priority();
            priority()
        });
        assert_eq!(reduced.join().unwrap(), ["10".to_owned(), libc::SCHED_OTHER.to_string()]);
        assert_eq!(priority(), before);
    }
}
