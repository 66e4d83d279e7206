//! Stopping a program: requests in progress, the drain time, and a second signal.

use std::time::Instant;

use rustix::process::Signal;

use crate::app::start;
use crate::harness::{AT_ONCE, PATIENCE, Program, SCHEDULERS};

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

#[test]
fn serves_all_clients_while_it_leaves() {
    for scheduler in AT_ONCE {
        let program = start(&["--scheduler", scheduler, "--leave-time", "10m"]);
        let mut kept = program.connect();
        assert_eq!(kept.get("/ready").status(), 200, "{scheduler}");
        program.signal(Signal::TERM);
        let began = Instant::now();
        loop {
            let reply = program.connect().get("/ready");
            if reply.status() == 503 {
                assert_eq!(reply.text(), "not ready: it leaves\n", "{scheduler}");
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{scheduler}: it is still ready");
        }
        for mut peer in [kept, program.connect()] {
            let reply = peer.get("/hello?name=a");
            assert_eq!(reply.header("Connection"), Some("close"), "{scheduler}");
            assert_eq!(reply.text(), "<h1>Hello a</h1>", "{scheduler}");
            peer.expect_closed();
        }
        program.signal(Signal::TERM);
        assert_eq!(program.wait().code, Some(1), "{scheduler}");
    }
}

#[test]
fn ends_after_the_time_to_leave() {
    for scheduler in SCHEDULERS {
        let program = start(&["--scheduler", scheduler, "--leave-time", "10ms"]);
        program.signal(Signal::TERM);
        assert_eq!(program.wait().code, Some(0), "{scheduler}");
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

/// Symptom: the log of a stop that took too long told only that connections were cut. Each loop now
/// reports what it waited for.
#[test]
fn reports_what_the_drain_waited_for() {
    for scheduler in ["hybrid", "event", "cohort"] {
        let options = ["--scheduler", scheduler, "--loops", "1", "--drain-timeout", "50ms"];
        let mut program = start(&options);
        let mut idle = program.connect();
        assert_eq!(idle.get("/hello?name=a").status(), 200);
        let mut slow = program.connect();
        slow.send("GET /slow?time=25000&secret=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        program.await_line("slow has begun");
        // More than the buffers of both sockets.
        let mut reader = program.connect();
        reader.send("GET /numbers/later?bytes=16000000 HTTP/1.1\r\nHost: a\r\n\r\n");
        reader.await_beginning(100);
        let mut sender = program.connect();
        let fields = "Content-Length: 10\r\nExpect: 100-continue\r\n";
        sender.send(format!("POST /echo HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        assert_eq!(sender.reply().status(), 100);
        program.signal(Signal::TERM);
        let ended = program.wait();
        let errors = &ended.errors;
        let counts = "1 handler runs, 1 response is being sent, 1 request is being received\n";
        assert_eq!(errors.matches(counts).count(), 1, "{scheduler}: {errors}");
        for described in [
            "\n  GET /slow has run for ",
            " in its handler (bine::app::slow)\n",
            "\n  GET /numbers/later has ",
            " bytes that 127.0.0.1 has not read for ",
            "\n  POST /echo: 127.0.0.1 has sent 0 bytes of the body\n",
        ] {
            assert!(errors.contains(described), "{scheduler}: no {described:?} in {errors}");
        }
        assert!(!errors.contains("/hello") && !errors.contains("secret"), "{errors}");
    }
}

/// Each loop cuts its connections at its own deadline, and the first one ends the others.
#[test]
fn each_loop_reports_at_end_of_drain() {
    let mut program = start(&["--loops", "3", "--drain-timeout", "50ms"]);
    let mut peers: Vec<_> = (0..8).map(|_| program.connect()).collect();
    for peer in &mut peers {
        peer.send("GET /slow?time=25000 HTTP/1.1\r\nHost: a\r\n\r\n");
        program.await_line("slow has begun");
    }
    program.signal(Signal::TERM);
    let errors = program.wait().errors;
    assert_eq!(errors.matches("\n  GET /slow has run for ").count(), 8, "{errors}");
}

#[test]
fn reports_number_of_busy_threads_at_end_of_drain() {
    for scheduler in ["nothread", "one-to-one", "pool", "accept-many", "queue"] {
        let mut program = start(&["--scheduler", scheduler, "--drain-timeout", "50ms"]);
        let mut peer = program.connect();
        peer.send("GET /stuck HTTP/1.1\r\nHost: a\r\n\r\n");
        program.await_line("stuck has begun");
        program.signal(Signal::TERM);
        let errors = program.wait().errors;
        let counts = errors.split_once("the connections that are left are cut: ");
        let counts = counts.unwrap_or_else(|| panic!("{scheduler}: {errors}")).1;
        assert!(counts.starts_with("1 "), "{scheduler}: {errors}");
    }
}

#[test]
fn reports_blocked_worker_at_end_of_drain() {
    let mut program = start(&["--loops", "1", "--drain-timeout", "50ms"]);
    let mut peer = program.connect();
    peer.send("GET /stuck HTTP/1.1\r\nHost: a\r\n\r\n");
    program.await_line("stuck has begun");
    program.signal(Signal::TERM);
    let errors = program.wait().errors;
    assert!(errors.contains(": 1 handler runs\n  GET /stuck has run for "), "{errors}");
    assert!(errors.contains(" in its handler (bine::app::stuck)\n"), "{errors}");
}

#[test]
fn reports_no_idle_connections_at_end_of_drain() {
    let program = start(&["--loops", "1", "--drain-timeout", "1ms"]);
    let mut idle = program.connect();
    assert_eq!(idle.get("/hello?name=a").status(), 200);
    let _fresh = program.connect();
    program.signal(Signal::TERM);
    idle.expect_closed();
    let errors = program.wait().errors;
    assert!(!errors.contains("drain-timeout"), "{errors}");
}

/// Asserts that the program ends by itself, and that status and log report the cut requests.
#[track_caller]
fn check_cut(program: Program, scheduler: &str) {
    let ended = program.wait();
    // A failure returned from `main` gives 1; the test harness turns it into 101.
    assert!(matches!(ended.code, Some(1 | 101)), "{scheduler}: {ended:?}");
    assert_ne!(ended.errors, "", "{scheduler}");
}
