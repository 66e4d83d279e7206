//! The `cohort` scheduler (Larus and Parkes 2002; Serrano, "Hop", 2009, section 2.4, figure 5):
//! each event loop runs all waiting jobs of one stage, then all of the next, so that the caches
//! load a stage's instructions and data once for many requests.
//!
//! ```text
//! loop: accept -+-> request -+-> response(static) --+-> response(dynamic) -+-> reply -+-> ...
//!               +-> request -+-> response(static) --+                      +-> reply -+
//!               +-> request -+-> response(static) --+-> response(dynamic) -+-> reply -+
//!                 all of them, then all of them, then those that may block, then all replies
//! ```
//!
//! As under `event`, a handler that blocks stalls its loop, and here it also delays the replies of
//! its cohort.

use std::io;
use std::sync::Arc;

use crate::next::Next;
use crate::schedulers::threads::serve_loops;
use crate::scheduling::{Placement, Scheduler};
use crate::server::Server;
use crate::workers::Task;

/// The `cohort` scheduler: event loops that run the jobs of each stage in batches.
pub struct Cohort;

impl Scheduler for Cohort {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        serve_loops(server, &(self as Arc<dyn Scheduler>))
    }

    fn stage(&self, _next: Next) -> Placement {
        Placement::Batched
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        Err(task)
    }

    fn load(&self) -> f32 {
        0.0
    }

    fn status(&self) -> String {
        "loops alone, in cohorts".to_owned()
    }
}
