//! Decides how a program that is told to stop treats what it has begun.

use rustix::process::Signal;

use crate::app::start;
use crate::harness::SCHEDULERS;

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
            assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""), "{scheduler}");
        }
    }
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    for scheduler in SCHEDULERS {
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
        assert_eq!(program.wait().code, Some(0), "{scheduler}");
    }
}

#[test]
fn what_takes_longer_than_the_drain_is_cut() {
    for scheduler in SCHEDULERS {
        let mut program = start(&["--scheduler", scheduler, "--drain-timeout", "50ms"]);
        let mut peer = program.connect();
        peer.send("GET /slow?time=25000 HTTP/1.1\r\nHost: a\r\n\r\n");
        program.await_line("slow has begun");
        program.signal(Signal::TERM);
        peer.expect_closed();
        assert_eq!(program.wait().code, Some(0), "{scheduler}");
    }
}
