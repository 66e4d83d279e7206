//! A point and its figures.

use anyhow::Result;

use crate::board::plan::BoardPoint;
use crate::results::{Row, line_of, split_line};

/// The figures of a sample. With subscribers, a response is a delivery to one subscriber.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BoardSample {
    /// Responses per second.
    pub(super) rate: f64,
    /// CPU time of all processes of the contender in microseconds, per response.
    pub(super) cpu: f64,
    /// From a request to the end of the response, in microseconds; with subscribers, from the
    /// request of an update to its receipt.
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// The percentage of core 0 that the contender used.
    pub(super) busy: f64,
}

/// A point and its sample.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BoardRecord {
    pub(super) point: BoardPoint,
    pub(super) sample: BoardSample,
}

impl Row for BoardRecord {
    type Point = BoardPoint;

    fn header() -> String {
        format!("{},rate,cpu,p50,p99,busy", BoardPoint::HEADER)
    }

    fn parse(line: &str) -> Result<Self> {
        let (point, [rate, cpu, p50, p99, busy]) = split_line(line, BoardPoint::WORDS)?;
        let sample = BoardSample { rate, cpu, p50, p99, busy };
        Ok(Self { point: point.parse()?, sample })
    }

    fn line(&self) -> String {
        let BoardSample { rate, cpu, p50, p99, busy } = self.sample;
        line_of(&self.point, &[rate, cpu, p50, p99, busy])
    }

    fn point(&self) -> &BoardPoint {
        &self.point
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_all_figures() {
        let line = "bine,updates,2,0.1.0 (abc),1000.5,40,500,900,97.5";
        let record = BoardRecord::parse(line).unwrap();
        assert_eq!(record.line(), line);
        assert!((record.sample.busy - 97.5).abs() < 1e-9);
        assert!(BoardRecord::parse("bine,updates,2,0.1.0 (abc),1000.5").is_err());
    }
}
