//! The tables of a run.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::board::plan::{BoardCase, BoardSelection, BoardServer};
use crate::board::record::{BoardRecord, BoardSample};
use crate::board::site::POOL;
use crate::figures::{Spread, short};
use crate::plot::thousands;

/// Cases with one table each.
const TABLES: [(&str, &[BoardCase]); 3] = [
    (
        "TechEmpower's cases",
        &[
            BoardCase::Plaintext,
            BoardCase::Json,
            BoardCase::Db,
            BoardCase::Queries,
            BoardCase::Fortunes,
            BoardCase::Updates,
        ],
    ),
    ("Requests that PocketBase has", &[BoardCase::Record, BoardCase::List, BoardCase::Change]),
    ("Deliveries of an update", &[BoardCase::Fan(100), BoardCase::Fan(1000)]),
];

/// Writes `board.md` into `folder`; returns its text.
pub(super) fn write(
    records: &[BoardRecord],
    selection: &BoardSelection,
    folder: &Path,
) -> Result<String> {
    let mut text = format!(
        "# Today's board: pages of tables\n\n{}\n\nOrigin of all samples: {}. Medians (least-most) of {} rounds. CPU time \
         is that of all processes of a contender, its database included, for each response. `x Bine` is the median of \
         the ratios of the CPU times of one round. Where `core` is below 95 %, the disk or the load generator limits the \
         rate: compare CPU times there.\n\n{}\n",
        fs::read_to_string(folder.join("machine.txt"))?,
        selection.origin,
        selection.rounds,
        durability(),
    );
    for (title, cases) in TABLES {
        let table = table(records, cases);
        if !table.is_empty() {
            write!(text, "\n## {title}\n\n{HEADER}{table}")?;
        }
    }
    fs::write(folder.join("board.md"), &text)?;
    Ok(text)
}

const HEADER: &str = "| case | server | CPU, us | x Bine | per second | p50, ms | p99, ms | core, % |\n\
    |---|---|---|---|---|---|---|---|\n";

fn durability() -> String {
    format!(
        "A response to an update follows its sync to the disk, except with PocketBase, whose SQLite has \
         `synchronous=NORMAL` and does not sync each commit. SQLite has a write-ahead log and `synchronous=FULL`; \
         `grouped` commits the updates that wait in one transaction. PostgreSQL has its default durability and a pool \
         of {POOL} connections. With subscribers, a response is a delivery, times are from the request of an update \
         to its receipt, and CPU time includes the update. Updates are at least 50 ms apart, because a live page of \
         Bine is rendered once in 16 to 40 ms while changes last."
    )
}

fn table(records: &[BoardRecord], cases: &[BoardCase]) -> String {
    let mut text = String::new();
    for case in cases {
        for server in BoardServer::ALL {
            let own = samples(records, server, *case);
            let of = |figure: fn(&BoardSample) -> f64| {
                Spread::of(own.iter().map(|(_, sample)| figure(sample)))
            };
            let Some(cpu) = of(|sample| sample.cpu) else { continue };
            let bine = samples(records, BoardServer::Bine, *case);
            let ratios = own.iter().filter_map(|(round, sample)| {
                let (_, other) = bine.iter().find(|(other, _)| other == round)?;
                Some(sample.cpu / other.cpu)
            });
            let ratio =
                Spread::of(ratios).map_or_else(|| "-".to_owned(), |ratio| shown(ratio, 1.0));
            // wrk has no usable times of pipelined requests: it printed a p99 of 0.
            let is_timed = *case != BoardCase::Plaintext;
            let cell = |figure: fn(&BoardSample) -> f64, divisor: f64| {
                of(figure)
                    .filter(|_| is_timed)
                    .map_or_else(|| "-".to_owned(), |spread| shown(spread, divisor))
            };
            // The benchmark itself spaces the updates of subscribers.
            let is_paced = matches!(case, BoardCase::Fan(_));
            let rate = of(|sample| sample.rate).filter(|_| !is_paced);
            let rate = rate.map_or_else(
                || "-".to_owned(),
                |rate| {
                    let Spread { median, least, most } = rate;
                    format!("{} ({}-{})", thousands(median), thousands(least), thousands(most))
                },
            );
            let busy = of(|sample| sample.busy).map_or(0.0, |busy| busy.median);
            let cells = [
                case.title().to_owned(),
                server.title().to_owned(),
                shown(cpu, 1.0),
                ratio,
                rate,
                cell(|sample| sample.p50, 1e3),
                cell(|sample| sample.p99, 1e3),
                format!("{busy:.0}"),
            ];
            text.extend(["| ", &cells.join(" | "), " |\n"]);
        }
    }
    text
}

/// The samples with their rounds.
fn samples(
    records: &[BoardRecord],
    server: BoardServer,
    case: BoardCase,
) -> Vec<(u64, BoardSample)> {
    let own = records.iter().filter(|record| {
        let point = &record.point;
        point.server == server && point.case == case
    });
    own.map(|record| (record.point.round, record.sample)).collect()
}

fn shown(spread: Spread, divisor: f64) -> String {
    let Spread { median, least, most } = spread;
    format!("{} ({}-{})", short(median / divisor), short(least / divisor), short(most / divisor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::plan::BoardPoint;

    #[test]
    fn compares_cpu_times_of_one_round() {
        let record = |server, round, cpu| {
            let origin = "0.1.0".to_owned();
            let point = BoardPoint { server, case: BoardCase::Updates, round, origin };
            let sample = BoardSample { rate: 1500.0, cpu, p50: 500.0, p99: 2000.0, busy: 40.0 };
            BoardRecord { point, sample }
        };
        let records = [
            record(BoardServer::Bine, 1, 10.0),
            record(BoardServer::Bine, 2, 20.0),
            record(BoardServer::Sqlite, 1, 30.0),
            record(BoardServer::Sqlite, 2, 40.0),
        ];
        let text = table(&records, &[BoardCase::Updates, BoardCase::Json]);
        let row = "| 20 updates | axum, SQLite | 35.0 (30.0-40.0) | 2.50 (2.00-3.00) | 1 500 (1 500-1 500) |";
        assert!(text.contains(row), "{text}");
        assert_eq!(text.lines().count(), 2);
    }
}
