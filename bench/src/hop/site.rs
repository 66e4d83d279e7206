//! The servers, and what they serve.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Error, Result, ensure};

use crate::machine::first_line;
use crate::peer::Peer;
use crate::servers::{PHP, Running, Server, free_port};
use crate::tomcat::{self, TomcatSetting};
use crate::tools::{Workspace, require};

/// The requested content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A file of 984 bytes, the size in section 3.2 of the paper.
    File,
    /// A page of the same bytes, with twenty values.
    Page,
    /// A file of 64 KiB.
    LongFile,
}

/// A measured server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HopServer {
    /// Bine with this scheduler.
    Bine(&'static str),
    /// Bine with the settings of Hop: a pool of 20 threads, a backlog of 128 connections, 5 s for idle
    /// connections, 12 KB for the kernel to send.
    BineAsHop,
    Nginx,
    Apache,
    Lighttpd,
    Tomcat,
    Yaws,
    Varnish,
    Hyper,
    Axum,
}

/// The schedulers of Bine, the default first.
const SCHEDULERS: [&str; 8] =
    ["hybrid", "event", "cohort", "nothread", "one-to-one", "pool", "accept-many", "queue"];
/// A JVM at work for less is still compiling its code.
const JAVA_WARM_UP: u64 = 10;
/// The defaults of Tomcat: threads, and the time of an idle connection in milliseconds.
const TOMCAT_THREADS: u32 = 200;
const TOMCAT_IDLE: u64 = 20_000;
/// Workers of PHP that keep one core busy.
const PHP_WORKERS: &str = "4";

impl Asked {
    pub(super) const ALL: [Self; 3] = [Self::File, Self::Page, Self::LongFile];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Page => "page",
            Self::LongFile => "file-64k",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::File => "file of 984 bytes",
            Self::Page => "page of 984 bytes",
            Self::LongFile => "file of 64 KiB",
        }
    }
}

impl FromStr for Asked {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|asked| asked.name() == name);
        known.with_context(|| format!("`{name}` is none of file, page, file-64k"))
    }
}

impl HopServer {
    pub(super) fn all() -> Vec<Self> {
        let own = SCHEDULERS.map(Self::Bine);
        let peers = [
            Self::BineAsHop,
            Self::Nginx,
            Self::Apache,
            Self::Lighttpd,
            Self::Tomcat,
            Self::Yaws,
            Self::Varnish,
            Self::Hyper,
            Self::Axum,
        ];
        own.into_iter().chain(peers).collect()
    }

    pub(super) fn name(self) -> String {
        match self {
            Self::Bine(scheduler) => format!("bine-{scheduler}"),
            Self::BineAsHop => "bine-as-hop".to_owned(),
            Self::Nginx => "nginx".to_owned(),
            Self::Apache => "apache".to_owned(),
            Self::Lighttpd => "lighttpd".to_owned(),
            Self::Tomcat => "tomcat".to_owned(),
            Self::Yaws => "yaws".to_owned(),
            Self::Varnish => "varnish".to_owned(),
            Self::Hyper => "hyper".to_owned(),
            Self::Axum => "axum".to_owned(),
        }
    }

    pub(super) fn title(self) -> String {
        match self {
            Self::Bine(scheduler) => format!("Bine, {scheduler}"),
            Self::BineAsHop => "Bine as Hop".to_owned(),
            Self::Nginx => "nginx, php-fpm".to_owned(),
            Self::Apache => "Apache, mod_php".to_owned(),
            Self::Lighttpd => "lighttpd, FastCGI".to_owned(),
            Self::Tomcat => "Tomcat, JSP".to_owned(),
            Self::Yaws => "Yaws".to_owned(),
            Self::Varnish => "Varnish, hits".to_owned(),
            Self::Hyper => "hyper".to_owned(),
            Self::Axum => "axum".to_owned(),
        }
    }

    /// Whether the server has this content: hyper serves no files.
    pub(super) fn serves(self, asked: Asked) -> bool {
        self != Self::Hyper || asked == Asked::Page
    }

    /// Whether it is Bine, with any settings.
    pub(super) const fn is_bine(self) -> bool {
        matches!(self, Self::Bine(_) | Self::BineAsHop)
    }

    /// The path of `asked`.
    pub(super) const fn path(self, asked: Asked) -> &'static str {
        match (asked, self) {
            (Asked::File, _) => "/984.html",
            (Asked::LongFile, _) => "/65536.html",
            (Asked::Page, Self::Nginx | Self::Apache | Self::Lighttpd | Self::Varnish) => {
                "/values.php"
            }
            (Asked::Page, Self::Tomcat) => "/values.jsp",
            (Asked::Page, Self::Yaws) => "/values.yaws",
            (Asked::Page, _) => "/values",
        }
    }

    /// Seconds under load before the first point.
    pub(super) const fn warm_up(self) -> u64 {
        match self {
            Self::Tomcat => JAVA_WARM_UP,
            _ => 1,
        }
    }

    /// The version that the program prints.
    pub(super) fn version(self) -> String {
        match self {
            Self::Bine(_) | Self::BineAsHop => String::new(),
            Self::Nginx => {
                format!("{}; {}", first_line("nginx", &["-v"]), first_line(PHP, &["-v"]))
            }
            Self::Apache => first_line("apache2", &["-v"]),
            Self::Lighttpd => first_line("lighttpd", &["-v"]),
            Self::Tomcat => tomcat::version(),
            Self::Yaws => first_line("yaws", &["--version"]),
            Self::Varnish => first_line("varnishd", &["-V"]),
            Self::Hyper | Self::Axum => first_line("rustc", &["--version"]),
        }
    }

    /// Builds it, or checks that it is installed.
    pub(super) fn prepare(self, workspace: &Workspace) -> Result<()> {
        match self {
            Self::Bine(_) | Self::BineAsHop => {
                workspace.build_bine(&["--example", "values"].map(OsStr::new))
            }
            Self::Nginx => {
                require("nginx", "nginx")?;
                require(PHP, "php-fpm")
            }
            Self::Apache => require("apache2", "apache2 libapache2-mod-php"),
            Self::Lighttpd => {
                require("lighttpd", "lighttpd")?;
                require(PHP, "php-fpm")
            }
            Self::Tomcat => tomcat::require_tomcat(),
            Self::Yaws => require("yaws", "yaws"),
            Self::Varnish => {
                require("varnishd", "varnish")?;
                Self::Nginx.prepare(workspace)
            }
            Self::Hyper => Server::Hyper.build(workspace, crate::servers::Content::Values),
            Self::Axum => Server::Axum.build(workspace, crate::servers::Content::Values),
        }
    }

    /// Starts it on core 0. `files`: the folder of [`write_files`].
    pub(super) fn start(self, workspace: &Workspace, files: &Path) -> Result<Vec<Running>> {
        let site = Site { workspace, files, work: workspace.work.join(self.name()) };
        fs::create_dir_all(&site.work)?;
        match self {
            // A cache in front of nginx, which answers each request once.
            Self::Varnish => {
                let backend = Self::Nginx.start(workspace, files)?;
                let port = backend.last().context("nginx has not started")?.port;
                let cache = site.run(self, &[("@BACKEND@", &port.to_string())])?;
                Ok(backend.into_iter().chain([cache]).collect())
            }
            _ => Ok(vec![site.run(self, &[])?]),
        }
    }
}

impl FromStr for HopServer {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let all = Self::all();
        let names = || all.iter().map(|server| server.name()).collect::<Vec<_>>().join(", ");
        let known = all.iter().copied().find(|server| server.name() == name);
        known.with_context(|| format!("`{name}` is none of {}", names()))
    }
}

/// The folders of one server.
struct Site<'run> {
    workspace: &'run Workspace,
    files: &'run Path,
    /// For its configuration and sockets.
    work: PathBuf,
}

impl Site<'_> {
    fn run(&self, server: HopServer, marks: &[(&str, &str)]) -> Result<Running> {
        let port = free_port()?;
        let words = self.command(server, port, marks)?;
        let log = self.work.join("log");
        // The page needs more than a file does: its workers, or a compiler.
        let running = Running::start(&words, port, server.path(Asked::Page), &log);
        running.with_context(|| format!("{} did not start", server.title()))
    }

    fn command(&self, server: HopServer, port: u16, marks: &[(&str, &str)]) -> Result<Vec<String>> {
        let (files, work) = (self.files.display().to_string(), self.work.display().to_string());
        let fill = |name: &str| self.fill(name, port, marks);
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let listen = format!("127.0.0.1:{port}");
        Ok(match server {
            HopServer::Bine(scheduler) => {
                let listen = format!("{listen},backlog=1024");
                self.bine(&listen, &["--scheduler", scheduler])
            }
            HopServer::BineAsHop => {
                let listen = format!("{listen},backlog=128,send-buffer=12288");
                self.bine(
                    &listen,
                    &["--scheduler", "pool", "--workers", "20", "--idle-timeout", "5s"],
                )
            }
            HopServer::Nginx => {
                let configuration = fill("nginx.conf")?;
                let own = ["nginx", "-e", "stderr", "-p", &work, "-c", &configuration];
                self.with_php(&[&own[..], &["-g", "user root;"]].concat())?
            }
            HopServer::Lighttpd => {
                self.with_php(&["lighttpd", "-D", "-f", &fill("lighttpd.conf")?])?
            }
            HopServer::Apache => {
                words(&["apache2", "-D", "FOREGROUND", "-f", &fill("apache.conf")?])
            }
            HopServer::Tomcat => {
                self.write_tomcat(port)?;
                tomcat::command(&self.work, &[])
            }
            HopServer::Yaws => {
                let configuration = format!("\"{}\"", fill("yaws.conf")?);
                let home = format!("HOME={work}");
                let erlang = ["env", &home, "erl", "-noshell", "-noinput", "-boot", "start_sasl"];
                let yaws = ["-pa", "/usr/lib/yaws/ebin", "-yaws", "conf", &configuration];
                words(&[&erlang[..], &yaws[..], &["-run", "yaws"]].concat())
            }
            HopServer::Varnish => {
                let (configuration, name) = (fill("varnish.vcl")?, format!("{work}/varnish"));
                let own = ["varnishd", "-F", "-a", &listen, "-f", &configuration, "-n", &name];
                words(&[&own[..], &["-s", "malloc,64m"]].concat())
            }
            HopServer::Hyper => words(&[&self.peer("hyper"), &listen]),
            HopServer::Axum => words(&[&self.peer("axum"), &listen, &files]),
        })
    }

    fn bine(&self, listen: &str, own: &[&str]) -> Vec<String> {
        let (program, files) = (self.workspace.bine("examples/values"), self.files.display());
        let words = [program.display().to_string(), "--root".to_owned(), files.to_string()];
        let rest = ["--listen", listen, "--loops", "1", "--access-log", "off"];
        words.into_iter().chain(rest.iter().chain(own).map(|word| (*word).to_owned())).collect()
    }

    fn peer(&self, name: &str) -> String {
        let folder = self.workspace.target.join("bench").join(name).join("release");
        folder.join(format!("bine-bench-{name}")).display().to_string()
    }

    /// A server and its workers of PHP in one process group, so that both are counted and stopped.
    fn with_php(&self, server: &[&str]) -> Result<Vec<String>> {
        let source = self.workspace.root.join("bench/peers/php-fpm.conf");
        let text = fs::read_to_string(source)?
            .replace("@WORK@", &self.work.display().to_string())
            .replace("@WORKERS@", PHP_WORKERS);
        let pool = self.work.join("php-fpm.conf");
        fs::write(&pool, text)?;
        let pool = pool.display().to_string();
        let script =
            r#""$0" --allow-to-run-as-root --nodaemonize --fpm-config "$1" & shift; exec "$@""#;
        let words = ["sh", "-c", script, PHP, &pool];
        Ok(words.iter().chain(server).map(|word| (*word).to_owned()).collect())
    }

    /// The folders that Tomcat expects.
    fn write_tomcat(&self, port: u16) -> Result<()> {
        let setting =
            TomcatSetting { port, threads: TOMCAT_THREADS, idle: TOMCAT_IDLE, secure: None };
        tomcat::write_base(self.workspace, &self.work, &setting, None)?;
        let root = self.work.join("webapps/ROOT");
        fs::create_dir_all(&root)?;
        for name in ["984.html", "65536.html", "values.jsp"] {
            fs::copy(self.files.join(name), root.join(name))?;
        }
        Ok(())
    }

    /// Fills a configuration with the port and the folders, and returns its path.
    fn fill(&self, name: &str, port: u16, marks: &[(&str, &str)]) -> Result<String> {
        let mut text = fs::read_to_string(self.workspace.root.join("bench/peers/hop").join(name))?;
        let (files, work) = (self.files.display().to_string(), self.work.display().to_string());
        let own = [("@PORT@", &*port.to_string()), ("@FILES@", &files), ("@WORK@", &work)];
        for (mark, value) in own.iter().chain(marks) {
            text = text.replace(mark, value);
        }
        let file = self.work.join(name);
        fs::write(&file, text)?;
        Ok(file.display().to_string())
    }
}

/// Writes the files that all servers share: the page of Bine as a file, so that page and file have the
/// same bytes. Returns their folder.
pub(super) fn write_files(workspace: &Workspace) -> Result<PathBuf> {
    let files = workspace.files();
    fs::write(files.join("65536.html"), vec![b'x'; 1 << 16])?;
    for name in ["values.php", "values.jsp", "values.yaws"] {
        fs::copy(workspace.root.join("bench/peers/hop").join(name), files.join(name))?;
    }
    // The page needs no file; the server starts with an empty one.
    fs::write(files.join("984.html"), " ")?;
    HopServer::Bine(SCHEDULERS[0]).prepare(workspace)?;
    let running = HopServer::Bine(SCHEDULERS[0]).start(workspace, &files)?;
    let port = running.first().context("Bine has not started")?.port;
    let body = body_of(Peer::connect(port)?.get("/values")?)?;
    ensure!(body.len() == 984, "the page has {} bytes, and not 984", body.len());
    fs::write(files.join("984.html"), body)?;
    running.into_iter().try_for_each(Running::stop)?;
    Ok(files)
}

/// Fails if a server does not send the bytes that it should.
pub(super) fn check(server: HopServer, asked: Asked, port: u16, files: &Path) -> Result<()> {
    let name = if asked == Asked::LongFile { "65536.html" } else { "984.html" };
    let expected = fs::read(files.join(name))?;
    let mut peer = Peer::connect(port)?;
    let body = body_of(peer.get(server.path(asked))?)?;
    ensure!(
        body == expected,
        "{} sends {} other bytes for the {}",
        server.title(),
        body.len(),
        asked.title()
    );
    Ok(())
}

fn body_of(answer: &[u8]) -> Result<Vec<u8>> {
    let end =
        answer.windows(4).position(|four| four == b"\r\n\r\n").context("no end of the head")?;
    Ok(answer[end + 4..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_each_server_by_its_name() {
        for server in HopServer::all() {
            assert_eq!(server.name().parse::<HopServer>().unwrap(), server);
            assert!(!server.name().contains(','));
        }
        let error = "apache3".parse::<HopServer>().unwrap_err().to_string();
        assert!(error.contains("apache") && error.contains("bine-as-hop"), "{error}");
        assert!(Asked::ALL.iter().all(|asked| asked.name().parse::<Asked>().unwrap() == *asked));
    }

    #[test]
    fn takes_the_body_of_a_response() {
        assert_eq!(body_of(b"HTTP/1.1 200 OK\r\n\r\nbody").unwrap(), b"body");
        assert!(body_of(b"HTTP/1.1 200 OK\r\n").is_err());
    }
}
