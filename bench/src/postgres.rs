//! Starts `PostgreSQL` of the Debian package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::machine::first_line;
use crate::servers::{Running, free_port};
use crate::tools::{Workspace, output};

/// Where Debian installs each version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// The system user of Debian's package. `PostgreSQL` refuses to run as root.
const SYSTEM_USER: &str = "postgres";
/// The user of all databases.
const USER: &str = "bench";

/// A server of databases that runs.
pub(crate) struct Postgres {
    pub(crate) running: Running,
    /// The folder of the server's socket.
    sockets: PathBuf,
}

/// Fails if it is not installed.
pub(crate) fn require_postgres() -> Result<()> {
    programs().map(drop)
}

/// The version, if it is installed.
pub(crate) fn version() -> Option<String> {
    let program = programs().ok()?.join("postgres").display().to_string();
    Some(first_line(&program, &["--version"]))
}

/// The programs of the newest installed `PostgreSQL`.
fn programs() -> Result<PathBuf> {
    let version = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let folders = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let newest = folders.map(|entry| entry.path()).max_by_key(version);
    let programs = newest.map(|folder| folder.join("bin"));
    programs
        .filter(|programs| programs.join("postgres").is_file())
        .context("PostgreSQL is missing: apt-get install postgresql")
}

impl Postgres {
    /// Starts it on core 0 with its files in this folder, which it creates at the first start.
    pub(crate) fn start(workspace: &Workspace, folder: &Path) -> Result<Self> {
        let programs = programs()?;
        let program = |name: &str| programs.join(name).display().to_string();
        let (rows, sockets) = (folder.join("rows"), folder.join("sockets"));
        let (rows_text, sockets_text) = (rows.display().to_string(), sockets.display().to_string());
        let user = unprivileged()?;
        if !folder.exists() {
            fs::create_dir(folder)?;
            let mut command = Command::new("install");
            command.args(["-d", "-m", "700"]);
            if !user.is_empty() {
                command.args(["-o", SYSTEM_USER, "-g", SYSTEM_USER]);
            }
            output(command.arg(&rows).arg(&sockets))?;
            let initdb = program("initdb");
            let words = [&*initdb, "-D", &rows_text, "-A", "trust", "-U", USER, "-E", "UTF8"];
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
        let running = Running::start_until(0, &words, port, &log, is_ready);
        Ok(Self { running: running.context("PostgreSQL did not start")?, sockets })
    }

    /// Replaces the database `to` by a copy of `from`, to which no client is connected.
    pub(crate) fn copy_database(&self, from: &str, to: &str) -> Result<()> {
        let programs = programs()?;
        let run = |name: &str, words: &[&str]| {
            let (sockets, port) =
                (self.sockets.display().to_string(), self.running.port.to_string());
            let mut command = Command::new(programs.join(name));
            output(command.args(["-h", &sockets, "-p", &port, "-U", USER]).args(words)).map(drop)
        };
        run("dropdb", &["--if-exists", "--force", to])?;
        run("createdb", &["--template", from, to])
    }

    /// The description of `database` for drivers.
    pub(crate) fn place(&self, database: &str) -> String {
        let (sockets, port) = (self.sockets.display(), self.running.port);
        format!("host={sockets} port={port} user={USER} dbname={database}")
    }
}

/// The prefix that runs a command as the user of `PostgreSQL`; empty if this process is not root.
fn unprivileged() -> Result<Vec<String>> {
    if output(Command::new("id").arg("-u"))?.trim() != "0" {
        return Ok(Vec::new());
    }
    let known = output(Command::new("id").args(["-u", SYSTEM_USER]));
    ensure!(known.is_ok(), "the user {SYSTEM_USER} is missing: apt-get install postgresql");
    let (user, group) = (format!("--reuid={SYSTEM_USER}"), format!("--regid={SYSTEM_USER}"));
    // A change of the user removes the signal at the death of the parent.
    let words = ["setpriv", &user, &group, "--clear-groups", "--pdeathsig", "TERM"];
    Ok(words.map(str::to_owned).to_vec())
}

fn run(user: &[String], words: &[&str]) -> Result<()> {
    let all: Vec<&str> = user.iter().map(String::as_str).chain(words.iter().copied()).collect();
    // The user of `PostgreSQL` may not have access to the working directory.
    output(Command::new(all[0]).args(&all[1..]).current_dir("/")).map(drop)
}
