//! The watchdog: a thread that reports event loops stuck in one iteration, and ends a supervised
//! process with such a loop.
//!
//! A loop counts its iterations ("turns") and marks when it waits in its own epoll. The watchdog
//! first wakes a loop that neither waits nor turns, because it may wait inside the runtime for a
//! task of a handler. A loop that still does not turn is stuck.

mod heartbeat;
mod stack;

use std::fs;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Once, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::mailbox::Letter;
use crate::metrics::LoopProgress;
use crate::server::{GRACE, Server, end_process};
use crate::settings::WatchdogSettings;
use crate::system::{STUCK, is_supervised, release_program_pages};

use bine_log as log;
use heartbeat::Heartbeat;

/// Number of checks within the time after which a loop is reported.
const CHECKS_PER_LIMIT: u32 = 4;
/// The time after which a start is over: the pages that it alone has used are not needed any more.
const START_TIME: Duration = Duration::from_secs(2);
/// Shortest time between two checks, also used while the process waits for its replacement.
const MIN_PERIOD: Duration = Duration::from_millis(10);
/// Longest time between two checks, used when reports are disabled.
const MAX_PERIOD: Duration = Duration::from_secs(10);

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
    /// Returns the error of the system when the thread cannot be started.
    pub(crate) fn start(server: &Arc<Server>) -> io::Result<Self> {
        if let Err(error) = stack::prepare() {
            log::warn(format_args!(
                "cannot read the stacks of threads, so a stuck loop is reported without one: {error}"
            ));
        }
        let (end, ends) = channel();
        let heartbeat = Heartbeat::of_environment();
        let watch = WatchdogThread { server: Arc::downgrade(server), heartbeat, loops: Vec::new() };
        let body = move || watch.run(&ends);
        let thread = Builder::new().name("bine watchdog".to_owned()).spawn(body)?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take() {
            // The panic hook has logged a panic of the thread already.
            let _ = thread.join();
        }
    }
}

/// The state of the watchdog's thread.
struct WatchdogThread {
    server: Weak<Server>,
    heartbeat: Option<Heartbeat>,
    /// The state of each loop, indexed by its number.
    loops: Vec<LoopWatch>,
}

impl WatchdogThread {
    fn run(mut self, ends: &Receiver<()>) {
        let mut looked = Instant::now();
        let mut replaces_by = None;
        let started = Instant::now();
        loop {
            let Some(server) = self.server.upgrade() else { return };
            let settings = server.generation().settings.watchdog.clone();
            let mut period = period(&settings);
            if let Some(heartbeat) = &self.heartbeat {
                period = period.min(heartbeat.interval());
            }
            if replaces_by.is_some() {
                period = MIN_PERIOD;
            }
            drop(server);
            if ends.recv_timeout(period) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let Some(server) = self.server.upgrade() else { return };
            // Limited, so that a pause of the whole process (SIGSTOP, a frozen container) does not
            // count as a stuck loop.
            let passed = looked.elapsed().min(period * 2);
            looked = Instant::now();
            self.check(&server, passed, &settings);
            if started.elapsed() >= START_TIME {
                static RELEASED: Once = Once::new();
                RELEASED.call_once(|| {
                    release_program_pages();
                });
            }
            if let Some(by) = replaces_by {
                self.end_when_drained(&server, by, &settings);
            } else if is_supervised() && self.lost_loops(&settings) > 0 {
                replaces_by = Some(begin_replacement(&server));
            }
        }
    }

    /// Checks each loop once.
    fn check(&mut self, server: &Server, passed: Duration, settings: &WatchdogSettings) {
        let loops = server.tallies.loops();
        let most = loops.iter().map(|(number, ..)| number + 1).max().unwrap_or(0);
        self.loops.resize_with(most.max(self.loops.len()), LoopWatch::default);
        for (number, progress) in self.loops.iter_mut().enumerate() {
            if !loops.iter().any(|(running, ..)| *running == number) {
                *progress = LoopWatch::default();
            }
        }
        for (number, thread, seen) in loops {
            match self.loops[number].check(seen, passed, settings.report) {
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
                    log::notice(format_args!("loop {number} runs again, after {time:.1?}"));
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

    /// Counts the loops that have been stuck long enough to replace the process.
    fn lost_loops(&self, settings: &WatchdogSettings) -> usize {
        let is_lost = |each: &&LoopWatch| {
            each.was_woken && settings.replace.is_some_and(|replace| each.stalled >= replace)
        };
        self.loops.iter().filter(is_lost).count()
    }

    /// Ends the process when only stuck loops still run, or at the deadline `by`.
    fn end_when_drained(&self, server: &Server, by: Instant, settings: &WatchdogSettings) {
        let lost = self.lost_loops(settings);
        let running = server.running_loops.load(Ordering::Acquire);
        if is_drained(running, lost, by.saturating_duration_since(Instant::now())) {
            end_process(Some(server), STUCK);
        }
    }
}

/// Whether only stuck loops still run, or no time remains for the other loops.
const fn is_drained(running: usize, lost: usize, left: Duration) -> bool {
    (lost > 0 && running <= lost) || left.is_zero()
}

/// Stops the server so that the other loops drain. Returns the deadline of that drain.
fn begin_replacement(server: &Server) -> Instant {
    let drain = server.generation().settings.timeouts.drain;
    log::error(format_args!(
        "an event loop is stuck (`watchdog-replace`): the process finishes its other requests \
         within {drain:?} and is then replaced"
    ));
    server.stalls.replaces.store(true, Ordering::Relaxed);
    if !server.is_stopping() {
        server.stop();
    }
    Instant::now() + drain + GRACE
}

/// Returns the time between two checks: a fraction of the shortest configured limit.
fn period(settings: &WatchdogSettings) -> Duration {
    let shortest = [settings.report, settings.replace].into_iter().flatten().min();
    let period = shortest.map_or(MAX_PERIOD, |time| time / CHECKS_PER_LIMIT);
    period.clamp(MIN_PERIOD, MAX_PERIOD)
}

/// Logs a loop that is stuck.
fn report(number: usize, thread: u32, time: Duration) {
    let state = kernel_state(thread);
    match stack::of_thread(thread) {
        Some(stack) => log::error(format_args!(
            "loop {number} has not completed a turn for {time:.1?}: \
             thread {thread} ({state}) is at{stack}"
        )),
        None => log::error(format_args!(
            "loop {number} has not completed a turn for {time:.1?}: \
             the stack of thread {thread} ({state}) is not available"
        )),
    }
}

/// Logs the call stack of each loop that has not ended.
pub(crate) fn report_running_loops(server: &Server) {
    for (number, thread, _) in server.tallies.loops() {
        let stack = stack::of_thread(thread).unwrap_or_default();
        let state = kernel_state(thread);
        log::error(format_args!(
            "loop {number} still runs: thread {thread} ({state}) is at{stack}"
        ));
    }
}

/// Describes the state of a thread as the kernel reports it.
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
        Ok(function) if !matches!(function.as_str(), "" | "0") => format!("{state} in {function}"),
        _ => state.to_owned(),
    }
}

/// The progress of one loop.
#[derive(Default)]
struct LoopWatch {
    turns: u64,
    /// Time since the loop last turned or waited.
    stalled: Duration,
    /// Whether the watchdog has woken the loop since.
    was_woken: bool,
    is_reported: bool,
}

/// The result of one check of a loop.
#[derive(PartialEq, Eq, Debug)]
enum Finding {
    Fine,
    /// The loop must be woken, since it may wait for a task.
    Silent,
    /// The loop has been stuck for this long, and was not reported before.
    Stuck(Duration),
    /// The loop was reported as stuck for this long, and has turned since.
    TurnsAgain(Duration),
}

impl LoopWatch {
    /// Checks the loop once; `passed` is the time since the last check.
    fn check(&mut self, seen: LoopProgress, passed: Duration, report: Option<Duration>) -> Finding {
        if seen.is_resting || seen.turns != self.turns {
            let before = std::mem::replace(self, Self { turns: seen.turns, ..Self::default() });
            return if before.is_reported {
                Finding::TurnsAgain(before.stalled)
            } else {
                Finding::Fine
            };
        }
        self.stalled += passed;
        if !self.was_woken {
            self.was_woken = true;
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

    /// Checks a loop every 2.5 s. Each element holds its turns, and whether it waits in its epoll.
    fn findings(looks: &[(u64, bool)]) -> Vec<Finding> {
        let mut progress = LoopWatch::default();
        let look = |&(turns, is_resting)| {
            progress.check(LoopProgress { turns, is_resting }, Duration::from_millis(2500), REPORT)
        };
        looks.iter().map(look).collect()
    }

    /// Loop 1 of a server, on a thread that has ended, and its watchdog.
    fn watched(server: &Arc<Server>) -> (crate::metrics::TallyLease, WatchdogThread) {
        let tally = server.tallies.lease();
        std::thread::scope(|scope| scope.spawn(|| tally.assign_loop(1)).join().unwrap());
        let server = Arc::downgrade(server);
        (tally, WatchdogThread { server, heartbeat: None, loops: Vec::new() })
    }

    #[test]
    fn counts_a_stuck_loop_until_it_turns_again() {
        let settings =
            crate::settings::Settings { loops: 2, ..crate::settings::Settings::default() };
        let server = crate::test_support::server(settings);
        let (tally, mut watch) = watched(&server);
        let limits = WatchdogSettings { report: REPORT, replace: Some(Duration::from_secs(15)) };
        let messages = log::test_support::capture();
        let check = |watch: &mut WatchdogThread| {
            watch.check(&server, Duration::from_secs(5), &limits);
            let metrics = server.metrics();
            (metrics.stalls, metrics.stuck, watch.lost_loops(&limits))
        };
        tally.turns.add(1);
        assert_eq!(check(&mut watch), (0, 0, 0));
        assert_eq!(check(&mut watch), (0, 0, 0));
        let mut letters = Vec::new();
        server.loops[1].mailbox.take(&mut letters);
        assert!(matches!(letters[..], [Letter::Look]), "the watchdog wakes it first");
        assert_eq!(check(&mut watch), (1, 1, 0));
        assert_eq!(check(&mut watch), (1, 1, 1), "after the time for a replacement");
        let never = WatchdogSettings { replace: None, ..limits.clone() };
        assert_eq!(watch.lost_loops(&never), 0);
        tally.turns.add(1);
        assert_eq!(check(&mut watch), (1, 0, 0));
        let messages = messages.end();
        assert_eq!(messages.len(), 2);
        assert!(messages[0].contains("loop 1 has not completed a turn for 10.0s"), "{messages:?}");
        assert!(messages[1].contains("loop 1 runs again, after 15.0s"), "{messages:?}");
    }

    #[test]
    fn forgets_a_loop_that_has_ended() {
        let server = crate::test_support::server(crate::settings::Settings::default());
        let (tally, mut watch) = watched(&server);
        let limits = WatchdogSettings { report: None, replace: Some(Duration::from_secs(5)) };
        tally.turns.add(1);
        (0..3).for_each(|_| watch.check(&server, Duration::from_secs(5), &limits));
        assert_eq!((watch.loops.len(), watch.lost_loops(&limits)), (2, 1));
        drop(tally);
        watch.check(&server, Duration::from_secs(5), &limits);
        assert_eq!(watch.lost_loops(&limits), 0);
    }

    #[test]
    fn drains_before_a_replacement() {
        let server = crate::test_support::server(crate::settings::Settings::default());
        let messages = log::test_support::capture();
        let before = Instant::now();
        let by = begin_replacement(&server);
        let wait = server.generation().settings.timeouts.drain + GRACE;
        assert!((before + wait..=Instant::now() + wait).contains(&by));
        assert!(server.is_stopping() && server.stalls.replaces.load(Ordering::Relaxed));
        let messages = messages.end();
        assert!(messages.len() == 1 && messages[0].contains("within 30s"), "{messages:?}");
        // It does not end the drain that it has begun.
        begin_replacement(&server);
        assert_eq!(server.state(), crate::lifecycle::State::Draining);
    }

    #[test]
    fn describes_the_state_of_a_thread() {
        let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        assert_eq!(kernel_state(own), "running", "it waits in no function of the kernel");
        assert_eq!(kernel_state(u32::MAX), "in an unknown state");
    }

    #[test]
    fn accepts_a_loop_that_waits_or_turns() {
        let rests = findings(&[(7, true); 100]);
        assert!(rests.iter().all(|finding| *finding == Finding::Fine));
        let turns: Vec<_> = (1..100).map(|turns| (turns, false)).collect();
        assert!(findings(&turns).iter().all(|finding| *finding == Finding::Fine));
    }

    #[test]
    fn wakes_a_loop_that_waits_for_a_task_and_never_reports_it() {
        // The loop turns only when it is woken.
        let looks = [(1, false), (1, false), (2, false), (2, false), (3, false), (3, false)];
        let (fine, silent) = (Finding::Fine, Finding::Silent);
        let found = findings(&looks);
        assert_eq!(found.iter().filter(|finding| **finding == silent).count(), 3);
        assert!(found.iter().all(|finding| *finding == fine || *finding == silent), "{found:?}");
    }

    #[test]
    fn reports_a_stuck_loop_once_and_its_recovery_once() {
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
    fn wakes_a_loop_before_reporting_it_even_after_a_late_check() {
        let mut progress = LoopWatch::default();
        let stuck = LoopProgress { turns: 1, is_resting: false };
        assert_eq!(progress.check(stuck, Duration::ZERO, REPORT), Finding::Fine);
        let late = Duration::from_mins(1);
        assert_eq!(progress.check(stuck, late, REPORT), Finding::Silent);
        assert_eq!(progress.check(stuck, Duration::ZERO, REPORT), Finding::Stuck(late));
    }

    #[test]
    fn checks_every_2_5_seconds_by_default_and_at_most_100_times_a_second() {
        let settings = |report, replace| WatchdogSettings { report, replace };
        assert_eq!(period(&WatchdogSettings::default()), Duration::from_millis(2500));
        let shortest = Some(Duration::from_millis(1));
        assert_eq!(period(&settings(REPORT, shortest)), MIN_PERIOD);
        assert_eq!(period(&settings(None, None)), MAX_PERIOD);
    }

    #[test]
    fn ends_its_thread_before_it_is_dropped() {
        let server = crate::test_support::server(crate::settings::Settings::default());
        let others = Arc::weak_count(&server);
        let watchdog = Watchdog::start(&server).unwrap();
        assert_eq!(Arc::weak_count(&server), others + 1);
        drop(watchdog);
        assert_eq!(Arc::weak_count(&server), others);
    }

    #[test]
    fn ends_the_process_when_only_stuck_loops_run_or_the_time_is_over() {
        let ends = |running, lost| is_drained(running, lost, Duration::from_nanos(1));
        assert!(ends(1, 1) && ends(1, 2) && !ends(2, 1));
        // A loop that has recovered is drained too.
        assert!(!ends(0, 0) && !ends(1, 0));
        assert!(is_drained(2, 1, Duration::ZERO) && is_drained(1, 0, Duration::ZERO));
    }
}
