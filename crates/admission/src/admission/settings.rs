//! The settings of session admission and their defaults.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::sessions;

/// The settings of session admission. The defaults need no tuning: admission measures the rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdmissionSettings {
    /// Whether admission is enabled. If not, it does not measure and rejects no session.
    pub is_on: bool,
    /// The lowest limit of concurrent sessions.
    pub least: usize,
    /// The highest limit of concurrent sessions.
    pub most: usize,
    /// There is a standing queue when the shortest wait within 100 ms exceeds this.
    ///
    /// The default is half of DAGOR's 20 ms: in a model the p99 of admitted sessions is then twice
    /// the p99 without load, instead of three times.
    pub wait: Duration,
    /// A session that was idle for longer counts as a new one.
    pub idle: Duration,
    /// The range of `Retry-After`, in seconds. Rejected clients get different values, so that they
    /// do not all return at the same time.
    pub retry: RangeInclusive<u32>,
}

impl Default for AdmissionSettings {
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
