//! The points of a run.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, Result, ensure};

use crate::hop::site::{Asked, HopServer};
use crate::record::PointText;

/// The purpose of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HopPart {
    /// Rate, times and memory.
    Load,
    /// Context switches and system calls, which perf counts at one rate. Counting slows the server.
    Events,
    /// The rate that the load generator reaches with the fastest possible server, on a whole core.
    Generator,
}

/// One measurement. Points with different origins are never shown together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HopPoint {
    pub(super) part: HopPart,
    /// `None`: the floor, for [`HopPart::Generator`].
    pub(super) server: Option<HopServer>,
    pub(super) asked: Asked,
    /// Sessions per second.
    pub(super) rate: u64,
    pub(super) round: u64,
    /// Version, machine and options, without commas.
    pub(super) origin: String,
}

/// The chosen points.
pub(super) struct HopSelection {
    pub(super) servers: Vec<HopServer>,
    pub(super) asked: Vec<Asked>,
    /// Increasing.
    pub(super) rates: Vec<u64>,
    pub(super) rounds: u64,
    /// The length of a point.
    pub(super) seconds: u64,
    pub(super) origin: String,
}

/// Points that share one start of a server, in order.
pub(super) struct Batch {
    pub(super) points: Vec<HopPoint>,
}

/// Sessions per second, five requests each.
pub(super) const RATES: [u64; 7] = [200, 400, 800, 1600, 3200, 6400, 12_800];
/// Seconds for the start and the end of a server, and for a point besides its load.
const START: u64 = 3;
const REST: u64 = 2;

impl HopPart {
    const ALL: [Self; 3] = [Self::Load, Self::Events, Self::Generator];

    const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Events => "events",
            Self::Generator => "generator",
        }
    }
}

impl HopSelection {
    /// All points, by server: the order of the servers is the same in each round, so that each is
    /// measured once before any is measured again.
    pub(super) fn batches(&self) -> Vec<Batch> {
        let mut batches = Vec::new();
        for round in 1..=self.rounds {
            batches.push(Batch { points: vec![self.generator(round)] });
            for &asked in &self.asked {
                for &server in self.servers.iter().filter(|server| server.serves(asked)) {
                    let of = |part, rate| {
                        let (server, origin) = (Some(server), self.origin.clone());
                        HopPoint { part, server, asked, rate, round, origin }
                    };
                    // Events first: an overloaded server may fail.
                    let mut points = vec![of(HopPart::Events, self.compared())];
                    points.extend(self.rates.iter().map(|rate| of(HopPart::Load, *rate)));
                    batches.push(Batch { points });
                }
            }
        }
        batches
    }

    /// The rate at which servers are compared, a third of the way up: few are overloaded by it.
    pub(super) fn compared(&self) -> u64 {
        let index = self.rates.len().div_ceil(3).saturating_sub(1);
        self.rates.get(index).copied().unwrap_or(1)
    }

    fn generator(&self, round: u64) -> HopPoint {
        let rate = self.rates.last().copied().unwrap_or(1).saturating_mul(4);
        let (part, origin) = (HopPart::Generator, self.origin.clone());
        HopPoint { part, server: None, asked: Asked::Page, rate, round, origin }
    }

    /// The expected length of a batch in seconds.
    pub(super) fn seconds_of(&self, batch: &Batch) -> u64 {
        let warm_up = batch.points.first().and_then(|point| point.server);
        let warm_up = warm_up.map_or(0, HopServer::warm_up);
        START + warm_up + batch.points.len() as u64 * (self.seconds + REST)
    }
}

impl PointText for HopPoint {
    const HEADER: &'static str = "part,server,content,rate,round,origin";
}

impl fmt::Display for HopPoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.server.map_or_else(|| "floor".to_owned(), HopServer::name);
        let (part, asked) = (self.part.name(), self.asked.name());
        write!(out, "{part},{server},{asked},{},{},{}", self.rate, self.round, self.origin)
    }
}

impl FromStr for HopPoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split(',').collect();
        ensure!(words.len() == 6, "`{text}` is not a point");
        let part = HopPart::ALL.into_iter().find(|part| part.name() == words[0]);
        Ok(Self {
            part: part.with_context(|| format!("`{}` in `{text}`", words[0]))?,
            server: if words[1] == "floor" { None } else { Some(words[1].parse()?) },
            asked: words[2].parse()?,
            rate: words[3].parse()?,
            round: words[4].parse()?,
            origin: words[5].to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection() -> HopSelection {
        HopSelection {
            servers: vec![HopServer::Bine("hybrid"), HopServer::Hyper],
            asked: Asked::ALL.to_vec(),
            rates: vec![50, 100, 200],
            rounds: 2,
            seconds: 4,
            origin: "0.1.0 (abc); Linux".to_owned(),
        }
    }

    #[test]
    fn measures_each_server_once_per_round() {
        let selection = selection();
        let batches = selection.batches();
        // The floor, three contents of Bine, and the page of hyper.
        assert_eq!(batches.len(), 2 * (1 + 3 + 1));
        assert_eq!(batches[1].points.len(), 4);
        assert_eq!(selection.compared(), 50);
        let events = batches[1].points.first().unwrap();
        assert_eq!((events.part, events.rate), (HopPart::Events, 50));
        assert_eq!(batches[0].points[0].rate, 800);
        assert_eq!(selection.seconds_of(&batches[1]), 3 + 1 + 4 * 6);
    }

    #[test]
    fn stores_points_as_text() {
        for point in selection().batches().into_iter().flat_map(|batch| batch.points) {
            assert_eq!(point.to_string().parse::<HopPoint>().unwrap(), point);
        }
        for text in ["", "load,bine-hybrid,page,1,1", "rest,nginx,page,1,1,x", "load,x,page,1,1,y"]
        {
            assert!(text.parse::<HopPoint>().is_err(), "{text}");
        }
    }
}
