//! Tables and figures of a run.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::figures::{Spread, short};
use crate::hop::REQUESTS;
use crate::hop::plan::{HopPart, HopSelection};
use crate::hop::record::{HopMeasure, HopRecord};
use crate::hop::site::{Asked, HopServer};
use crate::plot::{Axis, Line, Plot, thousands};

/// Writes the plots and the file `hop.md` into `folder`; returns the text of that file.
pub(super) fn write(
    records: &[HopRecord],
    selection: &HopSelection,
    folder: &Path,
) -> Result<String> {
    let report = Report { records, selection };
    let mut text = format!(
        "# Hop: sessions of {REQUESTS} requests at a rising rate\n\n\
         {}\n\nOrigin of all points: {}. Rounds: {}; all figures are medians.\n\n{}\n",
        fs::read_to_string(folder.join("machine.txt"))?,
        selection.origin,
        selection.rounds,
        report.generator(),
    );
    for &asked in &selection.asked {
        writeln!(text, "## A {}\n", asked.title())?;
        for (name, is_shown) in KINDS {
            let file = format!("{}-{name}.svg", asked.name());
            let Some(svg) = report.plot(asked, name, is_shown) else { continue };
            fs::write(folder.join(&file), svg)?;
            writeln!(text, "![Responses per second: {}, {name}]({file})\n", asked.title())?;
        }
        writeln!(text, "{}\n", report.table(asked))?;
    }
    fs::write(folder.join("hop.md"), &text)?;
    Ok(text)
}

type IsShown = fn(HopServer) -> bool;

/// The plots of each content.
const KINDS: [(&str, IsShown); 2] = [
    ("servers", |server| matches!(server, HopServer::Bine("hybrid")) || !server.is_bine()),
    ("schedulers", HopServer::is_bine),
];

struct Report<'run> {
    records: &'run [HopRecord],
    selection: &'run HopSelection,
}

impl Report<'_> {
    /// The median over the rounds.
    fn median(
        &self,
        part: HopPart,
        server: Option<HopServer>,
        asked: Asked,
        rate: Option<u64>,
        measure: HopMeasure,
    ) -> Option<f64> {
        let points = self.records.iter().filter(|record| {
            let point = &record.point;
            point.part == part
                && point.server == server
                && point.asked == asked
                && rate.is_none_or(|rate| rate == point.rate)
        });
        Spread::of(points.map(|record| record.figure(measure))).map(|spread| spread.median)
    }

    fn load(&self, server: HopServer, asked: Asked, rate: u64, of: HopMeasure) -> Option<f64> {
        self.median(HopPart::Load, Some(server), asked, Some(rate), of)
    }

    /// The lowest rate at which a response was no 200.
    fn errors_from(&self, server: HopServer, asked: Asked) -> Option<u64> {
        let has_errors = |rate: &u64| {
            self.load(server, asked, *rate, HopMeasure::Errors).is_some_and(|errors| errors > 0.0)
        };
        self.selection.rates.iter().copied().find(has_errors)
    }

    fn highest(&self, server: HopServer, asked: Asked) -> f64 {
        let rates = self.selection.rates.iter();
        let all = rates.filter_map(|rate| self.load(server, asked, *rate, HopMeasure::Replies));
        all.fold(0.0, f64::max)
    }

    /// Whether the load generator exceeds all servers.
    fn generator(&self) -> String {
        let page = Asked::Page;
        let Some(floor) = self.median(HopPart::Generator, None, page, None, HopMeasure::Replies)
        else {
            return "The load generator has not been measured.".to_owned();
        };
        let asked = || self.selection.asked.iter().filter(|asked| **asked != Asked::LongFile);
        let all = self
            .selection
            .servers
            .iter()
            .flat_map(|server| asked().map(|asked| (self.highest(*server, *asked), *server)));
        let (most, server) =
            all.fold(
                (0.0, None),
                |best, next| if next.0 > best.0 { (next.0, Some(next.1)) } else { best },
            );
        let name = server.map_or_else(String::new, HopServer::title);
        let verdict = if floor > most { "exceeds" } else { "**does not exceed**" };
        format!(
            "The load generator {verdict} every server: it receives {} responses of the page per second from a \
             server that does no work and has a whole core. The fastest server, {name}, sends {}.",
            thousands(floor),
            thousands(most)
        )
    }

    fn table(&self, asked: Asked) -> String {
        let middle = self.selection.compared();
        let mut text = format!(
            "Times, CPU time, system calls and switches at {middle} sessions per second; memory before the load, \
             and the most at any rate. `errors from`: the lowest rate at which a response was no 200; these count in no \
             other figure.\n\n\
             | server | responses/s, at most | errors from | p50, ms | p99, ms | CPU, us | system calls | switches | memory, MiB | of it at rest |\n\
             |---|---|---|---|---|---|---|---|---|---|"
        );
        for &server in self.selection.servers.iter().filter(|server| server.serves(asked)) {
            let at = |measure| self.load(server, asked, middle, measure);
            let events = |measure| self.median(HopPart::Events, Some(server), asked, None, measure);
            let all = |measure| {
                let rates = self.selection.rates.iter();
                rates.filter_map(move |rate| self.load(server, asked, *rate, measure))
            };
            let shown = |value: Option<f64>, divisor: f64| {
                value.map_or_else(|| "-".to_owned(), |value| short(value / divisor))
            };
            let cells = [
                server.title(),
                thousands(self.highest(server, asked)),
                self.errors_from(server, asked)
                    .map_or_else(|| "-".to_owned(), |rate| rate.to_string()),
                shown(at(HopMeasure::P50), 1e3),
                shown(at(HopMeasure::P99), 1e3),
                shown(at(HopMeasure::Cpu), 1.0),
                shown(events(HopMeasure::Calls), 1.0),
                shown(events(HopMeasure::Switches), 1.0),
                shown(all(HopMeasure::Peak).reduce(f64::max), 1024.0),
                shown(all(HopMeasure::Before).reduce(f64::min), 1024.0),
            ];
            text.extend(["\n| ", &cells.join(" | "), " |"]);
        }
        text
    }

    fn plot(&self, asked: Asked, name: &str, is_shown: IsShown) -> Option<String> {
        let rates: Vec<f64> = self.selection.rates.iter().map(|rate| *rate as f64).collect();
        let servers: Vec<HopServer> = self
            .selection
            .servers
            .iter()
            .copied()
            .filter(|server| server.serves(asked) && is_shown(*server))
            .collect();
        let lines: Vec<Line> = servers
            .into_iter()
            .enumerate()
            .map(|(kind, server)| {
                let value = |rate: &u64| {
                    let replies = self.load(server, asked, *rate, HopMeasure::Replies)?;
                    Some((*rate as f64, replies))
                };
                let values = self.selection.rates.iter().filter_map(value).collect();
                Line { name: server.title(), kind, values, brackets: Vec::new() }
            })
            .collect();
        let all = lines.iter().flat_map(|line| &line.values).map(|(_, value)| *value);
        let y_axis = Axis::logarithmic("responses per second", all);
        if lines.iter().all(|line| line.values.is_empty()) {
            return None;
        }
        let title = format!("{}: {name}", asked.title());
        let x_axis = Axis::at("sessions per second, of five requests each", &rates, true);
        Some(Plot { title: &title, x_axis, y_axis, lines }.svg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection() -> HopSelection {
        HopSelection {
            servers: vec![HopServer::Bine("hybrid"), HopServer::Nginx, HopServer::Hyper],
            asked: vec![Asked::File, Asked::Page],
            rates: vec![100, 800],
            rounds: 1,
            seconds: 2,
            origin: "v".to_owned(),
        }
    }

    fn record(point: &str, figures: &[(HopMeasure, f64)]) -> HopRecord {
        HopRecord::new(point.parse().unwrap(), figures)
    }

    #[test]
    fn says_whether_the_generator_exceeds_every_server() {
        let replies = |count| [(HopMeasure::Replies, count)];
        let mut records = vec![
            record("generator,floor,page,3200,1,v", &replies(9000.0)),
            record("load,nginx,page,800,1,v", &replies(4000.0)),
        ];
        let selection = selection();
        let of = |records: &[HopRecord]| Report { records, selection: &selection }.generator();
        assert!(of(&records).contains("exceeds every server"), "{}", of(&records));
        assert!(of(&records).contains("nginx, php-fpm, sends 4 000"), "{}", of(&records));
        records.push(record("load,bine-hybrid,file,800,1,v", &replies(9001.0)));
        assert!(of(&records).contains("**does not exceed**"), "{}", of(&records));
        assert!(of(&[]).contains("has not been measured"));
    }

    #[test]
    fn shows_a_server_only_with_what_it_serves() {
        let records = [
            record(
                "load,bine-hybrid,page,100,1,v",
                &[
                    (HopMeasure::Replies, 500.0),
                    (HopMeasure::P50, 250.0),
                    (HopMeasure::Peak, 2048.0),
                    (HopMeasure::Errors, 3.0),
                ],
            ),
            record("events,bine-hybrid,page,100,1,v", &[(HopMeasure::Calls, 3.5)]),
        ];
        let selection = selection();
        let report = Report { records: &records, selection: &selection };
        let table = report.table(Asked::Page);
        assert!(
            table.contains(
                "| Bine, hybrid | 500 | 100 | 0.25 | 0.00 | 0.00 | 3.50 | 0.00 | 2.00 | 0.00 |"
            ),
            "{table}"
        );
        assert!(table.contains("| hyper | 0 | - | - |"), "{table}");
        assert!(!report.table(Asked::File).contains("hyper"));
        assert!(report.plot(Asked::Page, "servers", KINDS[0].1).unwrap().contains("Bine, hybrid"));
        assert!(report.plot(Asked::File, "servers", KINDS[0].1).is_none());
    }
}
