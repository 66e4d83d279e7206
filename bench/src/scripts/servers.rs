//! The servers with the pages, and the start of each server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::pages::{self, PAGES, ScriptPage};
use crate::arguments::Arguments;
use crate::peer::{Peer, address};
use crate::servers::{NginxListen, PHP, Running, filled, free_port, nginx};
use crate::tools::{Workspace, output, require};

/// A server with the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptServer {
    /// The application in `bench/programs/pages`, with tables of the store.
    BineTsx,
    /// `bench/programs/script_pages.rs`, with tables of the store.
    BineRust,
    /// nginx and php-fpm with opcache.
    Php,
    /// `node:http` with template strings.
    Node,
    /// `Bun.serve` with template strings.
    Bun,
}

/// The package that has the program of Bun.
const BUN: &str = "bun@1.4.5";
/// Enough workers to keep one core busy without waits.
const PHP_WORKERS: &str = "4";
const ROWS_PHP: &str = "fastcgi_pass unix:@WORK@/php.sock; fastcgi_keep_conn on; \
    fastcgi_param SCRIPT_FILENAME @WORK@/pages.php; fastcgi_param QUERY_STRING $query_string; \
    fastcgi_param REQUEST_METHOD $request_method;";

/// A server that is ready to be started.
pub(super) struct Started {
    pub(super) server: ScriptServer,
    /// Its program.
    program: PathBuf,
    /// The folder of the server's tables.
    data: PathBuf,
}

impl ScriptServer {
    const ALL: [Self; 5] = [Self::BineTsx, Self::BineRust, Self::Php, Self::Node, Self::Bun];

    pub(super) fn chosen(arguments: &Arguments) -> Result<Vec<Self>> {
        let Some(names) = arguments.names("--only") else { return Ok(Self::ALL.to_vec()) };
        let named = |name| Self::ALL.into_iter().find(|server| server.name() == name);
        names
            .into_iter()
            .map(|name| named(name).with_context(|| format!("`{name}` is no server; see --help")))
            .collect()
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::BineTsx => "bine-tsx",
            Self::BineRust => "bine-rust",
            Self::Php => "php",
            Self::Node => "node",
            Self::Bun => "bun",
        }
    }

    /// Whether it is not ours.
    pub(super) const fn is_peer(self) -> bool {
        matches!(self, Self::Php | Self::Node | Self::Bun)
    }

    /// Checks that the server is installed, and fills its tables. `programs` is the folder of our
    /// own programs. `head` is the end of the head of each page.
    pub(super) fn prepare(
        self,
        workspace: &Workspace,
        programs: &Path,
        head: &str,
    ) -> Result<Started> {
        let program = match self {
            Self::BineTsx => programs.join("bine"),
            Self::BineRust => programs.join("examples/script-pages"),
            Self::Php => {
                require("nginx", "nginx")?;
                require(PHP, "php-fpm")?;
                let script = workspace.root.join("bench/peers/scripts/pages.php");
                let script = fs::read_to_string(script)?.replace("@HEAD@", head);
                fs::write(workspace.work.join("pages.php"), script)?;
                workspace.make_file(1)?;
                PHP.into()
            }
            Self::Node => {
                require("node", "nodejs")?;
                "node".into()
            }
            Self::Bun => bun(workspace)?,
        };
        if !self.is_peer() {
            ensure!(program.is_file(), "{} is missing", program.display());
        }
        let data = workspace.work.join(format!("{}-data", self.name()));
        let started = Started { server: self, program, data };
        if self == Self::BineTsx {
            copy_application(workspace)?;
        }
        if !self.is_peer() {
            started.fill(workspace)?;
        }
        Ok(started)
    }
}

/// Copies the application, because a server writes next to it.
fn copy_application(workspace: &Workspace) -> Result<()> {
    let to = workspace.work.join("site/pages");
    fs::create_dir_all(&to)?;
    for entry in fs::read_dir(workspace.root.join("bench/programs/pages"))? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// The program of Bun, installed below the folder of cargo's output.
fn bun(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target.join("bench/bun");
    let program = folder.join("node_modules/.bin/bun");
    if !program.is_file() {
        require("npm", "npm")?;
        fs::create_dir_all(&folder)?;
        let mut command = Command::new("npm");
        command.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&folder).arg(BUN);
        output(&mut command)?;
    }
    // Fails here if the program is for a different processor.
    output(Command::new(&program).arg("--version"))?;
    Ok(program)
}

impl Started {
    /// The command of the server on this port.
    pub(super) fn command(&self, workspace: &Workspace, port: u16) -> Result<Vec<String>> {
        let (program, data) = (self.program.display().to_string(), self.data.display().to_string());
        let listen = address(port).to_string();
        let common = ["--listen", &listen, "--loops", "1", "--access-log", "off", "--data", &data];
        let port = port.to_string();
        let rows = workspace.work.join("rows.json").display().to_string();
        let script = |name: &str| {
            let script = workspace.root.join("bench/peers/scripts").join(name);
            script.display().to_string()
        };
        let mut words = vec![program];
        match self.server {
            ScriptServer::BineTsx => {
                let site = workspace.work.join("site").display().to_string();
                words.extend([String::from("serve"), site]);
                words.extend(common.map(String::from));
            }
            ScriptServer::BineRust => words.extend(common.map(String::from)),
            ScriptServer::Node => words.extend([script("node.mjs"), port, rows]),
            ScriptServer::Bun => words.extend([script("bun.mjs"), port, rows]),
            ScriptServer::Php => {
                let pool = filled(workspace, "php-fpm.conf", &[("@WORKERS@", PHP_WORKERS)])?;
                // Both in one process group, so that both are counted and stopped.
                let start = r#""$0" --allow-to-run-as-root --nodaemonize -d opcache.enable=1 -d opcache.validate_timestamps=0 --fpm-config "$1" & shift; exec "$@""#;
                words = ["sh", "-c", start, PHP, &pool].map(String::from).to_vec();
                words.extend(nginx(workspace, &port, "1", ROWS_PHP, NginxListen::Plain)?);
            }
        }
        Ok(words)
    }

    fn start(&self, workspace: &Workspace) -> Result<Running> {
        let port = free_port()?;
        let log = workspace.work.join(format!("{}.log", self.server.name()));
        // A page of PHP has no `Content-Length`, which this check needs.
        let path = match self.server {
            ScriptServer::Php => String::from("/1.html"),
            server => PAGES[0].path(server),
        };
        Running::start(&self.command(workspace, port)?, port, &path, &log)
    }

    /// Inserts the rows, the newest last.
    fn fill(&self, workspace: &Workspace) -> Result<()> {
        let running = self.start(workspace)?;
        let mut peer = Peer::connect(running.port)?;
        let mut insert = |service: &str, rows: Vec<Value>| -> Result<()> {
            let path = format!("/pages/{service}");
            rows.iter().rev().try_for_each(|row| peer.post(&path, &row.to_string()).map(drop))
        };
        insert("addEntry", pages::entries())?;
        insert("addMessage", pages::messages())?;
        running.stop()
    }

    /// The bodies of the pages.
    pub(super) fn bodies(
        &self,
        workspace: &Workspace,
        pages: &[&ScriptPage],
    ) -> Result<Vec<String>> {
        let running = self.start(workspace)?;
        let mut bodies = Vec::new();
        for page in pages {
            let url = format!("http://127.0.0.1:{}{}", running.port, page.path(self.server));
            let mut command = Command::new("curl");
            command.args(["-sf", "--retry", "9", "--retry-all-errors", "--retry-delay", "1", &url]);
            bodies.push(output(&mut command).with_context(|| page.name)?);
        }
        running.stop()?;
        Ok(bodies)
    }
}

/// The versions of the peers, in one line.
pub(super) fn versions(started: &[Started]) -> String {
    let version = |started: &Started| {
        let program = &started.program;
        let option = if started.server == ScriptServer::Php { "-v" } else { "--version" };
        let text = output(Command::new(program).arg(option)).unwrap_or_default();
        let first = text.lines().next().unwrap_or("unknown").to_owned();
        format!("{} {first}", started.server.name())
    };
    let peers = started.iter().filter(|started| started.server.is_peer());
    format!("Peers: {}.", peers.map(version).collect::<Vec<_>>().join("; "))
}
