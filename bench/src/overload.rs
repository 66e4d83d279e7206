//! Measures figures 3 to 9 of Carrera et al., "A hybrid web server architecture for e-commerce",
//! again: the sessions that a server completes under overload.

mod claims;
mod figures;
mod groups;
mod plan;
mod raw;
mod report;
mod reuse;
mod servlet;
mod site;
mod summary;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};

use crate::arguments::Arguments;
use crate::emulator::{PATIENCE, Run, Stretch, Tally};
use crate::limiter::CoreLimiter;
use crate::machine;
use crate::origin::{Place, Version};
use crate::tools::{Workspace, move_to_core_1, take_priority};
use plan::{OverloadSelection, Point, Variant, Workload};
use raw::{CpuTime, Raw, Record, Setting};
use reuse::ReusePolicy;
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
    "--seeds",
    "--into",
    "--plots",
];
/// Sockets of visitors at one time.
const SOCKETS: usize = 15_000;
/// The constant number of visitors while the saturation of the hybrid is measured; they do not
/// think.
const CROWD: usize = 64;
/// Arrivals per second, high enough to replace each leaving visitor at once.
const CROWD_RATE: [f64; 3] = [20_000.0, 500.0, 500.0];
/// The length of this measurement, and the beginning of the window: by then the visitors are spread
/// over their sessions. In a trial, both are a third.
const CROWD_TIME: Duration = Duration::from_secs(30);
const CROWD_FROM: Duration = Duration::from_secs(9);
/// The load before a point of Tomcat: a JVM at work for less is still compiling its code.
const WARM_UP: Duration = Duration::from_secs(8);
const WARM_UP_VISITORS: usize = 32;
/// The seeds of the crowd and of the warm-up; those of points differ, because a visitor of a seed
/// registers the same users again.
const CROWD_SEED: u64 = 1_000_001;
const WARM_UP_SEED: u64 = 1_000_002;
/// The defaults, in percent of saturation, and in seconds.
const LOADS: [u64; 6] = [25, 50, 100, 150, 200, 400];
const SEEDS: [u64; 3] = [1, 2, 3];
const SECONDS: u64 = 8;
/// The same for a trial.
const QUICK_LOADS: [u64; 1] = [200];
const QUICK_SECONDS: u64 = 3;
/// The share of a core that the emulator may use without a warning that it may be the limit.
const MOST_OF_A_CORE: f64 = 0.8;

/// The state shared by all points of this run.
struct Experiment {
    workspace: Workspace,
    place: Place,
    sites: Sites,
    seconds: u64,
    is_quick: bool,
    is_secure: bool,
    reuse: ReusePolicy,
}

/// The options without a value.
#[derive(Clone, Copy)]
pub(crate) struct Flags {
    /// A trial.
    pub(crate) is_quick: bool,
    /// Reuse results of different versions or options.
    pub(crate) is_mixed: bool,
    /// All connections use TLS.
    pub(crate) is_secure: bool,
}

/// The visitors of one run.
struct Visitors {
    load: Vec<Stretch>,
    window: std::ops::Range<Duration>,
    /// Open at one time.
    sockets: usize,
    is_in_a_hurry: bool,
    seed: u64,
}

/// The load that saturates the hybrid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Saturation {
    /// New sessions per second.
    pub(crate) rate: f64,
    /// Requests or pages per second, by [`figures::UNITS`].
    pub(crate) capacity: f64,
}

/// Measures the points that the folder lacks, and writes tables and figures of all points. Results
/// of a different version or of different options are measured again, or used if `is_mixed`.
pub(crate) fn run(arguments: &Arguments, flags: Flags) -> Result<()> {
    let selection = selection(arguments, flags)?;
    let workspace = Workspace::open()?;
    let place = Place::of(&workspace.root);
    let sites = Sites::open(&workspace, &selection, arguments, flags.is_secure)?;
    let is_of_one = Version::of(&workspace.root) == place.version;
    ensure!(is_of_one, "the sources changed during the build: start again");
    let seconds = if flags.is_quick { QUICK_SECONDS } else { SECONDS };
    let mut experiment = Experiment {
        seconds: arguments.number("--seconds", seconds)?,
        is_quick: flags.is_quick,
        is_secure: flags.is_secure,
        reuse: ReusePolicy::new(flags.is_mixed),
        workspace,
        place,
        sites,
    };
    let folder = folder(arguments, flags, &experiment.workspace.target);
    let plots = arguments.word("--plots").map_or_else(|| folder.clone(), PathBuf::from);
    let raw = Raw::open(&folder, &experiment.place.version)?;
    let facts = machine::facts_with(experiment.sites.versions());
    move_to_core_1()?;
    eprintln!("version {}", experiment.place.version);

    let mut found = Vec::new();
    for workload in selection.workloads.iter().copied() {
        found.push((workload, experiment.saturation(workload, &raw)?));
    }
    let mut records = Vec::new();
    let mut missing = Vec::new();
    for point in selection.points() {
        let kept = raw.find(point, &experiment.setting(point, &found))?;
        match experiment.reuse.take(&point.to_string(), kept) {
            Some(record) => records.push(record),
            None => missing.push(point),
        }
    }
    let machine = machine_of(&folder, facts, records.is_empty())?;
    let mut left: Duration = missing.iter().map(|point| experiment.time(*point)).sum();
    eprintln!(
        "{} points, {} of them already measured; about {} minutes; results are in {}",
        records.len() + missing.len(),
        records.len(),
        left.as_secs().div_ceil(60),
        folder.display()
    );
    for point in missing {
        eprintln!("{} s left: {point}", left.as_secs());
        let measured = experiment.measure(point, &found);
        let record = measured
            .with_context(|| format!("{point} was not measured; run the same command to resume"))?;
        raw.keep(&record)?;
        records.push(record);
        left = left.saturating_sub(experiment.time(point));
    }
    println!("{}", report::write(&records, &found, &experiment.stated(&machine), &plots)?);
    check_records(&records)
}

/// The longest sessions of each class except the last, in pages.
pub(crate) const fn bounds(workload: Workload) -> &'static [u64] {
    match workload {
        Workload::Static => &[1, 2, 4],
        Workload::Dynamic | Workload::Database => &[10, 30, 100],
    }
}

/// The folder of the raw data. Trials and runs with TLS have folders of their own, or they would
/// replace the results of a whole run.
fn folder(arguments: &Arguments, flags: Flags, target: &Path) -> PathBuf {
    let mut name = "bench/overload".to_owned();
    name += if flags.is_secure { "-tls" } else { "" };
    name += if flags.is_quick { "-quick" } else { "" };
    arguments.word("--into").map_or_else(|| target.join(name), PathBuf::from)
}

fn selection(arguments: &Arguments, flags: Flags) -> Result<OverloadSelection> {
    let default = ["static", "dynamic", "surge"];
    let default = if flags.is_quick { &default[..2] } else { &default[..] };
    let parts = arguments.names("--only").unwrap_or_else(|| default.to_vec());
    for part in &parts {
        let is_known = ["static", "dynamic", "surge", "postgres"].contains(part);
        ensure!(is_known, "--only {part}: use static, dynamic, surge or postgres");
    }
    let has = |part: &str| parts.contains(&part);
    let mut workloads = Workload::ALL.to_vec();
    workloads.retain(|workload| {
        has(workload.name()) || (has("surge") && *workload == Workload::Dynamic)
    });
    let mut selection = OverloadSelection {
        workloads,
        variants: variants(arguments)?,
        loads: arguments.numbers("--loads", if flags.is_quick { &QUICK_LOADS } else { &LOADS })?,
        seeds: arguments.numbers("--seeds", if flags.is_quick { &SEEDS[..1] } else { &SEEDS })?,
        has_steady: has("dynamic"),
        has_surge: has("surge"),
        is_quick: flags.is_quick,
    };
    for numbers in [&mut selection.loads, &mut selection.seeds] {
        numbers.sort_unstable();
        numbers.dedup();
    }
    let most = selection.seeds.last().copied().unwrap_or(0);
    ensure!(most < CROWD_SEED, "--seeds {most}: use seeds below {CROWD_SEED}");
    Ok(selection)
}

fn variants(arguments: &Arguments) -> Result<Option<Vec<Variant>>> {
    let Some(names) = arguments.names("--ways") else { return Ok(None) };
    names.into_iter().map(str::parse).collect::<Result<_>>().map(Some)
}

/// The description of the machine at the first measured point: now, if no point is measured yet.
fn machine_of(folder: &Path, facts: String, is_begun: bool) -> Result<String> {
    let path = folder.join("machine.txt");
    if is_begun || !path.exists() {
        fs::write(&path, facts)?;
    }
    Ok(fs::read_to_string(path)?)
}

/// Failures under any load.
fn check_records(records: &[Record]) -> Result<()> {
    let named = |is_faulty: &dyn Fn(&Record) -> bool| -> String {
        let names = records.iter().filter(|record| is_faulty(record));
        names.map(|record| record.point.to_string()).collect::<Vec<_>>().join(", ")
    };
    let closing = named(&|record| {
        let is_hybrid = matches!(record.point.variant, Variant::Hybrid | Variant::Admission);
        is_hybrid && record.figure("closed-idle") > 0.0
    });
    ensure!(closing.is_empty(), "the hybrid closed connections that were idle: {closing}");
    let wrong =
        named(&|record| record.point.workload == Workload::Static && record.figure("wrong") > 0.0);
    ensure!(wrong.is_empty(), "files had error responses: {wrong}");
    Ok(())
}

impl Experiment {
    /// The setting of a point: everything that its figures depend on.
    fn setting(&self, point: Point, found: &[(Workload, Saturation)]) -> Setting {
        let mut setting = self.sites.setting(point.workload);
        setting.insert("seconds".to_owned(), self.seconds as f64);
        setting.insert("sessions/s that saturate".to_owned(), rate(point, found));
        setting
    }

    /// The expected duration of a point.
    fn time(&self, point: Point) -> Duration {
        point.time(self.seconds, self.shorter(WARM_UP))
    }

    /// A third of `time` in a trial.
    fn shorter(&self, time: Duration) -> Duration {
        if self.is_quick { time / 3 } else { time }
    }

    fn stated(&self, machine: &str) -> String {
        format!(
            "{machine}\n\nServer on core 0, visitors on core 1. Each point counts {} s, after and before a margin of half \
             that length (for the auction, one and a half times that length) with the same load. A visitor waits {} s for \
             a response. {}{}",
            self.seconds,
            PATIENCE.as_secs(),
            self.sites.stated(),
            self.reuse.stated(),
        )
    }

    /// Measures the capacity of the hybrid: a constant number of visitors without think time.
    ///
    /// Sessions run to their end, so that pages have the same shares as in sessions. Under
    /// overload, most sessions are at their beginning, where pages cost less.
    fn saturation(&mut self, workload: Workload, raw: &Raw) -> Result<Saturation> {
        let name = format!("saturation-{}", workload.name());
        let mut setting = self.sites.setting(workload);
        let (length, from) = (self.shorter(CROWD_TIME), self.shorter(CROWD_FROM));
        setting.insert("crowd, s".to_owned(), length.as_secs_f64());
        let kept = raw.found(&name, &setting)?;
        if let Some(found) = self.reuse.take(&name, kept) {
            let of = |name: &str| found.get(name).copied().with_context(|| format!("no {name}"));
            return Ok(Saturation { rate: of("rate")?, capacity: of("capacity")? });
        }
        let crowd = Visitors {
            load: vec![Stretch { length, rate: CROWD_RATE[workload as usize] }],
            window: from..length,
            sockets: CROWD,
            is_in_a_hurry: true,
            seed: CROWD_SEED,
        };
        let place = self.place.clone();
        let (emulated, origin) = place.measure(|| self.emulate(workload, Variant::Hybrid, crowd));
        let (tally, used) = emulated?;
        let done = match workload {
            Workload::Static => tally.pages.count() + tally.files.count(),
            Workload::Dynamic | Workload::Database => tally.pages.count(),
        };
        let capacity = done as f64 / length.saturating_sub(from).as_secs_f64();
        let rate = capacity / self.sites.work_of_a_session(workload);
        // Rounded, so that the figure is the same after it is read from a file, and settings can be
        // compared.
        let [rate, capacity] = [rate, capacity].map(|figure| (figure * 1e4).round() / 1e4);
        for complaint in &tally.errors {
            eprintln!("{name}: {complaint}");
        }
        let [server, emulator] =
            [used.server, used.emulator].map(|used| 100.0 * used / length.as_secs_f64());
        eprintln!(
            "{name}: {capacity:.0} {}/s, which are {rate:.1} sessions/s; server {server:.0} %, visitors {emulator:.0} % of a core",
            figures::UNITS[workload as usize]
        );
        ensure!(
            capacity > 0.0,
            "the hybrid answered no request; its log is in {}",
            self.workspace.work.display()
        );
        let pairs = [("rate", rate), ("capacity", capacity)];
        let pairs = pairs.map(|(name, figure)| (name.to_owned(), figure));
        raw.keep_found(&name, (&setting, &origin), &Setting::from(pairs))?;
        Ok(Saturation { rate, capacity })
    }

    fn measure(&mut self, point: Point, found: &[(Workload, Saturation)]) -> Result<Record> {
        let load = point.load(self.seconds, rate(point, found));
        let window = point.window(self.seconds);
        let length: Duration = load.iter().map(|stretch| stretch.length).sum();
        let crowd =
            Visitors { load, window, sockets: SOCKETS, is_in_a_hurry: false, seed: point.seed };
        let place = self.place.clone();
        let (emulated, origin) =
            place.measure(|| self.emulate(point.workload, point.variant, crowd));
        let (tally, used) = emulated?;
        let share = used.emulator / length.as_secs_f64();
        if share > MOST_OF_A_CORE {
            eprintln!(
                "{point}: the emulator used {:.0} % of its core, so it may be the limit",
                100.0 * share
            );
        }
        if tally.turned_away > 0 {
            eprintln!("{point}: {} visitors had no socket", tally.turned_away);
        }
        for complaint in &tally.errors {
            eprintln!("{point}: {complaint}");
        }
        let record = Record::of(point, &self.setting(point, found), &tally, used);
        Ok(record.with_origin(origin))
    }

    /// Starts a server and runs visitors against it.
    fn emulate(
        &mut self,
        workload: Workload,
        variant: Variant,
        crowd: Visitors,
    ) -> Result<(Tally, CpuTime)> {
        let site = self.sites.start(&self.workspace, workload, variant)?;
        let is_tomcat = variant.tomcat_threads().is_some();
        if is_tomcat {
            self.visit(workload, site.port, self.warm_up(workload))?;
        }
        let before = self.sites.cpu(&site)?;
        let limiter = CoreLimiter::leaving(self.sites.share(workload))?;
        let (tally, emulator) = self.visit(workload, site.port, crowd)?;
        let used = CpuTime { server: self.sites.cpu(&site)? - before, emulator };
        drop(limiter);
        if !is_tomcat {
            site.running.stop()?;
        }
        // Tomcat would wait five seconds for its threads; the drop ends it at once.
        Ok((tally, used))
    }

    /// Visitors without think time, whose results do not count.
    fn warm_up(&self, workload: Workload) -> Visitors {
        let length = self.shorter(WARM_UP);
        Visitors {
            load: vec![Stretch { length, rate: CROWD_RATE[workload as usize] }],
            window: Duration::ZERO..length,
            sockets: WARM_UP_VISITORS,
            is_in_a_hurry: true,
            seed: WARM_UP_SEED,
        }
    }

    /// Runs visitors, and returns what they saw and their CPU time.
    fn visit(&mut self, workload: Workload, port: u16, crowd: Visitors) -> Result<(Tally, f64)> {
        let Visitors { seed, is_in_a_hurry, .. } = crowd;
        let run = Run {
            port,
            load: crowd.load,
            window: crowd.window,
            patience: PATIENCE,
            sockets: crowd.sockets,
            seed,
            is_secure: self.is_secure,
            bounds: bounds(workload),
        };
        // All servers get the same requests.
        self.sites.restart(seed);
        let sites = &mut self.sites;
        // On a separate thread, so that servers do not inherit its priority. Without the priority,
        // five hundred threads of a pool would slow the visitors down: the scheduler divides a core
        // by the number of threads that want it.
        let visit = move || -> Result<(Tally, f64)> {
            take_priority()
                .context("visitors need real-time priority on their core: run as root")?;
            let begun = cpu();
            let visitor = &mut |number| sites.visitor(workload, [seed, number], is_in_a_hurry);
            let tally = run.emulate(visitor)?;
            Ok((tally, cpu() - begun))
        };
        let visited = std::thread::scope(|scope| scope.spawn(visit).join());
        visited.map_err(|_| anyhow::anyhow!("the visitors' thread has panicked"))?
    }
}

fn rate(point: Point, found: &[(Workload, Saturation)]) -> f64 {
    let own = found.iter().find(|(workload, _)| *workload == point.workload);
    own.map_or(0.0, |(_, found)| found.rate)
}

/// The CPU time of this thread, in seconds.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
