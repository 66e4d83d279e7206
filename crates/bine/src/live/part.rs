//! A part of a render: one poll of an async handler, or the whole call of one that may block.

use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Instant;

use bine_server::RunHook;

use super::render::Render;
use super::render_queue::JoinCancellation;
use crate::channels::SubscriptionSpec;

/// Runs around each part of a render and measures its time.
pub(super) struct Part {
    pub(super) render: Arc<Render>,
    pub(super) wanted_by: WantedBy,
}

/// The clients that wait for a render.
pub(super) enum WantedBy {
    /// One client that joins the page.
    Client(Arc<JoinCancellation>),
    /// All followers of the page. The view itself holds one reference to each watch.
    Followers([Weak<SubscriptionSpec>; 2]),
}

impl RunHook for Part {
    fn is_wanted(&self, waker: &Waker) -> bool {
        match &self.wanted_by {
            WantedBy::Client(cancellation) => cancellation.is_wanted(waker),
            WantedBy::Followers(watches) => watches.iter().any(|watch| watch.strong_count() > 1),
        }
    }

    fn around(&self, part: &mut dyn FnMut()) {
        let _timer = PartTimer { render: &self.render, began: Instant::now() };
        self.render.within(part);
    }
}

/// Adds the run time of a part to its render, also when the part panics.
struct PartTimer<'r> {
    render: &'r Render,
    began: Instant,
}

impl Drop for PartTimer<'_> {
    fn drop(&mut self) {
        self.render.add_time(self.began.elapsed());
    }
}
