//! The plan: all points and their durations.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, Result, ensure};

/// How a message reaches all nodes, and how requests do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Distribution {
    /// By the stream of NATS. The balancer sends each request to the next node.
    Stream,
    /// By the stream of NATS. The balancer sends each connection to the next node.
    StreamTcp,
    /// The node that accepts the message sends it to each other node. The balancer sends each
    /// connection to the next node.
    Unicast,
}

impl Distribution {
    pub(crate) const ALL: [Self; 3] = [Self::Stream, Self::StreamTcp, Self::Unicast];

    /// The name in options, raw data and names of files.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::StreamTcp => "stream-tcp",
            Self::Unicast => "unicast",
        }
    }

    /// The name in reports.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Stream => "stream, HTTP balancer",
            Self::StreamTcp => "stream, TCP balancer",
            Self::Unicast => "unicast, TCP balancer",
        }
    }
}

impl FromStr for Distribution {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        found.with_context(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("`{name}` is not a distribution; use {names}")
        })
    }
}

/// One measurement of several nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodesPoint {
    pub(crate) distribution: Distribution,
    pub(crate) nodes: u64,
    pub(crate) peers: u64,
    /// Milliseconds between publications.
    pub(crate) interval: u64,
    pub(crate) messages: u64,
    pub(crate) round: u64,
}

impl NodesPoint {
    pub(crate) const WORDS: usize = 6;
    pub(crate) const HEADER: &'static str = "distribution,nodes,peers,interval_ms,messages,round";

    /// The estimated duration: start, settle, publish.
    pub(crate) fn seconds(&self) -> f64 {
        let started = 0.5 + 0.3 * self.nodes as f64;
        // All peers connect through the balancer and settle.
        let settled = 1.8 + self.peers as f64 / 5e3;
        started + settled + (self.interval * self.messages) as f64 / 1e3
    }
}

impl fmt::Display for NodesPoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { distribution, nodes, peers, interval, messages, round } = self;
        write!(out, "{},{nodes},{peers},{interval},{messages},{round}", distribution.name())
    }
}

impl FromStr for NodesPoint {
    type Err = Error;

    fn from_str(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split(',').collect();
        ensure!(words.len() == Self::WORDS, "`{line}` needs {} words", Self::WORDS);
        let number = |at: usize| -> Result<u64> {
            words[at].parse().with_context(|| format!("`{}` in `{line}`", words[at]))
        };
        Ok(Self {
            distribution: words[0].parse()?,
            nodes: number(1)?,
            peers: number(2)?,
            interval: number(3)?,
            messages: number(4)?,
            round: number(5)?,
        })
    }
}

/// The options of a run.
pub(crate) struct NodesSelection {
    pub(crate) nodes: Vec<u64>,
    pub(crate) peers: Vec<u64>,
    pub(crate) distributions: Vec<Distribution>,
    pub(crate) messages: u64,
    pub(crate) rounds: u64,
}

impl NodesSelection {
    /// Points in the order of measurement: points that are compared run in turns.
    pub(crate) fn points(&self) -> Vec<NodesPoint> {
        let mut points = Vec::new();
        for round in 1..=self.rounds {
            for &peers in &self.peers {
                for &nodes in &self.nodes {
                    for &distribution in &self.distributions {
                        points.push(NodesPoint {
                            distribution,
                            nodes,
                            peers,
                            // Long enough that all peers have their responses and poll again
                            // before the next message, and the same as without a balancer.
                            interval: (peers / 8).max(500),
                            messages: self.messages,
                            round,
                        });
                    }
                }
            }
        }
        points
    }
}

/// The peers of the paper's figures 12 and 13.
pub(crate) const PEERS: [u64; 6] = [500, 1000, 2000, 4000, 8000, 16_000];
pub(crate) const NODES: [u64; 3] = [1, 2, 4];

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> NodesSelection {
        NodesSelection {
            nodes: NODES.to_vec(),
            peers: PEERS.to_vec(),
            distributions: Distribution::ALL.to_vec(),
            messages: 5,
            rounds: 2,
        }
    }

    fn minutes(points: &[NodesPoint]) -> f64 {
        points.iter().map(NodesPoint::seconds).sum::<f64>() / 60.0
    }

    #[test]
    fn plans_all_points_within_20_minutes() {
        let points = all().points();
        assert_eq!(points.len(), 2 * 3 * 6 * 3);
        assert!(minutes(&points) < 20.0, "{}", minutes(&points));
    }

    #[test]
    fn plans_a_trial_of_all_nodes_within_three_minutes() {
        let selection = NodesSelection { peers: vec![500, 4000], messages: 3, rounds: 1, ..all() };
        let points = selection.points();
        assert!(NODES.iter().all(|nodes| points.iter().any(|point| point.nodes == *nodes)));
        assert!(minutes(&points) < 3.0, "{}", minutes(&points));
    }

    #[test]
    fn round_trips_a_point_of_several_nodes() {
        for point in all().points() {
            assert_eq!(point.to_string().parse::<NodesPoint>().unwrap(), point);
        }
        assert!("stream,1,500".parse::<NodesPoint>().is_err());
        assert!("gossip,1,500,500,5,1".parse::<NodesPoint>().is_err());
    }
}
