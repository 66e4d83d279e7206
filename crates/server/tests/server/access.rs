//! Tests of the access log: one line per response, for every kind of handler and scheduler.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use bine_log::test_support::is_alone;
use bine_log::{Format, LogSettings, WhenFull, Writer};
use bine_server::{AccessSettings, reopen_logs_on_signal};
use rustix::process::{Signal, getpid, kill_process};

use crate::PATIENCE;
use crate::house::{House, SCHEDULERS, settings};
use crate::peer::get;

/// Symptom: with an access log the server sent no response. Cause: the log writer cut a line at
/// wrong positions of its date and panicked.
#[test]
fn logs_one_line_per_response() {
    for scheduler in SCHEDULERS {
        let log = Log::new();
        let house = House::with_log(settings(scheduler), Some(log.settings("combined")));
        let paths = ["/say/a", "/yield", "/work", "/page/300000", "/file", "/panic/work"];
        let mut peer = house.connect();
        for path in paths {
            peer.ask(path);
        }
        assert_eq!(house.connect().ask("/panic"), "500 close");
        let mut faulty = house.connect();
        faulty.send("nonsense\r\n\r\n");
        assert_eq!(faulty.reply().to_string(), "400 close");
        house.stop();
        house.await_end();
        let mut told = log.lines();
        // Other connections may run on other threads, which write their lines in any order.
        for other in ["- 400 26", "GET /panic HTTP/1.1 500 51"] {
            let place = told.iter().position(|line| line == other);
            told.remove(place.unwrap_or_else(|| panic!("no line `{other}` in {told:?}")));
        }
        let expected = [
            "GET /say/a HTTP/1.1 200 1",
            "GET /yield HTTP/1.1 200 5",
            "GET /work HTTP/1.1 200 4",
            // The size on the wire, in thirty chunks.
            "GET /page/300000 HTTP/1.1 200 300365",
            "GET /file HTTP/1.1 200 9000000",
            "GET /panic/work HTTP/1.1 500 51",
        ];
        assert_eq!(told, expected, "{scheduler}");
    }
}

#[test]
fn logs_the_bytes_sent_of_a_long_response() {
    for scheduler in SCHEDULERS {
        let log = Log::new();
        let house = House::with_log(settings(scheduler), Some(log.settings("combined")));
        let mut peer = house.connect();
        assert_eq!(peer.ask("/stream/25"), "200 <25>");
        let mut peer = house.connect();
        peer.send(get("/stream/fail"));
        peer.rest();
        house.stop();
        house.await_end();
        let told = log.lines();
        // The sizes include the chunk headers and the last chunk, which a failure omits.
        let expected = ["GET /stream/25 HTTP/1.1 200 41", "GET /stream/fail HTTP/1.1 200 10"];
        for line in expected {
            assert!(told.iter().any(|told| told == line), "no `{line}` in {told:?}, {scheduler}");
        }
    }
}

/// Symptom: the log lacked the lines of a connection that always has half a request waiting. Cause:
/// a thread of the pool flushed its lines only between requests with an empty receive buffer. Fix:
/// it flushes them before each wait.
#[test]
fn logs_a_response_while_the_next_request_arrives() {
    for scheduler in SCHEDULERS {
        let log = Log::new();
        let house = House::with_log(settings(scheduler), Some(log.settings("combined")));
        let mut peer = house.connect();
        peer.send(get("/say/a") + &get("/say/b")[..10]);
        assert_eq!(peer.reply().to_string(), "200 a");
        log.await_lines(&["GET /say/a HTTP/1.1 200 1"]);
    }
}

/// Symptom: the line of an awaited response had the status of an earlier one, and a wrong length.
/// Cause: the earlier responses of the pipeline were prepended to it and measured with it. Fix:
/// they are sent before the wait.
#[test]
fn logs_an_awaited_pipelined_response_separately() {
    for scheduler in SCHEDULERS {
        let log = Log::new();
        let house = House::with_log(settings(scheduler), Some(log.settings("combined")));
        let mut peer = house.connect();
        peer.send(get("/say/abc") + &get("/yield") + &get("/work"));
        for expected in ["200 abc", "200 later", "200 work"] {
            assert_eq!(peer.reply().to_string(), expected, "{scheduler}");
        }
        log.await_lines(&[
            "GET /say/abc HTTP/1.1 200 3",
            "GET /yield HTTP/1.1 200 5",
            "GET /work HTTP/1.1 200 4",
        ]);
    }
}

/// The head of a chunked page has already been sent when the page ends and its line is written.
#[test]
fn logs_response_headers_and_duration_for_every_kind() {
    for scheduler in SCHEDULERS {
        let log = Log::new();
        let format = r#""%U" %s "%{Date}o" %D"#;
        let house = House::with_log(settings(scheduler), Some(log.settings(format)));
        let mut peer = house.connect();
        for path in ["/say/a", "/yield", "/work", "/page/300000", "/file"] {
            peer.ask(path);
        }
        house.stop();
        house.await_end();
        let text = std::fs::read_to_string(&log.0).unwrap();
        for line in text.lines() {
            let parts: Vec<&str> = line.split('"').collect();
            assert!(parts[3].ends_with(" GMT"), "{scheduler}: {line}");
            assert!(parts[4].trim().parse::<u64>().is_ok(), "{scheduler}: {line}");
        }
        assert_eq!(text.lines().count(), 5);
    }
}

/// logrotate sends SIGUSR1 and immediately compresses the old file.
#[test]
fn reopens_a_rotated_log_on_signal() {
    // The signal would interrupt the system calls of other tests.
    if !is_alone("access::reopens_a_rotated_log_on_signal") {
        return;
    }
    reopen_logs_on_signal().unwrap();
    let log = Log::new();
    let house = House::with_log(settings("hybrid"), Some(log.settings("combined")));
    house.connect().ask("/say/a");
    log.await_lines(&["GET /say/a HTTP/1.1 200 1"]);
    let moved = Log::new();
    std::fs::rename(&log.0, &moved.0).unwrap();
    kill_process(getpid(), Signal::USR1).unwrap();
    let began = Instant::now();
    while !log.0.exists() && began.elapsed() < PATIENCE {
        thread::yield_now();
    }
    house.connect().ask("/say/b");
    log.await_lines(&["GET /say/b HTTP/1.1 200 1"]);
    assert_eq!(moved.lines(), ["GET /say/a HTTP/1.1 200 1"]);
}

#[test]
fn answers_requests_when_the_log_cannot_be_written() {
    let pipe = Log::new();
    assert!(Command::new("mkfifo").arg(&pipe.0).status().unwrap().success());
    for path in [pipe.0.clone(), PathBuf::from("/dev/full")] {
        for when_full in [WhenFull::Drop, WhenFull::Wait] {
            let log = LogSettings { when_full, ..LogSettings::at(&path) };
            let writer = Writer::open(log).unwrap();
            let access = AccessSettings { writer, format: Arc::default() };
            let house = House::with_log(settings("hybrid"), Some(access));
            let mut peer = house.connect();
            for _ in 0..1000 {
                assert_eq!(peer.ask("/say/a"), "200 a");
            }
            house.stop();
            house.await_end();
        }
    }
}

/// The log file of one test.
pub(crate) struct Log(PathBuf);

impl Log {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bine-access-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    pub(crate) fn settings(&self, format: &str) -> AccessSettings {
        AccessSettings {
            writer: Writer::open(LogSettings::at(&self.0)).unwrap(),
            format: Arc::new(Format::parse(format).unwrap()),
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.0).unwrap().lines().map(shorten).collect()
    }

    /// Waits until the file contains exactly these lines.
    #[track_caller]
    fn await_lines(&self, expected: &[&str]) {
        let began = Instant::now();
        while self.lines().len() < expected.len() && began.elapsed() < PATIENCE {
            thread::yield_now();
        }
        assert_eq!(self.lines(), expected);
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Reduces a line to request, status and length.
fn shorten(line: &str) -> String {
    let quoted: Vec<&str> = line.split('"').collect();
    format!("{}{}", quoted[1], quoted[2].trim_end())
}
