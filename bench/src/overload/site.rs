//! The servers, the content and the visitors of each workload.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::plan::{OverloadSelection, Variant, Workload};
use super::raw::Setting;
use super::servlet::ServletPort;
use crate::arguments::Arguments;
use crate::auction::{Auction, AuctionDatabase};
use crate::emulator::script::{Page, Parts, Reader, Request, Script};
use crate::peer::Peer;
use crate::random::Random;
use crate::rubis::{Mix, PageSeen, Step, Walk};
use crate::servers::{Running, free_port};
use crate::surge::models::exponential;
use crate::surge::{Embedded, LONGEST_OFF, Surge};
use crate::tomcat::{self, TomcatSetting};
use crate::tools::Workspace;

/// The numbers of threads and workers in section 6 of Carrera et al.
const POOL: &str = "500";
const WORKERS: &str = "10";
/// In seconds, longer than any think time of SURGE: an earlier close is the server's own decision.
const IDLE: u64 = 75;
/// The mean number of pages of a bidding visitor (see [`crate::rubis`]).
const PAGES: f64 = 51.0;
/// Of a million users.
const USERS_OF_A_PERCENT: u64 = 10_000;
/// The path of the first file of the catalog.
const FIRST_FILE: &str = "/0.html";
/// The seed of the catalog of files, the same for all visitors.
const CATALOG: u64 = 1;

/// A started server.
pub(super) struct StartedSite {
    pub(super) running: Running,
    /// The port for visitors; that of `running` has no TLS.
    pub(super) port: u16,
}

/// Both sites and their parameters.
pub(super) struct Sites {
    surge: Surge,
    files: PathBuf,
    /// A factor for SURGE's times between requests.
    pace: f64,
    /// The percentage of core 0 that a server of files gets.
    share: u64,
    /// The size of the auction's data, in percent of that of `RUBiS`.
    scale: u64,
    /// Mean seconds between two pages of the auction.
    think: f64,
    /// Milliseconds that a page of the auction waits, and kilobytes that it hashes.
    delay: u64,
    hashes: u64,
    is_secure: bool,
    /// The auction of Tomcat; `None` if the run has no such points.
    servlet: Option<ServletPort>,
    /// The auction on `PostgreSQL`; `None` if the run has no such points.
    database: Option<AuctionDatabase>,
    /// The versions of what is not built here.
    versions: String,
}

impl Sites {
    /// Builds the servers and writes their files.
    pub(super) fn open(
        workspace: &Workspace,
        selection: &OverloadSelection,
        arguments: &Arguments,
        is_secure: bool,
    ) -> Result<Self> {
        if selection.workloads.contains(&Workload::Static) {
            workspace.build_bine(&["-p", "bine-cli"].map(OsStr::new))?;
        }
        let has_auction = selection.workloads.contains(&Workload::Dynamic);
        if has_auction {
            workspace.build_bine(&["--example", "auction"].map(OsStr::new))?;
        }
        if is_secure {
            workspace.make_certificate()?;
        }
        let scale = arguments.number("--scale", 10)?;
        ensure!(scale <= 100, "--scale {scale}: a percentage of RUBiS, at most 100");
        let surge = Surge::usual(CATALOG);
        let files = surge.write(&workspace.target.join("bench"))?;
        let pace = arguments.number("--pace", 25)? as f64 / 100.0;
        ensure!(
            pace * LONGEST_OFF < IDLE as f64,
            "--pace: some visitors would think longer than the idle timeout of {IDLE} s; 100 is SURGE's own pace"
        );
        let has_tomcat = selection.has_tomcat();
        if has_tomcat {
            tomcat::require_tomcat()?;
        }
        let servlet =
            (has_tomcat && has_auction).then(|| ServletPort::open(workspace)).transpose()?;
        let has_database = selection.workloads.contains(&Workload::Database);
        let of_scale = scale as f64 / 100.0;
        let database =
            has_database.then(|| AuctionDatabase::open(workspace, of_scale)).transpose()?;
        let tomcat = if has_tomcat { tomcat::version() } else { "no Tomcat".to_owned() };
        let versions = if has_database {
            format!("{tomcat}; {}", AuctionDatabase::versions(workspace))
        } else {
            tomcat
        };
        Ok(Self {
            surge,
            files,
            pace,
            share: arguments.number("--share", 6)?,
            scale,
            think: arguments.number("--think", 150)? as f64 / 1e3,
            delay: arguments.number("--delay", 2)?,
            hashes: arguments.number("--hashes", 500)?,
            is_secure,
            servlet,
            database,
            versions,
        })
    }

    /// Starts a server on core 0.
    pub(super) fn start(
        &self,
        workspace: &Workspace,
        workload: Workload,
        variant: Variant,
    ) -> Result<StartedSite> {
        let port = free_port()?;
        let secure = self.is_secure.then(free_port).transpose()?;
        let running = match variant.tomcat_threads() {
            Some(threads) => {
                let setting = TomcatSetting { port, threads, idle: IDLE * 1000, secure };
                self.start_tomcat(workspace, workload, &setting)
            }
            None => self.start_bine(workspace, workload, variant, (port, secure)),
        };
        let running = running.with_context(|| format!("{} did not start", variant.title()))?;
        if workload == Workload::Static {
            self.check_file(port).with_context(|| variant.title().to_owned())?;
        }
        Ok(StartedSite { running, port: secure.unwrap_or(port) })
    }

    fn start_tomcat(
        &self,
        workspace: &Workspace,
        workload: Workload,
        setting: &TomcatSetting,
    ) -> Result<Running> {
        match workload {
            Workload::Static => {
                let base = workspace.work.join(format!("tomcat-{}", setting.port));
                tomcat::write_base(workspace, &base, setting, Some(&self.files))?;
                let words = tomcat::command(&base, &[]);
                Running::start(&words, setting.port, FIRST_FILE, &base.join("log"))
            }
            Workload::Dynamic | Workload::Database => {
                let servlet = self.servlet.as_ref().context("the servlet is not compiled")?;
                servlet.start(workspace, setting, self.auction())
            }
        }
    }

    /// Starts Bine with a port for the first request, and one with TLS if visitors use it.
    fn start_bine(
        &self,
        workspace: &Workspace,
        workload: Workload,
        variant: Variant,
        (port, secure): (u16, Option<u16>),
    ) -> Result<Running> {
        let (mut words, ready) = match workload {
            Workload::Static => {
                let (program, files) = (workspace.bine("bine"), self.files.display());
                let words = [program.display().to_string(), "serve".to_owned(), files.to_string()];
                let listen = ["--listen".to_owned(), format!("127.0.0.1:{port}")];
                (words.into_iter().chain(listen).collect(), FIRST_FILE)
            }
            Workload::Dynamic => (self.auction().bine(workspace, port), "/"),
            Workload::Database => {
                let database = self.database.as_ref().context("no database is started")?;
                (database.command(port)?, "/")
            }
        };
        let (scheduler, workers) = match variant {
            Variant::Pool => ("pool", POOL),
            _ => ("hybrid", WORKERS),
        };
        let admission = if variant == Variant::Admission { "on" } else { "off" };
        let idle = format!("{IDLE}s");
        words.extend(["--scheduler", scheduler, "--workers", workers].map(str::to_owned));
        words.extend(["--idle-timeout", &idle, "--admission", admission].map(str::to_owned));
        words.extend(["--loops", "1", "--access-log", "off"].map(str::to_owned));
        if let Some(secure) = secure {
            let pem = workspace.certificate().display().to_string();
            let listen = format!("127.0.0.1:{secure},tls=on");
            words.extend(["--listen", &listen].map(str::to_owned));
            words.extend(["--certificate", &pem, "--certificate-key", &pem].map(str::to_owned));
        }
        let log = workspace.work.join(format!("overload-{port}.log"));
        Running::start(&words, port, ready, &log)
    }

    /// Fails if the server does not send the bytes of a file.
    fn check_file(&self, port: u16) -> Result<()> {
        let expected = fs::read(self.files.join(&FIRST_FILE[1..]))?;
        let mut peer = Peer::connect(port)?;
        let answer = peer.get(FIRST_FILE)?;
        ensure!(answer.ends_with(&expected), "{FIRST_FILE} has different bytes");
        Ok(())
    }

    fn auction(&self) -> Auction {
        Auction { scale: self.scale as f64 / 100.0, delay: self.delay, hashes: self.hashes }
    }

    /// Begins the sequence of visitors of this seed, so that the same ones arrive.
    pub(super) fn restart(&mut self, seed: u64) {
        self.surge.restart(seed);
    }

    /// The visitor of a seed with this number, in order. If `is_in_a_hurry`, without think times.
    pub(super) fn visitor(
        &mut self,
        workload: Workload,
        [seed, number]: [u64; 2],
        is_in_a_hurry: bool,
    ) -> Box<dyn Script> {
        let times = if is_in_a_hurry { 0.0 } else { 1.0 };
        match workload {
            Workload::Static => Box::new(Reader::new(self.surge.session(times * self.pace))),
            Workload::Dynamic | Workload::Database => Box::new(Bidder::new(
                seed.wrapping_mul(1_000_003) + number,
                self.scale * USERS_OF_A_PERCENT,
                Random::of(seed, number),
                times * self.think,
            )),
        }
    }

    /// The mean work of a session, in [`super::figures::UNITS`].
    pub(super) fn work_of_a_session(&mut self, workload: Workload) -> f64 {
        match workload {
            Workload::Static => self.surge.requests_of_a_session(),
            Workload::Dynamic | Workload::Database => PAGES,
        }
    }

    /// The server's percentage of core 0.
    pub(super) fn share(&self, workload: Workload) -> u64 {
        match workload {
            Workload::Static => self.share,
            Workload::Dynamic | Workload::Database => 100,
        }
    }

    /// The parameters of a workload's figures.
    pub(super) fn setting(&self, workload: Workload) -> Setting {
        let own = match workload {
            Workload::Static => vec![("pace", self.pace), ("share, %", self.share as f64)],
            Workload::Dynamic => vec![
                ("scale, %", self.scale as f64),
                ("think, s", self.think),
                ("delay, ms", self.delay as f64),
                ("hashes, KB", self.hashes as f64),
            ],
            Workload::Database => vec![("scale, %", self.scale as f64), ("think, s", self.think)],
        };
        let all = own.into_iter().chain([("TLS", f64::from(self.is_secure))]);
        all.map(|(name, figure)| (name.to_owned(), figure)).collect()
    }

    /// The parameters as text for reports.
    pub(super) fn stated(&self) -> String {
        format!(
            "*Static*: the times of SURGE between requests are multiplied by {}, so the longest is {} s, and the server \
             gets {} % of its core; a thread with a higher priority keeps the core busy otherwise. *Dynamic*: \
             visitors think for {} s on average (RUBiS: 7), a page waits for {} ms and hashes {} KB, in place of a \
             database; the data have {} % of the size of RUBiS. This needs fewer sockets. The idle timeout is {IDLE} s.{}{}",
            self.pace,
            self.pace * LONGEST_OFF,
            self.share,
            self.think,
            self.delay,
            self.hashes,
            self.scale,
            if self.is_secure {
                " All connections use TLS; a visitor who connects again resumes its session by a ticket."
            } else {
                ""
            },
            if self.database.is_some() {
                " *Dynamic on PostgreSQL*: a page does not wait and does not hash. Its queries block its thread; the \
                 database shares core 0 with the server and syncs each commit, and each point begins with a copy of the \
                 same data."
            } else {
                ""
            }
        )
    }

    /// The CPU seconds of a server so far, with those of the database.
    pub(super) fn cpu(&self, site: &StartedSite) -> Result<f64> {
        let database = self.database.as_ref().map_or(Ok(0.0), |own| own.running().cpu())?;
        Ok(site.running.cpu()? + database)
    }

    /// The versions of the programs that are not built here.
    pub(super) fn versions(&self) -> &str {
        &self.versions
    }
}

/// A session of the auction: the next page depends on the content of the last.
struct Bidder {
    walk: Walk,
    seen: PageSeen,
    random: Random,
    think: f64,
    pages: u64,
    length: u64,
}

impl Bidder {
    fn new(seed: u64, users: u64, random: Random, think: f64) -> Self {
        let walk = Walk::new(seed, Mix::Bidding).with_users(users);
        Self { walk, seen: PageSeen::default(), random, think, pages: 0, length: length(seed) }
    }
}

/// The number of pages of this session if every page shows the links that its visitor looks for.
///
/// A real session may be a little longer or shorter, but its class must not depend on the server:
/// classified by the pages received, all long sessions would be complete, because incomplete ones
/// would be short.
fn length(seed: u64) -> u64 {
    let one = || vec!["1".to_owned()];
    let page = PageSeen {
        images: Vec::new(),
        items: one(),
        buyable: one(),
        users: one(),
        categories: one(),
        regions: one(),
        local_searches: one(),
        next: None,
        pass: Some("1".to_owned()),
        least: Some(1),
    };
    let mut walk = Walk::new(seed, Mix::Bidding);
    let mut pages = 0;
    while let Step::Page(_) = walk.next(&page) {
        pages += 1;
    }
    pages
}

impl Script for Bidder {
    fn next(&mut self) -> Option<Page> {
        let Step::Page(request) = self.walk.next(&self.seen) else { return None };
        let wait = if self.pages == 0 { 0.0 } else { exponential(self.think, &mut self.random) };
        self.pages += 1;
        let request = Request { method: request.method, path: request.path, body: request.body };
        Some(Page { wait, request })
    }

    /// Fetches the images in sequence, and each image once for every time that the page shows it,
    /// like the emulator of `RUBiS`.
    fn parts(&mut self, body: &[u8]) -> Parts {
        self.seen = PageSeen::read(body);
        let images = std::mem::take(&mut self.seen.images).into_iter();
        let files = images.map(|path| Embedded { off: 0.0, path }).collect();
        Parts { files, is_pipelined: false }
    }

    fn reads(&self) -> bool {
        true
    }

    fn length(&self) -> u64 {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_at_the_home_page_and_fetches_its_images() {
        let mut bidder = Bidder::new(1, 100, Random::of(1, 1), 7.0);
        let page = bidder.next().unwrap();
        assert_eq!((page.wait, page.request), (0.0, Request::get("/")));
        let parts =
            bidder.parts(br#"<img src="/logo.svg"><img src="/bid.svg"><img src="/bid.svg">"#);
        let paths: Vec<&str> = parts.files.iter().map(|part| part.path.as_str()).collect();
        assert_eq!(paths, ["/logo.svg", "/bid.svg", "/bid.svg"]);
        assert!(bidder.next().unwrap().wait > 0.0);
    }

    #[test]
    fn plans_the_length_of_a_session_independently_of_responses() {
        let lengths: Vec<u64> = (0..2000).map(length).collect();
        let mean = lengths.iter().sum::<u64>() as f64 / 2000.0;
        assert!((mean - PAGES).abs() < 5.0, "{mean}");
        let mut bidder = Bidder::new(7, 100, Random::of(1, 1), 0.0);
        let before = bidder.length();
        bidder.next();
        bidder.parts(b"Service Unavailable");
        assert_eq!(bidder.length(), before);
    }

    #[test]
    fn visits_the_planned_number_of_pages_when_all_links_exist() {
        let page = br#"<a href="/items/1">i</a><a href="/items/1/buy">b</a><a href="/users/1">u</a>
            <a href="/categories/c">c</a><a href="/regions/r">r</a><a href="/regions/r/c">l</a>
            <input name="pass" value="p"><input name="amount" min="1">"#;
        for seed in 0..50 {
            let mut bidder = Bidder::new(seed, 100, Random::of(1, seed), 0.0);
            let mut pages = 0;
            while bidder.next().is_some() {
                bidder.parts(page);
                pages += 1;
            }
            assert_eq!(pages, bidder.length(), "seed {seed}");
        }
    }
}
