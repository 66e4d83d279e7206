//! A part of a render: one poll of an async handler, or the whole call of one that may block.

use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Instant;

use bine_server::Around;

use super::render::Asker;
use super::run::Run;
use crate::channels::Watch;

/// Is around each part of a run: a poll of its handler, or all of one that may block.
pub(super) struct Part {
    pub(super) run: Arc<Run>,
    pub(super) wanted_by: WantedBy,
}

/// Who waits for a run.
pub(super) enum WantedBy {
    /// One client, which comes to follow the page.
    Asker(Arc<Asker>),
    /// All who follow the page; of each way to follow it the page itself has one.
    Followers([Weak<Watch>; 2]),
}

impl Around for Part {
    fn is_wanted(&self, waker: &Waker) -> bool {
        match &self.wanted_by {
            WantedBy::Asker(asker) => asker.waits(waker),
            WantedBy::Followers(watches) => watches.iter().any(|watch| watch.strong_count() > 1),
        }
    }

    fn around(&self, part: &mut dyn FnMut()) {
        let _spending = Spending { run: &self.run, began: Instant::now() };
        self.run.within(part);
    }
}

/// Notes how long a part of a run takes, also when it panics.
struct Spending<'r> {
    run: &'r Run,
    began: Instant,
}

impl Drop for Spending<'_> {
    fn drop(&mut self) {
        self.run.spend(self.began.elapsed());
    }
}
