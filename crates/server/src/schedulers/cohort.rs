//! Decides as cohort scheduling does (Larus and Parkes 2002; document 000 section 2.4, figure 5):
//! each event loop runs the waiting jobs of one stage together, then those of the next, so that a
//! stage's instructions and data are fetched into the caches once for many requests.
//!
//! ```text
//! loop: accept -+-> request -+-> response(static) --+-> response(dynamic) -+-> reply -+-> ...
//!               +-> request -+-> response(static) --+                      +-> reply -+
//!               +-> request -+-> response(static) --+-> response(dynamic) -+-> reply -+
//!                 all of them, then all of them, then those that may block, then all replies
//! ```
//!
//! A handler that blocks holds up its loop, as under `event`; the replies of its cohort wait for
//! it. That is the price of the order.

use std::io;
use std::sync::Arc;

use crate::next::Next;
use crate::schedulers::threads::serve_loops;
use crate::scheduling::{Place, Scheduler};
use crate::server::Server;
use crate::workers::Task;

/// Event loops that go through the stages in cohorts.
pub struct Cohort;

impl Scheduler for Cohort {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        serve_loops(server, &(self as Arc<dyn Scheduler>))
    }

    fn stage(&self, _next: Next) -> Place {
        Place::Gathered
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
