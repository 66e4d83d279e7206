//! Decides how what was measured is kept: a file for each point, so that a run that was stopped goes on where it was.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::plan::Point;
use crate::emulator::{Close, End, SLOT, Tally};

/// What a point's figures depend on besides the point, by name.
pub(crate) type Setting = BTreeMap<String, f64>;

/// A point and what was measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) point: Point,
    pub(crate) setting: Setting,
    figures: BTreeMap<String, f64>,
    /// Of each class: admitted sessions that have ended, and of these those that completed.
    pub(crate) classes: Vec<[f64; 2]>,
    /// Of each quarter of a second.
    pub(crate) slots: Vec<Slot>,
}

/// What happened within a quarter of a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slot {
    pub(crate) begun: f64,
    pub(crate) refused: f64,
    pub(crate) replies: f64,
    pub(crate) completed: f64,
    /// p50 and p99 of the pages answered in it, in microseconds; 0 of none.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// What was used meanwhile, in seconds of CPU over the whole run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) server: f64,
    pub(crate) emulator: f64,
}

impl Record {
    pub(crate) fn of(point: Point, setting: &Setting, tally: &Tally, used: Used) -> Self {
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
                ("closed-told", tally.closed[Close::Told as usize] as f64),
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
        Self { point, setting: setting.clone(), figures, classes, slots }
    }

    /// The figure of this name; all that [`of`](Self::of) names are there.
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
            "setting": self.setting, "figures": self.figures, "classes": self.classes,
            "slots of 250 ms: begun, refused, replies, completed, p50 us, p99 us": slots,
        })
    }

    fn parse(point: Point, text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let object = value.as_object()?;
        let named = |name: &str| -> Option<BTreeMap<String, f64>> {
            let pairs = object.get(name)?.as_object()?.iter();
            pairs.map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect()
        };
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
            setting: named("setting")?,
            figures: named("figures")?,
            classes: classes.collect::<Option<_>>()?,
            slots: rows("slots")?.iter().map(slot).collect::<Option<_>>()?,
        })
    }
}

/// The folder of a run.
pub(crate) struct Raw {
    folder: PathBuf,
}

impl Raw {
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// What was measured of this point before, which must have been with this setting.
    pub(crate) fn find(&self, point: Point, setting: &Setting) -> Result<Option<Record>> {
        let path = self.path(&point.to_string());
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path)?;
        let record = Record::parse(point, &text)
            .with_context(|| format!("{} cannot be read: remove it", path.display()))?;
        ensure!(
            record.setting == *setting,
            "{} was measured with other settings ({:?}): give another folder (--into), or remove it",
            path.display(),
            record.setting
        );
        Ok(Some(record))
    }

    pub(crate) fn keep(&self, record: &Record) -> Result<()> {
        self.write(&record.point.to_string(), &record.value())
    }

    /// A figure of the run that all points need, and under which `setting` it was found.
    pub(crate) fn found(&self, name: &str, setting: &Setting) -> Result<Option<Setting>> {
        let path = self.path(name);
        if !path.exists() {
            return Ok(None);
        }
        let value: BTreeMap<String, Setting> =
            serde_json::from_str::<Value>(&fs::read_to_string(&path)?)
                .ok()
                .and_then(|value| {
                    let named = value.as_object()?.iter().map(|(name, value)| {
                        let pairs = value.as_object()?.iter();
                        let pairs =
                            pairs.map(|(name, value)| Some((name.clone(), value.as_f64()?)));
                        Some((name.clone(), pairs.collect::<Option<_>>()?))
                    });
                    named.collect()
                })
                .with_context(|| format!("{} cannot be read: remove it", path.display()))?;
        ensure!(
            value.get("setting") == Some(setting),
            "{} was found with other settings: give another folder (--into), or remove it",
            path.display()
        );
        Ok(value.get("found").cloned())
    }

    pub(crate) fn keep_found(&self, name: &str, setting: &Setting, found: &Setting) -> Result<()> {
        self.write(name, &json!({ "setting": setting, "found": found }))
    }

    /// All of it or nothing: a run may be stopped at any moment.
    fn write(&self, name: &str, value: &Value) -> Result<()> {
        let (path, draft) = (self.path(name), self.folder.join(format!("{name}.draft")));
        fs::write(&draft, format!("{value:#}\n"))?;
        Ok(fs::rename(draft, path)?)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::carrera::plan::{Shape, Way, Workload};

    const POINT: Point =
        Point { workload: Workload::Static, shape: Shape::Steady(200), way: Way::Hybrid };

    fn record() -> Record {
        let window = Duration::ZERO..Duration::from_secs(2);
        let mut tally = Tally::new(window, &[1]);
        tally.on_begun(Duration::from_millis(300), true);
        let setting = Setting::from([("pace".to_owned(), 0.05)]);
        Record::of(POINT, &setting, &tally, Used { server: 1.5, emulator: 0.25 })
    }

    /// A folder of its own for each test.
    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("bine-carrera-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn a_point_is_found_as_it_was_kept() {
        let folder = folder("kept");
        let raw = Raw::open(&folder).unwrap();
        let record = record();
        assert_eq!(raw.find(POINT, &record.setting).unwrap(), None);
        raw.keep(&record).unwrap();
        assert_eq!(raw.find(POINT, &record.setting).unwrap(), Some(record.clone()));
        assert_eq!(record.slots.len(), 2);
        let other = Setting::from([("pace".to_owned(), 1.0)]);
        let refused = raw.find(POINT, &other).unwrap_err().to_string();
        assert!(refused.contains("--into"), "{refused}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_was_found_is_kept_with_its_setting() {
        let folder = folder("found");
        let raw = Raw::open(&folder).unwrap();
        let setting = Setting::from([("pace".to_owned(), 0.05)]);
        let found = Setting::from([("rate".to_owned(), 12.5)]);
        assert_eq!(raw.found("saturation-static", &setting).unwrap(), None);
        raw.keep_found("saturation-static", &setting, &found).unwrap();
        assert_eq!(raw.found("saturation-static", &setting).unwrap(), Some(found));
        assert!(raw.found("saturation-static", &Setting::new()).is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn every_figure_that_is_told_has_a_name() {
        let record = record();
        for name in
            ["begun", "late", "completed-requests", "page-wait-p99", "refusal-p100", "closed-idle"]
        {
            assert!(!record.figure(name).is_nan(), "{name}");
        }
    }
}
