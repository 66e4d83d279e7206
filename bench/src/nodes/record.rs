//! A point of several nodes and its figures.

use anyhow::Result;

use crate::nodes::plan::NodesPoint;
use crate::results::{Row, figures_of, line_of, split_line};

/// The stored figures of a point, with the names of `followers.c`. Times are in microseconds, memory
/// is in bytes.
#[derive(Clone, Copy)]
pub(crate) enum NodesFigure {
    /// Messages due for all peers together.
    Due,
    Received,
    Repeated,
    /// From before the publication until after the receipt.
    Mean,
    P50,
    P99,
    P999,
    /// CPU time of all nodes.
    Cpu,
    /// User memory of all nodes: before the peers connect, and when all peers wait.
    Before,
    Parked,
    /// Resident memory of all nodes, with pages of files.
    ResidentBefore,
    Resident,
    NatsCpu,
    NatsMemory,
    BalancerCpu,
    BalancerMemory,
    /// The time from the first publication to the last receipt.
    Took,
}

/// The columns after those of the point, in the order of [`NodesFigure`].
const COLUMNS: [&str; 17] = [
    "due",
    "received",
    "repeated",
    "mean",
    "p50",
    "p99",
    "p999",
    "cpu",
    "before",
    "parked",
    "resident_before",
    "resident",
    "cpu1",
    "parked1",
    "cpu2",
    "parked2",
    "took",
];

/// A point and its results.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodesRecord {
    pub(crate) point: NodesPoint,
    figures: [f64; COLUMNS.len()],
}

impl NodesRecord {
    /// Parses the words `NAME=VALUE` that `followers` prints.
    pub(crate) fn of(point: NodesPoint, words: &str) -> Result<Self> {
        Ok(Self { point, figures: figures_of(&COLUMNS, words)? })
    }

    pub(crate) fn figure(&self, figure: NodesFigure) -> f64 {
        self.figures[figure as usize]
    }

    /// The percentage of due messages that were received.
    pub(crate) fn received(&self) -> f64 {
        100.0 * self.figure(NodesFigure::Received) / self.figure(NodesFigure::Due)
    }

    /// Whether each peer had each message once.
    pub(crate) fn is_whole(&self) -> bool {
        self.received() >= 100.0 && self.figure(NodesFigure::Repeated) < 1.0
    }
}

impl Row for NodesRecord {
    type Point = NodesPoint;

    fn header() -> String {
        format!("{},{}", NodesPoint::HEADER, COLUMNS.join(","))
    }

    fn parse(line: &str) -> Result<Self> {
        let (point, figures) = split_line(line, NodesPoint::WORDS)?;
        Ok(Self { point: point.parse()?, figures })
    }

    fn line(&self) -> String {
        line_of(&self.point, &self.figures)
    }

    fn point(&self) -> &NodesPoint {
        &self.point
    }
}
