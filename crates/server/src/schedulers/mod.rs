//! The schedulers: one file per policy, and a factory by name.

mod accept_many;
mod ceiling;
mod cohort;
mod event;
mod hybrid;
mod nothread;
mod one_to_one;
mod pool;
mod queue;
mod row;
mod threads;

use std::io;
use std::sync::Arc;

use crate::scheduler_names::check;
use crate::scheduling::Scheduler;
use crate::settings::Settings;

pub use accept_many::AcceptMany;
pub use cohort::Cohort;
pub use event::Event;
pub use hybrid::Hybrid;
pub use nothread::NoThread;
pub use one_to_one::OneToOne;
pub use pool::Pool;
pub use queue::Queue;
pub use row::SingleThreadScheduler;
pub use threads::{serve_loops, serve_threads};

pub(crate) fn by_name(settings: &Settings) -> io::Result<Arc<dyn Scheduler>> {
    check(&settings.scheduler)?;
    Ok(match settings.scheduler.as_str() {
        "event" => Arc::new(Event),
        "cohort" => Arc::new(Cohort),
        "nothread" => Arc::new(NoThread::new()),
        "one-to-one" => Arc::new(OneToOne::new(ceiling::threads())?),
        "accept-many" => Arc::new(AcceptMany::new(settings.workers, settings.queue)?),
        "pool" => Arc::new(Pool::new(settings.workers)),
        "queue" => Arc::new(Queue::new(settings.workers, settings.queue)?),
        _ => Arc::new(Hybrid::growing(settings.workers, settings.most_workers, settings.queue)),
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::mailbox::{Mailbox, Ticket};
    use crate::next::{Next, ResponseKind};
    use crate::scheduler_names::SCHEDULERS;
    use crate::scheduling::Placement;
    use crate::slab::Token;
    use crate::test_support::request;
    use crate::workers::{Job, Task};

    struct NoWork;

    impl crate::handler::Work for NoWork {
        fn run(
            &self,
            _request: &crate::handler::Retained,
            _clock: &crate::Clock,
            _out: &mut crate::handler::Outgoing<'_>,
        ) -> crate::handler::Done {
            unreachable!("no scheduler runs it")
        }

        fn name(&self) -> &'static str {
            "no work"
        }
    }

    fn task() -> Task {
        let ticket =
            Ticket { token: Token::default(), reply_to: Arc::new(Mailbox::new().unwrap()) };
        Task {
            job: Job::Answer { work: Arc::new(NoWork), request: request("/"), bytes: Vec::new() },
            ticket,
            patience: Duration::ZERO,
            since: Instant::now(),
            admission: Arc::new(bine_admission::Admission::off()),
        }
    }

    fn scheduler(name: &str) -> Arc<dyn Scheduler> {
        let settings = Settings { workers: 2, queue: 5, ..Settings::default() };
        by_name(&Settings { scheduler: name.to_owned(), ..settings }).unwrap()
    }

    /// Only `hybrid` has workers; only `cohort` runs stages of several connections together.
    #[test]
    fn places_each_stage_where_its_policy_says() {
        let work = Next::Response(ResponseKind::Dynamic);
        for &(name, _) in SCHEDULERS {
            let scheduler = scheduler(name);
            let expected = match name {
                "cohort" => [Placement::Batched; 3],
                "hybrid" => [Placement::SameThread, Placement::Spawn, Placement::SameThread],
                _ => [Placement::SameThread; 3],
            };
            let places = [Next::Request, work, Next::Reply].map(|next| scheduler.stage(next));
            assert_eq!(places, expected, "{name}");
            if name != "hybrid" {
                assert!(scheduler.spawn(task()).is_err(), "{name}");
                assert!(scheduler.withdraw(task().ticket()).is_none(), "{name}");
                assert!(scheduler.waits().is_none() && scheduler.metrics().is_empty(), "{name}");
            }
            assert!(scheduler.load().abs() < f32::EPSILON, "{name} is idle");
            assert!(!scheduler.is_overloaded(), "{name}");
        }
    }

    #[test]
    fn describes_idle_threads() {
        let threads = "0 of 2 threads serve a connection, 0 of them a suspended response";
        for (name, expected) in [
            ("event", "event loops alone: nothing waits for a thread".to_owned()),
            ("cohort", "loops alone, in cohorts".to_owned()),
            ("nothread", threads.replace("0 of 2", "0 of 1")),
            ("pool", threads.to_owned()),
            ("accept-many", format!("{threads}; 0 connections wait for a thread")),
            ("queue", format!("{threads}; 0 tasks wait for a thread")),
        ] {
            assert_eq!(scheduler(name).status(), expected);
        }
    }

    /// One thread stays free for other requests.
    #[test]
    fn lends_threads_to_suspended_responses() {
        for (name, expected) in [
            ("event", [true, true]),
            ("nothread", [false, false]),
            ("pool", [true, false]),
            ("accept-many", [true, false]),
            ("queue", [true, false]),
        ] {
            let scheduler = scheduler(name);
            assert_eq!([(); 2].map(|()| scheduler.begin_hold()), expected, "{name}");
            if expected[0] {
                scheduler.end_hold();
                assert!(scheduler.begin_hold(), "{name}");
            }
        }
    }
}
