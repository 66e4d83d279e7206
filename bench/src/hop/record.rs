//! The figures of a point.

use crate::hop::plan::HopPoint;
use crate::record::{Columns, PointRecord};

/// The stored figures of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum HopMeasure {
    /// Complete responses per second, in the window.
    Replies,
    /// Sessions that began in the window, and the completed sessions among them.
    Sessions,
    Completed,
    /// From a request to the end of the response, in microseconds.
    P50,
    P99,
    /// CPU time of the server in microseconds, per response.
    Cpu,
    /// Proportional memory of all processes in KiB: before the load, and the most during it.
    Before,
    Peak,
    /// Per response, of [`HopPart::Events`](super::plan::HopPart::Events).
    Switches,
    Calls,
    /// Responses that are no 200, or no response of this request.
    Errors,
}

/// A point and its results.
pub(super) type HopRecord = PointRecord<HopPoint, HopMeasure>;

impl Columns for HopMeasure {
    const NAMES: &'static [&'static str] = &[
        "replies",
        "sessions",
        "completed",
        "p50",
        "p99",
        "cpu",
        "before",
        "peak",
        "switches",
        "calls",
        "errors",
    ];

    fn place(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the values are exact")]
mod tests {
    use super::*;
    use crate::results::Row;

    #[test]
    fn stores_figures_by_name() {
        let point: HopPoint = "load,nginx,file,400,1,v".parse().unwrap();
        let record = HopRecord::new(point, &[(HopMeasure::P99, 7.5), (HopMeasure::Calls, 4.0)]);
        let stored = HopRecord::parse(&record.line()).unwrap();
        assert_eq!(stored, record);
        assert_eq!(stored.figure(HopMeasure::P99), 7.5);
        assert_eq!(stored.figure(HopMeasure::Replies), 0.0);
        assert!(HopRecord::parse("load,nginx,file,400,1,v,1").is_err());
    }
}
