//! Builds and starts the contenders, each with its database.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::board::plan::BoardServer;
use crate::board::pocketbase;
use crate::machine::first_line;
use crate::servers::{Running, free_port};
use crate::tools::{Workspace, output};

/// The folder of the programs on axum.
const PEER: &str = "board";
/// Where Debian installs each version of `PostgreSQL`.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";
/// The system user of Debian's package. `PostgreSQL` refuses to run as root.
const POSTGRES_USER: &str = "postgres";
/// Connections of the pool to `PostgreSQL`.
pub(super) const POOL: &str = "8";
/// The most updates that a grouped transaction of `SQLite` commits.
const GROUP: &str = "64";
/// The name of a folder with tables, before the id of the process.
const PREFIX: &str = "bine-board-";
/// A page of all servers but `PocketBase`, which needs no table.
const READY: &str = "/plaintext";

/// The folder with the tables of all contenders: one disk for all. It is removed at the end.
pub(super) struct DataFolder(PathBuf);

impl DataFolder {
    /// Creates a folder in `parent`, and removes those of processes that were killed.
    pub(super) fn create(parent: &Path) -> Result<Self> {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(Ok(process)) = name.strip_prefix(PREFIX).map(str::parse::<u32>) else {
                continue;
            };
            if !Path::new(&format!("/proc/{process}")).exists() {
                // It may belong to another user, who removes it.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let folder = parent.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| {
            format!("cannot create {}: choose another folder by --data", folder.display())
        })?;
        Ok(Self(folder))
    }

    /// The type of the file system.
    pub(super) fn file_system(&self) -> String {
        first_line("findmnt", &["-n", "-o", "FSTYPE", "-T", &self.0.display().to_string()])
    }

    pub(super) fn of(&self, server: BoardServer) -> PathBuf {
        self.0.join(server.name())
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        // A folder that cannot be removed has a name that says whose it is.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A contender that runs.
pub(super) struct BoardSite {
    /// Its database first, if that is a server of its own.
    running: Vec<Running>,
    pub(super) port: u16,
}

impl BoardServer {
    /// Builds it, or checks that it is installed.
    pub(super) fn prepare(self, workspace: &Workspace) -> Result<()> {
        match self {
            Self::Bine => {
                let words = ["-p", "bine-bench", "--example", "board-cases"];
                workspace.build_bine(&words.map(OsStr::new))
            }
            Self::Sqlite | Self::SqliteGrouped => workspace.build_peer_in(PEER),
            Self::Postgres => {
                postgres_folder()?;
                workspace.build_peer_in(PEER)
            }
            Self::PocketBase => pocketbase::install(workspace).map(drop),
        }
    }

    /// The versions of the programs that are not built here.
    pub(super) fn version(self, workspace: &Workspace) -> Option<String> {
        match self {
            Self::Bine | Self::SqliteGrouped => None,
            Self::Sqlite => {
                Some(workspace.locked_versions(PEER, &["axum", "rusqlite", "libsqlite3-sys"]))
            }
            Self::Postgres => {
                let program = postgres_folder().ok()?.join("postgres").display().to_string();
                let own = first_line(&program, &["--version"]);
                Some(format!("{own}; {}", workspace.locked_versions(PEER, &["tokio-postgres"])))
            }
            Self::PocketBase => Some(format!("PocketBase {}", pocketbase::VERSION)),
        }
    }

    /// Starts it on core 0, and waits for its first response.
    pub(super) fn start(self, workspace: &Workspace, data: &DataFolder) -> Result<BoardSite> {
        let (folder, port) = (data.of(self), free_port()?);
        let log = workspace.work.join(format!("{}.log", self.name()));
        let listen = format!("127.0.0.1:{port}");
        let start = |words: &[String], path: &str| {
            let running = Running::start(words, port, path, &log);
            running.with_context(|| format!("{} did not start", self.title()))
        };
        let axum = |kind: &str, place: &str, count: &str| {
            let program = workspace.peer_folder(PEER).join("release/bine-bench-board");
            let program = program.display().to_string();
            start(&[&program, &listen, kind, place, count].map(str::to_owned), READY)
        };
        let running = match self {
            Self::Bine => {
                let program = workspace.bine("examples/board-cases").display().to_string();
                // All subscribers connect at once.
                let listen = format!("{listen},backlog=4096");
                let folder = folder.display().to_string();
                let own = ["--listen", &listen, "--loops", "1", "--access-log", "off"];
                // The peers accept all requests.
                let rest = ["--admission", "off", "--data", &folder];
                let words = [&[&*program][..], &own, &rest].concat();
                vec![start(&words.into_iter().map(str::to_owned).collect::<Vec<_>>(), READY)?]
            }
            Self::Sqlite | Self::SqliteGrouped => {
                fs::create_dir_all(&folder)?;
                let file = folder.join("rows.sqlite").display().to_string();
                let group = if self == Self::Sqlite { "1" } else { GROUP };
                vec![axum("sqlite", &file, group)?]
            }
            Self::Postgres => {
                let database = start_postgres(workspace, &folder)?;
                let sockets = folder.join("sockets");
                let place = format!(
                    "host={} port={} user=bench dbname=postgres",
                    sockets.display(),
                    database.port
                );
                vec![database, axum("postgres", &place, POOL)?]
            }
            Self::PocketBase => {
                let words = pocketbase::command(workspace, &folder, port)?;
                let running = start(&words, pocketbase::READY)?;
                pocketbase::fill(port, &workspace.work)?;
                vec![running]
            }
        };
        Ok(BoardSite { running, port })
    }
}

impl BoardSite {
    /// The CPU seconds of all its processes so far.
    pub(super) fn cpu(&self) -> Result<f64> {
        self.running.iter().map(Running::cpu).sum()
    }

    pub(super) fn stop(self) -> Result<()> {
        self.running.into_iter().rev().try_for_each(Running::stop)
    }

    /// Ends all its processes at once, as a crash does.
    pub(super) fn kill(mut self) -> Result<()> {
        self.running.iter_mut().try_for_each(Running::kill)
    }
}

/// The programs of the newest installed `PostgreSQL`.
fn postgres_folder() -> Result<PathBuf> {
    let version = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let folders = fs::read_dir(POSTGRES_VERSIONS).into_iter().flatten().flatten();
    let newest = folders.map(|entry| entry.path()).max_by_key(version);
    let programs = newest.map(|folder| folder.join("bin"));
    programs
        .filter(|programs| programs.join("postgres").is_file())
        .context("PostgreSQL is missing: apt-get install postgresql")
}

/// Creates the cluster at the first start.
fn start_postgres(workspace: &Workspace, folder: &Path) -> Result<Running> {
    let programs = postgres_folder()?;
    let program = |name: &str| programs.join(name).display().to_string();
    let (rows, sockets) = (folder.join("rows"), folder.join("sockets"));
    let (rows_text, sockets_text) = (rows.display().to_string(), sockets.display().to_string());
    let user = unprivileged()?;
    if !folder.exists() {
        fs::create_dir(folder)?;
        let mut command = Command::new("install");
        command.args(["-d", "-m", "700"]);
        if !user.is_empty() {
            command.args(["-o", POSTGRES_USER, "-g", POSTGRES_USER]);
        }
        output(command.arg(&rows).arg(&sockets))?;
        let initdb = program("initdb");
        let words = [&*initdb, "-D", &rows_text, "-A", "trust", "-U", "bench", "-E", "UTF8"];
        run(&user, &[&words[..], &["--locale", "C"]].concat())?;
    }
    let port = free_port()?;
    let port_text = port.to_string();
    let postgres = program("postgres");
    let place = [&*postgres, "-D", &rows_text, "-k", &sockets_text, "-p", &port_text];
    // All else is the default: each commit is synced. The planner's default cost of a random read is
    // that of a rotating disk.
    let settings =
        ["-c", "listen_addresses=", "-c", "shared_buffers=256MB", "-c", "random_page_cost=1.1"];
    let own = place.into_iter().chain(settings).map(str::to_owned);
    let words: Vec<String> = user.iter().cloned().chain(own).collect();
    let ready = program("pg_isready");
    let is_ready = || {
        let mut command = Command::new(&ready);
        command.args(["--quiet", "-h", &sockets_text, "-p", &port_text]);
        output(&mut command).map(drop)
    };
    let log = workspace.work.join("postgres.log");
    Running::start_until(0, &words, port, &log, is_ready).context("PostgreSQL did not start")
}

/// The command that runs another one as the user of `PostgreSQL`; empty if this process is not root.
fn unprivileged() -> Result<Vec<String>> {
    if output(Command::new("id").arg("-u"))?.trim() != "0" {
        return Ok(Vec::new());
    }
    let known = output(Command::new("id").args(["-u", POSTGRES_USER]));
    ensure!(known.is_ok(), "the user {POSTGRES_USER} is missing: apt-get install postgresql");
    let (user, group) = (format!("--reuid={POSTGRES_USER}"), format!("--regid={POSTGRES_USER}"));
    // A change of the user removes the signal at the death of the parent.
    let words = ["setpriv", &user, &group, "--clear-groups", "--pdeathsig", "TERM"];
    Ok(words.map(str::to_owned).to_vec())
}

fn run(user: &[String], words: &[&str]) -> Result<()> {
    let all: Vec<&str> = user.iter().map(String::as_str).chain(words.iter().copied()).collect();
    // The working directory may be closed to the other user.
    output(Command::new(all[0]).args(&all[1..]).current_dir("/")).map(drop)
}
