//! The example `auction`: its data, its work and its command; and the same with its tables in
//! `PostgreSQL`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::data_folder::{self, DataFolder};
use crate::postgres::{Postgres, require_postgres};
use crate::servers::Running;
use crate::tools::Workspace;

/// The data and the work of the auction.
#[derive(Clone, Copy)]
pub(crate) struct Auction {
    /// The size of the data; 1 is that of `RUBiS`.
    pub(crate) scale: f64,
    /// Milliseconds that a page waits, and kilobytes that it hashes.
    pub(crate) delay: u64,
    pub(crate) hashes: u64,
}

impl Auction {
    /// The command of the example with these data at this port, without further options.
    pub(crate) fn bine(self, workspace: &Workspace, port: u16) -> Vec<String> {
        let program = workspace.bine("examples/auction").display().to_string();
        let mut words = vec![
            "env".to_owned(),
            format!("AUCTION_SCALE={}", self.scale),
            format!("AUCTION_DELAY_MS={}", self.delay),
            format!("AUCTION_HASHES={}", self.hashes),
            program,
        ];
        words.extend(["--listen".to_owned(), format!("127.0.0.1:{port}")]);
        words
    }
}

/// The folder of the auction on `PostgreSQL`.
const PEER: &str = "auction-postgres";
/// Its databases: one with the initial data, and a copy for a server. The third is `PostgreSQL`'s own.
const FILLED: &str = "filled";
const COPY: &str = "auction";
const EMPTY: &str = "template0";
/// Connections to the database, fewer than the threads of a pool, as a pool of connections has.
const CONNECTIONS: &str = "50";

/// The auction whose tables are in `PostgreSQL`: its program and a running database.
pub(crate) struct AuctionDatabase {
    // Before the folder, so that it ends before its files are removed.
    server: Postgres,
    program: String,
    scale: f64,
    _folder: DataFolder,
}

impl AuctionDatabase {
    /// Builds the program, starts the database and fills it. Call only from the main thread.
    pub(crate) fn open(workspace: &Workspace, scale: f64) -> Result<Self> {
        require_postgres()?;
        workspace.build_peer_in(PEER)?;
        let folder = DataFolder::create(Path::new(data_folder::PARENT))?;
        let server = Postgres::start(workspace, &folder.of("postgres"))?;
        let program = workspace.peer_folder(PEER).join("release/bine-bench-auction-postgres");
        let program = program.display().to_string();
        let own = Self { server, program, scale, _folder: folder };
        own.server.copy_database(EMPTY, FILLED)?;
        eprintln!("filling the tables of PostgreSQL, which takes a minute at a scale of 0.1");
        let mut words = own.words(FILLED).into_iter();
        let mut command = Command::new(words.next().context("no command")?);
        let status = command.args(words).arg("fill").status()?;
        ensure!(status.success(), "the tables were not filled: {status}");
        Ok(own)
    }

    /// The command of the program with fresh data, at this port, without further options. An earlier
    /// server must have ended.
    pub(crate) fn command(&self, port: u16) -> Result<Vec<String>> {
        self.server.copy_database(FILLED, COPY)?;
        let mut words = self.words(COPY);
        words.extend(["--listen".to_owned(), format!("127.0.0.1:{port}")]);
        Ok(words)
    }

    /// The process of the database.
    pub(crate) const fn running(&self) -> &Running {
        &self.server.running
    }

    /// The version of the driver, for the facts of a run.
    pub(crate) fn versions(workspace: &Workspace) -> String {
        let driver = workspace.locked_versions(PEER, &["postgres"]);
        format!("{}; the driver {driver}", crate::postgres::version().unwrap_or_default())
    }

    fn words(&self, database: &str) -> Vec<String> {
        vec![
            "env".to_owned(),
            format!("AUCTION_POSTGRES={}", self.server.place(database)),
            format!("AUCTION_CONNECTIONS={CONNECTIONS}"),
            format!("AUCTION_SCALE={}", self.scale),
            self.program.clone(),
        ]
    }
}
