//! The watchdog: a thread that reports event loops that are stuck in one turn, and ends a supervised process that has
//! one.
//!
//! A loop counts its turns and marks when it waits in its own epoll. One that neither waits nor turns is rung first,
//! because it may wait inside the runtime for a task of a handler; a loop that does not turn even then is stuck.

mod heartbeat;
mod stack;

use std::fs;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::mailbox::Letter;
use crate::metrics::LoopProgress;
use crate::server::{GRACE, Server, end_process};
use crate::settings::WatchdogSettings;
use crate::system::{STUCK, is_supervised};

use bine_log as log;
use heartbeat::Heartbeat;

/// The looks within the time after which a loop is reported.
const LOOKS: u32 = 4;
/// The time between two looks when that time is short, and while a process waits to be replaced.
const SHORTEST_PERIOD: Duration = Duration::from_millis(10);
/// The time between two looks when no loop is reported at all.
const LONGEST_PERIOD: Duration = Duration::from_secs(10);

/// The watchdog of one server. Dropping it ends its thread.
pub(crate) struct Watchdog {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// The system's, when the thread cannot be started.
    pub(crate) fn start(server: &Arc<Server>) -> io::Result<Self> {
        if let Err(error) = stack::prepare() {
            log::warn(format_args!("a stuck loop will be reported without its stack: {error}"));
        }
        let (end, ends) = channel();
        let heartbeat = Heartbeat::of_environment();
        let watch = Watch { server: Arc::downgrade(server), heartbeat, loops: Vec::new() };
        let body = move || watch.run(&ends);
        let thread = Builder::new().name("bine watchdog".to_owned()).spawn(body)?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take() {
            // A panic there has been logged.
            let _ = thread.join();
        }
    }
}

/// What the thread knows.
struct Watch {
    server: Weak<Server>,
    heartbeat: Option<Heartbeat>,
    /// By the number of the loop.
    loops: Vec<Progress>,
}

impl Watch {
    fn run(mut self, ends: &Receiver<()>) {
        let mut looked = Instant::now();
        let mut replaces_by = None;
        loop {
            let Some(server) = self.server.upgrade() else { return };
            let settings = server.generation().settings.watchdog.clone();
            let mut period = period(&settings);
            if let Some(heartbeat) = &self.heartbeat {
                period = period.min(heartbeat.interval());
            }
            if replaces_by.is_some() {
                period = SHORTEST_PERIOD;
            }
            drop(server);
            if ends.recv_timeout(period) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let Some(server) = self.server.upgrade() else { return };
            // A process that was stopped for a while (SIGSTOP, a frozen container) has not been stuck for that long.
            let passed = looked.elapsed().min(period * 2);
            looked = Instant::now();
            self.look(&server, passed, &settings);
            if let Some(by) = replaces_by {
                self.end_when_drained(&server, by, &settings);
            } else if is_supervised() && self.lost_loops(&settings) > 0 {
                replaces_by = Some(begin_replacement(&server));
            }
        }
    }

    /// Looks at each loop once.
    fn look(&mut self, server: &Server, passed: Duration, settings: &WatchdogSettings) {
        let loops = server.tallies.loops();
        let most = loops.iter().map(|(number, ..)| number + 1).max().unwrap_or(0);
        self.loops.resize_with(most.max(self.loops.len()), Progress::default);
        for (number, progress) in self.loops.iter_mut().enumerate() {
            if !loops.iter().any(|(running, ..)| *running == number) {
                *progress = Progress::default();
            }
        }
        for (number, thread, seen) in loops {
            match self.loops[number].look(seen, passed, settings.report) {
                Finding::Fine => {}
                Finding::Silent => {
                    if let Some(each) = server.loops.get(number) {
                        each.mailbox.post(Letter::Look);
                    }
                }
                Finding::Stuck(time) => {
                    server.stalls.total.fetch_add(1, Ordering::Relaxed);
                    report(number, thread, time);
                }
                Finding::TurnsAgain(time) => {
                    log::notice(format_args!("loop {number} turns again, after {time:.1?}"));
                }
            }
        }
        let stuck = self.loops.iter().filter(|each| each.is_reported).count();
        server.stalls.stuck.store(stuck, Ordering::Relaxed);
        if stuck == 0
            && let Some(heartbeat) = &mut self.heartbeat
        {
            heartbeat.beat();
        }
    }

    /// Loops that have been stuck for so long that the process is to be replaced.
    fn lost_loops(&self, settings: &WatchdogSettings) -> usize {
        let is_lost = |each: &&Progress| {
            each.was_rung && settings.replace.is_some_and(|replace| each.stalled >= replace)
        };
        self.loops.iter().filter(is_lost).count()
    }

    /// Ends the process when no loop runs but those that are stuck, or when their time is over.
    fn end_when_drained(&self, server: &Server, by: Instant, settings: &WatchdogSettings) {
        let lost = self.lost_loops(settings);
        let running = server.running_loops.load(Ordering::Acquire);
        if (lost > 0 && running <= lost) || Instant::now() >= by {
            end_process(Some(server), STUCK);
        }
    }
}

/// Lets the other loops finish what they have begun; the moment until which they may.
fn begin_replacement(server: &Server) -> Instant {
    let drain = server.generation().settings.timeouts.drain;
    log::error(format_args!(
        "a loop has been stuck for too long: this process finishes its other requests within {drain:?} and is replaced"
    ));
    server.stalls.replaces.store(true, Ordering::Relaxed);
    if !server.is_stopping() {
        server.stop();
    }
    Instant::now() + drain + GRACE
}

/// Several looks fit into the time after which a loop is reported or replaced.
fn period(settings: &WatchdogSettings) -> Duration {
    let shortest = [settings.report, settings.replace].into_iter().flatten().min();
    let period = shortest.map_or(LONGEST_PERIOD, |time| time / LOOKS);
    period.clamp(SHORTEST_PERIOD, LONGEST_PERIOD)
}

/// Logs a loop that is stuck.
fn report(number: usize, thread: u32, time: Duration) {
    let state = kernel_state(thread);
    match stack::of_thread(thread) {
        Some(stack) => log::error(format_args!(
            "loop {number} has not turned for {time:.1?}: thread {thread} ({state}) is at{stack}"
        )),
        None => log::error(format_args!(
            "loop {number} has not turned for {time:.1?}: thread {thread} ({state}) does not tell its stack"
        )),
    }
}

/// Logs where each loop is that has not ended.
pub(crate) fn report_running_loops(server: &Server) {
    for (number, thread, _) in server.tallies.loops() {
        let stack = stack::of_thread(thread).unwrap_or_default();
        let state = kernel_state(thread);
        log::error(format_args!(
            "loop {number} still runs: thread {thread} ({state}) is at{stack}"
        ));
    }
}

/// What the kernel says that a thread does.
fn kernel_state(thread: u32) -> String {
    let read = |file| fs::read_to_string(format!("/proc/self/task/{thread}/{file}"));
    let stat = read("stat").unwrap_or_default();
    let letter = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    let state = match letter {
        Some('R') => "running",
        Some('S') => "sleeping",
        Some('D') => "in an uninterruptible wait",
        Some('T' | 't') => "stopped",
        _ => "in an unknown state",
    };
    match read("wchan") {
        Ok(place) if !matches!(place.as_str(), "" | "0") => format!("{state} in {place}"),
        _ => state.to_owned(),
    }
}

/// How one loop has been doing.
#[derive(Default)]
struct Progress {
    turns: u64,
    /// For how long it has neither turned nor waited.
    stalled: Duration,
    /// Its bell was rung since.
    was_rung: bool,
    is_reported: bool,
}

/// What one look at a loop has found.
#[derive(PartialEq, Eq, Debug)]
enum Finding {
    Fine,
    /// It is to be rung: it may wait for a task.
    Silent,
    /// It has been stuck for this long, and this is the first look that says so.
    Stuck(Duration),
    /// It was reported, and has turned since.
    TurnsAgain(Duration),
}

impl Progress {
    /// Looks once; `passed` is the time since the last look.
    fn look(&mut self, seen: LoopProgress, passed: Duration, report: Option<Duration>) -> Finding {
        if seen.is_resting || seen.turns != self.turns {
            let before = std::mem::replace(self, Self { turns: seen.turns, ..Self::default() });
            return if before.is_reported {
                Finding::TurnsAgain(before.stalled)
            } else {
                Finding::Fine
            };
        }
        self.stalled += passed;
        if !self.was_rung {
            self.was_rung = true;
            return Finding::Silent;
        }
        if !self.is_reported && report.is_some_and(|report| self.stalled >= report) {
            self.is_reported = true;
            return Finding::Stuck(self.stalled);
        }
        Finding::Fine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: Option<Duration> = Some(Duration::from_secs(10));

    /// Looks every 2.5 s at a loop that behaves so: its turns, and whether it waits in its epoll.
    fn findings(looks: &[(u64, bool)]) -> Vec<Finding> {
        let mut progress = Progress::default();
        let look = |&(turns, is_resting)| {
            progress.look(LoopProgress { turns, is_resting }, Duration::from_millis(2500), REPORT)
        };
        looks.iter().map(look).collect()
    }

    #[test]
    fn a_loop_that_rests_or_turns_is_fine() {
        let rests = findings(&[(7, true); 100]);
        assert!(rests.iter().all(|finding| *finding == Finding::Fine));
        let turns: Vec<_> = (1..100).map(|turns| (turns, false)).collect();
        assert!(findings(&turns).iter().all(|finding| *finding == Finding::Fine));
    }

    #[test]
    fn a_loop_that_waits_for_a_task_is_rung_and_never_reported() {
        // It turns each time that it is rung, and at no other time.
        let looks = [(1, false), (1, false), (2, false), (2, false), (3, false), (3, false)];
        let (fine, silent) = (Finding::Fine, Finding::Silent);
        let found = findings(&looks);
        assert_eq!(found.iter().filter(|finding| **finding == silent).count(), 3);
        assert!(found.iter().all(|finding| *finding == fine || *finding == silent), "{found:?}");
    }

    #[test]
    fn a_stuck_loop_is_reported_once_and_once_more_when_it_turns() {
        let mut looks = vec![(5, false); 40];
        looks.extend([(6, false), (6, true)]);
        let found = findings(&looks);
        assert_eq!(found[1], Finding::Silent);
        assert_eq!(found[4], Finding::Stuck(Duration::from_secs(10)));
        assert!(found[5..40].iter().all(|finding| *finding == Finding::Fine));
        assert_eq!(found[40], Finding::TurnsAgain(Duration::from_millis(97_500)));
        assert_eq!(found[41], Finding::Fine);
    }

    #[test]
    fn a_loop_is_rung_before_it_is_reported_however_late_a_look_is() {
        let mut progress = Progress::default();
        let stuck = LoopProgress { turns: 1, is_resting: false };
        assert_eq!(progress.look(stuck, Duration::ZERO, REPORT), Finding::Fine);
        let late = Duration::from_mins(1);
        assert_eq!(progress.look(stuck, late, REPORT), Finding::Silent);
        assert_eq!(progress.look(stuck, Duration::ZERO, REPORT), Finding::Stuck(late));
    }

    #[test]
    fn looks_are_rare_by_default_and_never_more_than_a_hundred_a_second() {
        let settings = |report, replace| WatchdogSettings { report, replace };
        assert_eq!(period(&WatchdogSettings::default()), Duration::from_millis(2500));
        let shortest = Some(Duration::from_millis(1));
        assert_eq!(period(&settings(REPORT, shortest)), SHORTEST_PERIOD);
        assert_eq!(period(&settings(None, None)), LONGEST_PERIOD);
    }
}
