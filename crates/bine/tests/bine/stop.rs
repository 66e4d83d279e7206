//! Decides how a program that is told to stop treats what it has begun.

use rustix::process::Signal;

use crate::app::start;
use crate::harness::{AT_ONCE, Program, SCHEDULERS};

#[test]
fn what_has_begun_is_finished_before_the_program_ends() {
    for scheduler in SCHEDULERS {
        for signal in [Signal::TERM, Signal::INT] {
            let mut program = start(&["--scheduler", scheduler]);
            let mut idle = program.connect();
            assert_eq!(idle.get("/hello?name=a").status(), 200);
            let mut peer = program.connect();
            peer.send("GET /slow?time=200 HTTP/1.1\r\nHost: a\r\n\r\n");
            program.await_line("slow has begun");
            program.signal(signal);
            // One that waits for nothing is let go at once.
            idle.expect_closed();
            let reply = peer.reply();
            assert_eq!(reply.text(), "<p>slow</p>", "{scheduler}");
            peer.expect_closed();
            let ended = program.wait();
            assert_eq!(ended.code, Some(0), "{scheduler}");
            // A machine with much else to do may be slow, which is told.
            let errors = ended.errors.lines().filter(|line| !line.contains("held its loop"));
            assert_eq!(errors.collect::<Vec<_>>(), [""; 0], "{scheduler}");
        }
    }
}

/// The exit status was 0, as if nobody had been cut: a second signal was only a faster stop.
#[test]
fn a_second_signal_ends_the_program_at_once() {
    for scheduler in AT_ONCE {
        let mut program = start(&["--scheduler", scheduler]);
        let mut idle = program.connect();
        assert_eq!(idle.get("/hello?name=a").status(), 200);
        let mut peer = program.connect();
        peer.send("GET /slow?time=25000 HTTP/1.1\r\nHost: a\r\n\r\n");
        program.await_line("slow has begun");
        program.signal(Signal::TERM);
        // The first signal has been seen: two at once would be one.
        idle.expect_closed();
        program.signal(Signal::TERM);
        peer.expect_closed();
        assert_eq!(program.wait().code, Some(1), "{scheduler}");
    }
}

/// A handler that blocks on its loop kept it from ever hearing that the server stops: the program
/// went on after two signals and any time, until it was killed. A thread of its own counts signals
/// and time.
#[test]
fn a_handler_that_blocks_for_ever_does_not_outlive_a_second_signal() {
    for scheduler in SCHEDULERS {
        let mut program = start(&["--scheduler", scheduler, "--loops", "1"]);
        let mut peer = program.connect();
        peer.send("GET /stuck HTTP/1.1\r\nHost: a\r\n\r\n");
        program.await_line("stuck has begun");
        // Both kinds, because two of the same that nobody took yet are one.
        program.signal(Signal::TERM);
        program.signal(Signal::INT);
        let ended = program.wait();
        assert_eq!(ended.code, Some(1), "{scheduler}");
    }
}

#[test]
fn a_handler_that_blocks_for_ever_does_not_outlive_the_drain() {
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

/// The exit status was 0 here too.
#[test]
fn what_takes_longer_than_the_drain_is_cut() {
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

/// It ends by itself, and both its status and its last words say that not all went well.
#[track_caller]
fn check_cut(program: Program, scheduler: &str) {
    let ended = program.wait();
    // A failure that is returned from `main` is 1; the harness of tests makes 101 of it.
    assert!(matches!(ended.code, Some(1 | 101)), "{scheduler}: {ended:?}");
    assert_ne!(ended.errors, "", "{scheduler}");
}
