//! Writes the report: tables 1 and 2 and figures 7 to 11 of Liu and Cui.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::figures::{Spread, percent, short};
use crate::plot::{Axis, Line, Plot, thousands};
use crate::push::plan::{Method, Part};
use crate::push::raw::{Measure, Record};

/// Bytes of headers per segment: IP and TCP with time stamps.
const HEADS: f64 = 52.0;
const MIB: f64 = 1_048_576.0;

/// A figure of a record.
type Figure = fn(&Record) -> f64;

/// Writes `tables.md`, `figures.md` and their plots into `folder`; returns their text.
pub(crate) fn write(records: &[Record], machine: &str, folder: &Path) -> Result<String> {
    let mut all = String::new();
    for (part, name) in [(Part::Tables, "tables.md"), (Part::Figures, "figures.md")] {
        let part = Report::of(records.iter().filter(|record| record.point.part == part));
        if part.records.is_empty() {
            continue;
        }
        let (text, plots) = if name == "tables.md" { part.tables()? } else { part.figures()? };
        let mut text = format!("{machine}\n\n{text}");
        for (file, plot) in plots {
            write!(text, "\n![{}]({file})\n", plot.title)?;
            fs::write(folder.join(file), plot.svg())?;
        }
        fs::write(folder.join(name), &text)?;
        all += &text;
        all.push('\n');
    }
    Ok(all)
}

/// The records of one part.
struct Report<'r> {
    records: Vec<&'r Record>,
    peers: BTreeSet<u64>,
    methods: BTreeSet<Method>,
    intervals: BTreeSet<u64>,
}

impl<'r> Report<'r> {
    fn of(records: impl Iterator<Item = &'r Record>) -> Self {
        let records: Vec<&Record> = records.collect();
        Self {
            peers: records.iter().map(|record| record.point.peers).collect(),
            methods: records.iter().map(|record| record.point.method).collect(),
            intervals: records.iter().map(|record| record.point.interval).collect(),
            records,
        }
    }

    fn tables(&self) -> Result<(String, Vec<(&'static str, Plot<'static>)>)> {
        let mut text = String::from(
            "Table 1: network traffic per publication, KB in both directions: heads and bodies of HTTP (with 52 bytes per \
             segment of TCP, counted by the kernel)\n\n",
        );
        self.grid(&mut text, |records| {
            let [plain, whole] = [kilobytes, kilobytes_with_heads]
                .map(|figure| median(records, figure).unwrap_or_default());
            format!("{} ({})", short(plain), short(whole))
        })?;
        text += "\nTable 2: publish trip time, ms: mean (p50, p99, p99.9)\n\n";
        self.grid(&mut text, |records| {
            let of = |measure| short(median_of(records, measure) / 1e3);
            let [mean, p50, p99, p999] =
                [Measure::Mean, Measure::P50, Measure::P99, Measure::P999].map(of);
            format!("{mean} ({p50}, {p99}, {p999})")
        })?;
        text +=
            "\nReceived, %; user memory of the server per peer, bytes, less that without peers\n\n";
        self.grid(&mut text, |records| {
            let share = median(records, received).unwrap_or_default();
            let bytes = median(records, bytes_for_each).unwrap_or_default();
            format!("{}; {}", percent(share), thousands(bytes))
        })?;
        let most = self.peers.last().copied().context("no peers")?;
        let intervals: Vec<f64> = self.intervals.iter().map(|each| *each as f64 / 1e3).collect();
        let plot = |title, caption: &str, figure: Figure| -> Result<Plot<'static>> {
            let lines = self.lines(
                |record| (record.point.peers == most).then(|| record.point.interval as f64 / 1e3),
                figure,
            )?;
            Ok(Plot {
                title,
                x_axis: Axis::at("time between publications, s", &intervals, false),
                y_axis: Axis::logarithmic(caption, values(&lines)),
                lines,
            })
        };
        let traffic = format!("KB for a publication to {} peers", thousands(most as f64));
        let trips = format!("mean trip, ms, {} peers", thousands(most as f64));
        let plots = vec![
            (
                "figure-7.svg",
                plot("Figure 7: network traffic of pull and push", &traffic, kilobytes)?,
            ),
            (
                "figure-8.svg",
                plot("Figure 8: mean publish trip time of pull and push", &trips, mean)?,
            ),
        ];
        Ok((text, plots))
    }

    /// A table with a row per method and number of peers, and a column per interval.
    fn grid(&self, text: &mut String, cell: impl Fn(&[&Record]) -> String) -> Result<()> {
        let seconds = self.intervals.iter().map(|each| format!(" {} s |", *each as f64 / 1e3));
        writeln!(text, "| peers | method |{}", seconds.collect::<String>())?;
        writeln!(text, "|---|---|{}", "---|".repeat(self.intervals.len()))?;
        for &peers in &self.peers {
            for &method in &self.methods {
                write!(text, "| {} | {} |", thousands(peers as f64), method.title())?;
                for &interval in &self.intervals {
                    let all = self.at(method, |record| {
                        record.point.peers == peers && record.point.interval == interval
                    });
                    let cell = if all.is_empty() { String::from("-") } else { cell(&all) };
                    write!(text, " {cell} |")?;
                }
                text.push('\n');
            }
        }
        Ok(())
    }

    fn figures(&self) -> Result<(String, Vec<(&'static str, Plot<'static>)>)> {
        let mut text = String::from(
            "A message of 200 bytes to all peers, every half a second and less often for many peers; medians of all rounds; \
             times in milliseconds. `x floor` is the median of the ratios of p99 to that of `fan.c` in the same round. \
             User memory is that of the server only. Kernel memory includes both ends of all connections and \
             the server's threads.\n\n\
             | peers | method | received, % | mean | p50 | p99 | p99.9 | p99 x floor | server CPU, us per delivery | user \
             memory, MiB | user memory per waiting peer, B | kernel memory, MiB | p99 of an unrelated page, calm, busy |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for &peers in &self.peers {
            for &method in &self.methods {
                let records = self.at(method, |record| record.point.peers == peers);
                if !records.is_empty() {
                    self.row(&mut text, method, peers, &records)?;
                }
            }
        }
        let peers: Vec<f64> = self.peers.iter().map(|peers| *peers as f64).collect();
        let plot = |title, y_axis: Option<Axis>, caption: &str, figure: Figure| -> Result<_> {
            let lines = self.lines(|record| Some(record.point.peers as f64), figure)?;
            let x_axis = Axis::at("waiting peers", &peers, true);
            let y_axis = y_axis.unwrap_or_else(|| Axis::logarithmic(caption, values(&lines)));
            Ok(Plot { title, x_axis, y_axis, lines })
        };
        let share = Axis::linear("received, %", 100.0);
        let plots = vec![
            (
                "figure-9.svg",
                plot(
                    "Figure 9: user memory of the server",
                    None,
                    "user memory, MiB",
                    parked_mebibytes,
                )?,
            ),
            (
                "figure-10.svg",
                plot("Figure 10: mean publish trip time", None, "mean trip, ms", mean)?,
            ),
            (
                "figure-10-p99.svg",
                plot("Figure 10, p99 of the trips", None, "p99 of the trips, ms", p99)?,
            ),
            ("figure-11.svg", plot("Figure 11: received messages", Some(share), "", received)?),
        ];
        Ok((text, plots))
    }

    fn row(
        &self,
        text: &mut String,
        method: Method,
        peers: u64,
        records: &[&Record],
    ) -> Result<()> {
        let floor = self.at(Method::Floor, |record| record.point.peers == peers);
        let ratios = records.iter().filter_map(|record| {
            let floor = floor.iter().find(|floor| floor.point.round == record.point.round)?;
            Some(p99(record) / p99(floor))
        });
        let ratio =
            Spread::of(ratios).map_or(String::from("-"), |all| format!("{:.2}", all.median));
        let of = |measure, by: f64| short(median_of(records, measure) / by);
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {ratio} | {} | {} | {} | {} | {}, {} |",
            thousands(peers as f64),
            method.title(),
            percent(median(records, received).context("no rounds")?),
            of(Measure::Mean, 1e3),
            of(Measure::P50, 1e3),
            of(Measure::P99, 1e3),
            of(Measure::P999, 1e3),
            short(median(records, microseconds_a_delivery).context("no rounds")?),
            short(median(records, parked_mebibytes).context("no rounds")?),
            thousands(median(records, bytes_for_each).context("no rounds")?),
            of(Measure::Kernel, MIB),
            of(Measure::Calm, 1e3),
            of(Measure::Busy, 1e3),
        )?;
        Ok(())
    }

    fn at(&self, method: Method, matches: impl Fn(&Record) -> bool) -> Vec<&'r Record> {
        let selected = |record: &&&Record| record.point.method == method && matches(record);
        self.records.iter().filter(selected).copied().collect()
    }

    /// A line per method: the medians of `figure` at the positions given by `place`.
    fn lines(&self, place: impl Fn(&Record) -> Option<f64>, figure: Figure) -> Result<Vec<Line>> {
        let mut lines = Vec::new();
        for &method in &self.methods {
            let mut places: Vec<f64> =
                self.at(method, |_| true).into_iter().filter_map(&place).collect();
            places.sort_by(f64::total_cmp);
            places.dedup();
            let mut values = Vec::new();
            for x in places {
                let all = self.at(method, |record| place(record) == Some(x));
                values.push((x, median(&all, figure).context("no rounds")?));
            }
            let (name, kind) = (method.title().to_owned(), method as usize);
            lines.push(Line { name, kind, values, brackets: Vec::new() });
        }
        Ok(lines)
    }
}

/// The percentage of due messages that were received.
pub(crate) fn received(record: &Record) -> f64 {
    100.0 * record.figure(Measure::Received) / record.figure(Measure::Due)
}

fn kilobytes(record: &Record) -> f64 {
    record.figure(Measure::Traffic) / record.point.messages as f64 / 1e3
}

fn kilobytes_with_heads(record: &Record) -> f64 {
    let heads = HEADS * record.figure(Measure::Segments);
    kilobytes(record) + heads / record.point.messages as f64 / 1e3
}

fn mean(record: &Record) -> f64 {
    record.figure(Measure::Mean) / 1e3
}

fn p99(record: &Record) -> f64 {
    record.figure(Measure::P99) / 1e3
}

fn microseconds_a_delivery(record: &Record) -> f64 {
    record.figure(Measure::Cpu) / record.figure(Measure::Received)
}

fn parked_mebibytes(record: &Record) -> f64 {
    record.figure(Measure::Parked) / MIB
}

fn bytes_for_each(record: &Record) -> f64 {
    (record.figure(Measure::Parked) - record.figure(Measure::Before)) / record.point.peers as f64
}

fn median(records: &[&Record], figure: Figure) -> Option<f64> {
    Some(Spread::of(records.iter().map(|record| figure(record)))?.median)
}

/// Zero without records.
fn median_of(records: &[&Record], measure: Measure) -> f64 {
    let all = records.iter().map(|record| record.figure(measure));
    Spread::of(all).map_or(0.0, |spread| spread.median)
}

fn values(lines: &[Line]) -> impl Iterator<Item = f64> {
    lines.iter().flat_map(|line| line.values.iter().map(|(_, y)| *y))
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the values are exact")]
mod tests {
    use super::*;

    fn record(point: &str, received: u32, p99: u32) -> Record {
        let words = format!(
            "due=10000 received={received} missed=0 repeated=0 mean=5000 p50=4000 p99={p99} p999=9000 traffic=300000 \
             segments=1000 cpu=70000 before=1000000 parked=1500000 kernel=2097152 full=1600000 calm=1000 busy=1500"
        );
        Record::of(point.parse().unwrap(), &words, 0.0).unwrap()
    }

    #[test]
    fn reports_traffic_per_publication() {
        let record = record("tables,pull,1000,10000,10,1000,50,1", 10_000, 8000);
        assert_eq!(kilobytes(&record), 30.0);
        assert_eq!(kilobytes_with_heads(&record), 30.0 + 5.2);
    }

    #[test]
    fn compares_p99_with_the_floor_of_the_same_round() {
        let records = [
            record("figures,event,500,500,10,1000,50,1", 10_000, 8000),
            record("figures,event,500,500,10,1000,50,2", 10_000, 30_000),
            record("figures,event,500,500,10,1000,50,3", 10_000, 9000),
            record("figures,floor,500,500,10,1000,50,1", 10_000, 10_000),
            record("figures,floor,500,500,10,1000,50,2", 10_000, 30_000),
            record("figures,floor,500,500,10,1000,50,3", 10_000, 10_000),
        ];
        let (text, plots) = Report::of(records.iter()).figures().unwrap();
        let row = text.lines().find(|line| line.contains("event-driven")).unwrap();
        assert_eq!(
            row,
            "| 500 | event-driven | 100 | 5.00 | 4.00 | 9.00 | 9.00 | 0.90 | 7.00 | 1.43 | 1 000 | 2.00 | 1.00, 1.50 |"
        );
        assert_eq!(plots.len(), 4);
    }

    #[test]
    fn writes_a_row_per_method_and_a_column_per_interval() {
        let records = [
            record("tables,pull,10,10000,10,1000,50,1", 9999, 8000),
            record("tables,event,10,20000,10,1000,50,1", 10_000, 8000),
        ];
        let (text, _) = Report::of(records.iter()).tables().unwrap();
        assert!(text.contains("| peers | method | 10 s | 20 s |"), "{text}");
        assert!(text.contains("| 10 | client pull | 5.00 (4.00, 8.00, 9.00) | - |"), "{text}");
        assert!(text.contains("| 10 | client pull | 99.990; 50 000 | - |"), "{text}");
    }
}
