//! Decides how figures 3 to 9 of document 001 are measured again: what a server completes when more come than it can
//! serve.

mod ballast;
mod figures;
mod mixture;
mod origin;
mod plan;
mod raw;
mod report;
mod site;
mod summary;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};

use crate::arguments::Arguments;
use crate::emulator::{PATIENCE, Run, Stretch, Tally};
use crate::machine;
use crate::tools::{Workshop, come_first, leave_core_0};
use ballast::Ballast;
use mixture::Mixture;
use origin::{Place, Version};
use plan::{Point, Shape, Way, Workload, points};
use raw::{Raw, Record, Setting, Used};
use site::Sites;

pub(crate) const OPTIONS: [&str; 13] = [
    "--only",
    "--ways",
    "--loads",
    "--seconds",
    "--pace",
    "--share",
    "--scale",
    "--think",
    "--delay",
    "--hashes",
    "--seed",
    "--into",
    "--plots",
];
/// Sockets of visitors at one time.
const SOCKETS: usize = 15_000;
/// Visitors who are always there while it is found what the hybrid can do; they do not think.
const CROWD: usize = 64;
/// So many come in a second, that who leaves is followed at once.
const CROWD_RATE: [f64; 2] = [20_000.0, 500.0];
/// How long this takes, and when what is done begins to count: all are elsewhere in their sessions by then.
const CROWD_TIME: Duration = Duration::from_secs(30);
const CROWD_FROM: Duration = Duration::from_secs(10);
/// Of its core, that the emulator may need before it is told that it may be the limit.
const MOST_OF_A_CORE: f64 = 0.8;

/// What all points of this run share.
struct Carrera {
    shop: Workshop,
    place: Place,
    sites: Sites,
    seconds: u64,
    seed: u64,
    mixture: Mixture,
}

/// Who comes.
struct Crowd {
    load: Vec<Stretch>,
    window: std::ops::Range<Duration>,
    /// At one time.
    sockets: usize,
    is_in_a_hurry: bool,
}

/// Where a workload saturates the hybrid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Found {
    /// New sessions per second.
    pub(crate) rate: f64,
    /// Requests or pages per second, by [`figures::UNITS`].
    pub(crate) capacity: f64,
}

/// Measures what is not yet in the folder, and writes tables and figures of all that is. What another version, or other
/// options, have brought there is measured anew, or with `is_mixed` taken.
pub(crate) fn run(arguments: &Arguments, is_mixed: bool) -> Result<()> {
    let loads = arguments.numbers("--loads", &[50, 75, 100, 150, 200, 400])?;
    let parts = arguments.names("--only").unwrap_or_else(|| vec!["static", "dynamic", "surge"]);
    let (workloads, has_surge) = workloads(&parts)?;
    let shop = Workshop::open()?;
    let place = Place::of(&shop.root);
    let sites = Sites::open(&shop, &workloads, arguments)?;
    let is_of_one = Version::of(&shop.root) == place.version;
    ensure!(is_of_one, "what is built was changed while it was built: begin again");
    let ways = ways(arguments)?;
    let mut carrera = Carrera {
        seconds: arguments.number("--seconds", 60)?,
        seed: arguments.number("--seed", 1)?,
        mixture: Mixture::new(is_mixed),
        shop,
        place,
        sites,
    };
    let folder = arguments
        .word("--into")
        .map_or_else(|| carrera.shop.target.join("bench/carrera"), PathBuf::from);
    let plots = arguments.word("--plots").map_or_else(|| folder.clone(), PathBuf::from);
    let raw = Raw::open(&folder, &carrera.place.version)?;
    let facts = machine::facts();
    leave_core_0()?;
    eprintln!("version {}", carrera.place.version);

    let mut found = Vec::new();
    for workload in workloads.iter().copied() {
        found.push((workload, carrera.saturation(workload, &raw)?));
    }
    let mut points = points(&workloads, &ways, &loads, has_surge);
    if !parts.contains(&"dynamic") {
        points.retain(|point| point.workload == Workload::Static || point.shape == Shape::Surge);
    }
    let mut records = Vec::new();
    let mut missing = Vec::new();
    for point in points {
        let kept = raw.find(point, &carrera.setting(point, &found))?;
        match carrera.mixture.take(&point.to_string(), kept) {
            Some(record) => records.push(record),
            None => missing.push(point),
        }
    }
    let machine = machine_of(&folder, facts, records.is_empty())?;
    let mut left: Duration = missing.iter().map(|point| point.time(carrera.seconds)).sum();
    eprintln!(
        "{} points, {} of them measured before; about {} minutes; kept in {}",
        records.len() + missing.len(),
        records.len(),
        left.as_secs().div_ceil(60),
        folder.display()
    );
    for point in missing {
        eprintln!("{} s left: {point}", left.as_secs());
        let measured = carrera.measure(point, &found);
        let record = measured.with_context(|| {
            format!("{point} was not measured; the same command goes on with it")
        })?;
        raw.keep(&record)?;
        records.push(record);
        left = left.saturating_sub(point.time(carrera.seconds));
    }
    println!("{}", report::write(&records, &found, &carrera.stated(&machine), &plots)?);
    judge(&records)
}

/// The longest sessions of each class but the last, in pages.
pub(crate) const fn bounds(workload: Workload) -> &'static [u64] {
    match workload {
        Workload::Static => &[1, 2, 4],
        Workload::Dynamic => &[10, 30, 100],
    }
}

fn workloads(parts: &[&str]) -> Result<(Vec<Workload>, bool)> {
    for part in parts {
        let is_known = ["static", "dynamic", "surge"].contains(part);
        ensure!(is_known, "--only {part}: there are static, dynamic, surge");
    }
    let has_surge = parts.contains(&"surge");
    let mut workloads = Workload::ALL.to_vec();
    workloads.retain(|workload| {
        parts.contains(&workload.name()) || (has_surge && *workload == Workload::Dynamic)
    });
    Ok((workloads, has_surge))
}

fn ways(arguments: &Arguments) -> Result<Vec<Way>> {
    let Some(names) = arguments.names("--ways") else { return Ok(Way::ALL.to_vec()) };
    names.into_iter().map(str::parse).collect()
}

/// The machine as it was when the first of the points was measured: now, if all are.
fn machine_of(folder: &Path, facts: String, is_begun: bool) -> Result<String> {
    let path = folder.join("machine.txt");
    if is_begun || !path.exists() {
        fs::write(&path, facts)?;
    }
    Ok(fs::read_to_string(path)?)
}

/// What no load excuses.
fn judge(records: &[Record]) -> Result<()> {
    let named = |is_faulty: &dyn Fn(&Record) -> bool| -> String {
        let names = records.iter().filter(|record| is_faulty(record));
        names.map(|record| record.point.to_string()).collect::<Vec<_>>().join(", ")
    };
    let closing =
        named(&|record| record.point.way != Way::Pool && record.figure("closed-idle") > 0.0);
    ensure!(closing.is_empty(), "the hybrid closed connections that were idle: {closing}");
    let wrong =
        named(&|record| record.point.workload == Workload::Static && record.figure("wrong") > 0.0);
    ensure!(wrong.is_empty(), "files were not found, or worse: {wrong}");
    Ok(())
}

impl Carrera {
    /// What the figures of a point depend on besides the point.
    fn setting(&self, point: Point, found: &[(Workload, Found)]) -> Setting {
        let mut setting = self.sites.setting(point.workload);
        setting.insert("seconds".to_owned(), self.seconds as f64);
        setting.insert("sessions/s that saturate".to_owned(), rate(point, found));
        setting
    }

    fn stated(&self, machine: &str) -> String {
        format!(
            "{machine}\n\nServer on core 0, visitors on core 1. Each point: {} s that count, and before and after half of \
             it (of the auction as much), in which as many come. A visitor waits {} s for an answer. {}{}",
            self.seconds,
            PATIENCE.as_secs(),
            self.sites.stated(),
            self.mixture.stated(),
        )
    }

    /// Finds how much the hybrid can do: as many are always there as it has work for, and none of them thinks.
    ///
    /// Sessions run to their end meanwhile, so pages have the shares that they have in sessions. Where more come than can
    /// be served, most are at their beginning, where pages cost less.
    fn saturation(&mut self, workload: Workload, raw: &Raw) -> Result<Found> {
        let name = format!("saturation-{}", workload.name());
        let setting = self.sites.setting(workload);
        let kept = raw.found(&name, &setting)?;
        if let Some(found) = self.mixture.take(&name, kept) {
            let of = |name: &str| found.get(name).copied().with_context(|| format!("no {name}"));
            return Ok(Found { rate: of("rate")?, capacity: of("capacity")? });
        }
        let crowd = Crowd {
            load: vec![Stretch { length: CROWD_TIME, rate: CROWD_RATE[workload as usize] }],
            window: CROWD_FROM..CROWD_TIME,
            sockets: CROWD,
            is_in_a_hurry: true,
        };
        let place = self.place.clone();
        let (emulated, origin) = place.tell(|| self.emulate(workload, Way::Hybrid, crowd));
        let (tally, used) = emulated?;
        let done = match workload {
            Workload::Static => tally.pages.count() + tally.files.count(),
            Workload::Dynamic => tally.pages.count(),
        };
        let capacity = done as f64 / CROWD_TIME.saturating_sub(CROWD_FROM).as_secs_f64();
        let rate = capacity / self.sites.work_of_a_session(workload);
        // Few digits come back from a file as they were, and a point's setting is compared with that of the file.
        let [rate, capacity] = [rate, capacity].map(|figure| (figure * 1e4).round() / 1e4);
        for complaint in &tally.told {
            eprintln!("{name}: {complaint}");
        }
        let [server, emulator] =
            [used.server, used.emulator].map(|used| 100.0 * used / CROWD_TIME.as_secs_f64());
        eprintln!(
            "{name}: {capacity:.0} {}/s, which are {rate:.1} sessions/s; server {server:.0} %, visitors {emulator:.0} % of a core",
            figures::UNITS[workload as usize]
        );
        ensure!(
            capacity > 0.0,
            "the hybrid answered nothing; what it said is in {}",
            self.shop.work.display()
        );
        let pairs = [("rate", rate), ("capacity", capacity)];
        let pairs = pairs.map(|(name, figure)| (name.to_owned(), figure));
        raw.keep_found(&name, (&setting, &origin), &Setting::from(pairs))?;
        Ok(Found { rate, capacity })
    }

    fn measure(&mut self, point: Point, found: &[(Workload, Found)]) -> Result<Record> {
        let load = point.load(self.seconds, rate(point, found));
        let window = point.window(self.seconds);
        let length: Duration = load.iter().map(|stretch| stretch.length).sum();
        let crowd = Crowd { load, window, sockets: SOCKETS, is_in_a_hurry: false };
        let place = self.place.clone();
        let (emulated, origin) = place.tell(|| self.emulate(point.workload, point.way, crowd));
        let (tally, used) = emulated?;
        let share = used.emulator / length.as_secs_f64();
        if share > MOST_OF_A_CORE {
            eprintln!(
                "{point}: visitors needed {:.0} % of their core, so they may be the limit",
                100.0 * share
            );
        }
        if tally.turned_away > 0 {
            eprintln!("{point}: {} found no socket", tally.turned_away);
        }
        for complaint in &tally.told {
            eprintln!("{point}: {complaint}");
        }
        let record = Record::of(point, &self.setting(point, found), &tally, used);
        Ok(record.with_origin(origin))
    }

    /// A server of its own, and visitors who come to it.
    fn emulate(&mut self, workload: Workload, way: Way, crowd: Crowd) -> Result<(Tally, Used)> {
        let is_in_a_hurry = crowd.is_in_a_hurry;
        let running = self.sites.start(&self.shop, workload, way)?;
        let run = Run {
            port: running.port,
            load: crowd.load,
            window: crowd.window,
            patience: PATIENCE,
            sockets: crowd.sockets,
            seed: self.seed,
            bounds: bounds(workload),
        };
        // All servers are asked the same.
        self.sites.begin_again();
        let before = running.cpu()?;
        let ballast = Ballast::leaving(self.sites.share(workload))?;
        let sites = &mut self.sites;
        // On a thread of its own, so that servers do not inherit that it comes first. Without this five hundred threads of
        // a pool would slow it: what one session of processes gets of a core follows how many of its threads want each.
        let visit = move || -> Result<(Tally, f64)> {
            come_first().context("visitors must come first on their core: run as root")?;
            let begun = cpu();
            let tally =
                run.emulate(&mut |number| sites.visitor(workload, number, is_in_a_hurry))?;
            Ok((tally, cpu() - begun))
        };
        let visited = std::thread::scope(|scope| scope.spawn(visit).join());
        let (tally, emulator) =
            visited.map_err(|_| anyhow::anyhow!("the visitors' thread has panicked"))??;
        let used = Used { server: running.cpu()? - before, emulator };
        drop(ballast);
        running.stop()?;
        Ok((tally, used))
    }
}

fn rate(point: Point, found: &[(Workload, Found)]) -> f64 {
    let own = found.iter().find(|(workload, _)| *workload == point.workload);
    own.map_or(0.0, |(_, found)| found.rate)
}

/// Of this thread, in seconds.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
