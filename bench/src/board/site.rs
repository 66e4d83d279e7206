//! Builds and starts the contenders, each with its database.

use std::ffi::OsStr;
use std::fs;

use anyhow::{Context, Result};

use crate::board::plan::BoardServer;
use crate::board::pocketbase;
use crate::data_folder::DataFolder;
use crate::postgres::{self, Postgres, require_postgres};
use crate::servers::{Running, free_port};
use crate::tools::Workspace;

/// The folder of the programs on axum.
const PEER: &str = "board";
/// Connections of the pool to `PostgreSQL`.
pub(super) const POOL: &str = "8";
/// The most updates that a grouped transaction of `SQLite` commits.
const GROUP: &str = "64";
/// A page of all servers but `PocketBase`, which needs no table.
const READY: &str = "/plaintext";

/// A contender that runs.
pub(super) struct BoardSite {
    /// Its database first, if that is a separate server.
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
                require_postgres()?;
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
                let driver = workspace.locked_versions(PEER, &["tokio-postgres"]);
                Some(format!("{}; {driver}", postgres::version()?))
            }
            Self::PocketBase => Some(format!("PocketBase {}", pocketbase::VERSION)),
        }
    }

    /// Starts it on core 0, and waits for its first response.
    pub(super) fn start(self, workspace: &Workspace, data: &DataFolder) -> Result<BoardSite> {
        let (folder, port) = (data.of(self.name()), free_port()?);
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
                let database = Postgres::start(workspace, &folder)?;
                let place = database.place("postgres");
                vec![database.running, axum("postgres", &place, POOL)?]
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
