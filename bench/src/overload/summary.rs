//! The summary file, for comparison with later runs: one line per point.

use std::collections::BTreeSet;

use super::Saturation;
use super::figures::{self, UNITS, work_share};
use super::plan::Workload;
use super::raw::Record;

/// A header and one line per record, with values separated by tabs, sorted by point. An unknown
/// value is an empty cell.
pub(crate) fn table(records: &[Record], found: &[(Workload, Saturation)]) -> String {
    let settings: BTreeSet<&String> =
        records.iter().flat_map(|record| record.setting.keys()).collect();
    let mut records: Vec<&Record> = records.iter().collect();
    records.sort_by_key(|record| record.point);
    let mut text = String::new();
    for record in records {
        let capacity = found.iter().find(|(workload, _)| *workload == record.point.workload);
        let capacity = capacity.map_or(f64::NAN, |(_, found)| found.capacity);
        let mut cells = cells(record, capacity);
        for name in &settings {
            let value = record.setting.get(*name).copied();
            cells.push((name.replace(' ', "_"), value.map_or_else(String::new, figure)));
        }
        if text.is_empty() {
            text += &line(cells.iter().map(|(name, _)| name.as_str()));
        }
        text += &line(cells.iter().map(|(_, value)| value.as_str()));
    }
    text
}

/// The names and values of a line, before the options.
fn cells(record: &Record, capacity: f64) -> Vec<(String, String)> {
    let point = record.point;
    let unit = UNITS[point.workload as usize];
    let (mut words, mut numbers) = (Vec::new(), Vec::new());
    words.push(("workload", point.workload.name().to_owned()));
    words.push(("server", point.variant.name().to_owned()));
    words.push(("load_%", point.shape.to_string()));
    words.push(("seed", point.seed.to_string()));
    numbers.push(("window_s", record.figure("seconds")));
    for name in [
        "begun",
        "turned-away",
        "refused",
        "admitted",
        "completed",
        "dropped",
        "late",
        "unreachable",
        "faulty",
        "open",
    ] {
        numbers.push((name, record.figure(name)));
    }
    numbers.push(("replies/s", figures::replies(record)));
    numbers.push(("work_in_completed", record.figure(&format!("completed-{unit}"))));
    numbers.push(("work_in_open", record.figure(&format!("open-{unit}"))));
    numbers.push(("capacity/s", capacity));
    numbers.push(("work_in_completed_%_of_capacity", work_share(record, capacity)));
    numbers.push(("requests_of_a_completed", figures::length(record)));
    numbers.push(("mean_ms", figures::response(record)));
    for (name, part) in [("p50_ms", "p50"), ("p99_ms", "p99")] {
        numbers.push((name, figures::time(record, part)));
    }
    let has_refused = record.figure("refusal-count") > 0.0;
    for (name, part) in [
        ("refusal_p50_ms", "refusal-p50"),
        ("refusal_p99_ms", "refusal-p99"),
        ("refusal_longest_ms", "refusal-p100"),
    ] {
        let time = if has_refused { record.figure(part) / 1e3 } else { f64::NAN };
        numbers.push((name, time));
    }
    for name in [
        "closed-idle",
        "closed-asked",
        "closed-told",
        "closed-503",
        "wrong",
        "handshakes-full",
        "handshakes-resumed",
    ] {
        numbers.push((name, record.figure(name)));
    }
    numbers.push(("run_s", record.figure("all-seconds")));
    numbers.push(("run_replies", record.figure("all-replies")));
    numbers.push(("server_cpu_s", record.figure("cpu-server")));
    numbers.push(("emulator_cpu_s", record.figure("cpu-emulator")));
    words.extend(numbers.into_iter().map(|(name, value)| (name, figure(value))));
    words.push(("unit_of_work", unit.to_owned()));
    words.extend(origin(record));
    words.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The version, machine and time of the measurement.
fn origin(record: &Record) -> [(&'static str, String); 6] {
    let origin = record.origin.as_ref();
    let text = |of: fn(&crate::origin::Origin) -> String| origin.map_or_else(String::new, of);
    [
        ("version", origin.map_or_else(|| "unknown".to_owned(), |own| own.version.to_string())),
        ("began", text(|own| own.began.clone())),
        ("took_s", text(|own| figure(own.took))),
        ("kernel", text(|own| own.machine.kernel.clone())),
        ("processor", text(|own| own.machine.processor.clone())),
        ("cores", text(|own| own.machine.cores.to_string())),
    ]
}

fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    cells.collect::<Vec<_>>().join("\t") + "\n"
}

/// At most three decimals; empty for a missing value.
fn figure(value: f64) -> String {
    if !value.is_finite() {
        return String::new();
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::emulator::Tally;
    use crate::origin::tests::origin;
    use crate::overload::plan::{Point, Shape, Variant};
    use crate::overload::raw::{CpuTime, Setting};

    const POINT: Point = Point {
        workload: Workload::Dynamic,
        shape: Shape::Steady(200),
        variant: Variant::Admission,
        seed: 3,
    };

    fn record(point: Point, setting: &[(&str, f64)]) -> Record {
        let mut tally = Tally::new(point.window(2), crate::overload::bounds(point.workload));
        for tenth in 20..40 {
            tally.on_begun(Duration::from_millis(tenth * 100), true);
        }
        let setting: Setting =
            setting.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Record::of(point, &setting, &tally, CpuTime { server: 0.5, emulator: 1.0 / 3.0 })
    }

    /// The value of a column in a line, counted from the first point.
    fn cell<'t>(table: &'t str, number: usize, name: &str) -> &'t str {
        let names = table.lines().next().unwrap().split('\t');
        let place = names.into_iter().position(|own| own == name).unwrap();
        table.lines().nth(1 + number).unwrap().split('\t').nth(place).unwrap()
    }

    #[test]
    fn writes_one_line_per_point() {
        let surge = Point { shape: Shape::Surge, ..POINT };
        let files = Point { workload: Workload::Static, ..POINT };
        let old = record(files, &[("pace", 0.25)]);
        let new = [record(surge, &[]), record(POINT, &[("think, s", 0.3)])];
        let [surge, steady] = new.map(|record| record.with_origin(origin("a")));
        let records = [surge, steady, old];
        let found = [(Workload::Dynamic, Saturation { rate: 9.0, capacity: 450.0 })];
        let table = table(&records, &found);
        assert_eq!(table.lines().count(), 4);
        let widths: BTreeSet<usize> = table.lines().map(|line| line.split('\t').count()).collect();
        assert_eq!(widths.len(), 1, "{table}");
        assert!(!table.contains("NaN") && !table.contains("inf"), "{table}");
        let lines = |name: &str| [0, 1, 2].map(|number| cell(&table, number, name));
        assert_eq!(lines("workload"), ["static", "dynamic", "dynamic"]);
        assert_eq!(lines("load_%"), ["200", "200", "surge"]);
        assert_eq!(lines("seed"), ["3", "3", "3"]);
        assert_eq!(lines("version"), ["unknown", "0.1.0 (a)", "0.1.0 (a)"]);
        assert_eq!(lines("took_s"), ["", "122.5", "122.5"]);
        assert_eq!(lines("capacity/s"), ["", "450", "450"]);
        assert_eq!(lines("think,_s"), ["", "0.3", ""]);
        assert_eq!(lines("begun"), ["10", "10", "20"], "within its window");
        assert_eq!(lines("refusal_p99_ms"), ["", "", ""], "no session was refused");
    }

    #[test]
    fn prints_no_trailing_zeros() {
        let texts = [0.0, 1.0, 1200.0, 1.0 / 3.0, 12.5, f64::NAN, f64::INFINITY].map(figure);
        assert_eq!(texts, ["0", "1", "1200", "0.333", "12.5", "", ""]);
    }
}
