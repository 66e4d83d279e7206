//! The report of the connections that a loop cuts at the end of the drain.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bine_log as log;

use crate::connection::{AnsweredRequest, Connection, Phase};
use crate::event_loop::driver::Driver;
use crate::event_loop::{Entry, EventLoop};
use crate::handler::Retained;
use crate::mailbox::Ticket;
use crate::slab::Token;
use crate::time::Tick;
use crate::workers::Task;

/// The number of connections that the report describes. It counts the others.
const MAX_DESCRIBED: usize = 8;

/// The activity of a connection that is not idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Activity {
    Request,
    Waiting,
    Handler,
    Response,
    Suspended,
    Closing,
    Upgraded,
}

impl Activity {
    /// All activities, each with its name for one and for several connections.
    const ALL: [(Self, &str, &str); 7] = [
        (Self::Handler, "handler runs", "handlers run"),
        (Self::Waiting, "request waits for a worker", "requests wait for a worker"),
        (Self::Response, "response is being sent", "responses are being sent"),
        (Self::Request, "request is being received", "requests are being received"),
        (Self::Suspended, "response is suspended", "responses are suspended"),
        (
            Self::Upgraded,
            "upgraded connection (WebSocket, HTTP/2) is open",
            "upgraded connections (WebSocket, HTTP/2) are open",
        ),
        (Self::Closing, "client has yet to close", "clients have yet to close"),
    ];
}

/// Counts of activities, and descriptions of the connections that have been active for longest.
#[derive(Default)]
struct UnfinishedWork {
    counts: [usize; Activity::ALL.len()],
    described: Vec<(Duration, String)>,
}

impl UnfinishedWork {
    fn count(&mut self, activity: Activity, count: usize) {
        let place = Activity::ALL.iter().position(|(own, ..)| *own == activity);
        self.counts[place.expect("the table has each activity")] += count;
    }

    /// Keeps a description if its activity is one of the longest.
    fn describe(&mut self, elapsed: Duration, description: impl FnOnce() -> String) {
        let place = self.described.partition_point(|(own, _)| *own >= elapsed);
        if place < MAX_DESCRIBED {
            self.described.truncate(MAX_DESCRIBED - 1);
            self.described.insert(place, (elapsed, description()));
        }
    }

    /// The report, or `None` if there is no unfinished work.
    fn text(&self) -> Option<String> {
        let counts = self.counts.iter().zip(Activity::ALL).filter(|(count, _)| **count > 0);
        let counts = counts.map(|(count, (_, one, several))| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {several}"),
        });
        let mut text = counts.collect::<Vec<_>>().join(", ");
        if text.is_empty() {
            return None;
        }
        for (_, description) in &self.described {
            // Writing into a String cannot fail.
            let _ = write!(text, "\n  {description}");
        }
        // The other activities have no descriptions.
        let describable =
            [Activity::Handler, Activity::Waiting, Activity::Response, Activity::Request];
        let counts = self.counts.iter().zip(Activity::ALL);
        let all: usize = counts
            .filter(|(_, (activity, ..))| describable.contains(activity))
            .map(|(count, _)| count)
            .sum();
        if all > self.described.len() {
            let _ = write!(text, "\n  and {} more", all - self.described.len());
        }
        Some(text)
    }
}

impl<D: Driver> EventLoop<D> {
    /// Whether the time to drain is over. The first loop that finds it so ends all other loops,
    /// whose own deadlines may be a moment later.
    pub(super) fn is_drain_over(&self) -> bool {
        let is_over = &self.server.is_drain_over;
        let now = self.context.clock.now();
        if self.drain_deadline.is_some_and(|deadline| deadline.has_come(now)) {
            is_over.store(true, Ordering::Release);
        }
        is_over.load(Ordering::Acquire)
    }

    /// Logs what the connections that are not idle do, at the end of the drain.
    pub(super) fn report_unfinished(&mut self) {
        if let Some(text) = self.unfinished_work().text() {
            log::warn(format_args!(
                "loop {} cuts connections, because the time to drain (`drain-timeout`) is over: {text}",
                self.index
            ));
        }
    }

    fn unfinished_work(&mut self) -> UnfinishedWork {
        let mut work = UnfinishedWork::default();
        work.count(Activity::Upgraded, self.task_results.upgraded());
        let now = self.context.clock.now();
        for token in self.slab.tokens() {
            let is_queued = self.is_queued(token);
            let Some(Entry { connection, .. }) = self.slab.get(token) else { continue };
            examine(connection, is_queued, now, &mut work);
        }
        work
    }

    /// Whether the request of a connection still waits for a worker. Takes it out of the queue: the
    /// loop ends, so no client waits for the response.
    fn is_queued(&mut self, token: Token) -> bool {
        let Some(entry) = self.slab.get(token) else { return false };
        if entry.connection.phase != Phase::Queued {
            return false;
        }
        let ticket = Ticket { token, reply_to: Arc::clone(&self.mailbox) };
        self.scheduler.withdraw(&ticket).and_then(Task::into_request).is_some()
    }
}

/// Adds a connection to the report.
fn examine<L>(connection: &Connection<L>, is_queued: bool, now: Tick, work: &mut UnfinishedWork) {
    let peer = connection.peer;
    let Some(busy) = connection.busy.as_deref() else {
        match connection.phase {
            Phase::Held => work.count(Activity::Suspended, 1),
            Phase::Lingering => work.count(Activity::Closing, 1),
            Phase::Head | Phase::Body => {
                work.count(Activity::Request, 1);
                work.describe(Duration::ZERO, || format!("{peer} has yet to send its request"));
            }
            _ => {}
        }
        return;
    };
    let (answered, name) = (&busy.answered, busy.handler);
    let elapsed = answered.elapsed(now);
    match connection.phase {
        Phase::Handshake | Phase::First | Phase::Idle => {}
        Phase::Held => work.count(Activity::Suspended, 1),
        Phase::Lingering => work.count(Activity::Closing, 1),
        Phase::Head => {
            work.count(Activity::Request, 1);
            let bytes = busy.input.len();
            work.describe(elapsed, || format!("{peer} has sent {bytes} bytes of a head"));
        }
        Phase::Body => {
            work.count(Activity::Request, 1);
            let request = busy.request.as_deref();
            let bytes = request.map_or(0, Retained::body_length);
            work.describe(elapsed, || {
                let mut named = AnsweredRequest::default();
                named.note(request.map_or(&[], |request| &request.head), now);
                format!("{named}: {peer} has sent {bytes} bytes of the body")
            });
        }
        Phase::Queued if is_queued => {
            work.count(Activity::Waiting, 1);
            work.describe(elapsed, || {
                format!("{answered} has waited {elapsed:.1?} for a worker ({name})")
            });
        }
        Phase::Queued | Phase::Handler => {
            work.count(Activity::Handler, 1);
            work.describe(elapsed, || {
                format!("{answered} has run for {elapsed:.1?} in its handler ({name})")
            });
        }
        Phase::Streaming => {
            work.count(Activity::Handler, 1);
            work.describe(elapsed, || {
                format!(
                    "{answered} has streamed for {elapsed:.1?} and waits for its handler ({name})"
                )
            });
        }
        Phase::Writing => {
            work.count(Activity::Response, 1);
            let bytes = busy.unsent_bytes();
            work.describe(elapsed, || {
                format!("{answered} has {bytes} bytes that {peer} has not read for {elapsed:.1?}")
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::ThreadContext;
    use crate::settings::Settings;
    use crate::test_support::{connection, context, request, server};
    use crate::transport::Blocking;

    #[test]
    fn describes_the_longest_and_counts_all() {
        let mut work = UnfinishedWork::default();
        for number in 0..20 {
            work.count(Activity::Handler, 1);
            // In no order.
            let seconds = number * 7 % 20;
            work.describe(Duration::from_secs(seconds), || format!("number {seconds}"));
        }
        work.count(Activity::Suspended, 1);
        work.count(Activity::Upgraded, 2);
        let longest: Vec<_> = (12..20).rev().map(|number| format!("  number {number}")).collect();
        let longest = longest.join("\n");
        assert_eq!(
            work.text().unwrap(),
            format!(
                "20 handlers run, 1 response is suspended, 2 upgraded connections (WebSocket, HTTP/2) are open\n{longest}\n  and 12 more"
            )
        );
    }

    #[test]
    fn omits_the_number_of_others_if_all_are_described() {
        let mut work = UnfinishedWork::default();
        work.count(Activity::Handler, 1);
        work.describe(Duration::from_secs(1), || "one".to_owned());
        assert_eq!(work.text().unwrap(), "1 handler runs\n  one");
    }

    /// Only the longest are described; of two that have taken the same time, the first.
    #[test]
    fn keeps_the_first_of_two_descriptions_of_the_same_time() {
        let mut work = UnfinishedWork::default();
        for number in 0..=MAX_DESCRIBED {
            work.count(Activity::Request, 1);
            work.describe(Duration::ZERO, || format!("number {number}"));
        }
        let text = work.text().unwrap();
        assert!(text.contains("number 0\n") && !text.contains("number 8"), "{text}");
        assert!(text.ends_with("\n  and 1 more"), "{text}");
    }

    /// The report on one connection in `phase` after 2.5 s.
    fn report(
        phase: Phase,
        is_queued: bool,
        set: impl FnOnce(&mut Connection<Blocking>, &mut ThreadContext),
    ) -> String {
        let mut context = context(&server(Settings::default()));
        let (mut connection, _client) = connection(&mut context);
        connection.phase = phase;
        set(&mut connection, &mut context);
        context.clock.advance(Duration::from_millis(2500));
        let mut work = UnfinishedWork::default();
        examine(&connection, is_queued, context.clock.now(), &mut work);
        work.text().unwrap_or_default().replace("\n  ", ": ")
    }

    #[test]
    fn describes_each_activity_of_a_busy_connection() {
        let busy = |phase, is_queued| {
            report(phase, is_queued, |connection, context| {
                connection.note_request(Some(&request("/page?q")), context);
                let busy = connection.busy(context);
                (busy.handler, busy.input, busy.output) = ("list", vec![0; 7], vec![0; 30]);
                busy.sent = 10;
                let mut collected = request("/page?q");
                collected.body = vec![0; 5];
                busy.request = Some(collected);
            })
        };
        for phase in [Phase::Handshake, Phase::First, Phase::Idle] {
            assert_eq!(busy(phase, false), "", "{phase:?}");
        }
        for (phase, is_queued, expected) in [
            (Phase::Held, false, "1 response is suspended"),
            (Phase::Lingering, false, "1 client has yet to close"),
            (Phase::Head, false, "1 request is being received: unix has sent 7 bytes of a head"),
            (
                Phase::Body,
                false,
                "1 request is being received: GET /page: unix has sent 5 bytes of the body",
            ),
            (
                Phase::Queued,
                true,
                "1 request waits for a worker: GET /page has waited 2.5s for a worker (list)",
            ),
            (
                Phase::Queued,
                false,
                "1 handler runs: GET /page has run for 2.5s in its handler (list)",
            ),
            (
                Phase::Handler,
                false,
                "1 handler runs: GET /page has run for 2.5s in its handler (list)",
            ),
            (
                Phase::Streaming,
                false,
                "1 handler runs: GET /page has streamed for 2.5s and waits for its handler (list)",
            ),
            (
                Phase::Writing,
                false,
                "1 response is being sent: GET /page has 20 bytes that unix has not read for 2.5s",
            ),
        ] {
            assert_eq!(busy(phase, is_queued), expected);
        }
    }

    #[test]
    fn describes_each_activity_of_a_connection_without_a_busy_part() {
        let idle = |phase| report(phase, false, |_connection, _context| {});
        let receives = "1 request is being received: unix has yet to send its request";
        for (phase, expected) in [
            (Phase::Handshake, ""),
            (Phase::First, ""),
            (Phase::Idle, ""),
            (Phase::Held, "1 response is suspended"),
            (Phase::Lingering, "1 client has yet to close"),
            (Phase::Head, receives),
            (Phase::Body, receives),
            (Phase::Writing, ""),
        ] {
            assert_eq!(idle(phase), expected, "{phase:?}");
        }
    }

    #[test]
    fn reports_nothing_without_unfinished_work() {
        assert_eq!(UnfinishedWork::default().text(), None);
    }
}
