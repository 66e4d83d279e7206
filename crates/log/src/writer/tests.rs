//! Tests of the writer with a sink that the test controls: faults, full queues, reopening.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::test_support::{ScratchFolder, await_text};

/// The outcome of the next write.
enum Outcome {
    Write,
    /// A write of this many bytes, then this error.
    Fail(usize, ErrorKind),
    Panic,
}

/// A sink whose writes wait for an outcome from the test.
struct ControlledSink {
    outcomes: Receiver<Outcome>,
    written: Sender<String>,
    /// A separate channel, because one test reopens all logs of the process, also those of other
    /// tests.
    reopened: Sender<()>,
}

impl Sink for ControlledSink {
    fn write(&mut self, lines: &[u8]) -> Result<(), WriteError> {
        match self.outcomes.recv() {
            Ok(Outcome::Write) => {}
            Ok(Outcome::Fail(written, error)) => {
                return Err(WriteError { written, error: error.into() });
            }
            Ok(Outcome::Panic) => panic!("requested by the test"),
            Err(_) => return Ok(()),
        }
        let _ = self.written.send(String::from_utf8_lossy(lines).into_owned());
        Ok(())
    }

    fn reopen(&mut self) -> io::Result<()> {
        let _ = self.reopened.send(());
        Ok(())
    }
}

struct TestLog {
    writer: Writer,
    outcomes: Sender<Outcome>,
    written: Receiver<String>,
    reopened: Receiver<()>,
}

/// A log at which a thread waits up to 20 seconds for room, so that a busy machine causes no timeout.
fn patient_log() -> TestLog {
    let create = |shared| Writer::register(Shared { max_wait: Duration::from_secs(20), ..shared });
    controlled_log_of(create, WhenFull::Wait, ignore_report)
}

fn controlled_log(when_full: WhenFull, report: Report) -> TestLog {
    controlled_log_of(Writer::register, when_full, report)
}

/// A log that [`reopen_all`] of a concurrent test does not reopen.
fn unlisted_log(report: Report) -> TestLog {
    controlled_log_of(|shared| Writer(Arc::new(shared)), WhenFull::Drop, report)
}

fn controlled_log_of(create: fn(Shared) -> Writer, when_full: WhenFull, report: Report) -> TestLog {
    let (outcomes, sink_outcomes) = channel();
    let (sink_written, written) = channel();
    let (sink_reopened, reopened) = channel();
    let sink =
        ControlledSink { outcomes: sink_outcomes, written: sink_written, reopened: sink_reopened };
    let shared = Shared {
        when_full,
        capacity: BATCH,
        ..Shared::new("a log".to_owned(), Box::new(sink), report)
    };
    TestLog { writer: create(shared), outcomes, written, reopened }
}

impl TestLog {
    #[track_caller]
    fn next(&self) -> String {
        self.written.recv_timeout(Duration::from_secs(20)).unwrap()
    }

    #[track_caller]
    fn await_reopened(&self) {
        self.reopened.recv_timeout(Duration::from_secs(20)).unwrap();
    }

    /// Waits until the thread has taken all appended lines from the queue.
    fn await_taken(&self) {
        let queue = self.writer.0.lock();
        let has_lines = |queue: &mut Queue| !queue.lines.is_empty();
        drop(self.writer.0.progress.wait_while(queue, has_lines).unwrap());
    }
}

/// One line of this many bytes.
fn filling(bytes: usize) -> Vec<u8> {
    [vec![b'x'; bytes - 1], vec![b'\n']].concat()
}

fn ignore_report(_: Level, _: fmt::Arguments<'_>) {}

fn gap(lines: &mut Vec<u8>, dropped: u64) {
    lines.extend_from_slice(format!("gap {dropped}\n").as_bytes());
}

#[test]
fn finish_writes_all_appended_lines() {
    let folder = ScratchFolder::new();
    let path = folder.path("log");
    let writer = Writer::open(LogSettings::at(&path)).unwrap();
    for number in 0..1000 {
        writer.append(format!("line {number}\n").as_bytes(), gap);
    }
    writer.finish();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 1000);
    assert!(text.ends_with("line 999\n"));
}

#[test]
fn writes_lines_that_arrive_during_a_write_together() {
    let log = controlled_log(WhenFull::Drop, ignore_report);
    log.writer.append(b"first\n", gap);
    log.await_taken();
    let lines: Vec<String> = (0..1000).map(|number| format!("line {number}\n")).collect();
    for line in &lines {
        log.writer.append(line.as_bytes(), gap);
    }
    for _ in 0..2 {
        log.outcomes.send(Outcome::Write).unwrap();
    }
    assert_eq!(log.next(), "first\n");
    assert_eq!(log.next(), lines.concat());
}

/// Symptom: each reload leaked a thread and a descriptor. Cause: the thread did not stop with the
/// last handle.
#[test]
fn flushes_and_stops_after_last_handle_drops() {
    let folder = ScratchFolder::new();
    let path = folder.path("log");
    let writer = Writer::open(LogSettings::at(&path)).unwrap();
    writer.append(b"a\n", gap);
    let shared = Arc::downgrade(&writer.0);
    drop(writer);
    await_text(&path, |text| text == "a\n");
    let started = Instant::now();
    while shared.strong_count() > 0 {
        assert!(started.elapsed() < Duration::from_secs(20), "the thread has not stopped");
        thread::yield_now();
    }
}

#[test]
fn counts_lines_dropped_by_full_queue() {
    let log = controlled_log(WhenFull::Drop, ignore_report);
    log.writer.append(b"first\n", gap);
    log.await_taken();
    // One line more than fits, and a line that would fit, but must not precede the gap line.
    let lines = b"0123456789abcde\n".repeat(BATCH / 16 + 1);
    log.writer.append(&lines, gap);
    log.writer.append(b"lost\n", gap);
    for _ in 0..3 {
        log.outcomes.send(Outcome::Write).unwrap();
    }
    assert_eq!(log.next(), "first\n");
    assert_eq!(log.next().len(), BATCH);
    log.writer.append(b"last\n", gap);
    assert_eq!(log.next(), "gap 2\nlast\n");
}

/// Symptom: a thread that appended a mebibyte at once lost all of it although the log was idle.
/// Cause: lines that did not fit together were dropped together. Fix: the lines that fit are kept.
#[test]
fn keeps_leading_lines_that_fit() {
    let log = controlled_log(WhenFull::Drop, ignore_report);
    log.writer.append(&b"0123456789abcd\n".repeat(BATCH / 10), gap);
    log.outcomes.send(Outcome::Write).unwrap();
    let kept = log.next();
    assert_eq!(kept.len(), BATCH / 15 * 15);
    assert!(kept.ends_with("d\n"));
}

#[test]
fn waits_for_queue_space() {
    let log = patient_log();
    let lines = b"0123456789abcde\n".repeat(BATCH / 16);
    log.writer.append(b"first\n", gap);
    log.await_taken();
    log.writer.append(&lines, gap);
    for _ in 0..3 {
        log.outcomes.send(Outcome::Write).unwrap();
    }
    log.writer.append(b"last\n", gap);
    assert_eq!(log.next(), "first\n");
    assert_eq!(log.next().len(), BATCH);
    assert_eq!(log.next(), "last\n");
}

/// Symptom: the server served no client while a log was stalled. Cause: each turn of an event loop
/// waited a second for room. Fix: after a timeout, no thread waits until the log makes progress.
#[test]
fn stops_waiting_for_a_stalled_log() {
    let log = controlled_log(WhenFull::Wait, ignore_report);
    let lines = b"0123456789abcde\n".repeat(BATCH / 16);
    log.writer.append(b"first\n", gap);
    log.await_taken();
    log.writer.append(&lines, gap);
    log.writer.append(b"\n", gap);
    assert!(log.writer.0.lock().has_timed_out);
    log.writer.append(b"b\n", gap);
    let queue = log.writer.0.lock();
    assert_eq!((queue.unmarked_drops, queue.unreported_drops), (2, 2));
    drop(queue);
    // A line longer than the capacity does not wait either.
    log.writer.append(&b"x".repeat(2 * BATCH), gap);
}

/// Symptom: after one stall, lines that should wait for room were dropped forever. Cause: the flag
/// `has_timed_out` was never cleared.
#[test]
fn waits_again_after_a_stalled_log_recovers() {
    let log = controlled_log(WhenFull::Wait, ignore_report);
    let lines = b"0123456789abcde\n".repeat(BATCH / 16);
    log.writer.append(b"first\n", gap);
    log.await_taken();
    log.writer.append(&lines, gap);
    log.writer.append(b"lost\n", gap);
    assert!(log.writer.0.lock().has_timed_out);
    // The log makes progress: the thread takes all lines of the full queue.
    log.outcomes.send(Outcome::Write).unwrap();
    assert_eq!(log.next(), "first\n");
    log.await_taken();
    assert!(!log.writer.0.lock().has_timed_out);
    log.outcomes.send(Outcome::Write).unwrap();
    assert_eq!(log.next().len(), BATCH);
    log.writer.append(b"gap\n", gap);
    log.await_taken();
    // The queue is full again, and has room before the second is over.
    log.writer.append(&lines, gap);
    for _ in 0..3 {
        log.outcomes.send(Outcome::Write).unwrap();
    }
    log.writer.append(b"waited\n", gap);
    assert_eq!(log.next(), "gap 1\ngap\n");
    assert_eq!(log.next().len(), BATCH);
    assert_eq!(log.next(), "waited\n");
    assert_eq!(log.writer.0.lock().unmarked_drops, 0);
}

#[test]
fn reports_writer_panic_and_continues() {
    static REPORTED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let log = controlled_log(WhenFull::Drop, |level, message| {
        lock(&REPORTED).push(format!("{} {message}", level.as_str()));
    });
    log.outcomes.send(Outcome::Panic).unwrap();
    log.writer.append(b"a\nb\n", gap);
    log.await_taken();
    log.writer.append(b"c\n", gap);
    log.outcomes.send(Outcome::Write).unwrap();
    let written = log.next();
    assert_eq!(written, "c\n");
    let expected = "error the writer of a log failed and was restarted; 2 lines may be lost";
    assert_eq!(*lock(&REPORTED), [expected]);
}

#[test]
fn reports_failure_once_and_loses_no_lines() {
    static REPORTED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let log = controlled_log(WhenFull::Drop, |level, message| {
        lock(&REPORTED).push(format!("{} {message}", level.as_str()));
    });
    let fail = |written| Outcome::Fail(written, ErrorKind::StorageFull);
    for outcome in [fail(0), fail(2), fail(3), Outcome::Write, Outcome::Write] {
        log.outcomes.send(outcome).unwrap();
    }
    log.writer.append(b"1\n22\na\n", gap);
    assert_eq!(log.next(), "a\n");
    log.writer.append(b"b\n", gap);
    assert_eq!(log.next(), "b\n");
    let reported = lock(&REPORTED);
    assert!(reported[0].starts_with("error a log cannot be written: "), "{reported:?}");
    assert_eq!(reported[1..], ["notice a log can be written again"]);
}

#[test]
fn pauses_longer_after_each_failure() {
    let mut pauses = (0..40).map(|failures| pause_after(failures).as_millis());
    let expected = [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000];
    assert!(pauses.clone().take(9).eq(expected));
    assert_eq!(pauses.next_back(), Some(5000));
}

#[test]
fn takes_lines_when_the_queue_is_flushed_reopened_closed_or_long() {
    let mut queue = Queue { lines: vec![b'x'; BATCH - 1], ..Queue::default() };
    assert!(queue.may_linger());
    queue.lines.push(b'\n');
    assert!(!queue.may_linger());
    let long = BATCH;
    for urgent in [
        Queue { should_flush: true, ..Queue::default() },
        Queue { should_reopen: true, ..Queue::default() },
        Queue { is_closed: true, ..Queue::default() },
        Queue { lines: vec![b'x'; long], ..Queue::default() },
    ] {
        assert!(!urgent.may_linger());
        assert!(urgent.should_flush || !urgent.is_idle());
        assert_eq!(urgent.may_pause(), !urgent.should_reopen && !urgent.is_closed);
    }
    let idle = Queue::default();
    assert!(idle.is_idle() && idle.may_linger() && idle.may_pause());
}

#[test]
fn frees_the_buffer_of_a_burst() {
    let mut batch = Batch { lines: Vec::with_capacity(Batch::MAX_KEPT), written: 3 };
    batch.clear();
    assert_eq!((batch.lines.capacity(), batch.written), (Batch::MAX_KEPT, 0));
    batch.lines = Vec::with_capacity(Batch::MAX_KEPT + 1);
    batch.clear();
    assert_eq!(batch.lines.capacity(), 0);
    // Four batches of 64 KiB.
    assert_eq!(Batch::MAX_KEPT, 256 * 1024);
}

#[test]
fn names_a_log_by_its_path() {
    let folder = ScratchFolder::new();
    let path = folder.path("log");
    let settings = LogSettings::at(&path);
    assert_eq!((settings.queue, settings.when_full), (4 * 1024 * 1024, WhenFull::Drop));
    let writer = Writer::open(settings).unwrap();
    assert_eq!(format!("{writer:?}"), format!("Writer(the log {})", path.display()));
}

#[test]
fn forgets_closed_logs() {
    let log = controlled_log(WhenFull::Drop, ignore_report);
    let closed = Arc::downgrade(&log.writer.0);
    drop(log);
    assert_eq!(closed.strong_count(), 0);
    let open = [(); 2].map(|()| controlled_log(WhenFull::Drop, ignore_report));
    let known = lock(&OPEN);
    assert!(!known.iter().any(|each| each.ptr_eq(&closed)));
    for open in &open {
        assert!(known.iter().any(|each| each.ptr_eq(&Arc::downgrade(&open.writer.0))));
    }
}

/// A line waits for room for itself and for the line about dropped lines before it.
#[test]
fn waits_exactly_while_a_line_and_its_gap_do_not_fit() {
    let line = b"123456789\n";
    let needed = line.len() + MAX_GAP;
    for (room, times_out) in [(needed, false), (needed - 1, true)] {
        let log =
            if times_out { controlled_log(WhenFull::Wait, ignore_report) } else { patient_log() };
        log.writer.append(b"first\n", gap);
        log.await_taken();
        log.writer.append(&filling(BATCH - 7), gap);
        let writer = &log.writer;
        thread::scope(|scope| {
            // The first of the two lines fits. Once it is in the queue, the thread waits.
            scope.spawn(|| writer.append(b"fits\n123456789\n", gap));
            let mut queue = writer.0.lock();
            while !queue.lines.ends_with(b"fits\n") {
                drop(queue);
                thread::yield_now();
                queue = writer.0.lock();
            }
            queue.lines.truncate(BATCH - room);
            drop(queue);
            writer.0.progress.notify_all();
        });
        let queue = log.writer.0.lock();
        assert_eq!(queue.has_timed_out, times_out, "{room}");
        assert!(queue.lines.ends_with(line), "{room}");
    }
}

#[test]
fn waits_only_for_a_line_that_fits_into_an_empty_queue_with_its_gap() {
    for (length, waits) in [(BATCH - MAX_GAP, true), (BATCH - MAX_GAP + 1, false)] {
        let log = controlled_log(WhenFull::Wait, ignore_report);
        log.writer.append(b"first\n", gap);
        log.await_taken();
        // Room for a shorter line.
        log.writer.append(&filling(BATCH - 500), gap);
        log.writer.append(&filling(length), gap);
        let queue = log.writer.0.lock();
        assert_eq!((queue.has_timed_out, queue.unmarked_drops), (waits, 1), "{length}");
    }
}

/// Lines that fit only without the line about dropped lines must not be written in its place.
#[test]
fn drops_lines_until_a_gap_line_fits() {
    let log = controlled_log(WhenFull::Drop, ignore_report);
    log.writer.append(b"first\n", gap);
    log.await_taken();
    let gap_length = "gap 1\n".len();
    log.writer.append(&filling(BATCH - gap_length), gap);
    log.writer.append(b"too long\n", gap);
    log.writer.append(b"lost\n", gap);
    let queue = log.writer.0.lock();
    assert_eq!((queue.lines.len(), queue.unmarked_drops), (BATCH - gap_length, 2));
}

/// A wakeup is a system call, so other lines do not wake the thread.
#[test]
fn needs_a_wakeup_only_for_the_first_line_and_for_a_batch() {
    for (before, after, expected) in [
        (0, 0, false),
        (0, 1, true),
        (0, BATCH, true),
        (1, 2, false),
        (1, BATCH, true),
        (BATCH - 2, BATCH - 1, false),
        (BATCH - 1, BATCH, true),
        (BATCH - 1, BATCH + 1, true),
        (BATCH, BATCH + 1, false),
    ] {
        assert_eq!(needs_wakeup(before, after), expected, "{before} {after}");
    }
}

#[test]
fn wakes_the_thread_for_the_first_line_and_for_a_batch() {
    for (before, added) in [(0, 1), (BATCH - 1, 1)] {
        let log = unlisted_log(ignore_report);
        let shared = &*log.writer.0;
        let mut queue = shared.lock();
        queue.lines = vec![b'\n'; before];
        drop(queue);
        let (send, waiting) = channel();
        thread::scope(|scope| {
            let thread = scope.spawn(move || {
                let queue = shared.lock();
                send.send(()).unwrap();
                let (_queue, timeout) =
                    shared.work.wait_timeout(queue, Duration::from_secs(20)).unwrap();
                !timeout.timed_out()
            });
            waiting.recv().unwrap();
            // The other thread releases the lock when it waits.
            shared.enqueue(&mut shared.lock(), &b"\n".repeat(added), gap);
            assert!(thread.join().unwrap(), "{before} {added}");
        });
    }
}

#[test]
fn reports_dropped_lines_once_per_second_and_at_the_end() {
    static REPORTED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    // As if the last report had been in the future, so that the second cannot end.
    let recently = Instant::now() + Duration::from_hours(1);
    for (reported_at, is_closed, lines, is_reported) in [
        (None, false, "a\n", true),
        (Some(recently), false, "a\n", false),
        (Some(recently), true, "a\n", false),
        (Some(recently), true, "", true),
    ] {
        let log = unlisted_log(|_, message| {
            lock(&REPORTED).push(message.to_string());
        });
        let mut queue = log.writer.0.lock();
        queue.lines = lines.into();
        (queue.unreported_drops, queue.is_closed) = (2, is_closed);
        drop(queue);
        let mut state = FaultState { drops_reported_at: reported_at, ..FaultState::default() };
        log.writer.0.take_batch(&mut Batch::default(), &mut state);
        let reported = std::mem::take(&mut *lock(&REPORTED));
        let expected = "dropped 2 lines of a log: they arrived faster than they could be written";
        assert_eq!(reported, if is_reported { vec![expected] } else { vec![] });
        assert_eq!(log.writer.0.lock().unreported_drops, if is_reported { 0 } else { 2 });
    }
}

#[test]
fn counts_failures_and_ends_a_pause_on_a_reopen() {
    let log = unlisted_log(ignore_report);
    let mut state = FaultState::default();
    for failures in 1..=3 {
        log.writer.0.lock().should_reopen = true;
        log.writer.0.pause(&mut state);
        assert_eq!((state.failures, log.writer.0.lock().should_reopen), (failures, false));
    }
}

/// A write to a full pipe has waited already. A pause would delay a reopen, and would end it: after
/// other failures the sink reopens by itself.
#[test]
fn does_not_pause_after_a_full_pipe() {
    let log = unlisted_log(ignore_report);
    log.writer.append(b"a\n", gap);
    log.await_taken();
    log.writer.0.lock().should_reopen = true;
    log.outcomes.send(Outcome::Fail(0, ErrorKind::WouldBlock)).unwrap();
    log.outcomes.send(Outcome::Write).unwrap();
    assert_eq!(log.next(), "a\n");
    log.await_reopened();
}

#[test]
fn reopens_immediately_on_request() {
    let log = controlled_log(WhenFull::Drop, ignore_report);
    log.writer.reopen();
    log.await_reopened();
    reopen_all();
    log.await_reopened();
}

#[test]
fn leaves_rotated_file_unchanged_after_reopen() {
    let folder = ScratchFolder::new();
    let (path, moved) = (folder.path("log"), folder.path("log.1"));
    let writer = Writer::open(LogSettings::at(&path)).unwrap();
    writer.append(b"old\n", gap);
    writer.finish();
    std::fs::rename(&path, &moved).unwrap();
    writer.reopen();
    await_text(&path, |_| path.exists());
    writer.append(b"new\n", gap);
    await_text(&path, |text| text == "new\n");
    await_text(&moved, |text| text == "old\n");
}

/// `finish` waits one second at most: a log must not prevent a server from stopping.
#[test]
fn does_not_block_on_full_device() {
    let settings = LogSettings { queue: 0, ..LogSettings::at("/dev/full") };
    let writer = Writer::open_with(settings, LINGER, ignore_report).unwrap();
    for _ in 0..10 {
        writer.append(&b"0123456789abcde\n".repeat(BATCH / 16), gap);
    }
    writer.finish();
    let queue = writer.0.lock();
    assert!(queue.lines.len() <= BATCH && queue.unmarked_drops + queue.unreported_drops > 0);
}
