//! Decides on which terms sessions are admitted when nobody said otherwise.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::sessions;

/// On which terms sessions are admitted. The defaults need no tuning: everything else is measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terms {
    /// Off: nothing is looked at, and nobody is refused a place.
    pub is_on: bool,
    /// Sessions that are admitted however little can be done.
    pub least: usize,
    /// Sessions that are admitted however much could be done.
    pub most: usize,
    /// When even the shortest wait of a tenth of a second is longer, there is a queue (half of DAGOR's
    /// 20 ms: in a model the p99 of those who were let in is 2 times the calm one then, and not 3 times).
    pub wait: Duration,
    /// Who was idle for longer is a stranger again.
    pub idle: Duration,
    /// Seconds after which who was refused may come again: each is told another number of these, so that they do not
    /// all come at one time.
    pub retry: RangeInclusive<u32>,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            is_on: true,
            least: 8,
            most: sessions::MOST,
            wait: Duration::from_millis(10),
            idle: Duration::from_mins(5),
            retry: 5..=20,
        }
    }
}
