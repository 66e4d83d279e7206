//! Work on channels that has to wait for the journal, off the event loops.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use bine_log as log;

/// The most tasks that wait.
const MAX_TASKS: usize = 1024;
/// The most bytes of messages that wait.
const MAX_BYTES: usize = 64 << 20;

type Task = Box<dyn FnOnce() + Send>;

/// The tasks of an application that create channels, in order of arrival. A thread runs them, and
/// ends when the queue is empty.
#[derive(Default)]
pub(in crate::scripts) struct ChannelQueue {
    /// Whether the thread runs, so that the tasks after those of the queue must wait too.
    is_running: AtomicBool,
    state: Mutex<WaitingTasks>,
}

#[derive(Default)]
struct WaitingTasks {
    tasks: VecDeque<(usize, Task)>,
    /// The bytes of the messages of all tasks.
    bytes: usize,
}

impl ChannelQueue {
    /// Whether tasks wait. A task that must not overtake them waits too.
    pub(super) fn has_tasks(&self) -> bool {
        self.is_running.load(Ordering::Acquire)
    }

    /// Runs a task after those that wait. `bytes`: the size of its messages.
    ///
    /// # Errors
    ///
    /// The queue is full: the task is returned.
    pub(super) fn push(self: &Arc<Self>, bytes: usize, task: Task) -> Result<(), Task> {
        let mut state = self.state();
        if state.tasks.len() >= MAX_TASKS || state.bytes.saturating_add(bytes) > MAX_BYTES {
            return Err(task);
        }
        state.tasks.push_back((bytes, task));
        state.bytes += bytes;
        if self.is_running.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        drop(state);
        let own = Arc::clone(self);
        let started =
            thread::Builder::new().name("bine channels".to_owned()).spawn(move || own.run());
        if let Err(error) = started {
            log::warn(format_args!("no thread creates channels, so this one does: {error}"));
            self.run();
        }
        Ok(())
    }

    /// Runs all tasks, and those that arrive meanwhile.
    fn run(&self) {
        loop {
            let mut state = self.state();
            let Some((bytes, task)) = state.tasks.pop_front() else {
                self.is_running.store(false, Ordering::Release);
                return;
            };
            drop(state);
            task();
            self.state().bytes -= bytes;
        }
    }

    fn state(&self) -> MutexGuard<'_, WaitingTasks> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn runs_tasks_in_the_order_in_which_they_came() {
        let queue = Arc::new(ChannelQueue::default());
        let (to, done) = mpsc::channel();
        for number in 0..500 {
            let to = to.clone();
            assert!(queue.push(0, Box::new(move || to.send(number).unwrap())).is_ok());
        }
        drop(to);
        assert_eq!(done.iter().collect::<Vec<_>>(), (0..500).collect::<Vec<_>>());
    }

    #[test]
    fn rejects_what_exceeds_its_bounds_and_takes_more_later() {
        let queue = Arc::new(ChannelQueue::default());
        let (release, held) = mpsc::channel::<()>();
        let (to, done) = mpsc::channel();
        // The thread holds the first task, with its bytes, until it is released.
        assert!(queue.push(MAX_BYTES - 1, Box::new(move || held.recv().unwrap())).is_ok());
        assert!(queue.push(2, Box::new(|| ())).is_err());
        assert!(queue.has_tasks());
        let told = to.clone();
        assert!(queue.push(1, Box::new(move || told.send(()).unwrap())).is_ok());
        release.send(()).unwrap();
        done.recv().unwrap();
        while queue.has_tasks() {
            thread::yield_now();
        }
        let (release, held) = mpsc::channel::<()>();
        assert!(queue.push(0, Box::new(move || held.recv().unwrap())).is_ok());
        let mut accepted = 0;
        while queue.push(0, Box::new(|| ())).is_ok() {
            accepted += 1;
        }
        assert!((MAX_TASKS - 1..=MAX_TASKS).contains(&accepted), "{accepted}");
        release.send(()).unwrap();
    }
}
