//! A point of `push` and its figures.

use anyhow::Result;

use crate::push::plan::Point;
use crate::results::{Row, figures_of, line_of, split_line};

/// The stored figures of a point, with the names of `followers.c`.
#[derive(Clone, Copy)]
pub(crate) enum Measure {
    /// Messages due for all peers together.
    Due,
    Received,
    Repeated,
    /// Delivery times from before the publication until after the receipt, in microseconds.
    Mean,
    P50,
    P99,
    P999,
    /// Bytes in both directions without TCP and IP headers.
    Traffic,
    /// TCP segments in both directions.
    Segments,
    /// CPU time of the server, in microseconds.
    Cpu,
    /// User memory of the server in bytes: before the peers connect, and when all peers wait.
    Before,
    Parked,
    /// Kernel memory taken since before the server's start, in bytes.
    Kernel,
    /// p99 of an unrelated page in microseconds, before the first message and during the
    /// publications.
    Calm,
    Busy,
}

/// The columns after those of the point, in the order of [`Measure`].
const COLUMNS: [&str; 15] = [
    "due", "received", "repeated", "mean", "p50", "p99", "p999", "traffic", "segments", "cpu",
    "before", "parked", "kernel", "calm", "busy",
];

/// A point and its results.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) point: Point,
    figures: [f64; COLUMNS.len()],
}

impl Record {
    /// Parses the words `NAME=VALUE` that `followers` prints. `kernel` is the kernel memory before
    /// the start.
    pub(crate) fn of(point: Point, words: &str, kernel: f64) -> Result<Self> {
        let mut figures = figures_of(&COLUMNS, words)?;
        figures[Measure::Kernel as usize] -= kernel;
        Ok(Self { point, figures })
    }

    pub(crate) fn figure(&self, measure: Measure) -> f64 {
        self.figures[measure as usize]
    }
}

impl Row for Record {
    type Point = Point;

    fn header() -> String {
        format!("{},{}", Point::HEADER, COLUMNS.join(","))
    }

    fn parse(line: &str) -> Result<Self> {
        let (point, figures) = split_line(line, Point::WORDS)?;
        Ok(Self { point: point.parse()?, figures })
    }

    fn line(&self) -> String {
        line_of(&self.point, &self.figures)
    }

    fn point(&self) -> &Point {
        &self.point
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the values are exact")]
mod tests {
    use std::fs;

    use super::*;
    use crate::results::Results;

    const OUTPUT: &str = "due=100 received=99 missed=1 repeated=0 mean=5 p50=4 p99=8 p999=9 traffic=3000 segments=30 \
                        took=1 cpu=7 before=10 parked=20 kernel=500 waiting=1 full=30 calm=1 busy=2 stormed=0";

    fn point(round: u64) -> Point {
        format!("figures,event,500,500,10,1000,50,{round}").parse().unwrap()
    }

    /// A separate folder for each test.
    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("bine-push-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn stores_figures_by_name() {
        let record = Record::of(point(1), OUTPUT, 400.0).unwrap();
        assert_eq!(record.figure(Measure::Received), 99.0);
        assert_eq!(record.figure(Measure::Kernel), 100.0, "less the memory before");
        assert_eq!(record.figure(Measure::Busy), 2.0);
        assert!(Record::of(point(1), "due=1", 0.0).is_err());
    }

    #[test]
    fn resumes_after_the_last_complete_line() {
        let folder = folder("stopped");
        let mut raw = Results::open(&folder).unwrap();
        raw.add(Record::of(point(1), OUTPUT, 0.0).unwrap()).unwrap();
        raw.add(Record::of(point(2), OUTPUT, 0.0).unwrap()).unwrap();
        let path = folder.join("points.csv");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() - 3]).unwrap();

        let mut raw = Results::open(&folder).unwrap();
        assert!(raw.has(&point(1)));
        assert!(!raw.has(&point(2)), "its line was incomplete");
        raw.add(Record::of(point(2), OUTPUT, 0.0).unwrap()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(Results::<Record>::open(&folder).unwrap().rows, raw.rows);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn rejects_a_file_with_different_columns() {
        let folder = folder("columns");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("points.csv"), "part,method\nfigures,event\n").unwrap();
        let refused = Results::<Record>::open(&folder).err().unwrap().to_string();
        assert!(refused.contains("--into"), "{refused}");
        fs::remove_dir_all(folder).unwrap();
    }
}
