//! Writes the report: figures 3 to 9 of Carrera et al., and those that their future work asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::figures::{self, UNITS, work_share};
use super::plan::{SURGE_TIMES, Shape, Variant, Workload};
use super::raw::Record;
use super::{Saturation, summary};
use crate::emulator::SLOT;
use crate::plot::{Axis, Line, Plot, thousands};

/// A figure of a record.
type Figure = fn(&Record) -> f64;

/// A figure of the paper: file, title, axis, and whether the axis is logarithmic.
type Drawing = (&'static str, &'static str, &'static str, bool, Figure);

const STATIC: [Drawing; 3] = [
    ("figure-3.svg", "Figure 3: replies, static content", "replies/s", false, figures::replies),
    (
        "figure-4.svg",
        "Figure 4: response time, static content",
        "mean response time, ms",
        true,
        figures::response,
    ),
    (
        "figure-5.svg",
        "Figure 5: connections closed by the server, static content",
        "connections closed/s",
        false,
        figures::closed,
    ),
];

const DYNAMIC: [Drawing; 4] = [
    ("figure-6.svg", "Figure 6: replies, dynamic content", "replies/s", false, figures::replies),
    (
        "figure-7.svg",
        "Figure 7: sessions completed, dynamic content",
        "sessions completed/s",
        false,
        figures::completed,
    ),
    (
        "figure-8.svg",
        "Figure 8: length of completed sessions, dynamic content",
        "mean requests of a completed session",
        false,
        figures::length,
    ),
    (
        "figure-9.svg",
        "Figure 9: timeouts of clients, dynamic content",
        "sessions ended after 10 s without a reply, /s",
        false,
        figures::late,
    ),
];

/// Writes `figures.md`, `points.tsv` and the plots into `folder`; returns the text.
pub(crate) fn write(
    records: &[Record],
    found: &[(Workload, Saturation)],
    stated: &str,
    folder: &Path,
) -> Result<String> {
    fs::create_dir_all(folder)?;
    let mut text = format!("{stated}\n\n{}\n", versions(records));
    fs::write(folder.join("points.tsv"), summary::table(records, found))?;
    for (workload, found) in found {
        let own = |shape: fn(&Shape) -> bool| -> Vec<&Record> {
            let mut own: Vec<&Record> = records
                .iter()
                .filter(|record| record.point.workload == *workload && shape(&record.point.shape))
                .collect();
            own.sort_by_key(|record| record.point);
            own
        };
        let steady = own(|shape| *shape != Shape::Surge);
        let report = Report { workload: *workload, found, records: steady };
        let mut plots = Vec::new();
        if !report.records.is_empty() {
            plots.extend(report.steady(&mut text)?);
        }
        let surges = own(|shape| *shape == Shape::Surge);
        if !surges.is_empty() {
            plots.push(surge(&mut text, &surges)?);
        }
        for (file, plot) in plots {
            writeln!(text, "\n![{}]({file})", plot.title)?;
            fs::write(folder.join(file), plot.svg())?;
        }
    }
    fs::write(folder.join("figures.md"), &text)?;
    Ok(text)
}

/// The measured versions, machines and times.
fn versions(records: &[Record]) -> String {
    let mut all: BTreeMap<String, (usize, BTreeSet<String>, BTreeSet<&str>)> = BTreeMap::new();
    for record in records {
        let own = record.origin.as_ref();
        let name = own.map_or_else(
            || "an unknown version".to_owned(),
            |own| format!("version {}", own.version),
        );
        let (count, machines, times) = all.entry(name).or_default();
        *count += 1;
        machines.extend(own.map(|own| own.machine.to_string()));
        times.extend(own.map(|own| own.began.as_str()));
    }
    let parts = all.into_iter().map(|(name, (count, machines, times))| {
        let machines: Vec<String> = machines.into_iter().collect();
        let machines = match machines.join(" and on ") {
            none if none.is_empty() => none,
            some => format!(", on {some}"),
        };
        let times = match (times.first(), times.last()) {
            (Some(first), Some(last)) if first == last => format!(", begun at {first}"),
            (Some(first), Some(last)) => format!(", begun from {first} to {last}"),
            _ => String::new(),
        };
        format!("{count} of {name}{machines}{times}")
    });
    let parts: Vec<String> = parts.collect();
    format!("Measured were {} [points](points.tsv): {}.", records.len(), parts.join("; "))
}

/// The steady points of one workload.
struct Report<'r> {
    workload: Workload,
    found: &'r Saturation,
    /// Sorted by load, then by variant.
    records: Vec<&'r Record>,
}

impl Report<'_> {
    fn steady(&self, text: &mut String) -> Result<Vec<(&'static str, Plot<'static>)>> {
        let unit = UNITS[self.workload as usize];
        writeln!(
            text,
            "\n## {} content\n\n`hybrid` answers at most {} {unit}/s, or {:.1} sessions/s: load 1.\n",
            if self.workload == Workload::Static { "Static" } else { "Dynamic" },
            thousands(self.found.capacity),
            self.found.rate,
        )?;
        self.documented(text)?;
        self.sessions(text)?;
        self.classes(text)?;
        let drawings: &[Drawing] = match self.workload {
            Workload::Static => &STATIC,
            Workload::Dynamic => &DYNAMIC,
        };
        let mut plots: Vec<_> = drawings
            .iter()
            .map(|(file, title, caption, is_logarithmic, figure)| {
                (*file, self.plot(title, caption, *is_logarithmic, &|record| figure(record)))
            })
            .collect();
        let share = |record: &Record| work_share(record, self.found.capacity);
        let (file, title) = match self.workload {
            Workload::Static => {
                ("work-static.svg", "Work inside completed sessions, static content")
            }
            Workload::Dynamic => {
                ("work-dynamic.svg", "Work inside completed sessions, dynamic content")
            }
        };
        plots.push((file, self.plot(title, "% of the capacity", false, &share)));
        Ok(plots)
    }

    /// The figures of the paper.
    fn documented(&self, text: &mut String) -> Result<()> {
        *text += "| load | sessions/s | server | replies/s | response, ms: mean, p50, p99 | closed by the server/s: idle, \
                  asked, told | completed/s | requests of a completed session | timeouts/s | server, emulator, % of a \
                  core |\n|---|---|---|---|---|---|---|---|---|---|\n";
        for record in &self.records {
            let [idle, asked, told] = ["closed-idle", "closed-asked", "closed-told"]
                .map(|name| short(figures::rate(record, name)));
            let [p50, p99] = ["p50", "p99"].map(|part| short(figures::time(record, part)));
            let [server, emulator] = ["cpu-server", "cpu-emulator"]
                .map(|name| 100.0 * record.figure(name) / record.figure("all-seconds"));
            writeln!(
                text,
                "| {} | {:.1} | {} | {} | {}, {p50}, {p99} | {idle}, {asked}, {told} | {} | {} | {} | {server:.0}, \
                 {emulator:.0} |",
                load(record),
                offered(record),
                record.point.variant.title(),
                short(figures::replies(record)),
                short(figures::response(record)),
                short(figures::completed(record)),
                short(figures::length(record)),
                short(figures::late(record)),
            )?;
        }
        Ok(())
    }

    /// The outcomes of sessions.
    fn sessions(&self, text: &mut String) -> Result<()> {
        *text += "\n| load | server | work inside completed sessions, % of the capacity (and inside open sessions) | the same, % of all work of sessions that ended | \
                  sessions begun | refused on the first page | admitted | of these completed, % | dropped, late, unreachable, \
                  faulty, still open | p99, x calm | refusal, ms: p50, p99, longest | refusal, % of a mean \
                  request |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";
        for record in &self.records {
            let ends = ["dropped", "late", "unreachable", "faulty", "open"]
                .map(|name| thousands(record.figure(name)))
                .join(", ");
            let refusal = ["p50", "p99", "p100"]
                .map(|part| short(record.figure(&format!("refusal-{part}")) / 1e3));
            let has_refused = record.figure("refusal-count") > 0.0;
            let calm = self.calm(record.point.variant);
            let times_calm =
                calm.map(|calm| figures::time(record, "p99") / figures::time(calm, "p99"));
            let cost = calm.and_then(|calm| figures::refusal_cost(record, calm));
            writeln!(
                text,
                "| {} | {} | {} ({}) | {} | {} | {} | {} | {} | {ends} | {} | {} | {} |",
                load(record),
                record.point.variant.title(),
                short(work_share(record, self.found.capacity)),
                short(figures::open_share(record, self.found.capacity)),
                short(figures::work_of_all(record)),
                thousands(record.figure("begun")),
                thousands(record.figure("refused")),
                thousands(record.figure("admitted")),
                short(figures::finished(record)),
                or_dash(times_calm),
                if has_refused { refusal.join(", ") } else { "-".to_owned() },
                or_dash(cost.map(|share| 100.0 * share)),
            )?;
        }
        Ok(())
    }

    fn classes(&self, text: &mut String) -> Result<()> {
        let bounds = super::bounds(self.workload);
        let mut least = 1;
        let mut names: Vec<String> = Vec::new();
        for most in bounds {
            names.push(format!("{least} to {most}"));
            least = most + 1;
        }
        names.push(format!("more than {}", least - 1));
        writeln!(
            text,
            "\nCompleted sessions, % of the admitted sessions that ended (number), by their planned pages:\n\n\
             | load | server | {} |\n|---|---|{}",
            names.join(" | "),
            "---|".repeat(names.len())
        )?;
        for record in &self.records {
            let cells = record.classes.iter().map(|[ended, completed]| match *ended {
                0.0 => "-".to_owned(),
                ended => format!("{} ({})", short(100.0 * completed / ended), thousands(ended)),
            });
            let cells: Vec<String> = cells.collect();
            writeln!(
                text,
                "| {} | {} | {} |",
                load(record),
                record.point.variant.title(),
                cells.join(" | ")
            )?;
        }
        Ok(())
    }

    /// The record of the lowest load of this variant.
    fn calm(&self, variant: Variant) -> Option<&Record> {
        self.records.iter().find(|record| record.point.variant == variant).copied()
    }

    fn plot(
        &self,
        title: &'static str,
        caption: &str,
        is_logarithmic: bool,
        figure: &dyn Fn(&Record) -> f64,
    ) -> Plot<'static> {
        let variants: BTreeSet<Variant> =
            self.records.iter().map(|record| record.point.variant).collect();
        let line = |variant: Variant| Line {
            name: variant.title().to_owned(),
            kind: variant as usize,
            values: self
                .records
                .iter()
                .filter(|record| record.point.variant == variant)
                .map(|record| (offered(record), figure(record)))
                .collect(),
        };
        let lines: Vec<Line> = variants.into_iter().map(line).collect();
        let all = |lines: &[Line], of: fn(&(f64, f64)) -> f64| -> Vec<f64> {
            lines
                .iter()
                .flat_map(|line| line.values.iter().map(of))
                .filter(|value| value.is_finite())
                .collect()
        };
        let most = |values: Vec<f64>| values.into_iter().fold(0.0, f64::max);
        let x_axis = Axis::linear("new sessions/s", most(all(&lines, |(x, _)| *x)));
        let values = all(&lines, |(_, y)| *y);
        let y_axis = if is_logarithmic {
            Axis::logarithmic(caption, values)
        } else {
            Axis::linear(caption, most(values))
        };
        Plot { title, x_axis, y_axis, lines }
    }
}

/// The effect of a surge, and the time until it is over.
fn surge(text: &mut String, records: &[&Record]) -> Result<(&'static str, Plot<'static>)> {
    let [calm, over, after] = SURGE_TIMES.map(|time| time.as_secs());
    writeln!(
        text,
        "\n## A surge\n\n{calm} s calm, {over} s four times the saturation rate, {after} s calm. The surge is over when \
         for one second no quarter of it has a longer p99 or more refusals than the worst of the first calm.\n\n\
         | server | p99 of pages, ms, worst quarter of a second: calm, surge | last refusal after, s | over after, s | refused | completed, % of \
         the admitted that ended |\n|---|---|---|---|---|---|"
    )?;
    let mut lines = Vec::new();
    for record in records {
        let back = figures::time_back(&record.slots, SURGE_TIMES);
        let worst = |from: u64, to: u64| {
            let slots = figures::between(&record.slots, from, to);
            slots.iter().fold(0.0, |most: f64, slot| most.max(slot.p99)) / 1e3
        };
        writeln!(
            text,
            "| {} | {}, {} | {:.2} | {} | {} | {} |",
            record.point.variant.title(),
            short(worst(calm / 2, calm)),
            short(worst(calm, calm + over)),
            figures::last_refusal(&record.slots, SURGE_TIMES),
            back.map_or_else(|| format!("not within {after}"), |back| format!("{back:.2}")),
            thousands(record.figure("refused")),
            short(figures::finished(record)),
        )?;
        // One point per second: its worst quarter.
        let seconds = record.slots.chunks(4).enumerate().map(|(second, slots)| {
            let worst = slots.iter().fold(0.0, |most: f64, slot| most.max(slot.p99));
            (second as f64 * 4.0 * SLOT.as_secs_f64(), worst / 1e3)
        });
        lines.push(Line {
            name: record.point.variant.title().to_owned(),
            kind: record.point.variant as usize,
            values: seconds.filter(|(_, worst)| *worst > 0.0).collect(),
        });
    }
    let values: Vec<f64> =
        lines.iter().flat_map(|line| line.values.iter().map(|(_, worst)| *worst)).collect();
    let plot = Plot {
        title: "A surge from 60 to 90 s, dynamic content",
        x_axis: Axis::linear("time, s", (calm + over + after) as f64),
        y_axis: Axis::logarithmic("p99 of pages, ms", values),
        lines,
    };
    Ok(("surge.svg", plot))
}

/// The load relative to saturation.
fn load(record: &Record) -> String {
    match record.point.shape {
        Shape::Steady(percent) => format!("{:.2}", percent as f64 / 100.0),
        Shape::Surge => "surge".to_owned(),
    }
}

/// New sessions per second, as they arrived.
fn offered(record: &Record) -> f64 {
    (record.figure("begun") + record.figure("turned-away")) / record.figure("seconds")
}

fn or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), short)
}

/// Three significant digits; a dash for a missing value.
fn short(value: f64) -> String {
    match value.abs() {
        none if none.is_nan() => "-".to_owned(),
        0.0 => "0".to_owned(),
        large if large >= 999.5 => thousands(value),
        large if large >= 99.95 => format!("{value:.0}"),
        middle if middle >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::emulator::Tally;
    use crate::origin::Origin;
    use crate::origin::tests::origin;
    use crate::overload::plan::{Point, points};
    use crate::overload::raw::{CpuTime, Setting};

    fn record(point: Point) -> Record {
        let mut tally = Tally::new(point.window(1), crate::overload::bounds(point.workload));
        for tenth in 0..20 {
            tally.on_begun(Duration::from_millis(tenth * 100), true);
        }
        Record::of(point, &Setting::new(), &tally, CpuTime { server: 0.5, emulator: 0.25 })
    }

    #[test]
    fn writes_all_figures_of_the_paper_and_links_them() {
        let folder =
            std::env::temp_dir().join(format!("bine-overload-report-{}", std::process::id()));
        let points = points(&Workload::ALL, &Variant::ALL, &[50, 200], true);
        let records: Vec<Record> = points.into_iter().map(record).collect();
        let lines = 1 + records.len();
        let found =
            Workload::ALL.map(|workload| (workload, Saturation { rate: 9.0, capacity: 450.0 }));
        let text = write(&records, &found, "A machine.", &folder).unwrap();
        for number in 3..=9 {
            let name = format!("figure-{number}.svg");
            assert!(text.contains(&format!("({name})")), "{name} in {text}");
            let svg = fs::read_to_string(folder.join(&name)).unwrap();
            assert!(svg.contains(&format!("Figure {number}: ")), "{name}");
        }
        assert_eq!(fs::read_to_string(folder.join("figures.md")).unwrap(), text);
        assert!(text.starts_with("A machine.") && text.contains("not within 60"), "{text}");
        let summary = fs::read_to_string(folder.join("points.tsv")).unwrap();
        assert_eq!(summary.lines().count(), lines);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn names_every_measured_version() {
        let points = points(&[Workload::Static], &Variant::ALL, &[50], false);
        let mut records: Vec<Record> = points.into_iter().map(record).collect();
        records[0].origin = Some(origin("a"));
        records[1].origin = Some(Origin { began: "2026-11-22T05:00:00Z".into(), ..origin("a") });
        let expected = "Measured were 3 [points](points.tsv): 1 of an unknown version; 2 of version 0.1.0 (a), on Linux \
                    6.18.0, A processor, 2 cores, begun from 2026-11-22T04:00:00Z to 2026-11-22T05:00:00Z.";
        assert_eq!(versions(&records), expected);
    }

    #[test]
    fn prints_a_dash_for_a_missing_value() {
        let cells = [f64::NAN, 0.0, 0.123, 12.34, 999.6].map(short);
        assert_eq!(cells, ["-", "0", "0.12", "12.3", "1 000"]);
    }
}
