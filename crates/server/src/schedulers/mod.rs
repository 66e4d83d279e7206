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
