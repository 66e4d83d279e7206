//! Overload policies: which sessions, tasks and threads a server admits when it has more work than
//! capacity.
//!
//! - [`Admission`] limits sessions, so that admitted clients can complete their sessions.
//! - [`queue::TaskQueue`] orders the tasks that wait for a worker, fairly by service, and rejects
//!   tasks that would wait for too long.
//! - [`Limiter`] limits the concurrent runs of one service by the gradient of its run times.
//! - [`PoolSizer`] sizes a thread pool by its waiting tasks and by the CPU utilization.
//!
//! The policies start no thread, and time is an argument. Only [`Admission`] reads a clock, and
//! only under load: without load, a request costs one atomic load.
//!
//! ```
//! use std::time::{Duration, Instant};
//!
//! use bine_admission::PoolSizer;
//!
//! // Tasks wait while the cores are idle, so the pool grows.
//! let mut sizer = PoolSizer::new(16, 256, 2);
//! let now = Instant::now();
//! sizer.look(now, Duration::ZERO);
//! sizer.look(now + Duration::from_millis(50), Duration::from_millis(5));
//! assert_eq!(sizer.size(), 20);
//! ```

mod admission;
mod limiter;
mod pool_sizer;
mod task_queue;

pub use admission::{
    Admission, AdmissionMetrics, AdmissionOutcome, AdmissionSettings, CLASSES, LoopTurn, MOST,
    PresentedTicket, QueuedRequest, RejectionCounts, RequestIdentity, State, ThreadPool,
};
pub use limiter::Limiter;
pub use pool_sizer::PoolSizer;

/// The queue of tasks that wait for a worker, ordered by service.
pub mod queue {
    pub use crate::task_queue::{
        QueueOutcome, ReadyTask, Run, ServiceMetrics, TaskQueue, TaskRequest, WorkerCounts,
    };
}
