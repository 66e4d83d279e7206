//! Tables and figures of a run.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::figures::{Spread, short};
use crate::marlow::plan::{MarlowSelection, OVERLOAD, is_disturbed};
use crate::marlow::point::MarlowPart;
use crate::marlow::record::{MarlowMeasure, MarlowRecord};
use crate::marlow::site::{MarlowContent, MarlowServer};
use crate::plot::{Axis, Line, Plot, thousands};

/// Writes the plots and the file `marlow.md` into `folder`; returns the text of that file.
pub(super) fn write(
    records: &[MarlowRecord],
    selection: &MarlowSelection,
    folder: &Path,
) -> Result<String> {
    let report = MarlowReport { records, selection };
    let mut text = format!(
        "# Marlow: a new connection for each request, at a rising rate\n\n\
         {}\n\nOrigin of all points: {}. Rounds: {}; all figures are medians.\n\n{}\n",
        fs::read_to_string(folder.join("machine.txt"))?,
        selection.origin,
        selection.rounds,
        report.generator(),
    );
    let is_rising = selection.parts.contains(&MarlowPart::Load);
    for &content in selection.contents.iter().filter(|_| is_rising) {
        writeln!(text, "\n## A {}\n", content.title())?;
        for figure in &FIGURES {
            let file = format!("{}-{}.svg", content.name(), figure.name);
            let Some(svg) = report.plot(content, figure) else { continue };
            fs::write(folder.join(&file), svg)?;
            writeln!(text, "![{}, {}]({file})\n", content.title(), figure.caption)?;
        }
        text += &report.table(content);
    }
    let floods = selection.parts.iter().filter(|part| **part != MarlowPart::Load);
    for &part in floods {
        text += &report.flood(part, folder)?;
    }
    fs::write(folder.join("marlow.md"), &text)?;
    Ok(text)
}

/// A plot of each content.
struct MarlowFigure {
    name: &'static str,
    caption: &'static str,
    measure: MarlowMeasure,
    divisor: f64,
    is_logarithmic: bool,
    /// Whether floods have it too.
    is_of_floods: bool,
}

const FIGURES: [MarlowFigure; 4] = [
    MarlowFigure {
        name: "replies",
        caption: "responses per second",
        measure: MarlowMeasure::Replies,
        divisor: 1.0,
        is_logarithmic: false,
        is_of_floods: true,
    },
    MarlowFigure {
        name: "late",
        caption: "clients without a response within 1 s, %",
        measure: MarlowMeasure::Late,
        divisor: 1.0,
        is_logarithmic: false,
        is_of_floods: false,
    },
    MarlowFigure {
        name: "p99",
        caption: "time of a response, 99th percentile, ms",
        measure: MarlowMeasure::P99,
        divisor: 1e3,
        is_logarithmic: true,
        is_of_floods: true,
    },
    MarlowFigure {
        name: "cpu",
        caption: "CPU time of the server per response, us",
        measure: MarlowMeasure::Cpu,
        divisor: 1.0,
        is_logarithmic: true,
        is_of_floods: false,
    },
];

/// A server keeps up with a rate if it answers this part of the clients.
const KEPT_UP: f64 = 0.99;

struct MarlowReport<'run> {
    records: &'run [MarlowRecord],
    selection: &'run MarlowSelection,
}

impl MarlowReport<'_> {
    /// The points of one server with one content and rate, one for each round.
    fn points(
        &self,
        server: MarlowServer,
        content: MarlowContent,
        rate: u64,
    ) -> impl Iterator<Item = &MarlowRecord> {
        self.points_of(MarlowPart::Load, server, content, rate)
    }

    fn points_of(
        &self,
        part: MarlowPart,
        server: MarlowServer,
        content: MarlowContent,
        rate: u64,
    ) -> impl Iterator<Item = &MarlowRecord> {
        self.records.iter().filter(move |record| {
            let point = &record.point;
            (point.part, point.server) == (part, Some(server))
                && (point.content, point.rate) == (content, rate)
        })
    }

    /// The median over the rounds, with a flood of this rate.
    fn flooded(
        &self,
        part: MarlowPart,
        server: MarlowServer,
        rate: u64,
        of: MarlowMeasure,
    ) -> Option<f64> {
        let points = self.points_of(part, server, MarlowContent::File, rate);
        Spread::of(points.map(|record| record.figure(of))).map(|spread| spread.median)
    }

    /// The median over the rounds.
    fn load(
        &self,
        server: MarlowServer,
        content: MarlowContent,
        rate: u64,
        of: MarlowMeasure,
    ) -> Option<f64> {
        let points = self.points(server, content, rate);
        Spread::of(points.map(|record| record.figure(of))).map(|spread| spread.median)
    }

    /// The rates with a result, increasing.
    fn rates(&self, server: MarlowServer, content: MarlowContent) -> Vec<u64> {
        let all = self.selection.rates.iter().copied();
        all.filter(|rate| self.points(server, content, *rate).next().is_some()).collect()
    }

    /// The highest rate of responses.
    fn best(&self, server: MarlowServer, content: MarlowContent) -> f64 {
        let rates = self.rates(server, content).into_iter();
        let all = rates.filter_map(|rate| self.load(server, content, rate, MarlowMeasure::Replies));
        all.fold(0.0, f64::max)
    }

    /// Whether the load generator exceeds all servers.
    fn generator(&self) -> String {
        let floor = self
            .records
            .iter()
            .filter(|record| record.point.part == MarlowPart::Generator)
            .map(|record| record.figure(MarlowMeasure::Replies))
            .reduce(f64::max);
        let Some(floor) = floor else {
            return "The load generator has not been measured.".to_owned();
        };
        let (mut most, mut name) = (0.0, "");
        for &content in &self.selection.contents {
            for &server in &self.selection.servers {
                let best = self.best(server, content);
                if best > most {
                    (most, name) = (best, server.title());
                }
            }
        }
        let verdict = if floor > most { "exceeds" } else { "**does not exceed**" };
        format!(
            "The load generator {verdict} every server: it receives {} responses of the file per second from a \
             server that does no work and has a whole core. The fastest server, {name}, sends {}.",
            thousands(floor),
            thousands(most)
        )
    }

    /// The section of a flood; writes its plots.
    fn flood(&self, part: MarlowPart, folder: &Path) -> Result<String> {
        let name =
            if part == MarlowPart::Garbage { "malformed requests" } else { "heads that never end" };
        let mut text = format!(
            "\n## A flood of {name}\n\n\
             Legal clients request the file {} times per second, each on a new connection. The flood has the idle \
             priority on the core of the load, so `began` may be less than the rate.\n\n",
            self.selection.legal
        );
        for figure in FIGURES.iter().filter(|figure| figure.is_of_floods) {
            let file = format!("{}-{}.svg", part.name(), figure.name);
            let Some(svg) = self.flood_plot(part, name, figure) else { continue };
            fs::write(folder.join(&file), svg)?;
            writeln!(text, "![A flood of {name}: {}]({file})\n", figure.caption)?;
        }
        text += "| server | flood, 1/s | began, 1/s | closed by the server, 1/s | legal responses/s | late, % | \
                 answered 503, % | p50, ms | p99, ms | memory, MiB |\n|---|---|---|---|---|---|---|---|---|---|\n";
        for &server in &self.selection.servers {
            for &rate in &self.selection.flood_rates {
                let shown = |of, divisor: f64| {
                    let value = self.flooded(part, server, rate, of);
                    value.map_or_else(|| "-".to_owned(), |value| short(value / divisor))
                };
                let cells = [
                    server.title().to_owned(),
                    thousands(rate as f64),
                    shown(MarlowMeasure::Bogus, 1.0),
                    shown(MarlowMeasure::BogusClosed, 1.0),
                    shown(MarlowMeasure::Replies, 1.0),
                    shown(MarlowMeasure::Late, 1.0),
                    shown(MarlowMeasure::Refused, 1.0),
                    shown(MarlowMeasure::P50, 1e3),
                    shown(MarlowMeasure::P99, 1e3),
                    shown(MarlowMeasure::Peak, 1024.0),
                ];
                text.extend(["| ", &cells.join(" | "), " |\n"]);
            }
        }
        Ok(text)
    }

    /// `None` without a point.
    fn flood_plot(&self, part: MarlowPart, name: &str, figure: &MarlowFigure) -> Option<String> {
        let line = |&server: &MarlowServer| {
            let value = |rate: &u64| {
                let begun = self.flooded(part, server, *rate, MarlowMeasure::Bogus)?;
                let value = self.flooded(part, server, *rate, figure.measure)?;
                Some((begun, value / figure.divisor))
            };
            server.line(self.selection.flood_rates.iter().filter_map(value).collect())
        };
        let lines: Vec<Line> = self.selection.servers.iter().map(line).collect();
        let title = format!("A flood of {name}: {}", figure.caption);
        figure.svg(&title, lines, |rates| {
            Axis::linear("bogus connections per second", rates.fold(0.0, f64::max))
        })
    }

    fn table(&self, content: MarlowContent) -> String {
        let mut text = format!(
            "A server keeps up with a rate if {:.0} % of its clients have a response within a second. `Overload` is \
             the highest measured rate: {OVERLOAD} times the most responses per second or more, unless the load \
             generator was at its limit. At a rate with \\* it began connections late. Times and CPU time are those \
             of responses.\n\n\
             | server | keeps up with, 1/s | responses/s, at most | CPU, us | p50, ms | p99, ms | overload, 1/s | \
             responses/s | of the most, % | late, % | answered 503, % | CPU, us | p50, ms | p99, ms | memory, MiB |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
            100.0 * KEPT_UP
        );
        for &server in self.selection.servers.iter().filter(|server| server.serves(content)) {
            if let Some(row) = self.row(server, content) {
                text.extend(["| ", &row.join(" | "), " |\n"]);
            }
        }
        text
    }

    /// `None` without a point.
    fn row(&self, server: MarlowServer, content: MarlowContent) -> Option<Vec<String>> {
        let rates = self.rates(server, content);
        let last = *rates.last()?;
        let at = |rate: u64, of| self.load(server, content, rate, of);
        let keeps_up = |rate: &u64| {
            let late = at(*rate, MarlowMeasure::Late).zip(at(*rate, MarlowMeasure::Refused));
            late.is_some_and(|(late, refused)| late + refused <= 100.0 * (1.0 - KEPT_UP))
        };
        let knee = rates.iter().copied().take_while(keeps_up).last();
        let shown = |rate: Option<u64>, of, divisor: f64| {
            let value = rate.and_then(|rate| at(rate, of));
            value.map_or_else(|| "-".to_owned(), |value| short(value / divisor))
        };
        let is_bound = self.points(server, content, last).any(is_disturbed);
        let (best, end) = (self.best(server, content), Some(last));
        let replies = at(last, MarlowMeasure::Replies).unwrap_or(0.0);
        let peak = rates.iter().filter_map(|rate| at(*rate, MarlowMeasure::Peak));
        Some(vec![
            server.title().to_owned(),
            knee.map_or_else(|| "-".to_owned(), |rate| thousands(rate as f64)),
            thousands(best),
            shown(knee, MarlowMeasure::Cpu, 1.0),
            shown(knee, MarlowMeasure::P50, 1e3),
            shown(knee, MarlowMeasure::P99, 1e3),
            format!("{}{}", thousands(last as f64), if is_bound { "\\*" } else { "" }),
            thousands(replies),
            short(100.0 * replies / best.max(1.0)),
            shown(end, MarlowMeasure::Late, 1.0),
            shown(end, MarlowMeasure::Refused, 1.0),
            shown(end, MarlowMeasure::Cpu, 1.0),
            shown(end, MarlowMeasure::P50, 1e3),
            shown(end, MarlowMeasure::P99, 1e3),
            peak.reduce(f64::max).map_or_else(|| "-".to_owned(), |peak| short(peak / 1024.0)),
        ])
    }

    /// `None` without a point.
    fn plot(&self, content: MarlowContent, figure: &MarlowFigure) -> Option<String> {
        let line = |server: &MarlowServer| {
            let value = |rate: u64| {
                let value = self.load(*server, content, rate, figure.measure)?;
                Some((rate as f64, value / figure.divisor))
            };
            server.line(self.rates(*server, content).into_iter().filter_map(value).collect())
        };
        let servers = self.selection.servers.iter().filter(|server| server.serves(content));
        let lines: Vec<Line> = servers.map(line).collect();
        let title = format!("A {}: {}", content.title(), figure.caption);
        figure.svg(&title, lines, |rates| {
            Axis::logarithmic("connections per second, of one request each", rates)
        })
    }
}

impl MarlowFigure {
    /// `None` without a point.
    fn svg(
        &self,
        title: &str,
        lines: Vec<Line>,
        x_axis: impl FnOnce(&mut dyn Iterator<Item = f64>) -> Axis,
    ) -> Option<String> {
        let points = || lines.iter().flat_map(|line| &line.values);
        points().next()?;
        let all = points().map(|(_, value)| *value);
        let y_axis = if self.is_logarithmic {
            Axis::logarithmic(self.caption, all)
        } else {
            Axis::linear(self.caption, all.fold(0.0, f64::max))
        };
        let x_axis = x_axis(&mut points().map(|(x, _)| *x));
        Some(Plot { title, x_axis, y_axis, lines }.svg())
    }
}

impl MarlowServer {
    /// Its line, with the same color in all figures.
    fn line(self, values: Vec<(f64, f64)>) -> Line {
        let kind = Self::ALL.iter().position(|known| *known == self).unwrap_or(0);
        Line { name: self.title().to_owned(), kind, values, brackets: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    //! Reports of a few points.

    use super::*;

    fn selection() -> MarlowSelection {
        MarlowSelection {
            servers: vec![MarlowServer::Bine, MarlowServer::Nginx],
            contents: MarlowContent::ALL.to_vec(),
            parts: vec![MarlowPart::Load, MarlowPart::Heads],
            flood_rates: vec![0, 500],
            legal: 400,
            rates: vec![100, 200, 400],
            rounds: 1,
            seconds: 2,
            origin: "v".to_owned(),
        }
    }

    fn record(point: &str, figures: &[(MarlowMeasure, f64)]) -> MarlowRecord {
        MarlowRecord::new(point.parse().unwrap(), figures)
    }

    #[test]
    fn says_whether_the_generator_exceeds_every_server() {
        let replies = |count| [(MarlowMeasure::Replies, count)];
        let mut records = vec![
            record("generator,floor,file,8000,1,v", &replies(7000.0)),
            record("generator,floor,file,16000,1,v", &replies(9000.0)),
            record("load,nginx,file,400,1,v", &replies(4000.0)),
        ];
        let selection = selection();
        let of =
            |records: &[MarlowRecord]| MarlowReport { records, selection: &selection }.generator();
        assert!(of(&records).contains("exceeds every server"), "{}", of(&records));
        assert!(of(&records).contains("9 000 responses"), "{}", of(&records));
        assert!(of(&records).contains("nginx, sends 4 000"), "{}", of(&records));
        records.push(record("load,bine,page,400,1,v", &replies(9001.0)));
        assert!(of(&records).contains("**does not exceed**"), "{}", of(&records));
        assert!(of(&[]).contains("has not been measured"));
    }

    #[test]
    fn compares_the_knee_with_the_overload() {
        let point = |rate: u64, replies: f64, late: f64| {
            let figures = [
                (MarlowMeasure::Replies, replies),
                (MarlowMeasure::Late, late),
                (MarlowMeasure::P99, 2000.0),
            ];
            record(&format!("load,bine,file,{rate},1,v"), &figures)
        };
        let mut records =
            vec![point(100, 100.0, 0.0), point(200, 120.0, 40.0), point(400, 60.0, 85.0)];
        let selection = selection();
        let table = |records: &[MarlowRecord]| {
            MarlowReport { records, selection: &selection }.table(MarlowContent::File)
        };
        let row = "| Bine | 100 | 120 | 0.00 | 0.00 | 2.00 | 400 | 60 | 50.0 | 85.0 |";
        assert!(table(&records).contains(row), "{}", table(&records));
        assert!(!table(&records).contains("nginx"), "it has no point");
        let late = [(MarlowMeasure::Lag, 99e3)];
        records[2] = record("load,bine,file,400,1,v", &late);
        assert!(table(&records).contains("| 400\\* |"), "{}", table(&records));
    }

    #[test]
    fn lists_legal_clients_by_flood() {
        let figures = [(MarlowMeasure::Replies, 398.0), (MarlowMeasure::Bogus, 490.0)];
        let records = [record("heads,nginx,file,500,1,v", &figures)];
        let selection = selection();
        let folder = std::env::temp_dir().join(format!("bine-marlow-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let report = MarlowReport { records: &records, selection: &selection };
        let text = report.flood(MarlowPart::Heads, &folder).unwrap();
        assert!(text.contains("| nginx | 500 | 490 | 0.00 | 398 |"), "{text}");
        assert!(text.contains("| Bine | 0 | - |"), "{text}");
        assert!(folder.join("heads-replies.svg").exists());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn plots_contents_with_points() {
        let records = [record("load,bine,page,100,1,v", &[(MarlowMeasure::Replies, 99.0)])];
        let selection = selection();
        let report = MarlowReport { records: &records, selection: &selection };
        let svg = report.plot(MarlowContent::Page, &FIGURES[0]).unwrap();
        assert!(svg.contains(">Bine<") && !svg.contains("nginx"));
        assert!(report.plot(MarlowContent::File, &FIGURES[0]).is_none());
    }
}
