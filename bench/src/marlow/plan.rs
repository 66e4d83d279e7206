//! The points of a run, and when a rising rate ends.

use crate::marlow::point::{MarlowPart, MarlowPoint};
use crate::marlow::record::{MarlowMeasure, MarlowRecord};
use crate::marlow::site::{MarlowContent, MarlowServer};
use crate::results::Results;

/// The chosen points.
pub(super) struct MarlowSelection {
    pub(super) servers: Vec<MarlowServer>,
    pub(super) contents: Vec<MarlowContent>,
    pub(super) parts: Vec<MarlowPart>,
    /// Increasing.
    pub(super) rates: Vec<u64>,
    /// The rates of the floods, from 0, and of the load at the same time.
    pub(super) flood_rates: Vec<u64>,
    pub(super) legal: u64,
    pub(super) rounds: u64,
    /// The length of a point.
    pub(super) seconds: u64,
    pub(super) origin: String,
}

/// Points that share one start of a server, at rising rates.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series {
    pub(super) part: MarlowPart,
    pub(super) server: Option<MarlowServer>,
    pub(super) content: MarlowContent,
    pub(super) round: u64,
}

/// Connections per second, each 1.4 times the one before.
pub(super) const RATES: [u64; 18] = [
    250, 350, 500, 700, 1000, 1400, 2000, 2800, 4000, 5600, 8000, 11_000, 16_000, 22_000, 32_000,
    45_000, 64_000, 90_000,
];
/// Bogus connections per second.
pub(super) const FLOOD_RATES: [u64; 5] = [500, 1000, 2000, 4000, 8000];
/// The rates of the load generator, from one that it surely keeps to one that it surely does not.
pub(super) const GENERATOR_RATES: [u64; 6] = [8000, 11_000, 16_000, 22_000, 32_000, 45_000];
/// A series ends at this multiple of the highest rate of responses: the figure must show what a
/// server does under overload.
pub(super) const OVERLOAD: f64 = 3.0;
/// A point is marked if its clients begin this much later than planned, in microseconds: a twentieth
/// of their patience.
const MARKED_LAG: f64 = 50e3;
/// The load generator is at its limit with this lag, or if this percentage of the clients has no
/// socket.
const MOST_LAG: f64 = 500e3;
const MOST_UNSENT: f64 = 1.0;
/// Seconds for the start and the end of a server, and for a point besides its load.
const START: u64 = 3;
const REST: u64 = 3;

impl MarlowSelection {
    /// All series, in the order of their measurement: each server once before any again.
    pub(super) fn series(&self) -> Vec<Series> {
        let mut all = Vec::new();
        let file = MarlowContent::File;
        for round in 1..=self.rounds {
            let part = MarlowPart::Generator;
            all.push(Series { part, server: None, content: file, round });
            for &part in &self.parts {
                let contents = if part == MarlowPart::Load { &self.contents[..] } else { &[file] };
                for &content in contents {
                    for &server in self.servers.iter().filter(|server| server.serves(content)) {
                        all.push(Series { part, server: Some(server), content, round });
                    }
                }
            }
        }
        all
    }

    pub(super) fn rates_of(&self, part: MarlowPart) -> &[u64] {
        match part {
            MarlowPart::Generator => &GENERATOR_RATES,
            MarlowPart::Load => &self.rates,
            MarlowPart::Garbage | MarlowPart::Heads => &self.flood_rates,
        }
    }

    pub(super) fn point(&self, series: &Series, rate: u64) -> MarlowPoint {
        let &Series { part, server, content, round } = series;
        MarlowPoint { part, server, content, rate, round, origin: self.origin.clone() }
    }

    /// The rates of a series that have no result; empty if it has ended.
    pub(super) fn missing(&self, series: &Series, results: &Results<MarlowRecord>) -> Vec<u64> {
        let rates = self.rates_of(series.part);
        let mut best = 0.0;
        for (place, rate) in rates.iter().enumerate() {
            let Some(record) = results.find(&self.point(series, *rate)) else {
                return rates[place..].to_vec();
            };
            if is_end(record, &mut best) {
                break;
            }
        }
        Vec::new()
    }

    /// The expected length of a number of points of one series in seconds.
    pub(super) fn seconds_of(&self, points: usize) -> u64 {
        if points == 0 { 0 } else { START + points as u64 * (self.seconds + REST) }
    }
}

/// Whether a series ends with this record. `best` is the highest rate of responses so far.
pub(super) fn is_end(record: &MarlowRecord, best: &mut f64) -> bool {
    *best = best.max(record.figure(MarlowMeasure::Replies));
    match record.point.part {
        MarlowPart::Generator => is_at_limit(record),
        MarlowPart::Load => record.point.rate as f64 >= OVERLOAD * *best || is_at_limit(record),
        MarlowPart::Garbage | MarlowPart::Heads => false,
    }
}

/// Whether the load generator had a part in the figures of this point.
pub(super) fn is_disturbed(record: &MarlowRecord) -> bool {
    record.figure(MarlowMeasure::Lag) >= MARKED_LAG || is_at_limit(record)
}

fn is_at_limit(record: &MarlowRecord) -> bool {
    record.figure(MarlowMeasure::Lag) >= MOST_LAG
        || record.figure(MarlowMeasure::Unsent) >= MOST_UNSENT
}

#[cfg(test)]
mod tests {
    //! Series that are measured in part.

    use super::*;

    fn selection() -> MarlowSelection {
        MarlowSelection {
            servers: vec![MarlowServer::Bine, MarlowServer::Nginx],
            contents: MarlowContent::ALL.to_vec(),
            parts: vec![MarlowPart::Load, MarlowPart::Garbage],
            rates: vec![100, 200, 400, 800],
            flood_rates: vec![0, 100],
            legal: 50,
            rounds: 2,
            seconds: 4,
            origin: "0.1.0 (abc); Linux".to_owned(),
        }
    }

    fn record(text: &str, figures: &[(MarlowMeasure, f64)]) -> MarlowRecord {
        MarlowRecord::new(text.parse().unwrap(), figures)
    }

    #[test]
    fn measures_the_generator_first_and_each_server_once_per_round() {
        let all = selection().series();
        // The floor, the file of both servers, the page of Bine, and the flood on both servers.
        assert_eq!(all.len(), 2 * (1 + 2 + 1 + 2));
        assert_eq!(all[0].part, MarlowPart::Generator);
        assert_eq!(selection().seconds_of(2), 3 + 2 * 7);
    }

    #[test]
    fn ends_a_series_at_three_times_the_best_rate_or_with_a_late_generator() {
        let replies = |rate: u64, replies: f64| {
            let text = format!("load,bine,file,{rate},1,v");
            record(&text, &[(MarlowMeasure::Replies, replies)])
        };
        let mut best = 0.0;
        assert!(!is_end(&replies(100, 100.0), &mut best));
        assert!(!is_end(&replies(200, 150.0), &mut best));
        assert!(!is_end(&replies(400, 90.0), &mut best), "the best rate counts, not the last");
        assert!(is_end(&replies(450, 20.0), &mut best));
        let late = [(MarlowMeasure::Replies, 700.0), (MarlowMeasure::Lag, 600e3)];
        assert!(is_end(&record("load,bine,file,800,1,v", &late), &mut 0.0));
        assert!(is_end(&record("generator,floor,file,8000,1,v", &late), &mut 0.0));
        assert!(!is_end(&record("heads,bine,file,800,1,v", &late), &mut 0.0));
    }
}
