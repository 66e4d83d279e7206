//! The report of the work that continues in the background when a stop takes too long.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use bine_log as log;

use crate::server::Server;

/// The time for the report. It is less than the time between the end of the drain and the end of the
/// process.
const REPORT_TIME: Duration = Duration::from_millis(500);
/// The maximum number of lines.
const MAX_LINES: usize = 16;

/// Logs the program's work in the background, if it has some.
pub(crate) fn report_background_work(server: &Server) {
    let Some(report) = server.work_report().map(Arc::clone) else { return };
    let (sender, receiver) = channel();
    // Its own thread, because a subsystem that hangs may hold a lock that the report takes.
    let started = Builder::new().name("bine stop report".to_owned()).spawn(move || {
        // The receiver may have stopped to wait.
        report(&mut |line| drop(sender.send(line)));
    });
    if started.is_err() {
        return;
    }
    let deadline = Instant::now() + REPORT_TIME;
    let mut lines = Vec::new();
    while lines.len() < MAX_LINES {
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => lines.push(line),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                lines.push("a subsystem that does not say what it does".to_owned());
                break;
            }
        }
    }
    if !lines.is_empty() {
        log::warn(format_args!("work in the background still runs: {}", lines.join("; ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Listen, Settings};

    struct NoContent;

    impl crate::handler::Handler for NoContent {
        fn local(
            &self,
            _context: crate::handler::HandlerContext,
        ) -> Box<dyn crate::handler::Responder> {
            unreachable!("the server does not run")
        }
    }

    /// Returns the messages that a report logs.
    fn logged(report: impl Fn(&mut dyn FnMut(String)) + Send + Sync + 'static) -> Vec<String> {
        let listeners = vec![Listen::on("127.0.0.1:0".parse().unwrap())];
        let settings = Settings { listeners, ..Settings::default() };
        let server = Server::open(settings, Arc::new(NoContent), None).unwrap();
        server.set_work_report(Arc::new(report));
        let capture = log::test_support::capture();
        report_background_work(&server);
        capture.end()
    }

    #[test]
    fn logs_background_work_in_one_message() {
        assert_eq!(
            logged(|tell| ["a", "b"].map(str::to_owned).into_iter().for_each(tell)),
            ["work in the background still runs: a; b"]
        );
        assert_eq!(logged(|_| {}), [""; 0]);
    }

    #[test]
    fn does_not_wait_for_a_subsystem_that_hangs() {
        let (let_go, gate) = channel::<()>();
        let gate = std::sync::Mutex::new(gate);
        let messages = logged(move |tell| {
            tell("a".to_owned());
            let _ = gate.lock().unwrap().recv();
        });
        drop(let_go);
        assert_eq!(
            messages,
            ["work in the background still runs: a; a subsystem that does not say what it does"]
        );
    }
}
