//! The figures of a point.

use crate::marlow::point::MarlowPoint;
use crate::record::{Columns, PointRecord};

/// The stored figures of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum MarlowMeasure {
    /// Connections that clients began per second, in the window.
    Offered,
    /// Complete responses per second.
    Replies,
    /// Of the clients that began in the window, in percent: those that had no response within a
    /// second, and those that were answered with a 503.
    Late,
    Refused,
    /// Connections that the server closed without a response, per second.
    Closed,
    /// From the start of a connection to the end of the response, in microseconds. Clients without
    /// a response do not count.
    P50,
    P99,
    /// CPU time of the server in microseconds, per response. Includes the work for clients that
    /// have given up.
    Cpu,
    /// The most proportional memory of all processes, in KiB.
    Peak,
    /// The percentage of the time in which the core of the load generator was busy.
    Generator,
    /// How much later than planned clients began, 99th percentile, in microseconds.
    Lag,
    /// The percentage of clients for which the load generator had no socket.
    Unsent,
    /// Connections of the flood that began, and those that the server closed, per second.
    Bogus,
    BogusClosed,
}

/// A point and its results.
pub(super) type MarlowRecord = PointRecord<MarlowPoint, MarlowMeasure>;

impl Columns for MarlowMeasure {
    const NAMES: &'static [&'static str] = &[
        "offered",
        "replies",
        "late",
        "refused",
        "closed",
        "p50",
        "p99",
        "cpu",
        "peak",
        "generator",
        "lag",
        "unsent",
        "bogus",
        "bogus_closed",
    ];

    fn place(self) -> usize {
        self as usize
    }
}
