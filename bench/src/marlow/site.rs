//! The servers, and what they serve.

use std::ffi::OsStr;
use std::str::FromStr;

use anyhow::{Context, Error, Result, ensure};

use crate::machine::first_line;
use crate::peer::Peer;
use crate::servers::{Content, Running, Server, Setting, filled, free_port};
use crate::tools::{Workspace, require};

/// The requested content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarlowContent {
    /// The file of 1 KB in section 7.2 of the paper.
    File,
    /// A page of 984 bytes. Admission of sessions holds for pages, not for files.
    Page,
}

/// A measured server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarlowServer {
    /// Bine with its defaults.
    Bine,
    /// Bine without admission and guards.
    BineUnlimited,
    /// Bine with Apache's default limit of connections: the paper proposes such a limit.
    BineFew,
    Nginx,
    /// Apache with the event MPM, as Debian configures it.
    Apache,
}

/// The limit of connections of [`MarlowServer::BineFew`]: `MaxRequestWorkers` of Debian's Apache.
const FEW: &str = "150";
/// Connections that wait in the kernel until the server accepts them; the same for all.
const BACKLOG: &str = "1024";
const FILE: Content = Content::File(1024);

impl MarlowContent {
    pub(super) const ALL: [Self; 2] = [Self::File, Self::Page];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Page => "page",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::File => "file of 1 KB",
            Self::Page => "page of 984 bytes",
        }
    }

    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::File => "/1024.html",
            Self::Page => "/values",
        }
    }

    fn length(self) -> usize {
        match self {
            Self::File => FILE.len(),
            Self::Page => Content::Values.len(),
        }
    }
}

impl FromStr for MarlowContent {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|content| content.name() == name);
        known.with_context(|| format!("`{name}` is none of file, page"))
    }
}

impl MarlowServer {
    pub(super) const ALL: [Self; 5] =
        [Self::Bine, Self::BineUnlimited, Self::BineFew, Self::Nginx, Self::Apache];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bine => "bine",
            Self::BineUnlimited => "bine-unlimited",
            Self::BineFew => "bine-150",
            Self::Nginx => "nginx",
            Self::Apache => "apache",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Bine => "Bine",
            Self::BineUnlimited => "Bine without limits",
            Self::BineFew => "Bine, 150 connections",
            Self::Nginx => "nginx",
            Self::Apache => "Apache, event",
        }
    }

    /// The page belongs to Bine.
    pub(super) fn serves(self, content: MarlowContent) -> bool {
        content == MarlowContent::File || self.limits().is_some()
    }

    /// The settings of Bine that differ; `None` for other servers.
    const fn limits(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Bine => Some(&[]),
            Self::BineUnlimited => Some(&[
                "--admission",
                "off",
                "--back-pressure",
                "off",
                "--guard-descriptors",
                "off",
                "--guard-memory",
                "off",
                "--guard-memory-accept",
                "off",
            ]),
            Self::BineFew => Some(&["--connections", FEW, "--connections-local", FEW]),
            Self::Nginx | Self::Apache => None,
        }
    }

    /// The version that the program prints; empty for Bine.
    pub(super) fn version(self) -> String {
        match self {
            Self::Nginx => first_line("nginx", &["-v"]),
            Self::Apache => first_line("apache2", &["-v"]),
            Self::Bine | Self::BineUnlimited | Self::BineFew => String::new(),
        }
    }

    /// Builds it, or checks that it is installed.
    pub(super) fn prepare(self, workspace: &Workspace) -> Result<()> {
        match self {
            Self::Nginx => require("nginx", "nginx"),
            Self::Apache => require("apache2", "apache2"),
            Self::Bine | Self::BineUnlimited | Self::BineFew => {
                workspace.build_bine(&["--example", "values"].map(OsStr::new))
            }
        }
    }

    /// Starts it on core 0.
    pub(super) fn start(self, workspace: &Workspace) -> Result<Running> {
        let port = free_port()?;
        let words = match (self.limits(), self) {
            (Some(limits), _) => bine(workspace, port, limits),
            (None, Self::Nginx) => {
                let setting = Setting { content: FILE, port, loops: 1, canned: None };
                Server::Nginx.command(workspace, &setting)?
            }
            (None, _) => {
                let values = [("@PORT@", &*port.to_string()), ("@BACKLOG@", BACKLOG)];
                let file = filled(workspace, "apache-event.conf", &values)?;
                ["apache2", "-D", "FOREGROUND", "-f", &file].map(str::to_owned).to_vec()
            }
        };
        let log = workspace.work.join(format!("{}.log", self.name()));
        let running = Running::start(&words, port, MarlowContent::File.path(), &log);
        running.with_context(|| format!("{} did not start", self.title()))
    }
}

impl FromStr for MarlowServer {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|server| server.name() == name);
        let names = || Self::ALL.map(Self::name).join(", ");
        known.with_context(|| format!("`{name}` is none of {}", names()))
    }
}

fn bine(workspace: &Workspace, port: u16, limits: &[&str]) -> Vec<String> {
    let (program, files) = (workspace.bine("examples/values"), workspace.files());
    let (program, files) = (program.display().to_string(), files.display().to_string());
    let listen = format!("127.0.0.1:{port},backlog={BACKLOG}");
    let own = ["--root", &files, "--listen", &listen, "--loops", "1", "--access-log", "off"];
    std::iter::once(&*program).chain(own).chain(limits.iter().copied()).map(str::to_owned).collect()
}

/// Writes the file that all servers share.
pub(super) fn write_files(workspace: &Workspace) -> Result<()> {
    workspace.make_file(FILE.len())
}

/// Fails if a server does not send a response of the expected length.
pub(super) fn check(server: MarlowServer, content: MarlowContent, port: u16) -> Result<()> {
    let mut peer = Peer::connect(port)?;
    peer.get(content.path())?;
    let length = peer.field("content-length").and_then(|length| length.parse::<usize>().ok());
    ensure!(
        length == Some(content.length()),
        "{} sends {length:?} bytes for the {}, and not {}",
        server.title(),
        content.title(),
        content.length()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    //! Names, and what each server serves.

    use super::*;

    #[test]
    fn finds_each_server_and_content_by_its_name() {
        for server in MarlowServer::ALL {
            assert_eq!(server.name().parse::<MarlowServer>().unwrap(), server);
            assert!(!server.name().contains(','));
        }
        for content in MarlowContent::ALL {
            assert_eq!(content.name().parse::<MarlowContent>().unwrap(), content);
        }
        let error = "apache3".parse::<MarlowServer>().unwrap_err().to_string();
        assert!(error.contains("apache") && error.contains("bine-150"), "{error}");
    }

    #[test]
    fn serves_the_page_by_bine_only() {
        let pages: Vec<_> = MarlowServer::ALL
            .into_iter()
            .filter(|server| server.serves(MarlowContent::Page))
            .map(MarlowServer::name)
            .collect();
        assert_eq!(pages, ["bine", "bine-unlimited", "bine-150"]);
    }
}
