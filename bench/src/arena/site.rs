//! Builds and starts the servers.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Error, Result, ensure};

use super::cases::{ArenaCase, SUM};
use crate::machine::first_line;
use crate::servers::{Running, free_port, nginx_with};
use crate::tools::{Workspace, require};

/// A measured server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArenaServer {
    Bine,
    Axum,
    /// Serves the files only.
    Nginx,
}

/// The folder of the program on axum.
const PEER: &str = "arena";
const BROTLI_MODULE: &str = "/usr/lib/nginx/modules/ngx_http_brotli_static_module.so";

impl ArenaServer {
    pub(super) const ALL: [Self; 3] = [Self::Bine, Self::Axum, Self::Nginx];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bine => "bine",
            Self::Axum => "axum",
            Self::Nginx => "nginx",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Bine => "Bine",
            Self::Axum => "axum",
            Self::Nginx => "nginx",
        }
    }

    pub(super) fn serves(self, case: ArenaCase) -> bool {
        self != Self::Nginx || case == ArenaCase::Static
    }

    /// Builds it, or checks that it is installed.
    pub(super) fn prepare(self, workspace: &Workspace) -> Result<()> {
        match self {
            Self::Bine => {
                let example = ["-p", "bine-bench", "--example", "arena-cases"];
                let words = [&example[..], &["--features", "bine/compress"]].concat();
                workspace.build_bine(&words.into_iter().map(OsStr::new).collect::<Vec<_>>())
            }
            Self::Axum => workspace.build_peer_in(PEER),
            Self::Nginx => {
                require("nginx", "nginx")?;
                ensure!(
                    Path::new(BROTLI_MODULE).exists(),
                    "nginx cannot send files in brotli: apt-get install libnginx-mod-http-brotli-static"
                );
                Ok(())
            }
        }
    }

    /// The versions of what is not built from this repository.
    pub(super) fn version(self, workspace: &Workspace) -> Option<String> {
        match self {
            Self::Bine => None,
            Self::Nginx => Some(first_line("nginx", &["-v"])),
            Self::Axum => Some(workspace.locked_versions(PEER, &["axum", "tower-http"])),
        }
    }

    /// Starts it on core 0, and waits for its first response.
    pub(super) fn start(self, workspace: &Workspace, files: &Path) -> Result<Running> {
        let port = free_port()?;
        let (listen, folder) = (format!("127.0.0.1:{port}"), files.display().to_string());
        let (words, path) = match self {
            Self::Bine => {
                let program = workspace.bine("examples/arena-cases").display().to_string();
                let listen = format!("{listen},backlog=4096");
                let own = [&program, "--listen", &listen, "--loops", "1", "--root", &folder];
                // The peers have no log and accept all requests.
                let rest = ["--access-log", "off", "--admission", "off"];
                ([&own[..], &rest].concat().into_iter().map(str::to_owned).collect(), SUM)
            }
            Self::Axum => {
                let program = workspace.peer_folder(PEER).join("release/bine-bench-arena");
                (vec![program.display().to_string(), listen, folder], SUM)
            }
            Self::Nginx => {
                let template = workspace.root.join("bench/peers/nginx-arena.conf");
                let mut text = fs::read_to_string(template)?;
                let work = workspace.work.display().to_string();
                for (mark, value) in
                    [("@PORT@", &port.to_string()), ("@FILES@", &folder), ("@WORK@", &work)]
                {
                    text = text.replace(mark, value);
                }
                let file = workspace.work.join(format!("{port}-arena.conf"));
                fs::write(&file, text)?;
                (nginx_with(workspace, &file.display().to_string())?, "/manifest.json")
            }
        };
        let log = workspace.work.join(format!("arena-{}.log", self.name()));
        Running::start(&words, port, path, &log)
            .with_context(|| format!("{} did not start", self.title()))
    }
}

impl FromStr for ArenaServer {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let all = Self::ALL.map(Self::name).join(", ");
        let known = Self::ALL.into_iter().find(|server| server.name() == name);
        known.ok_or_else(|| Error::msg(format!("`{name}` is none of {all}")))
    }
}
