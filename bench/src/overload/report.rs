//! Writes the report: figures 3 to 9 of Carrera et al., and those that their future work asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::figures::{self, CLOSES, UNITS, offered, short, work_share};
use super::groups::{Group, groups};
use super::plan::{SURGE_TIMES, Shape, Variant, Workload};
use super::raw::Record;
use super::{Saturation, claims, summary};
use crate::emulator::SLOT;
use crate::plot::{Axis, Line, Plot, thousands};

/// A figure of a record.
type Figure = fn(&Record) -> f64;

/// A figure of the paper: number, file, title, axis, and whether the axis is logarithmic.
type Drawing = (u8, &'static str, &'static str, &'static str, bool, Figure);

/// A plot, with its file and the text below it.
type Shown = (&'static str, Plot<'static>, String);

const STATIC: [Drawing; 3] = [
    (3, "figure-3.svg", "Figure 3: replies, static content", "replies/s", false, figures::replies),
    (
        4,
        "figure-4.svg",
        "Figure 4: response time, static content",
        "mean response time, ms",
        true,
        figures::response,
    ),
    (
        5,
        "figure-5.svg",
        "Figure 5: connections closed by the server, static content",
        "connections closed/s",
        false,
        figures::closed,
    ),
];

/// The same figures with the tables in `PostgreSQL`, as the paper has its in `MySQL`.
const DATABASE: [Drawing; 4] = [
    (
        6,
        "postgres-replies.svg",
        "Figure 6: replies, dynamic content on PostgreSQL",
        "replies/s",
        false,
        figures::replies,
    ),
    (
        7,
        "postgres-completed.svg",
        "Figure 7: sessions completed, dynamic content on PostgreSQL",
        "sessions completed/s",
        false,
        figures::completed,
    ),
    (
        8,
        "postgres-length.svg",
        "Figure 8: length of completed sessions, dynamic content on PostgreSQL",
        "mean requests of a completed session",
        false,
        figures::length,
    ),
    (
        9,
        "postgres-timeouts.svg",
        "Figure 9: timeouts of clients, dynamic content on PostgreSQL",
        "sessions ended after 10 s without a reply, /s",
        false,
        figures::late,
    ),
];

const DYNAMIC: [Drawing; 4] = [
    (6, "figure-6.svg", "Figure 6: replies, dynamic content", "replies/s", false, figures::replies),
    (
        7,
        "figure-7.svg",
        "Figure 7: sessions completed, dynamic content",
        "sessions completed/s",
        false,
        figures::completed,
    ),
    (
        8,
        "figure-8.svg",
        "Figure 8: length of completed sessions, dynamic content",
        "mean requests of a completed session",
        false,
        figures::length,
    ),
    (
        9,
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
        let report = Report { workload: *workload, found, groups: groups(&steady) };
        let mut shown = Vec::new();
        if !report.groups.is_empty() {
            shown.extend(report.steady(&mut text)?);
        }
        let surges = own(|shape| *shape == Shape::Surge);
        if !surges.is_empty() {
            shown.push(surge(&mut text, &surges)?);
        }
        for (file, plot, comment) in shown {
            writeln!(text, "\n![{}]({file})\n\n{comment}", plot.title)?;
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
    groups: Vec<Group<'r>>,
}

impl Report<'_> {
    fn steady(&self, text: &mut String) -> Result<Vec<Shown>> {
        let unit = UNITS[self.workload as usize];
        let seeds = self.groups.iter().map(|group| group.records.len()).max().unwrap_or(0);
        let of = match seeds {
            1 => "those of one seed".to_owned(),
            _ => format!(
                "medians of {seeds} seeds; the brackets, and the bars in the plots, have their extremes"
            ),
        };
        writeln!(
            text,
            "\n## {}\n\n`hybrid` answers at most {} {unit}/s, or {:.1} sessions/s: load 1. Figures are {of}.\n",
            self.workload.title(),
            thousands(self.found.capacity),
            self.found.rate,
        )?;
        self.documented(text)?;
        self.sessions(text)?;
        self.classes(text)?;
        let drawings: &[Drawing] = match self.workload {
            Workload::Static => &STATIC,
            Workload::Dynamic => &DYNAMIC,
            Workload::Database => &DATABASE,
        };
        let mut shown: Vec<Shown> = drawings
            .iter()
            .map(|(number, file, title, caption, is_logarithmic, figure)| {
                let plot = self.plot(title, caption, *is_logarithmic, figure);
                (*file, plot, claims::comment(*number, &self.groups))
            })
            .collect();
        let capacity = self.found.capacity;
        let share = move |record: &Record| work_share(record, capacity);
        let (file, title) = match self.workload {
            Workload::Static => {
                ("work-static.svg", "Work inside completed sessions, static content")
            }
            Workload::Dynamic => {
                ("work-dynamic.svg", "Work inside completed sessions, dynamic content")
            }
            Workload::Database => (
                "work-postgres.svg",
                "Work inside completed sessions, dynamic content on PostgreSQL",
            ),
        };
        let comment = "The paper has no such figure: it counts sessions, of which short ones complete more easily.";
        shown.push((
            file,
            self.plot(title, "% of the capacity", false, &share),
            comment.to_owned(),
        ));
        Ok(shown)
    }

    /// The figures of the paper.
    fn documented(&self, text: &mut String) -> Result<()> {
        let kind = match self.workload {
            Workload::Static => "an embedded file",
            Workload::Dynamic | Workload::Database => "a page",
        };
        write!(
            text,
            "| load | sessions/s | server | replies/s | mean of pages and files, ms | p50 of {kind}, ms | p99 of {kind}, ms | "
        )?;
        *text += "closed by the server/s | of these idle, asked, told, with a 503 | completed/s | requests of a completed session | timeouts/s | \
                  CPU time of a reply, us | server, emulator, % of a core |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
        for group in &self.groups {
            let closes = CLOSES.map(|name| short(group.median(|own| figures::rate(own, name))));
            let [server, emulator] = ["cpu-server", "cpu-emulator"]
                .map(|name| short(group.median(|own| figures::core(own, name))));
            let cells = [
                group.load_text(),
                short(group.median(offered)),
                group.variant.title().to_owned(),
                group.cell(figures::replies),
                group.cell(figures::response),
                group.cell(|own| figures::time(own, "p50")),
                group.cell(|own| figures::time(own, "p99")),
                group.cell(figures::closed),
                closes.join(", "),
                group.cell(figures::completed),
                group.cell(figures::length),
                group.cell(figures::late),
                group.cell(figures::cpu_of_a_reply),
                format!("{server}, {emulator}"),
            ];
            writeln!(text, "| {} |", cells.join(" | "))?;
        }
        self.handshakes(text)
    }

    /// The TLS handshakes, if there were any.
    fn handshakes(&self, text: &mut String) -> Result<()> {
        let full = |own: &Record| figures::rate(own, "handshakes-full");
        let resumed = |own: &Record| figures::rate(own, "handshakes-resumed");
        if !self.groups.iter().any(|group| group.median(full) + group.median(resumed) > 0.0) {
            return Ok(());
        }
        *text += "\n| load | server | full handshakes/s | resumed/s |\n|---|---|---|---|\n";
        for group in &self.groups {
            let (load, server) = (group.load_text(), group.variant.title());
            let (full, resumed) = (group.cell(full), group.cell(resumed));
            writeln!(text, "| {load} | {server} | {full} | {resumed} |")?;
        }
        Ok(())
    }

    /// The outcomes of sessions.
    fn sessions(&self, text: &mut String) -> Result<()> {
        *text += "\n| load | server | work inside completed sessions, % of the capacity | inside open sessions | the same, % of all work of sessions that ended | \
                  sessions begun | refused on the first page | admitted | of these completed, % | dropped, late, unreachable, \
                  faulty, still open | p99, x calm | refusal, ms: p50, p99, longest | refusal, % of a mean \
                  request |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
        for group in &self.groups {
            let median = |name: &str| group.median(|own| own.figure(name));
            let ends = ["dropped", "late", "unreachable", "faulty", "open"]
                .map(|name| thousands(median(name)))
                .join(", ");
            let refusal =
                ["p50", "p99", "p100"].map(|part| short(median(&format!("refusal-{part}")) / 1e3));
            let has_refused = median("refusal-count") > 0.0;
            let calm = self.calm(group.variant);
            let times_calm = calm.map(|calm| {
                let of = |group: &Group<'_>| group.median(|own| figures::time(own, "p99"));
                of(group) / of(calm)
            });
            let cost = calm.and_then(|calm| {
                let (own, calm) = (group.records.first()?, calm.records.first()?);
                figures::refusal_cost(own, calm)
            });
            let cells = [
                group.load_text(),
                group.variant.title().to_owned(),
                group.cell(|own| work_share(own, self.found.capacity)),
                group.cell(|own| figures::open_share(own, self.found.capacity)),
                group.cell(figures::work_of_all),
                thousands(median("begun")),
                thousands(median("refused")),
                thousands(median("admitted")),
                group.cell(figures::finished),
                ends,
                or_dash(times_calm),
                if has_refused { refusal.join(", ") } else { "-".to_owned() },
                or_dash(cost.map(|share| 100.0 * share)),
            ];
            writeln!(text, "| {} |", cells.join(" | "))?;
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
            "\nCompleted sessions, % of the admitted sessions that ended (number), by their planned pages, over all seeds:\n\n\
             | load | server | {} |\n|---|---|{}",
            names.join(" | "),
            "---|".repeat(names.len())
        )?;
        for group in &self.groups {
            let cells = (0..=bounds.len()).map(|place| {
                let own = group.records.iter().filter_map(|record| record.classes.get(place));
                let sum = own.fold([0.0; 2], |sum, class| [sum[0] + class[0], sum[1] + class[1]]);
                match sum {
                    [0.0, _] => "-".to_owned(),
                    [ended, completed] => {
                        format!("{} ({})", short(100.0 * completed / ended), thousands(ended))
                    }
                }
            });
            let cells: Vec<String> = cells.collect();
            let (load, server) = (group.load_text(), group.variant.title());
            writeln!(text, "| {load} | {server} | {} |", cells.join(" | "))?;
        }
        Ok(())
    }

    /// The lowest load of this variant.
    fn calm(&self, variant: Variant) -> Option<&Group<'_>> {
        self.groups.iter().find(|group| group.variant == variant)
    }

    fn plot(
        &self,
        title: &'static str,
        caption: &str,
        is_logarithmic: bool,
        figure: &dyn Fn(&Record) -> f64,
    ) -> Plot<'static> {
        let variants: BTreeSet<Variant> = self.groups.iter().map(|group| group.variant).collect();
        let line = |variant: Variant| {
            let own = self.groups.iter().filter(|group| group.variant == variant);
            let points = own.filter_map(|group| {
                Some((group.median(offered), group.spread(figure)?, group.records.len()))
            });
            let points: Vec<_> = points.collect();
            let several = points.iter().filter(|(_, _, seeds)| *seeds > 1);
            Line {
                name: variant.title().to_owned(),
                kind: variant as usize,
                values: points.iter().map(|(x, spread, _)| (*x, spread.median)).collect(),
                brackets: several.map(|(x, spread, _)| (*x, spread.least, spread.most)).collect(),
            }
        };
        let lines: Vec<Line> = variants.into_iter().map(line).collect();
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let points = || lines.iter().flat_map(|line| &line.values);
        let x: Vec<f64> = points().map(|(x, _)| *x).collect();
        let brackets = lines.iter().flat_map(|line| &line.brackets);
        let y: Vec<f64> = points()
            .map(|(_, y)| *y)
            .chain(brackets.flat_map(|(_, least, most)| [*least, *most]))
            .collect();
        let x_axis = Axis::linear("new sessions/s", most(&x));
        let y_axis = if is_logarithmic {
            Axis::logarithmic(caption, y)
        } else {
            Axis::linear(caption, most(&y))
        };
        Plot { title, x_axis, y_axis, lines }
    }
}

/// The effect of a surge, and the time until it is over.
fn surge(text: &mut String, records: &[&Record]) -> Result<Shown> {
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
            brackets: Vec::new(),
        });
    }
    let values: Vec<f64> =
        lines.iter().flat_map(|line| line.values.iter().map(|(_, worst)| *worst)).collect();
    let plot = Plot {
        title: "A surge from 40 to 60 s, dynamic content",
        x_axis: Axis::linear("time, s", (calm + over + after) as f64),
        y_axis: Axis::logarithmic("p99 of pages, ms", values),
        lines,
    };
    let comment = "The paper has no such figure: it asks for admission of sessions as future work.";
    Ok(("surge.svg", plot, comment.to_owned()))
}

fn or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), short)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::emulator::Tally;
    use crate::origin::Origin;
    use crate::origin::tests::origin;
    use crate::overload::plan::Point;
    use crate::overload::plan::tests::everything;
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
        let points = everything(&[50, 200], &[1, 2, 3]).points();
        let records: Vec<Record> = points.into_iter().map(record).collect();
        let lines = 1 + records.len();
        let found =
            Workload::USUAL.map(|workload| (workload, Saturation { rate: 9.0, capacity: 450.0 }));
        let text = write(&records, &found, "A machine.", &folder).unwrap();
        for number in 3..=9 {
            let name = format!("figure-{number}.svg");
            assert!(text.contains(&format!("({name})")), "{name} in {text}");
            let svg = fs::read_to_string(folder.join(&name)).unwrap();
            assert!(svg.contains(&format!("Figure {number}: ")), "{name}");
        }
        assert_eq!(text.matches("*Claim*: ").count(), 7, "one below each figure of the paper");
        assert!(text.contains("medians of 3 seeds"), "{text}");
        assert_eq!(fs::read_to_string(folder.join("figures.md")).unwrap(), text);
        assert!(text.starts_with("A machine.") && text.contains("not within 40"), "{text}");
        let summary = fs::read_to_string(folder.join("points.tsv")).unwrap();
        assert_eq!(summary.lines().count(), lines);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn names_every_measured_version() {
        let points = everything(&[50], &[1]).points().into_iter();
        let mut records: Vec<Record> = points.take(3).map(record).collect();
        records[0].origin = Some(origin("a"));
        records[1].origin = Some(Origin { began: "2026-11-22T05:00:00Z".into(), ..origin("a") });
        let expected = "Measured were 3 [points](points.tsv): 1 of an unknown version; 2 of version 0.1.0 (a), on Linux \
                    6.18.0, A processor, 2 cores, begun from 2026-11-22T04:00:00Z to 2026-11-22T05:00:00Z.";
        assert_eq!(versions(&records), expected);
    }
}
