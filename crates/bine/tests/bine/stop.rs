//! Stopping a program: requests in progress, the drain time, and a second signal.

use rustix::process::Signal;

use crate::app::start;
use crate::harness::{AT_ONCE, Program, SCHEDULERS};

#[test]
fn completes_requests_in_progress_before_exit() {
    for scheduler in SCHEDULERS {
        for signal in [Signal::TERM, Signal::INT] {
            let mut program = start(&["--scheduler", scheduler]);
            let mut idle = program.connect();
            assert_eq!(idle.get("/hello?name=a").status(), 200);
            let mut peer = program.connect();
            peer.send("GET /slow?time=200 HTTP/1.1\r\nHost: a\r\n\r\n");
            program.await_line("slow has begun");
            program.signal(signal);
            // An idle connection is closed at once.
            idle.expect_closed();
            let reply = peer.reply();
            assert_eq!(reply.text(), "<p>slow</p>", "{scheduler}");
            peer.expect_closed();
            let ended = program.wait();
            assert_eq!(ended.code, Some(0), "{scheduler}");
            // A busy machine may cause reports of a slow loop.
            let errors =
                ended.errors.lines().filter(|line| !line.contains("blocked its event loop"));
            assert_eq!(errors.collect::<Vec<_>>(), [""; 0], "{scheduler}");
        }
    }
}

/// Regression: the exit status was 0 although requests were cut.
#[test]
fn second_signal_ends_program_at_once() {
    for scheduler in AT_ONCE {
        let mut program = start(&["--scheduler", scheduler]);
        let mut idle = program.connect();
        assert_eq!(idle.get("/hello?name=a").status(), 200);
        let mut peer = program.connect();
        peer.send("GET /slow?time=25000 HTTP/1.1\r\nHost: a\r\n\r\n");
        program.await_line("slow has begun");
        program.signal(Signal::TERM);
        // Wait for the first signal to take effect, because two pending ones merge.
        idle.expect_closed();
        program.signal(Signal::TERM);
        peer.expect_closed();
        assert_eq!(program.wait().code, Some(1), "{scheduler}");
    }
}

/// Regression: a handler that blocked its loop kept it from noticing the stop, so the program
/// ignored two signals and the deadline. A separate thread now counts signals and time.
#[test]
fn second_signal_ends_program_with_blocked_handler() {
    for scheduler in SCHEDULERS {
        let mut program = start(&["--scheduler", scheduler, "--loops", "1"]);
        let mut peer = program.connect();
        peer.send("GET /stuck HTTP/1.1\r\nHost: a\r\n\r\n");
        program.await_line("stuck has begun");
        // Send different signals, because two pending ones of the same kind merge.
        program.signal(Signal::TERM);
        program.signal(Signal::INT);
        let ended = program.wait();
        assert_eq!(ended.code, Some(1), "{scheduler}");
    }
}

#[test]
fn drain_timeout_ends_program_with_blocked_handler() {
    for scheduler in SCHEDULERS {
        let mut program =
            start(&["--scheduler", scheduler, "--loops", "1", "--drain-timeout", "50ms"]);
        let mut peer = program.connect();
        peer.send("GET /stuck HTTP/1.1\r\nHost: a\r\n\r\n");
        program.await_line("stuck has begun");
        program.signal(Signal::TERM);
        check_cut(program, scheduler);
    }
}

/// Regression: the exit status was 0 here too.
#[test]
fn drain_timeout_cuts_slow_requests() {
    for scheduler in SCHEDULERS {
        let mut program = start(&["--scheduler", scheduler, "--drain-timeout", "50ms"]);
        let mut peer = program.connect();
        peer.send("GET /slow?time=25000 HTTP/1.1\r\nHost: a\r\n\r\n");
        program.await_line("slow has begun");
        program.signal(Signal::TERM);
        peer.expect_closed();
        check_cut(program, scheduler);
    }
}

/// Asserts that the program ends by itself, and that status and log report the cut requests.
#[track_caller]
fn check_cut(program: Program, scheduler: &str) {
    let ended = program.wait();
    // A failure returned from `main` gives 1; the test harness turns it into 101.
    assert!(matches!(ended.code, Some(1 | 101)), "{scheduler}: {ended:?}");
    assert_ne!(ended.errors, "", "{scheduler}");
}
