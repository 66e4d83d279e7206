//! The priority of threads for work that no client waits for in order.

/// Gives the calling thread the lowest ordinary priority: while other threads need its core, Linux
/// gives it 15 parts of time for 1024 of each of theirs, and a thread of ordinary priority that
/// wakes up preempts it. The other threads of the process keep their priority.
pub fn lower_thread_priority() {
    const MOST: i32 = 19;
    // Lowering is always permitted. Without it, the thread works as any other.
    let _ = rustix::process::setpriority_process(None, MOST);
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rustix::process::getpriority_process;

    use super::*;

    #[test]
    fn lowers_priority_of_the_calling_thread_only() {
        let before = getpriority_process(None).unwrap();
        let lowered = thread::spawn(|| {
            lower_thread_priority();
            getpriority_process(None).unwrap()
        });
        assert_eq!(lowered.join().unwrap(), 19);
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
