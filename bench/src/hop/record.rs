//! A point and its figures.

use anyhow::Result;

use crate::hop::plan::HopPoint;
use crate::results::{Row, line_of, split_line};

/// The stored figures of a point.
#[derive(Clone, Copy)]
pub(super) enum HopMeasure {
    /// Complete responses per second, in the window.
    Replies,
    /// Sessions that began in the window, and those of them that completed.
    Sessions,
    Completed,
    /// From a request to the end of its response, in microseconds.
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
}

const COLUMNS: [&str; 10] = [
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
];

/// A point and its results.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HopRecord {
    pub(super) point: HopPoint,
    figures: [f64; COLUMNS.len()],
}

impl HopRecord {
    /// The record of `point` with these figures; all others are zero.
    pub(super) fn new(point: HopPoint, figures: &[(HopMeasure, f64)]) -> Self {
        let mut all = [0.0; COLUMNS.len()];
        for (measure, figure) in figures {
            all[*measure as usize] = *figure;
        }
        Self { point, figures: all }
    }

    pub(super) fn figure(&self, measure: HopMeasure) -> f64 {
        self.figures[measure as usize]
    }
}

impl Row for HopRecord {
    type Point = HopPoint;

    fn header() -> String {
        format!("{},{}", HopPoint::HEADER, COLUMNS.join(","))
    }

    fn parse(line: &str) -> Result<Self> {
        let (point, figures) = split_line(line, HopPoint::WORDS)?;
        Ok(Self { point: point.parse()?, figures })
    }

    fn line(&self) -> String {
        line_of(&self.point, &self.figures)
    }

    fn point(&self) -> &HopPoint {
        &self.point
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the values are exact")]
mod tests {
    use super::*;

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
