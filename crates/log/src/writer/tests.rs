//! Decides what a writer must survive, with a log that does what the test says.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::test_support::{ScratchFolder, await_text};

/// What the test wants to happen to the next write.
enum Fate {
    Write,
    Fail,
    Panic,
}

/// A log that writes when the test says so.
struct Told {
    fates: Receiver<Fate>,
    written: Sender<String>,
    /// Apart from what is written: one test has every log of the process opened anew.
    reopened: Sender<()>,
}

impl Outlet for Told {
    fn write(&mut self, lines: &[u8]) -> Result<(), Cut> {
        match self.fates.recv() {
            Ok(Fate::Write) => {}
            Ok(Fate::Fail) => {
                return Err(Cut { written: 0, error: ErrorKind::StorageFull.into() });
            }
            Ok(Fate::Panic) => panic!("as the test wishes"),
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

struct Bench {
    writer: Writer,
    fates: Sender<Fate>,
    written: Receiver<String>,
    reopened: Receiver<()>,
}

fn bench(when_full: WhenFull, troubles: Troubles) -> Bench {
    let (fates, told) = channel();
    let (tell, written) = channel();
    let (tell_opened, reopened) = channel();
    let outlet = Told { fates: told, written: tell, reopened: tell_opened };
    let mut shared = Shared::new("a log".to_owned(), Box::new(outlet), troubles);
    (shared.when_full, shared.queue) = (when_full, BATCH);
    Bench { writer: Writer::of(shared), fates, written, reopened }
}

impl Bench {
    #[track_caller]
    fn next(&self) -> String {
        self.written.recv_timeout(Duration::from_secs(20)).unwrap()
    }

    #[track_caller]
    fn await_reopened(&self) {
        self.reopened.recv_timeout(Duration::from_secs(20)).unwrap();
    }

    /// Returns when the thread has taken what was appended and is at it.
    fn await_taken(&self) {
        let pile = self.writer.0.lock();
        let waits = |pile: &mut Pile| !pile.waiting.is_empty();
        drop(self.writer.0.progress.wait_while(pile, waits).unwrap());
    }
}

fn quiet(_: Level, _: fmt::Arguments<'_>) {}

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

/// With each reload a thread and a descriptor were left behind.
#[test]
fn flushes_and_stops_after_last_handle_drops() {
    let folder = ScratchFolder::new();
    let path = folder.path("log");
    let writer = Writer::open(LogSettings::at(&path)).unwrap();
    writer.append(b"a\n", gap);
    let shared = Arc::downgrade(&writer.0);
    drop(writer);
    await_text(&path, |text| text == "a\n");
    let began = Instant::now();
    while shared.strong_count() > 0 {
        assert!(began.elapsed() < Duration::from_secs(20), "its thread has not ended");
        thread::yield_now();
    }
}

#[test]
fn counts_lines_dropped_by_full_queue() {
    let bench = bench(WhenFull::Drop, quiet);
    bench.writer.append(b"first\n", gap);
    bench.await_taken();
    // One more than fits, and one that would fit but must not stand before the gap is told.
    let lines = b"0123456789abcde\n".repeat(BATCH / 16 + 1);
    bench.writer.append(&lines, gap);
    bench.writer.append(b"lost\n", gap);
    for _ in 0..3 {
        bench.fates.send(Fate::Write).unwrap();
    }
    assert_eq!(bench.next(), "first\n");
    assert_eq!(bench.next().len(), BATCH);
    bench.writer.append(b"last\n", gap);
    assert_eq!(bench.next(), "gap 2\nlast\n");
}

/// A batch that did not fit was dropped whole: a thread that had gathered a mebibyte lost all of
/// it although the log was idle. What fits is kept.
#[test]
fn keeps_leading_lines_that_fit() {
    let bench = bench(WhenFull::Drop, quiet);
    bench.writer.append(&b"0123456789abcd\n".repeat(BATCH / 10), gap);
    bench.fates.send(Fate::Write).unwrap();
    let kept = bench.next();
    assert_eq!(kept.len(), BATCH / 15 * 15);
    assert!(kept.ends_with("d\n"));
}

#[test]
fn waits_for_queue_space() {
    let bench = bench(WhenFull::Wait, quiet);
    let lines = b"0123456789abcde\n".repeat(BATCH / 16);
    bench.writer.append(b"first\n", gap);
    bench.await_taken();
    bench.writer.append(&lines, gap);
    for _ in 0..3 {
        bench.fates.send(Fate::Write).unwrap();
    }
    bench.writer.append(b"last\n", gap);
    assert_eq!(bench.next(), "first\n");
    assert_eq!(bench.next().len(), BATCH);
    assert_eq!(bench.next(), "last\n");
}

/// Each turn of a loop waited its second for a log that was dead, and nobody was served.
#[test]
fn stops_waiting_for_a_stalled_log() {
    let bench = bench(WhenFull::Wait, quiet);
    let lines = b"0123456789abcde\n".repeat(BATCH / 16);
    bench.writer.append(b"first\n", gap);
    bench.await_taken();
    bench.writer.append(&lines, gap);
    bench.writer.append(b"a\n", gap);
    assert!(bench.writer.0.lock().gave_up);
    bench.writer.append(b"b\n", gap);
    assert_eq!(bench.writer.0.lock().missing, 2);
    // A line that no queue can hold is not waited for either.
    bench.writer.append(&b"x".repeat(2 * BATCH), gap);
}

/// Symptom: after one stall `gave_up` stayed, and lines that should wait for room were dropped for ever.
#[test]
fn waits_again_after_a_stalled_log_recovers() {
    let bench = bench(WhenFull::Wait, quiet);
    let lines = b"0123456789abcde\n".repeat(BATCH / 16);
    bench.writer.append(b"first\n", gap);
    bench.await_taken();
    bench.writer.append(&lines, gap);
    bench.writer.append(b"lost\n", gap);
    assert!(bench.writer.0.lock().gave_up);
    // The log moves on: the thread takes the full queue and is at it.
    bench.fates.send(Fate::Write).unwrap();
    assert_eq!(bench.next(), "first\n");
    bench.await_taken();
    assert!(!bench.writer.0.lock().gave_up);
    bench.fates.send(Fate::Write).unwrap();
    assert_eq!(bench.next().len(), BATCH);
    bench.writer.append(b"gap\n", gap);
    bench.await_taken();
    // Full once more, and this time there is room before the second is over.
    bench.writer.append(&lines, gap);
    for _ in 0..3 {
        bench.fates.send(Fate::Write).unwrap();
    }
    bench.writer.append(b"waited\n", gap);
    assert_eq!(bench.next(), "gap 1\ngap\n");
    assert_eq!(bench.next().len(), BATCH);
    assert_eq!(bench.next(), "waited\n");
    assert_eq!(bench.writer.0.lock().missing, 0);
}

#[test]
fn reports_writer_panic_and_continues() {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let bench = bench(WhenFull::Drop, |level, trouble| {
        lock(&TOLD).push(format!("{} {trouble}", level.as_str()));
    });
    bench.fates.send(Fate::Panic).unwrap();
    bench.writer.append(b"a\nb\n", gap);
    bench.await_taken();
    bench.writer.append(b"c\n", gap);
    bench.fates.send(Fate::Write).unwrap();
    let written = bench.next();
    assert_eq!(written, "c\n");
    let expected = "error the writer of a log failed and was restarted; 2 lines may be lost";
    assert_eq!(*lock(&TOLD), [expected]);
}

#[test]
fn reports_failure_once_and_loses_no_lines() {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let bench = bench(WhenFull::Drop, |level, trouble| {
        lock(&TOLD).push(format!("{} {trouble}", level.as_str()));
    });
    for fate in [Fate::Fail, Fate::Fail, Fate::Write, Fate::Write] {
        bench.fates.send(fate).unwrap();
    }
    bench.writer.append(b"a\n", gap);
    assert_eq!(bench.next(), "a\n");
    bench.writer.append(b"b\n", gap);
    assert_eq!(bench.next(), "b\n");
    let told = lock(&TOLD);
    assert!(told[0].starts_with("error a log cannot be written: "), "{told:?}");
    assert_eq!(told[1..], ["notice a log is written again"]);
}

#[test]
fn reopens_immediately_on_request() {
    let bench = bench(WhenFull::Drop, quiet);
    bench.writer.reopen();
    bench.await_reopened();
    reopen_all();
    bench.await_reopened();
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

/// `finish` waits a second at most: the end of a server must not hang on its log.
#[test]
fn does_not_block_on_full_device() {
    let settings = LogSettings { queue: 0, ..LogSettings::at("/dev/full") };
    let writer = Writer::open_for(settings, LINGER, quiet).unwrap();
    for _ in 0..10 {
        writer.append(&b"0123456789abcde\n".repeat(BATCH / 16), gap);
    }
    writer.finish();
    let pile = writer.0.lock();
    assert!(pile.waiting.len() <= BATCH && pile.missing + pile.untold > 0);
}
