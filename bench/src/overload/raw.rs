//! Stores results: one file per point, so that a stopped run can resume.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::plan::Point;
use crate::emulator::{Close, End, SLOT, Tally};
use crate::origin::{Origin, Version};

/// The parameters of a point's figures, by name.
pub(crate) type Setting = BTreeMap<String, f64>;

/// A point and its results.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) point: Point,
    pub(crate) setting: Setting,
    /// `None` in files from before origins were recorded.
    pub(crate) origin: Option<Origin>,
    figures: BTreeMap<String, f64>,
    /// For each class: ended admitted sessions, and the completed ones among them.
    pub(crate) classes: Vec<[f64; 2]>,
    /// One per quarter of a second.
    pub(crate) slots: Vec<Slot>,
}

/// The events of a quarter of a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slot {
    pub(crate) begun: f64,
    pub(crate) refused: f64,
    pub(crate) replies: f64,
    pub(crate) completed: f64,
    /// p50 and p99 in microseconds of the pages answered in it; 0 without pages.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// CPU time over the whole run, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuTime {
    pub(crate) server: f64,
    pub(crate) emulator: f64,
}

impl Record {
    pub(crate) fn of(point: Point, setting: &Setting, tally: &Tally, used: CpuTime) -> Self {
        let seconds = tally.window.end.saturating_sub(tally.window.start).as_secs_f64();
        let replies: u64 = tally.slots.iter().map(|slot| slot.replies).sum();
        let refused: u64 = tally.slots.iter().map(|slot| slot.refused).sum();
        let mut figures = BTreeMap::from(
            [
                ("seconds", seconds),
                ("begun", tally.begun as f64),
                ("turned-away", tally.turned_away as f64),
                ("admitted", tally.admitted as f64),
                ("open", tally.open as f64),
                ("open-pages", tally.open_work.pages as f64),
                ("open-requests", tally.open_work.requests as f64),
                ("lifetimes", tally.lifetimes),
                ("completed-length", tally.completed_work.requests as f64),
                ("completed-length-pages", tally.completed_work.pages as f64),
                ("bytes", tally.bytes as f64),
                ("with-retry-after", tally.with_retry_after as f64),
                ("retry-after", tally.retry_after as f64),
                ("wrong", tally.wrong as f64),
                ("closed-idle", tally.closed[Close::Idle as usize] as f64),
                ("closed-asked", tally.closed[Close::Asked as usize] as f64),
                ("closed-told", tally.closed[Close::Announced as usize] as f64),
                ("closed-503", tally.closed[Close::Refused as usize] as f64),
                ("handshakes-full", tally.handshakes[0] as f64),
                ("handshakes-resumed", tally.handshakes[1] as f64),
                ("cpu-server", used.server),
                ("cpu-emulator", used.emulator),
                ("all-replies", replies as f64),
                ("all-refusals", refused as f64),
                ("all-seconds", tally.slots.len() as f64 * SLOT.as_secs_f64()),
            ]
            .map(|(name, figure)| (name.to_owned(), figure)),
        );
        for end in End::ALL {
            let work = tally.work[end as usize];
            figures.insert(end.name().to_owned(), tally.ends[end as usize] as f64);
            figures.insert(format!("{}-pages", end.name()), work.pages as f64);
            figures.insert(format!("{}-requests", end.name()), work.requests as f64);
        }
        for (name, times) in [
            ("page", &tally.pages),
            ("file", &tally.files),
            ("page-wait", &tally.page_waits),
            ("file-wait", &tally.file_waits),
            ("refusal", &tally.refusals),
        ] {
            figures.insert(format!("{name}-count"), times.count() as f64);
            figures.insert(format!("{name}-mean"), times.mean());
            for (digits, share) in [("50", 0.5), ("99", 0.99), ("999", 0.999), ("100", 1.0)] {
                figures.insert(format!("{name}-p{digits}"), times.quantile(share));
            }
        }
        let slots = tally.slots.iter().map(|slot| Slot {
            begun: slot.begun as f64,
            refused: slot.refused as f64,
            replies: slot.replies as f64,
            completed: slot.completed as f64,
            p50: slot.pages.quantile(0.5),
            p99: slot.pages.quantile(0.99),
        });
        let classes =
            tally.classes.iter().map(|class| [class.ended as f64, class.completed as f64]);
        let (classes, slots) = (classes.collect(), slots.collect());
        Self { point, setting: setting.clone(), origin: None, figures, classes, slots }
    }

    /// Adds the origin.
    pub(crate) fn with_origin(self, origin: Origin) -> Self {
        Self { origin: Some(origin), ..self }
    }

    /// The figure of this name; [`of`](Self::of) sets all figures.
    pub(crate) fn figure(&self, name: &str) -> f64 {
        self.figures.get(name).copied().unwrap_or(f64::NAN)
    }

    fn value(&self) -> Value {
        let slots: Vec<[f64; 6]> = self
            .slots
            .iter()
            .map(|slot| {
                [slot.begun, slot.refused, slot.replies, slot.completed, slot.p50, slot.p99]
            })
            .collect();
        json!({
            "origin": self.origin.as_ref().map(Origin::value),
            "setting": self.setting, "figures": self.figures, "classes": self.classes,
            "slots of 250 ms: begun, refused, replies, completed, p50 us, p99 us": slots,
        })
    }

    fn parse(point: Point, text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let object = value.as_object()?;
        let rows = |name: &str| -> Option<Vec<Vec<f64>>> {
            let (_, rows) = object.iter().find(|(key, _)| key.starts_with(name))?;
            let row = |row: &Value| row.as_array()?.iter().map(Value::as_f64).collect();
            rows.as_array()?.iter().map(row).collect()
        };
        let slot = |row: &Vec<f64>| match row[..] {
            [begun, refused, replies, completed, p50, p99] => {
                Some(Slot { begun, refused, replies, completed, p50, p99 })
            }
            _ => None,
        };
        let classes = rows("classes")?.into_iter().map(|row| row[..].try_into().ok());
        Some(Self {
            point,
            setting: named(&value, "setting")?,
            origin: Origin::parse(&value["origin"]),
            figures: named(&value, "figures")?,
            classes: classes.collect::<Option<_>>()?,
            slots: rows("slots")?.iter().map(slot).collect::<Option<_>>()?,
        })
    }
}

/// The stored state of a result.
#[derive(Debug, PartialEq)]
pub(crate) enum Stored<T> {
    Nothing,
    /// Measured under the same conditions.
    Same(T),
    /// Measured under different conditions, which the text describes.
    Other(T, String),
}

/// The folder of a run.
pub(crate) struct Raw {
    folder: PathBuf,
    /// The version of this run.
    version: Version,
}

impl Raw {
    pub(crate) fn open(folder: &Path, version: &Version) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        Ok(Self { folder: folder.to_owned(), version: version.clone() })
    }

    /// The stored result of this point, compared with this setting.
    pub(crate) fn find(&self, point: Point, setting: &Setting) -> Result<Stored<Record>> {
        let Some(text) = self.read(&point.to_string())? else { return Ok(Stored::Nothing) };
        let record =
            Record::parse(point, &text).with_context(|| self.unreadable(&point.to_string()))?;
        let other = self.difference(record.origin.as_ref(), &record.setting, setting);
        Ok(match other {
            None => Stored::Same(record),
            Some(other) => Stored::Other(record, other),
        })
    }

    pub(crate) fn keep(&self, record: &Record) -> Result<()> {
        self.write(&record.point.to_string(), &record.value())
    }

    /// A stored figure that all points need, compared with this `setting`.
    pub(crate) fn found(&self, name: &str, setting: &Setting) -> Result<Stored<Setting>> {
        let Some(text) = self.read(name)? else { return Ok(Stored::Nothing) };
        let parse = || {
            let value: Value = serde_json::from_str(&text).ok()?;
            let origin = Origin::parse(&value["origin"]);
            Some((origin, named(&value, "setting")?, named(&value, "found")?))
        };
        let (origin, own, found) = parse().with_context(|| self.unreadable(name))?;
        Ok(match self.difference(origin.as_ref(), &own, setting) {
            None => Stored::Same(found),
            Some(other) => Stored::Other(found, other),
        })
    }

    pub(crate) fn keep_found(
        &self,
        name: &str,
        (setting, origin): (&Setting, &Origin),
        found: &Setting,
    ) -> Result<()> {
        self.write(name, &json!({ "origin": origin.value(), "setting": setting, "found": found }))
    }

    /// The differences between the conditions of a stored result and of this run.
    fn difference(
        &self,
        origin: Option<&Origin>,
        own: &Setting,
        expected: &Setting,
    ) -> Option<String> {
        let mut all = Vec::new();
        match origin.map(|origin| &origin.version) {
            Some(version) if *version == self.version => {}
            Some(version) => all.push(format!("version {version}")),
            None => all.push("an unknown version".to_owned()),
        }
        let value = |setting: &Setting, name: &str| {
            setting.get(name).map_or_else(|| "nothing".to_owned(), ToString::to_string)
        };
        let names: BTreeSet<&String> = own.keys().chain(expected.keys()).collect();
        for name in names.into_iter().filter(|name| own.get(*name) != expected.get(*name)) {
            all.push(format!("{name} {} and not {}", value(own, name), value(expected, name)));
        }
        (!all.is_empty()).then(|| all.join("; "))
    }

    fn read(&self, name: &str) -> Result<Option<String>> {
        let path = self.path(name);
        if !path.exists() {
            return Ok(None);
        }
        Ok(Some(fs::read_to_string(path)?))
    }

    fn unreadable(&self, name: &str) -> String {
        format!("{} is not valid: remove it", self.path(name).display())
    }

    /// Writes a file atomically, because a run may be stopped at any moment. Keeps the previous
    /// file under a number.
    fn write(&self, name: &str, value: &Value) -> Result<()> {
        let (path, draft) = (self.path(name), self.folder.join(format!("{name}.draft")));
        fs::write(&draft, format!("{value:#}\n"))?;
        if path.exists() {
            let mut before = (1_u32..).map(|number| self.path(&format!("{name}.{number}")));
            fs::copy(&path, before.find(|path| !path.exists()).context("too many old files")?)?;
        }
        Ok(fs::rename(draft, path)?)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }
}

/// Numbers by name.
fn named(value: &Value, name: &str) -> Option<BTreeMap<String, f64>> {
    let pairs = value.get(name)?.as_object()?.iter();
    pairs.map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect()
}

#[cfg(test)]
pub(super) mod tests {
    //! Stored records, and records with given figures.

    use std::time::Duration;

    use super::*;
    use crate::origin::tests::{origin, version};
    use crate::overload::plan::{Shape, Variant, Workload};

    const POINT: Point = Point {
        workload: Workload::Static,
        shape: Shape::Steady(200),
        variant: Variant::Hybrid,
        seed: 1,
    };

    /// A record with these figures; the rest are those of a run without visitors.
    pub(in crate::overload) fn with_figures(point: Point, figures: &[(&str, f64)]) -> Record {
        let tally = Tally::new(point.window(1), crate::overload::bounds(point.workload));
        let used = CpuTime { server: 0.0, emulator: 0.0 };
        let mut record = Record::of(point, &Setting::new(), &tally, used);
        let figures = figures.iter().map(|(name, figure)| ((*name).to_owned(), *figure));
        record.figures.extend(figures);
        record
    }

    fn record() -> Record {
        let window = Duration::ZERO..Duration::from_secs(2);
        let mut tally = Tally::new(window, &[1]);
        tally.on_begun(Duration::from_millis(300), true);
        let used = CpuTime { server: 1.5, emulator: 0.25 };
        Record::of(POINT, &paced(0.05), &tally, used).with_origin(origin("a"))
    }

    fn paced(pace: f64) -> Setting {
        Setting::from([("pace".to_owned(), pace)])
    }

    /// A separate folder for each test.
    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("bine-overload-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn finds_a_point_as_it_was_stored() {
        let folder = folder("kept");
        let raw = Raw::open(&folder, &version("a")).unwrap();
        let record = record();
        assert_eq!(raw.find(POINT, &record.setting).unwrap(), Stored::Nothing);
        raw.keep(&record).unwrap();
        assert_eq!(raw.find(POINT, &record.setting).unwrap(), Stored::Same(record.clone()));
        assert_eq!(record.slots.len(), 2);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn distinguishes_points_of_other_versions_and_options() {
        let folder = folder("other");
        let record = record();
        let raw = Raw::open(&folder, &version("a")).unwrap();
        raw.keep(&record).unwrap();
        let other = |raw: &Raw, pace| match raw.find(POINT, &paced(pace)).unwrap() {
            Stored::Other(found, other) => {
                assert_eq!(found.figure("begun").to_bits(), record.figure("begun").to_bits());
                other
            }
            kept => panic!("{kept:?}"),
        };
        assert_eq!(other(&raw, 1.0), "pace 0.05 and not 1");
        let next = Raw::open(&folder, &version("b")).unwrap();
        assert_eq!(other(&next, 0.05), "version 0.1.0 (a)");
        assert_eq!(other(&next, 1.0), "version 0.1.0 (a); pace 0.05 and not 1");
        raw.keep(&Record { origin: None, ..record.clone() }).unwrap();
        assert_eq!(other(&raw, 0.05), "an unknown version");
        fs::remove_dir_all(folder).unwrap();
    }

    /// The format of files before origins were recorded.
    #[test]
    fn treats_a_file_without_origin_as_unknown_version() {
        let folder = folder("old");
        let raw = Raw::open(&folder, &version("a")).unwrap();
        let mut value = record().value();
        value.as_object_mut().unwrap().remove("origin");
        fs::write(raw.path(&POINT.to_string()), value.to_string()).unwrap();
        let kept = raw.find(POINT, &paced(0.05)).unwrap();
        let old = Record { origin: None, ..record() };
        assert_eq!(kept, Stored::Other(old, "an unknown version".to_owned()));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn keeps_earlier_results_under_a_number() {
        let folder = folder("anew");
        let raw = Raw::open(&folder, &version("a")).unwrap();
        for pace in [0.05, 0.5, 1.0] {
            raw.keep(&Record { setting: paced(pace), ..record() }).unwrap();
        }
        let pace = |name: &str| {
            let text = fs::read_to_string(folder.join(name)).unwrap();
            Record::parse(POINT, &text).unwrap().setting["pace"]
        };
        let names = [
            "static-hybrid-200-1.json",
            "static-hybrid-200-1.1.json",
            "static-hybrid-200-1.2.json",
        ];
        assert_eq!(names.map(|name| pace(name).to_string()), ["1", "0.05", "0.5"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn stores_saturation_with_setting_and_version() {
        let folder = folder("found");
        let name = "saturation-static";
        let raw = Raw::open(&folder, &version("a")).unwrap();
        let found = Setting::from([("rate".to_owned(), 12.5)]);
        assert_eq!(raw.found(name, &paced(0.05)).unwrap(), Stored::Nothing);
        raw.keep_found(name, (&paced(0.05), &origin("a")), &found).unwrap();
        assert_eq!(raw.found(name, &paced(0.05)).unwrap(), Stored::Same(found.clone()));
        let other = "pace 0.05 and not nothing".to_owned();
        assert_eq!(raw.found(name, &Setting::new()).unwrap(), Stored::Other(found.clone(), other));
        let next = Raw::open(&folder, &version("b")).unwrap();
        let other = "version 0.1.0 (a)".to_owned();
        assert_eq!(next.found(name, &paced(0.05)).unwrap(), Stored::Other(found, other));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn names_every_reported_figure() {
        let record = record();
        for name in
            ["begun", "late", "completed-requests", "page-wait-p99", "refusal-p100", "closed-503"]
        {
            assert!(!record.figure(name).is_nan(), "{name}");
        }
    }
}
