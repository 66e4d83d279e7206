//! The contenders, the cases and the points of a run.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, Result, ensure};

/// A measured program with the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoardServer {
    Bine,
    /// A transaction for each update.
    Sqlite,
    /// One transaction for the updates that wait.
    SqliteGrouped,
    Postgres,
    PocketBase,
}

/// The requests of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoardCase {
    Plaintext,
    Json,
    Db,
    Queries,
    Fortunes,
    Updates,
    /// The row with the id of the request.
    Record,
    /// Twenty rows by one query.
    List,
    /// An update of the row with the id of the request.
    Change,
    /// Updates of one row that is shown to this many subscribers.
    Fan(u16),
}

/// One sample. Points with different origins are never shown together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BoardPoint {
    pub(super) server: BoardServer,
    pub(super) case: BoardCase,
    pub(super) round: u64,
    /// Version, machine and options, without commas.
    pub(super) origin: String,
}

/// The chosen points.
pub(super) struct BoardSelection {
    pub(super) servers: Vec<BoardServer>,
    pub(super) cases: Vec<BoardCase>,
    pub(super) rounds: u64,
    /// The length of a sample.
    pub(super) seconds: u64,
    pub(super) connections: u64,
    /// Deliveries of a sample of [`BoardCase::Fan`].
    pub(super) deliveries: u64,
    pub(super) origin: String,
}

/// Points that share one start of a contender.
pub(super) struct BoardBatch {
    pub(super) server: BoardServer,
    pub(super) points: Vec<BoardPoint>,
}

/// Seconds of warm-up before each sample.
pub(super) const WARM_UP: u64 = 1;
/// Seconds for the start and the end of a contender, and for a sample of subscribers.
const START: u64 = 3;
const FAN: u64 = 10;

impl BoardServer {
    pub(super) const ALL: [Self; 5] =
        [Self::Bine, Self::Sqlite, Self::SqliteGrouped, Self::Postgres, Self::PocketBase];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bine => "bine",
            Self::Sqlite => "axum-sqlite",
            Self::SqliteGrouped => "axum-sqlite-grouped",
            Self::Postgres => "axum-postgres",
            Self::PocketBase => "pocketbase",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Bine => "Bine",
            Self::Sqlite => "axum, SQLite",
            Self::SqliteGrouped => "axum, SQLite, grouped",
            Self::Postgres => "axum, PostgreSQL",
            Self::PocketBase => "PocketBase",
        }
    }

    pub(super) const fn serves(self, case: BoardCase) -> bool {
        use BoardCase::{Change, Fan, List, Record, Updates};
        match self {
            Self::Bine => true,
            Self::Sqlite | Self::Postgres => !matches!(case, Fan(_)),
            // Its reads are those of `Sqlite`.
            Self::SqliteGrouped => matches!(case, Updates | Change),
            Self::PocketBase => matches!(case, Record | List | Change | Fan(_)),
        }
    }
}

impl FromStr for BoardServer {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|server| server.name() == name);
        known.with_context(|| {
            format!("`{name}` is none of {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

impl BoardCase {
    pub(super) const ALL: [Self; 11] = [
        Self::Plaintext,
        Self::Json,
        Self::Db,
        Self::Queries,
        Self::Fortunes,
        Self::Updates,
        Self::Record,
        Self::List,
        Self::Change,
        Self::Fan(100),
        Self::Fan(1000),
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "plaintext",
            Self::Json => "json",
            Self::Db => "db",
            Self::Queries => "queries",
            Self::Fortunes => "fortunes",
            Self::Updates => "updates",
            Self::Record => "record",
            Self::List => "list",
            Self::Change => "change",
            Self::Fan(100) => "fan-100",
            Self::Fan(_) => "fan-1000",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Plaintext => "plaintext, 16 pipelined",
            Self::Json => "JSON",
            Self::Db => "one row",
            Self::Queries => "20 rows, a query each",
            Self::Fortunes => "fortunes",
            Self::Updates => "20 updates",
            Self::Record => "a row by its id",
            Self::List => "20 rows, one query",
            Self::Change => "an update by id",
            Self::Fan(100) => "100 subscribers",
            Self::Fan(_) => "1000 subscribers",
        }
    }
}

impl FromStr for BoardCase {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|case| case.name() == name);
        known.with_context(|| {
            format!("`{name}` is none of {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

impl BoardSelection {
    /// All points, by contender: each is measured once before any is measured again.
    pub(super) fn batches(&self) -> Vec<BoardBatch> {
        let mut batches = Vec::new();
        for round in 1..=self.rounds {
            for &server in &self.servers {
                let cases = self.cases.iter().filter(|case| server.serves(**case));
                let point = |&case| {
                    let origin = self.origin.clone();
                    BoardPoint { server, case, round, origin }
                };
                batches.push(BoardBatch { server, points: cases.map(point).collect() });
            }
        }
        batches
    }

    /// The expected length of a batch in seconds.
    pub(super) fn seconds_of(&self, batch: &BoardBatch) -> u64 {
        let length = |point: &BoardPoint| match point.case {
            BoardCase::Fan(_) => FAN,
            _ => self.seconds + WARM_UP,
        };
        START + batch.points.iter().map(length).sum::<u64>()
    }
}

impl BoardPoint {
    pub(super) const HEADER: &'static str = "server,case,round,origin";
    pub(super) const WORDS: usize = 4;
}

impl fmt::Display for BoardPoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{},{},{},{}", self.server.name(), self.case.name(), self.round, self.origin)
    }
}

impl FromStr for BoardPoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split(',').collect();
        ensure!(words.len() == Self::WORDS, "`{text}` is not a point");
        Ok(Self {
            server: words[0].parse()?,
            case: words[1].parse()?,
            round: words[2].parse()?,
            origin: words[3].to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection() -> BoardSelection {
        BoardSelection {
            servers: BoardServer::ALL.to_vec(),
            cases: BoardCase::ALL.to_vec(),
            rounds: 2,
            seconds: 4,
            connections: 64,
            deliveries: 100,
            origin: "0.1.0 (abc); Linux".to_owned(),
        }
    }

    #[test]
    fn measures_each_case_that_a_server_has_once_per_round() {
        let batches = selection().batches();
        let counts: Vec<usize> = batches.iter().map(|batch| batch.points.len()).collect();
        assert_eq!(counts, [11, 9, 2, 9, 5, 11, 9, 2, 9, 5]);
        assert_eq!(selection().seconds_of(&batches[2]), START + 2 * (4 + WARM_UP));
    }

    #[test]
    fn stores_points_as_text() {
        for point in selection().batches().into_iter().flat_map(|batch| batch.points) {
            assert_eq!(point.to_string().parse::<BoardPoint>().unwrap(), point);
        }
        for text in ["", "bine,db,1", "nginx,db,1,x", "bine,hello,1,x"] {
            assert!(text.parse::<BoardPoint>().is_err(), "{text}");
        }
    }
}
